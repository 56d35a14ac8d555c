"""Special functions, scans, grids, sets, quantiles, scattering and distances against NumPy and SciPy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.special

import extensor as et
from extensor.ops._later import FAMILY_OF

RNG = np.random.default_rng(7)
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("family", sorted(set(FAMILY_OF.values())))
def test_the_names_of_later_families_are_known(family):
    names = importlib.import_module(f"extensor.ops.{family}").__all__
    assert sorted(names) == sorted(name for name, home in FAMILY_OF.items() if home == family)


SPECIAL = {
    "asinh": (np.arcsinh, np.linspace(-50, 50, 301)), "acosh": (np.arccosh, np.linspace(1, 50, 301)),
    "atanh": (np.arctanh, np.linspace(-0.99, 0.99, 301)), "lgamma": (scipy.special.gammaln, np.linspace(0.01, 60, 601)),
    "digamma": (scipy.special.digamma, np.linspace(-7.9, 60, 601)), "erfc": (scipy.special.erfc, np.linspace(-6, 26, 601)),
    "erfinv": (scipy.special.erfinv, np.concatenate([np.linspace(-0.999, 0.999, 301), 1 - 10.0 ** -np.arange(4, 16), 10.0 ** -np.arange(1, 30)])),
    "i0": (scipy.special.i0, np.linspace(-600, 600, 601)), "i1": (scipy.special.i1, np.linspace(-600, 600, 601)),
    "sinc": (np.sinc, np.linspace(-5, 5, 301)),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    reference, x = SPECIAL[name]
    np.testing.assert_allclose(getattr(et, name)(et.asarray(x)).numpy(), reference(x), rtol=2e-12, atol=1e-15)
    single = getattr(et, name)(et.asarray(x.astype(np.float32)))
    assert single.dtype == et.float32
    with np.errstate(over="ignore"):
        expected = reference(x.astype(np.float32).astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(single.numpy(), expected, rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("n", range(6))
def test_polygamma(n):
    x = np.linspace(0.05, 40, 401)
    np.testing.assert_allclose(
        et.polygamma(n, et.asarray(x)).numpy(), scipy.special.polygamma(n, x), rtol=1e-11, atol=1e-13
    )


def test_lgamma_near_its_zeros_is_exact():
    """log gamma(1 + t) is -euler t for small t; a difference of large logarithms would be noise."""
    t = 2.0**-40
    assert et.lgamma(et.tensor(1 + t, et.float64)).item() == pytest.approx(
        -np.euler_gamma * t, rel=1e-11, abs=0
    )
    assert et.lgamma(et.tensor(2 + t, et.float64)).item() == pytest.approx(
        (1 - np.euler_gamma) * t, rel=1e-11, abs=0
    )


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "copysign", "heaviside", "nextafter"])
def test_two_operands(name):
    a, b = RNG.normal(size=(3, 1)), RNG.normal(size=4)
    np.testing.assert_allclose(
        getattr(et, name)(et.asarray(a), et.asarray(b)).numpy(), getattr(np, name)(a, b), rtol=1e-14
    )


def test_atan2():
    a, b = np.array([0.0, -0.0, 1.0, -1.0, 0.0]), np.array([-1.0, -1.0, 0.0, 0.0, 1.0])
    assert np.array_equal(et.atan2(et.asarray(a), et.asarray(b)).numpy(), np.arctan2(a, b))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans(axis):
    x = RNG.normal(size=(4, 5))
    np.testing.assert_allclose(et.cumprod(et.asarray(x), axis).numpy(), np.cumprod(x, axis))
    np.testing.assert_allclose(
        et.logcumsumexp(et.asarray(x), axis).numpy(), np.log(np.cumsum(np.exp(x), axis)), rtol=1e-12
    )
    for name, extreme in (("cummax", np.maximum), ("cummin", np.minimum)):
        values, indices = getattr(et, name)(et.asarray(x), axis)
        assert np.array_equal(values.numpy(), extreme.accumulate(x, axis))
        assert np.array_equal(np.take_along_axis(x, indices.numpy(), axis), values.numpy())
    for n in (0, 1, 2):
        np.testing.assert_allclose(et.diff(et.asarray(x), n, axis).numpy(), np.diff(x, n, axis))


def test_cummax_keeps_a_nan_and_the_last_of_equals():
    values, indices = et.cummax(et.tensor([1.0, 1.0, NAN, 3.0]))
    assert indices.tolist() == [0, 1, 2, 2]
    assert np.isnan(values.numpy()[2:]).all()


def test_logcumsumexp_of_large_numbers():
    x = np.array([1000.0, 1001.0, -INF, 999.0])
    np.testing.assert_allclose(et.logcumsumexp(et.asarray(x)).numpy(), np.logaddexp.accumulate(x))
    assert np.isfinite(et.logcumsumexp_backward(et.ones(4, et.float64), et.asarray(x)).numpy()).all()


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (2, 3)), ((), ())])
def test_stacks(name, shapes):
    arrays = [RNG.normal(size=s) for s in shapes]
    found = getattr(et, name)([et.asarray(a) for a in arrays]).numpy()
    assert np.array_equal(found, getattr(np, name)(arrays))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("lengths", [(3,), (2, 3), (2, 3, 4), (0, 2)])
def test_meshgrid(indexing, lengths):
    arrays = [RNG.normal(size=n) for n in lengths]
    found = et.meshgrid(*map(et.asarray, arrays), indexing=indexing)
    for ours, theirs in zip(found, np.meshgrid(*arrays, indexing=indexing), strict=True):
        assert np.array_equal(ours.numpy(), theirs)


def test_sets_and_positions():
    x = np.array([[3, 1, 2], [1, 3, 3]])
    values, indices, inverse, counts = np.unique(x, True, True, True)
    found = et.unique_all(et.asarray(x))
    for ours, theirs in zip(found, (values, indices, inverse.reshape(x.shape), counts), strict=True):
        assert np.array_equal(ours.numpy(), theirs)
    assert et.unique_values(et.tensor([NAN, NAN])).size == 2
    for ours, theirs in zip(et.nonzero(et.asarray(x - 1)), np.nonzero(x - 1), strict=True):
        assert np.array_equal(ours.numpy(), theirs)
    assert np.array_equal(et.isin(et.asarray(x), [1, 2]).numpy(), np.isin(x, [1, 2]))
    a = np.sort(RNG.normal(size=9))
    for side in ("left", "right"):
        assert np.array_equal(
            et.searchsorted(et.asarray(a), et.asarray(a[::2]), side).numpy(), np.searchsorted(a, a[::2], side)
        )
    order = RNG.permutation(9)
    shuffled = np.empty(9)
    shuffled[order] = a
    assert np.array_equal(
        et.searchsorted(et.asarray(shuffled), et.asarray(a), sorter=order).numpy(), np.arange(9)
    )


def test_counts():
    x = RNG.integers(0, 6, 50)
    assert np.array_equal(et.bincount(et.asarray(x), minlength=9).numpy(), np.bincount(x, minlength=9))
    w = RNG.normal(size=50)
    np.testing.assert_allclose(et.bincount(et.asarray(x), et.asarray(w)).numpy(), np.bincount(x, w))
    counts, edges = et.histogram(et.asarray(w), 7, (-1, 2))
    expected = np.histogram(w, 7, (-1, 2))
    assert np.array_equal(counts.numpy(), expected[0])
    np.testing.assert_allclose(edges.numpy(), expected[1])


@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, [0.25, 0.5]])
def test_quantile(axis, q):
    x = RNG.normal(size=(3, 4, 5))
    np.testing.assert_allclose(
        et.quantile(et.asarray(x), q, axis, True).numpy(),
        np.quantile(x, q, axis, keepdims=True),
        rtol=1e-12,
    )
    np.testing.assert_allclose(et.median(et.asarray(x), axis).numpy(), np.median(x, axis), rtol=1e-12)


def test_interp():
    x, xp, fp = np.linspace(-1, 4, 50), np.array([0.0, 1.0, 3.0]), np.array([2.0, -1.0, 5.0])
    np.testing.assert_allclose(
        et.interp(et.asarray(x), et.asarray(xp), et.asarray(fp)).numpy(), np.interp(x, xp, fp)
    )


def test_gather_and_scatter_follow_pytorch():
    """The examples of PyTorch's documentation."""
    x = et.tensor([[1, 2], [3, 4]])
    assert et.gather(x, 1, et.tensor([[0, 0], [1, 0]])).tolist() == [[1, 1], [4, 3]]
    source = et.arange(1, 11).reshape((2, 5))
    made = et.scatter(et.zeros((3, 5), et.int64), 0, et.tensor([[0, 1, 2, 0]]), source)
    assert made.tolist() == [[1, 0, 0, 4, 0], [0, 2, 0, 0, 0], [0, 0, 3, 0, 0]]
    made = et.scatter(et.zeros((3, 5), et.int64), 1, et.tensor([[0, 1, 2], [0, 1, 4]]), source)
    assert made.tolist() == [[1, 2, 3, 0, 0], [6, 7, 0, 0, 8], [0, 0, 0, 0, 0]]
    added = et.scatter_add(
        et.zeros((3, 5)), 0, et.tensor([[0, 1, 2, 0, 0], [0, 1, 2, 2, 2]]), et.ones((2, 5))
    )
    assert added.tolist() == [[2, 0, 0, 1, 1], [0, 2, 0, 0, 0], [0, 0, 2, 1, 1]]
    with pytest.raises(IndexError, match=r"\[gather\] index"):
        et.gather(x, 0, et.tensor([[2, 0]]))


