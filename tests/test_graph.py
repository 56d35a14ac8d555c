"""Calls that go straight to a kernel give what the functions they stand for give: results, errors and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import extensor as et
from extensor.graph import observe

REDUCTIONS = ["sum", "mean", "max_reduce", "min_reduce", "variance", "std", "prod", "logsumexp"]
X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
CALLS = [
    ((), {}), ((1,), {}), ((-1,), {}), (((0, 2),), {}), (((-1, 0),), {}), (((),), {}), ((None, True), {}), ((2, True), {}),
    ((), {"axis": 1}), ((), {"axis": (1, 2), "keepdims": True}), ((), {"keepdims": True}), (([0, 1],), {}), ((np.int64(1),), {}),
]  # fmt: skip


@pytest.mark.parametrize(("args", "options"), CALLS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_is_that_of_its_python_function(name, args, options):
    op, x = getattr(et, name), et.tensor(X, requires_grad=True)
    y, expected = op(x, *args, **options), op.fn(x, *args, **options)
    assert (y.shape, y.tolist()) == (expected.shape, expected.tolist())
    grad = et.tensor(np.random.default_rng(1).normal(size=y.shape).astype(np.float32))
    y.backward(grad)
    assert x.grad.tolist() == op.backward(grad, x.detach(), *args, **options).tolist()


@pytest.mark.parametrize("axis", [None, 0, -1, 2])
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum"])
def test_an_axis_or_all_elements_in_a_row(name, axis):
    op, x = getattr(et, name), et.tensor(X)
    assert op(x, axis).tolist() == op(x, axis=axis).tolist() == op.fn(x, axis).tolist()


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (0, 3), 1.5, "0", 2**70])
@pytest.mark.parametrize("name", [*REDUCTIONS, "argmax"])
def test_a_wrong_axis_is_refused(name, axis):
    with pytest.raises((ValueError, TypeError), match=rf"^\[{name}\]"):
        getattr(et, name)(et.tensor(X), axis)


def test_keywords_that_are_wrong():
    with pytest.raises(TypeError):
        et.sum(et.tensor(X), dimension=1)
    with pytest.raises(TypeError):
        et.sum(et.tensor(X), 1, axis=1)


def test_tensors_by_keyword_and_recorded_options():
    x, w, b = (et.tensor(a, requires_grad=True) for a in (X[0], X[1], X[0, 0, :4]))
    y = et.linear(x, w, bias=b)
    assert y.tolist() == et.linear.fn(x, w, b).tolist()
    et.sum(y, axis=0, keepdims=True).backward(et.ones((1, 4)))
    assert b.grad.tolist() == [4.0] * 4


@pytest.mark.parametrize("name", ["equal", "less", "greater_equal", "isnan", "isfinite", "logical_and"])
def test_comparisons(name):
    a, b = X.copy(), X[::-1].copy()
    a[0, 0, 0] = b[1, 1, 1] = np.nan
    a[0, 1] = b[0, 1]
    operands = [et.tensor(a), et.tensor(b)][: 1 if name.startswith("is") else 2]
    op = getattr(et, name)
    found = op(*operands)
    assert found.dtype == et.bool_
    assert (
        found.tolist()
        == op.fn(*operands).tolist()
        == getattr(np, name)(*(t.numpy() for t in operands)).tolist()
    )


@pytest.mark.parametrize("number", [3, -1, 2**24, 2**24 + 1, -(2**53), True])
def test_whole_numbers_beside_a_tensor(number):
    x = et.tensor(X)
    for op in (et.add, et.multiply, et.less, et.maximum):
        assert op(x, number).tolist() == op.fn(x, number).tolist()
        assert op(number, x).tolist() == op.fn(number, x).tolist()
    assert et.multiply(x, number).dtype == et.float32


def test_an_observer_sees_every_call():
    seen = []

    def observer(op, args, kwargs):
        seen.append(op.__name__)
        return op.fn(*args, **kwargs)

    with observe(observer):
        et.sum(et.tensor(X), 1)
        et.max_reduce(et.tensor(X), axis=(0, 1))
    assert seen == ["sum", "max_reduce"]
