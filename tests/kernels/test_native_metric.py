"""Native losses of distances between embeddings against the references in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("triplet_margin" not in NATIVE, reason="the native module is not built")

REDUCTIONS = ["mean", "sum", "none"]
SHAPES = [(1,), (5, 1), (3, 16), (2, 3, 37), (7, 130), (0, 4), (3, 0)]
each_case = pytest.mark.parametrize(
    ("shape", "dtype", "reduction"),
    [(s, d, r) for s in SHAPES for d in (np.float32, np.float64) for r in REDUCTIONS],
    ids=str,
)


def draw(count: int, shape: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [(rng.standard_normal(shape) / 2).astype(dtype) for _ in range(count)]


def upstream(shape: tuple[int, ...], dtype: Any, reduction: str) -> np.ndarray:
    found = np.random.default_rng(4).standard_normal(shape[:-1] if reduction == "none" else ())
    return np.asarray(found, dtype)


def check(name: str, dtype: Any, *args: Any) -> None:
    """Within some roundings of the reference in float64, of the reference's shapes."""
    exact = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        expected = KERNELS[name].reference(*exact)
    found = NATIVE[name](*args)
    assert found is not NotImplemented
    limit = 64 * np.finfo(dtype).eps
    for one, other in zip(
        found if isinstance(found, tuple) else [found], expected if isinstance(found, tuple) else [expected]
    ):
        if other is None:
            assert one is None
            continue
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=limit, atol=limit)
        assert one.shape == np.shape(other)


@each_case
@pytest.mark.parametrize("swap", [False, True])
def test_triplets(shape: tuple[int, ...], dtype: Any, reduction: str, swap: bool) -> None:
    given = draw(3, shape, dtype)
    options = (1.0, 2.0, 1e-6, swap, reduction)
    check("triplet_margin", dtype, *given, *options)
    g = upstream(shape, dtype, reduction)
    for needs in ((True, True, True), (True, False, False), (False, True, True)):
        check("triplet_margin_backward", dtype, g, *given, *options, needs)


@each_case
def test_cosines(shape: tuple[int, ...], dtype: Any, reduction: str) -> None:
    given = draw(2, shape, dtype)
    signs = np.asarray(
        np.where(np.arange(np.prod(shape[:-1], dtype=int)) % 2, 1, -1).reshape(shape[:-1]), dtype
    )
    check("cosine_embedding", dtype, *given, signs, 0.1, reduction)
    g = upstream(shape, dtype, reduction)
    for needs in ((True, True), (True, False), (False, True)):
        check("cosine_embedding_backward", dtype, g, *given, signs, 0.1, reduction, needs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_are_the_references(dtype: Any) -> None:
    """Equal rows, zeros, ties of the swapped distance, the margin itself, infinities and nan."""
    rows = [[0, 0], [1, 0], [0, 1], [3, 4], [np.nan, 0], [np.inf, 1], [-np.inf, 1], [1e30, 1], [-0.0, 0.0]]
    grid = np.array([(a, b, c) for a in rows for b in rows for c in rows], dtype)
    anchor, positive, negative = (np.ascontiguousarray(grid[:, i]) for i in range(3))
    signs = np.where(np.arange(len(grid)) % 2, 1, -1).astype(dtype)
    g = np.full(len(grid), 2, dtype)
    calls: list[tuple[Any, ...]] = []
    for swap in (False, True):
        options = (1.0, 2.0, 0.0, swap, "none")
        calls.append(("triplet_margin", anchor, positive, negative, *options))
        calls.append(("triplet_margin_backward", g, anchor, positive, negative, *options, (True,) * 3))
    calls.append(("cosine_embedding", anchor, positive, signs, 0.5, "none"))
    calls.append(("cosine_embedding_backward", g, anchor, positive, signs, 0.5, "none", (True, True)))
    for name, *args in calls:
        with np.errstate(all="ignore"):
            expected = KERNELS[name].reference(*args)
        found = NATIVE[name](*args)
        for one, other in zip(
            found if isinstance(found, tuple) else [found],
            expected if isinstance(found, tuple) else [expected],
        ):
            np.testing.assert_allclose(one, other, rtol=4 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_precision_is_rounded_once(dtype: Any) -> None:
    a, b, c = draw(3, (5, 9), dtype)
    for name, args in (
        ("triplet_margin", (a, b, c, 1.0, 2.0, 1e-6, False, "none")),
        ("cosine_embedding", (a, b, np.ones(5, dtype), 0.0, "none")),
    ):
        kernel = KERNELS[name]
        np.testing.assert_array_equal(kernel.on_arrays(*args), kernel.by_reference(*args), strict=True)


def test_what_is_left_to_the_reference() -> None:
    a, b, c = draw(3, (5, 9), np.float32)
    assert NATIVE["triplet_margin"](a, b, c, 1.0, 1.0, 1e-6, False, "mean") is NotImplemented  # another norm
    assert NATIVE["triplet_margin"](a, b, c[:4], 1.0, 2.0, 1e-6, False, "mean") is NotImplemented
    assert NATIVE["triplet_margin"](a, b, c, 1.0, 2.0, 1e-6, False, "other") is NotImplemented
    assert NATIVE["cosine_embedding"](a, b, np.ones(4, np.float32), 0.0, "mean") is NotImplemented
    assert NATIVE["cosine_embedding"](a, b, np.ones(5), 0.0, "mean") is NotImplemented


def test_any_layout() -> None:
    a, b, c = draw(3, (6, 9), np.float64)
    options = (1.0, 2.0, 1e-6, False, "none")
    turned = [np.asfortranarray(v) for v in (a, b, c)]
    np.testing.assert_array_equal(
        NATIVE["triplet_margin"](*turned, *options), NATIVE["triplet_margin"](a, b, c, *options)
    )
