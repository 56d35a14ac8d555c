"""Indexing as NumPy does it; its gradient puts every element back where it was taken from, repeats added up."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import extensor as et

WHOLE = st.integers(-8, 8).map(float)


@st.composite
def arrays(draw: st.DrawFn, min_dims: int = 0, min_side: int = 0) -> np.ndarray:
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=4, min_side=min_side, max_side=4))
    x = draw(hnp.arrays(np.float64, shape, elements=WHOLE))
    return x.T if draw(st.booleans()) else x


@st.composite
def indexed(draw: st.DrawFn) -> tuple[np.ndarray, Any]:
    """An array and a key for it: slices, ints, new axes and ellipses; integer arrays; a mask."""
    kind = draw(st.sampled_from(["basic", "integers", "mask"]))
    if kind == "basic":
        x = draw(arrays())
        return x, draw(hnp.basic_indices(x.shape, allow_newaxis=True))
    if kind == "integers":
        x = draw(arrays(min_dims=1, min_side=1))
        return x, draw(
            hnp.integer_array_indices(x.shape, result_shape=hnp.array_shapes(max_dims=3, max_side=3))
        )
    x = draw(arrays(min_dims=1))
    rank = draw(st.integers(1, x.ndim))
    return x, draw(hnp.arrays(np.bool_, x.shape[:rank]))


def whole_like(array: np.ndarray) -> np.ndarray:
    return np.random.default_rng(array.size).integers(-8, 9, array.shape).astype(np.float64)


@given(indexed())
def test_index_and_its_adjoint(case: tuple[np.ndarray, Any]) -> None:
    x, key = case
    taken = np.asarray(x[key])
    np.testing.assert_array_equal(et.tensor(x)[key].numpy(), taken)
    grad = whole_like(taken)
    expected = np.zeros(x.shape)
    np.add.at(expected, key, grad)
    for source in (et.tensor(x), x.shape):
        np.testing.assert_array_equal(et.index_backward(et.tensor(grad), source, key).numpy(), expected)


@given(indexed())
def test_functional_updates(case: tuple[np.ndarray, Any]) -> None:
    x, key = case
    t = et.tensor(x)
    values = whole_like(np.asarray(x[key]))
    added = x.copy()
    np.add.at(added, key, values)
    np.testing.assert_array_equal(t.at[key].add(et.tensor(values)).numpy(), added)
    written = x.copy()
    written[key] = 7.0
    np.testing.assert_array_equal(t.at[key].set(7.0).numpy(), written)
    np.testing.assert_array_equal(t.numpy(), x)


@given(arrays(min_dims=1, min_side=1), st.data())
def test_take_and_its_adjoint(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    length = x.shape[axis]
    indices = data.draw(
        hnp.arrays(
            np.int64,
            hnp.array_shapes(min_dims=0, max_dims=2, max_side=5),
            elements=st.integers(-length, length - 1),
        )
    )
    taken = np.take(x, indices, axis)
    np.testing.assert_array_equal(et.take(x, indices, axis).numpy(), taken)
    grad = whole_like(taken)
    grad_x = et.take_backward(et.tensor(grad), et.tensor(x), indices, axis=axis).numpy()
    assert grad_x.shape == x.shape
    assert (taken * grad).sum() == (x * grad_x).sum()


@given(arrays(), st.data())
def test_moving_elements_and_moving_them_back(x: np.ndarray, data: st.DataObject) -> None:
    axes = tuple(data.draw(st.permutations(range(x.ndim))))
    moved = et.transpose(x, axes)
    np.testing.assert_array_equal(moved.numpy(), x.transpose(axes))
    np.testing.assert_array_equal(et.transpose_backward(moved, axes).numpy(), x)
    flat = et.reshape(moved, (-1,) if x.size else (0,))
    np.testing.assert_array_equal(flat.numpy(), x.transpose(axes).ravel())
    np.testing.assert_array_equal(et.reshape_backward(flat, moved).numpy(), moved.numpy())
    if x.ndim:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        shift = data.draw(st.integers(-5, 5))
        np.testing.assert_array_equal(et.flip(x, axis).numpy(), np.flip(x, axis))
        np.testing.assert_array_equal(et.roll(x, shift, axis).numpy(), np.roll(x, shift, axis))
        np.testing.assert_array_equal(et.roll_backward(et.roll(x, shift, axis), shift, axis).numpy(), x)


@given(arrays(min_dims=1), st.data())
def test_split_and_concatenate_are_inverse(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, x.shape[axis]), max_size=3)))
    parts = et.split(x, cuts, axis)
    for ours, theirs in zip(parts, np.split(x, cuts, axis), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(et.concatenate(parts, axis).numpy(), x)
    np.testing.assert_array_equal(et.split_backward(parts, axis).numpy(), x)
    for ours, part in zip(et.concatenate_backward(et.tensor(x), parts, axis), parts, strict=True):
        np.testing.assert_array_equal(ours.numpy(), part.numpy())
