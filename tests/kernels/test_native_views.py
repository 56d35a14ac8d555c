"""The native views against NumPy's: same elements, same memory, and what is left to the reference."""

from __future__ import annotations

import contextlib
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("index" not in NATIVE, reason="the native module is not built")

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
KEYS: list[Any] = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), None, ..., (), (1, 2, 3),
    (slice(None), 1), (..., 0), (0, ..., slice(0, 2)), (None, 0, None), (slice(5, 9),), (slice(None), slice(None, None, 2)),
]  # fmt: skip


def with_ellipsis(key: Any) -> tuple[Any, ...]:
    """A key as kernels take it: with an Ellipsis, so that the result is an array."""
    parts = key if isinstance(key, tuple) else (key,)
    return parts if any(part is ... for part in parts) else (*parts, ...)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16], ids=lambda d: d.__name__)
def test_index(key: Any, dtype: Any) -> None:
    x = X.astype(dtype)
    got, want = NATIVE["index"](x, with_ellipsis(key)), x[key]
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape) == (x.dtype, np.shape(want))
    np.testing.assert_array_equal(got, want)
    assert np.shares_memory(got, x) or got.size == 0


@pytest.mark.parametrize("key", [2, (0, 0, 0, 0), (..., ...), slice(None, None, 0), 1.0, "a"])
def test_keys_that_are_left_to_the_reference(key: Any) -> None:
    assert NATIVE["index"](X, with_ellipsis(key)) is NotImplemented
    assert NATIVE["index"](X, [0]) is NotImplemented


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (2, 1, 0)], ids=str)
@pytest.mark.parametrize("name", ["transpose", "permute"])
def test_transpose(name: str, axes: Any) -> None:
    got, want = NATIVE[name](X, axes), X.transpose(axes)
    np.testing.assert_array_equal(got, want)
    assert got.strides == want.strides
    assert np.shares_memory(got, X)


@pytest.mark.parametrize(
    "axes", [None, (-1, 0, -2), (0, 1), (0, 1, 1), (0, 1, 3), [0, 1, 2], 1, (0.0, 1, 2)], ids=str
)
def test_axes_that_are_left_to_the_reference(axes: Any) -> None:
    assert NATIVE["transpose"](X, axes) is NotImplemented


def test_swapaxes() -> None:
    for first in range(3):
        for second in range(3):
            got = NATIVE["swapaxes"](X, first, second)
            np.testing.assert_array_equal(got, KERNELS["swapaxes"].reference(X, first, second))
    for axes in ((0, 3), (-1, 0), (0, -1), (0, 1.0), (None, 0)):
        assert NATIVE["swapaxes"](X, *axes) is NotImplemented


def test_recorded_views_have_their_gradients() -> None:
    rng = np.random.default_rng(0)
    for view, numpy_view in (
        (lambda t: t[1, :, ::2], lambda a: a[1, :, ::2]),
        (lambda t: t[..., None, -1], lambda a: a[..., None, -1]),
        (lambda t: t.T, lambda a: a.T),
        (lambda t: et.transpose(t, axes=(1, 0, 2)), lambda a: a.transpose(1, 0, 2)),
        (lambda t: et.permute(t, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
        (lambda t: et.swapaxes(t, -1, 0), lambda a: a.swapaxes(-1, 0)),
    ):
        x = et.tensor(X, requires_grad=True)
        y = view(x)
        g = rng.normal(size=y.shape).astype(np.float32)
        y.backward(et.tensor(g))
        want = np.zeros_like(X)
        numpy_view(want)[...] = g
        np.testing.assert_array_equal(x.grad.numpy(), want)


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """The same kind of elements in many layouts: permuted, with gaps, backwards, repeated, with axes of length 1."""
    permuted = [x.transpose(order) for order in permutations(range(x.ndim))]
    others = [x[:, ::2], x[::-1], x[..., ::-1], x[:, :1], x[:1].transpose(2, 0, 1), x[:, None], x[:, :0]]
    return [
        *permuted,
        *others,
        np.broadcast_to(x[:, :1], x.shape),
        x.T[None],
        np.asfortranarray(x)[..., None, :],
    ]


def is_native_copy(x: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether the reshape takes memory of ours."""
    from extensor import _native

    _native.fail_allocation_after(0)
    with contextlib.suppress(MemoryError):
        NATIVE["reshape"](x, shape)
    return _native.fail_allocation_after(-1) < 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.bool_])
def test_reshape_is_a_view_where_numpy_has_one(dtype: Any) -> None:
    x = np.arange(4 * 6 * 5).reshape(4, 6, 5).astype(dtype)
    views = copies = 0
    for given in layouts(x):
        n = given.size
        shapes = [
            given.shape,
            (n,),
            (1, n),
            (n, 1, 1),
            given.shape[::-1],
            (*given.shape[:1], -1),
            (-1, *given.shape[-1:]),
            (2, -1),
            (3, 2, -1),
            (2, 2, -1),
        ]
        for shape in shapes:
            try:
                expected = given.reshape(shape)
            except ValueError:
                continue
            found = NATIVE["reshape"](given, expected.shape)
            assert found.shape == expected.shape
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
            shared = np.shares_memory(expected, given)
            assert np.shares_memory(found, given) == shared, (given.shape, given.strides, expected.shape)
            assert is_native_copy(given, expected.shape) == (not shared and given.size > 0)
            views, copies = views + shared, copies + (not shared)
    assert views > 30
    assert copies > 30


def test_reshape_with_another_number_of_elements_is_left_to_the_reference() -> None:
    for shape in [(23,), (2, 3, 5), (0,), (2**40, 2**40), (-1,), (2, -1), [24], 24, None]:
        assert NATIVE["reshape"](X.transpose(2, 0, 1), shape) is NotImplemented
