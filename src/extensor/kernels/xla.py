"""Kernels that XLA has a primitive for: what a reference would spell out in slices, it computes at the speed of the device.

Each has the arguments of the reference of the same name, which tests hold it to. A window of max_pool2d that holds a nan gives
its gradient, a nan, to one element; the reference gives it to all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..devices import jax
from .namespace import common_dtype

__all__ = ["PRIMITIVES"]

_IMAGES = ("NCHW", "OIHW", "NCHW")


def _margins(padding: Any) -> list[tuple[int, int]]:
    return [(padding[0], padding[1]), (padding[2], padding[3])]


def conv2d(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    dtype = common_dtype(x, weight)
    y = jax().lax.conv_general_dilated(
        x.astype(dtype), weight.astype(dtype), stride, _margins(padding),
        rhs_dilation=dilation, dimension_numbers=_IMAGES, feature_group_count=groups,
    )  # fmt: skip
    return y if bias is None else (y + bias[:, None, None]).astype(common_dtype(dtype, bias))


def _gradients(function: Callable[..., Any], g: Any, inputs: tuple[Any, ...], needs: Any) -> tuple[Any, ...]:
    """The gradients of the inputs that need one; None for the others."""
    wanted = [i for i, need in enumerate(needs) if need]

    def of_wanted(*values: Any) -> Any:
        given = list(inputs)
        for i, value in zip(wanted, values):
            given[i] = value
        return function(*given)

    found = iter(jax().vjp(of_wanted, *(inputs[i] for i in wanted))[1](g)) if wanted else iter(())
    return tuple(next(found) if need else None for need in needs)


def conv2d_backward(
    g: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int, needs: Any
) -> tuple[Any, ...]:
    dtype = common_dtype(g, x, weight)
    g, x, weight = (a.astype(dtype) for a in (g, x, weight))
    grads = _gradients(
        lambda x, weight: conv2d(x, weight, None, stride, padding, dilation, groups),
        g,
        (x, weight),
        needs[:2],
    )
    return *grads, g.sum((0, 2, 3)) if needs[2] else None


def _padded(x: Any, window: Any, stride: Any, padding: Any, size: Any) -> list[tuple[int, int]]:
    """Margins that every window fits into."""
    more = (
        (p, max(0, (m - 1) * s + k - n - p))
        for n, k, s, p, m in zip(x.shape[2:], window, stride, padding, size)
    )
    return [(0, 0), (0, 0), *more]


def max_pool2d(x: Any, window: Any, stride: Any, padding: Any, size: Any) -> Any:
    lax = jax().lax
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    y = lax.reduce_window(
        x, np.asarray(least, x.dtype), lax.max, (1, 1, *window), (1, 1, *stride),
        _padded(x, window, stride, padding, size),
    )  # fmt: skip
    return y[:, :, : size[0], : size[1]]


def max_pool2d_backward(g: Any, x: Any, window: Any, stride: Any, padding: Any, size: Any) -> Any:
    return _gradients(
        lambda x: max_pool2d(x, window, stride, padding, size), g.astype(x.dtype), (x,), (True,)
    )[0].astype(g.dtype)


def _special(name: str) -> Callable[..., Any]:
    """A function of :mod:`jax.scipy.special` that runs until no element changes; in float64, rounded once."""

    def function(*args: Any) -> Any:
        library = importlib.import_module("jax.scipy.special")
        wide = jax().numpy.broadcast_arrays(*(a.astype(np.float64) for a in args))
        return getattr(library, name)(*wide).astype(common_dtype(*args))

    return function


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "conv2d": conv2d,
    "conv2d_backward": conv2d_backward,
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": max_pool2d_backward,
    **{name: _special(name) for name in ("betainc", "gammainc", "gammaincc")},
}
