"""Functions of single elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import FLOATING, as_dtype
from ..emit import EXPORTERS, Emitter, Value, exports

__all__: list[str] = []

_UNARY = {
    "negate": "Neg", "abs": "Abs", "sign": "Sign", "ceil": "Ceil", "floor": "Floor", "round": "Round",
    "reciprocal": "Reciprocal", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "erf": "Erf", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "relu": "Relu", "sigmoid": "Sigmoid", "selu": "Selu", "copy": "Identity", "logical_not": "Not", "isnan": "IsNaN",
}  # fmt: skip
_BINARY = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "maximum": "Max", "minimum": "Min",
}  # fmt: skip
_COMPARE = {
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
}  # fmt: skip
_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def _unary(operator: str) -> Any:
    return lambda e, x: e.node(operator, e.use(x, e.out.dtype if operator not in ("IsNaN", "Not") else None))


def _binary(operator: str) -> Any:
    return lambda e, a, b: e.node(operator, e.use(a, e.out.dtype), e.use(b, e.out.dtype))


def _dtype_of(a: Any, b: Any) -> Any:
    """What two operands are compared in."""
    kinds = [np.asarray(v).dtype if not isinstance(v, Value) else v.dtype for v in (a, b)]
    if isinstance(a, Value) and not isinstance(b, Value) and np.ndim(b) == 0:
        return kinds[0] if kinds[0] in FLOATING or kinds[1].kind in "iub" else np.dtype(np.float32)
    if isinstance(b, Value) and not isinstance(a, Value) and np.ndim(a) == 0:
        return _dtype_of(b, a)
    return np.result_type(*kinds)


def _compared(operator: str) -> Any:
    def write(e: Emitter, a: Any, b: Any) -> str:
        dtype = _dtype_of(a, b)
        return str(e.node(operator, e.use(a, dtype), e.use(b, dtype)))

    return write


for _name, _operator in _UNARY.items():
    EXPORTERS[_name] = _unary(_operator)
for _name, _operator in _BINARY.items():
    EXPORTERS[_name] = _binary(_operator)
for _name, _operator in _COMPARE.items():
    EXPORTERS[_name] = _compared(_operator)
for _name, _operator in _LOGIC.items():
    EXPORTERS[_name] = lambda e, a, b, o=_operator: e.node(o, e.use(a, np.bool_), e.use(b, np.bool_))


@exports("not_equal")
def not_equal(e: Emitter, a: Any, b: Any) -> str:
    """Not Equal."""
    return str(e.node("Not", _compared("Equal")(e, a, b)))


@exports("isinf")
def isinf(e: Emitter, x: Any) -> str:
    """IsInf."""
    return str(e.node("IsInf", e.use(x)))


@exports("isfinite")
def isfinite(e: Emitter, x: Any) -> str:
    """Neither IsInf nor IsNaN."""
    return str(e.node("Not", e.node("Or", e.node("IsInf", e.use(x)), e.node("IsNaN", e.use(x)))))


@exports("where")
def where(e: Emitter, condition: Any, a: Any, b: Any) -> str:
    """Where."""
    return str(e.node("Where", e.use(condition, np.bool_), e.use(a, e.out.dtype), e.use(b, e.out.dtype)))


@exports("clip")
def clip(e: Emitter, x: Any, min: Any = None, max: Any = None) -> str:
    """Clip."""
    low, high = (None if v is None else e.constant(v, e.out.dtype) for v in (min, max))
    return str(e.node("Clip", e.use(x, e.out.dtype), low or "", high or ""))


@exports("astype")
def astype(e: Emitter, x: Any, dtype: Any) -> str:
    """Cast."""
    return e.cast(e.use(x), as_dtype("export", dtype))


@exports("floor_divide")
def floor_divide(e: Emitter, a: Any, b: Any) -> str:
    """Floor of Div; whole numbers by way of float64."""
    if e.out.dtype in FLOATING:
        return str(e.node("Floor", _binary("Div")(e, a, b)))
    wide = e.node("Div", e.use(a, np.float64), e.use(b, np.float64))
    return e.cast(e.node("Floor", wide), e.out.dtype)


@exports("modulo")
def modulo(e: Emitter, a: Any, b: Any) -> str:
    """Mod; for floating numbers a - floor(a / b) b."""
    x, y = e.use(a, e.out.dtype), e.use(b, e.out.dtype)
    if e.out.dtype not in FLOATING:
        return str(e.node("Mod", x, y))
    return str(e.node("Sub", x, e.node("Mul", e.node("Floor", e.node("Div", x, y)), y)))


# Activations with options


@exports("leaky_relu")
def leaky_relu(e: Emitter, x: Any, alpha: float = 0.01) -> str:
    """LeakyRelu."""
    return str(e.node("LeakyRelu", e.use(x), alpha=alpha))


@exports("elu")
def elu(e: Emitter, x: Any, alpha: float = 1.0) -> str:
    """Elu."""
    return str(e.node("Elu", e.use(x), alpha=alpha))


@exports("hard_sigmoid")
def hard_sigmoid(e: Emitter, x: Any) -> str:
    """HardSigmoid."""
    return str(e.node("HardSigmoid", e.use(x), alpha=1 / 6, beta=0.5))


@exports("hard_swish")
def hard_swish(e: Emitter, x: Any) -> str:
    """HardSwish."""
    return str(e.node("HardSwish", e.use(x)))


@exports("relu6")
def relu6(e: Emitter, x: Any) -> str:
    """Clip between 0 and 6."""
    return clip(e, x, 0, 6)


@exports("hard_tanh")
def hard_tanh(e: Emitter, x: Any, min_val: float = -1.0, max_val: float = 1.0) -> str:
    """Clip."""
    return clip(e, x, min_val, max_val)


@exports("softplus")
def softplus(e: Emitter, x: Any, beta: float = 1.0, threshold: float = 20.0) -> str:
    """Softplus; above the threshold it is x to the last digit."""
    if beta == 1:
        return str(e.node("Softplus", e.use(x)))
    factor = e.constant(beta, e.out.dtype)
    return str(e.node("Div", e.node("Softplus", e.node("Mul", e.use(x), factor)), factor))


@exports("gelu")
def gelu(e: Emitter, x: Any, approximate: bool = False) -> str:
    """Gelu; before operator set 20, its formula."""
    if e.opset >= 20:
        return str(e.node("Gelu", e.use(x), approximate="tanh" if approximate else None))
    name, half, one = e.use(x), e.constant(0.5, e.out.dtype), e.constant(1.0, e.out.dtype)
    if approximate:
        cube = e.node(
            "Mul", e.node("Mul", name, name), e.node("Mul", name, e.constant(0.044715, e.out.dtype))
        )
        inner = e.node("Mul", e.node("Add", name, cube), e.constant(np.sqrt(2 / np.pi), e.out.dtype))
        bell = e.node("Tanh", inner)
    else:
        bell = e.node("Erf", e.node("Mul", name, e.constant(np.sqrt(0.5), e.out.dtype)))
    return str(e.node("Mul", e.node("Mul", name, half), e.node("Add", bell, one)))


@exports("prelu")
def prelu(e: Emitter, x: Any, alpha: Any) -> str:
    """PRelu, with one slope for each channel (axis 1)."""
    slope = e.use(alpha, e.out.dtype)
    shape = alpha.shape if isinstance(alpha, Value) else np.shape(alpha)
    if len(shape) == 1 and e.out.ndim > 2 and shape != e.out.shape:
        slope = e.reshape(slope, (shape[0], *(1,) * (e.out.ndim - 2)))
    return str(e.node("PRelu", e.use(x), slope))


def _along(e: Emitter, operator: str, x: Any, axis: int) -> str:
    """A function along an axis; a single number gets one."""
    if e.out.ndim:
        return str(e.node(operator, e.use(x), axis=axis))
    return e.reshape(e.node(operator, e.reshape(e.use(x), (1,)), axis=0), ())


@exports("softmax")
def softmax(e: Emitter, x: Any, axis: int = -1) -> str:
    """Softmax."""
    return _along(e, "Softmax", x, axis)


@exports("log_softmax")
def log_softmax(e: Emitter, x: Any, axis: int = -1) -> str:
    """LogSoftmax."""
    return _along(e, "LogSoftmax", x, axis)
