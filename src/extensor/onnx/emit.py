"""What the functions that write ONNX nodes work with."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..tensor import ExTensor
from .dims import Changing, Dim, Symbol
from .proto import onnx

__all__ = ["EXPORTERS", "Emitter", "Value", "exports"]

F = TypeVar("F", bound=Callable[..., Any])
EXPORTERS: dict[str, Callable[..., Any]] = {}


def exports(*names: str) -> Callable[[F], F]:
    """Enter a function into the table: it writes the nodes of the public functions of these names.

    It takes the :class:`Emitter` and then the arguments of the function, tensors as :class:`Value`; it returns the name of
    the result, or a tuple of names.
    """

    def enter(function: F) -> F:
        for name in names:
            EXPORTERS[name] = function
        return function

    return enter


def _rule(length: int) -> tuple[Any, ...]:
    """What two lengths must share to be the same at every size."""
    return (
        (length.symbols, length.factor, length.offset)
        if isinstance(length, Dim) and length.symbols
        else (length, type(length))
    )


class Value:
    """A tensor of the graph: its name, its shape (with free lengths) and its dtype."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: Any, last_only: bool = False) -> None:
        self.name, self.shape, self.dtype = name, shape, np.dtype(dtype)
        self.last_only = last_only  # the cell states of an LSTM: ONNX gives the last alone

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Emitter:
    """Collects nodes and constants.

    Attributes:
        opset: the version of the operator set.
        outputs: the results of the call that is being written (shape and dtype are known).
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, np.ndarray] = {}
        self.buffers: set[str] = set()  # tensors of the file that are no weights
        self.outputs: list[Value] = []
        self.call = ""
        self._counts: dict[str, int] = {}  # of names of tensors, by stem
        self._kinds: dict[str, int] = {}  # of nodes, by operator
        self._constants: dict[tuple[Any, ...], str] = {}
        self._symbols: dict[str, str] = {}
        self._reshaped: dict[tuple[Any, ...], str] = {}
        self._reshapes: dict[
            str, tuple[str, tuple[int, ...]]
        ] = {}  # result -> what was reshaped, and its shape

    @property
    def out(self) -> Value:
        """The first result of the call that is being written."""
        return self.outputs[0]

    def fresh(self, stem: str) -> str:
        """A name that is not used yet."""
        self._counts[stem] = self._counts.get(stem, 0) + 1
        return f"{stem}_{self._counts[stem]}"

    def node(self, operator: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """Add a node; returns the name of its result, or names. An empty input is left out."""
        trimmed = list(inputs)
        while trimmed and not trimmed[-1]:
            trimmed.pop()
        names = [self.fresh(self.call or operator.lower()) for _ in range(results)]
        given = {k: v for k, v in attributes.items() if v is not None}
        self._kinds[operator] = self._kinds.get(operator, 0) + 1
        name = f"{operator.lower()}_{self._kinds[operator]}"
        self.nodes.append(onnx.helper.make_node(operator, trimmed, names, name=name, **given))
        return names[0] if results == 1 else tuple(names)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A tensor of the file; small equal ones are shared."""
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        key = (array.shape, array.dtype.name, array.tobytes()) if array.size <= 64 else (id(value),)
        if key not in self._constants:
            name = self.fresh("constant")
            self._constants[key] = name
            self.initializers[name] = array
        return self._constants[key]

    def use(self, value: Any, dtype: Any = None) -> str:
        """An operand by name: a tensor of the graph (cast if need be), or a number that becomes a constant."""
        if value is None:
            return ""
        if isinstance(value, Value):
            if value.last_only:
                raise NotImplementedError(
                    "[export] of lstm_sequence ONNX gives only the last cell state; use cells[-1:]"
                )
            if dtype is None or value.dtype == dtype:
                return value.name
            return self.cast(value.name, dtype)
        if isinstance(value, Changing):
            return self._changing(value, dtype)
        if isinstance(value, ExTensor):
            value = value.numpy()
        if isinstance(value, Dim):
            name = self.scalar(value)
            return name if dtype is None or np.dtype(dtype) == np.int64 else self.cast(name, dtype)
        return self.constant(value, dtype if dtype is not None else np.asarray(value).dtype)

    def cast(self, name: str, dtype: Any) -> str:
        """A Cast node."""
        return str(self.node("Cast", name, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def stored(self, value: Any) -> np.ndarray | None:
        """The elements of a value that stands in the file; None for what is computed."""
        return self.initializers.get(value.name) if isinstance(value, Value) else None

    def derived(self, source: str, array: np.ndarray) -> str:
        """A tensor of the file that was computed from another one, under a name that says so."""
        if source in self.buffers or source in self._constants.values():
            return self.constant(array)
        stem = re.sub(r"_folded(_\d+)?$", "", source) + "_folded"
        name, count = stem, 1
        while name in self.initializers and not np.array_equal(self.initializers[name], array):
            count += 1
            name = f"{stem}_{count}"
        self.initializers[name] = array
        return name

    # Numbers that depend on the sizes

    def length(self, symbol: Symbol) -> str:
        """A free length as a tensor of one number."""
        if symbol.name not in self._symbols:
            self._symbols[symbol.name] = str(
                self.node("Shape", symbol.source, start=symbol.axis, end=symbol.axis + 1)
            )
        return self._symbols[symbol.name]

    def number(self, value: int) -> str:
        """A whole number as a tensor of shape (1,)."""
        if not isinstance(value, Dim):
            return self.constant([value], np.int64)
        if value.symbols is None:
            raise ValueError(
                f"[export] {self.call} needs a length ({int(value)}) that follows no simple rule; pass dynamic_axes=False"
            )
        name = self.length(value.symbols[0])
        for symbol in value.symbols[1:]:
            name = self.node("Mul", name, self.length(symbol))
        if value.factor != 1:
            name = self.node("Mul", name, self.constant([value.factor], np.int64))
        if value.offset:
            name = self.node("Add", name, self.constant([value.offset], np.int64))
        return name

    def scalar(self, value: int) -> str:
        """A whole number as a tensor of shape ()."""
        if not isinstance(value, Dim):
            return self.constant(value, np.int64)
        return str(self.node("Reshape", self.number(value), self.constant(np.zeros(0, np.int64))))

    def ints(self, values: Sequence[int]) -> str:
        """Whole numbers as a tensor of one axis."""
        if not any(isinstance(v, Dim) for v in values):
            return self.constant(list(values), np.int64)
        return str(self.node("Concat", *map(self.number, values), axis=0))

    def reshaped(self, value: Any, shape: Sequence[int]) -> str:
        """A value in another shape; several reshapes in a row are one, and none where nothing changes."""
        if not isinstance(value, Value):
            return self.reshape(self.use(value), shape)
        name, before = self._reshapes.get(value.name, (self.use(value), value.shape))
        if list(map(_rule, before)) == list(map(_rule, shape)):
            return name
        key = (name, *map(_rule, shape))
        if key not in self._reshaped:
            self._reshaped[key] = self.reshape(name, shape)
            self._reshapes[self._reshaped[key]] = (name, tuple(before))
        return self._reshaped[key]

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """A Reshape node; one free length is left to be found out."""
        free = [i for i, n in enumerate(shape) if isinstance(n, Dim)]
        if len(free) == 1 and 0 not in shape:
            target = self.constant([-1 if i in free else n for i, n in enumerate(shape)], np.int64)
            return str(self.node("Reshape", name, target))
        zero = 1 if any(n == 0 and not isinstance(n, Dim) for n in shape) else None
        return str(self.node("Reshape", name, self.ints(shape), allowzero=zero))

    def _changing(self, value: Changing, dtype: Any) -> str:
        """A constant that follows the sizes: 0, 1, 2, ... or one number everywhere."""
        wanted = value.dtype if dtype is None else np.dtype(dtype)
        first = value.arrays[0]
        if first.ndim == 1 and first.dtype.kind in "iu" and all(
            (a == a[:1].sum() + np.arange(len(a)) * (a[1:2].sum() - a[:1].sum() if len(a) > 1 else 1)).all()
            and a[:1].sum() == first[:1].sum()
            for a in value.arrays
        ):  # fmt: skip
            longest = max(value.arrays, key=len)
            start, step = int(longest[0]), int(longest[1] - longest[0]) if len(longest) > 1 else 1
            count = value.shape[0]
            end = count
            if (start, step) != (0, 1):
                raise ValueError(
                    "[export] a range that does not count 0, 1, 2, ... follows the sizes of the inputs"
                )
            name = self.node(
                "Range", self.constant(0, np.int64), self.scalar(end), self.constant(1, np.int64)
            )
            return str(name) if wanted == np.int64 else self.cast(name, wanted)
        filled = {a.reshape(-1)[0].item() for a in value.arrays if a.size}
        if len(filled) == 1 and all((a == next(iter(filled))).all() for a in value.arrays):
            return str(self.node("Expand", self.constant(next(iter(filled)), wanted), self.ints(value.shape)))
        raise ValueError(
            f"[export] a constant of shape {first.shape} follows the sizes of the inputs; pass dynamic_axes=False"
        )
