"""What the backwards of two-operand functions return."""

from __future__ import annotations

from typing import NamedTuple

from ..tensor import ExTensor

Needs = tuple[bool, bool]
BOTH: Needs = (True, True)


class BinaryGradients(NamedTuple):
    """The gradients of the two operands; None where ``needs`` says that it is not wanted."""

    grad_a: ExTensor | None
    grad_b: ExTensor | None
