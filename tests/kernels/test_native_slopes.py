"""Gradients where float32 has little to spare: beside their roots, far to the left, at the ends of the range."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from extensor.kernels import NATIVE

pytestmark = pytest.mark.skipif("silu" not in NATIVE, reason="the native module is not built")

Wide = np.ndarray


def sigmoid(x: Wide) -> Wide:
    return 1 / (1 + np.exp(-x))


def gate(x: Wide) -> Wide:
    return 2 * np.sqrt(2 / np.longdouble(math.pi)) * (x + np.longdouble("0.044715") * x**3)


def gate_slope(x: Wide) -> Wide:
    return 2 * np.sqrt(2 / np.longdouble(math.pi)) * (1 + 3 * np.longdouble("0.044715") * x**2)


def silu_slope(x: Wide) -> Wide:
    return sigmoid(x) * sigmoid(-x) * (1 + np.exp(x) + x)


def gelu_tanh_slope(x: Wide) -> Wide:
    return sigmoid(gate(x)) * sigmoid(-gate(x)) * (1 + np.exp(gate(x)) + x * gate_slope(x))


def mish_slope(x: Wide) -> Wide:
    e = np.exp(x)
    return e * (4 * (x + 1) + 4 * e**2 + e**3 + e * (4 * x + 6)) / (2 * e + e**2 + 2) ** 2


def gelu_slope(x: Wide) -> Wide:
    tail = np.array([math.erfc(-float(v) / math.sqrt(2)) / 2 for v in x], np.longdouble)
    return tail + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


SLOPES: dict[str, tuple[str, tuple[bool, ...], Callable[[Wide], Wide], float]] = {
    "silu": ("silu_backward", (), silu_slope, -1.2784645),
    "mish": ("mish_backward", (), mish_slope, -1.1924312),
    "gelu": ("gelu_backward", (False,), gelu_slope, -0.7517915),
    "gelu_tanh": ("gelu_backward", (True,), gelu_tanh_slope, -0.7524614),
}


def ulps(got: np.ndarray, exact: Wide) -> np.ndarray:
    unit = np.spacing(np.maximum(np.abs(exact).astype(np.float32), np.finfo(np.float32).smallest_normal))
    return np.abs(got.astype(np.longdouble) - exact) / unit


@pytest.mark.parametrize("name", SLOPES)
def test_beside_the_root(name: str) -> None:
    """The relative error stays small however little is left of the slope."""
    kernel, options, slope, root = SLOPES[name]
    near = np.float32(root) + np.arange(-300, 301).astype(np.float32) * np.spacing(np.float32(root))
    wide = np.float32(root) + np.linspace(-0.6, 0.6, 4001).astype(np.float32)
    x = np.concatenate([near, wide]).astype(np.float32)
    got = NATIVE[kernel](np.ones_like(x), x, *options)
    exact = slope(x.astype(np.longdouble))
    assert np.abs(exact).min() < 1e-6
    known = np.abs(exact) > (1e-7 if name == "gelu" else 0)  # erfc is there in float64 alone
    assert ulps(got, exact)[known].max() <= 4


@pytest.mark.parametrize("name", SLOPES)
def test_down_to_the_smallest_numbers(name: str) -> None:
    kernel, options, slope, _ = SLOPES[name]
    x = np.linspace(-110, -1.5, 20011).astype(np.float32)
    if "gelu" in name:
        x = x / np.float32(8)
    got = NATIVE[kernel](np.ones_like(x), x, *options)
    exact = slope(x.astype(np.longdouble))
    assert (np.abs(exact) < 1e-40).any()
    assert ulps(got, exact).max() <= 4
    assert (NATIVE[kernel](np.ones(3, np.float32), np.float32([-300, -1e10, -3e38]), *options) == 0).all()


def test_the_tanh_form_of_gelu_far_to_the_left() -> None:
    x = np.linspace(-11, -0.5, 20011).astype(np.float32)
    wide = x.astype(np.longdouble)
    assert ulps(NATIVE["gelu"](x, True), wide * sigmoid(gate(wide))).max() <= 2


def test_nothing_overflows_on_the_way() -> None:
    x = np.float32([1e19, 3e19, -1e21, 1e22, 3e38])
    g = np.full(5, 1.5, np.float32)
    wide = x.astype(np.longdouble)
    assert ulps(NATIVE["atan_backward"](g, x), 1.5 / (1 + wide**2)).max() <= 2
    assert ulps(NATIVE["log10_backward"](g, x, 0.0), 1.5 / (wide * np.log(np.longdouble(10)))).max() <= 2
    assert ulps(NATIVE["sqrt_backward"](g, x, 0.0), 1.5 / (2 * wide)).max() <= 1


def test_tangents_beside_odd_multiples_of_a_quarter_turn() -> None:
    x = np.float32([-2495.995, 821.401245, 3.92278624, *np.linspace(-5000, 5000, 40001)])
    exact = np.tan(x.astype(np.longdouble))
    assert ulps(NATIVE["tan"](x), exact).max() <= 2
    assert ulps(NATIVE["tan_backward"](np.ones_like(x), x), 1 + exact**2).max() <= 4


def test_selu_multiplies_once() -> None:
    x = np.linspace(-20, 0, 40001).astype(np.float32)
    wide = x.astype(np.longdouble)
    factor = np.longdouble("1.0507009873554804934193349852946") * np.longdouble(
        "1.6732632423543772848170429916717"
    )
    assert ulps(NATIVE["selu"](x), factor * np.expm1(wide)).max() <= 2
    assert ulps(NATIVE["selu_backward"](np.ones_like(x), x), factor * np.exp(wide)).max() <= 4


def test_hard_swish_at_its_turn() -> None:
    x = (np.float32(-1.5) + np.linspace(-1e-3, 1e-3, 4001)).astype(np.float32)
    exact = (2 * x.astype(np.longdouble) + 3) / 6
    assert ulps(NATIVE["hard_swish_backward"](np.ones_like(x), x), exact).max() <= 2
