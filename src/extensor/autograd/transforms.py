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
from ..tensor import ExTensor
from .engine import backpropagate, outside
from .trees import leaves, map_leaves

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


class Sources:
    """The inputs of a transform, opened: the same structures with fresh nodes."""

    def __init__(self, function: str, trees: Sequence[Any]) -> None:
        self.function = function
        self.tensors: list[ExTensor] = []
        self.outer = is_recording() and any(t.requires_grad for tree in trees for t in leaves(tree))
        self.trees = [map_leaves(self._open, tree) for tree in trees]
        if not self.tensors:
            raise TypeError(
                f"[{function}] found no tensor to differentiate with respect to in {describe(trees)}"
            )

    def _open(self, x: ExTensor) -> ExTensor:
        if x.dtype not in FLOATING:
            raise TypeError(
                f"[{self.function}] a tensor of dtype {x.dtype} has no gradient; use a floating dtype"
            )
        opened = attach(cast(Op, source), ((), None), [x], [x.requires_grad and is_recording()], x)
        self.tensors.append(opened)
        return opened

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
        """The structures of the inputs with ``values`` in place of the tensors."""
        remaining = iter(values)
        return [map_leaves(lambda _: next(remaining), tree) for tree in self.trees]


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
            be a tensor or nested dicts, lists and tuples of tensors; its gradient has the same structure.
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
        with transforming():
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
    sources = Sources(name, primals)
    with transforming():
        out = fn(*sources.trees)
    outputs = list(leaves(out))
    if not outputs:
        raise TypeError(f"[{name}] fn must return tensors, got {describe(out)}")

    def pullback(grad_output: Any) -> tuple[Any, ...]:
        return tuple(
            sources.rebuild(sources.walk(outputs, _cotangents(name, outputs, grad_output), retain=True))
        )

    return (out if _nesting.depth or sources.outer else _detached(out)), pullback


def _cotangents(name: str, outputs: Sequence[ExTensor], given: Any) -> list[ExTensor]:
    """One gradient per output, checked."""
    grads = list(leaves(given))
    if len(grads) != len(outputs):
        raise ValueError(
            f"[{name}] expected a structure of {len(outputs)} tensors like the outputs, got {describe(given)}"
        )
    for out, g in zip(outputs, grads):
        if g.shape != out.shape:
            raise ValueError(f"[{name}] a gradient has shape {g.shape} but its output has shape {out.shape}")
    return grads


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``fn(*primals)`` and its directional derivative along ``tangents``.

    Forward mode out of two reverse passes: a pullback is linear in its argument, and its transpose is the jvp.

    Args:
        fn: a function of tensors (or structures of them) that returns tensors.
        primals: a tuple of its arguments.
        tangents: a tuple of directions, shaped like ``primals``.

    Example:
        >>> import extensor as et
        >>> out, tangent = et.jvp(lambda x: x * x, (et.tensor([1.0, 2.0]),), (et.tensor([1.0, 10.0]),))
        >>> tangent.tolist()
        [2.0, 40.0]
    """
    _callable("jvp", fn)
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError("[jvp] primals and tangents must be tuples, one entry per argument of fn")
    directions = list(leaves(map_leaves(lambda t: t, list(tangents))))
    sources = Sources("jvp", list(primals))
    if [t.shape for t in directions] != [t.shape for t in sources.tensors]:
        raise ValueError(
            f"[jvp] tangents must be shaped like primals: {[t.shape for t in directions]} "
            f"and {[t.shape for t in sources.tensors]}"
        )
    with transforming():
        out = fn(*sources.trees)
        outputs = list(leaves(out))
        probes = Sources("jvp", [ExTensor(np.zeros(o.shape, o.dtype)) for o in outputs])
        pulled = sources.walk(outputs, probes.tensors, create=True)
    tangent_leaves = iter(probes.walk(pulled, directions, retain=True))
    tangent = map_leaves(lambda _: next(tangent_leaves), out)
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
        with transforming():
            out = of_arguments(*sources.trees)
        outputs = list(leaves(out))
        if not outputs:
            raise TypeError(f"[{name}] fn must return tensors, got {describe(out)}")
        create = sources.must_record(outputs, [])

        def rows(output: ExTensor) -> Any:
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
