"""Batches in a random order that depends on the seed and the epoch alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from ..checks import as_bool, as_int
from ..dtypes import as_dtype
from ..errors import describe
from ..random import Rng, as_generator
from ..tensor import ExTensor
from .collate import as_batch
from .dataset import Dataset
from .gathering import Gatherer
from .lazy import LazyArray
from .shards import ShardedBatch, cut_batch, shard_sizes
from .workers import WorkerPool

__all__ = ["DataLoader", "to_judge"]

Batch: TypeAlias = "tuple[ExTensor, ExTensor | None]"


class DataLoader:
    """Goes through a dataset in batches; each ``for`` loop over it is one epoch.

    A dataset is a :class:`Dataset`, whose batches are ``(inputs, targets)``; anything with ``__len__`` and ``__getitem__``; or an
    iterable, or a function that makes one (a generator function), whose samples come in the order they have. Samples of the last
    two are put together by :func:`collate`: tuples and dicts of numbers and arrays give tuples and dicts of tensors.

    The order of an epoch and every random number its transforms use follow from the seed and the number of the epoch,
    so a loader that is put back to a position (:meth:`load_state_dict`) hands out the same batches to the bit.

    Args:
        dataset: the samples.
        batch_size: how many samples make a batch; None where the dataset holds whole batches.
        shuffle: whether each epoch has a random order of its own.
        rng: a seed, or a generator from which one is drawn.
        drop_last: leave out the last batch of an epoch if it is smaller.
        prefetch: how many batches a second thread prepares ahead; 0 prepares each when it is asked for. A thread pays
            where transforms are slow; a batch that is only gathered takes less time than the hand-over.
        sampler: the places of an epoch's samples in their order: an iterable with a length, as :class:`WeightedSampler`. One with a
            method ``order(seed, epoch)`` is asked for each epoch's; of others every epoch iterates anew.
        collate_fn: makes a batch of a list of samples, instead of :func:`collate`.
        num_workers: how many processes prepare batches; order and bits are the same for any number. They are new interpreters,
            so the dataset must pickle and a script needs ``if __name__ == "__main__":``.
        dtype: what floating numbers of samples become; float64 becomes float32 if None. A :class:`Dataset` has its own.

    Attributes:
        epoch: the number of the epoch the next batch belongs to.
        position: the place of the next batch in its epoch.

    Example:
        >>> import extensor as et
        >>> loader = et.data.DataLoader(et.data.digits(), batch_size=64, shuffle=True, rng=0)
        >>> len(loader)
        29
        >>> for x, y in loader:
        ...     break
        >>> x.shape, y.shape
        ((64, 1, 8, 8), (64,))
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        rng: Rng = 0,
        drop_last: bool = False,
        prefetch: int = 0,
        *,
        sampler: Any = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        dtype: Any = None,
    ) -> None:
        self.dataset: Any = dataset
        self._by_place = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if not self._by_place and not isinstance(dataset, Iterable) and not callable(dataset):
            raise TypeError(
                f"[DataLoader] dataset must be a Dataset, have __len__ and __getitem__, or be iterable, got {describe(dataset)}"
            )
        self._whole = batch_size is None
        self.batch_size = 1 if batch_size is None else as_int("DataLoader", "batch_size", batch_size)
        self.shuffle = as_bool("DataLoader", "shuffle", shuffle)
        self.drop_last = as_bool("DataLoader", "drop_last", drop_last)
        self.prefetch = as_int("DataLoader", "prefetch", prefetch)
        if self.batch_size < 1 or self.prefetch < 0:
            raise ValueError(
                f"[DataLoader] batch_size must be at least 1 and prefetch 0, got {batch_size} and {prefetch}"
            )
        self.num_workers = as_int("DataLoader", "num_workers", num_workers)
        if self.num_workers < 0:
            raise ValueError(f"[DataLoader] num_workers must be at least 0, got {num_workers}")
        self.sampler = sampler
        self.dtype = None if dtype is None else as_dtype("DataLoader", dtype)
        if collate_fn is not None and not callable(collate_fn):
            raise TypeError(f"[DataLoader] collate_fn must be callable, got {describe(collate_fn)}")
        self.collate_fn = collate_fn
        self._check_kind()
        if self.length == 0:
            raise ValueError(
                f"[DataLoader] {len(dataset)} samples make no batch of {batch_size}; use drop_last=False"
            )
        if isinstance(rng, np.random.Generator):
            self.seed = int(as_generator("DataLoader", rng).integers(2**63))
        else:
            as_generator("DataLoader", rng)  # judges the seed
            self.seed = int(rng)
        self.epoch = 0
        self.position = 0
        self._put_back = False  # whether the next loop goes on at the position instead of beginning an epoch
        self._ended = False  # whether an iterable had no more samples
        self._pool: WorkerPool | None = None

    def _check_kind(self) -> None:
        """An iterable has one order and one reader."""
        if self.sampler is not None and self.shuffle:
            raise ValueError("[DataLoader] a sampler says the order; leave shuffle out")
        if self.sampler is not None and not (
            hasattr(self.sampler, "__len__") and isinstance(self.sampler, Iterable)
        ):
            raise TypeError(
                f"[DataLoader] sampler must be iterable and have a length, got {describe(self.sampler)}"
            )
        if self._by_place:
            return
        for name, given in (
            ("shuffle", self.shuffle),
            ("sampler", self.sampler),
            ("num_workers", self.num_workers),
        ):
            if given:
                raise ValueError(
                    f"[DataLoader] {name} needs a dataset with __len__ and __getitem__; {describe(self.dataset)} is read from its "
                    "beginning to its end"
                )

    @property
    def samples(self) -> int | None:
        """How many samples an epoch has; None where only its end will tell."""
        if self.sampler is not None:
            return len(self.sampler)
        return len(self.dataset) if hasattr(self.dataset, "__len__") else None

    @property
    def length(self) -> int | None:
        """The number of batches in an epoch; None where only its end will tell."""
        samples = self.samples
        if samples is None:
            return None
        whole, rest = divmod(samples, self.batch_size)
        return whole + bool(rest and not self.drop_last)

    @property
    def at_end(self) -> bool:
        """Whether the batches of this epoch have all been handed out."""
        return self._ended or self.position == self.length

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        length = self.length
        if length is None:
            raise TypeError(
                f"[DataLoader] {describe(self.dataset)} has no length, so nobody knows the number of its batches"
            )
        return length

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the next epoch; after :meth:`load_state_dict`, the rest of the epoch that was stored."""
        if self.num_workers:
            return self._counted(self._by_workers(*self._begin()))
        return self._loop(lambda epoch, chosen, place: self._gathered(epoch, chosen))

    def in_shards(self, shards: int, own: Collection[int]) -> Iterator[ShardedBatch]:
        """The same batches cut into ``shards`` parts by position, of which only those of numbers ``own`` are gathered."""
        if self._whole or not self._by_place:  # batches that others make are there as a whole
            return (cut_batch(batch, shards, own) for batch in self)
        return self._loop(lambda epoch, chosen, place: self._shards(epoch, chosen, shards, own))

    def in_turns(self, turn: int, turns: int) -> Iterator[Batch | None]:
        """The same batches, of which every ``turns``-th is gathered, from the one of number ``turn``; None for the others."""
        if turns == 1:
            return iter(self)
        return self._loop(
            lambda epoch, chosen, place: self._gathered(epoch, chosen) if place % turns == turn else None
        )

    def _shards(self, epoch: int, chosen: np.ndarray, shards: int, own: Collection[int]) -> ShardedBatch:
        sizes = shard_sizes(len(chosen), shards)
        parts = {
            shard: self._gathered(epoch, chosen[shard * sizes[0] :][: sizes[shard]])
            for shard in own
            if sizes[shard]
        }
        return ShardedBatch(len(chosen), sum(size > 0 for size in sizes), parts)

    def _gathered(self, epoch: int, chosen: np.ndarray) -> Batch:
        return self._gatherer(epoch, chosen)

    @property
    def _gatherer(self) -> Gatherer:
        return Gatherer(self.dataset, self.collate_fn, self.seed, self.dtype, self._whole)

    def _begin(self) -> tuple[int, int]:
        """The epoch and the place at which the next loop begins."""
        if self.position and not self._put_back:
            self.advance()
        self._put_back = False
        return self.epoch, self.position

    def _loop(self, gather: Callable[[int, np.ndarray, int], Any]) -> Iterator[Any]:
        epoch, first = self._begin()
        batches = self._batches(epoch, first, gather) if self._by_place else self._streamed(first)
        if self.prefetch:
            batches = prefetched(batches, self.prefetch)
        return self._counted(batches)

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for batch in batches:
                self.position += 1
                yield batch
            self._ended = True
        finally:
            batches.close()  # type: ignore[attr-defined]  # a generator: its thread ends with the loop

    def _batches(
        self, epoch: int, first: int, gather: Callable[[int, np.ndarray, int], Any]
    ) -> Iterator[Any]:
        for place, chosen in self._chosen(epoch, first):
            yield gather(epoch, chosen, place)

    def _chosen(self, epoch: int, first: int) -> Iterator[tuple[int, np.ndarray]]:
        order = self._order(epoch)
        for place in range(first, len(self)):
            start = place * self.batch_size
            yield place, order[start : start + self.batch_size]

    def _by_workers(self, epoch: int, first: int) -> Iterator[Any]:
        if self._pool is None:
            self._pool = WorkerPool(self._gatherer, self.num_workers)
        yield from self._pool.batches((epoch, chosen) for _, chosen in self._chosen(epoch, first))

    def _streamed(self, first: int) -> Iterator[Any]:
        """The batches of an iterable, from number ``first`` on; those before it are read all the same."""
        source = (
            self.dataset()
            if callable(self.dataset) and not isinstance(self.dataset, Iterable)
            else self.dataset
        )
        samples = iter(source)
        if samples is self.dataset and self.epoch:
            raise ValueError(
                f"[DataLoader] {describe(self.dataset)} can be read once and an epoch has read it; pass the function that makes it"
            )
        if self._whole:
            for batch in islice(samples, first, None):
                yield as_batch(batch, self.dtype)
            return
        gatherer, place = self._gatherer, 0
        while (found := list(islice(samples, self.batch_size))) and (
            len(found) == self.batch_size or not self.drop_last
        ):
            if place >= first:
                yield gatherer.together(found)
            place += 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}  # a copy starts processes of its own

    def close(self) -> None:
        """End the worker processes; they also end with the loader, and the next loop starts others."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _order(self, epoch: int) -> np.ndarray:
        if self.sampler is not None:
            if hasattr(self.sampler, "set_epoch"):
                self.sampler.set_epoch(epoch)
            found = (
                self.sampler.order(self.seed, epoch) if hasattr(self.sampler, "order") else list(self.sampler)
            )
            return np.asarray(found, np.int64)
        count = len(self.dataset)
        if not self.shuffle:
            return np.arange(count)
        return np.random.Generator(np.random.PCG64([self.seed, epoch])).permutation(count)

    def advance(self) -> None:
        """Go to the beginning of the next epoch."""
        self.epoch, self.position, self._put_back, self._ended = self.epoch + 1, 0, False, False

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, and what its order depends on."""
        return {
            "seed": self.seed,
            "epoch": self.epoch,
            "position": self.position,
            "samples": self.samples,
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the seed and the position; the next loop goes on from there.

        Raises:
            ValueError: the state belongs to other data or another batch size. Nothing is changed then.
        """
        own = self.state_dict()
        if not isinstance(state, Mapping) or set(state) != set(own):
            raise ValueError(
                f"[DataLoader.load_state_dict] state must be a dict with {', '.join(own)}, got {describe(state)}"
            )
        for name in ("samples", "batch_size", "shuffle", "drop_last"):
            if state[name] != own[name]:
                raise ValueError(
                    f"[DataLoader.load_state_dict] the state has {name}={state[name]} but the loader has {own[name]}"
                )
        seed, epoch, position = (
            as_int("DataLoader.load_state_dict", name, state[name]) for name in ("seed", "epoch", "position")
        )
        if seed < 0 or epoch < 0 or not 0 <= position <= (position if self.length is None else self.length):
            raise ValueError(
                f"[DataLoader.load_state_dict] there is no position {position} in epoch {epoch} of seed {seed}"
            )
        if seed != self.seed:
            self.close()  # workers were told the other one
        self.seed, self.epoch, self.position, self._put_back = seed, epoch, position, True
        self._ended = False


_END = object()  # after the last batch; a batch of another process is None


def prefetched(batches: Iterator[Any], bound: int) -> Iterator[Any]:
    """``batches``, prepared by a second thread at most ``bound`` ahead. The thread ends when this generator does."""
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(bound)
    stop = threading.Event()

    def put(item: tuple[Any, BaseException | None]) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not put((batch, None)):
                    return
            put((_END, None))
        except BaseException as error:  # whatever it is belongs to the one who asked for the batch
            put((None, error))

    worker = threading.Thread(target=work, name="extensor-prefetch", daemon=True)
    worker.start()
    try:
        while True:
            batch, error = ready.get()
            if error is not None:
                raise error
            if batch is _END:
                return
            yield batch
    finally:
        stop.set()
        while (
            not ready.empty()
        ):  # make room, so that a worker that waits for it need not wait for its timeout
            ready.get_nowait()
        worker.join()


def to_judge(samples: Dataset) -> DataLoader:
    """A dataset in its order, in batches that are large but for pictures from files, which may be large themselves."""
    return DataLoader(samples, 100 if isinstance(samples.inputs, LazyArray) else 500)
