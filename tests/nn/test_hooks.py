"""Hooks: order, replaced values, gradients in and out, handles."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn


def test_forward_hooks_see_and_replace() -> None:
    layer, seen = nn.Linear(2, 2, rng=0), []
    x = et.ones((1, 2))
    plain = layer(x).numpy()

    def look(module: Any, args: Any, output: Any) -> None:
        seen.append((module is layer, args[0] is x, output.shape))

    layer.register_forward_hook(look)
    double = layer.register_forward_hook(lambda m, args, out: out * 2.0)
    np.testing.assert_array_equal(layer(x).numpy(), 2 * plain)
    double.remove()
    double.remove()
    np.testing.assert_array_equal(layer(x).numpy(), plain)
    assert seen == [(True, True, (1, 2))] * 2


def test_order_prepend_and_kwargs() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Any, scale: float = 1.0) -> Any:
            return x * scale

    layer, order = Scaled(), []
    layer.register_forward_pre_hook(lambda m, a: order.append("b"))
    layer.register_forward_pre_hook(lambda m, a: order.append("a"), prepend=True)
    layer.register_forward_pre_hook(lambda m, a, k: (a, {**k, "scale": k["scale"] + 1}), with_kwargs=True)
    layer.register_forward_hook(lambda m, a, k, out: order.append(k["scale"]), with_kwargs=True)
    assert layer(et.ones(1), scale=2.0).tolist() == [3.0]
    assert order == ["a", "b", 3.0]
    layer.register_forward_pre_hook(lambda m, a: (a[0] + 1.0,))
    layer.register_forward_pre_hook(lambda m, a: a[0] * 10.0)
    assert layer(et.ones(1), scale=0.0).tolist() == [20.0]


def test_backward_hook_sees_the_gradients_of_inputs_and_outputs() -> None:
    net = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 1, rng=1))
    seen: dict[str, Any] = {}
    for name in ("0", "2"):
        net[int(name)].register_full_backward_hook(lambda m, gi, go, name=name: seen.update({name: (gi, go)}))
    x = et.tensor(np.random.default_rng(0).normal(size=(5, 3)), et.float32)
    h = net[1](net[0](x))
    h.retain_grad()
    seen.clear()
    out = net[2](h)
    out.square().sum().backward()
    (grad_input,), (grad_output,) = seen["2"]
    np.testing.assert_array_equal(grad_output.numpy(), 2 * out.numpy())
    np.testing.assert_array_equal(grad_input.numpy(), h.grad.numpy())
    assert seen["0"][0] == (None,)  # x requires no gradient, and the hook is called all the same
    assert seen["0"][1][0].shape == (5, 4)


def test_gradients_are_the_same_bits_with_a_hook() -> None:
    def run(watch: bool) -> Any:
        net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, rng=0)
        calls = []
        if watch:
            for module in net.modules():
                module.register_full_backward_hook(lambda m, gi, go: calls.append(type(m).__name__))
        x = et.tensor(np.random.default_rng(1).normal(size=(2, 3, 8)), et.float32, requires_grad=True)
        net(x).square().sum().backward()
        return [x.grad.tolist(), *(p.grad.tolist() for p in net.parameters())], calls

    (with_hooks, calls), (without, _) = run(True), run(False)
    assert with_hooks == without
    assert calls[-1] == "TransformerEncoderLayer"
    assert len(calls) >= 9


def test_a_backward_hook_may_replace_the_gradient() -> None:
    net = nn.Sequential(nn.Identity(), nn.Identity())
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 10.0,))
    net[1].register_full_backward_hook(lambda m, gi, go: gi[0] + 1.0)
    x = et.tensor([1.0, 2.0], requires_grad=True)
    net(x).sum().backward()
    assert x.grad.tolist() == [11.0, 11.0]


def test_several_inputs_and_outputs() -> None:
    class Both(nn.Module):
        def forward(self, a: Any, b: Any = None) -> Any:
            return {"sum": a + b, "product": a * b, "count": et.tensor(3)}

    layer, seen = Both(), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    a, b = et.tensor([2.0], requires_grad=True), et.tensor([3.0])
    layer(a, b=b)["product"].sum().backward()
    ((grad_a, grad_b), grad_output) = seen[0]
    assert grad_a.tolist() == [3.0]
    assert grad_b is None
    assert [g and g.tolist() for g in grad_output] == [None, [1.0], None]
    assert a.grad.tolist() == [3.0]


def test_a_tensor_that_is_given_twice_stays_one_object() -> None:
    class Same(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            assert a is b
            return a * b

    layer, seen = Same(), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    x = et.tensor([3.0], requires_grad=True)
    layer(x, x).sum().backward()
    assert seen[0][0].tolist() == [6.0]
    assert seen[0][1] is None
    assert x.grad.tolist() == [6.0]


def test_second_order_checkpoints_and_no_grad() -> None:
    layer, count = nn.Tanh(), []
    layer.register_full_backward_hook(lambda m, gi, go: count.append(1))
    x = et.tensor([0.5], et.float64)
    got = et.hvp(lambda x: layer(x).sum(), x, et.ones(1, dtype=et.float64)).item()
    t = np.tanh(0.5)
    assert got == pytest.approx(-2 * t * (1 - t * t), rel=1e-14)
    assert count
    count.clear()
    with et.no_grad():
        layer(x)
    y = et.tensor([0.5], requires_grad=True)
    et.checkpoint(layer)(y).sum().backward()
    assert len(count) == 1


def test_hooks_are_no_members_and_are_copied_with_the_module() -> None:
    layer, seen = nn.Linear(2, 2, rng=0), []
    layer.register_forward_hook(lambda *a: seen.append(1))
    assert list(layer.state_dict()) == ["weight", "bias"]
    copy.deepcopy(layer)(et.ones((1, 2)))
    assert seen == [1]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m: m.register_forward_hook(3), TypeError, r"^\[register_forward_hook\] hook must be a function"),
        (lambda m: m.register_forward_pre_hook(None), TypeError, r"^\[register_forward_pre_hook\] hook"),
        (lambda m: m.register_full_backward_hook("x"), TypeError, r"^\[register_full_backward_hook\] hook"),
        (lambda m: (m.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True), m(et.ones(2))), TypeError, r"must return None or \(args, kwargs\)"),
        (lambda m: (m.register_full_backward_hook(lambda m, gi, go: (1, 2)), m(et.tensor([1.0], requires_grad=True)).sum().backward()), ValueError, r"returned 2 gradients for 1 inputs"),
        (lambda m: (m.register_full_backward_hook(lambda m, gi, go: (et.ones(3),)), m(et.tensor([1.0], requires_grad=True)).sum().backward()), ValueError, r"must be a tensor of shape \(1,\)"),
    ],
)  # fmt: skip
def test_refusals(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        call(nn.Identity())
