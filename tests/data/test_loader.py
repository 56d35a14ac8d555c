"""The loader: every sample once per epoch, an order that depends on seed and epoch alone, and positions to go back to."""

from __future__ import annotations

import threading
import time
from itertools import chain

import numpy as np
import pytest

from extensor import data


def numbers(count: int = 23) -> data.Dataset:
    return data.Dataset(np.arange(count), np.arange(count) * 2)


def epoch_of(loader: data.DataLoader) -> list[list[int]]:
    return [x.tolist() for x, _ in loader]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_every_sample_once(prefetch: int, drop_last: bool) -> None:
    loader = data.DataLoader(numbers(), 5, shuffle=True, rng=1, drop_last=drop_last, prefetch=prefetch)
    for _ in range(2):
        batches = [(x.tolist(), y.tolist()) for x, y in loader]  # type: ignore[union-attr]
        assert len(batches) == len(loader) == (4 if drop_last else 5)
        seen = [i for x, _ in batches for i in x]
        assert len(set(seen)) == len(seen) == (20 if drop_last else 23)
        assert all(y == [2 * i for i in x] for x, y in batches)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def orders(seed: int, prefetch: int = 0, batch_size: int = 5) -> list[list[int]]:
        loader = data.DataLoader(numbers(), batch_size, shuffle=True, rng=seed, prefetch=prefetch)
        return [list(chain(*epoch_of(loader))) for _ in range(3)]

    first = orders(0)
    np.random.seed(5)  # the global generator has nothing to do with it
    assert first == orders(0) == orders(0, prefetch=2) == orders(0, batch_size=7)
    assert len(set(map(tuple, first + orders(1)))) == 6
    assert list(chain(*epoch_of(data.DataLoader(numbers(), 4)))) == list(range(23))


def test_a_loop_that_was_left_counts_as_an_epoch() -> None:
    loader = data.DataLoader(numbers(), 5, shuffle=True, rng=0)
    whole = epoch_of(data.DataLoader(numbers(), 5, shuffle=True, rng=0))
    for x, _ in loader:
        assert x.tolist() == whole[0]
        break
    assert epoch_of(loader) != whole
    assert loader.epoch == 1


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("position", range(6))
def test_put_back_to_any_position(position: int, prefetch: int) -> None:
    transforms = [data.RandomFlip()]
    images = data.Dataset(np.random.default_rng(0).random((23, 1, 4, 4)), transforms=transforms)

    def loader(seed: int) -> data.DataLoader:
        return data.DataLoader(images, 5, shuffle=True, rng=seed, prefetch=prefetch)

    steady = loader(3)
    epoch_of(steady)
    expected = epoch_of(steady)
    following = epoch_of(steady)

    stopped = loader(3)
    epoch_of(stopped)
    batches = iter(stopped)
    for _ in range(position):
        next(batches)
    state = stopped.state_dict()
    assert (state["epoch"], state["position"]) == (1, position)
    other = loader(99)
    other.load_state_dict(state)
    assert epoch_of(other) == expected[position:]
    assert epoch_of(other) == following


def test_a_state_of_other_data_is_refused_and_changes_nothing() -> None:
    state = data.DataLoader(numbers(), 5, shuffle=True, rng=3).state_dict()
    loader = data.DataLoader(numbers(24), 5, shuffle=True, rng=4)
    before = loader.state_dict()
    for wrong in (state, {**before, "position": 6}, {**before, "epoch": -1}, {"epoch": 1}, None):
        with pytest.raises(ValueError, match=r"^\[DataLoader.load_state_dict\]"):
            loader.load_state_dict(wrong)  # type: ignore[arg-type]
        assert loader.state_dict() == before


def workers() -> int:
    return sum(thread.name == "extensor-prefetch" for thread in threading.enumerate())


def test_prefetch_is_bounded_and_its_thread_ends_with_the_loop() -> None:
    made: list[int] = []

    def note(batch: np.ndarray, random: data.SampleRandom) -> np.ndarray:
        made.append(len(batch))
        return batch

    loader = data.DataLoader(numbers(1000).with_transforms(note), 1, prefetch=3)
    batches = iter(loader)
    next(batches)
    deadline = time.monotonic() + 5
    while len(made) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(made) == 1 + 3 + 1  # handed out, waiting in the queue, waiting for a place in it
    assert workers() == 1
    del batches
    assert workers() == 0


def test_prefetch_hands_on_what_goes_wrong() -> None:
    def fail(batch: np.ndarray, random: data.SampleRandom) -> np.ndarray:
        if 7 in batch:
            raise ValueError("seven")
        return batch

    loader = data.DataLoader(numbers().with_transforms(fail), 5, prefetch=2)
    batches = iter(loader)
    assert next(batches)[0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="seven"):
        next(batches)
    assert workers() == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"batch_size": 0}, ValueError), ({"batch_size": 2.5}, TypeError), ({"prefetch": -1}, ValueError),
        ({"batch_size": 24, "drop_last": True}, ValueError), ({"rng": -1}, ValueError), ({"rng": "x"}, TypeError),
        ({"shuffle": "yes"}, TypeError),
    ],
)  # fmt: skip
def test_bad_arguments(options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^\[DataLoader\]"):
        data.DataLoader(numbers(), **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^\[DataLoader\] dataset"):
        data.DataLoader(3)
