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


@pytest.mark.parametrize(("args", "options"), CALLS)
@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name != "prod"])
def test_a_gradient_of_a_reduction_is_that_of_its_python_function(name, args, options):
    backward, x = getattr(et, f"{name}_backward"), et.tensor(X)
    grad = et.tensor(
        np.random.default_rng(1).normal(size=getattr(et, name)(x, *args, **options).shape), dtype=et.float32
    )
    expected = backward.fn(grad, x, *args, **options)
    for given in (x, X.shape) if name in ("sum", "mean") else (x,):
        found = backward(grad, given, *args, **options)
        assert (found.shape, found.dtype, found.tolist()) == (X.shape, et.float32, expected.tolist())


@pytest.mark.parametrize("name", ["sum_backward", "mean_backward"])
def test_a_shape_in_place_of_a_tensor(name):
    backward, grad = getattr(et, name), et.ones(4)
    assert backward(grad, et.zeros((2, 4), dtype=et.float64), 0).dtype == et.float64
    for wrong in [(True, 4), (2.0, 4), (-2, 4), "24", et.zeros((2, 4), dtype=et.int32)]:
        with pytest.raises((TypeError, ValueError), match=rf"^\[{name}\] x"):
            backward(grad, wrong, 0)
    for shape in [(2, 5), (4,), (3, 2)]:
        with pytest.raises(ValueError, match=rf"^\[{name}\] (grad_output|axis)"):
            backward(grad, shape, 1)
    x = et.tensor(X[0, :2, :4], requires_grad=True)
    assert backward(grad, x, 0).shape == (2, 4)
    cube = et.tensor(X[:, :3, 0])  # an axis is one of the shape, which has more of them than the gradient
    assert backward(cube, (3, 3, 3), -1).tolist() == backward.fn(cube, (3, 3, 3), -1).tolist()
    upstream = et.tensor(X[0, 0, :4], requires_grad=True)
    assert backward(upstream, (2, 4), 0).requires_grad


@pytest.mark.parametrize("axis", [None, 0, -1, 2])
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum"])
def test_an_axis_or_all_elements_in_a_row(name, axis):
    op, x = getattr(et, name), et.tensor(X)
    assert op(x, axis).tolist() == op(x, axis=axis).tolist() == op.fn(x, axis).tolist()


@pytest.mark.parametrize(("args", "options"), CALLS)
@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
def test_what_is_true_is_that_of_its_python_function(name, args, options):
    op = getattr(et, name)
    for x in (et.tensor(X > 0.5), et.tensor(np.maximum(X, 0)), et.tensor(X, requires_grad=True)):
        found, expected = op(x, *args, **options), op.fn(x, *args, **options)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (0, 3), 1.5, "0", 2**70])
@pytest.mark.parametrize("name", [*REDUCTIONS, "argmax", "any", "count_nonzero"])
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


@pytest.mark.parametrize(
    "other",
    [X[0, 0], X[:1], X[:, :, :1], X[0, 0, 0], X[:, ::-1], np.asfortranarray(X), X[:, :0, :1]],
    ids=["row", "plane", "column", "one", "reversed", "fortran", "empty"],
)
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "power", "maximum"])
def test_operands_that_broadcast_or_lie_otherwise(name, other):
    op = getattr(et, name)
    x = X[:, :0, :1] if not other.size else abs(X) + np.float32(0.1)
    a, b = et.asarray(x), et.asarray(other)
    y = op(a, b)
    expected = op.fn(a, b)
    assert y.shape == expected.shape
    np.testing.assert_array_equal(y.numpy(), expected.numpy())

    grads = et.vjp(op, a, b)[1](et.ones(expected.shape))
    wanted = op.backward(et.ones(expected.shape), a, b)
    for found, want in zip(grads, wanted):
        np.testing.assert_array_equal(found.numpy(), want.numpy())


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"^\[add\] a and b do not broadcast"):
        et.add(et.tensor(X), et.ones((7,)))


@pytest.mark.parametrize("bounds", [(0.1, 0.5), (0, 1), (None, 0.5), (0.5, 0.1), (0.1,), (-np.inf, np.inf)])
def test_bounds(bounds):
    x = et.tensor(X, requires_grad=True)
    y = et.clip(x, *bounds)
    assert y.tolist() == et.clip.fn(x, *bounds).tolist()
    y.backward(et.ones(X.shape))
    assert x.grad.tolist() == et.clip.backward(et.ones(X.shape), x.detach(), *bounds).tolist()
    assert et.clip(x.detach(), max=0.5).tolist() == np.minimum(X, np.float32(0.5)).tolist()


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, 2.5])
def test_powers_by_a_number(exponent):
    x = np.concatenate([abs(X).ravel(), [0.0, np.inf, np.nan, 1e-30, 1e30]]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = (x.astype(np.float64) ** exponent).astype(np.float32)
    np.testing.assert_allclose(et.power(et.tensor(x), exponent).numpy(), expected, rtol=3e-7)
    mixed = np.full(x.shape, exponent, np.float32)
    mixed[::2] = 1.75  # a lane does not see its neighbours
    found = et.power(et.tensor(x), et.tensor(mixed)).numpy()
    np.testing.assert_array_equal(found[1::2], et.power(et.tensor(x), exponent).numpy()[1::2])


def test_only_operands_are_broadcast():
    x, alpha = et.tensor(X[:, :3, :3]), et.tensor(X[0, 0, :3])
    channels = X[0, 0, :3].reshape(3, 1)
    assert (
        et.prelu(x, alpha).tolist()
        == np.where(X[:, :3, :3] > 0, X[:, :3, :3], channels * X[:, :3, :3]).tolist()
    )
    with pytest.raises(ValueError, match=r"^\[relu_backward\] grad_output"):
        et.relu_backward(et.ones((1, 5)), et.tensor(X[0]))
    transposed = et.tensor(X[0]).T
    assert et.relu_backward(transposed, transposed).tolist() == np.where(X[0].T > 0, X[0].T, 0).tolist()
