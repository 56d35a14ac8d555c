"""Broadcasting as NumPy does it, and sum_to_shape as its exact adjoint.

Values are small whole numbers in float64: sums and products of them are exact, so equality is equality.
"""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as et

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
WHOLE = st.integers(-8, 8).map(float)


def whole(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float64, shape, elements=WHOLE)


@st.composite
def operands(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two arrays that broadcast, and an upstream gradient of the shape of their sum."""
    shapes = draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
    a, b = (draw(whole(shape)) for shape in shapes.input_shapes)
    return a, b, draw(whole(shapes.result_shape))


def adjoint(grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The sum over broadcast axes, written with NumPy."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and grad.shape[i] != 1)
    return grad.sum(axis=axes, keepdims=True)


@given(st.lists(SHAPES, max_size=4))
def test_broadcast_shapes(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        assert not et.are_shapes_broadcastable(*shapes)
        with pytest.raises(ValueError, match=r"^\[broadcast_shapes\]"):
            et.broadcast_shapes(*shapes)
    else:
        assert et.are_shapes_broadcastable(*shapes)
        assert et.broadcast_shapes(*shapes) == expected


@given(operands())
def test_sum_to_shape_is_the_adjoint_of_broadcasting(values: tuple[np.ndarray, ...]) -> None:
    a, _, grad = values
    wide = et.broadcast_to(a, grad.shape)
    np.testing.assert_array_equal(wide.numpy(), np.broadcast_to(a, grad.shape))
    narrow = et.sum_to_shape(grad, a.shape)
    np.testing.assert_array_equal(narrow.numpy(), adjoint(grad, a.shape))
    assert (wide.numpy() * grad).sum() == (a * narrow.numpy()).sum()
    np.testing.assert_array_equal(et.broadcast_to_backward(grad, a).numpy(), narrow.numpy())


@given(operands())
def test_arithmetic_broadcasts_and_its_gradients_come_back(values: tuple[np.ndarray, ...]) -> None:
    a, b, grad = values
    slopes = {
        "add": (a + b, np.ones_like(a), np.ones_like(b)),
        "subtract": (a - b, np.ones_like(a), -np.ones_like(b)),
        "multiply": (a * b, b, a),
        "maximum": (np.maximum(a, b), (a > b) + (a == b) / 2, (b > a) + (a == b) / 2),
        "minimum": (np.minimum(a, b), (a < b) + (a == b) / 2, (b < a) + (a == b) / 2),
    }
    for name, (result, slope_a, slope_b) in slopes.items():
        np.testing.assert_array_equal(getattr(et, name)(a, b).numpy(), result, err_msg=name)
        grads = getattr(et, f"{name}_backward")(et.tensor(grad), et.tensor(a), et.tensor(b))
        np.testing.assert_array_equal(grads.grad_a.numpy(), adjoint(grad * slope_a, a.shape), err_msg=name)
        np.testing.assert_array_equal(grads.grad_b.numpy(), adjoint(grad * slope_b, b.shape), err_msg=name)


@given(SHAPES, SHAPES, SHAPES)
def test_a_gradient_of_another_shape_is_refused(
    shape: tuple[int, ...], shape_a: tuple[int, ...], shape_b: tuple[int, ...]
) -> None:
    fits = et.are_shapes_broadcastable(shape_a, shape_b) and shape == np.broadcast_shapes(shape_a, shape_b)
    if fits:
        et.add_backward(et.ones(shape), shape_a, shape_b)
    else:
        with pytest.raises(ValueError, match=r"^\[add_backward\]"):
            et.add_backward(et.ones(shape), shape_a, shape_b)
