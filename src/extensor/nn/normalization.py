"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import init
from ..checks import as_bool, as_number, as_shape
from ..dtypes import HALF, float32, int64
from ..ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from ..tensor import ExTensor, Shape
from ._settings import positive
from .module import Module
from .parameter import Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "RMSNorm",
]


def _scale_and_shift(shape: Shape, scale: bool, shift: bool, dtype: Any) -> tuple[Any, Any]:
    """Weights of 1 and biases of 0, or None."""
    return (
        Parameter(init.ones(shape, dtype=dtype)) if scale else None,
        Parameter(init.zeros(shape, dtype=dtype)) if shift else None,
    )


def _detached(value: ExTensor | None) -> ExTensor | None:
    """Without history, or every step would hold on to all before it."""
    return None if value is None else value.detach()


class _BatchNorm(Module):
    running_mean: ExTensor | None
    running_var: ExTensor | None
    num_batches_tracked: ExTensor | None
    _axes: tuple[int, ...]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, *, dtype: Any = float32,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.num_features = positive(name, "num_features", num_features)
        self.eps = as_number(name, "eps", eps)
        self.momentum = None if momentum is None else as_number(name, "momentum", momentum)
        affine = as_bool(name, "affine", affine)
        self.weight, self.bias = _scale_and_shift((self.num_features,), affine, affine, dtype)
        tracked = as_bool(name, "track_running_stats", track_running_stats)
        for buffer, value in (
            ("running_mean", init.zeros(self.num_features, dtype=dtype)),
            ("running_var", init.ones(self.num_features, dtype=dtype)),
            ("num_batches_tracked", init.zeros((), dtype=int64)),
        ):
            self.register_buffer(buffer, value if tracked else None)

    def forward(self, x: ExTensor) -> ExTensor:
        name = type(self).__name__
        if x.ndim not in self._axes:
            wanted = " or ".join(map(str, self._axes))
            raise ValueError(f"[{name}] x must have {wanted} axes, got shape {x.shape}")
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"[{name}] x has {x.shape[1]} channels but the layer has {self.num_features} (x: {x.shape})"
            )
        count = self.num_batches_tracked
        if not self.training or count is None:  # nothing to keep
            on_batch = self.training or self.running_mean is None
            statistics = (self.running_mean, self.running_var, on_batch)
            return batch_norm(x, self.weight, self.bias, *statistics, eps=self.eps).output
        self.num_batches_tracked = count = count + 1
        momentum = (
            1 / int(count) if self.momentum is None else self.momentum
        )  # None: the mean over all batches
        output, mean, var = batch_norm(
            x, self.weight, self.bias, self.running_mean, self.running_var, True, momentum, self.eps
        )
        self.running_mean, self.running_var = _detached(mean), _detached(var)
        return output

    def extra_repr(self) -> str:
        shown = (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.weight is not None}"
        )
        return f"{shown}, track_running_stats={self.running_mean is not None}"


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L), see :func:`extensor.batch_norm`.

    In training the statistics of the batch are used, and running ones kept for evaluation.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the weight of a batch in the running statistics; None: the mean over all batches.
        affine: whether there are a weight and a bias.
        track_running_stats: whether running statistics are kept; without them evaluation uses the batch too.
        dtype: of the parameters and statistics.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.BatchNorm1d(2)
        >>> layer(et.tensor([[1.0, 2.0], [3.0, 4.0]])).shape, layer.num_batches_tracked.item()
        ((2, 2), 1)
    """

    _axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (N, C, H, W); arguments as :class:`BatchNorm1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.BatchNorm2d(3)(et.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    _axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W); arguments as :class:`BatchNorm1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.BatchNorm3d(3)(et.ones((2, 3, 2, 4, 4))).shape
        (2, 3, 2, 4, 4)
    """

    _axes = (5,)


