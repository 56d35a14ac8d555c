"""Convolution layers."""

from __future__ import annotations

from typing import Any

from ..dtypes import float32
from ..ops._spatial import padding_of, transposed_padding_of
from ..ops.conv import conv1d, conv2d, conv_transpose2d
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import lengths, positive, uniform_in_fan
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "ConvTranspose2d"]


class _Convolution(Module):
    """What the convolution layers share: settings, and weights uniform in ±1/sqrt(fan_in)."""

    weight: Parameter
    bias: Parameter | None

    def _set_up(
        self, in_channels: Any, out_channels: Any, kernel_size: Any, axes: int, stride: Any, padding: Any, dilation: Any,
        groups: Any, bias: Any, dtype: Any, rng: Any, transposed: bool = False,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.in_channels = positive(name, "in_channels", in_channels)
        self.out_channels = positive(name, "out_channels", out_channels)
        self.kernel_size = lengths(name, "kernel_size", kernel_size, axes)
        self.groups = positive(name, "groups", groups)
        for which, channels in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if channels % self.groups:
                raise ValueError(f"[{name}] {which} ({channels}) must be divisible by groups ({self.groups})")
        self.stride = lengths(name, "stride", stride, axes)
        self.dilation = lengths(name, "dilation", dilation, axes)
        self._set_up_padding(name, padding)
        first, second = self.out_channels, self.in_channels
        if transposed:
            first, second = second, first
        shape = (first, second // self.groups, *self.kernel_size)
        generator = rng_or_default(name, rng)
        self.weight, self.bias = uniform_in_fan(name, shape, bias, generator, dtype, self.out_channels)

    def _set_up_padding(self, name: str, padding: Any) -> None:
        padding_of(name, padding, self.kernel_size, self.stride, self.dilation)
        self.padding = padding

    def extra_repr(self) -> str:
        shown = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding not in (0, (0, 0)):
            shown += f", padding={self.padding}"
        if set(self.dilation) != {1}:
            shown += f", dilation={self.dilation}"
        if self.groups != 1:
            shown += f", groups={self.groups}"
        return shown if self.bias is not None else shown + ", bias=False"


class Conv1d(_Convolution):
    """Convolution over sequences of shape (N, channels, length), see :func:`extensor.conv1d`.

    Args:
        in_channels, out_channels: the channels of input and output.
        kernel_size: the length of the kernel.
        stride, padding, dilation, groups: as in :func:`extensor.conv1d`.
        bias: whether there is a bias.
        dtype: of the parameters.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Attributes:
        weight: (out_channels, in_channels / groups, kernel_size).
        bias: (out_channels,), or None.

    Example:
        >>> import extensor as et
        >>> et.nn.Conv1d(3, 8, kernel_size=5, padding=2, rng=0)(et.ones((2, 3, 10))).shape
        (2, 8, 10)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self._set_up(
            in_channels, out_channels, kernel_size, 1, stride, padding, dilation, groups, bias, dtype, rng
        )

    def forward(self, x: ExTensor) -> ExTensor:
        return conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Convolution):
    """Convolution over images of shape (N, channels, height, width), see :func:`extensor.conv2d`.

    Args:
        in_channels, out_channels: the channels of input and output.
        kernel_size: the height and width of the kernel; one number for both.
        stride, padding, dilation, groups: as in :func:`extensor.conv2d`.
        bias: whether there is a bias.
        dtype: of the parameters.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Attributes:
        weight: (out_channels, in_channels / groups, height, width).
        bias: (out_channels,), or None.

    Example:
        >>> import extensor as et
        >>> et.nn.Conv2d(1, 6, kernel_size=5, rng=0)(et.ones((2, 1, 28, 28))).shape
        (2, 6, 24, 24)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self._set_up(
            in_channels, out_channels, kernel_size, 2, stride, padding, dilation, groups, bias, dtype, rng
        )

    def forward(self, x: ExTensor) -> ExTensor:
        return conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose2d(_Convolution):
    """The transpose of a convolution: images grow where a convolution shrinks them.

    See :func:`extensor.conv_transpose2d`; arguments as :class:`Conv2d`, in PyTorch's order.

    Attributes:
        weight: (in_channels, out_channels / groups, height, width).
        bias: (out_channels,), or None.

    Example:
        >>> import extensor as et
        >>> et.nn.ConvTranspose2d(4, 2, kernel_size=2, stride=2, rng=0)(et.ones((1, 4, 7, 7))).shape
        (1, 2, 14, 14)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self.output_padding = output_padding
        self._set_up(
            in_channels, out_channels, kernel_size, 2, stride, padding, dilation, groups, bias, dtype, rng, True
        )  # fmt: skip

    def _set_up_padding(self, name: str, padding: Any) -> None:
        transposed_padding_of(name, padding, self.output_padding, self.stride, self.dilation)
        self.padding = padding

    def forward(self, x: ExTensor) -> ExTensor:
        return conv_transpose2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups, self.output_padding
        )  # fmt: skip
