"""What ExTensor offers: every public name, and those that are called."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from extensor.graph import Backward, Op

MODULES = [
    "extensor", "extensor.convert", "extensor.data", "extensor.distributed", "extensor.fft", "extensor.init", "extensor.linalg", "extensor.models", "extensor.nn", "extensor.onnx", "extensor.optim", "extensor.optim.functional",
    "extensor.random", "extensor.report", "extensor.sklearn", "extensor.testing", "extensor.train",
]  # fmt: skip


def public_objects() -> dict[str, Any]:
    """Dotted public name to object, sorted."""
    found = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        for name in names:
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType):
                found[f"{module_name}.{name}"] = value
    return dict(sorted(found.items()))


def documented_objects() -> dict[str, Any]:
    """The public functions and classes; dtypes, version and type aliases have nothing to explain."""
    return {
        name: value
        for name, value in public_objects().items()
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, Op, Backward, type))
        and not isinstance(value, (np.dtype, types.GenericAlias))
    }


def public_functions() -> dict[str, Callable[..., Any]]:
    """The public functions by dotted name."""
    return {name: value for name, value in documented_objects().items() if not isinstance(value, type)}
