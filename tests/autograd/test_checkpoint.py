"""Checkpoints: the same bits, less memory, repeated random draws."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import extensor as et


def gradients(run, weights):
    for w in weights:
        w.grad = None
    run().backward()
    return [w.grad.numpy() for w in weights]


@pytest.mark.parametrize("segments", [1, 3, 8])
def test_same_bits_as_without(segments):
    rng = np.random.default_rng(0)
    weights = [et.tensor(rng.normal(size=(6, 6)) / 3, requires_grad=True) for _ in range(8)]
    layers = [lambda x, w=w: et.tanh(x @ w) for w in weights]
    x = et.tensor(rng.normal(size=(5, 6)), requires_grad=True)

    def plain():
        h = x
        for layer in layers:
            h = layer(h)
        return (h * h).sum()

    want = gradients(plain, [x, *weights])
    got = gradients(lambda: (et.checkpoint_sequential(layers, segments)(x) ** 2).sum(), [x, *weights])
    same = gradients(lambda: et.checkpoint(plain)(), [x, *weights])
    for a, b, c in zip(want, got, same):
        np.testing.assert_allclose(a, b, rtol=1e-13)
        assert np.array_equal(a, c)


def test_activations_are_not_kept():
    kept = []

    def layer(x):
        hidden = et.tanh(x * 2.0)
        kept.append(hidden._node)
        return hidden * hidden

    x = et.tensor(np.ones(4), requires_grad=True)
    loss = et.checkpoint(layer)(x).sum()
    watch = weakref.ref(kept.pop())
    assert watch() is None, "the graph inside a checkpoint must be dropped in the forward"
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.tanh(2) * (1 - np.tanh(2) ** 2), rtol=1e-14)


def test_random_draws_are_repeated_and_the_generator_ends_where_it_would():
    def run(wrap):
        rng = et.random.generator(7)
        x = et.tensor([1.0, 2.0, 3.0], requires_grad=True)
        part = wrap(lambda x: (x * et.random.normal(rng, (3,))).exp())
        (part(x) * et.random.normal(rng, (3,))).sum().backward()
        return x.grad.tolist(), et.random.normal(rng, (1,)).item()

    assert run(et.checkpoint) == run(lambda fn: fn)


def test_structures_several_outputs_and_second_order():
    def part(p):
        return {"a": p["x"].exp(), "b": (p["x"] * 2, "text")}

    def loss(x, wrap):
        out = wrap(part)({"x": x})
        return (out["a"] * out["b"][0]).sum()

    x = et.tensor([0.3, 0.7], dtype=et.float64)
    v = et.tensor([1.0, -2.0], dtype=et.float64)
    want = et.hvp(lambda x: loss(x, lambda fn: fn), x, v)
    got = et.hvp(lambda x: loss(x, et.checkpoint), x, v)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-14)


def test_a_function_that_changes_is_noticed():
    shapes = iter([(2,), (3,)])
    x = et.tensor(1.0, requires_grad=True)
    loss = et.checkpoint(lambda x: et.broadcast_to(x, next(shapes)))(x).sum()
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] the function computed something else"):
        loss.backward()


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: et.checkpoint(3), TypeError),
        (lambda: et.checkpoint_sequential([], 1), TypeError),
        (lambda: et.checkpoint_sequential([et.tanh], 2), ValueError),
        (lambda: et.checkpoint_sequential([et.tanh], 0), ValueError),
        (lambda: et.checkpoint_sequential([et.tanh], 1.0), TypeError),
    ],
)
def test_refusals(call, kind):
    with pytest.raises(kind, match=r"^\[checkpoint"):
        call()
