"""Constants, casts and sizes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import extensor as et

from ...dtypes import SUPPORTED
from ...tensor import ExTensor
from ..proto import array_of, as_value, check_bytes, dtype_of, element_type, ints_of, onnx
from ..table import opaque, operator

__all__: list[str] = []

_limits: Any = ml_dtypes  # has no types


@operator("Constant")
def constant(
    *, value: Any = None, sparse_value: Any = None, value_float: Any = None, value_floats: Any = None, value_int: Any = None,
    value_ints: Any = None, value_string: Any = None, value_strings: Any = None,
) -> Any:  # fmt: skip
    """The one value that is given."""
    for given in (value, sparse_value):
        if given is not None:
            return given
    for given, dtype in ((value_float, "f4"), (value_floats, "f4"), (value_int, "i8"), (value_ints, "i8")):
        if given is not None:
            return as_value(np.array(given, dtype))
    return np.array(value_string if value_string is not None else value_strings, object)


@operator("ConstantOfShape", fixed=("shape",))
def constant_of_shape(shape: Any, *, value: Any = None) -> Any:
    """A tensor full of one number."""
    lengths = ints_of(shape)
    fill = np.zeros(1, np.float32) if value is None else array_of(value)
    check_bytes("ConstantOfShape", lengths, fill.dtype.itemsize)
    return as_value(np.full(lengths, fill.reshape(-1)[0], fill.dtype))


@operator("Identity")
def identity(x: Any) -> Any:
    """x"""
    return x


@operator("Cast")
def cast(x: Any, *, to: Any, saturate: int = 1, round_mode: str = "up", opset: int = 13) -> Any:
    """Elements in another type: numbers, truth values or strings."""
    number = to if isinstance(to, int) else onnx.TensorProto.DataType.Value(to)
    return converted(x, number, bool(saturate), round_mode)


@operator("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """Elements in the type of another tensor."""
    dtype = np.dtype(like.dtype)
    number = onnx.TensorProto.STRING if dtype.kind == "O" else onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return converted(x, number, bool(saturate), round_mode)


def converted(x: Any, number: int, saturate: bool, round_mode: str) -> Any:
    """A tensor in the element type ``number``."""
    dtype, name = dtype_of(number), element_type(number)
    if isinstance(x, ExTensor) and dtype in SUPPORTED:
        return x if x.dtype == dtype else et.astype(x, dtype)
    array = array_of(x)
    if name == "STRING":
        return np.array([_text(v) for v in array.reshape(-1)], object).reshape(array.shape)
    if array.dtype == object:
        return as_value(
            np.array([_number(v, dtype) for v in array.reshape(-1)]).reshape(array.shape).astype(dtype)
        )
    if name == "FLOAT8E8M0":
        return _to_scale(array.astype(np.float32), saturate, round_mode)
    if name.startswith("FLOAT8"):
        return _to_float8(array, dtype, saturate)
    if name == "FLOAT4E2M1" and array.dtype.kind != "b":
        return np.clip(array.astype(np.float32), -6, 6).astype(dtype)
    if name in ("INT4", "UINT4", "INT2", "UINT2") and array.dtype != dtype:
        return (
            array.astype(np.float32).astype(np.int32).astype(dtype)
            if array.dtype.kind != "i"
            else array.astype(dtype)
        )
    if dtype.kind in "iu" and array.dtype.kind == "V":  # small floats go by way of float32
        return as_value(array.astype(np.float32).astype(dtype))
    return as_value(array.astype(dtype))


def _text(value: Any) -> str:
    if isinstance(value, (np.floating, ml_dtypes.bfloat16)):
        number = float(value)
        if np.isnan(number):
            return "NaN"
        if np.isinf(number):
            return "INF" if number > 0 else "-INF"
        return str(value)
    return str(value)


def _number(text: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return int(text)
    return float(text)


def _to_float8(array: np.ndarray, dtype: np.dtype[Any], saturate: bool) -> np.ndarray:
    """Rounded to the nearest; beyond the greatest number that number, or without ``saturate`` what the type has there."""
    wide = array.astype(np.float32)
    if saturate:
        most = float(_limits.finfo(dtype).max)
        wide = np.where(np.isnan(wide), wide, np.clip(wide, -most, most))
    return wide.astype(dtype)


def _to_scale(wide: np.ndarray, saturate: bool, round_mode: str) -> np.ndarray:
    """The powers of two of float8e8m0: rounded up, down, or to the nearest."""
    from onnx.numpy_helper import to_float8e8m0

    return to_float8e8m0(wide, saturate=saturate, round_mode=round_mode)


@operator("BitCast", since=26)
@opaque
def bit_cast(x: Any, *, to: int) -> Any:
    """The same bits as another type."""
    array = array_of(x)
    dtype = dtype_of(to)
    if dtype.itemsize != array.dtype.itemsize:
        raise ValueError(f"[BitCast] {array.dtype} and {dtype} have different sizes")
    return as_value(np.ascontiguousarray(array).view(dtype).reshape(array.shape))


@operator("Shape")
@opaque
def shape_of(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    """The lengths of the axes, or of some of them."""
    return as_value(np.array(x.shape[slice(start, end)], np.int64))


@operator("Size")
@opaque
def size_of(x: Any) -> Any:
    """The number of elements."""
    return as_value(np.array(x.size, np.int64))


@operator("Range", fixed=("start", "limit", "delta"))
def number_range(start: Any, limit: Any, delta: Any, *, stash_type: int = 1) -> Any:
    """start, start + delta, ... as long as it is before ``limit``."""
    first, last, step = (array_of(v).reshape(()) for v in (start, limit, delta))
    if not step:
        raise ValueError("[Range] delta is 0")
    count = max(0, int(np.ceil((float(last) - float(first)) / float(step))))
    check_bytes("Range", [count], first.dtype.itemsize)
    if first.dtype.kind in "iu":
        return as_value((first + np.arange(count).astype(first.dtype) * step).astype(first.dtype))
    wide = np.float64 if first.dtype == np.float64 else np.float32
    return as_value(
        (first.astype(wide) + np.arange(count).astype(wide) * step.astype(wide)).astype(first.dtype)
    )


@operator("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    """Ones on a diagonal, in the shape of x."""
    return et.eye(x.shape[0], x.shape[1], k, x.dtype if dtype is None else dtype_of(dtype))
