"""The tensor: an immutable n-d array that may remember how it was computed. No mathematics here.

The operators and the methods that mirror functions (``x + y``, ``x.sum()``) are attached one floor up, in
:mod:`extensor.ops.methods`, because they call functions that are defined there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np

from ._core import TensorBase, this_thread
from .devices import DeviceArray, jax, kept_there
from .dtypes import (
    COMPLEX,
    SUPPORTED,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
)
from .errors import GraphError, describe

__all__ = [
    "ExTensor",
    "Indices",
    "Shape",
    "TensorOrDtype",
    "TensorOrShape",
    "asarray",
    "from_dlpack",
    "kinds_in",
    "needs_grad",
    "tensor",
    "with_arrays",
]

Shape: TypeAlias = tuple[int, ...]

if TYPE_CHECKING:
    Axis: TypeAlias = int | tuple[int, ...] | None

    class Place(Protocol):  # x.at[key]
        def set(self, values: Any) -> ExTensor: ...
        def add(self, values: Any) -> ExTensor: ...

    class At(Protocol):  # x.at
        def __getitem__(self, key: Any) -> Place: ...


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

    # What it is

    @property
    def nbytes(self) -> int:
        """The bytes its elements occupy."""
        return self._data.nbytes

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Record operations on this tensor from now on, or no more; returns the tensor itself.

        Args:
            requires_grad: whether ``backward()`` fills its ``.grad``. Only a floating leaf can require a gradient.

        Example:
            >>> import extensor as et
            >>> x = et.ones(2).requires_grad_()
            >>> (x * 3.0).sum().backward()
            >>> x.grad.tolist()
            [3.0, 3.0]
        """
        if not isinstance(requires_grad, (bool, np.bool_)):
            raise TypeError(f"[requires_grad] must be True or False, got {describe(requires_grad)}")
        if self._node is not None:
            raise GraphError(
                "[requires_grad] this tensor was computed from others; only a leaf can be told, use x.detach()"
            )
        if requires_grad and self.dtype.kind in "biu":
            raise TypeError(
                f"[requires_grad] needs a floating dtype, got {self.dtype}; use x.astype(extensor.float32)"
            )
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user rather than by a recorded operation."""
        return self._node is None

    @property
    def grad(self) -> ExTensor | None:
        """The gradient that ``backward()`` accumulated here, or None."""
        grad = self._grad  # half precision accumulates in float32
        return grad if grad is None or grad.dtype == self.dtype else grad.astype(self.dtype)

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
        observer = this_thread.observer
        if observer is not None and hasattr(observer, "note_leaf"):  # a function is being compiled
            observer.note_leaf(self)
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
            raise ValueError(
                f"[item] only a tensor with one element is a number, this one has shape {self.shape}"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """The elements as (nested lists of) Python numbers."""
        return self._array.tolist()

    def detach(self) -> ExTensor:
        """The same elements without a history; shares memory."""
        observer = this_thread.observer
        if observer is not None and hasattr(observer, "note_use"):  # a function is being compiled
            observer.note_use(self)
        return ExTensor(self._data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"[__array__] a view of {self.dtype} as {np.dtype(dtype)} needs a copy")
            return self._array.astype(dtype)
        return self._array.copy() if copy else self.numpy()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """A DLPack capsule of the elements; shares memory (the consumer promises not to write there)."""
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        if type(self._data) is DeviceArray:
            return self._data.held.__dlpack__(**options)
        array = self._array if self._array.flags.writeable else self._array.copy()
        if self.dtype != bfloat16:
            return array.__dlpack__(**options)
        from ._dlpack import bfloat16_capsule

        return bfloat16_capsule(array, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.held.__dlpack_device__() if type(self._data) is DeviceArray else (1, 0)

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
            raise ValueError(
                f"[bool] the truth of a tensor of shape {self.shape} is ambiguous; use any() or all()"
            )
        return bool(self._array.reshape(())[()])

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(
                f"[index] only a 0-d integer tensor is an index, this one is {self.dtype} {self.shape}"
            )
        return int(self._array[()])

    __hash__ = object.__hash__

    def __copy__(self) -> ExTensor:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ExTensor:
        if not self.is_leaf:
            raise ValueError("[deepcopy] only a leaf can be copied deeply; use x.detach()")
        return type(self)(self._array.copy(), self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For processes of one program (multiprocessing, joblib): protocol 5 hands the elements over without a copy.

        Files are another matter: whoever loads a pickle runs what is in it, so ours are safetensors.
        """
        if not self.is_leaf:
            raise ValueError(
                "[pickle] this tensor was computed from others, which cannot go with it; use x.detach()"
            )
        array = self._array if self._array.flags.c_contiguous else self._array.copy("C")
        return _unpickled, (type(self), array, self._requires_grad)

    @classmethod
    def _unpickled(cls, array: np.ndarray, requires_grad: bool) -> Self:
        return cls(array, requires_grad)

    # For people

    def __repr__(self) -> str:
        from ._tensor_view import format_elements

        body = format_elements(self._array, prefix="tensor(")
        tail = f"shape={self.shape}, dtype={self.dtype.name}"
        if self.requires_grad:
            tail += ", requires_grad=True"
        separator = ",\n       " if "\n" in body else ", "
        return f"tensor({body}{separator}{tail})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else format(repr(self), spec)

    def _repr_html_(self) -> str:
        from ._html import escaped, fragment
        from ._tensor_view import elements_html

        facts = f"{escaped(type(self).__name__)} <b>{self.shape}</b> {self.dtype.name}"
        if self.requires_grad:
            facts += " · requires_grad"
        return fragment(f'<p class="et-facts">{facts}</p>', elements_html(self._array))

    if TYPE_CHECKING:  # attached by extensor.ops.methods and extensor.autograd.methods

        def __add__(self, other: Any) -> ExTensor: ...
        def __radd__(self, other: Any) -> ExTensor: ...
        def __sub__(self, other: Any) -> ExTensor: ...
        def __rsub__(self, other: Any) -> ExTensor: ...
        def __mul__(self, other: Any) -> ExTensor: ...
        def __rmul__(self, other: Any) -> ExTensor: ...
        def __truediv__(self, other: Any) -> ExTensor: ...
        def __rtruediv__(self, other: Any) -> ExTensor: ...
        def __floordiv__(self, other: Any) -> ExTensor: ...
        def __rfloordiv__(self, other: Any) -> ExTensor: ...
        def __mod__(self, other: Any) -> ExTensor: ...
        def __rmod__(self, other: Any) -> ExTensor: ...
        def __pow__(self, other: Any) -> ExTensor: ...
        def __rpow__(self, other: Any) -> ExTensor: ...
        def __matmul__(self, other: Any) -> ExTensor: ...
        def __rmatmul__(self, other: Any) -> ExTensor: ...
        def __and__(self, other: Any) -> ExTensor: ...
        def __rand__(self, other: Any) -> ExTensor: ...
        def __or__(self, other: Any) -> ExTensor: ...
        def __ror__(self, other: Any) -> ExTensor: ...
        def __xor__(self, other: Any) -> ExTensor: ...
        def __rxor__(self, other: Any) -> ExTensor: ...
        def __lshift__(self, other: Any) -> ExTensor: ...
        def __rlshift__(self, other: Any) -> ExTensor: ...
        def __rshift__(self, other: Any) -> ExTensor: ...
        def __rrshift__(self, other: Any) -> ExTensor: ...
        def __neg__(self) -> ExTensor: ...
        def __pos__(self) -> ExTensor: ...
        def __abs__(self) -> ExTensor: ...
        def __invert__(self) -> ExTensor: ...
        def __eq__(self, other: Any) -> ExTensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> ExTensor: ...  # type: ignore[override]
        def __lt__(self, other: Any) -> ExTensor: ...
        def __le__(self, other: Any) -> ExTensor: ...
        def __gt__(self, other: Any) -> ExTensor: ...
        def __ge__(self, other: Any) -> ExTensor: ...
        def __getitem__(self, key: Any) -> ExTensor: ...
        @property
        def at(self) -> At: ...
        @property
        def device(self) -> str: ...
        def to_device(self, device: Any, /, *, stream: Any = None) -> ExTensor: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any: ...
        def __array_function__(
            self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
        ) -> Any: ...
        @property
        def T(self) -> ExTensor: ...
        @property
        def mT(self) -> ExTensor: ...
        def backward(
            self, grad_output: ExTensor | None = None, retain_graph: bool = False, create_graph: bool = False
        ) -> None: ...
        def retain_grad(self) -> None: ...
        def astype(self, dtype: Any) -> ExTensor: ...
        def conj(self) -> ExTensor: ...
        def copy(self) -> ExTensor: ...

        def add(self, b: Any) -> ExTensor: ...
        def subtract(self, b: Any) -> ExTensor: ...
        def multiply(self, b: Any) -> ExTensor: ...
        def divide(self, b: Any) -> ExTensor: ...
        def floor_divide(self, b: Any) -> ExTensor: ...
        def modulo(self, b: Any) -> ExTensor: ...
        def power(self, b: Any) -> ExTensor: ...
        def maximum(self, b: Any) -> ExTensor: ...
        def minimum(self, b: Any) -> ExTensor: ...
        def negate(self) -> ExTensor: ...
        def equal(self, b: Any) -> ExTensor: ...
        def not_equal(self, b: Any) -> ExTensor: ...
        def less(self, b: Any) -> ExTensor: ...
        def less_equal(self, b: Any) -> ExTensor: ...
        def greater(self, b: Any) -> ExTensor: ...
        def greater_equal(self, b: Any) -> ExTensor: ...
        def logical_and(self, b: Any) -> ExTensor: ...
        def logical_or(self, b: Any) -> ExTensor: ...
        def logical_xor(self, b: Any) -> ExTensor: ...
        def logical_not(self) -> ExTensor: ...
        def isnan(self) -> ExTensor: ...
        def isinf(self) -> ExTensor: ...
        def isfinite(self) -> ExTensor: ...
        def abs(self) -> ExTensor: ...
        def sign(self) -> ExTensor: ...
        def ceil(self) -> ExTensor: ...
        def floor(self) -> ExTensor: ...
        def round(self) -> ExTensor: ...
        def trunc(self) -> ExTensor: ...
        def square(self) -> ExTensor: ...
        def reciprocal(self) -> ExTensor: ...
        def clip(self, min: float | None = None, max: float | None = None) -> ExTensor: ...
        def exp(self) -> ExTensor: ...
        def expm1(self) -> ExTensor: ...
        def log(self) -> ExTensor: ...
        def log1p(self) -> ExTensor: ...
        def log2(self) -> ExTensor: ...
        def log10(self) -> ExTensor: ...
        def sqrt(self) -> ExTensor: ...
        def rsqrt(self) -> ExTensor: ...
        def sin(self) -> ExTensor: ...
        def cos(self) -> ExTensor: ...
        def tan(self) -> ExTensor: ...
        def asin(self) -> ExTensor: ...
        def acos(self) -> ExTensor: ...
        def atan(self) -> ExTensor: ...
        def sinh(self) -> ExTensor: ...
        def cosh(self) -> ExTensor: ...
        def tanh(self) -> ExTensor: ...
        def erf(self) -> ExTensor: ...

        def matmul(self, b: ExTensor) -> ExTensor: ...
        def dot(self, b: ExTensor) -> ExTensor: ...
        def outer(self, b: ExTensor) -> ExTensor: ...
        def inner(self, b: ExTensor) -> ExTensor: ...
        def tensordot(self, b: ExTensor, axes: Any = 2) -> ExTensor: ...
        def transpose(self, *axes: Any) -> ExTensor: ...

        def sum(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def mean(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def max(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def min(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def max_reduce(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def min_reduce(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def prod(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def logsumexp(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def any(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def all(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def count_nonzero(self, axis: Axis = None, keepdims: bool = False) -> ExTensor: ...
        def var(self, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> ExTensor: ...
        def variance(self, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> ExTensor: ...
        def std(self, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> ExTensor: ...
        def argmax(self, axis: int | None = None, keepdims: bool = False) -> ExTensor: ...
        def argmin(self, axis: int | None = None, keepdims: bool = False) -> ExTensor: ...
        def cumsum(self, axis: int | None = None) -> ExTensor: ...
        def sort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> ExTensor: ...
        def argsort(
            self, axis: int | None = -1, descending: bool = False, stable: bool = True
        ) -> ExTensor: ...
        def top_k(self, k: int, axis: int = -1) -> tuple[ExTensor, ExTensor]: ...

        def reshape(self, *shape: Any) -> ExTensor: ...
        def permute(self, *axes: Any) -> ExTensor: ...
        def squeeze(self, axis: Any = None) -> ExTensor: ...
        def unsqueeze(self, axis: Any) -> ExTensor: ...
        def expand_dims(self, axis: Any) -> ExTensor: ...
        def flatten(self, start_axis: int = 0, end_axis: int = -1) -> ExTensor: ...
        def ravel(self) -> ExTensor: ...
        def moveaxis(self, source: Any, destination: Any) -> ExTensor: ...
        def swapaxes(self, axis1: int, axis2: int) -> ExTensor: ...
        def flip(self, axis: Any = None) -> ExTensor: ...
        def roll(self, shift: Any, axis: Any = None) -> ExTensor: ...
        def split(self, indices_or_sections: Any, axis: int = 0) -> list[ExTensor]: ...
        def tile(self, reps: Any) -> ExTensor: ...
        def repeat(self, repeats: Any, axis: int | None = None) -> ExTensor: ...
        def pad(self, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> ExTensor: ...
        def take(self, indices: Any, axis: int | None = None) -> ExTensor: ...
        def take_along_axis(self, indices: Any, axis: int | None = -1) -> ExTensor: ...
        def broadcast_to(self, shape: Any) -> ExTensor: ...
        def sum_to_shape(self, shape: TensorOrShape) -> ExTensor: ...

        @property
        def real(self) -> ExTensor: ...
        @property
        def imag(self) -> ExTensor: ...

        def acosh(self) -> ExTensor: ...
        def asinh(self) -> ExTensor: ...
        def atan2(self, b: Any) -> ExTensor: ...
        def atanh(self) -> ExTensor: ...
        def copysign(self, b: Any) -> ExTensor: ...
        def digamma(self) -> ExTensor: ...
        def erfc(self) -> ExTensor: ...
        def erfinv(self) -> ExTensor: ...
        def heaviside(self, b: Any) -> ExTensor: ...
        def hypot(self, b: Any) -> ExTensor: ...
        def i0(self) -> ExTensor: ...
        def i1(self) -> ExTensor: ...
        def lgamma(self) -> ExTensor: ...
        def logaddexp(self, b: Any) -> ExTensor: ...
        def nextafter(self, b: Any) -> ExTensor: ...
        def polygamma(self, x: Any) -> ExTensor: ...
        def sinc(self) -> ExTensor: ...
        def cummax(self, axis: int = -1) -> Any: ...
        def cummin(self, axis: int = -1) -> Any: ...
        def cumprod(self, axis: int = -1) -> ExTensor: ...
        def diff(self, n: int = 1, axis: int = -1) -> ExTensor: ...
        def logcumsumexp(self, axis: int = -1) -> ExTensor: ...
        def bitwise_and(self, b: Any) -> ExTensor: ...
        def bitwise_invert(self) -> ExTensor: ...
        def bitwise_left_shift(self, b: Any) -> ExTensor: ...
        def bitwise_or(self, b: Any) -> ExTensor: ...
        def bitwise_right_shift(self, b: Any) -> ExTensor: ...
        def bitwise_xor(self, b: Any) -> ExTensor: ...
        def allclose(
            self, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
        ) -> Any: ...
        def bincount(self, weights: Any = None, minlength: int = 0) -> ExTensor: ...
        def histogram(self, bins: int = 10, range: Any = None) -> Any: ...
        def isclose(
            self, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
        ) -> ExTensor: ...
        def isin(self, values: Any, invert: bool = False) -> ExTensor: ...
        def nonzero(self) -> Any: ...
        def searchsorted(self, values: Any, side: str = "left", sorter: Any = None) -> ExTensor: ...
        def unique_all(self) -> Any: ...
        def unique_counts(self) -> Any: ...
        def unique_inverse(self) -> Any: ...
        def unique_values(self) -> ExTensor: ...
        def median(self, axis: Any = None, keepdims: bool = False) -> ExTensor: ...
        def quantile(self, q: Any, axis: Any = None, keepdims: bool = False) -> ExTensor: ...
        def gather(self, axis: Any, index: Any) -> ExTensor: ...
        def masked_fill(self, mask: Any, value: Any) -> ExTensor: ...
        def scatter(self, axis: Any, index: Any, source: Any) -> ExTensor: ...
        def scatter_add(self, axis: Any, index: Any, source: Any) -> ExTensor: ...
        def unstack(self, axis: int = 0) -> Any: ...
        def angle(self) -> ExTensor: ...
        def diag(self, k: int = 0) -> ExTensor: ...
        def diag_embed(self, offset: int = 0) -> ExTensor: ...
        def diagonal(self, offset: int = 0, axis1: int = -2, axis2: int = -1) -> ExTensor: ...
        def trace(self, offset: int = 0) -> ExTensor: ...
        def tril(self, k: int = 0) -> ExTensor: ...
        def triu(self, k: int = 0) -> ExTensor: ...

        def relu(self) -> ExTensor: ...
        def sigmoid(self) -> ExTensor: ...
        def silu(self) -> ExTensor: ...
        def mish(self) -> ExTensor: ...
        def selu(self) -> ExTensor: ...
        def relu6(self) -> ExTensor: ...
        def hard_sigmoid(self) -> ExTensor: ...
        def hard_swish(self) -> ExTensor: ...
        def leaky_relu(self, alpha: float = 0.01) -> ExTensor: ...
        def prelu(self, alpha: ExTensor) -> ExTensor: ...
        def gelu(self, approximate: bool = False) -> ExTensor: ...
        def elu(self, alpha: float = 1.0) -> ExTensor: ...
        def softplus(self, beta: float = 1.0, threshold: float = 20.0) -> ExTensor: ...
        def hard_tanh(self, min_val: float = -1.0, max_val: float = 1.0) -> ExTensor: ...
        def softmax(self, axis: int = -1) -> ExTensor: ...
        def log_softmax(self, axis: int = -1) -> ExTensor: ...


def _unpickled(kind: type[ExTensor], array: np.ndarray, requires_grad: bool) -> ExTensor:
    """What a pickled tensor becomes again; where it came beside its pickle, its memory is that of the message."""
    return kind._unpickled(array, requires_grad)


MOST_AXES = 64  # of an array of NumPy
_NUMBERS = frozenset({float, int, bool, complex})


def needs_grad(value: Any) -> bool:
    """Whether a value, or a tensor in a list of values, requires a gradient. No tensor is made of lists any deeper."""
    if isinstance(value, ExTensor):
        return value._requires_grad
    if not isinstance(value, (list, tuple)):
        return False
    level: Sequence[Any] = value
    for _ in range(MOST_AXES):
        kinds = set(map(type, level))
        tensors = any(issubclass(kind, ExTensor) for kind in kinds)
        if tensors and any(isinstance(part, ExTensor) and part._requires_grad for part in level):
            return True
        if not any(issubclass(kind, (list, tuple)) for kind in kinds):
            return False
        level = _inner([part for part in level if isinstance(part, (list, tuple))])
    return False


def _inner(lists: Sequence[Any]) -> list[Any]:
    """What lists hold, each list once, so that those that hold each other stay small."""
    return list(chain.from_iterable(dict(zip(map(id, lists), lists)).values()))


Indices: TypeAlias = ExTensor  # of integers: an argument that never has a gradient
TensorOrShape: TypeAlias = ExTensor | Shape
TensorOrDtype: TypeAlias = ExTensor | np.dtype[Any]


def kinds_in(function: str, name: str, data: Any) -> dict[type, Any]:
    """The types of what nested lists hold, each with one that is of it. Lists that hold themselves are refused."""
    if not isinstance(data, (list, tuple)):
        return {type(data): data}
    found: dict[type, Any] = {}
    level: Sequence[Any] = data
    for _ in range(MOST_AXES):
        types = list(map(type, level))
        kinds = set(types)
        nested = {kind for kind in kinds if issubclass(kind, (list, tuple))}
        found |= {kind: level[types.index(kind)] for kind in kinds - nested}
        if not nested:
            return found
        inner = level if len(nested) == len(kinds) else [p for p in level if isinstance(p, (list, tuple))]
        level = _inner(inner)
    raise ValueError(
        f"[{function}] {name} is a list nested more than {MOST_AXES} deep, more than a tensor has axes"
    )


def _leaves(data: Any) -> Iterator[Any]:
    if not isinstance(data, (list, tuple)):
        yield data
        return
    for part in data:
        yield from _leaves(part)


def _check_leaves(function: str, data: Any, kinds: dict[type, Any], wanted: np.dtype[Any] | None) -> None:
    """Masks have no place in a tensor, nor has the imaginary part in a real one; NumPy drops both."""
    # a dtype of float64 equals None, but is not None
    loses = wanted is not None and wanted not in (bool_, *COMPLEX)
    masks = any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)
    if not loses and not masks:
        return
    for leaf in _leaves(data):
        if isinstance(leaf, np.ma.MaskedArray) and np.ma.is_masked(leaf):
            raise TypeError(
                f"[{function}] data has masked elements, which a tensor has not; fill them: data.filled(0)"
            )
        if loses and getattr(getattr(leaf, "dtype", None), "kind", "") == "c":
            raise TypeError(
                f"[{function}] data has dtype {leaf.dtype}, which does not become {wanted}: it would lose its imaginary "
                f"part; take the real part first: data.real"
            )


# What NumPy makes of Python numbers, and what we make of them. On a 32-bit platform its ints are int32.
_OF_PYTHON = {float64: float32, complex128: complex64, int32: int64}


def with_arrays(data: Any) -> Any:
    """Nested lists with arrays in the place of tensors: the scalars of bfloat16 take numbers of NumPy alone."""
    if isinstance(data, (list, tuple)):
        return [with_arrays(part) for part in data]
    return data._array if isinstance(data, ExTensor) else data


def _is_plain(data: Any) -> bool:
    """Whether it is an array, a number or a flat list of numbers: nothing to search."""
    if type(data) is list:
        return _NUMBERS.issuperset(map(type, data))
    return type(data) is np.ndarray or type(data) in _NUMBERS


def _to_numpy(function: str, data: Any, dtype: Any, copy: bool | None) -> np.ndarray:
    wanted = None if dtype is None else as_dtype(function, dtype)
    if isinstance(data, ExTensor):
        data = data._array
    kinds = {} if _is_plain(data) else kinds_in(function, "data", data)
    typed = type(data) is np.ndarray or any(
        hasattr(one, "dtype") or hasattr(one, "__array__") for one in kinds.values()
    )
    if type(NotImplemented) in kinds:  # NumPy asks for its truth, which Python warns of
        raise TypeError(f"[{function}] data must be numbers: got NotImplemented")
    if any(issubclass(kind, ExTensor) for kind in kinds):
        data = with_arrays(data)
    if typed:
        _check_leaves(function, data, kinds, wanted)
    if isinstance(data, (np.ndarray, np.generic)):
        _check_supported(function, data.dtype)
    try:
        # beyond the range is inf, a nan as an int is what the processor makes of it
        with np.errstate(all="ignore"):
            array = np.array(data, dtype=wanted, copy=copy)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"[{function}] data is not a regular array of numbers: {error} ({describe(data)})"
        ) from None
    except (TypeError, RuntimeError) as error:  # the second: another library's tensor in use by its recorder
        raise TypeError(f"[{function}] data must be numbers: {error} (got {describe(data)})") from None
    if wanted is None and not typed and array.dtype in _OF_PYTHON:
        with np.errstate(over="ignore"):  # beyond float32 is inf, as in any cast
            array = array.astype(_OF_PYTHON[array.dtype])
    _check_supported(function, array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def _fresh(array: np.ndarray) -> np.ndarray:
    """A contiguous copy; a large one starts at a cache line, where NumPy's own lie across the lines."""
    line = 64
    if array.nbytes < 1 << 16:
        return array.copy()
    memory = np.empty(array.nbytes + line, np.uint8)
    start = -memory.ctypes.data % line
    copied = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def _check_supported(function: str, dtype: np.dtype[Any]) -> None:
    if dtype.newbyteorder("=") not in SUPPORTED:
        raise TypeError(f"[{function}] data has dtype {dtype}, which is not a number type of ExTensor")


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
    array = _fresh(_to_numpy("tensor", data, dtype, copy=None))
    if not isinstance(requires_grad, (bool, np.bool_)):
        raise TypeError(f"[tensor] requires_grad must be True or False, got {describe(requires_grad)}")
    if requires_grad and array.dtype.kind in "biu":
        raise TypeError(
            f"[tensor] requires_grad needs a floating dtype, got {array.dtype}; pass dtype=extensor.float32"
        )
    return ExTensor(array, bool(requires_grad))


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
        return asarray(_shared("asarray", "data", data), dtype)
    return ExTensor(_to_numpy("asarray", data, dtype, copy=None))


def from_dlpack(source: Any) -> ExTensor:
    """A tensor over the memory of any object that speaks DLPack (PyTorch, JAX, NumPy, ...); nothing is copied.

    Memory of the CPU becomes a tensor on ``"cpu"``, memory of another device one that is held there by JAX.

    Example:
        >>> import numpy as np, extensor as et
        >>> et.from_dlpack(np.arange(3)).tolist()
        [0, 1, 2]
    """
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"[from_dlpack] source must offer __dlpack__, got {describe(source)}")
    if isinstance(source, ExTensor):
        return source.detach()
    if next(iter(source.__dlpack_device__())) not in _HERE:
        return ExTensor(kept_there(jax().numpy.from_dlpack(source)))
    return _shared("from_dlpack", "source", source)


_HERE = (
    1,
    3,
    11,
    13,
)  # DLPack's kinds of memory that the CPU reads: its own, pinned for CUDA and ROCm, managed


def _shared(function: str, name: str, source: Any) -> ExTensor:
    """A tensor over the memory of an object that speaks DLPack."""
    from ._dlpack import read_dlpack

    try:
        array = read_dlpack(source)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"[{function}] {name} cannot be shared: {error}") from None
    return ExTensor(_to_numpy(function, array, None, copy=None))
