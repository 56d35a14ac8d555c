"""Norms of numbers whose squares the format cannot hold: the result does not depend on the scale of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.kernels import KERNELS, NATIVE

ROADS = ["reference", *(["native"] if "layer_norm" in NATIVE else [])]
EXPONENTS = {
    np.float32: (-120, -80, -66, -40, 0, 40, 62, 64, 80, 122),
    np.float64: (-900, -500, 0, 500, 512, 1000),
}


def _run(road: str, name: str, *arguments: Any) -> Any:
    return (NATIVE[name] if road == "native" else KERNELS[name].reference)(*arguments)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(("dtype", "exponent"), [(d, e) for d, all_of in EXPONENTS.items() for e in all_of])
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm"])
def test_a_power_of_two_changes_nothing_but_the_gradient_of_x(name, rows, dtype, exponent, road) -> None:
    draw = np.random.default_rng(rows)
    x, g = (draw.normal(size=(rows, 4, 19)).astype(dtype) for _ in range(2))
    scales = np.zeros((rows, 1, 1), int)
    scales[-1] = exponent  # its neighbours stay as they are
    scaled = np.ldexp(x, scales).astype(dtype)
    weight, bias = draw.normal(size=(2, 4)).astype(dtype)
    if name != "group_norm":
        weight, bias = draw.normal(size=(2, 4, 19)).astype(dtype)
    shape: Any = 1 if name == "group_norm" else (4, 19)
    affine = (weight, bias) if name != "rms_norm" else (weight,)
    needs = (True,) * (len(affine) + 1)
    close = {"rtol": 2e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13}

    want = _run("reference", name, x, shape, *affine, 0.0)
    np.testing.assert_allclose(_run(road, name, scaled, shape, *affine, 0.0), want, **close)
    wanted = _run("reference", f"{name}_backward", g, x, shape, weight, 0.0, needs)
    grads = _run(road, f"{name}_backward", g, scaled, shape, weight, 0.0, needs)
    np.testing.assert_allclose(np.ldexp(grads[0].astype(np.float64), scales), wanted[0], **close)
    for grad, other in zip(grads[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(grad, other, **close)
    alone = _run(road, f"{name}_backward", g, scaled, shape, weight, 0.0, (False, *needs[1:]))
    assert alone[0] is None
    np.testing.assert_array_equal(alone[1], grads[1])


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_row_that_is_not_finite_is_nan_and_its_neighbours_are_not(road: str, bad: float) -> None:
    x = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
    x[7, 3] = bad
    with np.errstate(invalid="ignore"):
        y = _run(road, "layer_norm", x, (30,), None, None, 1e-5)
    assert np.isnan(y[7]).all()
    assert np.isfinite(np.delete(y, 7, 0)).all()
