"""Incomplete functions against SciPy, sums of shifted products against NumPy, and sorting downwards."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import extensor as et


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma(name: str) -> None:
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(-2, 3, 1000)
    x = a * 10 ** rng.uniform(-1, 1, 1000)
    expected = getattr(special, name)(a, x)
    found = getattr(et, name)(et.tensor(a), et.tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-290)
    edges = (
        np.array([0, 0, 1, 1, -1, np.inf, 2, np.nan, 2.0]),
        np.array([0, 1, 0, np.inf, 1, 1, np.nan, 1, -1.0]),
    )
    found = getattr(et, name)(*map(et.tensor, edges)).numpy()
    np.testing.assert_array_equal(found, getattr(special, name)(*edges))
    narrow = getattr(et, name)(et.tensor([2.0]), et.tensor([[1.0], [3.0]]))
    assert narrow.dtype == np.float32
    assert narrow.shape == (2, 1)


def test_incomplete_beta() -> None:
    rng = np.random.default_rng(1)
    a, b = 10 ** rng.uniform(-2, 3, (2, 1000))
    x = rng.uniform(0, 1, 1000)
    found = et.betainc(et.tensor(a), et.tensor(b), et.tensor(x)).numpy()
    np.testing.assert_allclose(found, special.betainc(a, b, x), rtol=2e-11, atol=1e-290)
    ends = et.betainc(et.tensor(2.0), et.tensor(3.0), et.tensor([0.0, 1.0, -0.5, 1.5, np.nan])).numpy()
    np.testing.assert_array_equal(ends, np.array([0, 1, np.nan, np.nan, np.nan], np.float32))


def test_shape_parameters_have_no_gradient() -> None:
    a, x = et.tensor([2.0], requires_grad=True), et.tensor([1.0])
    with pytest.raises(NotImplementedError, match=r"\[gammainc\] has no gradient for a"):
        et.gammainc(a, x)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_sums_of_shifted_products(mode: str) -> None:
    rng = np.random.default_rng(2)
    for n in range(1, 7):
        for m in range(1, 7):
            a, v = rng.standard_normal(n), rng.standard_normal(m)
            np.testing.assert_allclose(
                et.convolve(et.tensor(a), et.tensor(v), mode).numpy(),
                np.convolve(a, v, mode),
                rtol=1e-12,
                atol=1e-13,
                strict=True,
            )  # type: ignore[call-overload]
            np.testing.assert_allclose(
                et.correlate(et.tensor(a), et.tensor(v), mode).numpy(),
                np.correlate(a, v, mode),
                rtol=1e-12,
                atol=1e-13,
                strict=True,
            )  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"\[convolve\] mode must be"):
        et.convolve(et.ones(2), et.ones(2), "half")
    with pytest.raises(ValueError, match="a must have one axis and at least one element"):
        et.correlate(et.ones((2, 2)), et.ones(2))


def test_sorting_downwards() -> None:
    x = et.tensor([[2.0, 3.0, 2.0, np.nan], [1.0, 1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(et.sort(x, descending=True).numpy(), [[np.nan, 3, 2, 2], [1, 1, 1, 0]])
    assert et.argsort(x, descending=True).tolist() == [[3, 1, 0, 2], [0, 1, 3, 2]]
    assert et.argsort(x[1], None, descending=True, stable=False).tolist() == [0, 1, 3, 2]
    np.testing.assert_array_equal(et.sort(x, 0, descending=True).numpy(), [[2, 3, 2, np.nan], [1, 1, 0, 1]])
    assert et.sort(et.tensor([3, 1, 2]), None, True).tolist() == [3, 2, 1]
    weights = et.tensor([1.0, 10.0, 100.0, 1000.0])
    grad = et.grad(lambda t: (et.sort(t, descending=True) * weights).sum())(x[1])
    assert grad.tolist() == [1.0, 10.0, 1000.0, 100.0]  # of equal elements the first comes first
    with pytest.raises(TypeError, match=r"\[sort\] descending must be True or False"):
        et.sort(x, descending=2)
