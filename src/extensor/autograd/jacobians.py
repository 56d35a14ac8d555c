"""All first and second derivatives: jacobian, jacfwd, jacrev, hessian."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import FLOATING
from ..ops.joining import stack
from ..tensor import ExTensor
from .forward_mode import Linearization
from .inputs import Sources, check_callable, floating_outputs, positions_of, with_values
from .transforms import gradient_of
from .trees import map_leaves

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]


def jacobian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns all first derivatives: for a tensor in and out, shape ``out.shape + x.shape``.

    With structures, the result has the output's structure, with the input's structure inside.

    Example:
        >>> import extensor as et
        >>> et.jacobian(lambda x: x * x)(et.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacobian", fn)
    return _jacobian("jacobian", fn, argnums)


def jacrev(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """:func:`jacobian` under its name in JAX and PyTorch: row by row, by one backward pass per element of the output.

    Example:
        >>> import extensor as et
        >>> et.jacrev(lambda x: x * x)(et.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacrev", fn)
    return _jacobian("jacrev", fn, argnums)


def jacfwd(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The same derivatives as :func:`jacobian`, column by column: better where there are more outputs than inputs.

    Example:
        >>> import extensor as et
        >>> et.jacfwd(lambda x: x * x)(et.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacfwd", fn)

    def derivatives(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("jacfwd", argnums, len(args))
        line = Linearization(
            "jacfwd",
            lambda *values: fn(*with_values(args, positions, values), **kwargs),
            [args[i] for i in positions],
        )
        zeros = [ExTensor(np.zeros(t.shape, t.dtype)) for t in line.sources.tensors]
        columns: list[list[list[ExTensor]]] = []  # by input, element of it, output
        for k, t in enumerate(line.sources.tensors):
            pushed = [line.push([*zeros[:k], unit, *zeros[k + 1 :]]) for unit in _units(t)]
            columns.append(pushed)
        numbers = itertools.count()

        def rows(output: ExTensor) -> Any:
            if output.dtype not in FLOATING:
                return None
            number = next(numbers)
            found = line.sources.rebuild([
                _side_by_side([column[number] for column in pushed], output, t)
                for pushed, t in zip(columns, line.sources.tensors)
            ])  # fmt: skip
            return found[0] if isinstance(argnums, int) else tuple(found)

        return map_leaves(rows, line.output)

    return derivatives


def _units(like: ExTensor) -> Iterator[ExTensor]:
    """The directions along each element of a tensor."""
    for i in range(like.size):
        unit = np.zeros(like.size, like.dtype)
        unit[i] = 1
        yield ExTensor(unit.reshape(like.shape))


def _side_by_side(columns: list[ExTensor], output: ExTensor, like: ExTensor) -> ExTensor:
    """Derivatives of ``output`` by each element of ``like``, as one tensor of shape output.shape + like.shape."""
    if not columns:
        return ExTensor(np.zeros(output.shape + like.shape, output.dtype))
    return stack(columns, -1).reshape(output.shape + like.shape)


def _jacobian(name: str, fn: Callable[..., Any], argnums: Any) -> Callable[..., Any]:
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of(name, argnums, len(args))

        def of_arguments(*values: Any) -> Any:
            return fn(*with_values(args, positions, values), **kwargs)

        sources = Sources(name, [args[i] for i in positions])
        with sources.running():
            out = of_arguments(*sources.trees)
        create = sources.must_record(floating_outputs(name, out), [])

        def rows(output: ExTensor) -> Any:
            if output.dtype not in FLOATING:
                return None
            pulled = [sources.walk([output], [unit], retain=True, create=create) for unit in _units(output)]
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
    check_callable("hessian", fn)
    return _jacobian("hessian", gradient_of("hessian", fn, argnums), argnums)
