"""The pickle inside a PyTorch file, interpreted by a list of what may be in it. Nothing is imported and nothing is called.

Python's ``pickle`` runs whatever a file tells it to. Here every opcode is a line below; a global name is looked up in a table
of the few that state dicts have, and any other ends the reading with its name.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

__all__ = ["PickleError", "Storage", "TensorRecord", "read_pickle"]

_MOST_OPCODES = 5_000_000
_MOST_NESTING = 64


class PickleError(ValueError):
    """A pickle that is damaged, or holds more than weights."""


class Storage(NamedTuple):
    """A block of numbers in the file: its dtype, its name and how many there are."""

    dtype: np.dtype[Any]
    key: str
    size: int


class TensorRecord(NamedTuple):
    """A tensor as a view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


_DTYPES = {
    "Float": np.float32, "Double": np.float64, "Half": np.float16, "BFloat16": ml_dtypes.bfloat16, "Long": np.int64,
    "Int": np.int32, "Short": np.int16, "Char": np.int8, "Byte": np.uint8, "Bool": np.bool_,
}  # fmt: skip
_NAMED = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int64": np.int64,
    "int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "bool": np.bool_,
}  # fmt: skip


class _Kind(NamedTuple):
    """A class of storages."""

    dtype: np.dtype[Any] | None


class _Function(NamedTuple):
    """A function that may be applied: its name and what it means here."""

    name: str
    apply: Callable[..., Any]


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise PickleError(f"a size is {value!r}")
    return value


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> TensorRecord:
    if not isinstance(storage, Storage) or type(shape) is not tuple or type(strides) is not tuple:
        raise PickleError("a tensor is not described by a storage, a shape and strides")
    if len(shape) != len(strides) or len(shape) > 64:
        raise PickleError(f"a tensor has the shape {shape!r} and the strides {strides!r}")
    return TensorRecord(storage, _whole(offset), tuple(map(_whole, shape)), tuple(map(_whole, strides)))


def _parameter(data: Any, *rest: Any) -> TensorRecord:
    if not isinstance(data, TensorRecord):
        raise PickleError("a parameter holds no tensor")
    return data


def _ordered(pairs: Any = ()) -> dict[Any, Any]:
    if isinstance(pairs, list) and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        return {_key(k): v for k, v in pairs}
    if pairs == ():
        return {}
    raise PickleError("an OrderedDict is made of something else than pairs")


def _size(lengths: Any) -> tuple[int, ...]:
    if not isinstance(lengths, (list, tuple)):
        raise PickleError("a torch.Size holds no lengths")
    return tuple(map(_whole, lengths))


_GLOBALS: dict[str, Any] = {
    "collections OrderedDict": _Function("OrderedDict", _ordered),
    "torch._utils _rebuild_tensor_v2": _Function("_rebuild_tensor_v2", _tensor),
    "torch._utils _rebuild_tensor": _Function("_rebuild_tensor", _tensor),
    "torch._utils _rebuild_parameter": _Function("_rebuild_parameter", _parameter),
    "torch Size": _Function("Size", _size),
    "torch.storage UntypedStorage": _Kind(np.dtype(np.uint8)),
    "torch.storage TypedStorage": _Kind(None),
    **{f"torch {name}Storage": _Kind(np.dtype(dtype)) for name, dtype in _DTYPES.items()},
    **{f"torch {name}": np.dtype(dtype) for name, dtype in _NAMED.items()},
}


def _key(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool, bytes, tuple, type(None))):
        try:
            hash(value)
            return value
        except TypeError:
            pass
    raise PickleError("a dict has a key that is neither text nor a number")


_MARK = object()
_PUSH = {
    "NONE": None, "NEWTRUE": True, "NEWFALSE": False,
}  # fmt: skip
_LITERALS = frozenset(
    [
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "LONG4",
        "BINFLOAT",
        "BINUNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE8",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINSTRING",
        "SHORT_BINSTRING",
        "INT",
        "LONG",
        "FLOAT",
        "UNICODE",
    ]
)
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
}
_SKIP = frozenset({"PROTO", "FRAME"})


def read_pickle(data: bytes) -> Any:
    """The object a pickle describes: dicts, lists, tuples, numbers, texts and :class:`TensorRecord`."""
    try:
        return _Machine().run(data)
    except PickleError:
        raise
    except (
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        RecursionError,
        OverflowError,
        UnicodeError,
    ) as error:
        raise PickleError(f"the pickle is damaged: {error}") from None


