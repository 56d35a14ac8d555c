"""The recorder: what was computed, from what, and which public backward function undoes it.

``@differentiable`` turns a function into an :class:`Op`. Calling an op runs the function; if recording is
on and an input requires a gradient, the result remembers a :class:`Node`. A node holds exactly what the
op's public ``<name>_backward`` asks for by the names of its parameters:

=============================  ==========================================================
parameter of the backward      what the recorder keeps for it
=============================  ==========================================================
``grad_output``                nothing; it arrives during the backward pass
a name of the forward          that argument (annotated ``TensorOrShape``: only its shape,
                               ``TensorOrDtype``: only its dtype)
``output``                     the forward's result
a field of the result          that field, where the forward returns a NamedTuple
``needs``                      which gradients are wanted; the others may be None
=============================  ==========================================================

The gradients belong to: the fields ``grad_<argument>`` of the NamedTuple the backward returns; or, if it
returns a list, the forward's list of tensors; or else the forward's first argument that is not annotated
``Indices``.

``@fused`` marks a backward whose body is one kernel. Where its result must itself be differentiated, the
formula (the same mathematics in differentiable functions) is recorded instead; so every order works.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, overload

from ._plain_calls import (
    ALL_AXES,
    ANY_INTS,
    ANY_NUMBER,
    DTYPE,
    FLAT_AXIS,
    INTS,
    KEY,
    LAST_AXIS,
    ONES,
    OPERAND,
    SHAPE,
    SHAPE_OF,
    TENSORS,
    ZEROS,
    run_backward_natively,
    run_natively,
    run_undifferentiated_natively,
)
from ._rules import Rule, dtype_of
from .dtypes import FLOATING, HALF, float32, guard_width
from .tensor import ExTensor

try:
    from ._native import (
        NodeBase,
        OpBase,
        exchange_observer,
        exchange_recording,
        get_observer,
        is_recording,
        next_sequence,
        register_classes,
    )
except ModuleNotFoundError:
    from ._pure import (  # type: ignore[assignment]
        NodeBase,
        OpBase,
        exchange_observer,
        exchange_recording,
        get_observer,
        is_recording,
        next_sequence,
        register_classes,
    )

__all__ = [
    "ALL_AXES", "ANY_INTS", "ANY_NUMBER", "DTYPE", "FLAT_AXIS", "INTS", "KEY", "LAST_AXIS", "ONES", "OPERAND", "SHAPE", "SHAPE_OF",
    "TENSORS", "ZEROS", "Node", "Op", "differentiable", "fused",
    "is_recording", "no_grad", "observe", "undifferentiated",
]  # fmt: skip

_PACKAGE = os.path.dirname(__file__) + os.sep
F = TypeVar("F", bound=Callable[..., Any])


class Observer(Protocol):
    """Sees every op call of this thread; returns what the call returns."""

    def __call__(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class set_recording:
    """Recording on or off in this thread, for the length of a ``with`` block."""

    __slots__ = ("before", "on")

    def __init__(self, on: bool) -> None:
        self.on = on

    def __enter__(self) -> None:
        self.before = exchange_recording(self.on)

    def __exit__(self, *exception: object) -> None:
        exchange_recording(self.before)


def no_grad() -> set_recording:
    """A context in which nothing is recorded.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0], requires_grad=True)
        >>> with et.no_grad():
        ...     (x * 2).requires_grad
        False
    """
    return set_recording(False)


@contextmanager
def observe(observer: Observer | None) -> Iterator[None]:
    """Route every op call of this thread through ``observer``."""
    before = exchange_observer(observer)
    try:
        yield
    finally:
        exchange_observer(before)


class Node(NodeBase):
    """One recorded call.

    Attributes:
        op: the function that was called.
        edges: per gradient the node, or the leaf tensor, it flows to; None where no gradient is wanted.
        saved: positional arguments of the backward after ``grad_output``; None once freed.
        options: its keyword arguments, or None.
        sequence: the number of the recording; a node's inputs always have smaller ones.
        casts: dtypes of the inputs, where they differ from the output's.
        shape: of the output; None where there are several.
        outputs: several outputs: (shape, dtype) of each.
        shapes: a user's pair: (shape, dtype) its gradients must have.
        code, instruction: where the user's code made the call.
    """

    __slots__ = ()

    @property
    def place(self) -> tuple[str, int, str] | None:
        """File, line and function of the user's code that made the call."""
        if self.code is None:
            return None
        lines = list(self.code.co_positions())
        line = lines[self.instruction // 2][0] if self.instruction >= 0 else None
        return self.code.co_filename, line or self.code.co_firstlineno, self.code.co_name


def is_our_file(name: str) -> bool:
    """Whether a file belongs to this package."""
    return name.startswith(_PACKAGE)


def caller() -> tuple[str, int, str] | None:
    """File, line and function of the user's code that is running: the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and is_our_file(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else None


class Branch:
    """One of the several outputs of a node."""

    __slots__ = ("index", "node", "sequence")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self.sequence = next_sequence()


def needs_grad(value: Any) -> bool:
    """Whether a value, or a tensor in a list of values, requires a gradient."""
    if isinstance(value, ExTensor):
        return value._requires_grad
    return isinstance(value, (list, tuple)) and any(map(needs_grad, value))


class Op(OpBase):
    """A differentiable function. Behaves as the plain function it wraps, and records the call."""

    def __init__(
        self,
        fn: Callable[..., Any],
        backward: Callable[..., Any] | None,
        mirrored: str | None,
        plain: tuple[Any, ...] | None,
    ) -> None:
        self.fn = fn
        self.plain = plain
        self.mirrored = mirrored
        self.is_custom = not fn.__module__.startswith("extensor.")
        self._given = backward
        self._rule: Rule | None = None
        _dress(self, fn)

    @property
    def backward(self) -> Callable[..., Any]:
        """The public backward function of this op."""
        return self.rule.backward

    @property
    def rule(self) -> Rule:
        """How a call of this op flows into its backward; made on first use, when both functions exist."""
        if self._rule is None:
            given = self._given or self.fn.__globals__.get(f"{self.__name__}_backward")
            if given is None:
                raise NotImplementedError(
                    f"[{self.__name__}] has no gradient: define {self.__name__}_backward beside it "
                    f"or pass backward= to @differentiable"
                )
            self._rule = Rule(self.fn, given, self.mirrored, self.is_custom)
            if not self.is_custom:
                run_natively(self, self._rule)
        return self._rule

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The call as it is defined; plain elementwise calls are run natively instead (see OpBase)."""
        observer = get_observer()
        if observer is not None:
            return observer(self, args, kwargs)
        if self._rule is None and not self.is_custom:
            _ = self.rule  # from now on plain calls are run natively
        output = self.fn(*args, **kwargs)
        if is_recording() and (any(map(needs_grad, args)) or any(map(needs_grad, kwargs.values()))):
            return record(self, args, kwargs, output)
        return output

    def __repr__(self) -> str:
        return f"<differentiable function {self.__module__}.{self.__qualname__}>"


def _dress(wrapper: Any, fn: Callable[..., Any]) -> None:
    """Let a wrapper pass for the function it wraps."""
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(wrapper, name, getattr(fn, name))
    wrapper.__wrapped__ = fn


def record(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    """``output`` with a node that remembers this call, if any input it can differentiate requires a gradient."""
    if isinstance(output, ExTensor) and output.dtype not in FLOATING:
        return output
    rule = op.rule
    bound = rule.bind(args, kwargs)
    inputs = rule.inputs(bound)
    if op.mirrored is not None:
        inputs.append(bound[op.mirrored])
    wanted = [needs_grad(value) for value in inputs]
    if sum(wanted) != sum(_count_needing(value) for value in bound.values()):
        _refuse(op, bound)
    if not any(wanted):
        return output
    return attach(op, rule.arguments(bound, output), inputs, wanted, output)


def _count_needing(value: Any) -> int:
    if isinstance(value, ExTensor):
        return int(value._requires_grad)
    return sum(map(_count_needing, value)) if isinstance(value, (list, tuple)) else 0


def _refuse(op: Op, bound: dict[str, Any]) -> None:
    known = {*op.rule.targets, op.mirrored}
    name = next(n for n, v in bound.items() if n not in known and needs_grad(v))
    raise NotImplementedError(f"[{op.__name__}] has no gradient for {name}; pass {name}.detach()")


def attach(op: Op, saved: Any, inputs: Sequence[Any], wanted: Sequence[bool], output: Any) -> Any:
    """Give ``output`` (a tensor, or several) the node of this call; the tensors returned are new objects."""
    edges = tuple(
        (value._node if value._node is not None else value) if want else None
        for value, want in zip(inputs, wanted)
    )
    positional, options = saved
    outputs = op.rule.output_positions
    if outputs:  # without its node: a node that owns its own output would be a cycle
        positional = tuple(v.detach() if i in outputs else v for i, v in enumerate(positional))
    node = Node(op, edges, positional, options)
    if op.is_custom:
        node.shapes = tuple((v.shape, v.dtype) if isinstance(v, ExTensor) else None for v in inputs)
    if not isinstance(output, ExTensor):
        return _attach_many(node, inputs, output)
    node.shape = output.shape
    node.casts = _casts(inputs, output.dtype)
    return ExTensor(output._array, True, node)


def _attach_many(node: Node, inputs: Sequence[Any], output: Any) -> Any:
    node.outputs = []
    made = []
    for index, value in enumerate(output):
        if isinstance(value, ExTensor) and value.dtype in FLOATING:
            node.outputs.append((value.shape, value.dtype))
            made.append(ExTensor(value._array, True, Branch(node, index)))
        else:
            node.outputs.append(None)
            made.append(value)
    node.casts = _casts(inputs, next(d for d in node.outputs if d)[1])
    return type(output)(*made) if hasattr(output, "_fields") else type(output)(made)


def _casts(inputs: Sequence[Any], dtype: Any) -> tuple[Any, ...] | None:
    dtypes = tuple(v.dtype if isinstance(v, ExTensor) else dtype for v in inputs)
    return None if all(d == dtype for d in dtypes) else dtypes


@overload
def differentiable(function: F) -> F: ...
@overload
def differentiable(
    *,
    backward: Callable[..., Any] | None = None,
    mirrored: str | None = None,
    plain: tuple[Any, ...] | None = None,
) -> Callable[[F], F]: ...
def differentiable(
    function: F | None = None,
    *,
    backward: Callable[..., Any] | None = None,
    mirrored: str | None = None,
    plain: tuple[Any, ...] | None = None,
) -> Any:
    """Make a function part of the recorder, with ``backward`` as its gradient.

    Args:
        function: the forward function. It computes on tensors with kernels or NumPy and records nothing itself.
        backward: the gradient. Takes ``grad_output`` and then, by the forward's names, what it needs
            (``output`` is the forward's result). Left out, it is ``<name>_backward`` of the same module.
        mirrored: an argument whose gradient is minus that of the first (losses of a difference).
        plain: for a function whose body is "check, then the one kernel of its name": what the kernel takes in a plain
            call, in the words of ``_plain_calls.py``.

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
        return Op(fn, backward, mirrored, plain)  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def fused(formula: Callable[..., Any], *, plain: tuple[Any, ...] | None = None) -> Callable[[F], F]:
    """For a backward whose body is one kernel: record ``formula`` instead where a higher derivative needs it.

    ``plain`` is as in :func:`differentiable`.
    """

    def decorate(fn: F) -> F:
        return Fused(fn, formula, plain)  # type: ignore[return-value]

    return decorate


def _rounded_once(
    formula: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], like: Any
) -> Any:
    """The formula in float32 where arguments are half precision, each result in the dtype of its twin in ``like``."""

    def narrow(value: Any, twin: Any) -> Any:
        if isinstance(value, (list, tuple)):
            parts = [narrow(v, t) for v, t in zip(value, twin)]
            return type(twin)(*parts) if hasattr(twin, "_fields") else parts
        return value if value is None or value.dtype == twin.dtype else value.astype(twin.dtype)

    return narrow(formula(*map(_widen, args), **{k: _widen(v) for k, v in kwargs.items()}), like)


def _widen(value: Any) -> Any:
    if isinstance(value, ExTensor):
        return value.astype(float32) if value.dtype in HALF else value
    return [_widen(v) for v in value] if type(value) is list else value


class Fused(OpBase):
    """A backward function computed by one kernel, with a differentiable formula as its twin."""

    def __init__(
        self, fn: Callable[..., Any], formula: Callable[..., Any], plain: tuple[Any, ...] | None
    ) -> None:
        self.fn = fn
        self.formula = formula
        self.plain = plain
        _dress(self, fn)
        self._signature: inspect.Signature | None = None
        run_backward_natively(self)

    @property
    def signature(self) -> inspect.Signature:
        """Of the function; read when a call is first recorded, because reading 150 of them would slow the import."""
        if self._signature is None:
            self._signature = inspect.signature(self.fn)
        return self._signature

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The call as it is defined; plain elementwise calls are run natively instead (see OpBase)."""
        if is_recording() and (any(map(needs_grad, args)) or any(map(needs_grad, kwargs.values()))):
            checked = self.fn(*args, **kwargs)  # for its checks of the arguments
            bound = self.signature.bind(*args, **kwargs)  # a formula may name its arguments differently
            guard = self.signature.parameters.get("eps")  # an eps with a default of its own is no guard
            if guard is not None and guard.default is None and bound.arguments.get("eps") is None:
                bound.arguments["eps"] = guard_width(dtype_of(bound.args[0]))  # before float16 is widened
            return _rounded_once(self.formula, bound.args, bound.kwargs, checked)
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<backward function {self.__module__}.{self.__qualname__}>"


class Undifferentiated(OpBase):
    """A function without a gradient, whose plain calls go straight to its native kernel."""

    def __init__(self, fn: Callable[..., Any], plain: tuple[Any, ...] | None) -> None:
        self.call = self.fn = fn
        self.plain = plain
        _dress(self, fn)
        run_undifferentiated_natively(self)


@overload
def undifferentiated(function: F) -> F: ...
@overload
def undifferentiated(*, plain: tuple[Any, ...]) -> Callable[[F], F]: ...
def undifferentiated(function: F | None = None, *, plain: tuple[Any, ...] | None = None) -> Any:
    """For a function without a gradient whose body is "check, then the one kernel of its name".

    ``plain`` is as in :func:`differentiable`; without it the kernel is an elementwise one.
    """

    def decorate(fn: F) -> F:
        return Undifferentiated(fn, plain)  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


register_classes(ExTensor, Node, (Op, Fused, Undifferentiated), _PACKAGE)
