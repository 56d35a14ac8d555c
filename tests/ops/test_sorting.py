"""Sorting, top_k, searching and counting: against NumPy and HIPS autograd, ties, nan, dtypes, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

NAN = float("nan")
DTYPES = [np.bool_, np.int8, np.uint8, np.int64, et.float16, et.bfloat16, np.float32, np.float64]
AXES: list[tuple[tuple[int, ...], Any]] = [
    ((0,), 0), ((1,), -1), ((7,), 0), ((3, 4), None), ((3, 4), 0), ((3, 4), -1), ((2, 3, 5), 1), ((2, 0, 3), 1), ((40,), -1),
]  # fmt: skip


def values(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Whole numbers with many ties."""
    return np.random.default_rng(3).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_order(shape: tuple[int, ...], axis: Any, dtype: Any) -> None:
    x = values(shape, dtype)
    wide = x.astype(np.float64)
    found = et.sort(et.asarray(x), axis)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.numpy().astype(np.float64), np.sort(wide, axis))
    np.testing.assert_array_equal(
        et.argsort(et.asarray(x), axis).numpy(), np.argsort(wide, axis, kind="stable")
    )
    if axis is not None:
        k = (shape[axis] + 1) // 2
        largest = np.take(np.flip(np.sort(wide, axis), axis), np.arange(k), axis)
        found, indices = et.top_k(et.asarray(x), k, axis)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.numpy().astype(np.float64), largest)
        assert indices.dtype == np.int64
        np.testing.assert_array_equal(np.take_along_axis(wide, indices.numpy(), axis), largest)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((), None), *AXES])
def test_search_and_count(shape: tuple[int, ...], axis: Any, keepdims: bool, dtype: Any) -> None:
    x = values(shape, dtype)
    t, wide = et.asarray(x), x.astype(np.float64)
    for name in ("any", "all", "count_nonzero"):
        found, expected = (
            getattr(et, name)(t, axis, keepdims),
            getattr(np, name)(wide, axis=axis, keepdims=keepdims),
        )
        assert found.dtype == (np.int64 if name == "count_nonzero" else np.bool_)
        np.testing.assert_array_equal(found.numpy(), expected)
    for name in ("argmax", "argmin"):
        function = getattr(et, name)
        if x.size:
            np.testing.assert_array_equal(
                function(t, axis, keepdims).numpy(), getattr(np, name)(wide, axis, keepdims=keepdims)
            )
        else:
            with pytest.raises(ValueError, match=rf"\[{name}\] x of shape .* has no elements along axis"):
                function(t, axis, keepdims)


def test_several_axes() -> None:
    x = values((2, 3, 4))
    for name in ("any", "all", "count_nonzero"):
        np.testing.assert_array_equal(
            getattr(et, name)(et.asarray(x), (0, -1)).numpy(), getattr(np, name)(x, axis=(0, 2))
        )


