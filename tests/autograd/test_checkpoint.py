"""Checkpoints: the same bits, less memory, repeated random draws."""

from __future__ import annotations

import sys
import threading
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


def test_dropout_in_several_threads_has_the_same_mask_in_both_passes():
    """All threads draw from one generator, and each gradient must be 0 exactly where its output is."""
    rng = et.random.generator(0)
    wrong, ready = [], threading.Barrier(4)

    def part(x):
        return et.dropout(x, 0.5, rng).output * et.random.uniform(rng, x.shape, 1.0, 2.0)

    def work():
        ready.wait()
        for _ in range(40):
            x = et.tensor(np.ones(500), requires_grad=True)
            out = et.checkpoint(part)(x)
            out.sum().backward()
            if not np.array_equal(out.numpy(), x.grad.numpy()):  # the part is linear, and x is 1
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.parametrize("kind", ["PCG64", "Philox", "MT19937", "SFC64"])
def test_nested_checkpoints_repeat_the_draws_of_any_generator(kind):
    def run(wrap):
        rng = np.random.Generator(getattr(np.random, kind)(3))
        x = et.tensor(np.linspace(1, 2, 6), requires_grad=True)

        def inner(x):
            return et.dropout(x.sin(), 0.3, rng).output

        def outer(x):
            return wrap(inner)(wrap(inner)(x * et.random.normal(rng, (6,), dtype=et.float64)))

        out = wrap(outer)(x)
        et.random.permutation(rng, 4)  # drawn between the passes
        (out * out).sum().backward()
        return x.grad.tolist(), et.random.integers(rng, 0, 1000, (3,)).tolist()

    assert run(et.checkpoint) == run(lambda fn: fn)


def test_a_function_that_draws_more_is_noticed():
    rng, counts = et.random.generator(0), iter([1, 2])
    x = et.tensor(1.0, requires_grad=True)

    def part(x):
        for _ in range(next(counts)):
            x = x * et.random.normal(rng, ())
        return x

    loss = et.checkpoint(part)(x)
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] the function drew more random numbers"):
        loss.backward()


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_are_updated_once(momentum):
    def run(wrap):
        net = et.nn.Sequential(
            et.nn.Linear(3, 4, rng=0), et.nn.BatchNorm1d(4, momentum=momentum), et.nn.Dropout(0.5, rng=1)
        )
        rng = np.random.default_rng(0)
        for _ in range(3):
            x = et.tensor(rng.normal(size=(5, 3)), et.float32)
            net.zero_grad()
            first, second = wrap(net)(x), wrap(net)(x + 1.0)  # two passes before the way back
            (first * second).sum().backward()
        return (
            {n: v.tolist() for n, v in net.state_dict().items()},
            [p.grad.tolist() for p in net.parameters()],
        )

    state, gradients = run(et.checkpoint)
    assert state["1.num_batches_tracked"] == 6
    assert (state, gradients) == run(lambda net: net)


def test_a_buffer_that_the_forward_depends_on_is_put_back_for_the_repetition():
    class Running(et.nn.Module):
        def __init__(self):
            self.register_buffer("seen", et.tensor(1.0))

        def forward(self, x):
            out = x * self.seen
            self.seen = self.seen + 1.0
            return out

    layer, x = Running(), et.tensor(1.0, requires_grad=True)
    outs = [et.checkpoint(layer)(x) for _ in range(3)]
    sum(outs).backward()
    assert x.grad.item() == 6.0
    assert layer.seen.item() == 4.0


def test_threads_share_a_generator_without_losing_or_repeating_a_draw():
    rng, found, ready = et.random.generator(5), [], threading.Barrier(4)

    def work(wrap):
        ready.wait()
        for _ in range(300):
            x = et.tensor(1.0, et.float64, requires_grad=True)
            found.append(wrap(lambda x: x * et.random.uniform(rng, (), dtype=et.float64))(x).item())

    threads = [
        threading.Thread(target=work, args=(w,))
        for w in (et.checkpoint, et.checkpoint, lambda f: f, lambda f: f)
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert sorted(found) == sorted(et.random.generator(5).random(1200).tolist())


def test_a_gradient_inside_a_checkpoint_keeps_the_draws_apart():
    def run(wrap):
        rng = et.random.generator(2)
        x = et.tensor([0.5, 1.5], et.float64, requires_grad=True)

        def inner(x):
            return (x.exp() * et.random.normal(rng, (2,), dtype=et.float64)).sum()

        def outer(x):
            slope = et.grad(wrap(inner))(x)
            return slope * et.random.normal(rng, (2,), dtype=et.float64) * x

        wrap(outer)(x).sum().backward()
        return x.grad.tolist()

    assert run(et.checkpoint) == run(lambda fn: fn)


def test_an_output_that_nothing_uses():
    x = et.tensor([1.0, 2.0], requires_grad=True)
    used, _unused = et.checkpoint(lambda x: (x * 2.0, x * 3.0))(x)
    used.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