class _Machine:
    """The stack, the memo, and one method for each opcode that is not a mere literal."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > _MOST_OPCODES:
                raise PickleError("the pickle is longer than any state dict")
            name = opcode.name
            if name == "STOP":
                return self.pop()
            if name in _LITERALS:
                self.stack.append(argument)
            elif name in _PUSH:
                self.stack.append(_PUSH[name])
            elif name in _EMPTY:
                self.stack.append(_EMPTY[name]())
            elif name not in _SKIP:
                method = getattr(self, f"op_{name.lower()}", None)
                if method is None:
                    raise PickleError(f"it uses the opcode {name}, which no state dict needs")
                method(argument)
        raise PickleError("the pickle has no end")

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise PickleError("the pickle takes more than there is")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """Everything above the last mark."""
        items: list[Any] = []
        while True:
            if not self.stack:
                raise PickleError("the pickle takes more than there is")
            item = self.stack.pop()
            if item is _MARK:
                return items[::-1]
            items.append(item)

    def top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise PickleError(f"the pickle fills something that is no {kind.__name__}")
        return self.stack[-1]

    def op_mark(self, _: Any) -> None:
        self.stack.append(_MARK)

    def op_pop(self, _: Any) -> None:
        self.stack.pop()

    def op_tuple(self, _: Any) -> None:
        self.stack.append(tuple(self.marked()))

    def op_list(self, _: Any) -> None:
        self.stack.append(self.marked())

    def op_dict(self, _: Any) -> None:
        items = self.marked()
        self.stack.append({_key(k): v for k, v in zip(items[::2], items[1::2])})

    def op_tuple1(self, _: Any) -> None:
        self.stack.append((self.pop(),))

    def op_tuple2(self, _: Any) -> None:
        b, a = self.pop(), self.pop()
        self.stack.append((a, b))

    def op_tuple3(self, _: Any) -> None:
        c, b, a = self.pop(), self.pop(), self.pop()
        self.stack.append((a, b, c))

    def op_setitem(self, _: Any) -> None:
        value, key = self.pop(), self.pop()
        self.top(dict)[_key(key)] = value

    def op_setitems(self, _: Any) -> None:
        items = self.marked()
        if len(items) % 2:
            raise PickleError("a dict has a key without a value")
        self.top(dict).update({_key(k): v for k, v in zip(items[::2], items[1::2])})

    def op_append(self, _: Any) -> None:
        value = self.pop()
        self.top(list).append(value)

    def op_appends(self, _: Any) -> None:
        items = self.marked()
        self.top(list).extend(items)

    op_additems = op_appends

    def op_binput(self, index: int) -> None:
        if not self.stack:
            raise PickleError("the pickle takes more than there is")
        self.memo[index] = self.stack[-1]

    op_long_binput = op_put = op_binput

    def op_memoize(self, _: Any) -> None:
        self.op_binput(len(self.memo))

    def op_binget(self, index: int) -> None:
        self.stack.append(self.memo[index])

    op_long_binget = op_get = op_binget

    def op_global(self, name: str) -> None:
        if name not in _GLOBALS:
            shown = ".".join(name.split(" ", 1))
            raise PickleError(
                f"it wants {shown}, which is no part of a state dict; save model.state_dict() instead"
            )
        self.stack.append(_GLOBALS[name])

    def op_stack_global(self, _: Any) -> None:
        name, module = self.pop(), self.pop()
        self.op_global(f"{module} {name}")

    def op_reduce(self, _: Any) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, _Function) or not isinstance(arguments, tuple):
            raise PickleError("it applies something that is no function")
        self.stack.append(function.apply(*arguments))

    def op_build(self, _: Any) -> None:
        """A state dict carries the versions of its modules as an attribute; it is not needed."""
        self.pop()
        self.top(dict)

    def op_binpersid(self, _: Any) -> None:
        """A storage: ("storage", class, name, device, count)."""
        found = self.pop()
        if (
            not isinstance(found, tuple)
            or len(found) != 5
            or found[0] != "storage"
            or not isinstance(found[1], _Kind)
        ):
            raise PickleError(f"it refers to something that is no storage: {found!r}"[:200])
        if found[1].dtype is None or not isinstance(found[2], str):
            raise PickleError("a storage has no dtype or no name")
        self.stack.append(Storage(found[1].dtype, found[2], _whole(found[4])))


def depth_allowed(level: int) -> None:
    """Dicts inside dicts, up to a point."""
    if level > _MOST_NESTING:
        raise PickleError("dicts are nested too deeply")
