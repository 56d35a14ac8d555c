"""Pooling layers."""

from __future__ import annotations

from typing import Any

from ..checks import as_bool
from ..ops._spatial import grid_of, pooling_of
from ..ops.pooling import adaptive_avg_pool2d, avg_pool2d, max_pool2d
from ..tensor import ExTensor
from .module import Module

__all__ = ["AdaptiveAvgPool2d", "AvgPool2d", "MaxPool2d"]


class MaxPool2d(Module):
    """The largest element of every window, see :func:`extensor.max_pool2d`.

    Args:
        kernel_size: height and width of the window; one number for both.
        stride: the steps of the window; its size without it.
        padding: added on all sides; never the largest.
        ceil_mode: keep the windows that stick out at the end.

    Example:
        >>> import extensor as et
        >>> et.nn.MaxPool2d(2)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, *, ceil_mode: bool = False
    ) -> None:
        pooling_of("MaxPool2d", kernel_size, stride, padding)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode = as_bool("MaxPool2d", "ceil_mode", ceil_mode)

    def forward(self, x: ExTensor) -> ExTensor:
        return max_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of every window, see :func:`extensor.avg_pool2d`.

    Args:
        kernel_size, stride, padding, ceil_mode: as in :class:`MaxPool2d`; the padding is 0.
        count_include_pad: whether the padding counts in the mean.

    Example:
        >>> import extensor as et
        >>> et.nn.AvgPool2d(2)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        pooling_of("AvgPool2d", kernel_size, stride, padding)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode = as_bool("AvgPool2d", "ceil_mode", ceil_mode)
        self.count_include_pad = as_bool("AvgPool2d", "count_include_pad", count_include_pad)

    def forward(self, x: ExTensor) -> ExTensor:
        return avg_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Means of as many windows as the output has places, see :func:`extensor.adaptive_avg_pool2d`; 1 is the global mean.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveAvgPool2d(1)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 1, 1)
    """

    def __init__(self, output_size: Any) -> None:
        grid_of("AdaptiveAvgPool2d", output_size, image=(1, 1))
        self.output_size = output_size

    def forward(self, x: ExTensor) -> ExTensor:
        return adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
