"""Incomplete gamma and beta functions, sums of shifted products, and their gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import as_floating, as_grad, check_needs, differentiable_input
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels.reference import incomplete as kernels
from ..tensor import ExTensor, Shape
from ._formulas import on_tensors
from ._pairs import BOTH, Needs
from ._wide import computed_wide
from .broadcasting import broadcast_shapes, sum_to_shape
from .casting import cast_like
from .conv import conv1d
from .exponential import exp, log, log1p
from .joining import pad
from .shape import flip, reshape
from .special import lgamma

__all__ = [
    "ConvolveGradients", "betainc", "betainc_backward", "convolve", "convolve_backward", "correlate", "correlate_backward",
    "gammainc", "gammainc_backward", "gammaincc", "gammaincc_backward",
]  # fmt: skip


def _shape(function: str, values: list[ExTensor]) -> Shape:
    try:
        return broadcast_shapes(*(v.shape for v in values))
    except ValueError as error:
        raise ValueError(f"[{function}] {error}") from None


@differentiable
def gammainc(a: ExTensor, x: ExTensor) -> ExTensor:
    """The regularised lower incomplete gamma function, from 0 to 1.   P(a, x) = (1 / Gamma(a)) * integral of t^(a-1) e^-t from 0 to x

    Args:
        a: the shape parameter, positive; it has no gradient.
        x: where to stop, not negative.

    Example:
        >>> import extensor as et
        >>> round(et.gammainc(et.tensor(1.0), et.tensor(1.0)).item(), 4)
        0.6321
    """
    values = [as_floating("gammainc", "a", a), as_floating("gammainc", "x", x)]
    _shape("gammainc", values)
    return kernels.gammainc(*values)


@on_tensors(3)
def _gamma_formula(g: Any, a: Any, x: Any) -> ExTensor:
    return sum_to_shape(g * exp((a - 1) * log(x) - x - lgamma(a)), x.shape)


@backward_of(gammainc, wrt="x", formula=_gamma_formula)
def gammainc_backward(grad_output: ExTensor, a: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`gammainc` with respect to x: the density of the gamma distribution.   dx = dy * x^(a-1) e^-x / Gamma(a)

    Example:
        >>> import extensor as et
        >>> round(et.gammainc_backward(et.tensor(1.0), et.tensor(1.0), et.tensor(1.0)).item(), 4)
        0.3679
    """
    return _gamma_backward("gammainc_backward", grad_output, a, x)


def _gamma_backward(function: str, grad_output: Any, a: Any, x: Any) -> ExTensor:
    values = [as_floating(function, "a", a), differentiable_input(function, "x", x)]
    grad = as_grad(function, grad_output, _shape(function, values))
    return cast_like(sum_to_shape(grad * kernels.gammainc_slope(*values), values[1].shape), values[1])


@differentiable
def gammaincc(a: ExTensor, x: ExTensor) -> ExTensor:
    """The regularised upper incomplete gamma function.   Q(a, x) = 1 - P(a, x), without the cancellation

    Args:
        a: the shape parameter, positive; it has no gradient.
        x: where to begin, not negative.

    Example:
        >>> import extensor as et
        >>> round(et.gammaincc(et.tensor(1.0), et.tensor(1.0)).item(), 4)
        0.3679
    """
    values = [as_floating("gammaincc", "a", a), as_floating("gammaincc", "x", x)]
    _shape("gammaincc", values)
    return kernels.gammaincc(*values)


