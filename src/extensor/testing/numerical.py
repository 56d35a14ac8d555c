"""Gradients by central differences, and comparing a backward function with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import FLOATING
from ..errors import describe
from ..graph import Op, no_grad
from ..tensor import ExTensor, asarray
from .complex_values import as_real
from .tolerances import Tolerance, tolerance

__all__ = [
    "Closeness",
    "assert_gradients_close",
    "check_gradient",
    "compute_numerical_gradient",
    "random_gradient",
]

_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # balances the error of the formula and that of rounding


def compute_numerical_gradient(
    fn: Callable[[ExTensor], Any], x: Any, grad_output: Any = None, epsilon: float | None = None
) -> ExTensor:
    r"""The gradient of ``sum(fn(x) * grad_output)`` by central differences.

    dx_i = sum((fn(x + h e_i) - fn(x - h e_i)) * grad_output) / 2h

    Everything is computed in float64, whatever the dtype of ``x``, and ``x`` itself is never written to.

    Args:
        fn: a function of one tensor that returns a tensor, an array or a number.
        x: where to differentiate; a floating tensor or array.
        grad_output: the weight of each element of the result. Default 1 everywhere: the gradient of the sum.
            To *check* a gradient use random weights, as :func:`check_gradient` does: with ones many wrong
            gradients look right (that of ``softmax`` is 0).
        epsilon: the step h. Default ``eps**(1/3) * max(1, |x_i|)`` with the eps of float64.

    Returns:
        A float64 tensor with the shape of ``x``.

    Example:
        >>> import extensor as et
        >>> from extensor.testing import compute_numerical_gradient
        >>> dx = compute_numerical_gradient(lambda x: x * x, et.tensor([1.0, -3.0]))
        >>> [round(v, 6) for v in dx.tolist()]
        [2.0, -6.0]
    """
    name = "compute_numerical_gradient"
    point = _floating_array(name, "x", x)
    if epsilon is not None and not 0 < epsilon < float("inf"):
        raise ValueError(f"[{name}] epsilon must be a positive number, got {describe(epsilon)}")
    weights = None if grad_output is None else _floating_array(name, "grad_output", grad_output)

    def value(array: np.ndarray) -> list[np.ndarray]:
        with no_grad():
            result = np.asarray(fn(ExTensor(array)), np.float64)
        if weights is not None and result.shape != weights.shape:
            raise ValueError(
                f"[{name}] grad_output has shape {weights.shape} but fn returns a result of shape {result.shape}"
            )
        return [result]

    return ExTensor(central_differences(value, point, None if weights is None else [weights], epsilon))


def central_differences(
    value: Callable[[np.ndarray], list[np.ndarray]],
    point: np.ndarray,
    weights: list[np.ndarray] | None,
    epsilon: float | None = None,
) -> np.ndarray:
    """The gradient of ``sum_k sum(value(point)[k] * weights[k])`` in float64; ``value`` gets a fresh array each time."""
    if point.dtype.kind == "c":  # dL/d(Re z) + i dL/d(Im z)
        still = np.zeros(point.shape)
        across = central_differences(lambda x: value(np.asarray(point + x)), still, weights, epsilon)
        return across + 1j * central_differences(
            lambda x: value(np.asarray(point + 1j * x)), still, weights, epsilon
        )
    gradient = np.zeros(point.shape)
    for i in np.ndindex(point.shape):
        step = _STEP * max(1.0, abs(point[i])) if epsilon is None else epsilon
        above, below = point.copy(), point.copy()
        above[i] += step
        below[i] -= step
        width = above[i] - below[i]  # the step that the rounded points really have
        with np.errstate(all="ignore"):  # inf - inf at the edges is a nan that the comparison sees
            differences = [p - m for p, m in zip(value(above), value(below))]
            sums = (
                differences
                if weights is None
                else [(w.conj() * d).real for d, w in zip(differences, weights)]
            )
            gradient[i] = sum(float(s.sum()) for s in sums) / width
    return gradient


def random_gradient(rng: np.random.Generator, shape: tuple[int, ...], kind: str = "f") -> np.ndarray:
    """Random upstream gradients with both signs and no element near 0, so that every path shows; ``kind`` "c" is complex."""
    if kind == "c":
        return np.asarray(random_gradient(rng, shape) + 1j * random_gradient(rng, shape))
    return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice((-1.0, 1.0), shape))


class Closeness(NamedTuple):
    """How close two gradients are.

    Attributes:
        worst: the largest relative error, ``|actual - expected| / (|expected| + atol / rtol)``.
        element: where it is; None for empty gradients.
        actual: the value there that was checked.
        expected: the value there that is right.
        tolerance: the ``rtol`` and ``atol`` used.
    """

    worst: float
    element: tuple[int, ...] | None
    actual: float
    expected: float
    tolerance: Tolerance

    @property
    def passed(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.worst <= self.tolerance.limit


def compare(actual: np.ndarray, expected: np.ndarray, limits: Tolerance) -> Closeness:
    """The worst element of two arrays of the same shape."""
    if not actual.size:
        return Closeness(0.0, None, 0.0, 0.0, limits)
    if actual.dtype.kind == "c":
        actual, expected = as_real(actual), as_real(np.asarray(expected, np.complex128))
    errors = limits.errors(actual, expected)
    index = tuple(int(i) for i in np.unravel_index(np.argmax(errors), errors.shape))
    return Closeness(float(errors[index]), index, float(actual[index]), float(expected[index]), limits)


def assert_gradients_close(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, message: str = ""
) -> Closeness:
    """Raise an AssertionError that names the worst element unless two gradients are close.

    ``|actual - expected| <= atol + rtol * |expected|``; the defaults are those of the dtype of ``actual``.
    nan is close to nan, and an infinity to itself.

    Example:
        >>> import extensor as et
        >>> from extensor.testing import assert_gradients_close
        >>> assert_gradients_close(et.tensor([1.0, 2.0]), et.tensor([1.0, 2.1]))
        Traceback (most recent call last):
            ...
        AssertionError: [assert_gradients_close] element (1,) is 2 but should be 2.0999999 (relative error 0.045 > 0.0001)
    """
    name = "assert_gradients_close"
    a, e = asarray(actual), asarray(expected)
    limits = tolerance(name, a.dtype, rtol, atol)
    if a.shape != e.shape:
        raise AssertionError(
            _say(name, message, f"the gradient has shape {a.shape} but should have {e.shape}")
        )
    return _require(name, message, compare(a.numpy(), e.numpy(), limits))


def check_gradient(
    forward: Callable[[ExTensor], Any],
    backward: Callable[..., Any],
    x: Any,
    grad_output: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Closeness:
    """Compare ``backward`` with central differences of ``forward`` at ``x``.

    Args:
        forward: a function of one tensor.
        backward: its gradient, called as ``backward(grad_output, x)``. If it takes a parameter called ``output``
            it gets the forward's result for it, as the backwards that save y want.
        x: where to compare; keep away from kinks and ties. The analytic gradient is computed in its dtype,
            the numerical one in float64.
        grad_output: the upstream gradient. Default: random (with ones, a wrong gradient can pass).
        rtol, atol: the tolerance. Default: that of the dtype of ``x``.

    Returns:
        How close the two are.

    Raises:
        AssertionError: if they differ; it names the worst element and both values.

    Example:
        >>> import extensor as et
        >>> from extensor.testing import check_gradient
        >>> x = et.tensor([1.0, -2.0, 3.0])
        >>> check_gradient(lambda x: x * x, lambda g, x: 2 * g * x, x).passed
        True
        >>> check_gradient(lambda x: x * x, lambda g, x: g * x, x)
        Traceback (most recent call last):
            ...
        AssertionError: [check_gradient] element (2,) is -1.6... but should be -3.2... (relative error 0.49 > 0.0001)
    """
    name = "check_gradient"
    if not isinstance(x, ExTensor):
        x = asarray(x)
    _floating_array(name, "x", x)
    limits = tolerance(name, x.dtype, rtol, atol)
    with no_grad():
        output = asarray(forward(x.detach()))
        if grad_output is None:
            upstream = random_gradient(np.random.default_rng(0), output.shape).astype(output.dtype)
        else:
            upstream = _floating_array(name, "grad_output", grad_output).astype(output.dtype)
        analytic = _call_backward(forward, backward, ExTensor(upstream), x.detach(), output)
    if not isinstance(analytic, ExTensor):
        raise TypeError(f"[{name}] backward must return one tensor, got {describe(analytic)}")
    if analytic.shape != x.shape or analytic.dtype != x.dtype:
        raise AssertionError(
            f"[{name}] the gradient must have the shape and dtype of x, {x.shape} {x.dtype}, "
            f"got {analytic.shape} {analytic.dtype}"
        )
    numerical = compute_numerical_gradient(forward, x, upstream)
    return _require(name, "", compare(analytic.numpy(), numerical.numpy(), limits))


def _call_backward(forward: Any, backward: Any, grad_output: ExTensor, x: ExTensor, output: ExTensor) -> Any:
    if isinstance(forward, Op) and forward.backward is backward:
        positional, keywords = forward.rule.arguments(forward.rule.bind((x,), {}), output)
        return backward(grad_output, *positional, **keywords)
    parameters = list(inspect.signature(backward).parameters.values())[1:]
    required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    return backward(grad_output, *(output if name == "output" else x for name in required))


def _floating_array(function: str, name: str, value: Any) -> np.ndarray:
    found = asarray(value)
    if found.dtype not in FLOATING:
        raise TypeError(f"[{function}] {name} must have a floating dtype, got {found.dtype}")
    return found.numpy().astype(np.float64)


def _require(function: str, message: str, closeness: Closeness) -> Closeness:
    if closeness.passed:
        return closeness
    raise AssertionError(
        _say(
            function,
            message,
            f"element {closeness.element} is {closeness.actual:.8g} but should be {closeness.expected:.8g} "
            f"(relative error {closeness.worst:.2g} > {closeness.tolerance.limit:g})",
        )
    )


def _say(function: str, message: str, text: str) -> str:
    return f"[{function}] {message}: {text}" if message else f"[{function}] {text}"
