"""Functions into functions: grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp.

Each opens fresh *sources* for its inputs, runs the function under the recorder and walks back to the sources.
A result is itself recorded when somebody may differentiate it again: inside another transform, or when
the function also depends on tensors that require a gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from ..dtypes import FLOATING
from ..errors import GraphError, describe
from ..graph import Op, attach, backward_of, differentiable, is_recording, set_recording
from ..ops.joining import stack
from ..tensor import ExTensor, tensor
from .engine import backpropagate, outside
from .trees import closed, leaves, map_leaves, opened, pairs, settle

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]


class _Nesting(threading.local):
    depth = 0


_nesting = _Nesting()


@contextmanager
def transforming() -> Iterator[None]:
    """Inside: recording is on, and inner transforms know that their results may be differentiated."""
    _nesting.depth += 1
    try:
        with set_recording(True):
            yield
    finally:
        _nesting.depth -= 1


@differentiable
def source(x: ExTensor) -> ExTensor:
    """The same values under a new node: where a walk back of a transform ends."""
    return x


@backward_of(source)
def source_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`source`.   dx = dy"""
    return grad_output


def linked(x: ExTensor) -> ExTensor:
    """The same values under a new node; the gradient goes on to ``x`` if it requires one."""
    wanted = x.requires_grad and is_recording()
    made: ExTensor = attach(cast(Op, source), ((), None), [x], [wanted], x)
    return made


class Sources:
    """The inputs of a transform, opened: the same structures with fresh nodes.

    Tensors of integers and booleans (labels, indices) pass through; they have no gradient, and None stands in its place.
    """

    def __init__(self, function: str, trees: Sequence[Any]) -> None:
        self.function = function
        self.tensors: list[ExTensor] = []
        self.given = trees
        inside = [opened(tree) for tree in trees]
        self.outer = is_recording() and any(t.requires_grad for tree in inside for t in leaves(tree))
        self.values = [map_leaves(self._open, tree) for tree in inside]
        self.trees = [closed(tree, values) for tree, values in zip(trees, self.values)]
        if not self.tensors:
            whole = next((t.dtype for tree in self.values for t in leaves(tree)), None)
            if whole is not None:
                raise TypeError(
                    f"[{function}] a tensor of dtype {whole} has no gradient; use a floating dtype"
                )
            raise TypeError(
                f"[{function}] found no tensor to differentiate with respect to in {describe(trees)}"
            )

    def _open(self, x: ExTensor) -> ExTensor:
        if x.dtype not in FLOATING:
            return x
        made = linked(x)
        self.tensors.append(made)
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """For the call of the function: see :func:`transforming`; what modules keep (running statistics) is kept."""
        with transforming():
            yield
        for tree, made in zip(self.given, self.trees):
            settle(tree, made)

    @property
    def nodes(self) -> list[Any]:
        return [t._node for t in self.tensors]

    def walk(
        self,
        outputs: Sequence[ExTensor],
        grads: Sequence[ExTensor],
        *,
        retain: bool = False,
        create: bool | None = None,
    ) -> list[ExTensor]:
        """The gradients of the sources; zeros where an output does not depend on one."""
        if create is None:
            create = self.must_record(outputs, grads)
        found = backpropagate(outputs, grads, self.nodes, retain_graph=retain or create, create_graph=create)
        return [ExTensor(np.zeros(t.shape, t.dtype)) if g is None else g for g, t in zip(found, self.tensors)]

    def must_record(self, outputs: Sequence[ExTensor], grads: Sequence[ExTensor]) -> bool:
        if _nesting.depth > 0 or self.outer or any(g.requires_grad for g in grads):
            return True
        return is_recording() and bool(outside(outputs, self.nodes[0].sequence))

    def rebuild(self, values: Sequence[Any]) -> list[Any]:
        """The structures of the inputs with ``values`` in place of the tensors, and None for whole numbers."""
        remaining = iter(values)

        def place(x: ExTensor) -> Any:
            return next(remaining) if x.dtype in FLOATING else None

        return [map_leaves(place, tree, _without_gradient) for tree in self.values]


def _without_gradient(value: Any) -> Any:
    """What stands for something that is no tensor in a structure of gradients."""
    return None if isinstance(value, (int, np.integer, np.bool_)) else value


def _argnums(function: str, argnums: Any, count: int) -> tuple[int, ...]:
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in wanted:
        if not isinstance(i, int) or isinstance(i, bool):
            raise TypeError(
                f"[{function}] argnums must be an int or a tuple of ints, got {describe(argnums)}"
            )
        if not -count <= i < count:
            raise ValueError(
                f"[{function}] argnums {i} is out of range for a call with {count} positional arguments"
            )
    return tuple(i % count for i in wanted)


