"""Convolution layers. All take single examples too, without an axis for the batch."""

from __future__ import annotations

from typing import Any

from ..dtypes import float32
from ..errors import describe
from ..ops._spatial import padding_of, transposed_padding_of
from ..ops.conv import conv1d, conv2d, conv_transpose2d
from ..ops.joining import pad
from ..ops.volumes import conv3d, conv_transpose1d, conv_transpose3d
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import lengths, positive, uniform_in_fan
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

# What PyTorch calls the fillings of a margin, and what pad() calls them.
_FILLINGS = {"zeros": None, "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class _Convolution(Module):
    """What the convolution layers share: settings, and weights uniform in ±1/sqrt(fan_in)."""

    weight: Parameter
    bias: Parameter | None
    _axes: int  # how many directions the kernel has

    def _set_up(
        self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
        bias: Any, dtype: Any, rng: Any, padding_mode: str, transposed: bool = False,
    ) -> None:  # fmt: skip
        name, axes = type(self).__name__, self._axes
        if padding_mode not in _FILLINGS or (transposed and padding_mode != "zeros"):
            wanted = "'zeros'" if transposed else f"one of {', '.join(_FILLINGS)}"
            raise ValueError(f"[{name}] padding_mode must be {wanted}, got {describe(padding_mode)}")
        self.padding_mode = padding_mode
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
        self._sides = padding_of(name, padding, self.kernel_size, self.stride, self.dilation)
        self.padding = padding

    def _apply(self, function: Any, x: ExTensor, *options: Any) -> ExTensor:
        """The function on x, a single example as a batch of one, margins filled as ``padding_mode`` says."""
        alone = x.ndim == len(self.kernel_size) + 1
        if alone:
            x = x.reshape((1, *x.shape))
        padding, filling = self.padding, _FILLINGS[self.padding_mode]
        if filling is not None and any(map(any, self._sides)):
            x, padding = pad(x, [(0, 0), (0, 0), *self._sides], filling), 0
        y = function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups, *options)
        return y[0] if alone else y

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
        if self.padding_mode != "zeros":
            shown += f", padding_mode={self.padding_mode!r}"
        return shown if self.bias is not None else shown + ", bias=False"


class _Forward(_Convolution):
    """What the convolutions that are not transposed share."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", *, dtype: Any = float32,
        rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            dtype,
            rng,
            padding_mode,
        )


class Conv1d(_Forward):
    """Convolution over sequences of shape (N, channels, length), see :func:`extensor.conv1d`.

    Args:
        in_channels, out_channels: the channels of input and output.
        kernel_size: the length of the kernel.
        stride, padding, dilation, groups: as in :func:`extensor.conv1d`.
        bias: whether there is a bias.
        padding_mode: what fills the margins: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
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

    _axes = 1

    def forward(self, x: ExTensor) -> ExTensor:
        return self._apply(conv1d, x)


class Conv2d(_Forward):
    """Convolution over images of shape (N, channels, height, width), see :func:`extensor.conv2d`.

    Args:
        in_channels, out_channels: the channels of input and output.
        kernel_size: the height and width of the kernel; one number for both.
        stride, padding, dilation, groups: as in :func:`extensor.conv2d`.
        bias: whether there is a bias.
        padding_mode: what fills the margins: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
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

    _axes = 2

    def forward(self, x: ExTensor) -> ExTensor:
        return self._apply(conv2d, x)


class Conv3d(_Forward):
    """Convolution over volumes of shape (N, channels, depth, height, width), see :func:`extensor.conv3d`.

    Arguments as :class:`Conv2d`, for three directions.

    Attributes:
        weight: (out_channels, in_channels / groups, depth, height, width).
        bias: (out_channels,), or None.

    Example:
        >>> import extensor as et
        >>> et.nn.Conv3d(1, 4, kernel_size=3, padding=1, rng=0)(et.ones((2, 1, 5, 6, 7))).shape
        (2, 4, 5, 6, 7)
    """

    _axes = 3

    def forward(self, x: ExTensor) -> ExTensor:
        return self._apply(conv3d, x)


class _Transposed(_Convolution):
    """What the transposed convolutions share; the options stand in PyTorch's order."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self.output_padding = output_padding
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype, rng, padding_mode, True
        )  # fmt: skip

    def _set_up_padding(self, name: str, padding: Any) -> None:
        transposed_padding_of(name, padding, self.output_padding, self.stride, self.dilation)
        self.padding = padding


class ConvTranspose1d(_Transposed):
    """The transpose of a convolution: sequences grow where a convolution shrinks them, see :func:`extensor.conv_transpose1d`.

    Attributes:
        weight: (in_channels, out_channels / groups, length).
        bias: (out_channels,), or None.

    Example:
        >>> import extensor as et
        >>> et.nn.ConvTranspose1d(4, 2, kernel_size=2, stride=2, rng=0)(et.ones((1, 4, 7))).shape
        (1, 2, 14)
    """

    _axes = 1

    def forward(self, x: ExTensor) -> ExTensor:
        return self._apply(conv_transpose1d, x, self.output_padding)


class ConvTranspose2d(_Transposed):
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

    _axes = 2

    def forward(self, x: ExTensor) -> ExTensor:
        return self._apply(conv_transpose2d, x, self.output_padding)


class ConvTranspose3d(_Transposed):
    """The transpose of a convolution of volumes, see :func:`extensor.conv_transpose3d`.

    Attributes:
        weight: (in_channels, out_channels / groups, depth, height, width).
        bias: (out_channels,), or None.

    Example:
        >>> import extensor as et
        >>> et.nn.ConvTranspose3d(2, 1, kernel_size=2, stride=2, rng=0)(et.ones((1, 2, 2, 3, 4))).shape
        (1, 1, 4, 6, 8)
    """

    _axes = 3

    def forward(self, x: ExTensor) -> ExTensor:
        return self._apply(conv_transpose3d, x, self.output_padding)