@pytest.mark.parametrize(("p", "metric"), [(2, "euclidean"), (1, "cityblock"), (INF, "chebyshev")])
def test_cdist(p, metric):
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    np.testing.assert_allclose(
        et.cdist(et.asarray(a), et.asarray(b), p).numpy(),
        scipy.spatial.distance.cdist(a, b, metric),
        rtol=1e-12,
    )


def test_cosine_similarity():
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    expected = [1 - scipy.spatial.distance.cosine(u, v) for u, v in zip(a, b)]
    np.testing.assert_allclose(
        et.cosine_similarity(et.asarray(a), et.asarray(b)).numpy(), expected, rtol=1e-12
    )


@pytest.mark.parametrize("name", ["and", "or", "xor", "left_shift", "right_shift"])
def test_bits(name):
    a, b = RNG.integers(0, 100, 9), RNG.integers(0, 9, 9)
    theirs = getattr(np, name if "shift" in name else f"bitwise_{name}")(a, b)
    assert np.array_equal(getattr(et, f"bitwise_{name}")(et.asarray(a), et.asarray(b)).numpy(), theirs)
    with pytest.raises(TypeError, match=rf"\[bitwise_{name}\] a must be integer"):
        getattr(et, f"bitwise_{name}")(et.ones(2), et.ones(2))


