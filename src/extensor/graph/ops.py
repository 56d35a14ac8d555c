"""Ops: functions that the recorder knows. Each is called through its readable body, or by the plan that its body made.

The way of a call: ``op(...)`` looks for the plan of its kind and repeats it natively; without one it is :meth:`Op.call`, which
runs the body and records. ``EXTENSOR_PLANS=0`` leaves plans out; the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any, TypeVar, get_type_hints, overload

import numpy as np

from .._core import OpBase, register
from .._misfits import misfit
from ..autocast_table import Policy, policy_of
from ..errors import named_memory_error, named_numpy_error
from ..kernels.dispatch import widen
from ..nested import needs_grad
from ..tensor import ExTensor, tensor
from .nodes import PACKAGE, Node, record, refilled
from .precision import cast_arguments
from .rules import Rule, Signature
from .state import no_grad, this_thread

__all__ = [
    "Backward", "Op", "Undifferentiated", "backward_of", "differentiable", "for_complex", "outcome_of", "undifferentiated",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class _Function(OpBase):
    """What the three kinds of functions below share: they pass for the function they wrap."""

    autocasts: Policy | None = None  # of a backward: a gradient is computed in the dtypes of the forward pass
    rule: Any

    def __init__(self, fn: Callable[..., Any], numbers: tuple[str, ...]) -> None:
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(fn, name))
        self.__wrapped__ = self.fn = fn
        names = fn.__code__.co_varnames if numbers else ()
        self.numbers = sum(1 << names.index(name) for name in numbers)
        self.planned = fn.__module__.startswith("extensor.")  # what a user's looks at, no key can tell

    def __reduce__(self) -> str:
        """Pickled and copied as any function: by its name."""
        return str(self.__qualname__)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The call as it is defined: its body, recorded if a gradient may be asked for.

        Of observers only one that answers calls itself (vmap) sees backward functions: for the others they are a part of
        the backward pass.
        """
        if this_thread.mode:
            return self.without_autocast(args, kwargs)
        observer = this_thread.observer
        if observer is not None and (not self.is_backward or getattr(observer, "sees_backward", False)):
            return observer(self, args, kwargs)
        if this_thread.recording and (any(map(needs_grad, args)) or any(map(needs_grad, kwargs.values()))):
            return self.recorded(args, kwargs)
        return self.body(args, kwargs)

    def body(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the readable body returns; it records nothing itself."""
        records = this_thread.recording
        try:  # an interrupt may come at any moment: the state is changed where it is surely restored
            this_thread.recording = False
            return self.answer(args, kwargs)
        finally:
            this_thread.recording = records

    recorded = body  # where there is no gradient

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function itself returns; what Python and NumPy say of its arguments comes as our errors.

        No result warns: beyond the range is inf, and where there is no number is nan.
        """
        try:
            if not self.planned:  # a user's, whose warnings are not ours
                return self.fn(*args, **kwargs)
            with np.errstate(all="ignore"):
                found = self.fn(*args, **kwargs)
            arrays = [value for value in (*args, *kwargs.values()) if isinstance(value, np.ndarray)]
            return _apart(found, arrays) if arrays else found
        except (TypeError, ValueError, IndexError, OverflowError, RuntimeError) as error:
            better: Exception | None = misfit(self.fn, error, args, kwargs)
            if better is None and self.planned:
                better = named_numpy_error(self, error)
            if better is None:
                raise
            raise better from None

    def without_autocast(self, args: Any, kwargs: Any) -> Any:
        """A call under autocast: with its arguments cast, where its function asks for that, it is one without."""
        mode = this_thread.mode
        try:
            this_thread.mode = 0
            if self.autocasts is not None:
                args, kwargs = cast_arguments(self.autocasts, self.rule, mode, args, kwargs)
            return self(*args, **kwargs)
        finally:
            this_thread.mode = mode


class Op(_Function):
    """A differentiable function. Behaves as the plain function it wraps, and records the call."""

    def __init__(self, fn: Callable[..., Any], numbers: tuple[str, ...] = ()) -> None:
        super().__init__(fn, numbers)
        self.is_custom = not self.planned
        self.autocasts = None if self.is_custom else policy_of(fn.__name__)
        self._rule: Rule | None = None

    @property
    def rule(self) -> Rule:
        """How a call of this op flows into its backward; known since the backward was defined.

        A user's pair may leave that to the name: its backward is then ``<name>_backward`` of the same module.
        """
        if self._rule is None:
            beside = self.fn.__globals__.get(f"{self.__name__}_backward") if self.is_custom else None
            if beside is None:
                raise NotImplementedError(
                    f"[{self.__name__}] has no gradient: define {self.__name__}_backward beside it "
                    f"or pass backward= to @differentiable"
                )
            self.set_rule(_custom_rule(self, beside))
        return self._rule  # type: ignore[return-value]

    def set_rule(self, rule: Rule) -> None:
        """Say what the gradient of this op is."""
        self._rule = rule
        self.takes_needs = rule.takes_needs
        simple = rule.mirrored is None and not rule.is_custom  # what it returns needs no second look
        self.native_backward = rule.backward if simple else None

    @property
    def backward(self) -> Callable[..., Any]:
        """The public backward function of this op."""
        return self.rule.backward

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the body returns, which remembers the call."""
        return record(self, args, kwargs, self.body(args, kwargs))

    def __repr__(self) -> str:
        return f"<differentiable function {self.__module__}.{self.__qualname__}>"


class Backward(_Function):
    """A public backward function. Where its result must itself be differentiated, its formula is recorded instead.

    A backward without a formula is its own: what its body calls is recorded, differentiable functions as such and kernels
    by their references (``@formula`` in kernels.dispatch).
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        formula: Callable[..., Any] | None,
        numbers: tuple[str, ...],
    ) -> None:
        self.formula = formula
        self.is_backward = True
        self.signature = Signature.of(fn)
        self.has_one_gradient = fn.__annotations__.get("grad_output") == "ExTensor"
        self.takes_lists = [fn.__annotations__.get(name) == "ExTensor" for name in self.signature.names]
        super().__init__(fn, numbers)

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The formula in float32 where arguments are half precision, its results in the dtypes of the body's."""
        formula = self.formula
        if formula is None:
            return self.answer(args, kwargs)
        outcome = self.outcome(*args, **kwargs)
        if outcome is None:  # no plan knows whether the arguments are right: the body does
            with no_grad():
                outcome = outcome_of(self(*args, **kwargs))
        given, options = list(args), dict(kwargs)
        for name in self.signature.names[len(args) : self.signature.positional]:
            if name not in options:
                break
            given.append(options.pop(name))  # a formula may name its arguments differently
        # The body takes numbers and lists; a formula knows numbers beside tensors, its gradient is one.
        for i, takes in enumerate(self.takes_lists[: len(given)]):
            if takes and isinstance(given[i], (list, tuple)):
                given[i] = tensor(given[i])
        if self.has_one_gradient and not isinstance(given[0], ExTensor):
            given[0] = tensor(given[0])
        if is_complex(given) and not getattr(formula, "is_for_complex", False):
            formula = _conjugated(formula)
        return _narrow(formula(*map(widen, given), **{k: widen(v) for k, v in options.items()}), *outcome)

    def __repr__(self) -> str:
        return f"<backward function {self.__module__}.{self.__qualname__}>"


