"""A layer for each loss, under PyTorch's names. All take ``reduction="mean" | "sum" | "none"``."""

from __future__ import annotations

from typing import Any

from ..checks import as_floating, as_tensor
from ..dtypes import FLOATING
from ..errors import describe
from ..ops import loss_classification, loss_metric, loss_regression
from ..ops.selection import where
from ..tensor import ExTensor
from .module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "FocalLoss", "HingeLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "MSELoss", "SmoothL1Loss", "TripletMarginLoss",
]  # fmt: skip


class _Loss(Module):
    """The reduction, checked when the loss is made."""

    _reductions: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in self._reductions:
            raise ValueError(
                f"[{type(self).__name__}] reduction must be one of {', '.join(self._reductions)}, got {describe(reduction)}"
            )
        self.reduction = reduction

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


def _weight(layer: str, name: str, value: Any) -> ExTensor | None:
    return None if value is None else as_floating(layer, name, value)


class MSELoss(_Loss):
    """(input - target)², see :func:`extensor.mean_squared_error`.

    Example:
        >>> import extensor as et
        >>> et.nn.MSELoss()(et.tensor([1.0, 3.0]), et.tensor([1.0, 1.0])).item()
        2.0
    """

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_regression.mean_squared_error(input, target, self.reduction)


class L1Loss(_Loss):
    """\\|input - target\\|, see :func:`extensor.mean_absolute_error`.

    Example:
        >>> import extensor as et
        >>> et.nn.L1Loss()(et.tensor([1.0, 3.0]), et.tensor([1.0, 1.0])).item()
        1.0
    """

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_regression.mean_absolute_error(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """Square within ``beta`` of the target, straight outside, see :func:`extensor.smooth_l1`.

    Example:
        >>> import extensor as et
        >>> et.nn.SmoothL1Loss()(et.tensor([3.0]), et.tensor([1.0])).item()
        1.5
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_regression.smooth_l1(input, target, self.beta, self.reduction)


class HuberLoss(_Loss):
    """Square within ``delta`` of the target, straight outside, see :func:`extensor.huber`.

    Example:
        >>> import extensor as et
        >>> et.nn.HuberLoss()(et.tensor([3.0]), et.tensor([1.0])).item()
        1.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_regression.huber(input, target, self.delta, self.reduction)


class BCELoss(_Loss):
    """Cross entropy of probabilities with targets from 0 to 1, see :func:`extensor.binary_cross_entropy`.

    Args:
        weight: a factor for each element.
        reduction: how the elements become one number.

    Example:
        >>> import extensor as et
        >>> round(et.nn.BCELoss()(et.tensor([0.5]), et.tensor([1.0])).item(), 4)
        0.6931
    """

    weight: ExTensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", _weight("BCELoss", "weight", weight))

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_classification.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Cross entropy of logits with targets from 0 to 1, see :func:`extensor.binary_cross_entropy_with_logits`.

    Args:
        weight: a factor for each element.
        reduction: how the elements become one number.
        pos_weight: a factor for positive targets.

    Example:
        >>> import extensor as et
        >>> round(et.nn.BCEWithLogitsLoss()(et.tensor([0.0]), et.tensor([1.0])).item(), 4)
        0.6931
    """

    weight: ExTensor | None
    pos_weight: ExTensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", _weight("BCEWithLogitsLoss", "weight", weight))
        self.register_buffer("pos_weight", _weight("BCEWithLogitsLoss", "pos_weight", pos_weight))

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_classification.binary_cross_entropy_with_logits(
            input, target, self.weight, self.pos_weight, self.reduction
        )


class CrossEntropyLoss(_Loss):
    """Cross entropy of logits with labels or distributions, see :func:`extensor.cross_entropy`.

    The classes are on axis 1, as PyTorch has them: (N, C) or (N, C, d1, ...); of a single sample (C,) on axis 0.

    Args:
        weight: a factor for each class.
        ignore_index: the label that does not count.
        reduction: how the samples become one number.
        label_smoothing: how much of a label is spread over all classes.

    Example:
        >>> import extensor as et
        >>> round(et.nn.CrossEntropyLoss()(et.zeros((2, 4)), et.tensor([0, 3])).item(), 4)
        1.3863
    """

    weight: ExTensor | None

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:  # fmt: skip
        super().__init__(reduction)
        self.register_buffer("weight", _weight("CrossEntropyLoss", "weight", weight))
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: ExTensor, target: Any) -> ExTensor:
        logits = as_floating("CrossEntropyLoss", "input", input)
        labels = as_tensor("CrossEntropyLoss", "target", target)
        return loss_classification.cross_entropy(
            logits,
            labels,
            axis=min(1, logits.ndim - 1),
            label_smoothing=self.label_smoothing,
            weight=self.weight,
            ignore_index=None if labels.dtype in FLOATING else self.ignore_index,
            reduction=self.reduction,
        )


class FocalLoss(_Loss):
    """Cross entropy of logits in which easy examples count less, see :func:`extensor.focal`.

    Example:
        >>> import extensor as et
        >>> round(et.nn.FocalLoss()(et.tensor([0.0]), et.tensor([1.0])).item(), 4)
        0.0433
    """

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.alpha, self.gamma = alpha, gamma

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_classification.focal(input, target, self.alpha, self.gamma, self.reduction)


class HingeLoss(_Loss):
    """max(0, 1 - input * target) with targets -1 and 1, see :func:`extensor.hinge`.

    Example:
        >>> import extensor as et
        >>> et.nn.HingeLoss()(et.tensor([0.5]), et.tensor([1.0])).item()
        0.5
    """

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_classification.hinge(input, target, self.reduction)


class KLDivLoss(_Loss):
    """target * (log(target) - input), where ``input`` holds *logarithms* of probabilities, as PyTorch has it.

    :func:`extensor.kl_divergence` takes probabilities and sums over the classes.

    Args:
        reduction: ``"mean"`` is over all elements; ``"batchmean"``, the divergence itself, over the first axis.
        log_target: whether the target holds logarithms too.

    Example:
        >>> import extensor as et
        >>> p = et.tensor([[0.5, 0.5]])
        >>> et.nn.KLDivLoss(reduction="batchmean")(p.log(), p).item()
        0.0
    """

    _reductions = ("mean", "batchmean", "sum", "none")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        log_q, target = as_floating("KLDivLoss", "input", input), as_floating("KLDivLoss", "target", target)
        if log_q.shape != target.shape:
            raise ValueError(f"[KLDivLoss] input has shape {log_q.shape} but target has shape {target.shape}")
        p = target.exp() if self.log_target else target
        log_p = target if self.log_target else where(target > 0, target, 1.0).log()  # 0 log 0 is 0
        each = where(p > 0, p * (log_p - log_q), 0.0)
        if self.reduction == "none":
            return each
        if self.reduction == "mean":
            return each.mean()
        return each.sum() if self.reduction == "sum" else each.sum() / each.shape[0]


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), see :func:`extensor.triplet_margin`.

    Example:
        >>> import extensor as et
        >>> a, far = et.zeros((1, 2)), et.full((1, 2), 9.0)
        >>> et.nn.TripletMarginLoss()(a, a, far).item()
        0.0
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:  # fmt: skip
        super().__init__(reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: ExTensor, positive: ExTensor, negative: ExTensor) -> ExTensor:
        return loss_metric.triplet_margin(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """1 - cos for pairs that belong together (target 1), max(0, cos - margin) for others (target -1).

    See :func:`extensor.cosine_embedding`.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[1.0, 0.0]])
        >>> et.nn.CosineEmbeddingLoss()(x, x, et.tensor([-1.0])).item()
        1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: ExTensor, input2: ExTensor, target: ExTensor) -> ExTensor:
        return loss_metric.cosine_embedding(input1, input2, target, self.margin, self.reduction)
