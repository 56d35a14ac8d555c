"""Random tensors: reproducible, explicit, of the right distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import extensor as et

DRAWS = {
    "normal": lambda rng, **k: et.random.normal(rng, (3, 4), **k),
    "uniform": lambda rng, **k: et.random.uniform(rng, (3, 4), **k),
    "integers": lambda rng, **k: et.random.integers(rng, -5, 100, (3, 4), **k),
    "bernoulli": lambda rng, **k: et.random.bernoulli(rng, 0.5, (12,), **k),
    "permutation": lambda rng: et.random.permutation(rng, 12),
}
# the first numbers of seed 7, the same on every platform
FIRST = {
    "normal": [0.0012301534, 0.29874554, -0.27413785],
    "uniform": [0.6250955, 0.8972138, 0.77568567],
    "integers": [94, 60, 66],
    "bernoulli": [False, False, False],
    "permutation": [4, 6, 10],
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_bits(name):
    draw = DRAWS[name]
    first = draw(7)
    np.testing.assert_array_equal(first.numpy(), draw(7).numpy())
    np.testing.assert_array_equal(first.numpy(), draw(et.random.generator(7)).numpy())
    assert first.tolist() != draw(8).tolist()
    given = np.array(FIRST[name], first.dtype)
    np.testing.assert_array_equal(first.numpy().ravel()[:3], given)


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_moves_on(name):
    rng = et.random.generator(0)
    assert DRAWS[name](rng).tolist() != DRAWS[name](rng).tolist()


@pytest.mark.parametrize("name", ["normal", "uniform"])
@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16, et.float32])
def test_another_dtype_rounds_the_same_numbers(name, dtype):
    exact = DRAWS[name](3, dtype=et.float64).numpy()
    ours = DRAWS[name](3, dtype=dtype)
    assert ours.dtype == dtype
    np.testing.assert_array_equal(ours.numpy(), exact.astype(dtype))


@pytest.mark.parametrize(
    ("sample", "distribution"),
    [
        (et.random.normal(0, 20000, 2.0, 3.0), stats.norm(2.0, 3.0)),
        (et.random.uniform(0, 20000, -1.0, 4.0), stats.uniform(-1.0, 5.0)),
    ],
)
def test_distribution(sample, distribution):
    assert stats.kstest(sample.numpy(), distribution.cdf).pvalue > 0.01


def test_discrete_distributions():
    counts = np.bincount(et.random.integers(0, 0, 10, 20000).numpy(), minlength=10)
    assert stats.chisquare(counts).pvalue > 0.01
    assert abs(et.random.bernoulli(0, 0.3, 20000).numpy().mean() - 0.3) < 0.01
    rows = et.random.bernoulli(0, et.tensor([[0.0], [1.0]]), (2, 50)).numpy()
    assert not rows[0].any()
    assert rows[1].all()
    assert sorted(et.random.permutation(0, 100).tolist()) == list(range(100))


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16, et.float32])
def test_uniform_never_reaches_its_end(dtype):
    x = et.random.uniform(0, 200000, 1.0, 1.25, dtype=dtype).numpy().astype(np.float64)
    assert x.min() >= 1.0
    assert x.max() < 1.25


def test_shapes_and_dtypes():
    assert et.random.normal(0, ()).shape == et.random.uniform(0, ()).shape == ()
    assert et.random.uniform(0, 3, 2.0, 2.0).tolist() == [2.0, 2.0, 2.0]
    assert et.random.integers(0, 0, 2**64, (3,), dtype=et.uint64).dtype == et.uint64
    assert et.random.integers(0, -128, 128, (100,), dtype=et.int8).dtype == et.int8
    assert et.random.bernoulli(0, 1, 3, dtype=et.float32).tolist() == [1.0, 1.0, 1.0]
    assert et.random.permutation(0, 0).shape == (0,)


REFUSED = [
    ("normal", ("a", 3), TypeError, "rng"),
    ("normal", (True, 3), TypeError, "rng"),
    ("normal", (-1, 3), ValueError, "rng"),
    ("normal", (0, -3), ValueError, "shape"),
    ("normal", (0, 3, 0.0, -1.0), ValueError, "std"),
    ("normal", (0, 3, float("nan")), ValueError, "mean"),
    ("normal", (0, 3, 0.0, 1.0, "int32"), TypeError, "dtype"),
    ("normal", (0, (2**40, 2**20)), ValueError, "cannot be made"),
    ("uniform", (0, 3, 2.0, 1.0), ValueError, "below low"),
    ("integers", (0, 3, 3, 2), ValueError, "low < high"),
    ("integers", (0, 0, 300, 2, "int8"), ValueError, "int8"),
    ("integers", (0, 0, 3, 2, "float32"), TypeError, "dtype"),
    ("integers", (0, 0.5, 3, 2), TypeError, "low"),
    ("bernoulli", (0, 1.5, 2), ValueError, "between 0 and 1"),
    ("bernoulli", (0, float("nan"), 2), ValueError, "between 0 and 1"),
    ("bernoulli", (0, np.zeros(3), 2), ValueError, "broadcast"),
    ("bernoulli", (0, "a", 2), TypeError, "p"),
    ("permutation", (0, -1), ValueError, "n"),
    ("generator", (None,), TypeError, "rng"),
]


@pytest.mark.parametrize(("name", "arguments", "error", "text"), REFUSED)
def test_refused(name, arguments, error, text):
    with pytest.raises(error, match=rf"^\[{name}\].*{text}"):
        getattr(et.random, name)(*arguments)


def test_a_choice_that_finds_no_memory() -> None:
    with pytest.raises(MemoryError, match=r"^\[choice\] Unable to allocate"):
        et.random.choice(0, et.tensor([1, 2, 3]), (2**20, 2**20))
