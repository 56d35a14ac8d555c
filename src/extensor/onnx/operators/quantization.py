"""Quantised numbers: whole numbers (or small floats) that stand for scale * (q - zero)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ...tensor import ExTensor
from ..proto import array_of, as_value, dtype_of
from ..table import opaque, operator
from .convolution import conv_integer

__all__: list[str] = []

_limits: Any = ml_dtypes  # has no types

_RANGES = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def _along(values: np.ndarray, shape: tuple[int, ...], axis: int, block_size: int) -> np.ndarray:
    """Scales for everything, for each slice along an axis, or for each block: in a shape that broadcasts to x."""
    if values.ndim == 0 or values.size == 1:
        return values.reshape(())
    if block_size:
        along = axis % len(shape)
        return np.take(np.repeat(values, block_size, along), range(shape[along]), along)
    if values.ndim == 1:
        return values.reshape((-1, *(1,) * (len(shape) - 1 - axis % len(shape))))
    return values


@operator("QuantizeLinear")
@opaque
def quantize_linear(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0, precision: int = 0,
    saturate: int = 1,
) -> Any:  # fmt: skip
    """round(x / scale) + zero, held within the type of ``zero``."""
    array, factor = array_of(x), array_of(scale)
    dtype = (
        array_of(zero).dtype
        if zero is not None
        else dtype_of(output_dtype)
        if output_dtype
        else np.dtype(np.uint8)
    )
    factor = _along(factor, array.shape, axis, block_size)
    wide = dtype_of(precision) if precision else np.float64 if array.dtype == np.float64 else np.float32
    scaled = array.astype(wide) / factor.astype(wide)
    if dtype.name.startswith("float"):
        return _small_floats(scaled, dtype, bool(saturate))
    whole = np.rint(scaled.astype(np.float64))
    if zero is not None:
        whole = whole + _along(array_of(zero).astype(np.int32), array.shape, axis, block_size)
    least, most = _RANGES.get(dtype.name) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return as_value(np.clip(whole, least, most).astype(np.int32).astype(dtype))


def _small_floats(x: np.ndarray, dtype: np.dtype[Any], saturate: bool) -> np.ndarray:
    if saturate:
        most = float(_limits.finfo(dtype).max)
        x = np.where(np.isnan(x), x, np.clip(x, -most, most))
    return x.astype(np.float32).astype(dtype)


@operator("DequantizeLinear", fixed=("x", "scale", "zero"))
def dequantize_linear(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Any:
    """scale * (x - zero), in the type of the scale."""
    array, factor = array_of(x), array_of(scale)
    wide = array.astype(np.float32)
    if zero is not None:
        wide = wide - _along(array_of(zero).astype(np.float32), array.shape, axis, block_size)
    dtype = dtype_of(output_dtype) if output_dtype else factor.dtype
    if isinstance(scale, ExTensor) and dtype in FLOATING:
        factors = as_value(_along(factor, array.shape, axis, block_size).astype(np.float32))
        return et.astype(as_value(wide) * factors, dtype)
    return as_value((wide * _along(factor, array.shape, axis, block_size).astype(np.float32)).astype(dtype))


@operator("DynamicQuantizeLinear")
@opaque
def dynamic_quantize_linear(x: Any) -> Any:
    """To uint8, with a scale and a zero for the range that is there; 0 is exact."""
    array = array_of(x)
    low, high = min(0.0, float(array.min())), max(0.0, float(array.max()))
    scale = np.float32((np.float32(high) - np.float32(low)) / 255)
    zero = (
        np.uint8(0) if scale == 0 else np.clip(np.rint(0 - np.float32(low) / scale), 0, 255).astype(np.uint8)
    )
    divisor = scale if scale != 0 else np.float32(1)
    whole = np.clip(np.rint(array / divisor) + np.float32(zero), 0, 255)
    return as_value(whole.astype(np.uint8)), as_value(np.array(scale)), as_value(np.array(zero))


@operator("QLinearMatMul")
@opaque
def qlinear_matmul(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    """A product of quantised matrices, quantised again."""
    left = array_of(a).astype(np.int32) - _rows(array_of(a_zero).astype(np.int32))
    right = array_of(b).astype(np.int32) - array_of(b_zero).astype(np.int32)
    factor = _rows(array_of(a_scale).astype(np.float32)) * array_of(b_scale).astype(np.float32)
    return _requantized(left @ right, factor / array_of(y_scale).astype(np.float32), y_zero)


def _rows(values: np.ndarray) -> np.ndarray:
    """One number for each row of the first matrix."""
    return values[:, None] if values.ndim == 1 and values.size > 1 else values


def _requantized(whole: np.ndarray, factor: np.ndarray, zero: Any) -> Any:
    offset = array_of(zero)
    info = _limits.iinfo(offset.dtype)
    found = np.rint(whole * factor) + offset.astype(np.int32)
    return as_value(np.clip(found, info.min, info.max).astype(offset.dtype))


@operator("QLinearConv")
@opaque
def qlinear_conv(
    x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any, bias: Any = None, *,
    auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """A convolution of quantised numbers, quantised again."""
    whole = array_of(
        conv_integer(
            x,
            w,
            x_zero,
            w_zero,
            auto_pad=auto_pad,
            dilations=dilations,
            group=group,
            pads=pads,
            strides=strides,
        )
    )
    across = (-1, *(1,) * (whole.ndim - 2))
    if bias is not None:
        whole = whole + array_of(bias).reshape(across)
    scales = array_of(w_scale).astype(np.float32)
    factor = array_of(x_scale).astype(np.float32) * (scales.reshape(across) if scales.size > 1 else scales)
    return _requantized(whole, factor / array_of(y_scale).astype(np.float32), y_zero)
