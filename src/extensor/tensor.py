"""The tensor: an immutable n-d array that may remember how it was computed. No mathematics here.

The operators and the methods that mirror functions (``x + y``, ``x.sum()``) are attached one floor up, in
:mod:`extensor.ops.methods`, because they call functions that are defined there.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .dtypes import SUPPORTED, as_dtype, bfloat16, float32
from .errors import describe

try:
    from ._native import TensorBase
except ImportError:
    from ._pure import TensorBase  # type: ignore[assignment]

__all__ = ["ExTensor", "Shape", "TensorOrDtype", "TensorOrShape", "asarray", "from_dlpack", "tensor"]

Shape: TypeAlias = tuple[int, ...]


class ExTensor(TensorBase):
    """An immutable n-d array of numbers.

    Make one with :func:`tensor`, :func:`asarray` or the creation functions; the class itself only wraps
    a NumPy array that nobody else writes to.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape, x.dtype, (x + 1).tolist()
        ((2, 2), dtype('float32'), [[2.0, 3.0], [4.0, 5.0]])
    """

    __slots__ = ()
    __array_ufunc__ = None  # ndarray + tensor asks our __radd__

    # What it is

    @property
    def shape(self) -> Shape:
        """The lengths of the axes."""
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """The bytes its elements occupy."""
        return self._array.nbytes

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._requires_grad

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user rather than by a recorded operation."""
        return self._node is None

    @property
    def grad(self) -> ExTensor | None:
        """The gradient that ``backward()`` accumulated here, or None."""
        return self._grad

    @grad.setter
    def grad(self, value: ExTensor | None) -> None:
        if value is not None:
            if not isinstance(value, ExTensor):
                raise TypeError(f"[grad] must be a tensor or None, got {describe(value)}")
            if value.shape != self.shape or value.dtype != self.dtype:
                raise ValueError(
                    f"[grad] must have the tensor's shape {self.shape} and dtype {self.dtype}, "
                    f"got {value.shape} and {value.dtype}"
                )
        self._grad = value

    # Out of the tensor

    def numpy(self) -> np.ndarray:
        """A read-only NumPy view of the elements; nothing is copied."""
        view = self._array.view()
        view.flags.writeable = False
        return view

    def item(self) -> Any:
        """The one element as a Python number."""
        if self.size != 1:
            raise ValueError(f"[item] only a tensor with one element is a number, this one has shape {self.shape}")
        return self._array.item()

    def tolist(self) -> Any:
        """The elements as (nested lists of) Python numbers."""
        return self._array.tolist()

    def detach(self) -> ExTensor:
        """The same elements without a history; shares memory."""
        return ExTensor(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"[__array__] a view of {self.dtype} as {np.dtype(dtype)} needs a copy")
            return self._array.astype(dtype)
        return self._array.copy() if copy else self.numpy()

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule of the elements; shares memory (the consumer promises not to write there)."""
        if self.dtype == bfloat16:
            raise BufferError("[__dlpack__] bfloat16 cannot be exchanged; use x.astype(extensor.float32)")
        array = self._array if self._array.flags.writeable else self._array.copy()
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("[len] a 0-d tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[ExTensor]:
        if not self.ndim:
            raise TypeError("[iter] a 0-d tensor cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"[bool] the truth of a tensor of shape {self.shape} is ambiguous; use any() or all()")
        return bool(self._array.reshape(())[()])

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(f"[index] only a 0-d integer tensor is an index, this one is {self.dtype} {self.shape}")
        return int(self._array[()])

    __hash__ = object.__hash__

    def __copy__(self) -> ExTensor:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ExTensor:
        if not self.is_leaf:
            raise ValueError("[deepcopy] only a leaf can be copied deeply; use x.detach()")
        return type(self)(self._array.copy(), self.requires_grad)

    def __reduce__(self) -> Any:
        raise TypeError("[pickle] tensors are not pickled; save them as safetensors, or pickle x.numpy()")

    # For people

    def __repr__(self) -> str:
        body = _format_elements(self._array, prefix="tensor(")
        tail = f"shape={self.shape}, dtype={self.dtype.name}"
        if self.requires_grad:
            tail += ", requires_grad=True"
        separator = ",\n       " if "\n" in body else ", "
        return f"tensor({body}{separator}{tail})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else format(repr(self), spec)

    def _repr_html_(self) -> str:
        facts = f"ExTensor · {self.shape} · {self.dtype.name}"
        if self.requires_grad:
            facts += " · requires_grad"
        return (
            '<div style="font-family:monospace"><div style="opacity:.65;margin-bottom:.3em">'
            f"{html.escape(facts)}</div>{_html_elements(self._array)}</div>"
        )

    if TYPE_CHECKING:  # attached by extensor.ops.methods

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> ExTensor: ...
        def __add__(self, other: Any) -> ExTensor: ...
        def __radd__(self, other: Any) -> ExTensor: ...
        def __sub__(self, other: Any) -> ExTensor: ...
        def __rsub__(self, other: Any) -> ExTensor: ...
        def __mul__(self, other: Any) -> ExTensor: ...
        def __rmul__(self, other: Any) -> ExTensor: ...
        def __truediv__(self, other: Any) -> ExTensor: ...
        def __rtruediv__(self, other: Any) -> ExTensor: ...
        def __floordiv__(self, other: Any) -> ExTensor: ...
        def __mod__(self, other: Any) -> ExTensor: ...
        def __pow__(self, other: Any) -> ExTensor: ...
        def __rpow__(self, other: Any) -> ExTensor: ...
        def __matmul__(self, other: Any) -> ExTensor: ...
        def __rmatmul__(self, other: Any) -> ExTensor: ...
        def __neg__(self) -> ExTensor: ...
        def __abs__(self) -> ExTensor: ...
        def __lt__(self, other: Any) -> ExTensor: ...
        def __le__(self, other: Any) -> ExTensor: ...
        def __gt__(self, other: Any) -> ExTensor: ...
        def __ge__(self, other: Any) -> ExTensor: ...


TensorOrShape: TypeAlias = ExTensor | Shape
TensorOrDtype: TypeAlias = ExTensor | np.dtype[Any]


def _format_elements(array: np.ndarray, prefix: str = "") -> str:
    shown = array.astype(np.float32) if array.dtype == bfloat16 else array
    return np.array2string(shown, precision=4, separator=", ", threshold=200, edgeitems=3, prefix=prefix, suffix=")")


def _html_elements(array: np.ndarray) -> str:
    """A table for 1-d and 2-d tensors of moderate size, preformatted text for the rest."""
    if array.ndim not in (1, 2) or not array.size or max(array.shape) > 12:
        return f"<pre>{html.escape(_format_elements(array))}</pre>"
    numeric = array.astype(np.float32) if array.dtype == bfloat16 else array
    rows = "".join(
        "<tr>" + "".join(f'<td style="text-align:right">{format(v, ".4g")}</td>' for v in row.tolist()) + "</tr>"
        for row in np.atleast_2d(numeric)
    )
    return f"<table>{rows}</table>"


def _has_typed_leaf(data: Any) -> bool:
    """Whether nested lists hold anything that brings a dtype of its own."""
    if isinstance(data, (list, tuple)):
        return any(map(_has_typed_leaf, data))
    return hasattr(data, "dtype") or hasattr(data, "__array__")


def _to_numpy(function: str, data: Any, dtype: Any, copy: bool | None) -> np.ndarray:
    wanted = None if dtype is None else as_dtype(function, dtype)
    if isinstance(data, ExTensor):
        data = data._array
    typed = _has_typed_leaf(data)
    try:
        array = np.array(data, dtype=wanted, copy=copy)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"[{function}] data is not a regular array of numbers: {error} ({describe(data)})") from None
    except TypeError as error:
        raise TypeError(f"[{function}] data must be numbers: {error} (got {describe(data)})") from None
    if wanted is None and not typed and array.dtype == np.float64:
        array = array.astype(float32)
    if array.dtype not in SUPPORTED:
        raise TypeError(f"[{function}] data has dtype {array.dtype}, which is not a number type of ExTensor")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> ExTensor:
    """A new tensor with a copy of ``data``.

    Args:
        data: numbers, nested lists of them, an array or a tensor. Python floats make float32 and
            Python ints int64; arrays keep their dtype.
        dtype: the dtype wanted, if another.
        requires_grad: record what is computed from it, so that ``backward()`` can fill ``.grad``.

    Example:
        >>> import extensor as et
        >>> et.tensor([1, 2.5])
        tensor([1. , 2.5], shape=(2,), dtype=float32)
    """
    array = _to_numpy("tensor", data, dtype, copy=True)
    if requires_grad and array.dtype.kind in "biu":
        raise TypeError(f"[tensor] requires_grad needs a floating dtype, got {array.dtype}; pass dtype=extensor.float32")
    return ExTensor(np.ascontiguousarray(array).reshape(array.shape), bool(requires_grad))


def asarray(data: Any, dtype: Any = None) -> ExTensor:
    """``data`` as a tensor, sharing its memory where that is possible.

    A tensor comes back as it is. The caller promises not to write to a shared array any more.

    Example:
        >>> import numpy as np, extensor as et
        >>> a = np.ones(3)
        >>> np.shares_memory(et.asarray(a).numpy(), a)
        True
    """
    if isinstance(data, ExTensor) and (dtype is None or data.dtype == as_dtype("asarray", dtype)):
        return data
    if not isinstance(data, (ExTensor, np.ndarray)) and hasattr(data, "__dlpack__"):
        return asarray(from_dlpack(data), dtype)
    return ExTensor(_to_numpy("asarray", data, dtype, copy=None))


def from_dlpack(source: Any) -> ExTensor:
    """A tensor over the memory of any object that speaks DLPack (PyTorch, JAX, NumPy, ...) on the CPU.

    Example:
        >>> import numpy as np, extensor as et
        >>> et.from_dlpack(np.arange(3)).tolist()
        [0, 1, 2]
    """
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"[from_dlpack] source must offer __dlpack__, got {describe(source)}")
    if isinstance(source, ExTensor):
        return source.detach()
    try:
        array = np.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"[from_dlpack] source cannot be shared: {error}") from None
    return ExTensor(_to_numpy("from_dlpack", array, None, copy=None))