def _apart(found: Any, arrays: list[np.ndarray]) -> Any:
    """A result that is a view of one of the caller's arrays, to which he may write, becomes a copy."""
    if isinstance(found, ExTensor):
        data = found._data  # on another device it shares nothing
        shares = type(data) is np.ndarray and any(np.may_share_memory(data, array) for array in arrays)
        return tensor(found) if shares else found
    if isinstance(found, (tuple, list)):
        return refilled(type(found), [_apart(part, arrays) for part in found])
    return found


class Undifferentiated(_Function):
    """A function without a gradient. An observer sees it as it sees the differentiable ones."""


@overload
def differentiable(function: F) -> F: ...
@overload
def differentiable(
    *,
    backward: Callable[..., Any] | None = None,
    wrt: str | tuple[str, ...] | None = None,
    each: str | None = None,
    numbers: tuple[str, ...] = (),
) -> Callable[[F], F]: ...
def differentiable(
    function: F | None = None,
    *,
    backward: Callable[..., Any] | None = None,
    wrt: str | tuple[str, ...] | None = None,
    each: str | None = None,
    numbers: tuple[str, ...] = (),
) -> Any:
    """Make a function part of the recorder. Its gradient is ``backward``, or ``<name>_backward`` of the same module.

    Args:
        function: the forward function. It computes on tensors with kernels or NumPy and records nothing itself.
        backward: the gradient. Takes ``grad_output`` and then, by the forward's names, what it needs (``output`` is the
            forward's result). Returns a gradient for each argument in order, or the first one alone; or a NamedTuple of
            ``grad_<argument>``, if it is annotated so.
        wrt: the arguments that it returns gradients for, where its annotation does not tell.
        each: an argument that is a list of tensors, for each of which it returns a gradient in a list.
        numbers: arguments that may be Python numbers and are handed to a kernel without a look at their value.

    Example:
        >>> import extensor as et
        >>> def cube_backward(grad_output, x):
        ...     return 3 * grad_output * x**2
        >>> @et.differentiable(backward=cube_backward)
        ... def cube(x):
        ...     return x**3
        >>> et.grad(cube)(et.tensor(2.0)).item()
        12.0
    """

    def decorate(fn: F) -> F:
        op = Op(fn, numbers)
        if backward is not None:
            op.set_rule(_custom_rule(op, backward, wrt, each))
        return op  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def _custom_rule(
    op: Op, backward: Callable[..., Any], wrt: str | tuple[str, ...] | None = None, each: str | None = None
) -> Rule:
    """The rule of a user's pair, whose backward says by its parameters alone what it takes."""
    asked = Signature.of(backward).names
    if wrt is None and each is None:
        returned = _returned_class(backward)
        if returned is ExTensor:
            wrt = Signature.of(op.fn).names[0]
        elif hasattr(returned, "_fields"):
            wrt = tuple(field.removeprefix("grad_") for field in returned._fields)
    results = getattr(_returned_class(op.fn), "_fields", ())
    return Rule(
        op.fn,
        backward,
        wrt=wrt,
        each=each,
        from_output="output" in asked and "output" not in Signature.of(op.fn).names,
        from_results=tuple(name for name in results if name in asked),
        is_custom=op.is_custom,
    )


