"""The backward pass: programs against HIPS autograd, memory, depth, and what is refused."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

from .programs import random_program


@pytest.mark.parametrize("seed", range(120))
def test_random_programs_agree_with_hips_autograd_through_every_interface(seed):
    inputs, program = random_program(seed)
    want = autograd.grad(lambda xs: program(anp, xs))(tuple(inputs))

    leaves = [et.tensor(x, requires_grad=True) for x in inputs]
    program(et, leaves).backward()
    by_backward = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
    for got, expected in zip(by_backward, want):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)

    def function(*xs):
        return program(et, xs)

    tensors = [et.tensor(x) for x in inputs]
    by_grad = et.grad(function, argnums=tuple(range(len(inputs))))(*tensors)
    by_vjp = et.vjp(function, *tensors)[1](et.ones((), dtype=et.float64))
    for a, b, c in zip(by_backward, by_grad, by_vjp):
        assert np.array_equal(a, b.numpy())
        assert np.array_equal(a, c.numpy())


def test_gradients_accumulate_over_uses_and_over_calls():
    x = et.tensor([2.0, 3.0], requires_grad=True)
    (x * x + x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]


def test_a_chain_of_100_000_operations():
    x = et.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y  # freed without recursion


def test_mixed_dtypes_give_each_input_its_own():
    a = et.tensor([1.0, 2.0], dtype=et.float32, requires_grad=True)
    b = et.tensor([3.0, 4.0], dtype=et.float64, requires_grad=True)
    h = et.tensor(2.0, dtype=et.float16, requires_grad=True)
    (a * b + h + a.astype(et.float64)).sum().backward()
    assert (a.grad.dtype, b.grad.dtype, h.grad.dtype) == (et.float32, et.float64, et.float16)
    assert a.grad.tolist() == [4.0, 5.0]
    assert h.grad.item() == 2.0


def test_several_outputs_some_unused():
    x = et.tensor(np.arange(6.0), requires_grad=True)
    first, _, third = et.split(x, 3)
    (first * 2 + third * 3).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0, 0.0, 3.0, 3.0]


def test_no_grad_detach_and_integers_are_not_recorded():
    x = et.tensor([1.0], requires_grad=True)
    with et.no_grad():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    assert not (x.detach() * 2).requires_grad
    assert not (x > 0).requires_grad


def test_recording_is_a_matter_of_the_thread():
    x = et.tensor([1.0], requires_grad=True)
    seen = []
    with et.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_a_freed_graph_is_a_runtime_error_and_retain_graph_keeps_it():
    x = et.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match=r"\[backward\] the graph was already freed"):
        loss.backward()


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda x: (x * x).backward(), ValueError, "only a scalar"),
        (lambda x: et.tensor([1.0]).backward(), ValueError, "does not depend on anything"),
        (lambda x: et.tensor([1]).backward(), TypeError, "int64 has no gradient"),
        (lambda x: (x * x).backward(et.ones(3)), ValueError, r"grad_output has shape \(3,\)"),
        (lambda x: (x * x).backward([1.0, 1.0]), TypeError, "grad_output must be a tensor"),
        (lambda x: (x * x).backward(et.tensor([1, 1])), TypeError, "floating"),
    ],
)
def test_what_backward_refuses(make, kind, text):
    x = et.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(kind, match=rf"\[backward\] .*{text}"):
        make(x)


def test_saved_values_are_let_go_during_the_walk_and_no_cycles_remain():
    gc.disable()
    try:
        x = et.tensor(np.ones(10), requires_grad=True)
        hidden = x.tanh()
        watch = weakref.ref(hidden._node)
        loss = (hidden.exp() * hidden).sum()
        del hidden
        loss.backward()
        del loss
        assert watch() is None
    finally:
        gc.enable()


def test_training_does_not_grow_memory():
    rng = np.random.default_rng(0)
    data = et.tensor(rng.normal(size=(16, 4)).astype(np.float32))
    w = et.tensor(rng.normal(size=(4, 4)).astype(np.float32))

    def step(w):
        leaf = et.tensor(w, requires_grad=True)
        et.softmax(et.tanh(data @ leaf)).square().sum().backward()
        return et.sgd_step(w, leaf.grad, 0.01)

    tracemalloc.start()
    for _ in range(3000):  # fills the free lists of Python and NumPy
        w = step(w)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1000):
        w = step(w)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000  # 20 bytes a step would be found


def test_a_parameter_replaced_between_forward_and_backward_is_noticed():
    w = et.nn.Parameter([1.0, 2.0])
    loss = (w * w).sum()
    w.assign([3.0, 4.0])
    with pytest.raises(RuntimeError, match=r"\[backward\] a parameter of shape \(2,\) was replaced"):
        loss.backward()


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_precision_gradients_accumulate_in_float32(dtype):
    x = et.tensor([1.0], dtype=dtype, requires_grad=True)
    for _ in range(3000):
        x.backward(et.ones(1, dtype=dtype))
    assert x.grad.dtype == dtype
    assert x.grad.item() == np.asarray(3000.0).astype(dtype)


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_precision_gradients_that_meet_are_rounded_once(dtype):
    def many(v):  # the values are rounded on the way, the ones that arrive at v are not
        return sum([v] * 4097, start=v * 0).sum()

    x = et.tensor([1.0], dtype=dtype, requires_grad=True)
    many(x).backward()  # at a leaf
    inner = et.grad(lambda v: many(v * 1.0))(x.detach())  # at a node
    for found in (x.grad, inner, et.grad(many)(x.detach())):
        assert found.dtype == dtype
        assert found.item() == np.asarray(4097.0).astype(dtype)
