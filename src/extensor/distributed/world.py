"""The processes of a job, as seen by one of them."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..checks import as_bool, as_int, as_number
from ..dtypes import float32, float64
from ..errors import describe
from ..tensor import ExTensor
from .errors import MismatchError
from .exchange import Exchange
from .hosts import Hosts
from .messages import Messages
from .mpi import launched_ranks, load_mpi
from .reduction import Reduction
from .sums import Layout, ShardSums
from .watch import Watch

__all__ = ["World"]


class World:
    """The processes (*ranks*) that train together.

    Started by ``mpiexec -n 4 python program.py``, ``srun`` or ``extensor train --processes 4``, every rank runs the same
    program; without a launcher there is one rank, and neither MPI nor mpi4py is needed. A rank that ends, stops or loses
    its host is noticed within seconds: whatever the others wait for raises :class:`LostRankError`.

    Args:
        comm: a communicator of mpi4py; all ranks that were started without it.
        compress: round gradients to bfloat16 at every place of the tree they are added along, and send half the bytes
            between hosts. The rounding does not depend on the number of ranks either.
        timeout: after so many seconds without a sign of life a rank counts as lost; ``EXTENSOR_TIMEOUT`` or 8 without it.

    Attributes:
        rank: the number of this process, from 0.
        size: how many there are.
        host_rank: the number of this process among those of its host.
        host_size: how many run on this host.

    Example:
        >>> from extensor.distributed import World
        >>> with World() as world:
        ...     print(world.rank, world.size)
        0 1
    """

    def __init__(self, comm: Any = None, *, compress: bool = False, timeout: float | None = None) -> None:
        self.compress = as_bool("World", "compress", compress)
        limit = as_number("World", "timeout", _default_timeout() if timeout is None else timeout)
        if not 1 <= limit < float("inf"):
            raise ValueError(f"[World] timeout must be at least 1 second, got {limit}")
        self.timeout = limit
        if comm is None and (launched_ranks() > 1 or _mpi_runs()):
            comm = load_mpi().COMM_WORLD
        elif comm is not None and not hasattr(comm, "Get_rank"):
            raise TypeError(f"[World] comm must be a communicator of mpi4py, got {describe(comm)}")
        self._set_up(comm)

    def _set_up(self, comm: Any) -> None:
        self._watch: Watch | None = None
        self._messages: Messages | None = None
        self._exchanges: dict[Any, Exchange] = {}
        self._closed = False
        if comm is not None and comm.Get_size() > 1:
            self._messages = Messages(comm.Dup(), None)
            self._messages.comm.Set_errhandler(load_mpi().ERRORS_RETURN)
        self.rank = 0 if self._messages is None else self._messages.rank
        self.size = 1 if self._messages is None else self._messages.size
        self.hosts = Hosts(self._messages)
        self.host_rank, self.host_size = self.hosts.host_rank, self.hosts.host_size
        if self._messages is not None:
            host = self.hosts.names[self.hosts.host_index]
            names = self._messages.gather(f"rank {self.rank} (host {host}, process {os.getpid()})")
            self._watch = Watch(self.rank, names, self._messages.broadcast, self.timeout)
            for messages in (self._messages, *self.hosts.communicators):
                messages.watch = self._watch
            atexit.register(self._at_exit)
            _survive_notices()

    @classmethod
    def alone(cls) -> World:
        """A world of this process, whatever started it."""
        self = cls.__new__(cls)
        self.compress, self.timeout = False, 8.0
        self._set_up(None)
        return self

    @property
    def position(self) -> int:
        """The place of this rank when ranks are listed host by host; its shards follow from it."""
        return self.hosts.position

    def __repr__(self) -> str:
        return f"World(rank={self.rank}, size={self.size}, hosts={self.hosts.count})"

    # Together

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self._check_open("barrier")
        if self._messages is not None:
            self._messages.barrier()

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """What rank ``root`` passes, on every rank.

        Args:
            value: numbers, text, tensors, arrays, and lists, tuples and dicts of them; only that of ``root`` counts.
            root: the rank whose value it is.

        Example:
            >>> from extensor.distributed import World
            >>> World().broadcast({"lr": 0.1})
            {'lr': 0.1}
        """
        self._check_open("broadcast")
        number = as_int("broadcast", "root", root)
        if not 0 <= number < self.size:
            raise ValueError(f"[broadcast] root must be from 0 to {self.size - 1}, got {number}")
        return value if self._messages is None else self._messages.broadcast(value, number)

    def gather(self, value: Any) -> list[Any]:
        """What every rank passes, in the order of ranks, on every rank.

        Args:
            value: numbers, text, tensors, arrays, and lists, tuples and dicts of them.

        Example:
            >>> from extensor.distributed import World
            >>> World().gather(3)
            [3]
        """
        self._check_open("gather")
        return [value] if self._messages is None else self._messages.gather(value)

    def highest(self, number: int) -> int:
        """The highest whole number that any rank passes."""
        self._check_open("highest")
        return number if self._messages is None else self._messages.highest(number)

    def reduce_gradients(self, tree: Any, shard: int | Sequence[int]) -> Any:
        """The sum of gradients over all shards of all ranks, the same bits on any number of ranks.

        g = sum over shards of g_shard, added along a fixed binary tree over shard numbers

        The numbers of all ranks together must be 0, 1, 2 and so on, each once. Which rank holds which does not matter.

        Args:
            tree: the gradients of one shard: tensors in nested lists, tuples and dicts, None where there is none.
            shard: its number; or a list of numbers, and ``tree`` a list of as many trees.

        Returns:
            The sums, in the structure of one tree; None where no shard has a gradient.

        Example:
            >>> import extensor as et
            >>> from extensor.distributed import World
            >>> halves = [{"w": et.tensor([1.0, 2.0])}, {"w": et.tensor([3.0, 4.0])}]
            >>> World().reduce_gradients(halves, shard=[0, 1])["w"].tolist()
            [4.0, 6.0]
        """
        self._check_open("reduce_gradients")
        several = isinstance(shard, (list, tuple, range, np.ndarray))
        wanted: Any = shard if several else [shard]
        numbers = [as_int("reduce_gradients", "shard", number) for number in wanted]
        trees = list(tree) if several else [tree]
        if len(trees) != len(numbers):
            raise ValueError(f"[reduce_gradients] {len(trees)} trees come with {len(numbers)} shard numbers")
        flat = [list(_slots_of(t)) for t in trees]
        kinds = [[None if x is None else [list(x.shape), x.dtype.name] for x in row] for row in flat]
        told = self.gather([numbers, kinds])
        held = [list(row[0]) for row in told]
        shards = _checked_partition(held)
        found = _checked_kinds(told)
        wide = any(kind is not None and kind[1] == "float64" for kind in found)
        present = [i for i, kind in enumerate(found) if kind is not None]
        layout = Layout([tuple(found[i][0]) for i in present], float64 if wide else float32)
        exchange = self.exchange(layout, self._by_position(held), shards)
        sums = ShardSums(layout, exchange.nodes(shards), shards, exchange.slots, self.compress)
        for number, row in zip(numbers, flat):
            sums.add(number, [None if row[i] is None else row[i].numpy() for i in present])
        views = layout.views(Reduction(exchange, shards).finish()[0].copy())
        new = {i: ExTensor(view.astype(found[i][1], copy=False)) for i, view in zip(present, views)}
        counter = iter(range(len(found)))
        if not trees:  # this rank holds no shard; the structure is another's
            return [new.get(i) for i in counter]
        return _filled(trees[0], counter, new)

    def exchange(self, layout: Layout, held: Sequence[Sequence[int]], shards: int, side: int = 0) -> Exchange:
        """The memory and plans to sum vectors of a layout; made once for each kind, by all ranks together."""
        key = (tuple(layout.shapes), layout.dtype, tuple(map(tuple, held)), shards, side)
        if key not in self._exchanges:
            while len(self._exchanges) >= 4:  # shared memory is scarce; all ranks drop the same one
                self._exchanges.pop(next(iter(self._exchanges))).close()
            self._exchanges[key] = Exchange(self.hosts, layout, held, shards, side, self.compress)
        return self._exchanges[key]

    def _by_position(self, by_rank: list[Any]) -> list[Any]:
        """Values of ranks in the order of positions."""
        places = self.gather(self.position)
        return [value for _, value in sorted(zip(places, by_rank), key=lambda pair: pair[0])]

    # The end

    @property
    def is_broken(self) -> bool:
        """Whether an error of the program, on this rank or another, has ended the job."""
        return self._watch is not None and self._watch.broke

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks that this one cannot go on, and why; they end with that message."""
        if self._watch is not None and not self._closed and self._watch.problem is None:
            text = f"{type(error).__name__}: {error}"
            self._watch.leave(text)
            self._watch.let_others_end()
            self._watch.problem, self._watch.broke = f"failed: {text}", True

    def close(self) -> None:
        """Give back what the ranks share; everyone must come here. A ``with`` block does it."""
        if self._closed:
            return
        if self._messages is not None and self._watch is not None and self._watch.problem is None:
            for exchange in self._exchanges.values():
                exchange.close()
            self._messages.barrier()
            self._watch.leave()
        self._exchanges = {}
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.fail(error)
        else:
            self.close()

    def _check_open(self, function: str) -> None:
        if self._closed:
            raise RuntimeError(f"[{function}] this World is closed; make another one")

    def _at_exit(self) -> None:
        """Finish with MPI; where ranks are lost that would never end, so the process just ends."""
        watch = self._watch
        if watch is None:
            return
        error = getattr(sys, "last_value", None)
        if watch.problem is None and not self._closed:
            if error is not None:
                self.fail(error)
            else:
                watch.leave()
        if watch.problem is not None:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(watch.exit_code)
        mpi = load_mpi()
        watch.expect_nothing_more()
        if not mpi.Is_finalized():
            mpi.Finalize()
        watch.close()


