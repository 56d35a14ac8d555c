"""Making arrays, and their dtypes, as the standard has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ops
from ..dtypes import (
    COMPLEX,
    FLOATING,
    HALF,
    INTEGER,
    REAL_FLOATING,
    SUPPORTED,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    int64,
    promote,
)
from ..errors import describe
from ..tensor import ExTensor
from ..tensor import asarray as tensor_of
from ..tensor import from_dlpack as shared
from ._shapes_of_calls import as_cpu, checked

__all__ = [
    "arange", "asarray", "astype", "can_cast", "empty", "empty_like", "eye", "finfo", "from_dlpack", "full", "full_like", "iinfo",
    "isdtype", "linspace", "meshgrid", "ones", "ones_like", "result_type", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> ExTensor:
    """An array of numbers, nested lists of them, or of another library's array; ``copy`` forces or forbids a copy."""
    as_cpu("asarray", device)
    wanted = None if dtype is None else as_dtype("asarray", dtype)
    if isinstance(obj, ExTensor):
        changes = wanted is not None and obj.dtype != wanted
        if copy is False and changes:
            raise ValueError(f"[asarray] {obj.dtype} as {wanted} needs a copy, and copy=False forbids it")
        return ops.astype(obj, wanted) if changes else ops.copy(obj) if copy else obj
    if copy is False and not (isinstance(obj, np.ndarray) or hasattr(obj, "__dlpack__")):
        raise ValueError(f"[asarray] {describe(obj)} needs a copy, and copy=False forbids it")
    if isinstance(obj, (list, tuple)):
        obj = _plain(obj)
    made = tensor_of(obj, wanted)
    return ops.copy(made) if copy else made


def _plain(obj: Any) -> Any:
    """Nested lists in which 0-d arrays have become numbers."""
    if isinstance(obj, (list, tuple)):
        return [_plain(v) for v in obj]
    return obj.numpy() if isinstance(obj, ExTensor) else obj


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ExTensor:
    """An array over the memory of any object that speaks DLPack."""
    as_cpu("from_dlpack", device)
    made = shared(x)
    return ops.copy(made) if copy else made


def _default(value: Any) -> Any:
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else complex64 if isinstance(value, complex) else float32


