"""Modules as functions of their parameters: functional_call, and modules as arguments of the transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = [nn.Linear(3, 3, rng=0), nn.Linear(3, 3, rng=1)]
        self.blocks[1].weight = self.blocks[0].weight  # shared
        self.heads = {"a": nn.Linear(3, 2, rng=2)}
        self.norm = nn.BatchNorm1d(3)
        self.settings = ["x", {"depth": 2}]

    def forward(self, x: Any, gain: float = 1.0) -> Any:
        for block in self.blocks:
            x = block(x).tanh()
        return self.heads["a"](self.norm(x)) * gain


def data() -> Any:
    return et.tensor(np.random.default_rng(0).normal(size=(4, 3)), et.float32)


def test_other_parameters_give_what_a_module_with_them_gives() -> None:
    net, other, x = Net(), Net(), data()
    rng = np.random.default_rng(1)
    values = {n: et.tensor(rng.normal(size=p.shape), et.float32) for n, p in net.named_parameters()}
    before = {n: p.tolist() for n, p in net.named_parameters()}
    for name, p in other.named_parameters():
        p.assign(values[name])
    got = et.functional_call(net, values, x, gain=2.0)
    np.testing.assert_array_equal(got.numpy(), other(x, gain=2.0).numpy())
    assert {n: p.tolist() for n, p in net.named_parameters()} == before
    # running statistics move on as in an ordinary call
    np.testing.assert_array_equal(net.norm.running_mean.numpy(), other.norm.running_mean.numpy())
    assert net.norm.num_batches_tracked.item() == 1


def test_gradients_arrive_at_the_tensors_given() -> None:
    net, x = Net(), data()
    leaf = et.tensor(np.full((2, 3), 0.5), et.float32, requires_grad=True)
    made = leaf * 2.0
    et.functional_call(
        net, {"heads.a.weight": made, "heads.a.bias": np.ones(2, np.float32)}, x
    ).sum().backward()
    assert leaf.grad is not None
    assert net.heads["a"].weight.grad is None
    assert net.blocks[0].weight.grad is not None  # what is not named stays, and is trained
    direct = et.tensor(np.full((2, 3), 1.0), et.float32, requires_grad=True)
    et.functional_call(net.eval(), {"heads.a.weight": direct}, x).sum().backward()
    assert direct.grad is not None


def test_shared_parameters_are_replaced_everywhere_under_either_name() -> None:
    net, x = Net().eval(), data()
    zero = et.zeros((3, 3))
    for name in ("blocks.0.weight", "blocks.1.weight"):
        out = et.functional_call(net, {name: zero}, x)
        again = et.functional_call(net, {"blocks.0.weight": zero, "blocks.1.weight": zero}, x)
        np.testing.assert_array_equal(out.numpy(), again.numpy())
        assert np.ptp(out.numpy(), axis=0).max() == 0  # x is gone


def test_buffers_that_are_given_are_used_and_kept_apart() -> None:
    net, x = Net().eval(), data()
    out = et.functional_call(net, {"norm.running_mean": et.full(3, 5.0)}, x)
    assert not np.array_equal(out.numpy(), net(x).numpy())
    assert net.norm.running_mean.tolist() == [0.0] * 3
    net.train()
    et.functional_call(net, {"norm.running_mean": et.full(3, 5.0)}, x)
    assert net.norm.running_mean.tolist() == [0.0] * 3
    assert net.norm.num_batches_tracked.item() == 1


def test_grad_with_respect_to_a_module() -> None:
    net, x = Net(), data()

    def loss(net: Any, x: Any) -> Any:
        return net(x).square().sum() + 0.1 * sum((p * p).sum() for p in net.parameters())

    loss(net, x).backward()
    want = {n: p.grad for n, p in net.named_parameters()}
    net.zero_grad()
    tracked = net.norm.num_batches_tracked.item()
    (_value, (gradient, grad_x)) = et.value_and_grad(loss, argnums=(0, 1))(net, x)
    assert gradient.keys() == want.keys()
    for name, g in gradient.items():
        np.testing.assert_array_equal(g.numpy(), want[name].numpy())
        assert not g.requires_grad
    assert grad_x.shape == x.shape
    assert all(p.grad is None for p in net.parameters())
    assert net.norm.num_batches_tracked.item() == tracked + 1


def test_frozen_parameters_have_no_gradient() -> None:
    net = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Linear(2, 1, rng=1))
    net[0].requires_grad_(False)
    assert list(et.grad(lambda net: net(et.ones((1, 2))).sum())(net)) == ["1.weight", "1.bias"]


def test_second_derivatives_with_respect_to_a_module() -> None:
    net = nn.Linear(2, 1, bias=False, rng=0, dtype=et.float64)
    x = et.tensor([[1.0, 2.0]], et.float64)

    def loss(net: Any) -> Any:
        return (net(x) ** 3).sum()

    direction = {"weight": et.tensor([[1.0, -1.0]], et.float64)}
    got = et.hvp(loss, net, direction)["weight"].numpy()
    out = net(x).item()
    np.testing.assert_allclose(got, 6 * out * (1.0 - 2.0) * x.numpy(), rtol=1e-13)
    penalty = et.grad(lambda net: (et.grad(loss)(net)["weight"] ** 2).sum())(net)["weight"].numpy()
    np.testing.assert_allclose(penalty, 4 * 9 * out**3 * 5.0 * x.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda net: et.functional_call(3, {}, 1), TypeError, r"\[functional_call\] module must be a module"),
        (lambda net: et.functional_call(net, [1]), TypeError, r"\[functional_call\] parameters must be a dict"),
        (lambda net: et.functional_call(net, {"ghost": 1.0}), ValueError, r"Linear has no parameter or buffer 'ghost'"),
        (lambda net: et.functional_call(net, {"bias": et.ones(3)}), ValueError, r"\['bias'\] has shape \(3,\) but the module has \(2,\)"),
    ],
)  # fmt: skip
def test_refusals(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        call(nn.Linear(2, 2))