def _survive_notices() -> None:
    """MPICH's launcher may tell ranks of a lost one by SIGUSR1, which would end them before they can say so."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def _mpi_runs() -> bool:
    """Whether the program itself has started MPI."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and bool(mpi.Is_initialized()) and not mpi.Is_finalized()


def _default_timeout() -> float:
    text = os.environ.get("EXTENSOR_TIMEOUT", "8")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"[World] EXTENSOR_TIMEOUT must be a number of seconds, got {text!r}") from None


def _slots_of(tree: Any) -> Any:
    """The tensors of a tree in order, None included."""
    if tree is None or isinstance(tree, ExTensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _slots_of(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from _slots_of(value)
    else:
        raise TypeError(
            f"[reduce_gradients] tree must be made of tensors, lists, tuples and dicts, got {describe(tree)}"
        )


def _filled(tree: Any, counter: Any, new: dict[int, ExTensor]) -> Any:
    """A tree of the same structure with other tensors."""
    if tree is None or isinstance(tree, ExTensor):
        return new.get(next(counter))
    if isinstance(tree, dict):
        return type(tree)((key, _filled(value, counter, new)) for key, value in tree.items())
    parts = [_filled(value, counter, new) for value in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)


def _checked_partition(held: list[list[int]]) -> int:
    """How many shards there are, if each number is held once."""
    every = sorted(number for numbers in held for number in numbers)
    if every != list(range(len(every))) or not every:
        raise MismatchError(
            f"[reduce_gradients] the shards of all ranks must be 0, 1, 2 and so on, each once, got {held}"
        )
    return len(every)


def _checked_kinds(told: list[Any]) -> list[Any]:
    """Shape and dtype of each gradient that any shard has, if all that have one agree."""
    found: list[Any] = []
    for rank, (numbers, kinds) in enumerate(told):
        for number, row in zip(numbers, kinds):
            if not found:
                found = list(row)
            if len(row) != len(found):
                raise MismatchError(
                    f"[reduce_gradients] shard {number} of rank {rank} has {len(row)} gradients, others have {len(found)}"
                )
            for i, kind in enumerate(row):
                if kind is not None and found[i] is not None and kind != found[i]:
                    raise MismatchError(
                        f"[reduce_gradients] gradient {i} of shard {number} on rank {rank} is {kind[1]} {tuple(kind[0])}, "
                        f"on others {found[i][1]} {tuple(found[i][0])}"
                    )
                found[i] = kind if found[i] is None else found[i]
    return found
