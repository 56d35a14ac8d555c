"""Other devices: arrays that another library keeps where it computes, and how they come and go.

A tensor on another device holds a :class:`DeviceArray`: shape and dtype are here, the elements are in an array of that library.
One library is known by name, JAX (the extra ``jax``), which runs on whatever its XLA drives; ``"jax"`` is its first device,
``"jax:cpu:0"`` or ``"jax:gpu:1"`` a certain one.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ._core import register
from .errors import describe

__all__ = [
    "DeviceArray",
    "brought_here",
    "device_of",
    "find_device",
    "is_foreign",
    "jax",
    "kept_there",
    "put",
    "wide_types",
]


class DeviceArray(np.ndarray):
    """What a tensor on another device holds: the shape, the dtype, and ``held``, the array of the other library.

    Its own memory is one element that means nothing. Whoever needs the elements here calls :meth:`fetch`.
    """

    held: Any
    __array_ufunc__ = None  # type: ignore[assignment]  # NumPy refuses to compute with what means nothing

    def fetch(self) -> np.ndarray:
        """The elements, here."""
        return np.asarray(self.held)

    def view(self, *args: Any, **options: Any) -> Any:
        """Another array of the same elements."""
        if args or options:
            raise TypeError("[view] an array on another device has no other views; bring it to the cpu first")
        return kept_there(self.held)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(
            f"[{function.__name__}] an array on another device was handed to NumPy; bring it to the cpu first"
        )

    def __getitem__(self, key: Any) -> Any:
        raise TypeError("[getitem] the elements are on another device; bring them to the cpu first")

    def __repr__(self) -> str:
        return f"<array of shape {self.shape} on {device_of(self)}>"


register(device_array=DeviceArray)


def kept_there(held: Any) -> DeviceArray:
    """What stands here for an array of another library."""
    dtype = np.dtype(held.dtype)
    nothing = bytes([255] * dtype.itemsize)
    made = np.ndarray.__new__(DeviceArray, held.shape, dtype, nothing, 0, (0,) * len(held.shape))
    made.held = held
    return made


def is_foreign(value: Any) -> bool:
    """Whether it is an array of another library than NumPy, or stands for one."""
    if type(value) is DeviceArray:
        return True
    return (
        not isinstance(value, (np.ndarray, np.generic))
        and hasattr(value, "__array_namespace__")
        and not hasattr(value, "_data")
    )


def jax() -> Any:
    """JAX, if it is installed."""
    try:
        return importlib.import_module("jax")
    except ImportError:
        raise ImportError("[device] 'jax' needs JAX: pip install jax (the extra 'jax' of ExTensor)") from None


def wide_types() -> AbstractContextManager[Any]:
    """The block in which JAX has float64 and int64, as everything here does."""
    context: AbstractContextManager[Any] = jax().enable_x64(True)
    return context


def find_device(function: str, device: Any) -> Any:
    """The device of a name; None is this processor with our own kernels, ``"cpu"``."""
    if device == "cpu":
        return None
    if not isinstance(device, str) or device.split(":")[0] != "jax":
        raise ValueError(
            f'[{function}] device must be "cpu", "jax" or one of JAX\'s such as "jax:cpu:0", got {describe(device)}'
        )
    _, *rest = device.split(":")
    library = jax()
    if not rest:
        return library.devices()[0]
    number = rest[1] if len(rest) > 1 else "0"
    try:
        known = library.devices(rest[0])
    except RuntimeError as error:
        raise ValueError(
            f"[{function}] device {device!r} is not there: {str(error).splitlines()[0]}"
        ) from None
    if len(rest) > 2 or not number.isdecimal() or int(number) >= len(known):
        names = ", ".join(f'"jax:{rest[0]}:{i}"' for i in range(len(known)))
        raise ValueError(f"[{function}] device {device!r} is not there; there is {names}")
    return known[int(number)]


def device_of(array: np.ndarray) -> str:
    """The name of the device that an array is on."""
    if type(array) is not DeviceArray:
        return "cpu"
    place = next(iter(array.held.devices()))
    return f"jax:{place.platform}:{place.id}"


def put(array: np.ndarray, place: Any) -> np.ndarray:
    """An array on a device that :func:`find_device` found."""
    if place is None:
        return brought_here(array)
    with wide_types():
        held = array.held if type(array) is DeviceArray else np.ascontiguousarray(array).reshape(array.shape)
        return kept_there(jax().device_put(held, place))


def brought_here(array: np.ndarray) -> np.ndarray:
    """An array with its elements here."""
    return array.fetch() if type(array) is DeviceArray else array
