"""Broadcasting, casting, comparison and selection."""

from __future__ import annotations

import numpy as np
import pytest

import extensor as et

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3), (3,)),
        ((2, 3), (2, 1)),
        ((2, 3), ()),
        ((4, 2, 3), (1, 3)),
        ((0, 3), (3,)),
        ((0, 3), ()),
        ((3,), (3,)),
    ],
)
def test_sum_to_shape_is_the_adjoint_of_broadcast_to(shape, target):
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=target), rng.normal(size=shape)
    forward = et.broadcast_to(et.tensor(x), shape)
    back = et.broadcast_to_backward(et.tensor(g), target)
    assert back.shape == target
    np.testing.assert_allclose((forward.numpy() * g).sum(), (x * back.numpy()).sum(), rtol=1e-12)
    assert np.array_equal(et.sum_to_shape_backward(et.tensor(x), shape).numpy(), forward.numpy())


def test_long_float32_sums_are_accurate():
    x = np.full((100_000, 3), 0.1, np.float32)
    np.testing.assert_allclose(
        et.sum_to_shape(et.tensor(x), (3,)).numpy(), np.float32(0.1) * 100_000.0, rtol=1e-7
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: et.sum_to_shape(et.ones((2, 3)), (2,)),
            r"\[sum_to_shape\] \(2,\) does not broadcast to \(2, 3\)",
        ),
        (lambda: et.sum_to_shape(et.ones(3), (1, 3)), r"\[sum_to_shape\]"),
        (lambda: et.broadcast_to(et.ones(3), (4,)), r"\[broadcast_to\] x of shape \(3,\)"),
        (lambda: et.broadcast_to_backward(et.ones((2, 3)), (2,)), r"\[broadcast_to_backward\]"),
        (
            lambda: et.broadcast_shapes((2,), (3,)),
            r"\[broadcast_shapes\] shapes do not broadcast: \(2,\) and \(3,\)",
        ),
        (
            lambda: et.where(et.tensor([True]), et.ones(2), et.ones(3)),
            r"\[where\] condition, a and b do not broadcast",
        ),
        (
            lambda: et.where_backward(et.ones(3), et.tensor([True]), (2,), (2,)),
            r"\[where_backward\] grad_output",
        ),
    ],
)
def test_shapes_that_do_not_fit(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_where_chooses_and_the_other_side_gets_an_exact_zero():
    c = et.tensor([True, False, True])
    a, b = et.tensor([1.0, NAN, INF]), et.tensor([NAN, 2.0, NAN])
    assert et.where(c, a, b).tolist() == [1.0, 2.0, INF]
    ga, gb = et.where_backward(et.tensor([INF, 1.0, NAN]), c, a, b)
    assert ga.tolist()[:2] == [INF, 0.0]
    assert gb.tolist() == [0.0, 1.0, 0.0]
    scalar = et.where_backward(et.ones(3), c, (3,), ())
    assert scalar.grad_b.item() == 1.0
    with pytest.raises(TypeError, match=r"\[where\] condition must be boolean"):
        et.where(a, a, b)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint64])
def test_comparisons_are_numpys(name, dtype):
    a, b = np.array([1, 2, 3], dtype), np.array([[2], [3]], dtype)
    if np.dtype(dtype).kind == "f":
        a = np.append(a, dtype(NAN))
    got = getattr(et, name)(et.tensor(a), et.tensor(b))
    assert got.dtype == np.bool_
    assert np.array_equal(got.numpy(), getattr(np, name)(a, b))


def test_bfloat16_compares_and_tests():
    x = et.tensor([1.0, NAN, INF, -0.0], dtype=et.bfloat16)
    assert (x > 0).tolist() == [True, False, True, False]
    assert et.isnan(x).tolist() == [False, True, False, False]
    assert et.isinf(x).tolist() == [False, False, True, False]
    assert et.isfinite(x).tolist() == [True, False, False, True]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic(name):
    a, b = np.array([0, 1, 0, 2]), np.array([0.0, 0.0, 3.0, NAN])
    assert np.array_equal(getattr(et, name)(et.tensor(a), et.tensor(b)).numpy(), getattr(np, name)(a, b))
    assert et.logical_not(et.tensor(a)).tolist() == [True, False, True, False]


def test_astype_and_its_gradient():
    x = et.tensor([1.5, 2.5], requires_grad=True)
    y = x.astype(et.float64)
    (y * y).sum().backward()
    assert x.grad.dtype == et.float32
    assert x.grad.tolist() == [3.0, 5.0]
    assert x.astype(et.float32) is not None
    assert not x.astype(et.int32).requires_grad
    with pytest.raises(TypeError, match=r"\[astype_backward\] x has dtype int32"):
        et.astype_backward(et.ones(2), et.int32)
    with pytest.raises(TypeError, match=r"\[astype\] dtype must name a number type"):
        x.astype("nonsense")
