"""Every pair under vmap computes what it computes example by example, its gradients included.

The calls are those of the registry, drawn three times. Whatever is a tensor is batched: all at once, then the first alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.autograd.batching import registry, rules
from extensor.autograd.trees import leaves
from extensor.dtypes import FLOATING
from extensor.testing.calls import floating_outputs
from extensor.testing.registry import Case, Draw
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import find_op

EXAMPLES = 3
NAMES = sorted(PAIRS)


def _calls(name: str) -> Iterator[list[tuple[Any, dict[str, Any]]]]:
    """The cases of a pair, each drawn once per example; those whose shapes or options hang on the draw are left out."""
    streams = [PAIRS[name].cases(Draw((7, seed))) for seed in range(EXAMPLES)]
    for cases in zip(*streams):
        if len({repr(case) for case in cases}) == 1:
            yield [_tensors(case) for case in cases]


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A structure with ``function`` of each array and tensor."""
    if isinstance(value, (np.ndarray, et.ExTensor)):
        return function(value)
    if isinstance(value, dict):
        return {key: _mapped(function, part) for key, part in value.items()}
    return type(value)(_mapped(function, part) for part in value) if type(value) in (list, tuple) else value


def _tensors(case: Case) -> tuple[Any, dict[str, Any]]:
    found: tuple[Any, dict[str, Any]] = _mapped(et.tensor, (case.args, case.kwargs))
    return found


def _stacked(calls: list[Any], axes: Any) -> Any:
    """One structure of the calls', with tensors stacked where ``axes`` has 0."""
    first = calls[0]
    if isinstance(first, dict):
        return {key: _stacked([c[key] for c in calls], axes[key]) for key in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_stacked([c[i] for c in calls], axes[i]) for i in range(len(first)))
    return et.stack(calls) if axes == 0 and isinstance(first, et.ExTensor) else first


def _axes(call: Any, choose: Callable[[], int | None]) -> Any:
    if isinstance(call, dict):
        return {key: _axes(value, choose) for key, value in call.items()}
    if isinstance(call, (list, tuple)):
        return type(call)(_axes(value, choose) for value in call)
    return choose() if isinstance(call, et.ExTensor) else None


def _first_alone() -> Callable[[], int | None]:
    seen: list[int] = []

    def choose() -> int | None:
        seen.append(0)
        return 0 if len(seen) == 1 else None

    return choose


def _assert_same(found: Any, expected: list[Any], what: str) -> None:
    for place, tensor in enumerate(leaves(found)):
        rows = [list(leaves(row))[place].numpy() for row in expected]
        np.testing.assert_allclose(
            tensor.numpy(), np.stack(rows), rtol=1e-9, atol=1e-10, err_msg=what, strict=True
        )


def _values_and_gradients(op: Any, args: Any, kwargs: Any) -> Any:
    """The results of a call, and the gradients of a sum over them that weighs each element differently."""
    targets = {id(t) for t in op.rule.inputs(op.rule.bind(args, kwargs))}
    floating = [t for t in leaves((args, kwargs)) if t.dtype in FLOATING and id(t) in targets]

    def loss(values: list[et.ExTensor]) -> Any:
        others = {id(t): value for t, value in zip(floating, values)}
        given, named = _mapped(lambda t: others.get(id(t), t), (args, kwargs))
        result = op(*given, **named)
        total = et.zeros((), et.float64)
        for output in floating_outputs(result):
            weights = et.tensor(np.cos(np.arange(output.size, dtype=float)).reshape(output.shape))
            total = total + (weights * et.abs(output)).sum()
        return total, result

    gradients, result = et.grad(loss, has_aux=True)(floating)
    return (list(result) if isinstance(result, tuple) else result), gradients


@pytest.mark.parametrize("name", NAMES)
def test_batched_as_one_by_one(name: str) -> None:
    op = find_op(name)
    for calls in _calls(name):
        for choose in (lambda: 0, _first_alone()):
            axes = _axes(calls[0], choose)
            if not any(axis == 0 for axis in _flat(axes)):
                continue
            batch = _stacked(calls, axes)
            single = [_merged(calls[0], call, axes) for call in calls]
            found = et.vmap(lambda args, kwargs: _values_and_gradients(op, args, kwargs), in_axes=axes)(
                *batch
            )
            expected = [_values_and_gradients(op, *call) for call in single]
            _assert_same(found, expected, f"{name}{single[0]} batched along {axes}")


def _flat(axes: Any) -> Iterator[Any]:
    if isinstance(axes, dict):
        axes = list(axes.values())
    if isinstance(axes, (list, tuple)):
        for axis in axes:
            yield from _flat(axis)
    else:
        yield axes


def _merged(first: Any, call: Any, axes: Any) -> Any:
    """A call with what is not batched taken from the first one."""
    if isinstance(call, dict):
        return {key: _merged(first[key], call[key], axes[key]) for key in call}
    if isinstance(call, (list, tuple)):
        return type(call)(_merged(f, c, a) for f, c, a in zip(first, call, axes))
    return call if axes == 0 else first


def test_rules_are_of_ops_that_exist() -> None:
    """A rule of a function that is gone, or was never there, is a misspelt one."""
    assert rules.rule_of is registry.rule_of
    known = set(et.__all__) | set(et.linalg.__all__) | set(et.fft.__all__)
    assert sorted(set(registry.RULES) - known) == []
