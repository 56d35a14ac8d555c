"""What PyTorch users type first: where it does not exist, the error names our way, and that way runs."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
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
    "linalg": (et.linalg, habits.LINALG),
    "data": (et.data, habits.DATA),
    "init": (et.init, habits.INIT),
    "random": (et.random, habits.RANDOM),
}
EVERY = [(place, name) for place, (_, table) in PLACES.items() for name in sorted(table)]


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
    if way in (habits.LEFT_OUT, habits.ABSENT):
        return
    rows, model = et.ones((4, 2)), nn.Linear(2, 2)
    words: dict[str, Any] = {
        "rate": 2.0, "inputs": rows, "dataset": et.data.Dataset(rows, rows), "iterable": [1.0, 2.0], "et": et, "np": np, "math": math, "itertools": itertools, "nothing": None, "x": X, "y": X, "a": X, "b": X, "c": X,
        "v": et.ones(3), "w": et.ones(3), "n": 3, "k": 1, "p": 0.5, "q": 0.5, "axis": 0, "value": 2.0, "values": X, "low": 0,
        "high": 1, "alpha": 1.0, "shape": (3, 3), "dtype": et.float64, "mask": X > 0, "indices": et.zeros((3, 3), et.int64), "key": 0,
        "start": 0, "stop": 1, "first": 1.0, "last": 2.0, "num": 3, "rng": 0, "seed": 0, "data": [1.0], "tensors": [X, X],
        "sizes": [1, 2], "model": model, "layer": nn.Linear(2, 2), "labels": et.zeros(3, et.int64), "weights": X, "variances": X,
        "predictions": X, "targets": X, "logits": X, "signs": et.ones(3), "probabilities": X / 3, "probabilities2": X / 3,
        "boundaries": et.arange(3.0), "coefficients": [1.0, 2.0], "sequences": et.ones((2, 3, 8)), "pad_width": 1,
        "path": tmp_path / "w.safetensors", "state": {"w": X}, "name": "part", "function": float, "function2": lambda i, j: i + j,
        "optimizer": optim.SGD(model.parameters(), lr=0.1), "loss": et.mean_squared_error, "loader": et.data.DataLoader(et.data.Dataset(rows, rows)),
    }  # fmt: skip
    words |= dict.fromkeys("xyabc", et.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]))
    if "Dataset(inputs" in way:
        words["targets"] = rows
    if "at[mask]" in way:
        words["values"] = et.ones(9)
    if "retain_grad" in way:
        words["x"] = et.ones(3).requires_grad_() * 2.0
    if "load_state_dict" in way:
        words["state"] = model.state_dict()
    if "complex" in way or "imag" in way:
        words["x"] = X + 0j
    if "indices[:, None]" in way:
        words["indices"] = et.zeros(3, et.int64)
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


@pytest.mark.parametrize(
    ("module", "name", "way"),
    [
        (et, "svd", "use et.linalg.svd"),
        (et, "Linear", "use et.nn.Linear"),
        (et, "relu_", r"use x = et.relu\(x, ...\): tensors never change"),
        (et, "Trainer", "use et.train.Trainer"),
        (et, "gcd", "use np.gcd: x.numpy"),
        (et, "stft", "ExTensor has nothing like it yet"),
        (nn, "softmax", "use et.softmax"),
        (et.init, "xavier_uniform_", r"use layer.weight = et.init.xavier_uniform\(layer.weight.shape, ...\)"),
        (et.linalg, "relu", "use et.relu"),
    ],
)
def test_names_that_are_elsewhere(module: Any, name: str, way: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {way}"):
        getattr(module, name)


def test_every_public_name_of_numpy_is_there_or_has_a_way() -> None:
    for name in np.__all__:
        if not name.startswith("_") and not hasattr(et, name):
            with pytest.raises(AttributeError, match="; "):
                getattr(et, name)


def test_methods_that_load_with_their_first_call() -> None:
    x = et.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert x.median().item() == 2.5
    assert x.tril().tolist() == [[3.0, 0.0], [2.0, 4.0]]
    assert x.trace().item() == 7.0
    assert x.cumprod(0).tolist() == [[3.0, 1.0], [6.0, 4.0]]
    assert x.masked_fill(x > 2.0, 0.0).tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert x.real.tolist() == x.tolist()
    assert x.imag.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert (x + 1j).imag.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_size_is_a_plain_number() -> None:
    """One of a class of its own would be taken for an array beside a tensor: x / x.size must stay float32."""
    assert type(X.size) is int
    assert (X / X.size).dtype == X.dtype


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
    assert pickle.loads(pickle.dumps(X)).tolist() == X.tolist()


def test_attributes_that_exist_are_found_without_a_detour() -> None:
    for owner in (et.ExTensor, nn.Module):
        assert not hasattr(owner, "__getattr__")  # it would slow every other attribute down
