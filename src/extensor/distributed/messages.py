"""Waiting for messages without ever waiting for the dead, and objects as messages."""

from __future__ import annotations

import json
import math
import os
import struct
import time
from typing import Any

import numpy as np

from ..state_trees import flatten_state, restore_state
from ..tensor import ExTensor
from .errors import LostRankError
from .mpi import load_mpi
from .watch import Watch

__all__ = ["Messages"]

_LOOKS = 64  # between two looks at the clock
_PATIENCE = 0.005  # seconds of looking before a wait sleeps in between


class Messages:
    """Collective calls on a communicator, each of which ends when a rank is lost.

    Args:
        comm: of mpi4py.
        watch: knows whether everyone is there; None while that is not set up yet.
    """

    def __init__(self, comm: Any, watch: Watch | None) -> None:
        self.comm, self.watch = comm, watch
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    def wait(self, *requests: Any) -> None:
        """Until all requests are complete.

        Raises:
            LostRankError: a rank that may be the reason for the wait is lost.
        """
        for request in requests:
            looks, began = 0, 0.0
            while not self.is_complete(request):
                looks += 1
                if looks % _LOOKS:
                    os.sched_yield()  # the one we wait for may need this processor
                    continue
                if self.watch is not None and (self.watch.problem or self.watch.has_leavers):
                    self.watch.check()
                now = time.monotonic()
                began = began or now
                if now - began > _PATIENCE:
                    time.sleep(0.0002)

    def is_complete(self, request: Any) -> bool:
        """Whether a request is; asking lets MPI go on with all of them."""
        try:
            return bool(request.Test())
        except (
            Exception
        ) as error:  # mpi4py's: an MPI that notices a lost rank by itself, before we know which
            for _ in range(20 if self.watch is not None else 0):
                assert self.watch is not None
                self.watch.check()
                time.sleep(0.1)
            raise LostRankError(f"[World] MPI cannot reach another rank: {error}") from error

    def barrier(self) -> None:
        if self.size > 1:
            self.wait(self.comm.Ibarrier())

    def highest(self, number: int) -> int:
        """The highest number that any rank gives."""
        if self.size == 1:
            return number
        found = np.array([number], np.int64)
        highest = np.empty_like(found)
        self.wait(self.comm.Iallreduce(found, highest, op=load_mpi().MAX))
        return int(highest[0])

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """What ``root`` gives, on every rank: numbers, text, arrays, tensors, and lists, tuples and dicts of them."""
        if self.size == 1:
            return value
        data = _packed(value) if self.rank == root else b""
        length = np.array([len(data)], np.int64)
        self.wait(self.comm.Ibcast(length, root))
        buffer = (
            np.frombuffer(data, np.uint8).copy() if self.rank == root else np.empty(int(length[0]), np.uint8)
        )
        self.wait(self.comm.Ibcast(buffer, root))
        return value if self.rank == root else _unpacked(buffer)

    def gather(self, value: Any) -> list[Any]:
        """What every rank gives, in the order of ranks, on every rank."""
        if self.size == 1:
            return [value]
        own = np.frombuffer(_packed(value), np.uint8)
        lengths = np.empty(self.size, np.int64)
        self.wait(self.comm.Iallgather(np.array([own.size], np.int64), lengths))
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        every = np.empty(int(lengths.sum()), np.uint8)
        self.wait(self.comm.Iallgatherv(own, (every, (lengths.tolist(), starts.tolist()))))
        parts = [every[start : start + length] for start, length in zip(starts, lengths)]
        return [value if rank == self.rank else _unpacked(part) for rank, part in enumerate(parts)]


def _packed(value: Any) -> bytes:
    """A message: the length of its text, the text, and the bytes of its arrays one after the other."""
    tensors: dict[str, Any] = {}
    tree = flatten_state("World", value, "", tensors)
    arrays = {name: np.ascontiguousarray(x) for name, x in tensors.items()}
    table = {name: [x.dtype.name, list(np.shape(tensors[name]))] for name, x in arrays.items()}
    text = json.dumps([tree, table]).encode()
    return b"".join([struct.pack("!Q", len(text)), text, *(x.tobytes() for x in arrays.values())])


def _unpacked(buffer: np.ndarray) -> Any:
    data = buffer.data
    start = 8 + struct.unpack("!Q", data[:8])[0]
    tree, table = json.loads(bytes(data[8:start]))
    tensors = {}
    for name, (dtype, shape) in table.items():
        count = math.prod(shape)
        array = np.frombuffer(data, np.dtype(dtype), count, start) if count else np.empty(0, dtype)
        tensors[name] = ExTensor(array.reshape(shape).copy())
        start += array.nbytes
    return restore_state(tree, tensors)