class LayerNorm(Module):
    """Normalisation over the last axes, see :func:`extensor.layer_norm`.

    Args:
        normalized_shape: the lengths of the axes that are normalised together.
        eps: added to the variance.
        elementwise_affine: whether there is a weight.
        bias: whether there is a bias too.
        dtype: of the parameters.

    Example:
        >>> import extensor as et
        >>> et.nn.LayerNorm(4)(et.ones((2, 3, 4))).shape
        (2, 3, 4)
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        *, dtype: Any = float32,
    ) -> None:  # fmt: skip
        self.normalized_shape = as_shape("LayerNorm", "normalized_shape", normalized_shape)
        self.eps = as_number("LayerNorm", "eps", eps)
        affine = as_bool("LayerNorm", "elementwise_affine", elementwise_affine)
        shift = as_bool("LayerNorm", "bias", bias)
        self.weight, self.bias = _scale_and_shift(self.normalized_shape, affine, affine and shift, dtype)

    def forward(self, x: ExTensor) -> ExTensor:
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class RMSNorm(Module):
    """Division by the root mean square of the last axes, see :func:`extensor.rms_norm`.

    Args:
        normalized_shape: the lengths of the axes that are normalised together.
        eps: added to the mean square; None: the distance from 1 to the next number of the input's dtype, float32 at least.
        elementwise_affine: whether there is a weight.
        dtype: of the weight.

    Example:
        >>> import extensor as et
        >>> et.nn.RMSNorm(4)(et.full((2, 4), 3.0)).tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, *, dtype: Any = float32
    ) -> None:  # fmt: skip
        self.normalized_shape = as_shape("RMSNorm", "normalized_shape", normalized_shape)
        self.eps = None if eps is None else as_number("RMSNorm", "eps", eps)
        affine = as_bool("RMSNorm", "elementwise_affine", elementwise_affine)
        self.weight, _ = _scale_and_shift(self.normalized_shape, affine, False, dtype)

    def forward(self, x: ExTensor) -> ExTensor:
        eps = self.eps
        if eps is None:
            eps = float(np.finfo(float32 if x.dtype in HALF else x.dtype).eps)
        return rms_norm(x, self.normalized_shape, self.weight, eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class GroupNorm(Module):
    """Normalisation over groups of channels of (N, C, ...), see :func:`extensor.group_norm`.

    Args:
        num_groups: into how many groups the channels are divided.
        num_channels: C.
        eps: added to the variance.
        affine: whether there are a weight and a bias.
        dtype: of the parameters.

    Example:
        >>> import extensor as et
        >>> et.nn.GroupNorm(2, 4)(et.ones((1, 4, 3, 3))).shape
        (1, 4, 3, 3)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, dtype: Any = float32
    ) -> None:  # fmt: skip
        self.num_groups = positive("GroupNorm", "num_groups", num_groups)
        self.num_channels = positive("GroupNorm", "num_channels", num_channels)
        if self.num_channels % self.num_groups:
            raise ValueError(
                f"[GroupNorm] num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.eps = as_number("GroupNorm", "eps", eps)
        affine = as_bool("GroupNorm", "affine", affine)
        self.weight, self.bias = _scale_and_shift((self.num_channels,), affine, affine, dtype)

    def forward(self, x: ExTensor) -> ExTensor:
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.weight is not None}"


class _InstanceNorm(Module):
    _axes = "H, W"

    def __init__(
        self, num_features: int, eps: float = 1e-5, *, affine: bool = False, dtype: Any = float32
    ) -> None:
        name = type(self).__name__
        self.num_features = positive(name, "num_features", num_features)
        self.eps = as_number(name, "eps", eps)
        affine = as_bool(name, "affine", affine)
        self.weight, self.bias = _scale_and_shift((self.num_features,), affine, affine, dtype)

    def forward(self, x: ExTensor) -> ExTensor:
        count = self._axes.count(",") + 1
        if x.ndim == count + 1 and x.shape[0] == self.num_features:  # one example
            return instance_norm(x.reshape((1, *x.shape)), self.weight, self.bias, self.eps)[0]
        if x.ndim != count + 2 or x.shape[1] != self.num_features:
            raise ValueError(
                f"[{type(self).__name__}] x must have shape (N, {self.num_features}, {self._axes}), got {x.shape}"
            )
        return instance_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, affine={self.weight is not None}"


class InstanceNorm1d(_InstanceNorm):
    """Normalisation of every channel of every sequence (N, C, L); arguments as :class:`InstanceNorm2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.InstanceNorm1d(3)(et.ones((2, 3, 4))).shape
        (2, 3, 4)
    """

    _axes = "L"


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of every channel of every image (N, C, H, W), see :func:`extensor.instance_norm`.

    Args:
        num_features: C.
        eps: added to the variance.
        affine: whether there are a weight and a bias.
        dtype: of the parameters.

    Example:
        >>> import extensor as et
        >>> et.nn.InstanceNorm2d(3)(et.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """


class InstanceNorm3d(_InstanceNorm):
    """Normalisation of every channel of every volume (N, C, D, H, W); arguments as :class:`InstanceNorm2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.InstanceNorm3d(3)(et.ones((2, 3, 2, 4, 4))).shape
        (2, 3, 2, 4, 4)
    """

    _axes = "D, H, W"
