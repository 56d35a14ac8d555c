"""What PyTorch users type first: where it does not exist, the error names our way, and that way runs."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

import extensor as et
from extensor import _habits as habits
from extensor import nn, optim

X = et.ones((3, 3))
PLACES: dict[str, tuple[Any, dict[str, str]]] = {
    "tensor": (X, habits.TENSOR),
    "extensor": (et, habits.EXTENSOR),
    "nn": (nn, habits.NN),
    "optim": (optim, habits.OPTIM),
    "module": (nn.Linear(2, 2), habits.MODULE),
}
EVERY = [(place, name) for place, (_, table) in PLACES.items() for name in table]


@pytest.mark.parametrize(("place", "name"), EVERY)
def test_a_habit_is_no_attribute_and_says_what_is(place: str, name: str) -> None:
    owner, table = PLACES[place]
    assert not hasattr(owner, name)
    assert getattr(owner, name, 7) == 7
    assert name not in dir(owner)
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert str(caught.value).endswith(f"has no attribute {name!r}; {table[name]}")


@pytest.mark.parametrize(("place", "name"), EVERY)
def test_the_way_it_names_runs(place: str, name: str, tmp_path: Path) -> None:
    way = PLACES[place][1][name]
    if way == habits.LEFT_OUT:
        return
    words: dict[str, Any] = {
        "et": et, "x": X, "y": X, "n": 3, "k": 1, "axis": 0, "value": 2.0, "values": 2.0, "low": 0, "high": 1,
        "shape": (3, 3), "dtype": et.float64, "mask": X > 0, "indices": et.zeros((3, 3), et.int64), "key": 0, "start": 0,
        "stop": 1, "rng": 0, "data": [1.0], "tensors": [X, X], "model": nn.Linear(2, 2), "labels": et.zeros(3, et.int64),
        "predictions": X, "targets": X, "logits": X, "path": tmp_path / "w.safetensors", "state": {"w": X},
    }  # fmt: skip
    et.train.save_weights(words["path"], words["state"])
    assert way.startswith("use ")
    exec(way.removeprefix("use ").partition(": ")[0], words)


def test_some_in_full() -> None:
    with pytest.raises(
        AttributeError, match=r"^'ExTensor' object has no attribute 'view'; use x\.reshape\(shape\)$"
    ):
        X.view(9)  # type: ignore[attr-defined]
    with pytest.raises(
        AttributeError, match=r"^module 'extensor' has no attribute 'cat'; use et\.concatenate"
    ):
        et.cat([X, X])  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^'Parameter' object has no attribute 'cuda'; leave it out"):
        nn.Parameter([1.0]).cuda()
    with pytest.raises(
        AttributeError, match=r"^'Linear' object has no attribute 'to'; use model\.astype\(dtype\)"
    ):
        nn.Linear(2, 2).to("cpu")  # type: ignore[attr-defined]


def test_other_names_are_missing_as_ever() -> None:
    for owner in (X, nn.Linear(2, 2)):
        with pytest.raises(
            AttributeError, match=f"^'{type(owner).__name__}' object has no attribute 'nonsense'$"
        ):
            owner.nonsense  # type: ignore[attr-defined]
    for module in (et, nn, optim):
        with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute 'nonsense'$"):
            module.nonsense  # type: ignore[attr-defined]


def test_assigning_to_a_place() -> None:
    with pytest.raises(
        TypeError, match=r"^\[ExTensor\] tensors never change; use x = x\.at\[key\]\.set\(value\)$"
    ):
        X[0] = 1.0  # type: ignore[index]


def test_a_module_may_take_the_name() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.to = nn.Linear(2, 2)

    assert [name for name, _ in Net().named_children()] == ["to"]
    assert "to" in dir(Net())


def test_copies_and_inspection() -> None:
    assert copy.copy(X) is X
    assert copy.deepcopy(X).tolist() == X.tolist()
    assert copy.deepcopy(nn.Linear(2, 2)).weight.shape == (2, 2)
    assert not {name for name, _ in inspect.getmembers(X)} & set(habits.TENSOR)
    with pytest.raises(TypeError, match="tensors are not pickled"):
        pickle.dumps(X)


def test_attributes_that_exist_are_found_without_a_detour() -> None:
    for owner in (et.ExTensor, nn.Module):
        assert not hasattr(owner, "__getattr__")  # it would slow every other attribute down