def _with(args: Sequence[Any], positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    replaced = list(args)
    for i, value in zip(positions, values):
        replaced[i] = value
    return replaced


def _callable(function: str, fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"[{function}] fn must be a function, got {describe(fn)}")


def _detached(tree: Any) -> Any:
    """Results without the nodes of a transform's own graph, unless somebody outside can differentiate them."""
    return map_leaves(lambda t: t.detach() if t.requires_grad else t, tree)


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns ``(fn(*args), gradients)``.

    Args:
        fn: returns a scalar tensor; with ``has_aux``, a pair of the scalar and anything else.
        argnums: which positional arguments to differentiate; a tuple gives a tuple of gradients. An argument may
            be a tensor or nested dicts, lists and tuples of tensors; its gradient has the same structure, with None
            for whole numbers (labels, indices). The gradient of a module is a dict of its parameters' gradients.
        has_aux: ``fn`` returns ``(value, aux)``; the result is then ``((value, aux), gradients)``.

    Example:
        >>> import extensor as et
        >>> value, gradient = et.value_and_grad(lambda x: (x * x).sum())(et.tensor([1.0, 2.0]))
        >>> value.item(), gradient.tolist()
        (5.0, [2.0, 4.0])
    """
    _callable("value_and_grad", fn)
    return _value_and_grad("value_and_grad", fn, argnums, has_aux)


def _value_and_grad(name: str, fn: Callable[..., Any], argnums: Any, has_aux: bool) -> Callable[..., Any]:
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        positions = _argnums(name, argnums, len(args))
        sources = Sources(name, [args[i] for i in positions])
        with sources.running():
            result = fn(*_with(args, positions, sources.trees), **kwargs)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"[{name}] with has_aux=True fn must return (value, aux), got {describe(result)}")
        value = result[0] if has_aux else result
        start = _start(name, value)
        gradients = sources.rebuild(sources.walk([value], [start], retain=_nesting.depth > 0))
        gradient = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        if not (_nesting.depth or sources.outer):
            result = _detached(result)
        return result, gradient

    return differentiated


def _start(name: str, value: Any) -> ExTensor:
    """1, at a scalar; a value that depends on nothing has gradients of zero."""
    if not isinstance(value, ExTensor):
        raise TypeError(f"[{name}] fn must return a scalar tensor, got {describe(value)}")
    if value.size != 1 or value.ndim:
        raise GraphError(
            f"[{name}] fn must return a scalar tensor, got shape {value.shape}; reduce it, e.g. with .sum()"
        )
    if value.dtype not in FLOATING:
        raise TypeError(f"[{name}] fn returned a tensor of dtype {value.dtype}, which has no gradient")
    return ExTensor(np.ones((), value.dtype))


def grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of the scalar function ``fn``; with ``has_aux``, ``(gradient, aux)``.

    Arguments as for :func:`value_and_grad`. Apply it twice for second derivatives.

    Example:
        >>> import extensor as et
        >>> et.grad(lambda x: x ** 3)(2.0).item()
        12.0
        >>> et.grad(et.grad(lambda x: x ** 3))(2.0).item()
        12.0
    """
    _callable("grad", fn)
    return _grad("grad", fn, argnums, has_aux)


def _grad(name: str, fn: Callable[..., Any], argnums: Any, has_aux: bool = False) -> Callable[..., Any]:
    both = _value_and_grad(name, fn, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(fn: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    """``fn(*primals)`` and a pullback: from a gradient of the output to a tuple of gradients of the inputs.

    Labels and indices among the inputs have the gradient None; so have whole numbers among the outputs.

    Example:
        >>> import extensor as et
        >>> out, pullback = et.vjp(lambda x: x * x, et.tensor([1.0, 2.0]))
        >>> pullback(et.tensor([1.0, 10.0]))[0].tolist()
        [2.0, 40.0]
    """
    _callable("vjp", fn)
    return _vjp("vjp", fn, primals)


def _vjp(
    name: str, fn: Callable[..., Any], primals: Sequence[Any]
) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    # Arrays are copied: the pullback is called later, and the caller may have written to them by then.
    sources = Sources(name, [map_leaves(lambda t: t, tree, make=tensor) for tree in primals])
    with sources.running():
        out = fn(*sources.trees)
    outputs = _floating_outputs(name, out)

    def pullback(grad_output: Any) -> tuple[Any, ...]:
        grads = _matched(name, "gradient", "output", out, grad_output)
        return tuple(sources.rebuild(sources.walk(outputs, grads, retain=True)))

    return (out if _nesting.depth or sources.outer else _detached(out)), pullback


def _floating_outputs(name: str, out: Any) -> list[ExTensor]:
    """The outputs that have gradients."""
    outputs = [t for t in leaves(out) if t.dtype in FLOATING]
    if not outputs:
        raise TypeError(f"[{name}] fn must return tensors of a floating dtype, got {describe(out)}")
    return outputs


def _matched(name: str, what: str, of: str, tree: Any, given: Any) -> list[ExTensor]:
    """One tensor of ``given`` for each floating tensor of ``tree``, checked; whole numbers have None there, or zeros."""
    found: list[ExTensor] = []
    try:
        beside = list(pairs(tree, map_leaves(lambda t: t, given)))
    except ValueError as error:
        raise ValueError(
            f"[{name}] {what}s must be structured like the {of}s: {error}, got {describe(given)}"
        ) from None
    for t, value in beside:
        if t.dtype not in FLOATING:
            if value is not None and not (isinstance(value, ExTensor) and not value.numpy().any()):
                raise ValueError(
                    f"[{name}] the {what} of the {of} of dtype {t.dtype} must be None, got {describe(value)}"
                )
        elif not isinstance(value, ExTensor):
            raise ValueError(
                f"[{name}] a {what} must be a tensor of shape {t.shape} like its {of}, got {describe(value)}"
            )
        elif value.shape != t.shape:
            raise ValueError(f"[{name}] a {what} has shape {value.shape} but its {of} has shape {t.shape}")
        else:
            found.append(value if value.dtype == t.dtype else value.astype(t.dtype))
    return found


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``fn(*primals)`` and its directional derivative along ``tangents``.

    Forward mode out of two reverse passes: a pullback is linear in its argument, and its transpose is the jvp.

    Args:
        fn: a function of tensors (or structures of them) that returns tensors.
        primals: a tuple of its arguments.
        tangents: a tuple of directions, shaped like ``primals``; None for labels and indices.

    Example:
        >>> import extensor as et
        >>> out, tangent = et.jvp(lambda x: x * x, (et.tensor([1.0, 2.0]),), (et.tensor([1.0, 10.0]),))
        >>> tangent.tolist()
        [2.0, 40.0]
    """
    _callable("jvp", fn)
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError("[jvp] primals and tangents must be tuples, one entry per argument of fn")
    sources = Sources("jvp", list(primals))
    directions = _matched("jvp", "tangent", "primal", sources.values, list(tangents))
    with sources.running():
        out = fn(*sources.trees)
        outputs = _floating_outputs("jvp", out)
        probes = Sources("jvp", [ExTensor(np.zeros(o.shape, o.dtype)) for o in outputs])
        pulled = sources.walk(outputs, probes.tensors, create=True)
    tangent_leaves = iter(probes.walk(pulled, directions, retain=True))
    tangent = map_leaves(lambda t: next(tangent_leaves) if t.dtype in FLOATING else None, out)
    return (out if _nesting.depth or sources.outer else _detached(out)), tangent


def jacobian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns all first derivatives: for a tensor in and out, shape ``out.shape + x.shape``.

    With structures, the result has the output's structure, with the input's structure inside.

    Example:
        >>> import extensor as et
        >>> et.jacobian(lambda x: x * x)(et.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    _callable("jacobian", fn)
    return _jacobian("jacobian", fn, argnums)


def _jacobian(name: str, fn: Callable[..., Any], argnums: Any) -> Callable[..., Any]:
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        positions = _argnums(name, argnums, len(args))

        def of_arguments(*values: Any) -> Any:
            return fn(*_with(args, positions, values), **kwargs)

        sources = Sources(name, [args[i] for i in positions])
        with sources.running():
            out = of_arguments(*sources.trees)
        create = sources.must_record(_floating_outputs(name, out), [])

        def rows(output: ExTensor) -> Any:
            if output.dtype not in FLOATING:
                return None
            pulled = []
            for i in range(output.size):
                unit = np.zeros(output.size, output.dtype)
                unit[i] = 1
                pulled.append(
                    sources.walk([output], [ExTensor(unit.reshape(output.shape))], retain=True, create=create)
                )
            columns = [
                _stack([row[k] for row in pulled], output.shape, t) for k, t in enumerate(sources.tensors)
            ]
            found = sources.rebuild(columns)
            return found[0] if isinstance(argnums, int) else tuple(found)

        return map_leaves(rows, out)

    return derivatives


def _stack(rows: list[ExTensor], shape: tuple[int, ...], like: ExTensor) -> ExTensor:
    if not rows:
        return ExTensor(np.zeros(shape + like.shape, like.dtype))
    return stack(rows).reshape(shape + like.shape)


def hessian(fn: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that returns all second derivatives of the scalar function ``fn``: shape ``x.shape + x.shape``.

    Example:
        >>> import extensor as et
        >>> et.hessian(lambda x: (x ** 3).sum())(et.tensor([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    _callable("hessian", fn)
    return _jacobian("hessian", _grad("hessian", fn, argnums), argnums)


def hvp(fn: Callable[..., Any], x: Any, v: Any) -> Any:
    """The Hessian of the scalar function ``fn`` at ``x``, times ``v``, without forming the Hessian.

    Example:
        >>> import extensor as et
        >>> et.hvp(lambda x: (x ** 3).sum(), et.tensor([1.0, 2.0]), et.tensor([1.0, 1.0])).tolist()
        [6.0, 12.0]
    """
    _callable("hvp", fn)
    return _vjp("hvp", _grad("hvp", fn, 0), (x,))[1](v)[0]
