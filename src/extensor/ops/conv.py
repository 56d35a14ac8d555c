"""Convolutions of sequences (N, C, L) and images (N, C, H, W), their transposes, and their gradients.

All three are one bilinear map of an image and a weight, seen from different sides: the gradient of a convolution
with respect to its input is a transposed convolution, the gradient of the weight is a convolution of the input
with the gradient, and so on to any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import as_floating, as_grad, as_int, check_needs, differentiable_input
from ..graph import backward_of, differentiable
from ..kernels import reshape as reshape_kernel
from ..kernels.reference import conv as kernels
from ..tensor import ExTensor, Shape
from ._formulas import on_tensors
from ._spatial import as_pair, check_axes, padding_of, remembered, transposed_padding_of
from .casting import cast_like, in_one_dtype
from .joining import pad
from .shape import reshape

__all__ = [
    "ConvGradients", "conv1d", "conv1d_backward", "conv2d", "conv2d_backward",
    "conv_transpose2d", "conv_transpose2d_backward",
]  # fmt: skip

Needs = tuple[bool, bool, bool]
ALL: Needs = (True, True, True)


class ConvGradients(NamedTuple):
    """The gradients of a convolution; None where ``needs`` says that one is not wanted."""

    grad_x: ExTensor | None
    grad_weight: ExTensor | None
    grad_bias: ExTensor | None


class Geometry(NamedTuple):
    """The checked options of a convolution in one or two directions, and the size of its output."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int
    size: tuple[int, ...]
    output_padding: tuple[int, ...]

    @property
    def margins(self) -> tuple[tuple[int, int], ...]:
        """The padding as :func:`pad` takes it."""
        return ((0, 0), (0, 0), *self.padding)


