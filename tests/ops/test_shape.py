"""New shapes and orders against NumPy, their exact adjoints, HIPS autograd, and what they refuse."""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import make_vjp
from movement_checks import check_adjoint, check_moves, whole

import extensor as et

# (name, NumPy's function, shape, arguments); a backward takes x first where FROM_X says so
FROM_X = {"reshape", "squeeze", "flatten", "ravel"}
CASES = [
    ("reshape", anp.reshape, (), ((1, 1),)),
    ("reshape", anp.reshape, (2, 3, 5), ((5, -1),)),
    ("reshape", anp.reshape, (2, 0), ((0, 7),)),
    ("reshape", anp.reshape, (6,), (-1,)),
    ("squeeze", anp.squeeze, (1, 3, 1), ()),
    ("squeeze", anp.squeeze, (1, 3, 1), (-1,)),
    ("squeeze", anp.squeeze, (1, 3, 1, 2), ((0, 2),)),
    ("unsqueeze", anp.expand_dims, (), (0,)),
    ("unsqueeze", anp.expand_dims, (3, 4), (-2,)),
    ("expand_dims", anp.expand_dims, (3, 4), (1,)),
    ("flatten", lambda x: anp.reshape(x, -1), (2, 3), ()),
    ("flatten", lambda x, *_: anp.reshape(x, (2, 12, 5)), (2, 3, 4, 5), (1, 2)),
    ("flatten", lambda x: anp.reshape(x, (1,)), (), ()),
    ("ravel", anp.ravel, (2, 3, 4), ()),
    ("ravel", anp.ravel, (), ()),
    ("permute", anp.transpose, (2, 3, 4), ((2, 0, 1),)),
    ("permute", lambda x, _: anp.transpose(x, (2, 1, 0)), (2, 3, 4), ((-1, 1, 0),)),
    ("moveaxis", anp.moveaxis, (2, 3, 4), (0, -1)),
    ("moveaxis", anp.moveaxis, (2, 3, 4, 5), ((3, 0), (1, 2))),
    ("swapaxes", anp.swapaxes, (2, 3, 4), (0, -1)),
    ("flip", lambda x: x[::-1, ::-1], (3, 4), ()),
    ("flip", lambda x, *_: x[:, ::-1, :, ::-1], (2, 3, 2, 5), ((1, -1),)),
    ("roll", anp.roll, (7,), (2,)),
    ("roll", anp.roll, (3, 4), (-5,)),
    ("roll", anp.roll, (3, 4), (1, 0)),
    ("roll", anp.roll, (3, 4), (10**30 * 3 + 1, 0)),
    ("roll", anp.roll, (0,), (3,)),
    ("roll", anp.roll, (), (3,)),
]
IDS = [f"{name}{shape}{arguments}" for name, _, shape, arguments in CASES]


def numpy_arguments(name, arguments, shape):
    """NumPy's roll takes shifts of int64 only."""
    if name == "roll" and len(arguments) == 2:
        return arguments[0] % shape[arguments[1]], arguments[1]
    return arguments


@pytest.mark.parametrize(("name", "oracle", "shape", "arguments"), CASES, ids=IDS)
def test_values_and_adjoint(name, oracle, shape, arguments):
    def reference(x):
        return oracle(x, *numpy_arguments(name, arguments, shape))

    def backward(grad, x):
        function = getattr(et, f"{name}_backward")
        if name not in FROM_X:
            return function(grad, *arguments)
        return function(grad, x) if name == "reshape" else function(grad, x, *arguments)

    check_moves(lambda x: getattr(et, name)(x, *arguments), reference, shape)
    check_adjoint(backward, reference, shape)


@pytest.mark.parametrize(("name", "oracle", "shape", "arguments"), CASES, ids=IDS)
def test_gradient_agrees_with_autograd(name, oracle, shape, arguments):
    x = whole(shape)
    vjp, value = make_vjp(lambda x: oracle(x, *numpy_arguments(name, arguments, shape)))(x)
    grad = whole(value.shape, seed=2)
    leaf = et.tensor(x, requires_grad=True)
    getattr(et, name)(leaf, *arguments).backward(et.tensor(grad))
    np.testing.assert_array_equal(leaf.grad.numpy(), vjp(grad))


@pytest.mark.parametrize(
    ("shift", "axis"), [((1, 2), (0, 1)), ((1, 2), 0), (1, (0, 1)), ((1, 2), (0, 0)), ((), ())]
)
def test_roll_pairs_shifts_with_axes(shift, axis):
    x = whole((3, 4))
    np.testing.assert_array_equal(et.roll(x, shift, axis).numpy(), np.roll(x, shift, axis))
    np.testing.assert_array_equal(et.roll_backward(et.roll(x, shift, axis), shift, axis).numpy(), x)


