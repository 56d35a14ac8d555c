"""Dropout, with the mask as a value."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import as_floating, as_number, as_tensor
from ..graph import backward_of, differentiable
from ..kernels.reference import dropout as kernels
from ..tensor import ExTensor
from ._generators import Rng, as_generator, draws_at_least
from ._several import as_grads

__all__ = ["DropoutResult", "dropout", "dropout_backward"]


class DropoutResult(NamedTuple):
    """What :func:`dropout` returns: the output, and the mask, true where an element was kept."""

    output: ExTensor
    mask: ExTensor


def _probability(function: str, p: Any) -> float:
    found = as_number(function, "p", p)
    if not 0 <= found <= 1:
        raise ValueError(f"[{function}] p must lie between 0 and 1, got {found}")
    return found


@differentiable
def dropout(x: ExTensor, p: float, rng: Rng) -> DropoutResult:
    """Each element is 0 with probability ``p`` and grows by 1 / (1 - p) otherwise, so that the mean stays.

    y = x / (1 - p) where mask else 0. A dropped element is an exact 0, even if it was inf or nan.

    Args:
        x: any floating tensor.
        p: the probability to be dropped. 0 keeps everything, 1 nothing.
        rng: a seed or a ``numpy.random.Generator``. The mask does not depend on the dtype of x.

    Returns:
        The output, and the mask (bool, of the shape of x).

    Example:
        >>> import extensor as et
        >>> output, mask = et.dropout(et.ones(6), 0.5, rng=0)
        >>> output.tolist(), mask.tolist()
        ([2.0, 0.0, 0.0, 0.0, 2.0, 2.0], [True, False, False, False, True, True])
    """
    x, probability = as_floating("dropout", "x", x), _probability("dropout", p)
    mask = ExTensor(draws_at_least(as_generator("dropout", rng), x.shape, probability))
    return DropoutResult(kernels.dropout(x, mask, kept_scale(probability)), mask)


def kept_scale(probability: float) -> float:
    """By what the elements that are kept grow."""
    return 1 / (1 - probability) if probability < 1 else 0.0


def _grad_and_mask(grad_output: Any, mask: Any) -> tuple[ExTensor, ExTensor]:
    found = as_tensor("dropout_backward", "mask", mask)
    if found.dtype.kind != "b":
        raise TypeError(f"[dropout_backward] mask must be boolean, as dropout returns it, got {found.dtype}")
    (grad,) = as_grads("dropout_backward", grad_output, [found.shape, None], None)
    return grad, found


@backward_of(dropout, from_results=("mask",), takes_none=True)
def dropout_backward(
    grad_output: ExTensor | tuple[ExTensor | None, ...] | list[ExTensor | None], mask: ExTensor, p: float
) -> ExTensor:
    """Gradient of :func:`dropout`.   dx = dy / (1 - p) where mask else 0

    Args:
        grad_output: the gradient of the output; or a tuple of it and None, as the mask has no gradient.
        mask: the mask that :func:`dropout` returned.
        p: as given to :func:`dropout`.

    Example:
        >>> import extensor as et
        >>> et.dropout_backward(et.ones(3), et.tensor([True, False, True]), 0.5).tolist()
        [2.0, 0.0, 2.0]
    """
    grad, mask = _grad_and_mask(grad_output, mask)
    return kernels.dropout_backward(grad, mask, kept_scale(_probability("dropout_backward", p)))
