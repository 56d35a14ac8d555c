"""The operators of a tensor and the methods that mirror functions: ``x + y``, ``x[1:]``, ``x.sum(0)``, ``x.T``.

They are attached here, one floor above the tensor itself, because this is where the functions are. Their types
are declared in :class:`~extensor.tensor.ExTensor`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .._habits import TENSOR, in_place, teach
from .._loading import load
from ..devices import device_of, find_device, put
from ..errors import GraphError, describe
from ..tensor import ExTensor
from . import (
    arithmetic,
    broadcasting,
    casting,
    comparison,
    complex_numbers,
    creation,
    elementwise,
    indexing,
    matrix,
    reduction,
    shape,
)
from ._later import FAMILY_OF

# Types that x op y computes with; any other is left to y's own operator.
_OPERANDS = (ExTensor, np.ndarray, np.generic, bool, int, float, complex, list, tuple)

_BINARY: dict[str, Callable[..., Any]] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.modulo,
    "pow": arithmetic.power,
    "matmul": matrix.matmul,
}
_COMPARISON: dict[str, Callable[..., Any]] = {
    "eq": comparison.equal,
    "ne": comparison.not_equal,
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
}
_LOGICAL: dict[str, Callable[..., Any]] = {
    "and": comparison.logical_and,
    "or": comparison.logical_or,
    "xor": comparison.logical_xor,
}

# Functions that are methods under their own name, the tensor as their first argument.
_MIRRORED: dict[ModuleType, str] = {
    arithmetic: "add subtract multiply divide floor_divide modulo power negate maximum minimum",
    comparison: "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor "
    "isnan isinf isfinite",
    elementwise: "abs sign ceil floor round trunc square reciprocal clip",
    casting: "astype",
    complex_numbers: "angle conj",
    creation: "copy",
    broadcasting: "broadcast_to sum_to_shape",
    matrix: "matmul dot outer inner tensordot",
    reduction: "sum mean max min max_reduce min_reduce var variance std prod logsumexp cumsum",
    shape: "squeeze unsqueeze expand_dims flatten ravel moveaxis swapaxes flip roll",
    indexing: "take take_along_axis",
}


# The same for functions that load when they are first used.
_MIRRORED_LATER = (
    "split tile repeat pad "
    "exp expm1 log log1p log2 log10 sqrt rsqrt "
    "softmax log_softmax "
    "sin cos tan asin acos atan sinh cosh tanh erf "
    "relu leaky_relu prelu sigmoid gelu silu mish elu selu softplus relu6 hard_sigmoid hard_swish hard_tanh "
    "sort top_k argsort argmax argmin any all count_nonzero "
    "diag diag_embed diagonal trace tril triu "
    "acosh asinh atan2 atanh copysign digamma erfc erfinv heaviside hypot i0 i1 lgamma logaddexp nextafter polygamma sinc cummax "
    "cummin cumprod diff logcumsumexp bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
    "allclose bincount histogram isclose isin nonzero searchsorted unique_all unique_counts unique_inverse unique_values median "
    "quantile gather masked_fill scatter scatter_add unstack"
)


def _later(name: str) -> Callable[..., Any]:
    """A method that loads its function with the first call, and gives way to it."""

    def method(self: ExTensor, *args: Any, **kwargs: Any) -> Any:
        function = getattr(load(f"extensor.ops.{FAMILY_OF[name]}"), name)
        setattr(ExTensor, name, function)
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"ExTensor.{name}"
    method.__doc__ = f":func:`extensor.{name}` of this tensor."
    return method


def _operator(name: str, function: Callable[..., Any], reflected: bool = False) -> Callable[[Any, Any], Any]:
    """A binary operator; it leaves types it does not know to the other operand."""
    if reflected:

        def method(self: ExTensor, other: Any) -> Any:
            return function(other, self) if isinstance(other, _OPERANDS) else NotImplemented
    else:

        def method(self: ExTensor, other: Any) -> Any:
            return function(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    return _named(name, method, function)


def _named(name: str, method: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f"ExTensor.{name}"
    method.__doc__ = function.__doc__
    return method


def _of_masks(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``& | ^ ~`` combine masks, and the bits of integers."""

    def checked(*operands: Any) -> Any:
        kinds = {"i" if type(v) is int else "b" if type(v) is bool else _kind(v) for v in operands}
        if kinds <= set("iu"):
            return getattr(_bits(), _BITS[name])(*operands)
        for value in operands:
            if not isinstance(value, (bool, np.bool_)) and getattr(value, "dtype", None) != np.bool_:
                raise TypeError(
                    f"[{name}] combines boolean tensors, got {describe(value)}; compare first, e.g. x > 0"
                )
        return function(*operands)

    return checked


def _kind(value: Any) -> str:
    return str(getattr(getattr(value, "dtype", None), "kind", "O"))


_BITS = {
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__invert__": "bitwise_invert",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
}  # fmt: skip


def _bits() -> ModuleType:
    """The functions of bits, which load on first use."""
    return load("extensor.ops.bitwise")


def _shift(name: str) -> Callable[..., Any]:
    def shifted(a: Any, b: Any) -> Any:
        """Bits moved up or down."""
        return getattr(_bits(), _BITS[name])(a, b)

    return shifted