def _dtype(function: str, dtype: Any, otherwise: Any = float32) -> Any:
    return otherwise if dtype is None else as_dtype(function, dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """An array of zeros."""
    as_cpu("zeros", device)
    return ops.zeros(shape, _dtype("zeros", dtype))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """An array of ones."""
    as_cpu("ones", device)
    return ops.ones(shape, _dtype("ones", dtype))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """An array whose elements are whatever the memory held."""
    as_cpu("empty", device)
    return ops.empty(shape, _dtype("empty", dtype))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """An array with the same number everywhere."""
    as_cpu("full", device)
    wanted = _dtype("full", dtype, _default(fill_value))
    if isinstance(fill_value, complex) or wanted in COMPLEX:
        return ops.broadcast_to(ExTensor(np.asarray(fill_value, wanted)), shape).copy()
    return ops.full(shape, fill_value, wanted)


def zeros_like(x: ExTensor, /, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """Zeros with the shape of ``x``."""
    return zeros(checked("zeros_like", x).shape, dtype=_dtype("zeros_like", dtype, x.dtype), device=device)


def ones_like(x: ExTensor, /, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """Ones with the shape of ``x``."""
    return ones(checked("ones_like", x).shape, dtype=_dtype("ones_like", dtype, x.dtype), device=device)


def empty_like(x: ExTensor, /, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """An uninitialised array with the shape of ``x``."""
    return empty(checked("empty_like", x).shape, dtype=_dtype("empty_like", dtype, x.dtype), device=device)


def full_like(x: ExTensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ExTensor:
    """The same number everywhere, with the shape of ``x``."""
    wanted = _dtype("full_like", dtype, x.dtype)
    return full(checked("full_like", x).shape, fill_value, dtype=wanted, device=device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> ExTensor:
    """Evenly spaced numbers from ``start`` up to, not including, ``stop``."""
    as_cpu("arange", device)
    if stop is None:
        start, stop = 0, start
    whole = all(isinstance(v, int) for v in (start, stop, step))
    wanted = _dtype("arange", dtype, int64 if whole else float32)
    return ExTensor(np.arange(start, stop, step).astype(wanted))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> ExTensor:
    """``num`` evenly spaced numbers between two ends."""
    as_cpu("linspace", device)
    found = complex64 if isinstance(start, complex) or isinstance(stop, complex) else float32
    wanted = _dtype("linspace", dtype, found)
    with np.errstate(all="ignore"):
        made = np.linspace(
            start, stop, num, endpoint=endpoint, dtype=wanted if wanted not in HALF else float32
        )
    return ExTensor(made.astype(wanted))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> ExTensor:
    """Ones on a diagonal, zeros elsewhere."""
    as_cpu("eye", device)
    return ops.eye(n_rows, n_cols, k, _dtype("eye", dtype))


def meshgrid(*arrays: ExTensor, indexing: str = "xy") -> tuple[ExTensor, ...]:
    """The coordinates of a grid, from the vectors along its axes."""
    return tuple(ops.meshgrid(*arrays, indexing=indexing))


def tril(x: ExTensor, /, *, k: int = 0) -> ExTensor:
    """The lower triangle of a matrix."""
    return ops.tril(x, k)


def triu(x: ExTensor, /, *, k: int = 0) -> ExTensor:
    """The upper triangle of a matrix."""
    return ops.triu(x, k)


# dtypes


def astype(x: ExTensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ExTensor:
    """The array in another dtype; complex numbers do not become real ones, take real(x)."""
    as_cpu("astype", device)
    wanted = as_dtype("astype", dtype)
    if checked("astype", x).dtype in COMPLEX and wanted not in COMPLEX and wanted != bool_:
        raise TypeError(f"[astype] {x.dtype} does not become {wanted}; take real(x) or imag(x) first")
    found = ops.astype(x, wanted)
    return ops.copy(found) if copy and found is x else found


def _dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, ExTensor) else as_dtype("dtype", value)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion can lead from one dtype to the other."""
    source, target = _dtype_of(from_), _dtype_of(to)
    try:
        return bool(promote(source, target) == target)
    except TypeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that the operands promote to; Python numbers are weak."""
    scalars = [v for v in arrays_and_dtypes if type(v) in (bool, int, float, complex)]
    dtypes = [_dtype_of(v) for v in arrays_and_dtypes if type(v) not in (bool, int, float, complex)]
    if not dtypes:
        raise ValueError("[result_type] needs an array or a dtype among its arguments")
    found = promote(*dtypes)
    if not scalars:
        return found
    if found == bfloat16:
        stronger = np.result_type(float16, *scalars)
        return bfloat16 if stronger == float16 else stronger
    return np.result_type(found, *scalars)


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype, of a complex one those of its parts."""
    dtype = _dtype_of(type)
    if dtype not in FLOATING:
        raise TypeError(f"[finfo] type must be a floating dtype, got {dtype}")
    if dtype == bfloat16:
        return FloatInfo(
            16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, -(2 - 2.0**-7) * 2.0**127, 2.0**-126, bfloat16
        )
    found = np.finfo(dtype)
    eps, high, low, normal = (float(v) for v in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatInfo(found.bits, eps, high, low, normal, np.dtype(found.dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype."""
    dtype = _dtype_of(type)
    if dtype not in INTEGER:
        raise TypeError(f"[iinfo] type must be an integer dtype, got {dtype}")
    found = np.iinfo(dtype)
    return IntegerInfo(found.bits, int(found.max), int(found.min), dtype)


_KINDS: dict[str, frozenset[Any]] = {
    "bool": frozenset({bool_}), "signed integer": frozenset(d for d in INTEGER if d.kind == "i"),
    "unsigned integer": frozenset(d for d in INTEGER if d.kind == "u"), "integral": INTEGER,
    "real floating": REAL_FLOATING, "complex floating": COMPLEX, "numeric": FLOATING | INTEGER,
}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a name such as "real floating", or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(
                f"[isdtype] kind must be one of {', '.join(map(repr, _KINDS))}, got {describe(kind)}"
            )
        return dtype in _KINDS[kind]
    if kind not in SUPPORTED:
        raise TypeError(f"[isdtype] kind must be a dtype, a name or a tuple of them, got {describe(kind)}")
    return bool(dtype == kind)
