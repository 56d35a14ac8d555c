"""Batches in a random order that depends on the seed and the epoch alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..checks import as_bool, as_int
from ..errors import describe
from ..random import Rng, as_generator
from ..tensor import ExTensor
from .dataset import Dataset
from .sample_random import SampleRandom
from .shards import ShardedBatch, shard_sizes

__all__ = ["DataLoader"]

Batch: TypeAlias = "tuple[ExTensor, ExTensor | None]"


class DataLoader:
    """Goes through a dataset in batches ``(inputs, targets)``; each ``for`` loop over it is one epoch.

    The order of an epoch and every random number its transforms use follow from the seed and the number of the epoch,
    so a loader that is put back to a position (:meth:`load_state_dict`) hands out the same batches to the bit.

    Args:
        dataset: the samples.
        batch_size: how many samples make a batch.
        shuffle: whether each epoch has a random order of its own.
        rng: a seed, or a generator from which one is drawn.
        drop_last: leave out the last batch of an epoch if it is smaller.
        prefetch: how many batches a second thread prepares ahead; 0 prepares each when it is asked for. A thread pays
            where transforms are slow; a batch that is only gathered takes less time than the hand-over.

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
        dataset: Dataset,
        batch_size: int = 1,
        shuffle: bool = False,
        rng: Rng = 0,
        drop_last: bool = False,
        prefetch: int = 0,
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"[DataLoader] dataset must be a Dataset, got {describe(dataset)}")
        self.dataset = dataset
        self.batch_size = as_int("DataLoader", "batch_size", batch_size)
        self.shuffle = as_bool("DataLoader", "shuffle", shuffle)
        self.drop_last = as_bool("DataLoader", "drop_last", drop_last)
        self.prefetch = as_int("DataLoader", "prefetch", prefetch)
        if self.batch_size < 1 or self.prefetch < 0:
            raise ValueError(
                f"[DataLoader] batch_size must be at least 1 and prefetch 0, got {batch_size} and {prefetch}"
            )
        if not len(self):
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

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the next epoch; after :meth:`load_state_dict`, the rest of the epoch that was stored."""
        return self._loop(lambda epoch, chosen, place: self._gathered(epoch, chosen))

    def in_shards(self, shards: int, own: Collection[int]) -> Iterator[ShardedBatch]:
        """The same batches cut into ``shards`` parts by position, of which only those of numbers ``own`` are gathered."""
        return self._loop(lambda epoch, chosen, place: self._shards(epoch, chosen, shards, own))

    def in_turns(self, turn: int, turns: int) -> Iterator[Batch | None]:
        """The same batches, of which every ``turns``-th is gathered, from the one of number ``turn``; None for the others."""
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
        return self.dataset.batch(chosen, SampleRandom(self.seed, epoch, chosen))

    def _loop(self, gather: Callable[[int, np.ndarray, int], Any]) -> Iterator[Any]:
        if self.position and not self._put_back:
            self.advance()
        self._put_back = False
        batches = self._batches(self.epoch, self.position, gather)
        if self.prefetch:
            batches = prefetched(batches, self.prefetch)
        return self._counted(batches)

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for batch in batches:
                self.position += 1
                yield batch
        finally:
            batches.close()  # type: ignore[attr-defined]  # a generator: its thread ends with the loop

    def _batches(
        self, epoch: int, first: int, gather: Callable[[int, np.ndarray, int], Any]
    ) -> Iterator[Any]:
        order = self._order(epoch)
        for place in range(first, len(self)):
            start = place * self.batch_size
            yield gather(epoch, order[start : start + self.batch_size], place)

    def _order(self, epoch: int) -> np.ndarray:
        count = len(self.dataset)
        if not self.shuffle:
            return np.arange(count)
        return np.random.Generator(np.random.PCG64([self.seed, epoch])).permutation(count)

    def advance(self) -> None:
        """Go to the beginning of the next epoch."""
        self.epoch, self.position, self._put_back = self.epoch + 1, 0, False

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, and what its order depends on."""
        return {
            "seed": self.seed,
            "epoch": self.epoch,
            "position": self.position,
            "samples": len(self.dataset),
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
        if seed < 0 or epoch < 0 or not 0 <= position <= len(self):
            raise ValueError(
                f"[DataLoader.load_state_dict] there is no position {position} in epoch {epoch} of seed {seed}"
            )
        self.seed, self.epoch, self.position, self._put_back = seed, epoch, position, True


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
