"""Names that PyTorch, NumPy and Keras users type first and ExTensor calls otherwise: the AttributeError names our way.

The tables are in :mod:`extensor._habit_names`. Where none has the name, the modules below are searched for it, then NumPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _habit_names as names
from ._habit_names import SAME

__all__ = [
    "DATA", "EXTENSOR", "INIT", "LEFT_OUT", "LINALG", "MODULE", "NN", "OPTIM", "RANDOM", "TENSOR", "in_place", "missing_from", "teach",
]  # fmt: skip

LEFT_OUT = "leave it out: everything is on the CPU"
ABSENT = "ExTensor has nothing like it yet; x.numpy() and et.asarray(array) lead to other libraries and back"

# Where a name that is not at the top may be instead.
_ELSEWHERE = (
    "linalg",
    "nn",
    "optim",
    "random",
    "fft",
    "train",
    "data",
    "init",
    "models",
    "testing",
    "onnx",
    "convert",
)
_MATRIX = "cholesky cross det eig eigh inv kron lstsq matrix_exp matrix_power pinv qr slogdet solve svd"


def _use(ways: Mapping[str, str]) -> dict[str, str]:
    return {name: f"use {way}" for name, way in ways.items()}


_BOTH = {name: f"et.{ours}" for name, ours in names.RENAMED.items()} | names.BOTH

TENSOR = _use(
    {f"{name}_": f"x = et.{ours}{SAME}" for name, ours in names.RENAMED.items()}
    | {f"{name}_": f"x = {way}{SAME}" for name, way in names.BOTH.items()}
    | _BOTH
    | {name: f"x.astype(et.{ours})" for name, ours in names.DTYPES.items()}
    | {name: f"et.linalg.{name}" for name in _MATRIX.split()}
    | {"index": "x[key]", "index_add": "x.at[indices].add(values)", "where": "et.where(mask, x, y)"}
    | names.METHODS
) | dict.fromkeys(("cpu", "cuda", "get_device", "is_cuda", "pin_memory"), LEFT_OUT)
TENSOR = dict.fromkeys((name for name in names.ABSENT if name.islower()), ABSENT) | TENSOR

EXTENSOR = _use(
    _BOTH
    | {name: f"et.{ours}" for name, ours in names.DTYPES.items() if name != ours}
    | names.FUNCTIONS
    | names.NUMPY_CONSTANTS
) | dict.fromkeys(("cpu", "cuda", "device", "device_put", "set_default_device"), LEFT_OUT)

LINALG = _use(
    {
        "inv_ex": "et.linalg.inv(x)",
        "solve_ex": "et.linalg.solve(x, y)",
        "solve_triangular": "et.linalg.triangular_solve(x, y)",
    }
)
NN = _use(names.LAYERS)
OPTIM = _use(names.OPTIMIZER)
MODULE = _use(names.MODEL) | dict.fromkeys(("cpu", "cuda"), LEFT_OUT)
DATA = _use(names.DATA)
INIT = _use(names.INIT)
RANDOM = _use(names.RANDOM)


class _Missing:
    """An attribute that is not there. ``__getattr__`` would do, but make every attribute that is there slower."""

    __slots__ = ("_name", "_way")

    def __init__(self, name: str, way: str) -> None:
        self._name, self._way = name, way

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}; {self._way}",
            name=self._name,
            obj=owner if instance is None else instance,
        )


def teach(owner: type, table: Mapping[str, str]) -> None:
    """Asked for a name of the table, instances of the class say what to use."""
    for name, way in table.items():
        setattr(owner, name, _Missing(name, way))

    def listed(self: Any) -> list[str]:
        return [name for name in object.__dir__(self) if name not in table or hasattr(self, name)]

    owner.__dir__ = listed  # type: ignore[assignment, method-assign]


def in_place(methods: Iterable[str]) -> dict[str, str]:
    """PyTorch's methods that change the tensor: ``x.relu_()`` is ``x = x.relu()`` here."""
    return {f"{name}_": f"use x = x.{name}(...){SAME}" for name in methods}


def missing_from(module: str, table: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module."""

    def ask(name: str) -> Any:
        way = table.get(name) or (
            ABSENT if name in names.ABSENT else "" if name.startswith("_") else _found(module, name)
        )
        raise AttributeError(
            f"module {module!r} has no attribute {name!r}{'; ' if way else ''}{way}",
            name=name,
            obj=importlib.import_module(module),
        )

    return ask


def _found(module: str, name: str) -> str:
    """Where else the name is: with a trailing underscore, in another module of ours, in NumPy."""
    here = importlib.import_module(module)
    short = name.removesuffix("_")
    if short != name and hasattr(here, short):
        if module == "extensor.init":
            return f"use layer.weight = et.init.{short}(layer.weight.shape, ...){SAME}"
        return f"use x = {module.replace('extensor', 'et')}.{short}(x, ...){SAME}"
    if module != "extensor" and name in importlib.import_module("extensor").__all__:
        return f"use et.{name}"
    for other in _ELSEWHERE:
        try:
            there = importlib.import_module(f"extensor.{other}")
        except ModuleNotFoundError:  # an extra that is not installed
            continue
        if name in getattr(there, "__all__", ()):
            return f"use et.{other}.{name}"
    if module == "extensor" and name in dir(np):
        return f"use np.{name}: x.numpy() leads there and et.asarray(array) back"
    return ""
