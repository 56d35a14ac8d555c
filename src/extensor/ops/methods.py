"""The operators of a tensor and the methods that mirror functions: ``x + y``, ``x[1:]``, ``x.sum(0)``, ``x.T``.

They are attached here, one floor above the tensor itself, because this is where the functions are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import describe
from ..tensor import ExTensor
from .indexing import At

_OPERANDS = (ExTensor, np.ndarray, np.generic, bool, int, float, list, tuple)

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "modulo", "pow": "power", "matmul": "matmul",
}  # fmt: skip
COMPARISON = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
LOGICAL = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}

METHODS = (
    # arithmetic, elementwise
    "maximum", "minimum", "abs", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "square",
    "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "clip",
    "sign", "ceil", "floor", "round", "trunc", "isnan", "isinf", "isfinite", "astype", "copy",
    # matrix, reduction
    "matmul", "dot", "outer", "inner", "sum", "mean", "max", "min", "var", "std", "variance", "prod", "logsumexp", "cumsum",
    "max_reduce", "min_reduce", "sort", "top_k", "argmax", "argmin", "argsort", "any", "all", "count_nonzero",
    # shape
    "squeeze", "unsqueeze", "expand_dims", "flatten", "ravel", "moveaxis", "swapaxes", "flip", "roll",
    "split", "tile", "repeat", "pad", "broadcast_to", "sum_to_shape", "take", "take_along_axis",
    # activation
    "relu", "leaky_relu", "sigmoid", "softmax", "log_softmax", "gelu", "silu", "mish", "elu", "selu", "softplus",
    "relu6", "hard_sigmoid", "hard_swish", "hard_tanh",
)  # fmt: skip


def _operator(function: Callable[..., Any], name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """A binary operator; it leaves types it does not know to the other operand."""
    if reflected:

        def method(self: ExTensor, other: Any) -> Any:
            return function(other, self) if isinstance(other, _OPERANDS) else NotImplemented
    else:

        def method(self: ExTensor, other: Any) -> Any:
            return function(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    method.__name__ = name
    method.__qualname__ = f"ExTensor.{name}"
    method.__doc__ = function.__doc__
    return method


def _logical(function: Callable[..., Any], symbol: str) -> Callable[..., Any]:
    """``& | ^ ~`` are for masks; on other dtypes they would mean the bits, which ExTensor does not touch."""

    def checked(*operands: Any) -> Any:
        for value in operands:
            if not isinstance(value, (bool, np.bool_)) and getattr(value, "dtype", None) != np.bool_:
                raise TypeError(
                    f"[{symbol}] works on boolean tensors, got {describe(value)}; compare first, e.g. x > 0"
                )
        return function(*operands)

    return checked


def _varargs(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that takes its tuple spread out as well: ``x.reshape(2, 3)`` and ``x.reshape((2, 3))``."""

    def method(self: ExTensor, *lengths: Any) -> Any:
        return function(self, lengths[0] if len(lengths) == 1 else lengths)

    method.__name__ = name
    method.__qualname__ = f"ExTensor.{name}"
    method.__doc__ = function.__doc__
    return method


def attach(functions: Mapping[str, Any]) -> None:
    """Give :class:`ExTensor` its operators and methods."""
    for name, target in BINARY.items():
        if target not in functions:
            continue
        setattr(ExTensor, f"__{name}__", _operator(functions[target], f"__{name}__"))
        setattr(ExTensor, f"__r{name}__", _operator(functions[target], f"__r{name}__", reflected=True))
    for name, target in COMPARISON.items():
        setattr(ExTensor, f"__{name}__", _operator(functions[target], f"__{name}__"))
    for name, target in LOGICAL.items():
        function = _logical(functions[target], name)
        setattr(ExTensor, f"__{name}__", _operator(function, f"__{name}__"))
        setattr(ExTensor, f"__r{name}__", _operator(function, f"__r{name}__", reflected=True))
    ExTensor.__neg__ = functions["negate"]
    ExTensor.__pos__ = lambda self: self
    ExTensor.__invert__ = _logical(functions["logical_not"], "invert")
    if "abs" in functions:
        ExTensor.__abs__ = functions["abs"]
    for name in METHODS:
        if name in functions:
            setattr(ExTensor, name, functions[name])
    for name in ("reshape", "permute"):
        if name in functions:
            setattr(ExTensor, name, _varargs(functions[name], name))
    if "transpose" in functions:
        transpose = functions["transpose"]
        ExTensor.transpose = lambda self, *axes: transpose(
            self, (axes[0] if len(axes) == 1 else axes) or None
        )
        ExTensor.T = property(transpose)
    if "swapaxes" in functions:
        ExTensor.mT = property(lambda self: functions["swapaxes"](self, -1, -2))
    if "index" in functions:
        ExTensor.__getitem__ = functions["index"]
        ExTensor.at = property(At)
