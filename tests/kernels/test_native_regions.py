"""Pooling over regions: the native kernels beside the reference, for any number of directions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("region_max" not in NATIVE, reason="the native module is not built")

TOLERANCE = {np.float32: 1e-6, np.float64: 1e-14}


def regions_of(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Cells, windows with gaps, or anything that overlaps, in each direction."""
    found = []
    for n in shape:
        step, count = int(rng.integers(1, 4)), int(rng.integers(1, n + 2))
        begins = rng.integers(0, n, count)
        ends = np.minimum(begins + rng.integers(1, n + 1, count), n)
        if rng.integers(0, 3) == 0:  # the elements one by one
            begins, ends = np.arange(n), np.arange(n) + 1
        found.append((tuple(map(int, begins)), tuple(map(int, ends)), step))
    return tuple(found)


def fields(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, tuple[Any, ...], tuple[Any, ...]]]:
    while True:
        dtype = rng.choice([np.float32, np.float64])
        shape = tuple(int(v) for v in rng.integers(1, 9, rng.integers(1, 4)))
        whole = (*(int(v) for v in rng.integers(0, 4, 2)), *shape)
        x = (rng.integers(-2, 3, whole) if rng.integers(0, 2) else rng.standard_normal(whole)).astype(dtype)
        if x.size and rng.integers(0, 2):
            x.flat[rng.integers(0, x.size, 2)] = rng.choice([np.nan, np.inf, -np.inf], 2)
        regions = regions_of(rng, shape)
        sizes = tuple(tuple(int(v) for v in rng.integers(1, 9, len(begins))) for begins, _, _ in regions)
        yield x, regions, sizes


def calls(rng: np.random.Generator) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for x, regions, sizes in fields(rng):
        g = rng.standard_normal((*x.shape[:2], *(len(begins) for begins, _, _ in regions))).astype(x.dtype)
        yield "region_max", (x, regions)
        yield "region_max_indices", (x, regions)
        yield "region_max_backward", (g, x, regions)
        yield "region_mean", (x, regions, sizes)
        yield "region_mean_backward", (g, x.shape, regions, sizes)


@pytest.mark.parametrize("seed", range(4))
def test_as_the_reference(seed: int) -> None:
    for (name, args), _ in zip(calls(np.random.default_rng(seed)), range(300)):
        with np.errstate(all="ignore"):
            found, expected = KERNELS[name].native(*args), KERNELS[name].reference(*args)
        assert found.dtype == expected.dtype
        if name in ("region_max", "region_max_indices"):
            np.testing.assert_array_equal(found, expected, strict=True)
        else:
            limit = TOLERANCE[args[0].dtype.type]
            np.testing.assert_allclose(found, expected, rtol=limit, atol=limit, strict=True)


def test_any_layout_and_half_precision() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 3, 2, 4)).astype("f").transpose(3, 1, 0, 2)
    regions = (((0, 2), (3, 5), 1), ((0,), (2,), 1))
    np.testing.assert_array_equal(
        NATIVE["region_max"](x, regions), NATIVE["region_max"](np.ascontiguousarray(x), regions)
    )
    half = x.astype(np.float16)
    np.testing.assert_array_equal(
        KERNELS["region_max"].on_arrays(half, regions), KERNELS["region_max"].by_reference(half, regions)
    )


@pytest.mark.parametrize(
    "regions",
    [
        (((0,), (3,), 1),), (((1,), (1,), 1), ((0,), (1,), 1)), (((0,), (9,), 1), ((0,), (1,), 1)),
        (((0, 1), (1,), 1), ((0,), (1,), 1)), (((-1,), (1,), 1), ((0,), (1,), 1)), (((0,), (1,), 0), ((0,), (1,), 1)), None,
    ],
)  # fmt: skip
def test_regions_that_do_not_fit(regions: Any) -> None:
    assert NATIVE["region_max"](np.ones((1, 1, 4, 4)), regions) is NotImplemented


def test_bits_do_not_depend_on_the_threads() -> None:
    rng, before = np.random.default_rng(4), get_num_threads()
    x = rng.standard_normal((8, 32, 33, 31)).astype("f")
    cells = tuple(
        (tuple(i * n // 7 for i in range(7)), tuple(math.ceil((i + 1) * n / 7) for i in range(7)), 1)
        for n in (33, 31)
    )
    sizes = tuple(tuple(b - a for a, b in zip(*ends[:2])) for ends in cells)
    g = rng.standard_normal((8, 32, 7, 7)).astype("f")
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append(
                [NATIVE["region_mean"](x, cells, sizes), NATIVE["region_mean_backward"](g, x.shape, cells, sizes),
                 NATIVE["region_max"](x, cells), NATIVE["region_max_backward"](g, x, cells)]
            )  # fmt: skip
    finally:
        set_num_threads(before)
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
