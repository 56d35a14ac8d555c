"""Plain calls: of tensors and ordinary options alone. They go to a native kernel without a step through Python.

A function whose body is "check, then the one kernel of its name" says by ``plain`` what the kernel takes, an entry for
each argument; a call in which one is anything else is made as it is written.

===================  ==========================================================================
entry                what the argument is
===================  ==========================================================================
``...``              a tensor
``None``             a tensor with a gradient that may be left out
``ExTensor``         in a backward: a tensor that may be left out
``INTS``             between tensors or right after them: an int, or a tuple of ints or of such tuples
``OPERAND``          in a backward: a tensor, or a number
``KEY``              right after the tensors: what stands between brackets
``TENSORS``          first and without other tensors: a list of tensors
``SHAPE``            after the tensors: a tuple of ints
``SHAPE_OF``         in a backward, after the tensors: a tensor of which only the shape counts, or
                     that shape
``ALL_AXES``         None, an axis or several; ``LAST_AXIS``: one axis, the last without it;
                     ``FLAT_AXIS``: one axis, or None
``ANY_NUMBER``       a number, or None
``DTYPE``            a dtype
``ONES``             an int, or a tuple of ints; 1 without it; ``ZEROS``: 0 without it;
                     ``ANY_INTS``: None without it
anything else        an option with this default; another value of its type is plain, too
===================  ==========================================================================

A function without ``plain`` is an elementwise one if its options are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._rules import Rule
from .dtypes import float32, guard_width
from .kernels import NATIVE
from .tensor import ExTensor

try:
    from ._native import (
        ALL_AXES,
        ANY_INTS,
        ANY_NUMBER,
        DTYPE,
        FLAT_AXIS,
        KEY,
        LAST_AXIS,
        ONES,
        TENSORS,
        ZEROS,
    )
except ModuleNotFoundError:
    from ._pure import ALL_AXES, ANY_INTS, ANY_NUMBER, DTYPE, FLAT_AXIS, KEY, LAST_AXIS, ONES, TENSORS, ZEROS

__all__ = [
    "ALL_AXES", "ANY_INTS", "ANY_NUMBER", "DTYPE", "FLAT_AXIS", "INTS", "KEY", "LAST_AXIS", "ONES", "OPERAND", "SHAPE", "SHAPE_OF",
    "TENSORS", "ZEROS",
    "run_backward_natively", "run_natively", "run_undifferentiated_natively",
]  # fmt: skip

INTS, OPERAND, SHAPE, SHAPE_OF = "ints", "operand", "shape", "shape of"
# The native side tells these apart by where they stand, and in what kind of function.
_NATIVE_ENTRIES = {INTS: tuple, OPERAND: float, SHAPE: tuple, SHAPE_OF: tuple, ExTensor: None}


def run_natively(op: Any, rule: Rule) -> None:
    """Hand plain calls of a differentiable function to its native kernel, if there is one of its name."""
    tensors = [
        n for n in rule.names if n not in rule.defaults or (op.plain is not None and n in rule.targets)
    ]
    kept = []
    for p in rule.parameters:
        if p.keyword and (op.plain is None or p.name not in tensors):
            continue  # an option; at its default in a plain call
        if p.is_output:
            kept.append(("output", 0))
        elif p.name in tensors and not p.variadic:
            kept.append((p.kept, tensors.index(p.name)))
        else:
            return
    if op.plain is not None:
        options = {p.name for p in rule.parameters if p.keyword}
        names = tuple(
            n if n in options or (n in tensors and entry not in (INTS, SHAPE, DTYPE, KEY)) else None
            for n, entry in zip(rule.names, op.plain)
        )
        targets = rule.targets if op.mirrored is None else (*rule.targets, op.mirrored)
        _run_directly(op, True, tuple(kept), tuple(tensors.index(t) for t in targets), names, None)
        return
    scalars = _plain_scalars(rule.defaults)
    if (
        scalars is not None
        and op.mirrored is None
        and all(t in tensors for t in rule.targets)
        and not rule.returns_list
    ):
        op.run_natively(
            op.__name__,
            True,
            _broadcasts(op.fn),
            tuple(kept),
            tuple(tensors.index(t) for t in rule.targets),
            scalars,
            None,
        )


def run_backward_natively(op: Any) -> None:
    """Hand plain calls of a backward function to its native kernel."""
    fn = op.fn
    results = fn.__globals__.get(fn.__annotations__["return"])
    if op.plain is not None:
        _run_directly(op, False, (), (), _parameter_names(fn), results)
        return
    scalars = _plain_scalars(_defaults(fn))
    if scalars is not None:
        op.run_natively(op.__name__, False, False, (), (), scalars, results)


def run_undifferentiated_natively(op: Any) -> None:
    """Hand plain calls of a function without a gradient to its native kernel."""
    if op.plain is not None:
        _run_directly(op, False, (), (), _parameter_names(op.fn), None)
    else:
        op.run_natively(op.__name__, False, _broadcasts(op.fn), (), (), (), None)


def _run_directly(op: Any, records: bool, kept: Any, targets: Any, names: Any, results: Any) -> None:
    """Hand plain calls of an op to the native kernel of its name, which answers NotImplemented if it is in doubt."""
    native = NATIVE.get(op.__name__)
    if native is not None:
        among = [i for i, entry in enumerate(op.plain) if entry in (..., ExTensor, INTS, KEY, OPERAND)]
        tensors = max(*among, *targets, 0) + 1
        plain = tuple(_NATIVE_ENTRIES.get(entry, entry) for entry in op.plain)
        op.run_directly(native, records, kept, targets, plain, names, tensors, results)


def _parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    return fn.__code__.co_varnames[: fn.__code__.co_argcount + fn.__code__.co_kwonlyargcount]


def _broadcasts(fn: Callable[..., Any]) -> bool:
    """Whether a function stretches its operands to one shape: it calls them ``a`` and ``b``."""
    return _parameter_names(fn)[:2] == ("a", "b")


def _defaults(fn: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that have defaults, in order."""
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    values = fn.__defaults__ or ()
    return {**dict(zip(names[len(names) - len(values) :], values)), **(fn.__kwdefaults__ or {})}


def _plain_scalars(defaults: dict[str, Any]) -> tuple[float, ...] | None:
    """The options of a plain call as the kernel's numbers; None where one is not a number."""
    scalars = []
    for name, value in defaults.items():
        if name == "needs":
            continue
        if name == "eps" and value is None:
            value = guard_width(float32)  # and of float64: what is run natively
        if not isinstance(value, (bool, int, float)):
            return None
        scalars.append(float(value))
    return tuple(scalars)
