"""Functions into functions: grad, value_and_grad, vjp, hvp.

Each opens fresh *sources* for its inputs, runs the function under the recorder and walks back to the sources.
A result is itself recorded when somebody may differentiate it again: inside another transform, or when
the function also depends on tensors that require a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import FLOATING
from ..errors import GraphError, describe
from ..tensor import ExTensor, tensor
from .inputs import (
    Sources,
    check_callable,
    detached,
    floating_outputs,
    matched,
    nesting,
    positions_of,
    with_values,
)
from .trees import map_leaves

__all__ = ["grad", "gradient_of", "hvp", "value_and_grad", "vjp"]


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
    check_callable("value_and_grad", fn)
    return _value_and_grad("value_and_grad", fn, argnums, has_aux)


def _value_and_grad(name: str, fn: Callable[..., Any], argnums: Any, has_aux: bool) -> Callable[..., Any]:
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of(name, argnums, len(args))
        sources = Sources(name, [args[i] for i in positions])
        with sources.running():
            result = fn(*with_values(args, positions, sources.trees), **kwargs)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"[{name}] with has_aux=True fn must return (value, aux), got {describe(result)}")
        value = result[0] if has_aux else result
        start = _start(name, value)
        gradients = sources.rebuild(sources.walk([value], [start], retain=nesting.depth > 0))
        gradient = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        if not (nesting.depth or sources.outer):
            result = detached(result)
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
    check_callable("grad", fn)
    return gradient_of("grad", fn, argnums, has_aux)


def gradient_of(name: str, fn: Callable[..., Any], argnums: Any, has_aux: bool = False) -> Callable[..., Any]:
    """:func:`grad`, for the function that its errors name."""
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
    check_callable("vjp", fn)
    return _vjp("vjp", fn, primals)


def _vjp(
    name: str, fn: Callable[..., Any], primals: Sequence[Any]
) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    # Arrays are copied: the pullback is called later, and the caller may have written to them by then.
    sources = Sources(name, [map_leaves(lambda t: t, tree, make=tensor) for tree in primals])
    with sources.running():
        out = fn(*sources.trees)
    outputs = floating_outputs(name, out)

    def pullback(grad_output: Any) -> tuple[Any, ...]:
        grads = matched(name, "gradient", "output", out, grad_output)
        return tuple(sources.rebuild(sources.walk(outputs, grads, retain=True)))

    return (out if nesting.depth or sources.outer else detached(out)), pullback


def hvp(fn: Callable[..., Any], x: Any, v: Any) -> Any:
    """The Hessian of the scalar function ``fn`` at ``x``, times ``v``, without forming the Hessian.

    Example:
        >>> import extensor as et
        >>> et.hvp(lambda x: (x ** 3).sum(), et.tensor([1.0, 2.0]), et.tensor([1.0, 1.0])).tolist()
        [6.0, 12.0]
    """
    check_callable("hvp", fn)
    return _vjp("hvp", gradient_of("hvp", fn, 0), (x,))[1](v)[0]
