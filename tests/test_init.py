"""Initialisers: the spread the papers ask for, reproducible, named in their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import extensor as et

SHAPE = (64, 32, 3, 3)
FAN_IN, FAN_OUT = 32 * 9, 64 * 9
SPREADS = [
    ("xavier_uniform", {}, math.sqrt(2 / (FAN_IN + FAN_OUT)), stats.uniform),
    ("xavier_uniform", {"gain": 3.0}, 3 * math.sqrt(2 / (FAN_IN + FAN_OUT)), stats.uniform),
    ("xavier_normal", {"gain": 2.0}, 2 * math.sqrt(2 / (FAN_IN + FAN_OUT)), stats.norm),
    ("kaiming_uniform", {}, math.sqrt(2 / FAN_IN), stats.uniform),
    ("kaiming_uniform", {"a": math.sqrt(5)}, math.sqrt(1 / 3 / FAN_IN), stats.uniform),
    (
        "kaiming_uniform",
        {"mode": "fan_out", "nonlinearity": "tanh"},
        5 / 3 / math.sqrt(FAN_OUT),
        stats.uniform,
    ),
    ("kaiming_normal", {"nonlinearity": "relu"}, math.sqrt(2 / FAN_IN), stats.norm),
    ("kaiming_normal", {"mode": "fan_out", "nonlinearity": "linear"}, 1 / math.sqrt(FAN_OUT), stats.norm),
    ("lecun_normal", {}, 1 / math.sqrt(FAN_IN), stats.norm),
]


@pytest.mark.parametrize(("name", "options", "std", "family"), SPREADS)
def test_spread(name, options, std, family):
    function = getattr(et.init, name)
    w = function(SHAPE, rng=0, **options)
    assert (w.shape, w.dtype) == (SHAPE, et.float32)
    law = (
        stats.norm(0, std)
        if family is stats.norm
        else stats.uniform(-std * math.sqrt(3), 2 * std * math.sqrt(3))
    )
    assert stats.kstest(w.numpy().ravel().astype(np.float64), law.cdf).pvalue > 0.01
    np.testing.assert_array_equal(w.numpy(), function(SHAPE, rng=0, **options).numpy())
    assert function(SHAPE, rng=1, **options).tolist() != w.tolist()
    assert function((2, 3), rng=0, dtype=et.bfloat16, **options).dtype == et.bfloat16
    assert function((0, 3), rng=0, **options).shape == (0, 3)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (4, 2, 3), (7, 1, 2)])
def test_orthogonal(shape):
    w = et.init.orthogonal(shape, gain=2.0, rng=0, dtype=et.float64).numpy().reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4.0 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_is_uniform():
    """Without the signs of R, the first element would never be positive (or never negative)."""
    corners = [et.init.orthogonal((2, 2), rng=seed).numpy()[0, 0] for seed in range(40)]
    assert 5 < sum(c > 0 for c in corners) < 35


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0, 1, -2, 2), (1, 0.02, 0.96, 1.04), (0, 1, 1, 4), (0, 1, 8, 9), (0, 1, 30, math.inf), (0, 1, -math.inf, -5), (0, 1, -math.inf, math.inf), (2, 3, -100, 2)],
)  # fmt: skip
def test_truncated_normal(mean, std, a, b):
    x = et.init.truncated_normal((5000,), mean, std, a, b, rng=0, dtype=et.float64).numpy()
    assert x.min() >= a
    assert x.max() <= b
    law = stats.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
    assert stats.kstest(x, law.cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("mean", "std", "a", "b", "nearest"),
    [(1e300, 1.0, -2, 2, 2), (-1e300, 1e-300, -2, 2, -2), (0, 1e-300, 1, 2, 1), (0, 5e-324, -math.inf, -1, -1), (0, 1, 1e200, math.inf, 1e200), (0, 1, 1e8, math.inf, 1e8)],
)  # fmt: skip
def test_truncated_normal_of_a_tail_that_is_one_number(mean, std, a, b, nearest):
    x = et.init.truncated_normal((3, 4), mean, std, a, b, rng=0, dtype=et.float64)
    np.testing.assert_allclose(x.numpy(), np.full((3, 4), float(nearest)), rtol=1e-14)


def test_plain_ones():
    assert et.init.zeros((2,)).tolist() == [0.0, 0.0]
    assert et.init.ones((2,), dtype=et.float16).tolist() == [1.0, 1.0]
    assert et.init.constant((2,), 0.5).tolist() == [0.5, 0.5]
    assert et.init.constant((2,), 3).dtype == et.float32
    np.testing.assert_array_equal(
        et.init.uniform((3,), -2, 2, rng=4).numpy(), et.random.uniform(4, (3,), -2, 2).numpy()
    )
    np.testing.assert_array_equal(
        et.init.normal((3,), 1, 2, rng=4).numpy(), et.random.normal(4, (3,), 1, 2).numpy()
    )


@pytest.mark.parametrize(
    ("nonlinearity", "gain"),
    [("linear", 1), ("sigmoid", 1), ("conv2d", 1), ("tanh", 5 / 3), ("relu", math.sqrt(2)), ("selu", 0.75), ("leaky_relu", math.sqrt(2 / 1.0001))],
)  # fmt: skip
def test_gains(nonlinearity, gain):
    assert et.init.calculate_gain(nonlinearity) == pytest.approx(gain, rel=1e-15)


REFUSED = [
    ("xavier_uniform", ((3,),), {"rng": 0}, ValueError, "shape"),
    ("xavier_normal", ((3, 4), "a"), {"rng": 0}, TypeError, "gain"),
    ("kaiming_uniform", ((3, 4), "fan"), {"rng": 0}, ValueError, "mode"),
    ("kaiming_normal", ((3, 4),), {"rng": 0, "nonlinearity": "step"}, ValueError, "nonlinearity"),
    ("kaiming_normal", ((3, 4),), {"rng": None}, TypeError, "rng"),
    ("lecun_normal", ((3, 4),), {"rng": 0, "dtype": "int8"}, TypeError, "dtype"),
    ("orthogonal", ((3,),), {"rng": 0}, ValueError, "shape"),
    ("truncated_normal", ((3,),), {"rng": 0, "std": 0}, ValueError, "std"),
    ("truncated_normal", ((3,),), {"rng": 0, "a": 2, "b": -2}, ValueError, "below b"),
    ("uniform", ((3,), 2, 1), {"rng": 0}, ValueError, "below low"),
    ("normal", ((3,), 0, -1), {"rng": 0}, ValueError, "std"),
    ("constant", ((3,), "a"), {}, TypeError, "fill_value"),
    ("zeros", (-1,), {}, ValueError, "shape"),
    ("ones", (2,), {"dtype": "text"}, TypeError, "dtype"),
    ("calculate_gain", ("step",), {}, ValueError, "nonlinearity"),
]


@pytest.mark.parametrize(("name", "arguments", "options", "error", "text"), REFUSED)
def test_refused(name, arguments, options, error, text):
    with pytest.raises(error, match=rf"^\[{name}\].*{text}"):
        getattr(et.init, name)(*arguments, **options)