def _returned_class(function: Callable[..., Any]) -> Any:
    """What a user's function is annotated to return; None where that is not said, or not known."""
    try:
        return get_type_hints(unwrap(function)).get("return")
    except (AttributeError, NameError, TypeError):
        return None


def backward_of(
    forward: Callable[..., Any],
    *,
    formula: Callable[..., Any] | None = None,
    numbers: tuple[str, ...] = (),
    **rule: Any,
) -> Callable[[F], F]:
    """Make the function below the gradient of ``forward``.

    Args:
        forward: the op.
        formula: the same mathematics in differentiable functions, recorded where a higher derivative is wanted; for a backward
            whose kernel has a reference that cannot be recorded. Most need none.
        numbers: as in :func:`differentiable`.
        rule: how the forward's arguments flow into this function (:class:`~extensor.graph.rules.Rule`): ``wrt`` names the
            arguments with a gradient, the first by default; ``each`` the one that is a list of tensors; ``mirrored`` the one
            whose gradient is minus the first; ``keeps_shape`` and ``keeps_dtype`` those of which only that is kept;
            ``from_output`` says that ``output`` is the forward's result, ``from_results`` names fields of it; ``takes_none``
            that gradients of unused results may be None.
    """

    def decorate(fn: F) -> F:
        if not isinstance(forward, Op):
            raise TypeError(f"[backward_of] {forward} is not an op; put @differentiable above it")
        made: Any = Backward(fn, formula, numbers)
        forward.set_rule(Rule(forward.fn, made, is_custom=forward.is_custom, **rule))
        return made

    return decorate


@overload
def undifferentiated(function: F) -> F: ...
@overload
def undifferentiated(*, numbers: tuple[str, ...]) -> Callable[[F], F]: ...
def undifferentiated(function: F | None = None, *, numbers: tuple[str, ...] = ()) -> Any:
    """For a function without a gradient; ``numbers`` is as in :func:`differentiable`."""

    def decorate(fn: F) -> F:
        return Undifferentiated(fn, numbers)  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def outcome_of(result: Any) -> tuple[Any, tuple[Any, ...]]:
    """What results are like: the class they stand in (None for a single tensor), and the dtype of each or None."""
    if isinstance(result, (tuple, list)):
        return type(result), tuple(getattr(value, "dtype", None) for value in result)
    return None, (getattr(result, "dtype", None),)


def _narrow(value: Any, container: Any, dtypes: tuple[Any, ...]) -> Any:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    made = [p if p is None or p.dtype == dtype else p.astype(dtype) for p, dtype in zip(parts, dtypes)]
    return made[0] if container is None else refilled(container, made)


def is_complex(value: Any) -> bool:
    """Whether a value, or a tensor in a list of values, is complex."""
    if isinstance(value, ExTensor):
        return value.dtype.kind == "c"
    return isinstance(value, (list, tuple)) and any(map(is_complex, value))


def for_complex(formula: F) -> F:
    """Marks a formula that conjugates by itself; another is taken for ``g * f'(x)``, see :func:`_conjugated`."""
    formula.is_for_complex = True  # type: ignore[attr-defined]
    return formula


def _conjugated(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Of a formula ``g * f'(x)`` of real numbers the one of complex ones: ``g * conj(f'(x)) = conj(conj(g) * f'(x))``."""

    def conjugate(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return refilled(type(value), [conjugate(v) for v in value])
        return value.conj() if isinstance(value, ExTensor) else value

    return lambda g, *args, **options: conjugate(formula(conjugate(g), *args, **options))


register(tensor=ExTensor, node=Node, package_path=PACKAGE, named_memory_error=named_memory_error)
