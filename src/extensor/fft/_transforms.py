"""The three transforms behind all others, their adjoints, and what they ask of their options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import as_axis, as_floating, as_grad, as_int, as_ints
from ..dtypes import COMPLEX
from ..errors import describe
from ..kernels.reference import fft as kernels
from ..ops.casting import cast_like
from ..ops.complex_numbers import real
from ..ops.creation import allocate
from ..ops.joining import pad
from ..tensor import ExTensor, Shape

__all__ = [
    "OPPOSITE", "Plan", "complex_backward", "forward_plan", "half_backward", "half_inverse_backward", "plan_1d", "plan_nd",
]  # fmt: skip

OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


class Plan:
    """A transform that is decided: its axes, their lengths while it is computed, and where it is scaled."""

    def __init__(self, lengths: Sequence[int], axes: Sequence[int], norm: str) -> None:
        self.lengths, self.axes, self.norm = tuple(lengths), tuple(axes), norm

    @property
    def opposite(self) -> str:
        """The scale of the adjoint: what the transform divides by, its adjoint divides by too."""
        return OPPOSITE[self.norm]

    def shape(self, shape: Shape, last: int | None = None) -> Shape:
        """The shape of the result; ``last`` is the length along the last axis, where it is another."""
        found = list(shape)
        for axis, length in zip(self.axes, self.lengths):
            found[axis] = length
        if last is not None:
            found[self.axes[-1]] = last
        return tuple(found)


def _norm(function: str, norm: Any) -> str:
    if not isinstance(norm, str) or norm not in OPPOSITE:
        raise ValueError(f'[{function}] norm must be "backward", "ortho" or "forward", got {describe(norm)}')
    return norm


def _length(function: str, name: str, length: int) -> int:
    if length > 2**40:
        raise ValueError(f"[{function}] {name}: a transform of {length} points is beyond this machine")
    if length < 1:
        raise ValueError(f"[{function}] {name}: a transform needs at least one point, got {length}")
    return length


def plan_1d(function: str, shape: Shape, n: Any, axis: Any, norm: Any, half: bool = False) -> Plan:
    """The plan of a transform along one axis; ``half``: the input is the half of a spectrum."""
    along = as_axis(function, axis, len(shape))
    natural = 2 * (shape[along] - 1) if half else shape[along]
    length = natural if n is None else as_int(function, "n", n)
    return Plan((_length(function, "n", length),), (along,), _norm(function, norm))


def plan_nd(function: str, shape: Shape, s: Any, axes: Any, norm: Any, half: bool = False) -> Plan:
    """The plan of a transform along several axes."""
    lengths = None if s is None else as_ints(function, "s", s)
    if axes is None:
        if lengths is not None and len(lengths) > len(shape):
            raise ValueError(f"[{function}] s {lengths} is longer than x has axes (shape {shape})")
        found = list(range(len(shape)))[-len(lengths) :] if lengths else list(range(len(shape)))
    else:
        found = [as_axis(function, axis, len(shape)) for axis in as_ints(function, "axes", axes)]
    if len(set(found)) != len(found):
        raise ValueError(f"[{function}] axes {tuple(axes)} names an axis twice")
    if not found:
        raise ValueError(f"[{function}] needs at least one axis (shape {shape})")
    if lengths is not None and len(lengths) != len(found):
        raise ValueError(f"[{function}] s {lengths} and axes {tuple(found)} must be of one length")
    natural = [shape[axis] for axis in found]
    if half:
        natural[-1] = 2 * (natural[-1] - 1)
    chosen = natural if lengths is None else [n if m == -1 else m for m, n in zip(lengths, natural)]
    return Plan([_length(function, "s", n) for n in chosen], found, _norm(function, norm))


def forward_plan(function: str, x: ExTensor, kernel: Any, plan: Plan, *options: Any) -> ExTensor:
    """The kernel by the plan."""
    return allocate(function, kernel, x, plan.lengths, plan.axes, plan.norm, *options)


def _resized(x: ExTensor, shape: Shape, axes: Sequence[int]) -> ExTensor:
    """``x`` cut, or filled up with zeros, along ``axes``: the adjoint of filling up and cutting."""
    for axis in axes:
        now, wanted = x.shape[axis], shape[axis]
        if now > wanted:
            x = x[(slice(None),) * axis + (slice(wanted),)]
        elif now < wanted:
            x = pad(x, [(0, wanted - now if i == axis else 0) for i in range(x.ndim)])
    return x


def _of_dtype(grad: ExTensor, x: Any) -> ExTensor:
    """A gradient in the dtype of the input; of a real one only the real part moves."""
    if isinstance(x, ExTensor) and x.dtype not in COMPLEX and grad.dtype in COMPLEX:
        grad = real(grad)
    return cast_like(grad, x) if isinstance(x, ExTensor) else grad


def complex_backward(function: str, grad_output: Any, x: ExTensor, plan: Plan, transform: Any) -> ExTensor:
    """The adjoint of a complex transform is the other one without the division; ``transform(g, s, axes, norm)``."""
    grad = as_grad(function, grad_output, plan.shape(x.shape))
    found = transform(grad, plan.lengths, plan.axes, plan.opposite)
    return _of_dtype(_resized(found, x.shape, plan.axes), x)


def half_backward(function: str, grad_output: Any, x: ExTensor, plan: Plan, transform: Any) -> ExTensor:
    """The adjoint of a real transform: the half that was left out is zero; ``transform`` is the inverse complex one."""
    half = plan.lengths[-1] // 2 + 1
    grad = as_grad(function, grad_output, plan.shape(x.shape, half))
    whole = _resized(grad, plan.shape(x.shape), plan.axes[-1:])
    found = real(transform(whole, plan.lengths, plan.axes, plan.opposite))
    return _of_dtype(_resized(found, x.shape, plan.axes), x)


def half_inverse_backward(
    function: str, grad_output: Any, x: ExTensor, plan: Plan, real_transform: Any, transform: Any
) -> ExTensor:
    """The adjoint of the inverse real transform: inner frequencies stand for two.

    ``real_transform`` is the real transform along the last axis, ``transform`` the complex one along the others.
    """
    grad = as_floating(function, "grad_output", grad_output)
    grad = as_grad(function, grad, plan.shape(x.shape))
    *others, last = plan.axes
    *lengths, length = plan.lengths
    found = real_transform(grad, (length,), (last,), plan.opposite)
    weights = np.full(length // 2 + 1, 2.0, dtype=found.numpy().real.dtype)
    weights[0] = 1.0
    if length % 2 == 0:
        weights[-1] = 1.0
    found = found * ExTensor(weights.reshape([-1 if i == last else 1 for i in range(grad.ndim)]))
    if others:
        found = transform(found, tuple(lengths), tuple(others), plan.opposite)
    return _of_dtype(_resized(found, x.shape, plan.axes), x)


def run_complex(function: str, x: ExTensor, plan: Plan, inverse: bool) -> ExTensor:
    """A complex transform; a real input counts as complex."""
    return forward_plan(function, x, kernels.complex_fft, plan, inverse)


def as_real(function: str, x: Any) -> ExTensor:
    """The input of a transform of real numbers."""
    found = as_floating(function, "x", x)
    if found.dtype in COMPLEX:
        raise TypeError(f"[{function}] x must be real, got {found.dtype}; use fft")
    return found
