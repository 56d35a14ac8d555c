"""bfloat16 parameters whose updates are rounded by chance: exact in the mean, and repeatable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.kernels import KERNELS

RULES = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Lion, optim.LAMB, optim.NAdam, optim.RAdam,
         optim.Adadelta, optim.Adafactor]  # fmt: skip


def rounded(x: Any, seed: int = 0, step: int = 1, place: int = 0) -> np.ndarray:
    found: np.ndarray = KERNELS["round_stochastically"].on_arrays(
        np.asarray(x, np.float32), seed, step, place
    )
    return found


@pytest.mark.parametrize("value", [1.001, -1.001, 3.14159, -1e-30, 6e-41, 1e38])
def test_mean_is_exact(value: float) -> None:
    found = rounded(np.full(200_000, value)).astype(np.float64)
    exact = float(np.float32(value))
    low, high = np.unique(found)
    assert low < exact < high
    bits = np.array([low, high]).astype(et.bfloat16).view(np.uint16).astype(np.int64)
    assert abs(bits[1] - bits[0]) == 1  # neighbours
    assert np.mean(found) == pytest.approx(exact, abs=5 * (high - low) / np.sqrt(found.size))


def test_what_bfloat16_holds_stays() -> None:
    values = np.array(
        [0.0, -0.0, 1.0, -2.5, 3.0e38, np.inf, -np.inf, np.nan, 9.183549615799121e-41], np.float32
    )
    values = values.astype(et.bfloat16).astype(np.float32)
    for step in range(5):
        np.testing.assert_array_equal(
            rounded(values, step=step).astype(np.float32).view(np.uint32), values.view(np.uint32)
        )


@pytest.mark.parametrize("shape", [(), (0,), (3, 4)])
def test_shapes(shape: tuple[int, ...]) -> None:
    found = rounded(np.full(shape, 1.001))
    assert (found.shape, found.dtype) == (shape, et.bfloat16)
    assert rounded(np.full((4, 6), 1.001)[:, ::2].T).shape == (3, 4)


def test_draws_differ_by_seed_step_and_place() -> None:
    x = np.full(64, 1.001)
    drawn = {rounded(x, *key).tobytes() for key in [(0, 1, 0), (1, 1, 0), (0, 2, 0), (0, 1, 1), (0, 1, 0)]}
    assert len(drawn) == 4


def moved(rounding: int | None, dtype: Any = et.bfloat16, steps: int = 400) -> nn.Parameter:
    """Parameters after steps of 0.001 down from 1: a quarter of what bfloat16 can tell there."""
    w = nn.Parameter(et.ones(256, dtype=dtype))
    optimizer = optim.SGD([w], lr=0.001, stochastic_rounding=rounding)
    for _ in range(steps):
        w.grad = et.ones(256, dtype=dtype)
        optimizer.step()
    return w


def test_small_steps_are_not_lost() -> None:
    assert moved(None).tolist() == [1.0] * 256
    found = moved(0)
    assert found.dtype == et.bfloat16
    assert found.numpy().astype(np.float64).mean() == pytest.approx(0.6, abs=0.01)
    assert moved(0).numpy().tobytes() == found.numpy().tobytes()
    assert moved(1).numpy().tobytes() != found.numpy().tobytes()


@pytest.mark.parametrize("dtype", [et.float16, et.float32, et.float64])
def test_other_dtypes_are_rounded_as_ever(dtype: Any) -> None:
    assert moved(0, dtype, 5).numpy().tobytes() == moved(None, dtype, 5).numpy().tobytes()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_follows_its_float32_self(rule: Any) -> None:
    """In the mean over many equal parameters, bfloat16 moves as float32 does."""
    start = np.full(4096, 0.5, np.float32)
    found = {}
    for dtype in (et.float32, et.bfloat16):
        w = nn.Parameter(et.tensor(start, dtype))
        optimizer = rule([w], lr=0.003, stochastic_rounding=3)
        for _ in range(10):
            optimizer.zero_grad()
            w.grad = et.full((4096,), 0.25, dtype=dtype)
            optimizer.step()
        assert w.dtype == dtype
        found[dtype] = float(w.numpy().astype(np.float64).mean())
    change = found[et.float32] - 0.5
    assert found[et.bfloat16] - 0.5 == pytest.approx(change, rel=0.05, abs=2e-4)


def test_muon() -> None:
    w = nn.Parameter(et.ones((8, 8), dtype=et.bfloat16))
    optimizer = optim.Muon([w], lr=1e-3, stochastic_rounding=0)
    before = w.numpy().tobytes()
    for _ in range(5):
        w.grad = et.random.normal(0, (8, 8)).astype(et.bfloat16)
        optimizer.step()
    assert w.dtype == et.bfloat16
    assert w.numpy().tobytes() != before


def test_state_goes_on() -> None:
    def run(optimizer: optim.Optimizer, w: nn.Parameter, steps: int) -> None:
        for _ in range(steps):
            w.grad = et.full((64,), 0.3, dtype=et.bfloat16)
            optimizer.step()

    def made() -> tuple[nn.Parameter, optim.Optimizer]:
        w = nn.Parameter(et.ones(64, dtype=et.bfloat16))
        return w, optim.Adam([w], lr=1e-3, stochastic_rounding=5)

    w, optimizer = made()
    run(optimizer, w, 8)
    first, before = made()
    run(before, first, 3)
    second, after = made()
    second.assign(first)
    after.load_state_dict(before.state_dict())
    run(after, second, 5)
    assert second.numpy().tobytes() == w.numpy().tobytes()


def test_wrong_seeds_and_states() -> None:
    w = nn.Parameter(et.ones(2, dtype=et.bfloat16))
    with pytest.raises(TypeError, match=r"\[SGD\] stochastic_rounding must be an int"):
        optim.SGD([w], stochastic_rounding=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be a seed from 0"):
        optim.SGD([w], stochastic_rounding=-1)
    optimizer = optim.SGD([w], stochastic_rounding=1)
    for state in ({"seed": 2, "calls": 0}, {"seed": 1, "calls": -1}, {"seed": 1}):
        with pytest.raises((TypeError, ValueError), match="rounding"):
            optimizer.load_state_dict(optimizer.state_dict() | {"rounding": state})
