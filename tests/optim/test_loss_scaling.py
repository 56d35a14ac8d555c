"""Loss scaling: small gradients survive float16, overflowing steps are skipped, and the factor finds its size."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.kernels import KERNELS, NATIVE

INF, NAN = float("inf"), float("nan")


# Pure functions


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16, et.float32, et.float64])
def test_scaled_and_unscaled_again(dtype: Any) -> None:
    w = et.tensor(np.linspace(-3, 3, 7), dtype, requires_grad=True)
    plain = et.grad(lambda w: (w * w).sum())(w)
    loss = optim.scale_loss((w * w).sum(), 2.0**10)
    assert loss.dtype == (et.float64 if dtype == et.float64 else et.float32)
    loss.backward()
    (found,), finite = optim.unscale_gradients([w.grad], 2.0**10)
    assert finite is True
    assert found.dtype == loss.dtype
    np.testing.assert_array_equal(found.numpy(), plain.numpy().astype(found.dtype))


def test_float16_loss_does_not_overflow() -> None:
    assert optim.scale_loss(et.tensor(10.0, et.float16), 2.0**16).item() == 655360.0


def test_unscaled_float16_does_not_vanish() -> None:
    (found,), finite = optim.unscale_gradients([et.tensor([6e-8], et.float16)], 2.0**16)
    assert finite
    assert found.item() == pytest.approx(5.96e-8 / 2**16, rel=1e-3)


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16, et.float32, et.float64])
@pytest.mark.parametrize(
    ("length", "place"), [(1, 0), (37, 36), (37, 0), (100_003, 77_777), (100_003, 100_002)]
)
def test_one_bad_element_is_found(bad: float, dtype: Any, length: int, place: int) -> None:
    array = np.ones(length, dtype)
    assert optim.unscale_gradients([et.tensor(array)], 4.0)[1] is True
    array[place] = bad
    grads, finite = optim.unscale_gradients([et.ones(3), et.tensor(array)], 4.0)
    assert finite is False
    assert grads[0].tolist() == [0.25] * 3
    assert not math.isfinite(grads[1].numpy()[place])


def test_structures_and_layouts() -> None:
    x = et.tensor(np.arange(12.0).reshape(3, 4))
    grads, finite = optim.unscale_gradients({"a": x.T, "b": None, "c": x[::2, 1:3]}, 2.0)
    assert finite
    np.testing.assert_array_equal(grads["a"].numpy(), np.arange(12.0).reshape(3, 4).T / 2)
    np.testing.assert_array_equal(grads["c"].numpy(), np.arange(12.0).reshape(3, 4)[::2, 1:3] / 2)
    assert grads["b"] is None
    assert optim.unscale_gradients([], 2.0) == ([], True)
    assert optim.unscale_gradients(et.ones((0, 3)), 2.0)[0].shape == (0, 3)
    assert optim.unscale_gradients((et.tensor(3.0),), 2.0)[0][0].item() == 1.5


@pytest.mark.parametrize("scale", [0.0, -1.0, INF, NAN])
def test_scale_must_be_positive(scale: float) -> None:
    for call in (
        lambda: optim.scale_loss(et.tensor(1.0), scale),
        lambda: optim.unscale_gradients([et.ones(2)], scale),
        lambda: optim.LossScaler(scale),
    ):
        with pytest.raises(ValueError, match="must be a positive, finite number"):
            call()


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"\[unscale_gradients\] grads must be a list"):
        optim.unscale_gradients(3, 2.0)
    with pytest.raises(TypeError, match=r"\[scale_loss\] loss must have a floating dtype"):
        optim.scale_loss(et.tensor([1]), 2.0)
    with pytest.raises(TypeError, match="optimizer must be an Optimizer"):
        optim.LossScaler().step(nn.Linear(2, 2, rng=0))
    for options in ({"growth_factor": 0.5}, {"backoff_factor": 2.0}, {"growth_interval": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            optim.LossScaler(**options)
    with pytest.raises(RuntimeError, match="there was no step"):
        optim.LossScaler().update()


@pytest.mark.skipif("unscale_gradients" not in NATIVE, reason="the native module is not built")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1024.0, 3.0, 1e-3])
def test_native_kernel_gives_the_bits_of_the_reference(dtype: Any, scale: float) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        grads = [rng.normal(size=n).astype(dtype) for n in (0, 1, 31, 65, 70_001)]
        grads += [np.array([INF, NAN, -0.0, 1e-45, 3e38, 6e-8], dtype), np.asarray(2.0, dtype)]
    for chosen in (grads[:5], grads, grads[6:]):
        found, finite = NATIVE["unscale_gradients"](chosen, scale)
        right, right_finite = KERNELS["unscale_gradients"].by_reference(chosen, scale)
        assert finite is right_finite
        for a, b in zip(found, right, strict=True):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


# The class


def stepped(scaler: optim.LossScaler, gradient: float) -> bool:
    """A step with a gradient that is already scaled."""
    w = nn.Parameter([1.0])
    w.grad = et.tensor([gradient])
    optimizer = optim.SGD([w], lr=0.5)
    made = scaler.step(optimizer)
    assert w.item() == pytest.approx(1.0 - 0.5 * gradient / scaler.get_scale() if made else 1.0)
    scaler.update()
    return made


def test_factor_falls_and_grows() -> None:
    scaler = optim.LossScaler(8.0, growth_interval=3)
    assert [stepped(scaler, g) for g in (8.0, INF, 4.0, NAN)] == [True, False, True, False]
    assert (scaler.get_scale(), scaler.skipped, scaler.clean_steps) == (2.0, 2, 0)
    for _ in range(3):
        assert stepped(scaler, 1.0)
    assert (scaler.get_scale(), scaler.clean_steps) == (4.0, 0)
    stepped(scaler, 1.0), stepped(scaler, INF)
    assert (scaler.get_scale(), scaler.skipped) == (2.0, 3)


def test_static_factor_stays() -> None:
    scaler = optim.LossScaler(8.0, growth_interval=1, dynamic=False)
    assert [stepped(scaler, g) for g in (8.0, INF, 4.0)] == [True, False, True]
    assert (scaler.get_scale(), scaler.skipped) == (8.0, 1)


def test_hopeless_gradients_end_the_search() -> None:
    scaler = optim.LossScaler(1.0)
    with pytest.raises(FloatingPointError, match="even at the scale"):
        for _ in range(100):
            stepped(scaler, NAN)


def test_clipping_between_unscale_and_step() -> None:
    w = nn.Parameter([1.0, 1.0])
    scaler, optimizer = optim.LossScaler(16.0), optim.SGD([w], lr=1.0)
    scaler.scale((w * et.tensor([30.0, 40.0])).sum()).backward()
    assert scaler.unscale(optimizer)
    assert w.grad.tolist() == [30.0, 40.0]
    (w.grad,), norm = et.clip_grad_norm([w.grad], 5.0)
    assert norm.item() == 50.0
    with pytest.raises(RuntimeError, match="unscaled already"):
        scaler.unscale(optimizer)
    assert scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(w.numpy(), [-2.0, -3.0], rtol=1e-6)


def test_two_optimisers_one_of_which_overflows() -> None:
    a, b = nn.Parameter([1.0]), nn.Parameter([1.0])
    scaler = optim.LossScaler(4.0)
    a.grad, b.grad = et.tensor([4.0]), et.tensor([INF])
    assert scaler.step(optim.SGD([a], lr=1.0))
    assert not scaler.step(optim.SGD([b], lr=1.0))
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale(), scaler.skipped) == (0.0, 1.0, 2.0, 1)


def test_an_optimiser_is_known_until_the_update() -> None:
    parameter = nn.Parameter([1.0])
    parameter.grad = et.tensor([4.0])
    scaler, optimizer = optim.LossScaler(4.0), optim.SGD([parameter], lr=1.0)
    known = weakref.ref(optimizer)
    scaler.step(optimizer)
    del optimizer
    gc.collect()
    assert known() is not None  # another one could have its identity
    scaler.update()
    gc.collect()
    assert known() is None


def test_state_goes_on() -> None:
    scaler = optim.LossScaler(64.0, 4.0, 0.25, 5)
    for gradient in (1.0, INF, 1.0, 1.0):
        stepped(scaler, gradient)
    other = optim.LossScaler()
    other.load_state_dict(scaler.state_dict())
    for gradient in (1.0, 1.0, 1.0, INF):
        stepped(scaler, gradient), stepped(other, gradient)
        assert other.state_dict() == scaler.state_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"scale": -1.0},
        {"scale": "many"},
        {"skipped": -1},
        {"clean_steps": 0.5},
        {"growth_factor": NAN},
        {"more": 1},
    ],
)
def test_wrong_state_changes_nothing(change: dict[str, Any]) -> None:
    scaler = optim.LossScaler(4.0)
    before = scaler.state_dict()
    with pytest.raises((TypeError, ValueError), match=r"\[LossScaler"):
        scaler.load_state_dict(before | change)
    assert scaler.state_dict() == before


# Underflow, and its cure


def train(scaled: bool, dtype: Any = et.float16) -> tuple[list[float], float]:
    """A regression whose loss has the weight 1e-7, as one term of several may: the losses of a run, and its largest gradient."""
    rng = np.random.default_rng(0)
    x = et.tensor(rng.normal(size=(64, 8)).astype(np.float32))
    y = et.tensor(np.tanh(x.numpy() @ rng.normal(size=(8, 1))).astype(np.float32))
    net = nn.Sequential(nn.Linear(8, 16, rng=1), nn.Tanh(), nn.Linear(16, 1, rng=2))
    optimizer = optim.Adam(net.parameters(), lr=0.02, eps=1e-16)
    scaler = optim.LossScaler(2.0**24 if scaled else 1.0, dynamic=scaled)
    losses, largest = [], 0.0
    for _ in range(60):
        optimizer.zero_grad()
        with et.autocast(dtype):
            loss = et.mean_squared_error(net(x), y) * 1e-7
        scaler.scale(loss).backward()
        largest = max(largest, *(float(np.abs(p.grad.numpy()).max()) for p in net.parameters()))
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, largest


def test_network_that_needs_scaling() -> None:
    without, gradient = train(scaled=False)
    assert gradient == 0.0  # every one of them underflowed
    assert without[-1] == without[0]
    with_scaling, gradient = train(scaled=True)
    assert gradient > 0
    exact, _ = train(scaled=False, dtype=et.float32)
    assert exact[-1] < 0.2 * exact[0]
    assert with_scaling[-1] < 0.2 * with_scaling[0]
    assert with_scaling[-1] == pytest.approx(exact[-1], rel=0.1)
