"""Which ranks share a host, the memory they share, and the messages between hosts."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .messages import Messages
from .mpi import load_mpi

__all__ = ["Hosts", "SharedMemory"]


class Hosts:
    """The ranks of a job by the hosts they run on.

    A rank's *position* is its place when ranks are listed host by host: neighbours in it share a host, so that sums over
    neighbouring shards are made before anything leaves the host, however the launcher numbers its ranks.

    Attributes:
        count: how many hosts there are.
        host_index, host_rank, host_size: the own host, the own place on it, and how many ranks it has.
        position: the own position.
        positions: those of the ranks of this host.
        by_host: those of all ranks, host by host.
        channels: how many ranks of each host exchange messages: as many as the smallest host has.
        channel: the communicator of the own channel; None where this rank has none. Sums that come back, and what goes with
            them, have communicators of their own: each takes its messages in one order.
    """

    def __init__(self, everyone: Messages | None) -> None:
        self.everyone = everyone
        self.local: Messages | None = None
        self.channel: Messages | None = None
        self._back: Messages | None = None
        self._aside: Messages | None = None
        if everyone is None:
            self.count, self.host_index, self.host_rank, self.host_size, self.position = 1, 0, 0, 1, 0
            self.by_host, self.channels, self.names = [[0]], 1, [socket.gethostname()]
            self.positions = [0]
            return
        mpi, comm = load_mpi(), everyone.comm
        name = os.environ.get("EXTENSOR_HOST", "")  # ranks with other names never share memory
        shared = comm.Split_type(mpi.COMM_TYPE_SHARED, comm.Get_rank())
        names = Messages(shared, everyone.watch).gather(name)
        self.local = Messages(shared.Split(names.index(name), shared.Get_rank()), everyone.watch)
        shared.Free()
        self.host_rank, self.host_size = self.local.rank, self.local.size
        leader = self.local.broadcast(everyone.rank)
        placed = everyone.gather([leader, name or socket.gethostname()])
        leaders = sorted({row[0] for row in placed})
        by_host = [[r for r, row in enumerate(placed) if row[0] == first] for first in leaders]
        order = [rank for ranks in by_host for rank in ranks]
        self.names = [placed[ranks[0]][1] for ranks in by_host]
        self.count, self.host_index = len(by_host), leaders.index(leader)
        self.position = order.index(everyone.rank)
        self.by_host = [[order.index(rank) for rank in ranks] for ranks in by_host]
        self.positions = self.by_host[self.host_index]
        self.channels = min(len(ranks) for ranks in by_host)
        takes_part = self.host_rank < self.channels
        channel = comm.Split(self.host_rank if takes_part else mpi.UNDEFINED, self.host_index)
        if takes_part:
            self.channel, self._back, self._aside = (
                Messages(each, everyone.watch) for each in (channel, channel.Dup(), channel.Dup())
            )

    def shared(self, sizes: Sequence[int]) -> SharedMemory:
        """Memory of this host: so many bytes for each of its ranks."""
        return SharedMemory(self.local, sizes)

    @property
    def communicators(self) -> list[Messages]:
        """Those this rank takes part in, besides that of everyone."""
        every = (self.local, self.channel, self._back, self._aside)
        return [messages for messages in every if messages is not None]

    def begin_exchange(
        self, out: np.ndarray, send: list[int], arrived: np.ndarray, receive: list[int]
    ) -> Any:
        """Parts of ``out`` to the other hosts of the channel, theirs into ``arrived``; both must stay until that is complete."""
        assert self.channel is not None
        return self.channel.comm.Ialltoallv(
            (out, (send, _starts(send))), (arrived, (receive, _starts(receive)))
        )

    def begin_spread(self, own: np.ndarray, arrived: np.ndarray, lengths: list[int]) -> Any:
        """``own`` to all hosts of the channel, theirs into ``arrived``."""
        assert self._back is not None
        return self._back.comm.Iallgatherv(own, (arrived, (lengths, _starts(lengths))))

    def spread(self, own: np.ndarray, arrived: np.ndarray, lengths: list[int]) -> None:
        """``own`` to all hosts of the channel, theirs into ``arrived``, at once."""
        assert self._back is not None
        self._back.wait(self.begin_spread(own, arrived, lengths))

    def start_aside(self, own: np.ndarray, arrived: np.ndarray, lengths: list[int]) -> Callable[[], None]:
        """``own`` to all hosts of the channel beside what else is on its way; what is returned waits for theirs in ``arrived``."""
        aside = self._aside
        assert aside is not None
        request = aside.comm.Iallgatherv(own, (arrived, (lengths, _starts(lengths))))
        return lambda: aside.wait(request)


class SharedMemory:
    """Bytes that the ranks of one host share.

    Attributes:
        segments: the bytes of each rank; all may be read and written by all.
    """

    def __init__(self, local: Messages | None, sizes: Sequence[int]) -> None:
        self._local, self._window = local, None
        self.segments: list[np.ndarray]
        if local is None or local.size == 1:
            self.segments = [np.zeros(max(size, 1), np.uint8) for size in sizes]
            return
        mpi = load_mpi()
        own = max(sizes[local.rank], 64)
        self._window = mpi.Win.Allocate_shared(own, 1, comm=local.comm)
        self.segments = []
        for rank in range(local.size):
            buffer, _ = self._window.Shared_query(rank)
            self.segments.append(np.frombuffer(buffer, np.uint8))
        self._window.Lock_all()  # the epoch in which loads, stores and Sync are allowed
        self.barrier()

    def barrier(self) -> None:
        """What was written before is seen by all after."""
        request = self.begin_barrier()
        if request is not None and self._local is not None:
            self._local.wait(request)
        self.synchronize()

    def begin_barrier(self) -> Any:
        """A barrier on its way; :meth:`synchronize` when the request is complete. None where nobody is waited for."""
        if self._window is None or self._local is None:
            return None
        self._window.Sync()
        return self._local.comm.Ibarrier()

    def synchronize(self) -> None:
        """See what the others wrote before the barrier."""
        if self._window is not None:
            self._window.Sync()

    def free(self) -> None:
        self.segments = []
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None


def _starts(lengths: list[int]) -> list[int]:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64).tolist()