def _options(
    function: str, stride: Any, dilation: Any, groups: Any, count: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    strides = as_pair(function, "stride", stride, 1, count)
    dilations = as_pair(function, "dilation", dilation, 1, count)
    parts = as_int(function, "groups", groups)
    if parts < 1:
        raise ValueError(f"[{function}] groups must be at least 1, got {parts}")
    return strides, dilations, parts


def _check_weight(function: str, x: Shape, weight: Shape, axes: str, layout: str) -> None:
    check_axes(function, "x", x, axes)
    check_axes(function, "weight", weight, layout)
    if 0 in weight[2:]:
        raise ValueError(f"[{function}] weight has an empty kernel (weight: {weight})")


def _check_groups(function: str, name: str, channels: int, groups: int, weight: Shape) -> None:
    if channels % groups:
        raise ValueError(
            f"[{function}] groups={groups} does not divide the {channels} {name} channels of weight {weight}"
        )


_AXES = {"1d": ("N, C, L", "k"), "2d": ("N, C, H, W", "kh, kw"), "3d": ("N, C, D, H, W", "kd, kh, kw")}


@remembered
def _convolution(
    function: str, x: Shape, weight: Shape, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Geometry:
    """The geometry of a convolution in as many directions as the function's name says."""
    axes, kernel = _AXES[function[4:6]]
    _check_weight(function, x, weight, axes, f"out, in/groups, {kernel}")
    strides, dilations, parts = _options(function, stride, dilation, groups, len(weight) - 2)
    pads = padding_of(function, padding, weight[2:], strides, dilations)
    if weight[1] * parts != x[1]:
        given = (
            f"{weight[1]} input channels"
            if parts == 1
            else f"{weight[1]} input channels in each of {parts} groups"
        )
        raise ValueError(f"[{function}] weight has {given} but x has {x[1]} (x: {x}, weight: {weight})")
    _check_groups(function, "output", weight[0], parts, weight)
    whole = [n + before + after for n, (before, after) in zip(x[2:], pads)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, weight[2:])]
    if any(k > n for k, n in zip(reach, whole)):
        raise ValueError(
            f"[{function}] the kernel is larger than the padded x: it covers {_times(reach)} of {_times(whole)}; "
            f"use more padding or a smaller kernel (x: {x}, weight: {weight})"
        )
    size = tuple((n - k) // s + 1 for n, k, s in zip(whole, reach, strides))
    left = tuple((n - k) % s for n, k, s in zip(whole, reach, strides))
    return Geometry(strides, pads, dilations, parts, size, left)


def _times(lengths: Any) -> str:
    return " x ".join(map(str, lengths))


def _checked_bias(function: str, bias: Any, channels: int) -> ExTensor | None:
    if bias is None:
        return None
    bias = as_floating(function, "bias", bias)
    if bias.shape != (channels,):
        raise ValueError(
            f"[{function}] bias has shape {bias.shape} but must have the shape ({channels},) of the output channels"
        )
    return bias


def _flat(padding: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """(top, bottom, left, right), as kernels take it."""
    return tuple(n for pair in padding for n in pair)


@differentiable
def conv2d(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> ExTensor:
    """Convolution of images.   y[n, o] = bias[o] + sum over c of x[n, c] * weight[o, c]

    As in every library of neural networks the kernel is not flipped (a cross-correlation).

    Large float32 convolutions with kernels of 3 x 3 and stride 1 are computed by Winograd's method, which is faster. Its
    rounding errors, about 5e-7 of the size of the result, are a few times those of plain sums, and grow where a pixel
    is much larger than its neighbours. Images with a pixel more than 256 times as large as the mean, or with a result
    that is not finite, are summed plainly, and so is float64.

    Args:
        x: images of shape (N, C, H, W).
        weight: shape (out, C/groups, kh, kw).
        bias: shape (out,), or None.
        stride: steps between two windows: an int, or one for each direction.
        padding: zeros on both sides: an int, one for each direction, ``"valid"`` (none) or ``"same"`` (the output is
            as large as ``x``; stride 1 only).
        dilation: distance between two elements of the kernel.
        groups: in how many independent parts the channels are split; C of them make it a depthwise convolution.

    Returns:
        Images of shape (N, out, oh, ow), oh = (H + padding - dilation * (kh - 1) - 1) // stride + 1.

    Example:
        >>> import extensor as et
        >>> et.conv2d(et.ones((1, 1, 3, 3)), et.ones((1, 1, 2, 2)), et.tensor([0.5])).tolist()
        [[[[4.5, 4.5], [4.5, 4.5]]]]
        >>> et.conv2d(et.ones((8, 3, 32, 32)), et.ones((16, 3, 5, 5)), stride=2, padding=2).shape
        (8, 16, 16, 16)
    """
    x, weight = as_floating("conv2d", "x", x), as_floating("conv2d", "weight", weight)
    how = _convolution("conv2d", x.shape, weight.shape, stride, padding, dilation, groups)
    bias = _checked_bias("conv2d", bias, weight.shape[0])
    x, weight, bias = in_one_dtype(x, weight, bias)
    return kernels.conv2d(x, weight, bias, how.stride, _flat(how.padding), how.dilation, how.groups)


def _weight_formula(g: Any, x: Any, shape: Shape, how: Geometry) -> Any:
    """The gradient of the weight, ``x`` being padded already: a convolution of ``x`` with ``g`` in which images and
    channels change places, and steps and distances too."""
    n, _, height, width = x.shape
    inner = shape[1]
    x = x.reshape((n, how.groups, inner, height, width)).transpose((2, 1, 0, 3, 4))
    x = x.reshape((inner, how.groups * n, height, width))
    grad = conv2d(x, g.transpose((1, 0, 2, 3)), stride=how.dilation, dilation=how.stride, groups=how.groups)
    return grad[:, :, : shape[2], : shape[3]].transpose((1, 0, 2, 3))


@on_tensors(3)
def _conv2d_formula(
    g: Any,
    x: Any,
    weight: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    needs: Needs = ALL,
) -> ConvGradients:
    how = _convolution("conv2d_backward", x.shape, weight.shape, stride, padding, dilation, groups)
    grad_x = grad_weight = None
    if needs[0]:
        whole = conv_transpose2d(
            g,
            weight,
            stride=how.stride,
            dilation=how.dilation,
            groups=groups,
            output_padding=how.output_padding,
        )
        (top, bottom), (left, right) = how.padding
        grad_x = whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]
    if needs[1]:
        grad_weight = _weight_formula(g, pad(x, how.margins), weight.shape, how)
    return ConvGradients(grad_x, grad_weight, g.sum((0, 2, 3)) if needs[2] else None)


@backward_of(conv2d, wrt=("x", "weight", "bias"), formula=_conv2d_formula)
def conv2d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    needs: Needs = ALL,
) -> ConvGradients:
    """Gradient of :func:`conv2d`.   dx = transposed convolution of dy with weight,  dweight[o, c] = sum over n of
    dy[n, o] * x[n, c],  dbias = sum of dy over images and pixels

    Args:
        grad_output: the gradient of the output, of shape (N, out, oh, ow).
        x, weight: the input and the weight. The bias is not asked for; its gradient is returned all the same.
        stride, padding, dilation, groups: as given to :func:`conv2d`.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.conv2d_backward(et.ones((1, 1, 2, 2)), et.ones((1, 1, 3, 3)), et.ones((1, 1, 2, 2)))
        >>> grads.grad_x.tolist()
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
        >>> grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([[[[4.0, 4.0], [4.0, 4.0]]]], [4.0])
    """
    check_needs("conv2d_backward", needs, 3)
    x = differentiable_input("conv2d_backward", "x", x)
    weight = differentiable_input("conv2d_backward", "weight", weight)
    how = _convolution("conv2d_backward", x.shape, weight.shape, stride, padding, dilation, groups)
    grad = as_grad("conv2d_backward", grad_output, (x.shape[0], weight.shape[0], *how.size))
    found = kernels.conv2d_backward(
        *in_one_dtype(grad, x, weight), how.stride, _flat(how.padding), how.dilation, how.groups, needs
    )
    return _with_dtypes(found, x, weight, grad)


def _with_dtypes(found: Any, x: ExTensor, weight: ExTensor, grad: ExTensor) -> ConvGradients:
    return ConvGradients(cast_like(found[0], x), cast_like(found[1], weight), cast_like(found[2], grad))


def _image(x: Any) -> Any:
    """A sequence as an image of one row, recorded."""
    return reshape(x, (*x.shape[:2], 1, x.shape[2]))


def _as_image(x: ExTensor) -> ExTensor:
    """A sequence as an image of one row."""
    return reshape_kernel(x, (*x.shape[:2], 1, x.shape[2]))


def _in_one_row(how: Geometry) -> tuple[Any, ...]:
    """The attributes of the kernel for images of one row."""
    return (1, *how.stride), (0, 0, *how.padding[0]), (1, *how.dilation), how.groups


@differentiable
def conv1d(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> ExTensor:
    """Convolution of sequences.   y[n, o] = bias[o] + sum over c of x[n, c] * weight[o, c]

    Args:
        x: sequences of shape (N, C, L).
        weight: shape (out, C/groups, k).
        bias: shape (out,), or None.
        stride, padding, dilation, groups: as in :func:`conv2d`, for one direction.

    Returns:
        Sequences of shape (N, out, ol), ol = (L + padding - dilation * (k - 1) - 1) // stride + 1.

    Example:
        >>> import extensor as et
        >>> et.conv1d(et.tensor([[[1.0, 2.0, 4.0]]]), et.tensor([[[-1.0, 1.0]]])).tolist()
        [[[1.0, 2.0]]]
    """
    x, weight = as_floating("conv1d", "x", x), as_floating("conv1d", "weight", weight)
    how = _convolution("conv1d", x.shape, weight.shape, stride, padding, dilation, groups)
    bias = _checked_bias("conv1d", bias, weight.shape[0])
    x, weight, bias = in_one_dtype(x, weight, bias)
    y = kernels.conv2d(_as_image(x), _as_image(weight), bias, *_in_one_row(how))
    return reshape_kernel(y, (*y.shape[:2], y.shape[3]))


@on_tensors(3)
def _conv1d_formula(
    g: Any,
    x: Any,
    weight: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    needs: Needs = ALL,
) -> ConvGradients:
    how = _convolution("conv1d_backward", x.shape, weight.shape, stride, padding, dilation, groups)
    options: dict[str, Any] = {
        "stride": (1, *how.stride),
        "dilation": (1, *how.dilation),
        "groups": groups,
        "needs": needs,
    }
    whole = pad(x, how.margins)
    found: Any = conv2d_backward(_image(g), _image(whole), _image(weight), **options)
    before = how.padding[0][0]
    return ConvGradients(
        reshape(found.grad_x, whole.shape)[:, :, before : before + x.shape[2]] if needs[0] else None,
        reshape(found.grad_weight, weight.shape) if needs[1] else None,
        found.grad_bias,
    )


@backward_of(conv1d, wrt=("x", "weight", "bias"), formula=_conv1d_formula)
def conv1d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    needs: Needs = ALL,
) -> ConvGradients:
    """Gradient of :func:`conv1d`: that of the same convolution of images of one row.

    Args:
        grad_output: the gradient of the output, of shape (N, out, ol).
        x, weight: the input and the weight. The bias is not asked for; its gradient is returned all the same.
        stride, padding, dilation, groups: as given to :func:`conv1d`.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.conv1d_backward(et.ones((1, 1, 2)), et.tensor([[[1.0, 2.0, 4.0]]]), et.tensor([[[-1.0, 1.0]]]))
        >>> grads.grad_x.tolist(), grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([[[-1.0, 0.0, 1.0]]], [[[3.0, 6.0]]], [2.0])
    """
    check_needs("conv1d_backward", needs, 3)
    x = differentiable_input("conv1d_backward", "x", x)
    weight = differentiable_input("conv1d_backward", "weight", weight)
    how = _convolution("conv1d_backward", x.shape, weight.shape, stride, padding, dilation, groups)
    grad = as_grad("conv1d_backward", grad_output, (x.shape[0], weight.shape[0], *how.size))
    grad_x, grad_weight, grad_bias = kernels.conv2d_backward(
        *map(_as_image, in_one_dtype(grad, x, weight)), *_in_one_row(how), needs
    )
    found = (
        reshape_kernel(grad_x, x.shape) if needs[0] else None,
        reshape_kernel(grad_weight, weight.shape) if needs[1] else None,
        grad_bias,
    )
    return _with_dtypes(found, x, weight, grad)


def _transposed(
    function: str,
    x: Shape,
    weight: Shape,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    output_padding: Any,
) -> Geometry:
    """The geometry of a transposed convolution."""
    axes, kernel = _AXES[function[14:16]]
    _check_weight(function, x, weight, axes, f"in, out/groups, {kernel}")
    strides, dilations, parts = _options(function, stride, dilation, groups, len(weight) - 2)
    pads, more = transposed_padding_of(function, padding, output_padding, strides, dilations)
    if weight[0] != x[1]:
        raise ValueError(
            f"[{function}] weight has {weight[0]} input channels but x has {x[1]} (x: {x}, weight: {weight})"
        )
    _check_groups(function, "input", weight[0], parts, weight)
    size = tuple(
        (n - 1) * s - before - after + d * (k - 1) + 1 + m
        for n, s, (before, after), d, k, m in zip(x[2:], strides, pads, dilations, weight[2:], more)
    )
    if 0 in x[2:] or min(size) < 1:
        raise ValueError(
            f"[{function}] the output would have the size {_times(size)}; use less padding (x: {x}, weight: {weight})"
        )
    return Geometry(strides, pads, dilations, parts, size, more)


@differentiable
def conv_transpose2d(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
) -> ExTensor:
    """Transposed convolution of images: every pixel adds its multiple of the kernel to the output.

    It is the gradient of :func:`conv2d` with respect to its input, as a layer of its own.

    Args:
        x: images of shape (N, C, H, W).
        weight: shape (C, out/groups, kh, kw).
        bias: shape (out,), or None.
        stride: steps in the output for one step in ``x``: an int, or one for each direction.
        padding: how much is cut off on both sides of the output.
        dilation: distance between two elements of the kernel.
        groups: in how many independent parts the channels are split.
        output_padding: rows and columns added at the end, where a stride leaves several sizes to choose from.

    Returns:
        Images of shape (N, out, oh, ow), oh = (H - 1) * stride - 2 * padding + dilation * (kh - 1) + output_padding + 1.

    Example:
        >>> import extensor as et
        >>> et.conv_transpose2d(et.tensor([[[[1.0, 2.0]]]]), et.ones((1, 1, 1, 2)), stride=(1, 2)).tolist()
        [[[[1.0, 1.0, 2.0, 2.0]]]]
    """
    function = "conv_transpose2d"
    x, weight = as_floating(function, "x", x), as_floating(function, "weight", weight)
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    bias = _checked_bias(function, bias, weight.shape[1] * how.groups)
    x, weight, bias = in_one_dtype(x, weight, bias)
    return kernels.conv_transpose2d(
        x, weight, bias, how.stride, _flat(how.padding), how.dilation, how.groups, how.output_padding
    )


@on_tensors(3)
def _conv_transpose2d_formula(
    g: Any,
    x: Any,
    weight: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
    needs: Needs = ALL,
) -> ConvGradients:
    function = "conv_transpose2d_backward"
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    grad_x = grad_weight = None
    seen = pad(g, how.margins)
    if needs[0]:
        grad_x = conv2d(seen, weight, stride=how.stride, dilation=how.dilation, groups=how.groups)
        grad_x = grad_x[:, :, : x.shape[2], : x.shape[3]]
    if needs[1]:
        grad_weight = _weight_formula(x, seen, weight.shape, how)
    return ConvGradients(grad_x, grad_weight, g.sum((0, 2, 3)) if needs[2] else None)


@backward_of(conv_transpose2d, wrt=("x", "weight", "bias"), formula=_conv_transpose2d_formula)
def conv_transpose2d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
    needs: Needs = ALL,
) -> ConvGradients:
    """Gradient of :func:`conv_transpose2d`.   dx = convolution of dy with weight,  dweight[c, o] = sum over n of
    x[n, c] * dy[n, o],  dbias = sum of dy over images and pixels

    Args:
        grad_output: the gradient of the output, of shape (N, out, oh, ow).
        x, weight: the input and the weight. The bias is not asked for; its gradient is returned all the same.
        stride, padding, dilation, groups, output_padding: as given to :func:`conv_transpose2d`.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, weight = et.tensor([[[[1.0, 2.0]]]]), et.ones((1, 1, 1, 2))
        >>> grads = et.conv_transpose2d_backward(et.ones((1, 1, 1, 4)), x, weight, stride=(1, 2))
        >>> grads.grad_x.tolist(), grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([[[[2.0, 2.0]]]], [[[[3.0, 3.0]]]], [4.0])
    """
    function = "conv_transpose2d_backward"
    check_needs(function, needs, 3)
    x = differentiable_input(function, "x", x)
    weight = differentiable_input(function, "weight", weight)
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    grad = as_grad(function, grad_output, (x.shape[0], weight.shape[1] * how.groups, *how.size))
    found = kernels.conv_transpose2d_backward(
        *in_one_dtype(grad, x, weight), how.stride, _flat(how.padding), how.dilation, how.groups, needs
    )
    return _with_dtypes(found, x, weight, grad)
