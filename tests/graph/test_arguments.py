"""Arguments that no parameter takes: the error names the parameter that was meant."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor._misfits import ALIASES, NEVER
from extensor.graph import run_bodies

X = et.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: X.sum(dim=0), "[sum] has no argument 'dim'; it is called 'axis' here"),
        (lambda: et.sum(X, axis=0, keepdim=True), "[sum] has no argument 'keepdim'; it is called 'keepdims' here"),
        (lambda: et.softmax(X, dim=1), "[softmax] has no argument 'dim'; it is called 'axis' here"),
        (lambda: X.argmax(dim=1), "[argmax] has no argument 'dim'; it is called 'axis' here"),
        (lambda: et.concatenate([X, X], dim=0), "[concatenate] has no argument 'dim'; it is called 'axis' here"),
        (lambda: X.flatten(start_dim=1), "[flatten] has no argument 'start_dim'; it is called 'start_axis' here"),
        (
            lambda: et.scaled_dot_product_attention(X, X, X, is_causal=True),
            "[scaled_dot_product_attention] has no argument 'is_causal'; it is called 'causal' here",
        ),
        (lambda: et.mean_squared_error(X, target=X), "[mean_squared_error] has no argument 'target'; it is called 'targets' here"),
        (lambda: et.leaky_relu(X, negative_slope=0.1), "[leaky_relu] has no argument 'negative_slope'; it is called 'alpha' here"),
        (lambda: X.clip(a_min=0), "[clip] has no argument 'a_min'; it is called 'min' here"),
        (lambda: X.std(unbiased=True), "[std] has no argument 'unbiased'; use ddof=1 for it, ddof=0 without"),
        (lambda: et.relu(X, inplace=True), "[relu] has no argument 'inplace'; tensors never change; leave it out and take what is returned"),
        (lambda: et.add(X, X, out=X), "[add] has no argument 'out'; tensors never change; leave it out and take what is returned"),
        (lambda: et.sum(X, keepdimss=True), "[sum] has no argument 'keepdimss'; did you mean 'keepdims'?"),
        (lambda: et.exp(X, zzz=1), "[exp] has no argument 'zzz'; it takes x"),
        (lambda: et.reshape(X, 4, 1), "[reshape] takes shape as one argument: reshape(x, (4, 1))"),
        (lambda: et.permute(X, 1, 0), "[permute] takes axes as one argument: permute(x, (1, 0))"),
        (lambda: et.transpose(X, 0, 1), "[transpose] takes all axes as one tuple; swapaxes(x, 0, 1) exchanges two"),
        (lambda: et.concatenate(X, X, X), "[concatenate] takes its tensors as one list: concatenate([a, b])"),
        (lambda: et.exp(X, X), "[exp] takes at most 1 arguments, x; got 2, the last ExTensor "),
        (lambda: et.add(X), "[add] needs b"),
        (lambda: et.add(X, X, a=X), "[add] was given 'a' by its place and by its name"),
        (lambda: et.zeros(3, 4), "[zeros] dtype must name a number type, got int 4; lengths go into one tuple: zeros((3, 4))"),
        (lambda: et.ones(3, 4, 5), "[ones] takes shape as one argument: ones((3, 4, 5))"),
        (lambda: et.zeros((3, 4), device="cpu"), "[zeros] has no argument 'device'; leave it out: everything is on the CPU"),
        (lambda: et.zeros(size=(3, 4)), "[zeros] has no argument 'size'; it is called 'shape' here"),
        (lambda: et.linspace(0, 1, steps=5), "[linspace] has no argument 'steps'; it is called 'num' here"),
        (lambda: et.sum_backward(X, X, dim=0), "[sum_backward] has no argument 'dim'; it is called 'axis' here"),
    ],
)  # fmt: skip
def test_the_error_names_what_was_meant(call: Any, message: str) -> None:
    for plans in (True, False):
        with contextlib.nullcontext() if plans else run_bodies(), pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value).startswith(message)


def test_errors_from_inside_stay_as_they_are() -> None:
    @et.differentiable
    def broken(x: Any) -> Any:
        return len(3, 4)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"^len\(\) takes exactly one argument"):
        broken(X)


def test_aliases_are_no_parameters_of_the_function_they_stand_for() -> None:
    assert not set(NEVER) & set(ALIASES)
    assert all(meant for meant in ALIASES.values())


@pytest.mark.parametrize("axes", [(0, 1), (-2, -1)])
def test_transpose_of_a_matrix_by_two_axes_is_no_silent_identity(axes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"x.swapaxes{axes}, or x.T")):
        X.transpose(*axes)
    np.testing.assert_array_equal(X.transpose(axes).numpy(), X.numpy())  # as a tuple it is NumPy's
    np.testing.assert_array_equal(X.transpose(1, 0).numpy(), X.numpy().T)
    np.testing.assert_array_equal(X.transpose(-1, -2).numpy(), X.numpy().T)
    with pytest.raises(ValueError, match=r"use x\.swapaxes\(0, 2\)$"):
        et.ones((2, 3, 4)).transpose(0, 2)
    assert et.ones((2, 3, 4)).transpose(2, 0, 1).shape == (4, 2, 3)
