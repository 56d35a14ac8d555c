"""Operators that only imported networks have: lengths of axes, whole numbers as ONNX divides them, bits."""

from __future__ import annotations

from ..emit import EXPORTERS, Emitter, Value, exports

__all__: list[str] = []

_ELEMENTWISE = {
    "whole_quotient": "Div",
    "whole_power": "Pow",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "bitwise_not": "BitwiseNot",
    "non_zero": "NonZero",
    "size_of": "Size",
}


def _node(operator: str) -> object:
    return lambda e, *operands: e.node(operator, *map(e.use, operands))


for _name, _operator in _ELEMENTWISE.items():
    EXPORTERS.setdefault(_name, _node(_operator))  # type: ignore[arg-type]


@exports("shape_of")
def shape_of(e: Emitter, x: Value, start: int = 0, end: int | None = None) -> str:
    """Shape"""
    return str(e.node("Shape", e.use(x), start=start or None, end=end))


@exports("c_remainder")
def c_remainder(e: Emitter, a: Value, b: Value) -> str:
    """Mod"""
    return str(e.node("Mod", e.use(a), e.use(b), fmod=1))


@exports("bit_shift")
def bit_shift(e: Emitter, x: Value, by: Value, direction: str) -> str:
    """BitShift"""
    return str(e.node("BitShift", e.use(x), e.use(by), direction=direction))