MOMENTS = {
    "exponential": (lambda r: et.random.exponential(r, 40000, 2.0), 2.0, 4.0), "laplace": (lambda r: et.random.laplace(r, 40000, 1.0, 2.0), 1.0, 8.0),
    "gumbel": (lambda r: et.random.gumbel(r, 40000), np.euler_gamma, np.pi**2 / 6), "gamma": (lambda r: et.random.gamma(r, 3.0, 40000, 2.0), 6.0, 12.0),
    "beta": (lambda r: et.random.beta(r, 2.0, 3.0, 40000), 0.4, 0.04), "poisson": (lambda r: et.random.poisson(r, 4.0, 40000), 4.0, 4.0),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_distributions(name):
    draw, mean, variance = MOMENTS[name]
    x = draw(0).numpy().astype(np.float64)
    assert x.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / x.size))
    assert x.var() == pytest.approx(variance, rel=0.1)
    assert np.array_equal(draw(0).numpy(), draw(0).numpy())
    assert not np.array_equal(draw(0).numpy(), draw(1).numpy())


def test_categorical_and_choice():
    logits = np.log(np.array([0.1, 0.2, 0.7]))
    found = et.random.categorical(0, et.asarray(logits), 20000).numpy()
    np.testing.assert_allclose(np.bincount(found) / 20000, [0.1, 0.2, 0.7], atol=0.02)
    chosen = et.random.choice(0, 3, 20000, p=et.tensor([0.1, 0.2, 0.7])).numpy()
    np.testing.assert_allclose(np.bincount(chosen) / 20000, [0.1, 0.2, 0.7], atol=0.02)
    assert sorted(et.random.choice(0, 10, 10, replace=False).tolist()) == list(range(10))
    x = et.arange(12).reshape((3, 4))
    assert sorted(et.random.shuffle(1, x, 1)[0].tolist()) == [0, 1, 2, 3]


def test_multivariate_normal():
    covariance = np.array([[2.0, 0.6], [0.6, 1.0]])
    x = et.random.multivariate_normal(0, et.tensor([1.0, -1.0]), et.asarray(covariance), 40000).numpy()
    np.testing.assert_allclose(x.mean(0), [1.0, -1.0], atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), covariance, atol=0.06)


def no_memory(*arguments: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("name", ["bincount", "histogram"])
def test_a_result_that_finds_no_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"extensor.ops.searching.kernels.{name}", no_memory)
    with pytest.raises(MemoryError, match=rf"^\[{name}\] out of memory"):
        getattr(et, name)(et.tensor([1, 2, 3]))
