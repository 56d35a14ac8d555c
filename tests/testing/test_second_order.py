"""Second derivatives: right ones pass, and a wrong formula behind a right kernel is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import ops
from extensor.graph import backward_of, differentiable
from extensor.tensor import ExTensor
from extensor.testing import Case, Pair
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import Subject, Verdict, verify


def examine(op: Any, pair: Pair) -> Verdict:
    return next(verify([Subject(op, pair)], ("float64",), order=2))


@pytest.mark.parametrize(
    "name", ["multiply", "tanh", "softmax", "matmul", "concatenate", "split", "max_reduce", "where"]
)
def test_right(name: str) -> None:
    verdict = examine(getattr(ops, name), PAIRS[name])
    assert verdict.passed, verdict.failures[:1]
    assert verdict.worst["float64"] < 1e-6


def with_formula(formula: Any) -> Any:
    """tanh with the library's kernel as its backward, and ``formula`` where it is differentiated again."""

    tanh: Any = differentiable(ops.tanh.fn)

    @backward_of(tanh, from_output=True, formula=formula)
    def tanh_backward(grad_output: ExTensor, output: ExTensor) -> ExTensor:
        return et.tanh_backward(grad_output, output)

    return tanh


@pytest.mark.parametrize(
    ("formula", "argument"),
    [
        (lambda g, y: g * (1 - y), "x"),
        (lambda g, y: g.detach() * (1 - y * y), "grad_output"),
        (lambda g, y: g * (1 - (y * y).detach()), "x"),
    ],
    ids=["another derivative", "cut from the upstream gradient", "cut from the output"],
)
def test_a_wrong_formula_is_found(formula: Any, argument: str) -> None:
    verdict = examine(with_formula(formula), PAIRS["tanh"])
    assert not verdict.passed
    assert argument in {failure.argument for failure in verdict.failures}
    assert any("central differences give" in failure.message for failure in verdict.failures)


def test_the_right_formula_passes() -> None:
    assert examine(with_formula(lambda g, y: g * (1 - y * y)), PAIRS["tanh"]).passed


def test_a_backward_in_numpy_has_no_second_derivative() -> None:
    def backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
        return et.asarray(3 * grad_output.numpy() * x.numpy() ** 2)

    cube = differentiable(lambda x: et.asarray(x.numpy() ** 3), backward=backward)
    assert not examine(cube, Pair("cube", lambda draw: iter([Case(np.array([1.0, -2.0]))]))).passed