def _namespace(self: ExTensor, *, api_version: str | None = None) -> ModuleType:
    """The functions of the array API standard for this tensor."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(
            f"[__array_namespace__] api_version must be a year of the standard up to 2025.12, got {describe(api_version)}"
        )
    return load("extensor.array_api")


def _array_ufunc(self: ExTensor, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """``np.sin(x)`` and ``array + x``: ours of the same name."""
    return _numpy_functions().by_ufunc(ufunc, method, inputs, options)


def _array_function(
    self: ExTensor, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """``np.mean(x)``: ours of the same name, else NumPy's of the elements."""
    if not all(issubclass(kind, (ExTensor, np.ndarray)) for kind in types):
        return NotImplemented
    return _numpy_functions().by_function(function, args, options)


def _numpy_functions() -> ModuleType:
    return load("extensor.ops._numpy_functions")


def _to_device(self: ExTensor, device: Any, /, *, stream: Any = None) -> ExTensor:
    """The tensor on a device: ``"cpu"``, ``"jax"``, ``"jax:gpu:0"``. A leaf, with a copy of the elements if it is another one.

    Functions of tensors on another device run there, by the reference kernels over that library.
    """
    place = find_device("to_device", device)
    if stream is not None:
        raise ValueError(f"[to_device] there are no streams, got stream={describe(stream)}")
    now = device_of(self._data)
    if now == device or (place is not None and now == f"jax:{place.platform}:{place.id}"):
        return self
    if self._node is not None:
        raise GraphError("[to_device] this tensor was computed from others; move those, or x.detach()")
    return ExTensor(put(self._data, place), self._requires_grad)


def _spread(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes its tuple spread out as well: ``x.reshape(2, 3)`` and ``x.reshape((2, 3))``."""

    def method(self: ExTensor, *lengths: Any) -> Any:
        return function(self, lengths[0] if len(lengths) == 1 else lengths)

    return _named(name, method, function)


def _transpose(self: ExTensor, *axes: Any) -> ExTensor:
    if not axes:
        return matrix.transpose(self)
    if len(axes) == 2 and all(type(a) is int and -self.ndim <= a < self.ndim for a in axes):
        first, second = (a % self.ndim for a in axes)
        if (
            self.ndim != 2 or first < second
        ):  # PyTorch exchanges the two, NumPy would leave the matrix as it is
            raise ValueError(
                f"[transpose] takes all axes in their new order, got {axes} for shape {self.shape}; to exchange two, use "
                f"x.swapaxes{axes}{', or x.T' if self.ndim == 2 else ''}"
            )
    return matrix.transpose(self, axes[0] if len(axes) == 1 else axes)


def _imaginary(self: ExTensor) -> ExTensor:
    """The imaginary parts; zeros for a real tensor."""
    return complex_numbers.imag(self) if self.dtype.kind == "c" else creation.zeros_like(self)


def _matrix_transpose(self: ExTensor) -> ExTensor:
    """A matrix, or a stack of them, with rows and columns exchanged."""
    if self.ndim < 2:
        raise ValueError(f"[mT] needs at least two axes, got shape {self.shape}")
    return shape.swapaxes(self, -1, -2)


def _refuse(self: ExTensor, key: Any, value: Any) -> None:
    raise TypeError("[ExTensor] tensors never change; use x = x.at[key].set(value)")


def _attach() -> None:
    for name, function in _BINARY.items():
        setattr(ExTensor, f"__{name}__", _operator(f"__{name}__", function))
        setattr(ExTensor, f"__r{name}__", _operator(f"__r{name}__", function, reflected=True))
    for name, function in _COMPARISON.items():
        setattr(ExTensor, f"__{name}__", _operator(f"__{name}__", function))
    for name, function in _LOGICAL.items():
        checked = _of_masks(f"__{name}__", function)
        setattr(ExTensor, f"__{name}__", _operator(f"__{name}__", checked))
        setattr(ExTensor, f"__r{name}__", _operator(f"__r{name}__", checked, reflected=True))
    for name in ("lshift", "rshift"):
        setattr(ExTensor, f"__{name}__", _operator(f"__{name}__", _shift(f"__{name}__")))
        setattr(ExTensor, f"__r{name}__", _operator(f"__r{name}__", _shift(f"__{name}__"), reflected=True))
    for module, names in _MIRRORED.items():
        for name in names.split():
            setattr(ExTensor, name, getattr(module, name))
    special: dict[str, Any] = {
        "__neg__": arithmetic.negate,
        "__pos__": _named("__pos__", lambda self: self, ExTensor.__copy__),
        "__abs__": elementwise.abs,
        "__invert__": _of_masks("__invert__", comparison.logical_not),
        "__getitem__": indexing.index,
        "__setitem__": _refuse,
        "__array_namespace__": _namespace,
        "__array_ufunc__": _array_ufunc,
        "__array_function__": _array_function,
        "to_device": _to_device,
        "device": property(
            lambda self: device_of(self._data), doc='Where the elements are: "cpu", or such as "jax:cpu:0".'
        ),
        "reshape": _spread("reshape", shape.reshape),
        "permute": _spread("permute", shape.permute),
        "transpose": _named("transpose", _transpose, matrix.transpose),
        "real": property(complex_numbers.real, doc="The real parts; a real tensor itself."),
        "imag": property(_imaginary),
        "T": property(matrix.transpose, doc="The tensor with its axes in reverse order."),
        "mT": property(_matrix_transpose),
        "at": property(
            indexing.At, doc="Places in the tensor: ``x.at[key].set(v)`` and ``x.at[key].add(v)``."
        ),
    }
    for name, value in special.items():
        setattr(ExTensor, name, value)
    for name in _MIRRORED_LATER.split():
        setattr(ExTensor, name, _later(name))
    methods = [*" ".join(_MIRRORED.values()).split(), *_MIRRORED_LATER.split(), "reshape", "transpose"]
    teach(ExTensor, in_place(methods) | TENSOR)


_attach()
