"""Own data: anything with a length and places, iterables, dicts, samplers, worker processes."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.data import DataLoader, Dataset, RandomCrop, WeightedSampler, collate
from extensor.train import Trainer

sys.path.insert(0, str(Path(__file__).parent))
from samples_elsewhere import Broken, Squares


class Point(NamedTuple):
    x: float
    y: np.ndarray


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for v in value.values() for part in flat(v)]
    if isinstance(value, (tuple, list)):
        return [part for v in value for part in flat(v)]
    return [(value.dtype.name, value.numpy().tobytes()) if isinstance(value, et.ExTensor) else value]


# Putting samples together


def test_collate_keeps_the_form_of_samples() -> None:
    batch = collate(
        [
            {"x": np.ones(2), "y": (1, "a"), "p": Point(1.0, np.zeros(1))},
            {"x": np.zeros(2), "y": (2, "b"), "p": Point(2.0, np.ones(1))},
        ]
    )
    assert batch["x"].dtype == np.float32
    assert batch["x"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert batch["y"][0].tolist() == [1, 2]
    assert batch["y"][1] == ["a", "b"]
    assert type(batch["p"]) is Point
    assert batch["p"].y.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("sample", "dtype"),
    [
        (1, "int64"),
        (1.5, "float32"),
        (True, "bool"),
        (np.float64(2), "float32"),
        (np.int8(1), "int8"),
        (et.ones(2, et.float16), "float16"),
    ],
)
def test_collate_of_numbers(sample: Any, dtype: str) -> None:
    assert collate([sample, sample]).dtype == dtype
    assert collate([1.5], et.float64).dtype == np.float64


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([np.ones(2), np.ones(3)], r"\[collate\] samples have different shapes: \(2,\) and \(3,\); pad them or pass collate_fn="),
        ([(1, 2), (1,)], r"\[collate\] samples have different lengths: tuple \(1, 2\) and tuple \(1,\)"),
        ([{"a": 1}, {"b": 1}], r"\[collate\] samples have different keys"),
        ([object()], r"\[collate\] a sample must be made of numbers, arrays, text, tuples and dicts, got object"),
        ([np.array(["a"])], r"\[collate\] a sample has dtype <U1, which is no number type"),
        ([], r"\[collate\] there are no samples"),
    ],
)  # fmt: skip
def test_collate_says_what_is_wrong(samples: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        collate(samples)


# By place


@pytest.mark.parametrize(
    "dataset", [Squares(10), [(np.ones(2) * i, i) for i in range(10)], tuple(range(10)), np.arange(10.0)]
)
def test_anything_with_a_length_and_places(dataset: Any) -> None:
    loader = DataLoader(dataset, 4)
    assert len(loader) == 3
    batches = list(loader)
    assert [len(flat(b)[0][1]) > 0 for b in batches] == [True] * 3
    assert flat(list(DataLoader(dataset, 4, shuffle=True, rng=1))) == flat(
        list(DataLoader(dataset, 4, shuffle=True, rng=1))
    )
    assert flat(list(DataLoader(dataset, 4, shuffle=True, rng=1))) != flat(batches)


def test_a_loader_goes_on_where_it_was_with_own_data() -> None:
    first = DataLoader(Squares(10), 3, shuffle=True, rng=2)
    seen = iter(first)
    next(seen), next(seen)
    second = DataLoader(Squares(10), 3, shuffle=True, rng=2)
    second.load_state_dict(first.state_dict())
    assert flat(list(second)) == flat(list(seen))


def test_collate_fn_and_getitems() -> None:
    class Several(Squares):
        def __getitems__(self, places: list[int]) -> list[int]:
            return [p * 10 for p in places]

    assert [b.tolist() for b in DataLoader(Several(4), 2)] == [[0, 10], [20, 30]]
    assert list(DataLoader([1, 2, 3], 2, collate_fn=sum)) == [3, 3]
    pairs = DataLoader(
        Dataset(np.eye(2), np.arange(2)),
        2,
        collate_fn=lambda samples: [(x.tolist(), y.item()) for x, y in samples],
    )
    assert list(pairs) == [[([1.0, 0.0], 0), ([0.0, 1.0], 1)]]


def test_samplers() -> None:
    assert [b.tolist() for b in DataLoader(np.arange(5), 2, sampler=[4, 4, 0])] == [[4, 4], [0]]
    weights = np.array([1.0, 0.0, 9.0])
    loader = DataLoader(np.arange(3), 100, sampler=WeightedSampler(weights, 1000), rng=3)
    assert len(loader) == 10
    drawn = np.concatenate([b.numpy() for b in loader])
    assert np.bincount(drawn, minlength=3)[1] == 0
    assert 850 < np.bincount(drawn)[2] < 950
    again = np.concatenate(
        [b.numpy() for b in DataLoader(np.arange(3), 100, sampler=WeightedSampler(weights, 1000), rng=3)]
    )
    np.testing.assert_array_equal(again, drawn)
    assert not np.array_equal(np.concatenate([b.numpy() for b in loader]), drawn)  # another epoch
    assert sorted(WeightedSampler([1, 2, 3], replacement=False)) == [0, 1, 2]


# Iterables


def numbers(count: int = 7) -> Iterator[tuple[float, int]]:
    for i in range(count):
        yield float(i), i


def test_a_generator_function_is_read_anew_in_each_epoch() -> None:
    loader = DataLoader(numbers, 3)
    for _ in range(2):
        assert [y.tolist() for _, y in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert loader.epoch == 1
    assert [y.tolist() for _, y in DataLoader(numbers, 3, drop_last=True)] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError, match=r"\[DataLoader\] function .* has no length"):
        len(loader)
    assert loader


def test_a_generator_is_read_once_and_says_so() -> None:
    loader = DataLoader(numbers(), 4)
    assert len(list(loader)) == 2
    with pytest.raises(
        ValueError, match="can be read once and an epoch has read it; pass the function that makes it"
    ):
        list(loader)


def test_an_iterable_goes_on_where_it_was() -> None:
    first = DataLoader(numbers, 2)
    seen = iter(first)
    next(seen)
    second = DataLoader(numbers, 2)
    second.load_state_dict(first.state_dict())
    assert flat(list(second)) == flat(list(seen))


def test_whole_batches() -> None:
    batches = [(np.ones((2, 2)), [1, 2]), (np.zeros((3, 2)), [1, 2, 3])]
    loader = DataLoader(batches, None)
    assert len(loader) == 2
    assert [x.shape for x, _ in loader] == [(2, 2), (3, 2)]
    assert next(iter(loader))[0].dtype == np.float32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataLoader(3), r"dataset must be a Dataset, have __len__ and __getitem__, or be iterable, got int 3"),
        (lambda: DataLoader(numbers, 2, shuffle=True), r"shuffle needs a dataset with __len__ and __getitem__"),
        (lambda: DataLoader(numbers, 2, num_workers=2), r"num_workers needs a dataset with __len__ and __getitem__"),
        (lambda: DataLoader([1, 2], 2, shuffle=True, sampler=[0]), r"a sampler says the order; leave shuffle out"),
        (lambda: DataLoader([1, 2], 2, sampler=3), r"sampler must be iterable and have a length"),
        (lambda: DataLoader([1, 2], 2, collate_fn=3), r"collate_fn must be callable"),
        (lambda: DataLoader([1, 2], num_workers=-1), r"num_workers must be at least 0"),
        (lambda: WeightedSampler([0, 0]), r"\[WeightedSampler\] weights must be a finite number"),
        (lambda: WeightedSampler([1, 0], 2, replacement=False), r"\[WeightedSampler\] count must be from 1 to 1"),
    ],
)  # fmt: skip
def test_what_does_not_go(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


# Worker processes


def test_workers_give_the_same_batches_for_any_number() -> None:
    images = Dataset(np.random.default_rng(0).normal(size=(21, 1, 8, 8)), np.arange(21), [RandomCrop(6)])
    for dataset in (Squares(21), images):
        expected = [flat(list(epoch)) for epoch in [DataLoader(dataset, 4, shuffle=True, rng=5)] * 2]
        for count in (1, 3):
            loader = DataLoader(dataset, 4, shuffle=True, rng=5, num_workers=count)
            assert [flat(list(loader)), flat(list(loader))] == expected
            loader.close()


def test_a_loop_that_is_left_leaves_nothing_behind() -> None:
    loader = DataLoader(Squares(30), 2, num_workers=2)
    for _ in loader:
        break
    assert flat(list(loader)) == flat(list(DataLoader(Squares(30), 2)))
    assert flat(next(iter(copy.deepcopy(loader)))) == flat(next(iter(DataLoader(Squares(30), 2))))
    loader.close()


def test_an_error_in_a_worker_is_raised_here() -> None:
    loader = DataLoader(Broken(10), 2, num_workers=1)
    with pytest.raises(ValueError, match="sample 5 is broken") as caught:
        list(loader)
    assert "In a worker process of a DataLoader" in caught.value.__notes__[0]
    loader.close()


def test_a_dataset_that_workers_cannot_make_is_an_error_and_no_wait() -> None:
    with pytest.raises((AttributeError, TypeError), match="Here"):

        class Here(Squares):
            pass

        list(DataLoader(Here(4), num_workers=1))


def test_memory_mapped_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(40.0).reshape(20, 2))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    loader = DataLoader(Dataset(mapped, np.arange(20)), 8)
    assert [x.dtype.name for x, _ in loader] == ["float32"] * 3
    assert next(iter(DataLoader(mapped, 4))).tolist() == mapped[:4].tolist()


# The trainer


class Two(nn.Module):
    def __init__(self) -> None:
        self.left, self.right = nn.Linear(2, 3, rng=0), nn.Linear(1, 3, rng=1)

    def forward(self, a: Any, b: Any) -> Any:
        return self.left(a) + self.right(b)


A, B, Y = np.random.default_rng(0).normal(size=(12, 2)), np.ones((12, 1)), np.arange(12) % 3


def fitted(batches: Any, **how: Any) -> list[Any]:
    model = Two()
    trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, display="off")
    trainer.fit(batches, **(how or {"epochs": 2}))
    return flat(model.state_dict())


def parts(make: Any) -> list[Any]:
    return [make(slice(i, i + 4)) for i in range(0, 12, 4)]


def test_the_trainer_takes_batches_of_any_form() -> None:
    expected = fitted([((A[s], B[s]), Y[s]) for s in (slice(0, 4), slice(4, 8), slice(8, 12))])
    assert fitted(parts(lambda s: (A[s], B[s], Y[s]))) == expected
    assert fitted(parts(lambda s: {"a": A[s], "b": B[s], "labels": Y[s]})) == expected
    assert fitted(lambda: iter(parts(lambda s: (A[s], B[s], Y[s])))) == expected  # without a length
    assert fitted(DataLoader(list(zip(A, B, Y)), 4)) == expected
    assert fitted(DataLoader(lambda: zip(A, B, Y), 4), epochs=2) == expected
    assert fitted(DataLoader(lambda: zip(A, B, Y), 4), steps=6) == expected


def test_the_trainer_goes_on_with_an_iterable(tmp_path: Path) -> None:
    def source() -> Iterator[Any]:
        return zip(A, B, Y)

    def trainer(folder: Any) -> Trainer:
        model = Two()
        return Trainer(
            model, optim.Adam(model.parameters(), lr=0.1), et.cross_entropy, display="off", folder=folder
        )

    whole, cut = trainer(None), trainer(tmp_path)
    whole.fit(DataLoader(source, 4), steps=7)
    cut.fit(DataLoader(source, 4), steps=4)
    again = trainer(tmp_path)
    again.fit(DataLoader(source, 4), steps=7, resume=True)
    assert flat(again.model.state_dict()) == flat(whole.model.state_dict())


def test_the_trainer_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"arrays go into data\.DataLoader\(data\.Dataset\(inputs, targets\)"):
        fitted(A)
    with pytest.raises(TypeError, match="a batch that is a dict needs targets under 'targets' or"):
        fitted([{"a": A, "b": B}])
    with pytest.raises(ValueError, match=r"\[fit\] there are no batches: the iterable is empty"):
        fitted(lambda: iter([]), steps=3)


def test_predict() -> None:
    model = nn.Sequential(nn.Linear(2, 3, rng=0), nn.Dropout(0.5, rng=0))
    trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy)
    with et.no_grad():
        expected = model[0](et.tensor(A, et.float32)).numpy()
    for given in (
        A,
        et.tensor(A),
        Dataset(A, Y),
        DataLoader(Dataset(A, Y), 5),
        [(A[:7], Y[:7]), (A[7:], Y[7:])],
        [A[:7], A[7:]],
    ):
        np.testing.assert_allclose(trainer.predict(given).numpy(), expected, rtol=1e-6)
    assert model.training
