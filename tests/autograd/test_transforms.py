"""grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp: values, structures, nesting, refusals."""

from __future__ import annotations

from typing import NamedTuple

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

from .programs import random_program


class Weights(NamedTuple):
    w: et.ExTensor
    b: et.ExTensor


def test_structures_come_back_as_they_went_in():
    params = {"layers": [Weights(et.ones((2, 2)), et.zeros(2)), (et.ones(2),)], "name": "net", "scale": 2.0}

    def loss(p):
        (first, (last,)) = p["layers"]
        return ((et.ones((1, 2)) @ first.w + first.b) * last).sum() * p["scale"]

    value, grads = et.value_and_grad(loss)(params)
    assert value.item() == 8.0
    assert type(grads["layers"][0]) is Weights
    assert grads["layers"][0].b.tolist() == [2.0, 2.0]
    assert grads["layers"][1][0].tolist() == [4.0, 4.0]
    assert grads["name"] == "net"
    assert grads["scale"].item() == 4.0


def test_argnums_and_aux():
    def loss(x, y):
        return (x * y * y).sum(), {"x": x}

    gradient, aux = et.grad(loss, argnums=1, has_aux=True)(et.tensor([2.0]), et.tensor([3.0]))
    assert gradient.tolist() == [12.0]
    assert not aux["x"].requires_grad
    (value, _), (gx, gy) = et.value_and_grad(loss, argnums=(0, -1), has_aux=True)(
        et.tensor([2.0]), et.tensor([3.0])
    )
    assert (value.item(), gx.tolist(), gy.tolist()) == (18.0, [9.0], [12.0])


