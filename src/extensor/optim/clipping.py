"""Gradients held within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks import as_bool, as_floating, as_number
from ..dtypes import HALF, float32, promote
from ..errors import describe
from ..graph import repeated
from ..kernels.reference import optim as kernels
from ..tensor import ExTensor, asarray

__all__ = ["clip_grad_norm", "clip_grad_value", "gradients_of"]


def gradients_of(function: str, grads: Any) -> tuple[list[ExTensor], Callable[[list[ExTensor]], Any]]:
    """The gradients in a tensor, list, tuple or dict, and how to put new ones in their places; None stays None."""
    if isinstance(grads, ExTensor):
        return [as_floating(function, "grads", grads)], lambda new: new[0]
    if isinstance(grads, dict):
        keys, values = list(grads), list(grads.values())
    elif isinstance(grads, (list, tuple)):
        keys, values = list(range(len(grads))), list(grads)
    else:
        raise TypeError(f"[{function}] grads must be a list or dict of tensors, got {describe(grads)}")
    found = [as_floating(function, f"grads[{key!r}]", v) for key, v in zip(keys, values) if v is not None]

    def put_back(new: list[ExTensor]) -> Any:
        moving = iter(new)
        placed = [None if v is None else next(moving) for v in values]
        if isinstance(grads, dict):
            return dict(zip(keys, placed))
        return type(grads)(*placed) if hasattr(grads, "_fields") else type(grads)(placed)

    return found, put_back


@repeated
def clip_grad_norm(
    grads: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> tuple[Any, ExTensor]:
    """Scale gradients so that the norm of all of them together is at most ``max_norm``.

    total = (sum of |g|^norm_type over all elements)^(1/norm_type),  g * min(1, max_norm / (total + 1e-6))

    Args:
        grads: a list, tuple or dict of tensors, or one tensor; entries may be None. They stay as they are.
        max_norm: the largest norm allowed.
        norm_type: the order of the norm, above 0; ``inf`` is the largest magnitude.
        error_if_nonfinite: refuse gradients whose norm is infinite or nan.

    Returns:
        The gradients in the same structure, and the norm they had (0-d).

    Example:
        >>> import extensor as et
        >>> grads, norm = et.clip_grad_norm([et.tensor([3.0]), None, et.tensor([4.0])], max_norm=1.0)
        >>> norm.item(), round(grads[0].item(), 4), grads[1], round(grads[2].item(), 4)
        (5.0, 0.6, None, 0.8)
    """
    found, put_back = gradients_of("clip_grad_norm", grads)
    limit = as_number("clip_grad_norm", "max_norm", max_norm)
    if not limit >= 0:
        raise ValueError(f"[clip_grad_norm] max_norm must not be negative, got {limit}")
    order = as_number("clip_grad_norm", "norm_type", norm_type)
    if not order > 0:
        raise ValueError(f"[clip_grad_norm] norm_type must be above 0, got {order}")
    clipped, total = kernels.clip_grad_norm(found, limit, order)
    if as_bool("clip_grad_norm", "error_if_nonfinite", error_if_nonfinite) and not total < float("inf"):
        raise ValueError(f"[clip_grad_norm] the norm of grads is {total}; it cannot be clipped")
    dtype = promote(*(g.dtype for g in found)) if found else float32
    return put_back(clipped), asarray(total, float32 if dtype in HALF else dtype)


@repeated
def clip_grad_value(grads: Any, limit: float) -> Any:
    """Clip every element of the gradients.   min(max(g, -limit), limit)

    Args:
        grads: a list, tuple or dict of tensors, or one tensor; entries may be None. They stay as they are.
        limit: the largest magnitude allowed.

    Returns:
        The gradients in the same structure.

    Example:
        >>> import extensor as et
        >>> grads = et.clip_grad_value({"w": et.tensor([3.0, -0.5]), "frozen": None}, 1.0)
        >>> grads["w"].tolist(), grads["frozen"]
        ([1.0, -0.5], None)
    """
    found, put_back = gradients_of("clip_grad_value", grads)
    bound = as_number("clip_grad_value", "limit", limit)
    if not bound >= 0:
        raise ValueError(f"[clip_grad_value] limit must not be negative, got {bound}")
    return put_back(kernels.clip_grad_value(found, bound))
