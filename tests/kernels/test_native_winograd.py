"""Convolutions of 3 x 3 with stride 1, which the native core computes by Winograd's method, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE
from extensor.testing import Draw
from extensor.testing.samples import PAIRS

pytestmark = pytest.mark.skipif("conv2d" not in NATIVE, reason="the native module is not built")

PLAIN = ((1, 1), (1, 1, 1, 1), (1, 1), 1)


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def results(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, bias: Any, options: Any, kind: str
) -> list[np.ndarray]:
    """The output and the gradients of x and weight; the reference computes in float64."""
    if kind == "reference":
        g, x, weight, bias = (None if a is None else a.astype(np.float64) for a in (g, x, weight, bias))
    y = getattr(KERNELS["conv2d"], kind)(x, weight, bias, *options)
    return [y, *getattr(KERNELS["conv2d_backward"], kind)(g, x, weight, *options, (True, True, False))[:2]]


# Around the sizes of tiles, vectors, panels of rows, and blocks of tiles; channels that fill vectors and that do not.
SIZES = [
    (3, 16, 16, 32, 32), (3, 32, 32, 16, 16), (5, 64, 64, 8, 8), (5, 20, 37, 13, 19), (2, 24, 18, 97, 50),
    (70, 48, 40, 5, 3), (10, 33, 65, 6, 7), (420, 17, 16, 4, 4), (2, 16, 16, 9, 301), (2, 16, 30, 150, 9), (60, 12, 9, 11, 12),
]  # fmt: skip


@pytest.mark.parametrize(("images", "inputs", "outputs", "height", "width"), SIZES)
@pytest.mark.parametrize("padding", [(1, 1, 1, 1), (0, 0, 0, 0), (0, 2, 1, 0), (2, 2, 3, 3)])
def test_sizes(images: int, inputs: int, outputs: int, height: int, width: int, padding: Any) -> None:
    rng = np.random.default_rng(images + inputs + height)
    options = ((1, 1), padding, (1, 1), 1)
    shape = (images, outputs, height + padding[0] + padding[1] - 2, width + padding[2] + padding[3] - 2)
    g, x, weight = (
        draw(rng, *shape),
        draw(rng, images, inputs, height, width),
        draw(rng, outputs, inputs, 3, 3),
    )
    bias = draw(rng, outputs)
    found = results(g, x, weight, bias, options, "native")
    expected = results(g, x, weight, bias, options, "reference")
    for ours, theirs in zip(found, expected):
        assert ours.shape == theirs.shape
        # A few times the rounding errors of a plain sum in float32, measured by the size of a result.
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1.5e-5 * float(np.std(theirs)))
        assert float(np.std(ours - theirs)) < 1.2e-6 * float(np.std(theirs))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -2e31, 1e25, 1e6])
@pytest.mark.parametrize("which", ["g", "x", "weight"])
def test_what_the_transforms_cannot_hold_goes_where_it_goes_in_the_reference(
    value: float, which: str
) -> None:
    rng = np.random.default_rng(5)
    arrays = {
        "g": draw(rng, 12, 20, 18, 9),
        "x": draw(rng, 12, 16, 18, 9),
        "weight": draw(rng, 20, 16, 3, 3) / 8,
    }
    plain = results(*arrays.values(), None, PLAIN, "native")
    for position in rng.integers(0, arrays[which].size, 5):
        changed = {name: a.copy() for name, a in arrays.items()}
        changed[which].flat[position] = value
        found = results(*changed.values(), None, PLAIN, "on_arrays")
        with np.errstate(all="ignore"):
            expected = [a.astype(np.float32) for a in results(*changed.values(), None, PLAIN, "reference")]
        for ours, theirs in zip(found, expected):
            large = np.abs(theirs) > 100
            np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
            np.testing.assert_allclose(
                ours[large], theirs[large], rtol=1e-5, atol=1e-6 * float(np.nan_to_num(abs(value), posinf=0))
            )
            rest = ~large & ~np.isnan(theirs)
            np.testing.assert_allclose(ours[rest], theirs[rest], rtol=1e-5, atol=2e-4)
        if which != "weight":  # other images keep their bits
            there = 1 if which == "g" else 0
            others = np.arange(12) != position // arrays[which][0].size
            assert found[there][others].tobytes() == plain[there][others].tobytes()


def test_small_and_large_magnitudes_keep_their_digits() -> None:
    rng = np.random.default_rng(6)
    g, x, weight = draw(rng, 16, 16, 12, 12), draw(rng, 16, 16, 12, 12), draw(rng, 16, 16, 3, 3)
    for scale in (1e-15, 1e12):
        found = results(g, x * np.float32(scale), weight, None, PLAIN, "native")
        expected = results(g, x * np.float32(scale), weight, None, PLAIN, "reference")
        for ours, theirs in zip(found, expected):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1.5e-5 * float(np.std(theirs)))


def test_what_overflows_on_the_way_does_not_in_the_result() -> None:
    rng = np.random.default_rng(9)
    g, x, weight = draw(rng, 16, 16, 12, 12), draw(rng, 16, 16, 12, 12), draw(rng, 16, 16, 3, 3)
    for scales in ((1, 1e29, 2e7), (1e29, 1, 2e7), (2e6, 1e29, 1)):
        arrays = [a * np.float32(scale) for a, scale in zip((g, x, weight), scales)]
        found = results(*arrays, None, PLAIN, "native")
        for ours, theirs in zip(found, results(*arrays, None, PLAIN, "reference")):
            assert np.abs(theirs).max() < 3e38
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1.5e-5 * float(np.std(theirs)))


# S over S_seen of the outputs in the first row, as csrc/kernels/conv/winograd_guard.hpp has it: up to 16 the method may be used,
# with its bound; above, the direct sum, with its own.
@pytest.mark.parametrize("ratio", [1.5, 4.0, 15.9, 16.1, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("side", ["top", "bottom", "left", "right"])
@pytest.mark.parametrize("inputs", [16, 40])
def test_weights_that_are_not_seen_at_an_edge_leave_no_error_there(
    inputs: int, side: str, ratio: float
) -> None:
    rng = np.random.default_rng(7)
    weight = rng.uniform(0.9, 1.1, (16, inputs, 3, 3))
    weight[:, :, 0] *= 2 * (ratio - 1)  # the row that the first outputs do not see, beside two that they do
    turns = {"top": 0, "left": 1, "bottom": 2, "right": 3}[side]
    weight = np.rot90(weight, turns, (2, 3)).astype(np.float32)
    x = rng.uniform(0.5, 1, (16, inputs, 12, 12)).astype(np.float32)
    g = np.zeros((16, 16, 12, 12), np.float32)
    found = results(g, x, weight, None, PLAIN, "native")[0]
    want = results(g, x, weight, None, PLAIN, "reference")[0]
    terms = 9 * inputs
    unit = 2.0**-24
    bound = (
        206 * (44 + inputs / 32) * 2 * ratio * unit if ratio < 16 else terms * unit
    )  # 2: largest pixel over the least
    assert (np.abs(found - want) / want).max() <= bound
    # No sum of positive numbers is far from what one sees of the method, either.
    assert (np.abs(found - want) / want).max() <= 2e-5


def test_the_method_is_used() -> None:
    """An image with an inf is convolved directly, and where the inf is not seen the two methods round differently."""
    rng = np.random.default_rng(10)
    x, weight = draw(rng, 1, 16, 48, 48), draw(rng, 16, 16, 3, 3)
    spoilt = x.copy()
    spoilt[0, 0, 0, 0] = np.inf
    by_winograd, direct = (
        KERNELS["conv2d"].native(a, weight, None, *PLAIN)[..., 2:, 2:] for a in (x, spoilt)
    )
    assert np.isfinite(direct).all()
    assert (by_winograd != direct).any()
    np.testing.assert_allclose(by_winograd, direct, rtol=0, atol=2e-4)


def test_what_extensor_verify_draws_takes_the_method() -> None:
    (case,) = PAIRS["conv2d"].large(Draw(0))
    x, weight = (np.asarray(value, np.float32) for value in case.args[:2])
    g = draw(np.random.default_rng(11), len(x), len(weight), *x.shape[2:])
    spoilt = {"g": g.copy(), "x": x.copy()}
    for array in spoilt.values():
        array[0, 0, 0, 0] = np.inf
    _, grad_x, grad_weight = results(g, x, weight, None, PLAIN, "native")
    _, direct_x, _ = results(spoilt["g"], x, weight, None, PLAIN, "native")
    _, _, direct_weight = results(g, spoilt["x"], weight, None, PLAIN, "native")
    assert (grad_x[0, :, 2:, 2:] != direct_x[0, :, 2:, 2:]).any()
    assert (grad_weight[:, 1:] != direct_weight[:, 1:]).any()  # those of the first channel see the inf


def test_an_image_gives_the_same_bits_in_batches_that_take_the_same_method() -> None:
    rng = np.random.default_rng(7)
    x, weight = draw(rng, 9, 32, 32, 32), draw(rng, 32, 32, 3, 3)
    whole = KERNELS["conv2d"].native(x, weight, None, *PLAIN)
    single = KERNELS["conv2d"].native(x[4:5], weight, None, *PLAIN)
    assert single.tobytes() == whole[4:5].tobytes()


@pytest.mark.parametrize("size", [(70, 16, 16, 32, 32), (40, 64, 64, 8, 8), (2, 16, 24, 130, 200)])
def test_bits_do_not_depend_on_the_threads(size: tuple[int, ...]) -> None:
    images, inputs, outputs, height, width = size
    rng = np.random.default_rng(8)
    g, x = draw(rng, images, outputs, height, width), draw(rng, images, inputs, height, width)
    weight, before = draw(rng, outputs, inputs, 3, 3), get_num_threads()
    try:
        found = set()
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            found.add(b"".join(a.tobytes() for a in results(g, x, weight, None, PLAIN, "native")))
        assert len(found) == 1
    finally:
        set_num_threads(before)
