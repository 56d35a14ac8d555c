"""Every schedule over 100 steps against its formula of the step; states; what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extensor import nn, optim

BASES = [0.1, 0.03]
Rate = Callable[[float, int], float]


def optimizer(name: str = "SGD", **options: Any) -> optim.Optimizer:
    more = {"momentum": 0.9} if name == "SGD" else {}
    groups = [{"params": [nn.Parameter([1.0])], "lr": lr} for lr in BASES]
    return getattr(optim, name)(groups, **more, **options)


def cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2


def one_cycle(peak: float, t: int) -> float:
    top = 0.3 * 101 - 1
    return (
        cosine(peak / 25, peak, t / top) if t <= top else cosine(peak, peak / 25e4, (t - top) / (100 - top))
    )


def three_phases(peak: float, t: int) -> float:
    top = 0.3 * 101 - 1
    points = [(0, peak / 25), (top, peak), (2 * top, peak / 25), (100, peak / 25e4)]
    return float(np.interp(t, *zip(*points)))


def warm_then_cosine(base: float, t: int) -> float:
    return (
        base * (0.1 + 0.9 * t / 10)
        if t < 10
        else cosine(base, 0, (t - 10) / 50)
        if t < 60
        else base * 0.9 ** (t - 60)
    )


def sequence(o: optim.Optimizer) -> optim.LRScheduler:
    parts = [
        optim.LinearLR(o, 0.1, total_iters=10),
        optim.CosineAnnealingLR(o, 50),
        optim.ExponentialLR(o, 0.9),
    ]
    return optim.SequentialLR(o, parts, [10, 60])


def nested(o: optim.Optimizer) -> optim.LRScheduler:
    inner = optim.SequentialLR(o, [optim.ConstantLR(o, 0.5, 90), optim.StepLR(o, 10, 0.5)], [20])
    return optim.SequentialLR(o, [optim.ExponentialLR(o, 0.9), inner], [30])


def restarted(base: float, t: int) -> float:
    """Periods of 5, 10, 20, ... steps."""
    begin = next(b for b, end in ((0, 5), (5, 15), (15, 35), (35, 75), (75, 155)) if t < end)
    return cosine(base, 0.001, (t - begin) / (begin + 5))


def triangle(t: int, up: int, down: int) -> float:
    return float(np.interp(t % (up + down), [0, up, up + down], [0, 1, 0]))


SCHEDULES: dict[str, tuple[Callable[[optim.Optimizer], optim.LRScheduler], Rate]] = {
    "StepLR": (lambda o: optim.StepLR(o, 7, 0.7), lambda b, t: b * 0.7 ** (t // 7)),
    "MultiStepLR": (lambda o: optim.MultiStepLR(o, [3, 30, 30, 60], 0.3), lambda b, t: b * 0.3 ** sum(t >= m for m in [3, 30, 30, 60])),
    "ExponentialLR": (lambda o: optim.ExponentialLR(o, 0.93), lambda b, t: b * 0.93**t),
    "CosineAnnealingLR": (lambda o: optim.CosineAnnealingLR(o, 23, 0.001), lambda b, t: cosine(b, 0.001, t / 23)),
    "CosineAnnealingLR to 0": (lambda o: optim.CosineAnnealingLR(o, 100), lambda b, t: cosine(b, 0, t / 100)),
    "ConstantLR": (lambda o: optim.ConstantLR(o, 0.5, 8), lambda b, t: b * 0.5 if t < 8 else b),
    "LinearLR": (lambda o: optim.LinearLR(o, 0.1, 0.9, 20), lambda b, t: b * (0.1 + 0.8 * min(t, 20) / 20)),
    "LambdaLR": (lambda o: optim.LambdaLR(o, lambda t: 1 / (1 + t)), lambda b, t: b / (1 + t)),
    "OneCycleLR": (lambda o: optim.OneCycleLR(o, BASES, total_steps=101), one_cycle),
    "OneCycleLR in three phases": (lambda o: optim.OneCycleLR(o, BASES, epochs=1, steps_per_epoch=101, anneal_strategy="linear", three_phase=True), three_phases),
    "SequentialLR": (sequence, warm_then_cosine),
    "SequentialLR of one": (nested, lambda b, t: b * 0.9**t if t < 30 else b * 0.5 if t < 50 else b * 0.5 ** ((t - 50) // 10)),
    "PolynomialLR": (lambda o: optim.PolynomialLR(o, 40, 2.5), lambda b, t: b * (1 - min(t, 40) / 40) ** 2.5),
    "CosineAnnealingWarmRestarts": (lambda o: optim.CosineAnnealingWarmRestarts(o, 5, 2, 0.001), restarted),
    "CosineAnnealingWarmRestarts of one length": (lambda o: optim.CosineAnnealingWarmRestarts(o, 7), lambda b, t: cosine(b, 0, t % 7 / 7)),
    "CyclicLR": (lambda o: optim.CyclicLR(o, 0.01, BASES, 5), lambda b, t: 0.01 + (b - 0.01) * triangle(t, 5, 5)),
    "CyclicLR of falling peaks": (lambda o: optim.CyclicLR(o, 0.01, BASES, 4, 7, "triangular2"), lambda b, t: 0.01 + (b - 0.01) * triangle(t, 4, 7) / 2 ** (t // 11)),
    "CyclicLR of fading peaks": (lambda o: optim.CyclicLR(o, 0.01, BASES, 4, mode="exp_range", gamma=0.97), lambda b, t: 0.01 + (b - 0.01) * triangle(t, 4, 4) * 0.97**t),
    "CyclicLR by cycle": (lambda o: optim.CyclicLR(o, 0.01, BASES, 4, scale_fn=lambda c: 1 / c), lambda b, t: 0.01 + (b - 0.01) * triangle(t, 4, 4) / (1 + t // 8)),
    "CyclicLR by step": (lambda o: optim.CyclicLR(o, 0.01, BASES, 4, scale_fn=lambda t: 0.9**t, scale_mode="iterations", cycle_momentum=False), lambda b, t: 0.01 + (b - 0.01) * triangle(t, 4, 4) * 0.9**t),
    "WarmupScheduler": (lambda o: optim.WarmupScheduler(o, 8), lambda b, t: b * min(t + 1, 8) / 8),
    "WarmupScheduler and cosine": (
        lambda o: optim.WarmupScheduler(o, 8, after=optim.CosineAnnealingLR(o, 40)),
        lambda b, t: b * (t + 1) / 8 if t < 8 else cosine(b, 0, (t - 8) / 40),
    ),
    "WarmupScheduler and steps": (
        lambda o: optim.WarmupScheduler(o, 1, after=optim.StepLR(o, 10)), lambda b, t: b if t < 1 else b * 0.1 ** ((t - 1) // 10)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_formula(name: str) -> None:
    make, rate = SCHEDULES[name]
    o = optimizer()
    schedule = make(o)
    for t in range(101):
        assert schedule.get_last_lr() == [group["lr"] for group in o.param_groups]
        np.testing.assert_allclose(
            schedule.get_last_lr(), [rate(b, t) for b in BASES], rtol=1e-10, atol=1e-14
        )
        if t < 100:
            schedule.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_saved_and_loaded_goes_on_the_same_way(name: str) -> None:
    make, _ = SCHEDULES[name]
    o, other = optimizer(), optimizer()
    schedule, again = make(o), make(other)
    for _ in range(37):
        schedule.step()
    other.load_state_dict(o.state_dict())
    again.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    for _ in range(40):
        assert again.get_last_lr() == schedule.get_last_lr()
        assert [g["momentum"] for g in other.param_groups] == [g["momentum"] for g in o.param_groups]
        schedule.step()
        again.step()


@pytest.mark.parametrize("name", ["StepLR", "ExponentialLR", "CosineAnnealingLR"])
def test_going_on_from_a_step(name: str) -> None:
    make = {
        "StepLR": lambda o, last: optim.StepLR(o, 7, last_epoch=last),
        "ExponentialLR": lambda o, last: optim.ExponentialLR(o, 0.9, last),
        "CosineAnnealingLR": lambda o, last: optim.CosineAnnealingLR(o, 50, 0.0, last),
    }[name]
    o, other = optimizer(), optimizer()
    schedule = make(o, -1)
    for _ in range(9):
        schedule.step()
    other.load_state_dict(o.state_dict())
    again = make(other, 9)
    schedule.step()
    assert again.get_last_lr() == schedule.get_last_lr()


def test_two_schedules_of_one_optimiser_multiply() -> None:
    o = optimizer()
    decay, warm = optim.ExponentialLR(o, 0.9), optim.ConstantLR(o, 0.1, 5)
    for t in range(10):
        np.testing.assert_allclose(warm.get_last_lr(), [b * 0.9**t * (0.1 if t < 5 else 1) for b in BASES])
        decay.step()
        warm.step()


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_one_cycle_moves_the_momentum(name: str) -> None:
    o = optimizer(name)
    schedule = optim.OneCycleLR(o, 1.0, total_steps=20, pct_start=0.5)
    momenta = []
    for _ in range(20):
        group = o.param_groups[1]
        momenta.append(group["betas"][0] if name == "AdamW" else group["momentum"])
        schedule.step()
    expected = [cosine(0.95, 0.85, t / 9) if t <= 9 else cosine(0.85, 0.95, (t - 9) / 10) for t in range(20)]
    np.testing.assert_allclose(momenta, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"^\[OneCycleLR\] step 21 of a cycle of 20"):
        schedule.step()


def test_one_cycle_of_a_rule_without_momentum() -> None:
    with pytest.raises(ValueError, match=r"^\[OneCycleLR\] Adagrad"):
        optim.OneCycleLR(optimizer("Adagrad"), 1.0, total_steps=10)
    assert optim.OneCycleLR(
        optimizer("Adagrad"), 1.0, total_steps=10, cycle_momentum=False
    ).get_last_lr() == pytest.approx([0.04] * 2)


# A metric by step, and the rate after each: patience 2, factor 0.5, from 1.
PLATEAUS: list[tuple[dict[str, Any], list[float], list[float]]] = [
    ({}, [3, 2, 2, 2, 2, 2, 2], [1, 1, 1, 1, 0.5, 0.5, 0.5]),
    ({}, [3, 2, 1.9999, 1.9998, 1.9998, 1, 1], [1, 1, 1, 1, 0.5, 0.5, 0.5]),
    ({"threshold": 0.0}, [3, 2, 1.9999, 1.9998, 1.9998, 1, 1], [1] * 7),
    ({"mode": "max"}, [3, 2, 2, 2, 5, 5, 5], [1, 1, 1, 0.5, 0.5, 0.5, 0.5]),
    (
        {"threshold_mode": "abs", "threshold": 0.5},
        [3, 2.6, 2.6, 2.6, 2.4, 2, 1],
        [1, 1, 1, 0.5, 0.5, 0.5, 0.5],
    ),
    ({"mode": "max", "threshold_mode": "abs", "threshold": 0.5}, [-3, -2.6, -2.6, -2.6], [1, 1, 1, 0.5]),
    ({"cooldown": 2}, [1] * 9, [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25]),
    ({"min_lr": 0.4}, [1] * 8, [1, 1, 1, 0.5, 0.5, 0.5, 0.4, 0.4]),
    ({"min_lr": 0.4, "eps": 0.2}, [1] * 8, [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5]),
    ({}, [1, float("nan"), float("nan"), float("nan")], [1, 1, 1, 0.5]),
]


@pytest.mark.parametrize(("options", "metrics", "rates"), PLATEAUS)
def test_plateau(options: dict[str, Any], metrics: list[float], rates: list[float]) -> None:
    o = optim.SGD([nn.Parameter([1.0])], lr=1.0)
    schedule = optim.ReduceLROnPlateau(o, **({"factor": 0.5, "patience": 2} | options))
    found = []
    for metric in metrics:
        before = schedule.state_dict()  # through a file and back at every step
        schedule = optim.ReduceLROnPlateau(o, **({"factor": 0.5, "patience": 2} | options))
        schedule.load_state_dict(json.loads(json.dumps(before)))
        schedule.step(metric)
        found += schedule.get_last_lr()
    assert found == rates


def test_warmup_then_plateau() -> None:
    o = optim.SGD([nn.Parameter([1.0])], lr=1.0)
    schedule = optim.WarmupScheduler(o, 2, after=optim.ReduceLROnPlateau(o, factor=0.5, patience=0))
    rates = []
    for metric in [9.0, 9.0, 5.0, 5.0, 5.0]:
        rates += schedule.get_last_lr()
        schedule.step(metric)
    assert rates == [0.5, 1.0, 1.0, 1.0, 0.5]


O = optimizer()
REFUSED = [
    (lambda: optim.StepLR(3, 7), TypeError, "StepLR"), (lambda: optim.StepLR(O, 0), ValueError, "StepLR"), (lambda: optim.StepLR(O, 1.5), TypeError, "StepLR"),
    (lambda: optim.StepLR(O, 7, float("nan")), ValueError, "StepLR"), (lambda: optim.StepLR(optimizer(), 7, last_epoch=3), ValueError, "StepLR"),
    (lambda: optim.MultiStepLR(O, ["x"]), TypeError, "MultiStepLR"), (lambda: optim.ExponentialLR(O, "x"), TypeError, "ExponentialLR"), (lambda: optim.CosineAnnealingLR(O, 0), ValueError, "CosineAnnealingLR"),
    (lambda: optim.ConstantLR(O, 2.0), ValueError, "ConstantLR"), (lambda: optim.LinearLR(O, 0.0), ValueError, "LinearLR"), (lambda: optim.LinearLR(O, 0.5, -1.0), ValueError, "LinearLR"),
    (lambda: optim.LambdaLR(O, [abs]), ValueError, "LambdaLR"), (lambda: optim.OneCycleLR(O, 1.0), ValueError, "OneCycleLR"), (lambda: optim.OneCycleLR(O, [1.0], total_steps=9), ValueError, "OneCycleLR"),
    (lambda: optim.OneCycleLR(O, 1.0, total_steps=9, pct_start=2.0), ValueError, "OneCycleLR"), (lambda: optim.OneCycleLR(O, 1.0, total_steps=9, div_factor=0.0), ValueError, "OneCycleLR"),
    (lambda: optim.OneCycleLR(O, 1.0, total_steps=9, anneal_strategy="x"), ValueError, "OneCycleLR"), (lambda: optim.OneCycleLR(O, float("nan"), total_steps=9), ValueError, "OneCycleLR"),
    (lambda: optim.ReduceLROnPlateau(O, "least"), ValueError, "ReduceLROnPlateau"), (lambda: optim.ReduceLROnPlateau(O, factor=1.0), ValueError, "ReduceLROnPlateau"),
    (lambda: optim.ReduceLROnPlateau(O, min_lr=[0.1]), ValueError, "ReduceLROnPlateau"), (lambda: optim.ReduceLROnPlateau(O, threshold_mode="x"), ValueError, "ReduceLROnPlateau"),
    (lambda: optim.ReduceLROnPlateau(O).step(), TypeError, "ReduceLROnPlateau.step"), (lambda: optim.SequentialLR(O, [optim.StepLR(O, 7)], [3]), ValueError, "SequentialLR"),
    (lambda: optim.SequentialLR(O, [3], []), TypeError, "SequentialLR"), (lambda: optim.SequentialLR(O, [optim.StepLR(optimizer(), 7)], []), ValueError, "SequentialLR"),
    (lambda: optim.SequentialLR(O, [optim.ReduceLROnPlateau(O)], []), ValueError, "SequentialLR"), (lambda: optim.WarmupScheduler(O, 0), ValueError, "WarmupScheduler"),
    (lambda: optim.WarmupScheduler(O, 3, after=3), TypeError, "WarmupScheduler"), (lambda: optim.StepLR(O, 7).load_state_dict({"x": 1}), ValueError, "StepLR.load_state_dict"),
    (lambda: optim.StepLR(O, 7).load_state_dict({"last_epoch": 1, "base_lrs": [1.0]}), ValueError, "StepLR.load_state_dict"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "name"), REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], name: str) -> None:
    with pytest.raises(error, match=rf"^\[{name}\]"):
        call()


# Cycles and restarts


@pytest.mark.parametrize("name", ["SGD", "NAdam"])
def test_cycles_move_the_momentum_the_other_way(name: str) -> None:
    o = optimizer(name)
    schedule = optim.CyclicLR(o, 0.01, 0.1, 4, 8, base_momentum=0.7, max_momentum=[0.9, 0.95])
    for t in range(30):
        for group, high in zip(o.param_groups, [0.9, 0.95]):
            found = group["betas"][0] if name == "NAdam" else group["momentum"]
            assert found == pytest.approx(high - (high - 0.7) * triangle(t, 4, 8), rel=1e-12)
        schedule.step()


def test_restarts_between_steps() -> None:
    o = optimizer()
    schedule = optim.CosineAnnealingWarmRestarts(o, 4, 2)
    for position in (0.5, 3.75, 4.0, 6.5, 11.999, 12.0, 13.5):
        schedule.step(position)
        begin, length = (0, 4) if position < 4 else (4, 8) if position < 12 else (12, 16)
        expected = [cosine(b, 0, (position - begin) / length) for b in BASES]
        np.testing.assert_allclose(schedule.get_last_lr(), expected, rtol=1e-12)
    again = optim.CosineAnnealingWarmRestarts(optimizer(), 4, 2)
    again.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    schedule.step()
    again.step()
    assert schedule.get_last_lr() == again.get_last_lr()
    assert schedule.last_epoch == 14


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o: optim.PolynomialLR(o, 0), ValueError, "total_iters"), (lambda o: optim.PolynomialLR(o, 5, -1), ValueError, "power"),
        (lambda o: optim.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0"), (lambda o: optim.CosineAnnealingWarmRestarts(o, 1, 1.5), TypeError, "T_mult"),
        (lambda o: optim.CosineAnnealingWarmRestarts(o, 3).step(-1), ValueError, "epoch"),
        (lambda o: optim.CyclicLR(o, 0.1, 1.0, 0), ValueError, "step_size_up"), (lambda o: optim.CyclicLR(o, [0.1], 1.0, 3), ValueError, "base_lr has 1 values but the optimiser has 2"),
        (lambda o: optim.CyclicLR(o, 0.1, 1.0, 3, mode="square"), ValueError, "mode"), (lambda o: optim.CyclicLR(o, 0.1, 1.0, 3, scale_fn=3), TypeError, "scale_fn"),
        (lambda o: optim.CyclicLR(o, 0.1, 1.0, 3, scale_mode="x"), ValueError, "scale_mode"),
        (lambda o: optim.CyclicLR(optimizer("Adagrad"), 0.1, 1.0), ValueError, "Adagrad has neither momentum nor betas"),
    ],
)  # fmt: skip
def test_cycles_refuse(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"^\[(PolynomialLR|CosineAnnealingWarmRestarts|CyclicLR)\] .*{text}"):
        call(optimizer())