def test_roll_along_no_axis():
    assert et.roll(et.tensor(3.0), 1, ()).item() == 3.0


@pytest.mark.parametrize(
    "view",
    [
        lambda x: et.reshape(x, (4, 6)),
        lambda x: et.squeeze(et.unsqueeze(x, 1)),
        lambda x: et.flatten(x, 1),
        lambda x: et.ravel(x),
        lambda x: et.permute(x, (2, 0, 1)),
        lambda x: et.moveaxis(x, 0, 1),
        lambda x: et.swapaxes(x, 0, 2),
        lambda x: et.flip(x, 1),
    ],
)
def test_views_share_memory(view):
    x = np.zeros((2, 3, 4))
    assert np.shares_memory(view(et.asarray(x)).numpy(), x)


REFUSED = [
    ("reshape", ((2, 4),), ValueError, "do not fill"),
    ("reshape", ((-1, -1),), ValueError, "one -1"),
    ("reshape", ((-2, 3),), ValueError, "negative"),
    ("reshape", ((4, -1),), ValueError, "do not fill"),
    ("reshape", (1.5,), TypeError, "shape"),
    ("reshape", ("ab",), TypeError, "shape"),
    ("squeeze", (0,), ValueError, "length 1"),
    ("squeeze", (5,), ValueError, "out of range"),
    ("unsqueeze", (4,), ValueError, "out of range"),
    ("unsqueeze", (None,), TypeError, "axis"),
    ("expand_dims", ((0, 0),), ValueError, "twice"),
    ("flatten", (1, 0), ValueError, "comes after"),
    ("flatten", (0, 2), ValueError, "out of range"),
    ("permute", ((0, 0),), ValueError, "each of the 2 axes"),
    ("permute", (0,), TypeError, "axes"),
    ("moveaxis", ((0, 1), 0), ValueError, "differ in length"),
    ("moveaxis", ((0, 0), (0, 1)), ValueError, "twice"),
    ("swapaxes", (0, 2), ValueError, "out of range"),
    ("flip", (2,), ValueError, "out of range"),
    ("roll", ((1, 2, 3), (0, 1)), ValueError, "differ in length"),
    ("roll", (1.5,), TypeError, "shift"),
]


@pytest.mark.parametrize(("name", "arguments", "error", "text"), REFUSED)
def test_refused(name, arguments, error, text):
    with pytest.raises(error, match=rf"^\[{name}\].*{text}"):
        getattr(et, name)(et.zeros((2, 3)), *arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("reshape", ((2, 3),)), ("squeeze", ((2, 1),)), ("flatten", ((2, 3),)), ("ravel", ((2, 3),)), ("unsqueeze", (0,)), ("expand_dims", (0,)),
        ("permute", ((1, 0),)), ("moveaxis", (0, 1)), ("swapaxes", (0, 1)), ("roll", (1, 1)), ("flip", (1,)),
    ],
)  # fmt: skip
def test_backward_checks_its_gradient(name, arguments):
    backward = getattr(et, f"{name}_backward")
    with pytest.raises(ValueError, match=rf"^\[{name}_backward\]"):
        backward(et.zeros(5), *arguments)
    with pytest.raises(TypeError, match=rf"^\[{name}_backward\] grad_output"):
        backward(et.zeros(6, dtype=et.int32), *arguments)


def test_backward_refuses_integer_inputs():
    with pytest.raises(TypeError, match=r"^\[reshape_backward\] x has dtype int64"):
        et.reshape_backward(et.zeros(6), et.arange(6))


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16, et.float32])
def test_a_gradient_has_the_dtype_of_its_input(dtype):
    """Whatever the dtype of the gradient that arrives; a bare shape has none of its own."""
    x, grad = et.ones((2, 3), dtype), et.ones((2, 3), et.float64)
    for name, arrived in (
        ("reshape", grad),
        ("squeeze", grad),
        ("flatten", grad.reshape(6)),
        ("ravel", grad.reshape(6)),
        ("broadcast_to", et.ones((4, 2, 3), et.float64)),
        ("sum_to_shape", et.ones(3, et.float64)),
    ):
        backward = getattr(et, f"{name}_backward")
        assert backward(arrived, x).dtype == dtype
        assert backward(arrived, x.shape).dtype == et.float64


def test_the_shape_of_reshape_is_given_by_numbers() -> None:
    """A tensor among them stands for its elements, whatever its dtype, and not for its shape."""
    for dtype in (np.int32, np.int64):
        x = et.tensor(np.array([5, 6], dtype))
        assert et.reshape(x, et.tensor(np.array([2, 1], dtype))).shape == (2, 1)
    for shape in (et.ones((6, 1)), et.ones((2,))):
        with pytest.raises(TypeError, match=r"\[reshape\] shape must be"):
            et.reshape(et.ones((2, 3)), shape)
