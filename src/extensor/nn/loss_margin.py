"""Layers of the losses with margins and of the likelihoods, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from ..ops import loss_ctc, loss_likelihood, loss_margin
from ..tensor import ExTensor
from .loss import _Loss, _weight

__all__ = [
    "CTCLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SoftMarginLoss",
]  # fmt: skip


class NLLLoss(_Loss):
    """Minus the log-probability of each label, see :func:`extensor.nll`. Classes stand along axis 1, or alone.

    Args:
        weight: a factor for each class.
        ignore_index: a label that does not count.

    Example:
        >>> import extensor as et
        >>> et.nn.NLLLoss()(et.tensor([[-0.5, -2.0]]), et.tensor([0])).item()
        0.5
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _weight("NLLLoss", "weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        axis = 0 if input.ndim == 1 else 1
        return loss_likelihood.nll(input, target, axis, self.weight, self.ignore_index, self.reduction)


class CTCLoss(_Loss):
    """The loss of sequences whose labels are not aligned with them, see :func:`extensor.ctc`.

    Example:
        >>> import extensor as et
        >>> x = et.log_softmax(et.zeros((3, 1, 2)))
        >>> round(et.nn.CTCLoss()(x, et.tensor([[1]]), [3], [1]).item(), 4)
        0.2877
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: ExTensor, targets: ExTensor, input_lengths: Any, target_lengths: Any
    ) -> ExTensor:
        return loss_ctc.ctc(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of normal distributions, see :func:`extensor.gaussian_nll`.

    Example:
        >>> import extensor as et
        >>> et.nn.GaussianNLLLoss()(et.tensor([1.0]), et.tensor([3.0]), et.tensor([1.0])).item()
        2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: ExTensor, target: ExTensor, var: ExTensor) -> ExTensor:
        if var.shape != input.shape:  # one variance for a row, or for all
            var = var.reshape((*var.shape, 1)) if var.shape == input.shape[:-1] else var
            var = var.broadcast_to(input.shape)
        return loss_likelihood.gaussian_nll(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts, see :func:`extensor.poisson_nll`.

    Example:
        >>> import extensor as et
        >>> et.nn.PoissonNLLLoss()(et.tensor([0.0]), et.tensor([2.0])).item()
        1.0
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_likelihood.poisson_nll(input, target, self.log_input, self.full, self.eps, self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), see :func:`extensor.soft_margin`.

    Example:
        >>> import extensor as et
        >>> round(et.nn.SoftMarginLoss()(et.tensor([0.0]), et.tensor([1.0])).item(), 4)
        0.6931
    """

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_margin.soft_margin(input, target, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Distances of pairs that belong together or do not, see :func:`extensor.hinge_embedding`.

    Example:
        >>> import extensor as et
        >>> et.nn.HingeEmbeddingLoss()(et.tensor([0.25]), et.tensor([-1.0])).item()
        0.75
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_margin.hinge_embedding(input, target, self.margin, self.reduction)


class MarginRankingLoss(_Loss):
    """Which of two scores should be larger, see :func:`extensor.margin_ranking`.

    Example:
        >>> import extensor as et
        >>> et.nn.MarginRankingLoss()(et.tensor([1.0]), et.tensor([3.0]), et.tensor([1.0])).item()
        2.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: ExTensor, input2: ExTensor, target: ExTensor) -> ExTensor:
        return loss_margin.margin_ranking(input1, input2, target, self.margin, self.reduction)


class MultiMarginLoss(_Loss):
    """Hinge loss of several classes, see :func:`extensor.multi_margin`.

    Example:
        >>> import extensor as et
        >>> et.nn.MultiMarginLoss()(et.tensor([[0.5, 0.0]]), et.tensor([0])).item()
        0.25
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.p, self.margin = p, margin
        self.weight = _weight("MultiMarginLoss", "weight", weight)

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_margin.multi_margin(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of lists of labels, see :func:`extensor.multilabel_margin`.

    Example:
        >>> import extensor as et
        >>> et.nn.MultiLabelMarginLoss()(et.tensor([[0.5, 0.0]]), et.tensor([[0, -1]])).item()
        0.25
    """

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_margin.multilabel_margin(input, target, self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """Binary cross-entropy of every class, see :func:`extensor.multilabel_soft_margin`.

    Example:
        >>> import extensor as et
        >>> round(et.nn.MultiLabelSoftMarginLoss()(et.zeros((1, 2)), et.ones((1, 2))).item(), 4)
        0.6931
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _weight("MultiLabelSoftMarginLoss", "weight", weight)

    def forward(self, input: ExTensor, target: ExTensor) -> ExTensor:
        return loss_margin.multilabel_soft_margin(input, target, self.weight, self.reduction)
