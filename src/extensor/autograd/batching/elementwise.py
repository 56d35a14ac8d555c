"""Batching rules of functions that go element by element: examples broadcast as their axes are aligned on the right."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.rules import Signature
from ...ops.shape import reshape
from ...tensor import ExTensor
from .batched import Level
from .registry import batches, each_example

__all__ = ["aligned", "names_of"]

_OPERANDS = frozenset({"x", "a", "b", "condition", "n", "mask", "value"})
_signatures: dict[Any, Signature] = {}


def names_of(op: Any) -> Signature:
    """The parameters of an op."""
    found = _signatures.get(op)
    if found is None:
        found = _signatures[op] = Signature.of(op.fn)
    return found


def aligned(level: Level, value: Any, ndim: int) -> Any:
    """All examples of a tensor with ``ndim`` axes after that of the batch, ones in front; what is the same for all as it is."""
    if not level.has(value):
        return value
    missing = ndim - value.ndim
    if missing <= 0:
        return value.batch
    return reshape(value.batch, (level.size, *(1,) * missing, *value.shape))


def ndim_of(values: Any) -> int:
    """The number of axes that values broadcast to."""
    return max(v.ndim if isinstance(v, (ExTensor, np.ndarray)) else np.ndim(v) for v in values)


@batches(
    "relu", "leaky_relu", "sigmoid", "gelu", "silu", "mish", "elu", "selu", "softplus", "relu6", "hard_sigmoid", "hard_swish",
    "hard_tanh", "celu", "hard_shrink", "soft_shrink", "log_sigmoid", "softsign", "tanh_shrink", "threshold",
    "add", "subtract", "multiply", "divide", "floor_divide", "modulo", "power", "negate", "maximum", "minimum",
    "astype", "copy", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "isclose", "conj", "real", "imag", "angle",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift",
    "abs", "sign", "ceil", "floor", "round", "trunc", "square", "reciprocal", "clip",
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf",
    "asinh", "acosh", "atanh", "lgamma", "digamma", "erfc", "erfinv", "i0", "i1", "sinc", "polygamma", "atan2", "hypot",
    "logaddexp", "copysign", "heaviside", "nextafter", "gammainc", "gammaincc", "betainc", "where", "masked_fill",
)  # fmt: skip
def elementwise(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Operands aligned, options as they are."""
    if len(args) == 1 and not kwargs:
        return op(args[0].batch)
    bound = dict(zip(names_of(op).names, args), **kwargs)
    operands = {name: value for name, value in bound.items() if name in _OPERANDS}
    if level.holds(value for name, value in bound.items() if name not in _OPERANDS):
        return each_example(level, op, *args, **kwargs)
    ndim = ndim_of(operands.values())
    found = {name: aligned(level, value, ndim) for name, value in operands.items()}
    return op(**{**bound, **found})