@pytest.mark.parametrize(("shape", "axis"), [a for a in AXES if a[1] is not None])
def test_gradients(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(5)
    x, g = rng.permutation(int(np.prod(shape))).reshape(shape).astype(float), rng.standard_normal(shape)
    expected = np.take_along_axis(g, np.argsort(np.argsort(x, axis), axis), axis)
    np.testing.assert_array_equal(et.sort_backward(et.asarray(g), et.asarray(x), axis).numpy(), expected)
    k = (shape[axis] + 1) // 2
    top = np.take(np.flip(g, axis), np.arange(k), axis)
    expected = np.where(np.argsort(np.argsort(x, axis), axis) >= shape[axis] - k, expected, 0.0)
    np.testing.assert_array_equal(
        et.top_k_backward(et.asarray(top), et.asarray(x), k, axis).numpy(), expected
    )


def test_gradient_of_sort_agrees_with_autograd() -> None:
    rng = np.random.default_rng(6)
    x, g = rng.standard_normal(17), rng.standard_normal(17)
    expected = autograd.grad(lambda x: anp.sum(anp.sort(x) * g))(x)
    np.testing.assert_array_equal(et.sort_backward(et.asarray(g), et.asarray(x)).numpy(), expected)
    flat = et.sort_backward(et.asarray(g[:12]), et.asarray(x[:12].reshape(3, 4)), axis=None)
    expected = autograd.grad(lambda x: anp.sum(anp.sort(x) * g[:12]))(x[:12])
    np.testing.assert_array_equal(flat.numpy(), expected.reshape(3, 4))


def test_ties_and_nan() -> None:
    g = et.tensor([1.0, 2.0, 3.0])
    assert et.sort_backward(g, et.tensor([5.0, 4.0, 5.0])).tolist() == [2.0, 1.0, 3.0]
    assert et.sort_backward(g, et.tensor([NAN, 4.0, 3.0])).tolist() == [3.0, 2.0, 1.0]
    assert et.top_k_backward(g, et.tensor([5.0, 4.0, 5.0]), 3).tolist() == [1.0, 3.0, 2.0]
    assert et.top_k_backward(g[:1], et.tensor([-0.0, 0.0]), 1).tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(et.top_k(et.tensor([1.0, NAN, 3.0]), 2).values.numpy(), [NAN, 3.0])
    assert et.top_k(et.tensor([5.0, 4.0, 5.0]), 2).indices.tolist() == [0, 2]
    np.testing.assert_array_equal(et.sort(et.tensor([NAN, 3.0, 1.0])).numpy(), [1.0, 3.0, NAN])
    assert (
        et.argmax(et.tensor([1.0, NAN, 3.0, NAN])).item() == et.argmin(et.tensor([1.0, NAN, 3.0])).item() == 1
    )
    assert et.any(et.tensor([NAN])).item() is et.all(et.tensor([NAN])).item() is True


def test_top_k_is_differentiated_through_its_values() -> None:
    x = et.tensor([3.0, 1.0, 4.0, 2.0], requires_grad=True)
    result = x.top_k(2)
    assert result.values.requires_grad
    assert not result.indices.requires_grad
    (result.values * et.tensor([10.0, 20.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [20.0, 0.0, 10.0, 0.0]
    taken = et.grad(lambda x: (x.take_along_axis(x.top_k(2).indices) ** 2).sum())(x.detach())
    assert taken.tolist() == [6.0, 0.0, 8.0, 0.0]
    second = et.hvp(lambda x: (x.top_k(2).values ** 3).sum(), x.detach(), et.ones(4))
    assert second.tolist() == [18.0, 0.0, 24.0, 0.0]
    assert et.top_k_backward((et.tensor([10.0, 20.0]), None), x.detach(), 2).tolist() == x.grad.tolist()
    assert et.top_k(et.tensor([3, 1, 2]), 2).values.tolist() == [3, 2]


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16, et.float32])
def test_gradients_keep_the_dtype(dtype: Any) -> None:
    x, g = et.tensor([3.0, 1.0, 2.0], dtype), et.tensor([0.1, 0.2, 0.3], dtype)
    found = et.sort_backward(g, x)
    assert found.dtype == dtype
    assert found.tolist() == g[np.array([2, 0, 1])].tolist()
    assert et.top_k_backward(g[:2], x, 2).dtype == dtype


ERRORS = [
    (lambda: et.sort(et.tensor(1.0)), ValueError, r"\[sort\] axis -1 is out of range for a tensor with 0 axes"),
    (lambda: et.sort(et.ones(3), axis="0"), TypeError, r"\[sort\] axis must be an int"),
    (lambda: et.sort("x"), TypeError, r"\[sort\] x must be a tensor"),
    (lambda: et.sort_backward(et.ones(2), et.ones(3)), ValueError, r"\[sort_backward\] grad_output has shape \(2,\)"),
    (lambda: et.sort_backward(et.ones(2), et.tensor([1, 2])), TypeError, r"\[sort_backward\] x has dtype int64"),
    (lambda: et.top_k(et.ones(3), 4), ValueError, r"\[top_k\] k must be between 0 and 3, the length of axis -1; got 4"),
    (lambda: et.top_k(et.ones(3), -1), ValueError, r"\[top_k\] k must be between 0 and 3"),
    (lambda: et.top_k(et.ones(3), 1.5), TypeError, r"\[top_k\] k must be an int"),
    (lambda: et.top_k(et.ones(3), 1, 1), ValueError, r"\[top_k\] axis 1 is out of range"),
    (lambda: et.top_k_backward(et.ones(2), et.ones(3), 1), ValueError, r"\[top_k_backward\] grad_output\[0\] has shape \(2,\) but .* \(1,\)"),
    (lambda: et.top_k_backward(et.ones(1), et.tensor([1, 2]), 1), TypeError, r"\[top_k_backward\] x has dtype int64"),
    (lambda: et.argsort(et.ones(3), 1), ValueError, r"\[argsort\] axis 1 is out of range"),
    (lambda: et.argmax(et.ones(3), (0,)), TypeError, r"\[argmax\] axis must be an int"),
    (lambda: et.argmin(et.ones(3), keepdims=2), TypeError, r"\[argmin\] keepdims must be True or False"),
    (lambda: et.any(et.ones(3), (0, 0)), ValueError, r"\[any\] axis \(0, 0\) names an axis twice"),
    (lambda: et.all(et.ones(3), 1), ValueError, r"\[all\] axis 1 is out of range"),
    (lambda: et.count_nonzero(None), TypeError, r"\[count_nonzero\] x must be a tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
