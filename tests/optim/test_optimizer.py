"""Groups, saving and loading, steps that come too early, clipping, averages."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim

EVERY = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "LAMB"]


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8, rng=0), nn.Tanh(), nn.Linear(8, 1, rng=1))


def train(model: nn.Module, optimizer: optim.Optimizer, steps: int, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    losses = []
    for _ in range(steps):
        x = et.tensor(rng.normal(size=(16, 3)), et.float32)
        loss = et.mean_squared_error(model(x), x.sum(1, keepdims=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def make(name: str, params: Any, **options: Any) -> optim.Optimizer:
    more = {
        "SGD": {"momentum": 0.9},
        "RMSprop": {"momentum": 0.5, "centered": True},
        "Adam": {"amsgrad": True},
    }
    return getattr(optim, name)(params, lr=0.01, **more.get(name, {}), **options)


@pytest.mark.parametrize("name", EVERY)
def test_the_loss_falls(name: str) -> None:
    model = net()
    losses = train(model, make(name, model.parameters()), 60)
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])


@pytest.mark.parametrize("name", EVERY)
def test_saved_and_loaded_goes_on_with_the_same_bits(name: str) -> None:
    model = net()
    optimizer = make(name, model.parameters())
    train(model, optimizer, 5)
    weights, saved = model.state_dict(), optimizer.state_dict()
    train(model, optimizer, 5, seed=1)
    other = net()
    other.load_state_dict(weights)
    again = getattr(optim, name)(other.parameters(), lr=7.0)
    saved["state"] = {
        str(number): state for number, state in saved["state"].items()
    }  # as a text format has them
    again.load_state_dict(saved)
    assert again.param_groups[0]["lr"] == 0.01
    train(other, again, 5, seed=1)
    for a, b in zip(model.parameters(), other.parameters()):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_saved_state_is_plain() -> None:
    model = net()
    optimizer = optim.AdamW(model.parameters())
    train(model, optimizer, 1)
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["params"] == [0, 1, 2, 3]
    assert saved["param_groups"][0]["betas"] == (0.9, 0.999)
    assert set(saved["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert type(saved["state"][0]["step"]) is int
    before = saved["state"][0]["exp_avg"].tolist()
    train(model, optimizer, 1)
    assert saved["state"][0]["exp_avg"].tolist() == before


def test_groups_have_their_own_options() -> None:
    a, b = nn.Parameter([1.0]), nn.Parameter([1.0])
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.25)
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == (0.75, 0.5)
    c = nn.Parameter([1.0])
    optimizer.add_param_group({"params": [c], "weight_decay": 1.0})
    c.grad = et.tensor([0.0])
    optimizer.step()
    assert c.item() == 0.75
    assert "3 groups" not in repr(optimizer)
    assert repr(optimizer).count("1 parameters") == 3


def test_what_has_no_gradient_stays() -> None:
    a, frozen = nn.Parameter([1.0]), nn.Parameter([1.0], requires_grad=False)
    optimizer = optim.Adam([a, frozen], lr=0.1)
    (a * frozen).sum().backward()
    optimizer.step()
    assert frozen.item() == 1.0
    assert a.item() != 1.0
    assert list(optimizer.state) == [a]


def test_closure() -> None:
    w = nn.Parameter([2.0])
    optimizer = optim.SGD([w], lr=0.25)

    def closure() -> et.ExTensor:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with et.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert w.item() == 1.0


def test_a_step_between_forward_and_backward_is_noticed() -> None:
    model = net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, 1)
    loss = model(et.ones((2, 3))).sum()
    optimizer.step()
    with pytest.raises(RuntimeError):
        loss.backward()


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", EVERY)
def test_impossible_rates(name: str, rate: float) -> None:
    w = nn.Parameter([1.0])
    with pytest.raises(ValueError, match=rf"^\[{name}\] lr"):
        getattr(optim, name)([w], lr=rate)
    optimizer = getattr(optim, name)([w])
    optimizer.param_groups[0]["lr"] = rate  # as a schedule might
    w.grad = et.tensor([1.0])
    with pytest.raises(ValueError, match=rf"^\[{name}\] lr"):
        optimizer.step()
    assert w.item() == 1.0


W = nn.Parameter([1.0, 2.0])


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ([], ValueError, "empty"), (W, TypeError, "list of parameters"), ([et.ones(2)], TypeError, "nn.Parameter"), ([W, W], ValueError, "twice"),
        ([{"weights": [W]}], TypeError, "'params'"), ([{"params": [W], "speed": 3}], ValueError, "speed"), ([{"params": [W], "lr": -3.0}], ValueError, "lr"),
        ([{"params": [W]}, {"params": [W]}], ValueError, "twice"), (3, TypeError, "list of parameters"),
    ],
)  # fmt: skip
def test_refused(params: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"^\[SGD\].*{text}"):
        optim.SGD(params, lr=0.1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s.pop("state"), "'state'"), (lambda s: s["param_groups"].pop(), "groups of"), (lambda s: s["param_groups"][0]["params"].pop(), "groups of"),
        (lambda s: s["state"].update({99: s["state"][0]}), r"state\[99\]"), (lambda s: s["state"][0].update(exp_avg=np.ones(9)), r"state\[0\]\['exp_avg'\]"),
        (lambda s: s["param_groups"][0].update(lr=float("nan")), "lr"), (lambda s: s["state"].update({0: 5}), r"state\[0\]"),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_changes_nothing(change: Any, text: str) -> None:
    model = net()
    optimizer = optim.Adam(model.parameters())
    train(model, optimizer, 1)
    saved = optimizer.state_dict()
    change(saved)
    exp_avg = optimizer.state[next(model.parameters())]["exp_avg"].tolist()
    with pytest.raises((ValueError, TypeError), match=rf"^\[Adam.load_state_dict\].*{text}"):
        optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 1e-3
    assert optimizer.state[next(model.parameters())]["exp_avg"].tolist() == exp_avg


# Clipping


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.1, 5.0, 1e6])
def test_clip_grad_norm(order: float, max_norm: float) -> None:
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=s)) for s in [(3, 4), (5,), (), (0,)]]
    flat = np.abs(np.concatenate([a.ravel() for a in arrays]))
    total = flat.max() if order == np.inf else np.sum(flat**order) ** (1 / order)
    grads = [et.tensor(a) for a in arrays]
    clipped, norm = et.clip_grad_norm([*grads, None], max_norm, order)
    np.testing.assert_allclose(norm.item(), total, rtol=1e-13)
    assert clipped.pop() is None
    for c, a, g in zip(clipped, arrays, grads):
        np.testing.assert_allclose(c.numpy(), a * min(1, max_norm / (total + 1e-6)), rtol=1e-12)
        np.testing.assert_array_equal(g.numpy(), a)


def test_clip_keeps_structure_and_dtype() -> None:
    grads = {"a": et.full(3, 300.0, dtype=et.float16), "b": None, "c": et.full(2, 4.0, dtype=et.float64)}
    clipped, norm = et.clip_grad_norm(grads, 1.0)
    assert list(clipped) == ["a", "b", "c"]
    assert [clipped["a"].dtype, clipped["b"], clipped["c"].dtype] == [et.float16, None, et.float64]
    np.testing.assert_allclose(norm.item(), np.sqrt(3 * 9e4 + 32))
    one = et.clip_grad_value(et.tensor([2.0, -3.0, np.nan, 0.5]), 1.0)
    np.testing.assert_array_equal(one.numpy(), np.float32([1.0, -1.0, np.nan, 0.5]))
    assert type(et.clip_grad_value((et.ones(2), None), 1.0)) is tuple
    assert et.clip_grad_norm([], 1.0)[1].item() == 0.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("order", [2.0, np.inf])
@pytest.mark.parametrize("place", range(3))
def test_clip_of_what_is_not_finite(value: float, order: float, place: int) -> None:
    grads = np.ones(3, np.float32)
    grads[place] = value
    _, norm = et.clip_grad_norm([et.zeros(2), et.tensor(grads)], 1.0, order)
    np.testing.assert_equal(norm.item(), value)
    with pytest.raises(ValueError, match=r"^\[clip_grad_norm\] the norm"):
        et.clip_grad_norm([et.tensor(grads)], 1.0, order, error_if_nonfinite=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: et.clip_grad_norm([np.ones(2, int)], 1.0), TypeError, r"clip_grad_norm\] grads\[0\]"), (lambda: et.clip_grad_norm({"w": "x"}, 1.0), TypeError, r"grads\['w'\]"),
        (lambda: et.clip_grad_norm([], -1.0), ValueError, "max_norm"), (lambda: et.clip_grad_norm([], 1.0, 0.0), ValueError, "norm_type"),
        (lambda: et.clip_grad_norm(3, 1.0), TypeError, "grads"), (lambda: et.clip_grad_value([], float("nan")), ValueError, "limit"),
    ],
)  # fmt: skip
def test_clip_refuses(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# Averages


def test_ema() -> None:
    model = net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    ema = optim.EMA(model, decay=0.9)
    expected = [p.numpy().astype(np.float64) for p in model.parameters()]
    for step in range(10):
        train(model, optimizer, 1, seed=step)
        ema.update()
        expected = [0.9 * e + 0.1 * p.numpy() for e, p in zip(expected, model.parameters())]
    own = [p.tolist() for p in model.parameters()]
    with ema.applied() as averaged:
        for p, e in zip(averaged.parameters(), expected):
            np.testing.assert_allclose(p.numpy(), e, rtol=1e-5, atol=1e-7)
    assert [p.tolist() for p in model.parameters()] == own
    other = optim.EMA(net(), decay=0.9)
    other.load_state_dict(ema.state_dict())
    assert [t.tolist() for t in other.state_dict().values()] == [
        t.tolist() for t in ema.state_dict().values()
    ]


def test_ema_of_half_precision_moves() -> None:
    """Steps far smaller than the spacing of the dtype add up."""
    model = nn.ParameterDict({"w": nn.Parameter(et.ones(1, dtype=et.bfloat16))})
    ema = optim.EMA(model, decay=0.999)
    model["w"].assign([2.0])
    for _ in range(100):
        ema.update()
    np.testing.assert_allclose(ema.state_dict()["w"].item(), 2 - 0.999**100, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: optim.EMA(3), TypeError, r"^\[EMA\] model"), (lambda: optim.EMA(net(), 1.0), ValueError, r"^\[EMA\] decay"),
        (lambda: optim.EMA(net()).load_state_dict({"x": 1}), ValueError, "differ in .*x"), (lambda: optim.EMA(net()).load_state_dict(3), TypeError, "state"),
        (lambda: optim.EMA(nn.ParameterDict({"w": [1.0]})).load_state_dict({"w": np.ones(2)}), ValueError, "w has shape"),
    ],
)  # fmt: skip
def test_ema_refuses(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_an_option_is_set_for_all_groups_at_once() -> None:
    first, second = nn.Parameter([1.0]), nn.Parameter([1.0])
    optimizer = optim.SGD([{"params": [first]}, {"params": [second], "lr": 0.5}], lr=0.25, momentum=0.5)
    optimizer.lr = 0.125
    optimizer.lr *= 2
    optimizer.momentum = 0
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]
    assert optimizer.lr == 0.25
    assert optimizer.momentum == 0.0
    (first + second).sum().backward()
    optimizer.step()
    assert first.tolist() == second.tolist() == [0.75]


def test_an_option_that_is_set_is_checked() -> None:
    optimizer = optim.SGD(
        [{"params": [nn.Parameter([1.0])]}, {"params": [nn.Parameter([1.0])], "momentum": 0.5}], lr=0.25
    )
    with pytest.raises(ValueError, match=r"\[SGD\] lr must be a finite number that is not negative, got -1"):
        optimizer.lr = -1
    with pytest.raises(ValueError, match="nesterov needs a momentum"):  # the first group has none
        optimizer.nesterov = True
    assert not any(group["nesterov"] for group in optimizer.param_groups)
    assert optimizer.lr == 0.25


def test_an_option_that_differs_between_groups_has_no_one_value() -> None:
    optimizer = optim.SGD(
        [{"params": [nn.Parameter([1.0])]}, {"params": [nn.Parameter([1.0])], "lr": 0.5}], lr=0.25
    )
    with pytest.raises(AttributeError, match=r"\[SGD\] lr differs .*0\.25, 0\.5.*param_groups\[i\]\['lr'\]"):
        optimizer.lr


def test_what_is_no_option_is_no_attribute() -> None:
    optimizer = optim.SGD([nn.Parameter([1.0])])
    assert not hasattr(optimizer, "betas")
    assert not hasattr(optimizer, "__wrapped__")
    with pytest.raises(AttributeError, match="'SGD' object has no attribute 'rate'"):
        optimizer.rate
    assert copy.deepcopy(optimizer).lr == optimizer.lr


def test_the_state_of_another_optimiser_is_refused() -> None:
    parameters = [nn.Parameter(et.ones(3))]
    saved = optim.AdamW(parameters, lr=0.1).state_dict()
    for kind in (optim.SGD, optim.Adam, optim.Lion):
        other = kind(parameters, lr=0.5)
        with pytest.raises(
            ValueError, match=rf"{kind.__name__}\.load_state_dict\] state_dict is that of .*AdamW"
        ):
            other.load_state_dict(saved)
        assert other.param_groups[0]["lr"] == 0.5
    unnamed = {key: value for key, value in saved.items() if key != "name"}  # as PyTorch writes them
    again = optim.AdamW(parameters, lr=0.5)
    again.load_state_dict(unnamed)
    assert again.param_groups[0]["lr"] == 0.1
