"""Processes that prepare batches ahead; their order and bits are those of a single process.

Each worker is a new interpreter (spawn), so that no lock or thread of this one is copied into it. Batch number i comes from
worker i % count. A batch is pickled with its arrays beside it (protocol 5), and those go through a block of shared memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import traceback
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from .gathering import Gatherer

__all__ = ["WorkerPool"]

_AHEAD = 2  # batches that each worker has in hand
_LINE = 64


class WorkerError(RuntimeError):
    """Something went wrong in a worker process."""


class WorkerPool:
    """Worker processes that gather batches. They end with the pool."""

    def __init__(self, gatherer: Gatherer, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        message = pickle.dumps(gatherer, 5)
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there,), name="extensor-loader", daemon=True)
            process.start()
            there.close()
            self._connections.append(here)
            self._processes.append(process)
        self._finalizer = weakref.finalize(self, _end, self._connections, self._processes)
        for number in range(count):
            self._send(number, message)
        self._run = 0

    def batches(self, tasks: Iterable[tuple[int, np.ndarray]]) -> Iterator[Any]:
        """The batches of ``tasks`` (epoch and places), in their order."""
        self._run += 1
        run, waiting, rest = self._run, deque[int](), iter(enumerate(tasks))

        def hand_out() -> None:
            for number, (epoch, chosen) in rest:
                worker = number % len(self._processes)
                self._send(worker, (run, epoch, chosen))
                waiting.append(worker)
                return

        for _ in range(_AHEAD * len(self._processes)):
            hand_out()
        while waiting:
            batch = self._receive(waiting.popleft(), run)
            hand_out()
            yield batch

    def close(self) -> None:
        """End the processes."""
        self._finalizer()

    def _send(self, worker: int, message: Any) -> None:
        try:
            self._connections[worker].send(message)
        except (BrokenPipeError, ConnectionError):
            raise self._gone(worker) from None

    def _receive(self, worker: int, run: int) -> Any:
        connection, process = self._connections[worker], self._processes[worker]
        while True:
            if connection not in wait([connection, process.sentinel]):
                raise self._gone(worker)
            try:
                answer = connection.recv()
            except (EOFError, ConnectionError):
                raise self._gone(worker) from None
            if answer[0] == "failed":
                _, of, error, text = answer
                if of in (run, 0):
                    raise (
                        error
                        if error is not None
                        else WorkerError(f"[DataLoader] in a worker process:\n{text}")
                    )
                continue
            _, of, message, name, sizes = answer
            buffers = _take(name, sizes)
            if of == run:  # others belong to a loop that was left
                return pickle.loads(message, buffers=buffers)

    def _gone(self, worker: int) -> WorkerError:
        self._processes[worker].join(1)
        code = self._processes[worker].exitcode
        return WorkerError(
            f"[DataLoader] worker {worker} ended with exit code {code}; a dataset that is defined in a notebook or at a prompt must "
            "move into a module that workers can import, and a script needs `if __name__ == '__main__':`"
        )


def _end(connections: list[Connection], processes: list[Any]) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.send(None)
    for connection, process in zip(connections, processes):
        with contextlib.suppress(OSError, EOFError, FileNotFoundError):
            while connection.poll(2):  # batches of a loop that was left: their blocks must go
                answer = connection.recv()
                if answer[0] == "batch":
                    _take(answer[3], answer[4])
        connection.close()
        process.join(2)
        if process.is_alive():
            process.terminate()
            process.join()


def _take(name: str | None, sizes: list[int]) -> list[bytearray]:
    """The buffers in a block of shared memory, copied; the block is gone then."""
    if name is None:
        return [bytearray(0) for _ in sizes]
    block = SharedMemory(name)
    try:
        found, start = [], 0
        for size in sizes:
            found.append(bytearray(_bytes(block)[start : start + size]))
            start += -(-size // _LINE) * _LINE
        return found
    finally:
        block.close()
        block.unlink()


def _bytes(block: SharedMemory) -> memoryview:
    assert block.buf is not None  # it is not closed
    return block.buf


# In the worker


def _work(connection: Connection) -> None:
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        try:
            gatherer = pickle.loads(connection.recv())
        except (EOFError, ConnectionError):
            return
        except Exception as error:  # a class that this process cannot import, most likely
            connection.send(_failure(0, error))
            return
        while True:
            task = connection.recv()
            if task is None:
                return
            run, epoch, chosen = task
            try:
                answer = _packed(run, gatherer(epoch, chosen))
            except Exception as error:
                answer = _failure(run, error)
            connection.send(answer)


def _packed(run: int, batch: Any) -> tuple[Any, ...]:
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(batch, 5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    sizes = [view.nbytes for view in views]
    room = sum(-(-size // _LINE) * _LINE for size in sizes)
    if not room:
        return "batch", run, message, None, sizes
    block = SharedMemory(create=True, size=room)
    try:
        start = 0
        for view, size in zip(views, sizes):
            _bytes(block)[start : start + size] = view
            start += -(-size // _LINE) * _LINE
        return "batch", run, message, block.name, sizes
    finally:
        block.close()


def _failure(run: int, error: Exception) -> tuple[Any, ...]:
    text = traceback.format_exc()
    with contextlib.suppress(Exception):
        pickle.loads(pickle.dumps(error))
        error.add_note(f"In a worker process of a DataLoader:\n{text}")
        return "failed", run, error, text
    return "failed", run, None, text
