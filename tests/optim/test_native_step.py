"""The native step of an optimiser computes what the readable one computes, and changes no array that somebody holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.optim.optimizer import Optimizer

pytest.importorskip("extensor._native", reason="without the native core there is only the readable step")

MAKERS: dict[str, Callable[[Any], Optimizer]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1, maximize=True),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.1, maximize=True),
}


def parameters() -> list[nn.Parameter]:
    """Small and large ones, of all floating dtypes, 0-d, empty, strided and without a gradient."""
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (70, 900), (), (0, 2), (5,)]
    made = [nn.Parameter(et.tensor(rng.standard_normal(s), dtype=et.float32)) for s in shapes]
    made += [
        nn.Parameter(et.tensor(rng.standard_normal(6), dtype=d))
        for d in (et.float64, et.float16, et.bfloat16)
    ]
    return made


def trained(make: Callable[[Any], Optimizer], held: bool, steps: int = 5) -> tuple[list[Any], list[Any]]:
    params = parameters()
    optimizer = make(params)
    rng = np.random.default_rng(1)
    seen = []
    for step in range(steps):
        for i, p in enumerate(params):
            if (i + step) % 4 == 3:
                p.zero_grad()
            else:
                grad = et.tensor(rng.standard_normal(p.shape), dtype=p.dtype)
                p.grad = grad.reshape(p.shape[::-1]).T if p.ndim == 2 and i == 0 else grad
        if held:
            seen += [(p.numpy(), p.numpy().copy()) for p in params]
            seen += [
                (v.numpy(), v.numpy().copy())
                for s in optimizer.state.values()
                for v in s.values()
                if isinstance(v, et.ExTensor)
            ]
        optimizer.step()
    for array, copy in seen:
        assert array.tobytes() == copy.tobytes()
    states = [
        {
            name: v.tolist() if isinstance(v, et.ExTensor) else v
            for name, v in optimizer.state.get(p, {}).items()
        }
        for p in params
    ]
    return [p.tolist() for p in params], states


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_the_same_bits(name: str, held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    native = trained(MAKERS[name], held)
    monkeypatch.setattr(Optimizer, "_step_natively", lambda *_, **__: False)
    assert trained(MAKERS[name], held) == native


def test_it_is_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    w = nn.Parameter([1.0, 2.0])
    optimizer = optim.Adam([w])
    w.grad = et.ones(2)
    optimizer.step()
    monkeypatch.setattr(Optimizer, "_step_group", lambda *_, **__: pytest.fail("the readable step was made"))
    before = w.numpy()
    optimizer.step()
    assert optimizer.state[w]["step"] == 2
    assert before.tolist() != w.tolist()


def test_views_and_shared_memory_are_left_alone() -> None:
    """A parameter over a slice of a larger array, as weights that are loaded from one buffer are."""
    whole = np.arange(6, dtype=np.float32)
    w = nn.Parameter.around(whole[:3], True)
    optimizer = optim.SGD([w], lr=1.0)
    for _ in range(3):
        w.grad = et.ones(3)
        optimizer.step()
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]
    assert w.tolist() == [-3.0, -2.0, -1.0]


def test_a_rule_of_the_user_is_not_replaced() -> None:
    class Still(optim.SGD):
        _rule = staticmethod(lambda params, grads, states, **options: (params, [{} for _ in params]))

    w = nn.Parameter([1.0])
    optimizer = Still([w], lr=1.0)
    for _ in range(3):
        w.grad = et.ones(1)
        optimizer.step()
    assert w.tolist() == [1.0]
