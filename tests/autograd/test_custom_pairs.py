"""A user's own pairs: the same rights as ours, checked, and told what is missing."""

from __future__ import annotations

import numpy as np
import pytest

import extensor as et


def cube_backward(grad_output, x):
    return grad_output * 3.0 * x * x


@et.differentiable(backward=cube_backward)
def cube(x):
    return et.tensor(x.numpy() ** 3)


def scaled_backward(grad_output, x, scale, power=2):
    return grad_output * scale * power * x ** (power - 1), (grad_output * x**power).sum()


@et.differentiable(backward=scaled_backward)
def scaled(x, scale, power=2):
    return et.tensor(scale.numpy() * x.numpy() ** power)


def test_first_and_second_order():
    x = et.tensor([1.0, 2.0], dtype=et.float64, requires_grad=True)
    (cube(x) * 2.0).sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    assert et.hvp(lambda x: cube(x).sum(), x.detach(), et.ones(2, dtype=et.float64)).tolist() == [6.0, 12.0]


def test_a_tuple_in_the_order_of_the_arguments():
    x, scale = et.tensor([1.0, 2.0]), et.tensor(3.0)
    gx, gs = et.grad(lambda x, s: scaled(x, s, power=3).sum(), argnums=(0, 1))(x, scale)
    assert gx.tolist() == [9.0, 36.0]
    assert gs.item() == 9.0


def make(backward, forward=lambda x, y: et.tensor(x.numpy() + y.numpy())):
    return et.differentiable(backward=backward)(forward)


def add_wrong_shape(grad_output, x, y):
    return grad_output, grad_output


def add_wrong_dtype(grad_output, x, y):
    return grad_output.astype(et.float16), grad_output.sum()


def add_one_short(grad_output, x, y):
    return (grad_output,)


def add_not_tensors(grad_output, x, y):
    return grad_output.numpy(), grad_output.sum()


def add_too_many(grad_output, x, y):
    return grad_output, grad_output.sum(), grad_output


@pytest.mark.parametrize(
    ("backward", "kind", "text"),
    [
        (
            add_wrong_shape,
            ValueError,
            r"\[add_wrong_shape\] gradient 1 has shape \(2,\) but the input has shape \(\)",
        ),
        (add_wrong_dtype, TypeError, r"\[add_wrong_dtype\] gradient 0 has dtype float16"),
        (add_one_short, NotImplementedError, r"\[add_one_short\] returned no gradient for input 1"),
        (add_not_tensors, TypeError, r"\[add_not_tensors\] gradient 0 must be a tensor, got ndarray"),
        (add_too_many, ValueError, r"\[add_too_many\] returned 3 gradients for 2 inputs"),
    ],
)
def test_what_a_backward_returns_is_checked(backward, kind, text):
    x = et.tensor([1.0, 2.0], requires_grad=True)
    y = et.tensor(1.0, requires_grad=True)
    with pytest.raises(kind, match=text):
        make(backward)(x, y).sum().backward()


def numpy_backward(grad_output, x):
    return et.tensor(grad_output.numpy() * np.cos(x.numpy()))


@et.differentiable(backward=numpy_backward)
def numpy_sin(x):
    return et.tensor(np.sin(x.numpy()))


def test_a_missing_second_derivative_says_what_to_write():
    x = et.tensor([0.5], dtype=et.float64)
    np.testing.assert_allclose(et.grad(lambda x: numpy_sin(x).sum())(x).numpy(), np.cos(0.5))
    with pytest.raises(
        NotImplementedError, match=r"\[numpy_backward\] cannot be differentiated again.*@differentiable"
    ):
        et.hvp(lambda x: numpy_sin(x).sum(), x, et.ones(1, dtype=et.float64))


def test_a_backward_that_asks_for_something_unknown():
    def odd_backward(grad_output, z):
        return grad_output

    with pytest.raises(TypeError, match=r"odd_backward asks for 'z'"):
        et.differentiable(backward=odd_backward)(lambda x: x)


def test_no_backward_at_all():
    @et.differentiable
    def lonely(x):
        return x

    with pytest.raises(NotImplementedError, match=r"\[lonely\] has no gradient: define lonely_backward"):
        lonely(et.tensor([1.0], requires_grad=True))
