"""Losses of distances: between distributions, and between embeddings. Every tensor but the labels has a gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import as_axis, as_bool, as_grad, check_needs
from ..graph import backward_of, differentiable
from ..kernels import first_outside
from ..kernels.reference import loss_metric as kernels
from ..tensor import ExTensor
from ._reduce_loss import (
    as_finite,
    as_positive,
    as_reduction,
    as_signs,
    loss_shape,
    matched,
    refuse,
)
from .casting import cast_like

__all__ = [
    "kl_divergence", "kl_divergence_backward", "triplet_margin", "triplet_margin_backward",
    "cosine_embedding", "cosine_embedding_backward",
    "CosineEmbeddingGradients", "KLDivergenceGradients", "TripletMarginGradients",
]  # fmt: skip


class KLDivergenceGradients(NamedTuple):
    """The gradients of :func:`kl_divergence`; None where ``needs`` says that it is not wanted."""

    grad_p: ExTensor | None
    grad_q: ExTensor | None


def _distributions(function: str, p: Any, q: Any, axis: Any) -> tuple[ExTensor, ExTensor, int]:
    p, q = matched(function, p=p, q=q)
    axis = as_axis(function, axis, p.ndim)
    refuse(function, "p", p, first_outside(p, 0, None, None), "not be negative")
    refuse(function, "q", q, first_outside(q, 0, None, None), "not be negative")
    return p, q, axis


@differentiable
def kl_divergence(p: ExTensor, q: ExTensor, axis: int = -1, reduction: str = "mean") -> ExTensor:
    """How far the distribution ``q`` is from ``p``.   l = sum_i p_i (log p_i - log q_i) over ``axis``

    ``0 log 0`` is 0; a q of 0 where p is not gives inf.

    Args:
        p, q: probabilities of the same shape; along ``axis`` they should add up to 1, which is not checked.
        axis: the axis of the distributions.
        reduction: ``"mean"`` divides the sum of all by the number of distributions (not of elements);
            ``"sum"``; or ``"none"`` for one divergence per distribution, the shape without ``axis``.

    Example:
        >>> import extensor as et
        >>> round(et.kl_divergence(et.tensor([0.5, 0.5]), et.tensor([0.25, 0.75])).item(), 4)
        0.1438
    """
    p, q, axis = _distributions("kl_divergence", p, q, axis)
    return kernels.kl_divergence(p, q, axis, as_reduction("kl_divergence", reduction))


@backward_of(kl_divergence, wrt=("p", "q"))
def kl_divergence_backward(
    grad_output: ExTensor,
    p: ExTensor,
    q: ExTensor,
    axis: int = -1,
    reduction: str = "mean",
    *,
    needs: tuple[bool, bool] = (True, True),
) -> KLDivergenceGradients:
    """Gradients of :func:`kl_divergence`; both 0 where p is 0.   dp = dl * (log p - log q + 1),  dq = -dl * p / q

    Args:
        grad_output: the gradient of the loss, of the loss's shape.
        p, q, axis, reduction: as in the forward.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> p, q = et.tensor([0.5, 0.5]), et.tensor([0.25, 0.75])
        >>> [round(x, 4) for x in et.kl_divergence_backward(et.tensor(1.0), p, q).grad_q.tolist()]
        [-2.0, -0.6667]
    """
    check_needs("kl_divergence_backward", needs)
    function = "kl_divergence_backward"
    p, q, axis = _distributions(function, p, q, axis)
    reduction = as_reduction(function, reduction)
    grad = as_grad(function, grad_output, loss_shape(p.shape[:axis] + p.shape[axis + 1 :], reduction))
    grad_p, grad_q = kernels.kl_divergence_backward(grad, p, q, axis, reduction, needs)
    return KLDivergenceGradients(cast_like(grad_p, p), cast_like(grad_q, q))


class TripletMarginGradients(NamedTuple):
    """The gradients of :func:`triplet_margin`; None where ``needs`` says that it is not wanted."""

    grad_anchor: ExTensor | None
    grad_positive: ExTensor | None
    grad_negative: ExTensor | None


def _triplet_inputs(
    function: str, anchor: Any, positive: Any, negative: Any, margin: Any, p: Any, eps: Any, swap: Any
) -> tuple[Any, ...]:
    """The arguments of the triplet kernels, but for the reduction."""
    tensors = matched(function, anchor=anchor, positive=positive, negative=negative)
    if not tensors[0].ndim:
        raise ValueError(
            f"[{function}] anchor must have at least one axis, the last is the embedding; got shape ()"
        )
    margin = as_positive(function, "margin", as_finite(function, "margin", margin))
    p, eps = as_positive(function, "p", p), as_finite(function, "eps", eps)
    return (*tensors, margin, p, eps, as_bool(function, "swap", swap))


@differentiable
def triplet_margin(
    anchor: ExTensor,
    positive: ExTensor,
    negative: ExTensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> ExTensor:
    """The positive should be nearer to the anchor than the negative, by ``margin``.

    l = max(0, margin + d(anchor, positive) - d(anchor, negative)),  d(x, y) = norm_p(x - y + eps) over the last axis

    Args:
        anchor, positive, negative: embeddings of the same shape, along the last axis.
        margin: by how much, above 0.
        p: the norm of the distances, above 0; ``float("inf")`` is the largest difference.
        eps: added to every difference, so that a distance is rarely 0.
        swap: use the smaller of d(anchor, negative) and d(positive, negative).
        reduction: ``"mean"`` or ``"sum"`` over the triplets, or ``"none"`` for one loss per triplet.

    Example:
        >>> import extensor as et
        >>> anchor, positive, negative = et.tensor([0.0, 0.0]), et.tensor([3.0, 4.0]), et.tensor([0.0, 2.0])
        >>> round(et.triplet_margin(anchor, positive, negative).item(), 4)
        4.0
    """
    inputs = _triplet_inputs("triplet_margin", anchor, positive, negative, margin, p, eps, swap)
    return kernels.triplet_margin(*inputs, as_reduction("triplet_margin", reduction))


@backward_of(triplet_margin, wrt=("anchor", "positive", "negative"))
def triplet_margin_backward(
    grad_output: ExTensor,
    anchor: ExTensor,
    positive: ExTensor,
    negative: ExTensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    *,
    needs: tuple[bool, bool, bool] = (True, True, True),
) -> TripletMarginGradients:
    """Gradients of :func:`triplet_margin`.   d norm_p(x) / dx = sign(x) (abs(x) / norm_p(x))**(p-1), 0 where x is 0

    On the margin itself the gradient passes. Two equal distances of ``swap`` share it, as do the largest differences
    if p is infinite.

    Args:
        grad_output: the gradient of the loss, of the loss's shape.
        anchor, positive, negative, margin, p, eps, swap, reduction: as in the forward.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> anchor, positive, negative = et.tensor([0.0, 0.0]), et.tensor([3.0, 4.0]), et.tensor([0.0, 2.0])
        >>> grads = et.triplet_margin_backward(et.tensor(1.0), anchor, positive, negative, eps=0)
        >>> [round(x, 4) for x in grads.grad_positive.tolist()]
        [0.6, 0.8]
    """
    check_needs("triplet_margin_backward", needs, 3)
    function = "triplet_margin_backward"
    inputs = _triplet_inputs(function, anchor, positive, negative, margin, p, eps, swap)
    reduction = as_reduction(function, reduction)
    grad = as_grad(function, grad_output, loss_shape(inputs[0].shape[:-1], reduction))
    grads = kernels.triplet_margin_backward(grad, *inputs, reduction, needs)
    return TripletMarginGradients(*map(cast_like, grads, inputs))


class CosineEmbeddingGradients(NamedTuple):
    """The gradients of :func:`cosine_embedding`; None where ``needs`` says that it is not wanted."""

    grad_x1: ExTensor | None
    grad_x2: ExTensor | None


def _cosine_inputs(function: str, x1: Any, x2: Any, targets: Any, margin: Any) -> tuple[Any, ...]:
    """The arguments of the cosine kernels, but for the reduction."""
    x1, x2 = matched(function, x1=x1, x2=x2)
    if not x1.ndim:
        raise ValueError(
            f"[{function}] x1 must have at least one axis, the last is the embedding; got shape ()"
        )
    return x1, x2, as_signs(function, targets, x1.shape[:-1], x1), as_finite(function, "margin", margin)


@differentiable
def cosine_embedding(
    x1: ExTensor, x2: ExTensor, targets: ExTensor, margin: float = 0.0, reduction: str = "mean"
) -> ExTensor:
    """Rows with the label 1 should point the same way, rows with -1 should not.

    l = 1 - c if t == 1 else max(0, c - margin),  c = x1·x2 / sqrt((x1·x1 + 1e-12) (x2·x2 + 1e-12))

    Args:
        x1, x2: embeddings of the same shape, along the last axis.
        targets: labels -1 and 1, one per row: the shape of x1 without its last axis; integers will do.
        margin: the cosine that rows with the label -1 may have.
        reduction: ``"mean"`` or ``"sum"`` over the rows, or ``"none"`` for one loss per row.

    Example:
        >>> import extensor as et
        >>> x1, x2 = et.tensor([[1.0, 0.0], [1.0, 0.0]]), et.tensor([[0.0, 2.0], [2.0, 0.0]])
        >>> et.cosine_embedding(x1, x2, et.tensor([1, -1]), reduction="none").tolist()
        [1.0, 1.0]
    """
    inputs = _cosine_inputs("cosine_embedding", x1, x2, targets, margin)
    return kernels.cosine_embedding(*inputs, as_reduction("cosine_embedding", reduction))


@backward_of(cosine_embedding, wrt=("x1", "x2"))
def cosine_embedding_backward(
    grad_output: ExTensor,
    x1: ExTensor,
    x2: ExTensor,
    targets: ExTensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    needs: tuple[bool, bool] = (True, True),
) -> CosineEmbeddingGradients:
    """Gradients of :func:`cosine_embedding`.   dc/dx1 = x2 / (|x1| |x2|) - c x1 / |x1|**2, and x2 likewise

    Where ``c == margin`` the gradient passes.

    Args:
        grad_output: the gradient of the loss, of the loss's shape.
        x1, x2, targets, margin, reduction: as in the forward.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> x1, x2 = et.tensor([1.0, 0.0]), et.tensor([0.0, 2.0])
        >>> et.cosine_embedding_backward(et.tensor(1.0), x1, x2, -1).grad_x1.tolist()
        [0.0, 1.0]
    """
    check_needs("cosine_embedding_backward", needs)
    function = "cosine_embedding_backward"
    inputs = _cosine_inputs(function, x1, x2, targets, margin)
    reduction = as_reduction(function, reduction)
    grad = as_grad(function, grad_output, loss_shape(inputs[0].shape[:-1], reduction))
    grads = kernels.cosine_embedding_backward(grad, *inputs, reduction, needs)
    return CosineEmbeddingGradients(*map(cast_like, grads, inputs))
