"""Pooling layers. All take single examples too, without an axis for the batch."""

from __future__ import annotations

from typing import Any

from ..checks import as_bool
from ..errors import describe
from ..ops._spatial import as_pair
from ..ops.creation import zeros
from ..ops.pooling import adaptive_avg_pool2d, avg_pool2d, max_pool2d
from ..ops.scattering import scatter
from ..ops.volume_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    adaptive_max_pool_indices,
    avg_pool1d,
    avg_pool3d,
    max_pool1d,
    max_pool3d,
    max_pool_indices,
)
from ..tensor import ExTensor
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _Pooling(Module):
    """What pooling layers share: single examples as a batch of one."""

    _directions = 2

    def _check_windows(self, kernel_size: Any, stride: Any, padding: Any) -> None:
        name, count = type(self).__name__, self._directions
        window = as_pair(name, "kernel_size", kernel_size, 1, count)
        if stride is not None:
            as_pair(name, "stride", stride, 1, count)
        pads = as_pair(name, "padding", padding, 0, count)
        if any(2 * p > k for p, k in zip(pads, window)):
            raise ValueError(f"[{name}] padding {pads} must be at most half of kernel_size {window}")
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def _pooled(self, function: Any, x: ExTensor, *options: Any, **named: Any) -> ExTensor:
        if x.ndim != self._directions + 1:
            y: ExTensor = function(x, *options, **named)
            return y
        y = function(x.reshape((1, *x.shape)), *options, **named)
        return y[0]


class _MaxPool(_Pooling):
    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self._check_windows(kernel_size, stride, padding)
        as_pair(name, "dilation", dilation, 1, self._directions)
        self.dilation = dilation
        self.return_indices = as_bool(name, "return_indices", return_indices)
        self.ceil_mode = as_bool(name, "ceil_mode", ceil_mode)

    def forward(self, x: ExTensor) -> Any:
        options = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        y = self._pooled(_MAX[self._directions], x, *options, dilation=self.dilation)
        if not self.return_indices:
            return y
        return y, self._pooled(max_pool_indices, x.detach(), *options, dilation=self.dilation)

    def extra_repr(self) -> str:
        shown = f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"
        return shown if self.dilation == 1 else f"{shown}, dilation={self.dilation}"


_MAX = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_AVG = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
_ADAPTIVE_AVG = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_ADAPTIVE_MAX = {1: adaptive_max_pool1d, 2: adaptive_max_pool2d, 3: adaptive_max_pool3d}


class MaxPool1d(_MaxPool):
    """The largest element of every window of sequences (N, C, L), see :func:`extensor.max_pool1d`; arguments as :class:`MaxPool2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.MaxPool1d(2)(et.tensor([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
        [[[3.0, 2.0]]]
    """

    _directions = 1


class MaxPool2d(_MaxPool):
    """The largest element of every window, see :func:`extensor.max_pool2d`.

    Args:
        kernel_size: height and width of the window; one number for both.
        stride: the steps of the window; its size without it.
        padding: added on all sides; never the largest.
        dilation: the distance between two elements of a window.
        return_indices: whether the places of the maxima are returned as well, for :class:`MaxUnpool2d`.
        ceil_mode: keep the windows that stick out at the end.

    Example:
        >>> import extensor as et
        >>> et.nn.MaxPool2d(2)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)
    """


class MaxPool3d(_MaxPool):
    """The largest element of every window of volumes, see :func:`extensor.max_pool3d`; arguments as :class:`MaxPool2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.MaxPool3d(2)(et.ones((1, 3, 4, 6, 8))).shape
        (1, 3, 2, 3, 4)
    """

    _directions = 3


