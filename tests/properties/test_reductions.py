"""Reductions over any axes: NumPy's values, and gradients that are exact adjoints or share ties equally."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import extensor as et

WHOLE = st.integers(-8, 8).map(float)
Axis = int | tuple[int, ...] | None


@st.composite
def reductions(draw: st.DrawFn, min_side: int = 0) -> tuple[np.ndarray, Axis, bool]:
    """An array of small whole numbers, axes of it (of either sign, in any order), and keepdims."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=min_side, max_side=4))
    x = draw(hnp.arrays(np.float64, shape, elements=WHOLE))
    axes: st.SearchStrategy[Axis] = st.none()
    if x.ndim:
        one = st.integers(-x.ndim, x.ndim - 1)
        axes |= one | st.lists(one, unique_by=lambda a: a % x.ndim, max_size=x.ndim).map(tuple)
    return x, draw(axes), draw(st.booleans())


def spread(grad: np.ndarray, x: np.ndarray, axis: Axis, keepdims: bool) -> np.ndarray:
    """A reduced array against the shape it was reduced from."""
    if not keepdims:
        grad = grad.reshape(x.sum(axis=axis, keepdims=True).shape)
    return np.broadcast_to(grad, x.shape)


def upstream(x: np.ndarray, axis: Axis, keepdims: bool) -> np.ndarray:
    shape = x.sum(axis=axis, keepdims=keepdims).shape
    return np.random.default_rng(x.size).integers(-8, 9, shape).astype(np.float64)


@given(reductions())
def test_sum_and_its_adjoint(case: tuple[np.ndarray, Axis, bool]) -> None:
    x, axis, keepdims = case
    np.testing.assert_array_equal(et.sum(x, axis, keepdims).numpy(), x.sum(axis=axis, keepdims=keepdims))
    grad = upstream(x, axis, keepdims)
    for source in (et.tensor(x), x.shape):
        grad_x = et.sum_backward(et.tensor(grad), source, axis, keepdims)
        np.testing.assert_array_equal(grad_x.numpy(), spread(grad, x, axis, keepdims))


@given(reductions(min_side=1))
def test_mean_is_the_sum_over_the_count(case: tuple[np.ndarray, Axis, bool]) -> None:
    x, axis, keepdims = case
    np.testing.assert_allclose(
        et.mean(x, axis, keepdims).numpy(), x.mean(axis=axis, keepdims=keepdims), rtol=1e-15
    )
    grad = upstream(x, axis, keepdims)
    count = x.size / grad.size
    grad_x = et.mean_backward(et.tensor(grad), et.tensor(x), axis, keepdims)
    np.testing.assert_allclose(grad_x.numpy(), spread(grad, x, axis, keepdims) / count, rtol=1e-15)


@given(reductions(min_side=1), st.sampled_from(["max", "min"]))
def test_extremes_share_ties_equally(case: tuple[np.ndarray, Axis, bool], name: str) -> None:
    x, axis, keepdims = case
    expected = getattr(x, name)(axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(getattr(et, name)(x, axis, keepdims).numpy(), expected)
    np.testing.assert_array_equal(getattr(et, f"{name}_reduce")(x, axis, keepdims).numpy(), expected)
    grad = upstream(x, axis, keepdims)
    winners = x == spread(expected, x, axis, keepdims)
    count = winners.sum(axis=axis, keepdims=keepdims)
    grad_x = getattr(et, f"{name}_backward")(et.tensor(grad), et.tensor(x), axis, keepdims).numpy()
    np.testing.assert_allclose(grad_x, winners * spread(grad / count, x, axis, keepdims), rtol=1e-15)


@given(reductions(min_side=1))
def test_spread_of_values(case: tuple[np.ndarray, Axis, bool]) -> None:
    x, axis, keepdims = case
    variance = x.var(axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(
        et.variance(x, axis, keepdims=keepdims).numpy(), variance, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        et.std(x, axis, keepdims=keepdims).numpy(), np.sqrt(variance), rtol=1e-12, atol=1e-7
    )
    shifted = et.variance(x + 1000, axis, keepdims=keepdims).numpy()
    np.testing.assert_allclose(shifted, variance, rtol=1e-9, atol=1e-9)


@given(reductions())
def test_product_is_right_with_zeros(case: tuple[np.ndarray, Axis, bool]) -> None:
    x, axis, keepdims = case
    x = np.asarray(np.clip(x, -2, 2))  # products stay exact
    np.testing.assert_array_equal(et.prod(x, axis, keepdims).numpy(), x.prod(axis=axis, keepdims=keepdims))
    grad = upstream(x, axis, keepdims)
    grad_x = et.prod_backward(et.tensor(grad), et.tensor(x), axis, keepdims).numpy()
    for place in np.ndindex(
        x.shape
    ):  # the product is linear in each element: its slope is f(x_i = 1) - f(x_i = 0)
        one, zero = x.copy(), x.copy()
        one[place], zero[place] = 1, 0
        slope = one.prod(axis=axis, keepdims=keepdims) - zero.prod(axis=axis, keepdims=keepdims)
        assert grad_x[place] == (grad * slope).sum()


@given(reductions(min_side=1))
def test_logsumexp_moves_with_its_argument(case: tuple[np.ndarray, Axis, bool]) -> None:
    x, axis, keepdims = case
    plain = np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(et.logsumexp(x, axis, keepdims).numpy(), plain, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(et.logsumexp(x + 5000, axis, keepdims).numpy(), plain + 5000, rtol=1e-13)
    grad_x = et.logsumexp_backward(
        et.ones(plain.shape, et.float64), et.tensor(x), axis=axis, keepdims=keepdims
    )
    np.testing.assert_allclose(grad_x.numpy(), np.exp(x - spread(plain, x, axis, keepdims)), rtol=1e-12)


@given(reductions())
def test_cumsum_and_its_adjoint(case: tuple[np.ndarray, Axis, bool]) -> None:
    x, axis, _ = case
    assume(isinstance(axis, int))
    assert isinstance(axis, int)
    np.testing.assert_array_equal(et.cumsum(x, axis).numpy(), x.cumsum(axis=axis))
    grad = np.random.default_rng(0).integers(-8, 9, x.shape).astype(np.float64)
    grad_x = et.cumsum_backward(et.tensor(grad), et.tensor(x), axis=axis).numpy()
    assert (x.cumsum(axis=axis) * grad).sum() == (x * grad_x).sum()


@given(reductions(), st.integers(0, 3))
def test_an_axis_named_twice_or_out_of_range_is_refused(
    case: tuple[np.ndarray, Axis, bool], extra: int
) -> None:
    x, _, keepdims = case
    for axis in [x.ndim + extra, -x.ndim - 1 - extra, *([(0, -x.ndim)] if x.ndim else [])]:
        with pytest.raises(ValueError, match=r"^\[sum\] axis"):
            et.sum(x, axis, keepdims)
