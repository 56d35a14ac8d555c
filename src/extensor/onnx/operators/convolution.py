"""Convolutions over any number of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value, check_bytes, ints_of
from ..table import opaque, operator
from .shape import padded

__all__: list[str] = []

Pairs = list[tuple[int, int]]


def pads_of(
    auto_pad: str, pads: list[int] | None, lengths: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> Pairs:  # fmt: skip
    """Elements before and after each spatial axis; SAME makes the output length that of the input over the stride."""
    n = len(lengths)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for length, k, s, d in zip(lengths, kernel, strides, dilations):
            total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
            small, large = total // 2, total - total // 2
            found.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
        return found
    if auto_pad == "VALID" or not pads:
        return [(0, 0)] * n
    if len(pads) != 2 * n:
        raise ValueError(f"[Conv] pads {pads} are not two for each of {n} axes")
    return list(zip(pads[:n], pads[n:]))


@operator("Conv")
def conv(
    x: Any, weight: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """Windows of x times a weight (out, in / group, *kernel), summed."""
    n = x.ndim - 2
    strides, dilations = strides or [1] * n, dilations or [1] * n
    around = pads_of(auto_pad, pads, x.shape[2:], weight.shape[2:], strides, dilations)
    if n in (1, 2):
        padding: Any = tuple(before for before, _ in around)
        if any(before != after or before < 0 for before, after in around):
            x, padding = padded(x, [(0, 0), (0, 0), *around]), 0
        function = et.conv1d if n == 1 else et.conv2d
        return function(x, weight, bias, tuple(strides), padding, tuple(dilations), group)
    found = _conv_deep(padded(x, [(0, 0), (0, 0), *around]), weight, strides, dilations, group)
    return found if bias is None else found + bias.reshape((-1, *(1,) * n))


def _conv_deep(x: Any, weight: Any, strides: Sequence[int], dilations: Sequence[int], group: int) -> Any:
    """More than two spatial axes: for each place in the first axis of the kernel, a convolution over the others."""
    if x.ndim <= 4:
        return et.conv2d(x, weight, None, tuple(strides), 0, tuple(dilations), group)
    batch, channels, length, *rest = x.shape
    size, stride, dilation = weight.shape[2], strides[0], dilations[0]
    count = (length - (size - 1) * dilation - 1) // stride + 1
    if count < 1:
        raise ValueError(f"[Conv] a kernel of shape {weight.shape[2:]} does not fit {x.shape[2:]}")
    total = None
    for k in range(size):
        start = k * dilation
        slices = x[:, :, start : start + (count - 1) * stride + 1 : stride]  # (N, C, count, ...)
        flat = et.moveaxis(slices, 2, 1).reshape((batch * count, channels, *rest))
        part = _conv_deep(flat, weight[:, :, k], strides[1:], dilations[1:], group)
        total = part if total is None else total + part
    assert total is not None
    return et.moveaxis(total.reshape((batch, count, *total.shape[1:])), 1, 2)


@operator("ConvTranspose")
def conv_transpose(
    x: Any, weight: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, output_padding: list[int] | None = None, output_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """The adjoint of a convolution: every element of x spreads the weight (in, out / group, *kernel)."""
    n = x.ndim - 2
    strides, dilations = strides or [1] * n, dilations or [1] * n
    more = output_padding or [0] * n
    kernel = weight.shape[2:]
    around = _transposed_pads(auto_pad, pads, output_shape, x.shape[2:], kernel, strides, dilations, more)
    symmetric = all(before == after for before, after in around)
    small = all(m < max(s, d) for m, s, d in zip(more, strides, dilations)) and min(b for b, _ in around) >= 0
    fits = all(b <= (k - 1) * d for (b, _), k, d in zip(around, kernel, dilations))
    if n == 2 and symmetric and small and fits:
        padding = tuple(before for before, _ in around)
        return et.conv_transpose2d(
            x, weight, bias, tuple(strides), padding, tuple(dilations), group, tuple(more)
        )
    found = _spread(x, weight, strides, dilations, group)
    widths = [(0, 0), (0, 0), *((-before, extra - after) for (before, after), extra in zip(around, more))]
    found = padded(found, widths)
    return found if bias is None else found + bias.reshape((-1, *(1,) * n))


def _transposed_pads(
    auto_pad: str, pads: list[int] | None, output_shape: list[int] | None, lengths: Sequence[int], kernel: Sequence[int],
    strides: Sequence[int], dilations: Sequence[int], more: Sequence[int],
) -> Pairs:  # fmt: skip
    n = len(lengths)
    full = [
        s * (m - 1) + o + (k - 1) * d + 1 for m, k, s, d, o in zip(lengths, kernel, strides, dilations, more)
    ]
    wanted = None
    if output_shape:
        wanted = output_shape[-n:]
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [m * s for m, s in zip(lengths, strides)]
    if wanted is not None:
        found = []
        for length, goal in zip(full, wanted):
            total = length - goal
            half = total // 2
            found.append((half, total - half) if auto_pad == "SAME_UPPER" else (total - half, half))
        return found
    return list(zip(pads[:n], pads[n:])) if pads else [(0, 0)] * n


def _spread(x: Any, weight: Any, strides: Sequence[int], dilations: Sequence[int], group: int) -> Any:
    """The whole transposed convolution, without padding."""
    n = x.ndim - 2
    if n == 1:
        wide = et.conv_transpose2d(
            x.reshape((*x.shape[:2], 1, x.shape[2])), weight.reshape((*weight.shape[:2], 1, weight.shape[2])), None,
            (1, strides[0]), 0, (1, dilations[0]), group,
        )  # fmt: skip
        return wide.reshape((*wide.shape[:2], wide.shape[3]))
    if n == 2:
        return et.conv_transpose2d(x, weight, None, tuple(strides), 0, tuple(dilations), group)
    batch, channels, length, *rest = x.shape
    size, stride, dilation = weight.shape[2], strides[0], dilations[0]
    flat = et.moveaxis(x, 2, 1).reshape((batch * length, channels, *rest))
    total = None
    for k in range(size):
        part = _spread(flat, weight[:, :, k], strides[1:], dilations[1:], group)
        part = et.moveaxis(part.reshape((batch, length, *part.shape[1:])), 1, 2)
        if total is None:
            depth = (length - 1) * stride + (size - 1) * dilation + 1
            check_bytes("ConvTranspose", [*part.shape[:2], depth, *part.shape[3:]])
            total = et.zeros((*part.shape[:2], depth, *part.shape[3:]), part.dtype)
        places = slice(k * dilation, k * dilation + (length - 1) * stride + 1, stride)
        total = et.index_add(total, (slice(None), slice(None), places), part)
    return total


@operator("ConvInteger")
@opaque
def conv_integer(
    x: Any, w: Any, x_zero_point: Any = None, w_zero_point: Any = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """A convolution of whole numbers, exact in int32."""
    left = array_of(x).astype(np.float64)
    right = array_of(w).astype(np.float64)
    if x_zero_point is not None:
        left = left - array_of(x_zero_point).astype(np.float64)
    if w_zero_point is not None:
        zero = array_of(w_zero_point).astype(np.float64)
        right = right - (zero.reshape((-1, *(1,) * (right.ndim - 1))) if zero.size > 1 else zero)
    found = conv(
        as_value(left),
        as_value(right),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )
    return as_value(np.rint(array_of(found)).astype(np.int32))


@operator("CausalConvWithState", since=27)
def causal_conv_with_state(
    x: Any, weight: Any, bias: Any = None, past: Any = None, *, activation: str = "none"
) -> Any:
    """A convolution of each channel over what was before; and the last inputs, to go on from."""
    size = weight.shape[2]
    if past is None:
        past = et.zeros((*x.shape[:2], size - 1), x.dtype)
    whole = et.concatenate([past, x], 2)
    found = et.conv1d(whole, weight, bias, groups=x.shape[1])
    if activation not in ("none", "silu", "swish"):
        raise NotImplementedError(f"[CausalConvWithState] the activation {activation!r} is not known")
    return found if activation == "none" else et.silu(found), whole[:, :, whole.shape[2] - (size - 1) :]


@operator("Col2Im", fixed=("image_shape", "block_shape"))
def col2im(
    x: Any, image_shape: Any, block_shape: Any, *, dilations: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """Columns of windows, added together where they overlap."""
    image, block = ints_of(image_shape), ints_of(block_shape)
    n = len(image)
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    check_bytes("Col2Im", [x.shape[0], x.shape[1], *image], x.dtype.itemsize)
    whole = [m + pads[i] + pads[i + n] for i, m in enumerate(image)]
    counts = [(m - (k - 1) * d - 1) // s + 1 for m, k, s, d in zip(whole, block, strides, dilations)]
    channels = x.shape[1] // int(np.prod(block))
    parts = x.reshape((x.shape[0], channels, *block, *counts))
    total = et.zeros((x.shape[0], channels, *whole), x.dtype)
    every = (slice(None), slice(None))
    for offset in np.ndindex(*block):
        places = tuple(
            slice(o * d, o * d + (c - 1) * s + 1, s) for o, d, c, s in zip(offset, dilations, counts, strides)
        )
        total = et.index_add(total, (*every, *places), parts[(*every, *offset)])
    return padded(total, [(0, 0), (0, 0), *((-pads[i], -pads[i + n]) for i in range(n))])


@operator("DeformConv")
def deform_conv(
    x: Any, weight: Any, offset: Any, bias: Any = None, mask: Any = None, *, dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, offset_group: int = 1, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """A convolution whose windows look where ``offset`` leads them, between pixels by bilinear interpolation."""
    from .resampling import sampled

    if x.ndim != 4:
        raise NotImplementedError(f"[DeformConv] is there for two spatial axes, got x of shape {x.shape}")
    strides, dilations, pads = strides or [1, 1], dilations or [1, 1], pads or [0] * 4
    batch, channels = x.shape[:2]
    kh, kw = weight.shape[2:]
    oh, ow = offset.shape[2:]
    offsets = offset.reshape((batch, offset_group, kh, kw, 2, oh, ow))
    base_y = (
        np.arange(oh)[None, None, :, None] * strides[0]
        - pads[0]
        + np.arange(kh)[:, None, None, None] * dilations[0]
    )
    base_x = (
        np.arange(ow)[None, None, None, :] * strides[1]
        - pads[1]
        + np.arange(kw)[None, :, None, None] * dilations[1]
    )
    rows = offsets[:, :, :, :, 0] + as_value(np.broadcast_to(base_y, (kh, kw, oh, ow)).astype(x.dtype))
    columns = offsets[:, :, :, :, 1] + as_value(np.broadcast_to(base_x, (kh, kw, oh, ow)).astype(x.dtype))
    flat = batch * offset_group
    images = x.reshape((flat, channels // offset_group, *x.shape[2:]))
    points = [rows.reshape((flat, -1)), columns.reshape((flat, -1))]
    found = sampled(images, points, "zeros").reshape(
        (batch, offset_group, channels // offset_group, kh, kw, oh, ow)
    )
    if mask is not None:
        found = found * mask.reshape((batch, offset_group, 1, kh, kw, oh, ow))
    columns = found.reshape((batch, group, channels // group * kh * kw, oh * ow))
    kernels = weight.reshape((group, weight.shape[0] // group, -1))
    result = et.matmul(kernels, columns).reshape((batch, weight.shape[0], oh, ow))
    return result if bias is None else result + bias.reshape((-1, 1, 1))