class _AvgPool(_Pooling):
    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self._check_windows(kernel_size, stride, padding)
        self.ceil_mode = as_bool(name, "ceil_mode", ceil_mode)
        self.count_include_pad = as_bool(name, "count_include_pad", count_include_pad)

    def forward(self, x: ExTensor) -> ExTensor:
        return self._pooled(
            _AVG[self._directions], x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of every window of sequences (N, C, L), see :func:`extensor.avg_pool1d`; arguments as :class:`AvgPool2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.AvgPool1d(2)(et.tensor([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
        [[[2.0, 1.0]]]
    """

    _directions = 1


class AvgPool2d(_AvgPool):
    """The mean of every window, see :func:`extensor.avg_pool2d`.

    Args:
        kernel_size: height and width of the window; one number for both.
        stride: the steps of the window; its size without it.
        padding: zeros added on all sides.
        ceil_mode: keep the windows that stick out at the end.
        count_include_pad: whether the padding counts in the mean.

    Example:
        >>> import extensor as et
        >>> et.nn.AvgPool2d(2)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)
    """


class AvgPool3d(_AvgPool):
    """The mean of every window of volumes, see :func:`extensor.avg_pool3d`; arguments as :class:`AvgPool2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.AvgPool3d(2)(et.ones((1, 3, 4, 6, 8))).shape
        (1, 3, 2, 3, 4)
    """

    _directions = 3


class _Adaptive(_Pooling):
    def __init__(self, output_size: Any) -> None:
        name, count = type(self).__name__, self._directions
        sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
        if len(sizes) != count:
            wanted = "a pair" if count == 2 else f"{count} of them"
            raise ValueError(f"[{name}] output_size must be an int or {wanted}, got {describe(output_size)}")
        as_pair(name, "output_size", [1 if n is None else n for n in sizes], 1, count)
        self.output_size = output_size

    def forward(self, x: ExTensor) -> Any:
        return self._pooled(_ADAPTIVE_AVG[self._directions], x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of as many windows as the output has places, see :func:`extensor.adaptive_avg_pool1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveAvgPool1d(2)(et.ones((1, 3, 8))).shape
        (1, 3, 2)
    """

    _directions = 1


class AdaptiveAvgPool2d(_Adaptive):
    """Means of as many windows as the output has places, see :func:`extensor.adaptive_avg_pool2d`; 1 is the global mean.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveAvgPool2d(1)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 1, 1)
    """


class AdaptiveAvgPool3d(_Adaptive):
    """Means of as many windows as the output has places, see :func:`extensor.adaptive_avg_pool3d`.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveAvgPool3d((1, None, 2))(et.ones((1, 3, 4, 5, 6))).shape
        (1, 3, 1, 5, 2)
    """

    _directions = 3


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = as_bool(type(self).__name__, "return_indices", return_indices)

    def forward(self, x: ExTensor) -> Any:
        y = self._pooled(_ADAPTIVE_MAX[self._directions], x, self.output_size)
        if not self.return_indices:
            return y
        return y, self._pooled(adaptive_max_pool_indices, x.detach(), self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest elements of as many windows as the output has places, see :func:`extensor.adaptive_max_pool1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveMaxPool1d(2)(et.tensor([[[1.0, 2.0, 6.0]]])).tolist()
        [[[2.0, 6.0]]]
    """

    _directions = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest elements of as many windows as the output has places, see :func:`extensor.adaptive_max_pool2d`.

    Args:
        output_size: height and width of the output: an int, or a pair; None keeps that of the input.
        return_indices: whether the places of the maxima are returned as well.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveMaxPool2d(2)(et.ones((1, 3, 8, 8))).shape
        (1, 3, 2, 2)
    """


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest elements of as many windows as the output has places, see :func:`extensor.adaptive_max_pool3d`.

    Example:
        >>> import extensor as et
        >>> et.nn.AdaptiveMaxPool3d(2)(et.ones((1, 3, 4, 5, 6))).shape
        (1, 3, 2, 2, 2)
    """

    _directions = 3


class _Unpool(_Pooling):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self._check_windows(kernel_size, stride, padding)

    def forward(self, x: ExTensor, indices: ExTensor, output_size: Any = None) -> ExTensor:
        """The maxima at their places, 0 elsewhere.

        Args:
            x: what the pooling returned.
            indices: the places it returned with ``return_indices=True``.
            output_size: the size of its input; without it the smallest that gives this output.
        """
        name, count = type(self).__name__, self._directions
        if x.ndim == count + 1:
            return self.forward(x[None], indices[None], output_size)[0]
        if x.ndim != count + 2 or indices.shape != x.shape:
            raise ValueError(
                f"[{name}] x and indices must have one shape of {count + 2} axes, got {x.shape} and {indices.shape}"
            )
        window = as_pair(name, "kernel_size", self.kernel_size, 1, count)
        steps = window if self.stride is None else as_pair(name, "stride", self.stride, 1, count)
        pads = as_pair(name, "padding", self.padding, 0, count)
        size = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], steps, pads, window))
        if output_size is not None:
            size = tuple(output_size)[-count:]
        whole = 1
        for n in size:
            whole *= n
        flat = (*x.shape[:2], -1)
        places = indices.reshape(flat) if indices.size else indices.reshape((*x.shape[:2], 0))
        spread = scatter(zeros((*x.shape[:2], whole), x.dtype), 2, places, x.reshape(places.shape))
        return spread.reshape((*x.shape[:2], *size))

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class MaxUnpool1d(_Unpool):
    """The inverse of :class:`MaxPool1d` with ``return_indices=True``: maxima at their places, 0 elsewhere.

    Example:
        >>> import extensor as et
        >>> y, places = et.nn.MaxPool1d(2, return_indices=True)(et.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
        >>> et.nn.MaxUnpool1d(2)(y, places).tolist()
        [[[0.0, 3.0, 2.0, 0.0]]]
    """

    _directions = 1


class MaxUnpool2d(_Unpool):
    """The inverse of :class:`MaxPool2d` with ``return_indices=True``: maxima at their places, 0 elsewhere.

    Example:
        >>> import extensor as et
        >>> y, places = et.nn.MaxPool2d(2, return_indices=True)(et.tensor([[[[1.0, 3.0], [2.0, 0.0]]]]))
        >>> et.nn.MaxUnpool2d(2)(y, places).tolist()
        [[[[0.0, 3.0], [0.0, 0.0]]]]
    """


class MaxUnpool3d(_Unpool):
    """The inverse of :class:`MaxPool3d` with ``return_indices=True``: maxima at their places, 0 elsewhere.

    Example:
        >>> import extensor as et
        >>> y, places = et.nn.MaxPool3d(2, return_indices=True)(et.ones((1, 1, 2, 2, 2)))
        >>> et.nn.MaxUnpool3d(2)(y, places).sum().item()
        1.0
    """

    _directions = 3
