"""The exceptions of ExTensor and the one form every message has.

A message starts with the name of the function in brackets, then names the argument and the value that
is wrong, and says what to do: ``[matmul] a has 3 columns but b has 4 rows (a: (2, 3), b: (4, 5))``.
Shapes and values raise :class:`ValueError`, dtypes :class:`TypeError`, missing gradients
:class:`NotImplementedError`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["AnomalyError", "CompileError", "GraphError"]


class AnomalyError(FloatingPointError):
    """An operation made a nan or an inf out of finite inputs while ``detect_anomaly()`` was on."""


class GraphError(ValueError, RuntimeError):
    """A backward pass was asked for where there is no graph to walk, or no single gradient to start from."""


class BatchedError(RuntimeError):
    """The elements of a tensor under vmap were asked for, or it was kept beyond the call it belongs to."""


class CompileError(RuntimeError):
    """A function that is being compiled did what a recording cannot repeat, or a replay differed from it."""


class OutOfBoundsError(IndexError, ValueError):
    """An index that points outside its tensor; caught as an IndexError or as the ValueError it is."""


def describe(value: object, limit: int = 60) -> str:
    """The type and a short ``repr`` of an offending value, for error messages."""
    try:
        text = repr(value)
    except Exception:  # a broken __repr__ must not hide the message that was on its way
        text = "<no repr>"
    text = " ".join(text.split())
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return f"{type(value).__name__} {text}"


def named_memory_error(function: Any, error: MemoryError) -> MemoryError:
    """A MemoryError that names the function in which memory ran out: in its body, in a plan or in the C++ below."""
    text = str(error)
    return error if text.startswith("[") else MemoryError(f"[{function.__name__}] {text or 'out of memory'}")


_NO_SUCH_ARRAY = (
    "array is too big",
    "maximum supported dimension",
    "number of dimensions must be within",
    "Maximum allowed ",
    "too many dimensions for ",
    "this function only supports up to 32 dimensions",
    "when no subspace is given, the number of index arrays",
)


def named_numpy_error(function: Any, error: Exception) -> ValueError | None:
    """What is said of a number no dtype has, or of a result no array can be, with the function's name; None for other errors."""
    text = str(error)
    named = isinstance(error, OverflowError) or text.startswith(_NO_SUCH_ARRAY)
    return ValueError(f"[{function.__name__}] {text}") if named else None