def test_an_unused_argument_has_a_gradient_of_zero():
    assert et.grad(lambda x, y: x.sum(), argnums=1)(et.ones(2), et.ones(3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("order", range(1, 6))
def test_nested_grad_to_any_order(order):
    function, expected = (lambda x: x * x * x * x), [32.0, 48.0, 48.0, 24.0, 0.0]
    for _ in range(order):
        function = et.grad(function)
    assert function(et.tensor(2.0, dtype=et.float64)).item() == expected[order - 1]


def test_perturbations_are_not_confused():
    inner = et.grad(lambda x: x * et.grad(lambda y: x + y)(1.0))
    assert inner(2.0).item() == 1.0


@pytest.mark.parametrize("seed", range(40))
def test_hvp_and_jvp_agree_with_hips_autograd(seed):
    inputs, program = random_program(seed + 1000)
    rng = np.random.default_rng(seed)
    x = inputs[0]
    v = rng.normal(size=x.shape)
    rest = inputs[1:]
    want_gradient = autograd.grad(lambda a: program(anp, [a, *rest]) + anp.sum(a * a * a))
    want_hvp = autograd.grad(lambda a: anp.sum(want_gradient(a) * v))(x)

    def function(a):
        return program(et, [a, *map(et.tensor, rest)]) + (a * a * a).sum()

    got = et.hvp(function, et.tensor(x), et.tensor(v))
    np.testing.assert_allclose(got.numpy(), want_hvp, rtol=1e-8, atol=1e-9)
    _, tangent = et.jvp(function, (et.tensor(x),), (et.tensor(v),))
    np.testing.assert_allclose(tangent.item(), np.sum(want_gradient(x) * v), rtol=1e-9, atol=1e-10)
    _, twice = et.jvp(et.grad(function), (et.tensor(x),), (et.tensor(v),))
    np.testing.assert_allclose(twice.numpy(), want_hvp, rtol=1e-8, atol=1e-9)


def test_jacobian_and_hessian_of_structures():
    x = et.tensor([1.0, 2.0, 3.0], dtype=et.float64)
    jacobian = et.jacobian(lambda a: {"outer": et.outer(a, a), "sum": a.sum()})(x)
    assert jacobian["outer"].shape == (3, 3, 3)
    want = np.einsum("ik,j->ijk", np.eye(3), x.numpy()) + np.einsum("jk,i->ijk", np.eye(3), x.numpy())
    assert np.array_equal(jacobian["outer"].numpy(), want)
    assert jacobian["sum"].tolist() == [1.0, 1.0, 1.0]
    hessian = et.hessian(lambda p: (p["a"] * p["a"] * p["b"]).sum())({"a": x, "b": x})
    assert np.array_equal(hessian["a"]["b"].numpy(), np.diag(2 * x.numpy()))
    assert np.array_equal(hessian["b"]["b"].numpy(), np.zeros((3, 3)))


def test_a_gradient_penalty_reaches_the_weights_in_the_closure():
    w = et.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=et.float64, requires_grad=True)
    x = et.tensor([[0.5, -1.0]], dtype=et.float64)
    penalty = (et.grad(lambda a: et.tanh(a @ w).sum())(x) ** 2).sum()
    penalty.backward()

    def by_hand(w):
        return anp.sum(autograd.grad(lambda a: anp.sum(anp.tanh(anp.dot(a, w))))(x.numpy()) ** 2)

    np.testing.assert_allclose(w.grad.numpy(), autograd.grad(by_hand)(w.numpy()), rtol=1e-12)


def test_create_graph_makes_gradients_differentiable():
    x = et.tensor([1.0, 2.0], dtype=et.float64, requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    gradient, x.grad = x.grad, None
    gradient.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_half_precision_second_order_keeps_its_dtype():
    x = et.tensor([0.5, 1.5], dtype=et.float16)
    got = et.hvp(lambda a: et.exp(a).sum(), x, et.ones(2, dtype=et.float16))
    assert got.dtype == et.float16
    np.testing.assert_allclose(got.numpy(), np.exp([0.5, 1.5]), rtol=2e-3)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: et.grad(3), TypeError, r"\[grad\] fn must be a function"),
        (lambda: et.grad(lambda x: x)(et.ones(2)), ValueError, r"\[grad\] fn must return a scalar"),
        (lambda: et.grad(lambda x: 3)(et.ones(2)), TypeError, r"\[grad\] fn must return a scalar tensor"),
        (
            lambda: et.grad(lambda x: x.sum())(et.tensor([1, 2])),
            TypeError,
            r"\[grad\] .*int64 has no gradient",
        ),
        (lambda: et.grad(lambda x: x.sum(), argnums=2)(et.ones(2)), ValueError, r"\[grad\] argnums 2"),
        (lambda: et.grad(lambda x: x.sum())("text"), TypeError, r"\[grad\] found no tensor"),
        (lambda: et.value_and_grad(lambda x: x.sum(), has_aux=True)(et.ones(2)), TypeError, "has_aux"),
        (
            lambda: et.vjp(lambda x: x, et.ones(2))[1](et.ones(3)),
            ValueError,
            r"\[vjp\] a gradient has shape \(3,\)",
        ),
        (
            lambda: et.jvp(lambda x: x, (et.ones(2),), (et.ones(3),)),
            ValueError,
            r"\[jvp\] a tangent has shape \(3,\)",
        ),
        (
            lambda: et.hvp(lambda x: x, et.ones(2), et.ones(2)),
            ValueError,
            r"^\[hvp\] fn must return a scalar",
        ),
        (lambda: et.hvp(lambda x: x.sum(), et.ones(2), et.ones(3)), ValueError, r"^\[hvp\] a gradient has"),
        (lambda: et.hvp(3, et.ones(2), et.ones(2)), TypeError, r"^\[hvp\] fn must be a function"),
        (lambda: et.hessian(lambda x: x)(et.ones(2)), ValueError, r"^\[hessian\] fn must return a scalar"),
        (lambda: et.hessian(lambda x: x.sum(), 2)(et.ones(2)), ValueError, r"^\[hessian\] argnums 2"),
        (lambda: et.jacobian(lambda x: 3)(et.ones(2)), TypeError, r"^\[jacobian\] fn must return tensors"),
        (
            lambda: et.jvp(lambda x: x, et.ones(2), et.ones(2)),
            TypeError,
            r"\[jvp\] primals and tangents must be tuples",
        ),
    ],
)
def test_refusals(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
