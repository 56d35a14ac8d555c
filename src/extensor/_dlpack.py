"""bfloat16 by DLPack. NumPy knows no such dtype, so its bytes travel as uint16 and the capsule says what they are.

A capsule holds the address of a struct. In one that is called ``dltensor`` it begins with ``{void *data; int32 device[2]; int32 ndim;
uint8 code; uint8 bits; uint16 lanes; ...}``; in ``dltensor_versioned`` others stand before that: ``{uint32 version[2]; void *context;
void *deleter; uint64 flags; ...}``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .dtypes import bfloat16

__all__ = ["bfloat16_capsule", "read_dlpack"]

_POINTER = ctypes.sizeof(ctypes.c_void_p)
_DTYPE_AT = {b"dltensor": _POINTER + 12, b"dltensor_versioned": 3 * _POINTER + 28}
_UINT, _BFLOAT = 1, 4  # DLPack's codes

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _dtype(capsule: Any) -> Any:
    """The code and the bits in a capsule, to be read and written."""
    name = _name(capsule)
    if name not in _DTYPE_AT:
        raise BufferError(f"{name!r} is no capsule of DLPack that can be read")
    return (ctypes.c_uint8 * 2).from_address(_pointer(capsule, name) + _DTYPE_AT[name])


class _Whole:
    """What offers bfloat16, as something that offers uint16."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.is_bfloat16 = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.source.__dlpack__(**options)
        dtype = _dtype(capsule)
        if tuple(dtype) == (_BFLOAT, 16):
            dtype[0] = _UINT
            self.is_bfloat16 = True
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def read_dlpack(source: Any) -> np.ndarray:
    """An array over the memory of an object that speaks DLPack."""
    seen = _Whole(source)
    array = np.from_dlpack(seen)
    return array.view(bfloat16) if seen.is_bfloat16 else array


def bfloat16_capsule(array: np.ndarray, **options: Any) -> Any:
    """A capsule of an array of bfloat16."""
    capsule = array.view(np.uint16).__dlpack__(**options)
    _dtype(capsule)[0] = _BFLOAT
    return capsule