@backward_of(gammaincc, wrt="x", formula=lambda g, a, x: -_gamma_formula(g, a, x))
def gammaincc_backward(grad_output: ExTensor, a: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`gammaincc` with respect to x.   dx = -dy * x^(a-1) e^-x / Gamma(a)

    Example:
        >>> import extensor as et
        >>> round(et.gammaincc_backward(et.tensor(1.0), et.tensor(1.0), et.tensor(1.0)).item(), 4)
        -0.3679
    """
    return -_gamma_backward("gammaincc_backward", grad_output, a, x)


@differentiable
def betainc(a: ExTensor, b: ExTensor, x: ExTensor) -> ExTensor:
    """The regularised incomplete beta function, from 0 to 1.   I = (1 / B(a, b)) * integral of t^(a-1) (1-t)^(b-1) from 0 to x

    Args:
        a, b: the shape parameters, positive; they have no gradient.
        x: where to stop, from 0 to 1.

    Example:
        >>> import extensor as et
        >>> et.betainc(et.tensor(2.0), et.tensor(2.0), et.tensor(0.5)).item()
        0.5
    """
    values = [as_floating("betainc", name, value) for name, value in (("a", a), ("b", b), ("x", x))]
    _shape("betainc", values)
    return kernels.betainc(*values)


def _beta_formula(g: Any, a: Any, b: Any, x: Any) -> ExTensor:
    logarithm = (a - 1) * log(x) + (b - 1) * log1p(-x) - lgamma(a) - lgamma(b) + lgamma(a + b)
    return sum_to_shape(g * exp(logarithm), x.shape)


@backward_of(betainc, wrt="x", formula=_beta_formula)
def betainc_backward(grad_output: ExTensor, a: ExTensor, b: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`betainc` with respect to x: the density of the beta distribution.   dx = dy * x^(a-1) (1-x)^(b-1) / B(a, b)

    Example:
        >>> import extensor as et
        >>> et.betainc_backward(et.tensor(1.0), et.tensor(2.0), et.tensor(2.0), et.tensor(0.5)).item()
        1.5
    """
    function = "betainc_backward"
    values = [
        as_floating(function, "a", a),
        as_floating(function, "b", b),
        differentiable_input(function, "x", x),
    ]
    grad = as_grad(function, grad_output, _shape(function, values))
    return cast_like(sum_to_shape(grad * kernels.betainc_slope(*values), values[2].shape), values[2])


# Sums of shifted products


class ConvolveGradients(NamedTuple):
    """The gradients of :func:`convolve` and :func:`correlate`; None where not wanted."""

    grad_a: ExTensor | None
    grad_v: ExTensor | None


def _rows(function: str, a: Any, v: Any) -> list[ExTensor]:
    found = [as_floating(function, "a", a), as_floating(function, "v", v)]
    for name, x in zip("av", found):
        if x.ndim != 1 or not x.size:
            raise ValueError(
                f"[{function}] {name} must have one axis and at least one element, got shape {x.shape}"
            )
    return found


def _window(function: str, n: int, m: int, mode: Any, mirrored: bool) -> tuple[int, int]:
    """The part of all n + m - 1 sums that a mode keeps: where it begins and how long it is."""
    if not isinstance(mode, str) or mode not in ("full", "same", "valid"):
        raise ValueError(f"[{function}] mode must be 'full', 'same' or 'valid', got {describe(mode)}")
    longer, shorter = max(n, m), min(n, m)
    if mode == "full":
        return 0, n + m - 1
    if mode == "valid":
        return shorter - 1, longer - shorter + 1
    # of an even number the middle is one of two: the mirror image has the other
    before = shorter // 2 if mirrored and m > n else (shorter - 1) // 2
    return before, longer


def _all_sums(a: ExTensor, v: ExTensor) -> ExTensor:
    """sum_j a_(i-j) v_j for all i."""
    m = v.shape[0]
    whole = reshape(pad(a, (m - 1, m - 1)), (1, 1, -1))
    return reshape(conv1d(whole, reshape(flip(v, 0), (1, 1, m))), (-1,))


@differentiable
def convolve(a: ExTensor, v: ExTensor, mode: str = "full") -> ExTensor:
    """NumPy's convolution of two sequences.   y_i = sum_j a_(i-j) v_j

    Args:
        a, v: tensors with one axis.
        mode: ``"full"`` (all n + m - 1 sums), ``"same"`` (the middle max(n, m)) or ``"valid"`` (those without gaps).

    Example:
        >>> import extensor as et
        >>> et.convolve(et.tensor([1.0, 2.0, 3.0]), et.tensor([1.0, 10.0])).tolist()
        [1.0, 12.0, 23.0, 30.0]
    """
    a, v = _rows("convolve", a, v)
    start, length = _window("convolve", a.shape[0], v.shape[0], mode, mirrored=False)
    return _all_sums(a, v)[start : start + length]


def _pulled(
    grad: ExTensor, start: int, a: ExTensor, v: ExTensor, needs: Needs
) -> tuple[ExTensor | None, ExTensor | None]:
    """The gradients of the sums that begin at ``start``: sums of shifted products with the other sequence."""
    n, m = a.shape[0], v.shape[0]
    whole = pad(grad, (start, n + m - 1 - start - grad.shape[0]))
    grad_a = _all_sums(whole, flip(v, 0))[m - 1 : m - 1 + n] if needs[0] else None
    grad_v = _all_sums(whole, flip(a, 0))[n - 1 : n - 1 + m] if needs[1] else None
    return grad_a, grad_v


@backward_of(convolve, wrt=("a", "v"))
@computed_wide
def convolve_backward(
    grad_output: ExTensor, a: ExTensor, v: ExTensor, mode: str = "full", *, needs: Needs = BOTH
) -> ConvolveGradients:
    """Gradient of :func:`convolve`.   da_i = sum_j dy_(i+j) v_j,  dv_j = sum_i dy_(i+j) a_i

    Example:
        >>> import extensor as et
        >>> et.convolve_backward(et.ones(4), et.tensor([1.0, 2.0, 3.0]), et.tensor([1.0, 10.0])).grad_v.tolist()
        [6.0, 6.0]
    """
    function = "convolve_backward"
    check_needs(function, needs)
    a, v = _rows(function, a, v)
    start, length = _window(function, a.shape[0], v.shape[0], mode, mirrored=False)
    grad_a, grad_v = _pulled(as_grad(function, grad_output, (length,)), start, a, v, needs)
    return ConvolveGradients(cast_like(grad_a, a), cast_like(grad_v, v))


@differentiable
def correlate(a: ExTensor, v: ExTensor, mode: str = "valid") -> ExTensor:
    """NumPy's cross-correlation of two sequences.   y_k = sum_i a_(i+k) v_i

    Args:
        a, v: tensors with one axis.
        mode: as in :func:`convolve`; ``"valid"`` by default.

    Example:
        >>> import extensor as et
        >>> et.correlate(et.tensor([1.0, 2.0, 3.0]), et.tensor([1.0, 10.0])).tolist()
        [21.0, 32.0]
    """
    a, v = _rows("correlate", a, v)
    start, length = _window("correlate", a.shape[0], v.shape[0], mode, mirrored=True)
    return _all_sums(a, flip(v, 0))[start : start + length]


@backward_of(correlate, wrt=("a", "v"))
@computed_wide
def correlate_backward(
    grad_output: ExTensor, a: ExTensor, v: ExTensor, mode: str = "valid", *, needs: Needs = BOTH
) -> ConvolveGradients:
    """Gradient of :func:`correlate`; that of :func:`convolve` with v the other way round.

    Example:
        >>> import extensor as et
        >>> et.correlate_backward(et.ones(2), et.tensor([1.0, 2.0, 3.0]), et.tensor([1.0, 10.0])).grad_a.tolist()
        [1.0, 11.0, 10.0]
    """
    function = "correlate_backward"
    check_needs(function, needs)
    a, v = _rows(function, a, v)
    start, length = _window(function, a.shape[0], v.shape[0], mode, mirrored=True)
    grad_a, grad_v = _pulled(as_grad(function, grad_output, (length,)), start, a, flip(v, 0), needs)
    return ConvolveGradients(cast_like(grad_a, a), cast_like(None if grad_v is None else flip(grad_v, 0), v))
