"""The native backward pass takes the steps of the readable one: same bits, same errors, nothing kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn
from extensor.autograd import engine
from extensor.autograd.engine import Walk
from extensor.graph import StateBlock, walking

pytest.importorskip("extensor._native", reason="without the native core there is only the readable walk")


def readable() -> StateBlock:
    """A context in which the walks of this thread are by the definition."""
    return walking(Walk)


def programs() -> dict[str, Callable[[], list[Any]]]:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(4, 5)) for _ in range(2))
    labels = et.tensor([0, 3, 2, 1])

    def leaves(dtype: Any) -> list[et.ExTensor]:
        return [et.tensor(v, dtype=dtype, requires_grad=True) for v in (a, b)]

    def diamond(dtype: Any = et.float32) -> list[Any]:
        x, y = leaves(dtype)
        h = x * y
        return [x, y, ((h + h.tanh() * x) / (y * y + 1.0)).sum()]

    def several_outputs() -> list[Any]:
        x, y = leaves(et.float32)
        first, second = et.split(x * y, [2], axis=1)
        h, c = et.lstm_cell(x, y[:, :2], x[:, :2] * 0.5, et.ones((8, 5)), et.ones((8, 2)))
        return [x, y, first.sum() + (second * 2.0).sum() + h.sum(), c]

    def mixed_dtypes() -> list[Any]:
        x = et.tensor(a, dtype=et.float16, requires_grad=True)
        y = et.tensor(b, dtype=et.float64, requires_grad=True)
        return [x, y, (x.astype(et.float32) * y + x * x).sum()]

    def loss() -> list[Any]:
        x, y = leaves(et.float32)
        logits = et.layer_norm(x @ y.T, 4)
        return [x, y, et.cross_entropy(logits, labels) + et.mean_squared_error(x, y)]

    def custom() -> list[Any]:
        x, y = leaves(et.float64)
        double = et.differentiable(backward=lambda grad_output: 2.0 * grad_output)(lambda x: x + x)
        return [x, y, (double(x) * y).sum()]

    def checkpointed() -> list[Any]:
        x, y = leaves(et.float32)
        return [x, y, et.checkpoint(lambda u, v: (u * v).tanh())(x, y).sum()]

    return {
        "diamond": diamond,
        "diamond in float16": lambda: diamond(et.float16),
        "diamond in bfloat16": lambda: diamond(et.bfloat16),
        "several outputs": several_outputs,
        "mixed dtypes": mixed_dtypes,
        "loss": loss,
        "custom": custom,
        "checkpointed": checkpointed,
    }


def gradients(make: Callable[[], list[Any]], twice: bool) -> list[Any]:
    x, y, *outputs = make()
    for output in outputs:
        grad = et.tensor(np.random.default_rng(1).normal(size=output.shape), dtype=output.dtype)
        output.backward(grad, retain_graph=True)
        if twice:
            output.backward(grad, retain_graph=True)
    return [(v.grad.dtype, v.grad.numpy().tobytes()) for v in (x, y) if v.grad is not None]


@pytest.mark.parametrize("twice", [False, True], ids=["once", "accumulated"])
@pytest.mark.parametrize("name", programs())
def test_same_bits(name: str, twice: bool) -> None:
    with readable():
        expected = gradients(programs()[name], twice)
    assert gradients(programs()[name], twice) == expected
    assert expected


@pytest.mark.parametrize("name", programs())
def test_same_bits_of_targets(name: str) -> None:
    def of_targets() -> list[Any]:
        x, y, *outputs = programs()[name]()
        start = [et.ones(o.shape, dtype=o.dtype) for o in outputs]
        found = engine.backpropagate(outputs, start, [y, x, et.ones(1)], retain_graph=True)
        return [None if g is None else g.numpy().tobytes() for g in found]

    with readable():
        expected = of_targets()
    assert of_targets() == expected
    assert expected[-1] is None


def test_the_native_walk_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    x = et.tensor([1.0], requires_grad=True)
    seen = []
    monkeypatch.setattr(engine, "walk_back", lambda *args: seen.append(args) or [])
    (x * x).backward()
    assert len(seen) == 1
    with readable():
        (x * x).backward()
    assert len(seen) == 1
    assert x.grad.tolist() == [2.0]


def test_errors_are_the_same() -> None:
    def freed() -> None:
        x = et.tensor([1.0], requires_grad=True)
        y = (x * x).sum()
        y.backward()
        y.backward()

    def replaced() -> None:
        p = nn.Parameter([1.0])
        y = (p * p).sum()
        p.assign([2.0])
        y.backward()

    def wrong_shape() -> None:
        bad = et.differentiable(backward=lambda grad_output: grad_output.sum())(lambda x: x + x)
        bad(et.tensor([1.0, 2.0], requires_grad=True)).sum().backward()

    for fail in (freed, replaced, wrong_shape):
        with readable(), pytest.raises(Exception) as expected:
            fail()
        with pytest.raises(type(expected.value)) as found:
            fail()
        assert str(found.value) == str(expected.value)


def test_nothing_is_kept() -> None:
    x = et.tensor(np.ones(4), requires_grad=True)
    y = x * 2.0
    z = (y * y).sum()
    ghosts = [weakref.ref(y._node), weakref.ref(z._node)]
    z.backward()
    assert z._node.saved is None
    del y, z
    gc.collect()
    assert [ghost() for ghost in ghosts] == [None, None]


def test_what_is_no_gradient_is_refused() -> None:
    x = et.tensor([1.0, 2.0], requires_grad=True)
    body = et.relu_backward.fn
    for wrong, error in ((1.0, TypeError), ((et.ones(2), et.ones(2)), ValueError)):
        et.relu_backward.fn = lambda grad_output, x, wrong=wrong: wrong
        try:
            with pytest.raises(error, match="gradient"):
                (et.relu(x) + et.relu(x)).sum().backward()
        finally:
            et.relu_backward.fn = body


def test_no_targets_and_a_target_twice() -> None:
    def found(targets: Callable[[Any], list[Any]]) -> list[Any]:
        x = et.tensor([1.0], dtype=et.float16, requires_grad=True)
        y = x + x
        grads = engine.backpropagate([y], [et.ones(1, dtype=et.float16)], targets(x))
        return [y._node.saved, *((g.dtype, g.tolist()) for g in grads)]

    for targets in (lambda x: [], lambda x: [x, x]):
        with readable():
            expected = found(targets)
        assert found(targets) == expected
