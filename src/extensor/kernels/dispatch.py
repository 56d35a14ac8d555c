"""One door: every number the library computes passes through a :class:`Kernel`.

A kernel has a name and a reference implementation over an array namespace (:mod:`.namespace`). Where the native module has a
kernel of the same name it is asked first; it answers ``NotImplemented`` for the dtypes and layouts it does not cover.

The reference of a gradient is its formula as well (``@formula``): called on tensors that are recorded, it is evaluated on the
tensors themselves, and what it computes can be differentiated again.

Half precision is settled here, once for all kernels: float16 and bfloat16 arrays are widened to float32,
the kernel runs, and its result is rounded once. Kernels that only move elements (``exact=True``) need none
of this.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import unwrap
from typing import Any, Literal, overload

import numpy as np

from .._core import clear_plans, this_thread
from .._core import kernels as NATIVE
from ..devices import DeviceArray
from ..dtypes import FLOATING, HALF, bfloat16, float16, float32, promote
from ..nested import needs_grad
from ..tensor import ExTensor
from .elsewhere import has_foreign, run_there

__all__ = ["KERNELS", "NATIVE", "Kernel", "formula", "kernel", "widen"]

RAISED = object()  # in a trace: what a kernel that raised has returned


class Kernels(dict[str, "Kernel"]):
    """Kernels by name, in the order they were loaded. One that was not loaded yet is looked for in all references."""

    def complete(self) -> Kernels:
        """These, once every module of references is loaded."""
        from pkgutil import iter_modules

        home = f"{__package__}.reference"
        for module in iter_modules(import_module(home).__path__):
            import_module(f"{home}.{module.name}")
        return self

    def __missing__(self, name: str) -> Kernel:
        found = self.complete().get(name)
        if found is None:
            raise KeyError(name)
        return found


KERNELS = Kernels()


class Kernel:
    """A named computation on arrays: inputs first, then static attributes, all positional.

    Called with tensors it returns tensors. ``reference`` and ``native`` work on NumPy arrays.
    """

    __slots__ = ("__wrapped__", "exact", "is_formula", "name", "native", "reference")
    exact: bool
    is_formula: bool
    name: str
    native: Callable[..., Any] | None
    reference: Callable[..., Any]

    def __init__(self, reference: Callable[..., Any], exact: bool, is_formula: bool) -> None:
        name = reference.__name__
        for field, value in zip(
            self.__slots__, (reference, exact, is_formula, name, NATIVE.get(name), reference)
        ):
            object.__setattr__(self, field, value)

    def __setattr__(self, field: str, value: Any) -> None:
        """Another reference or native kernel: plans hold the one that was there."""
        object.__setattr__(self, field, value)
        clear_plans()

    def __call__(self, *args: Any) -> Any:
        if self.is_formula and this_thread.recording and any(map(needs_grad, args)):
            return self.recorded(*args)
        given = [value._data if type(value) is ExTensor else _unwrap(value) for value in args]
        if "jax" in sys.modules and has_foreign(given):
            return _wrap(run_there(self, given))
        trace = this_thread.trace
        if trace is None:
            return _wrap(self.on_arrays(*given))
        result: Any = RAISED
        try:  # the body of an op is deciding (see graph.plans)
            result = self.on_arrays(*given)
        finally:
            trace.append((self, given, result))
        return _wrap(result)

    def on_arrays(self, *args: Any) -> Any:
        """The kernel on NumPy arrays: native if it can, else the reference."""
        if self.native is not None:
            result = self.native(*args)
            if result is not NotImplemented:
                return result
        return self.by_reference(*args)

    def by_reference(self, *args: Any) -> Any:
        """The reference on NumPy arrays, half precision computed in float32 and rounded once."""
        with np.errstate(all="ignore"):
            if self.exact:
                return _as_arrays(self.reference(*args))
            dtypes = [a.dtype for a in _flat(args) if a.dtype in FLOATING]
            if HALF.isdisjoint(dtypes):
                return _as_arrays(self.reference(*args))
            return _round(_as_arrays(self.reference(*map(widen, args))), promote(*dtypes))

    def recorded(self, *args: Any) -> Any:
        """The reference on tensors: what it computes is recorded, half precision as in :meth:`by_reference`."""
        dtypes = [a.dtype for a in args if isinstance(a, ExTensor)]
        if self.exact or HALF.isdisjoint(dtypes):
            return self.reference(*args)
        dtype = promote(*(d for d in dtypes if d in FLOATING))
        return _round(self.reference(*map(widen, args)), dtype)

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {'native' if self.native else 'reference'}>"


@overload
def kernel(reference: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(*, exact: Literal[True]) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(reference: Callable[..., Any] | None = None, *, exact: bool = False) -> Any:
    """Make a function over an array namespace the reference of the kernel of the same name."""
    if reference is None:
        return lambda function: _register(Kernel(function, exact, is_formula=False))
    return _register(Kernel(reference, exact, is_formula=False))


@overload
def formula(reference: Callable[..., Any]) -> Kernel: ...
@overload
def formula(*, exact: Literal[True]) -> Callable[[Callable[..., Any]], Kernel]: ...
def formula(reference: Callable[..., Any] | None = None, *, exact: bool = False) -> Any:
    """A kernel whose reference is also what is recorded where its result must itself be differentiated."""
    if reference is None:
        return lambda function: _register(Kernel(function, exact, is_formula=True))
    return _register(Kernel(reference, exact, is_formula=True))


def _register(made: Kernel) -> Kernel:
    before = KERNELS.get(made.name)
    if before is not None and _source(before) != _source(made):  # an import that was interrupted comes again
        raise ValueError(f"[kernel] {made.name} is defined twice")
    KERNELS[made.name] = made
    return made


def _source(made: Kernel) -> tuple[str, int]:
    code = unwrap(made.reference).__code__
    return code.co_filename, code.co_firstlineno


def _unwrap(value: Any) -> Any:
    if isinstance(value, ExTensor):
        return value._data
    if type(value) is list:
        try:
            return [v._data for v in value]  # tensors alone, as an optimiser has them
        except AttributeError:
            return [_unwrap(v) for v in value]
    if type(value) is tuple:
        for part in value:
            if isinstance(part, ExTensor):
                return tuple(map(_unwrap, value))
    return value


def _wrap(value: Any) -> Any:
    if type(value) is np.ndarray or type(value) is DeviceArray:
        return ExTensor(value)
    if type(value) is list:
        return [
            ExTensor(v)
            if type(v) is np.ndarray or type(v) is DeviceArray
            else None
            if v is None
            else _wrap(v)
            for v in value
        ]
    return type(value)(map(_wrap, value)) if isinstance(value, tuple) else value


def _as_arrays(value: Any) -> Any:
    """NumPy's scalars as 0-d arrays."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    return type(value)(map(_as_arrays, value)) if type(value) in (tuple, list) else value


_ARRAYS = (np.ndarray, ExTensor)


def _flat(args: Any) -> list[Any]:
    """The arrays among the arguments, those in lists included."""
    found = []
    for a in args:
        if isinstance(a, _ARRAYS):
            found.append(a)
        elif type(a) is list:
            found.extend(x for x in a if isinstance(x, _ARRAYS))
    return found


def widen(value: Any) -> Any:
    """Half precision in float32, in lists too; everything else as it is."""
    if isinstance(value, _ARRAYS):
        return value.astype(float32) if value.dtype in HALF else value
    return [widen(v) for v in value] if type(value) is list else value


def _round(result: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)(_round(r, dtype) for r in result)
    if isinstance(result, _ARRAYS) and result.dtype == float32 and dtype in (float16, bfloat16):
        return result.astype(dtype)
    return result
