"""Wrong gradients are found: each of these pairs has one classic mistake, and the verifier must name it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import ops
from extensor.graph import differentiable
from extensor.ops._pairs import BinaryGradients
from extensor.ops.conv import ConvGradients
from extensor.tensor import ExTensor
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import Subject, Verdict, verify


def examine(
    name: str, backward: Callable[..., Any], dtypes: tuple[str, ...] = ("float64", "float32", "float16")
) -> Verdict:
    """The verdict on the library's forward, with the registry's own samples, and another backward."""
    op = getattr(ops, name)
    of = {"each": op.rule.targets[0]} if op.rule.each else {"wrt": op.rule.targets}
    return next(verify([Subject(differentiable(op.fn, backward=backward, **of), PAIRS[name])], dtypes))


def array(x: ExTensor) -> np.ndarray:
    return np.array(x.numpy())


# One mistake each. The names say which.


def divide_with_an_added_epsilon(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    return BinaryGradients(
        et.sum_to_shape(grad_output / (b + 1e-10), a.shape),
        et.sum_to_shape(-grad_output * a / (b * b + 1e-10), b.shape),
    )


def log_with_an_added_epsilon(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    return grad_output / (x + 1e-10)


def sqrt_with_an_added_epsilon(grad_output: ExTensor, output: ExTensor) -> ExTensor:
    return grad_output / (2 * output + 1e-10)


def mean_without_one_over_n(
    grad_output: ExTensor, x: ExTensor, axis: Any = None, keepdims: bool = False
) -> ExTensor:
    return et.sum_backward(grad_output, x, axis=axis, keepdims=keepdims)


def sum_that_ignores_keepdims(grad_output: ExTensor, x: ExTensor, axis: Any = None) -> ExTensor:
    return et.sum_backward(grad_output, x, axis=axis)


def add_without_the_broadcast_sum(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    return BinaryGradients(grad_output, grad_output)


def add_with_one_row_instead_of_the_sum(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    def first(like: ExTensor) -> ExTensor:
        index = (0,) * (grad_output.ndim - like.ndim) + tuple(slice(0, n) for n in like.shape)
        return (
            et.asarray(array(grad_output)[index])
            if grad_output.size
            else et.sum_to_shape(grad_output, like.shape)
        )

    return BinaryGradients(first(a), first(b))


def subtract_with_the_wrong_sign(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    return BinaryGradients(et.sum_to_shape(grad_output, a.shape), et.sum_to_shape(grad_output, b.shape))


def multiply_with_swapped_operands(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    return BinaryGradients(
        et.sum_to_shape(grad_output * a, a.shape), et.sum_to_shape(grad_output * b, b.shape)
    )


def multiply_in_float64(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    right = et.multiply_backward(grad_output, a, b)
    return BinaryGradients(right.grad_a.astype(et.float64), right.grad_b.astype(et.float64))


def power_without_the_logarithm(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    right = et.power_backward(grad_output, a, b)
    return BinaryGradients(right.grad_a, et.sum_to_shape(grad_output * a**b, b.shape))


def softmax_of_zeros(grad_output: ExTensor, output: ExTensor, axis: int = -1) -> ExTensor:
    return output * 0


def softmax_without_the_sum(grad_output: ExTensor, output: ExTensor, axis: int = -1) -> ExTensor:
    return grad_output * output * (1 - output)


def softmax_over_the_last_axis_only(grad_output: ExTensor, output: ExTensor) -> ExTensor:
    return et.softmax_backward(grad_output, output)


def tanh_from_x_not_y(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    return et.tanh_backward(grad_output, x)


def maximum_with_the_first_of_a_tie(grad_output: ExTensor, a: ExTensor, b: ExTensor) -> BinaryGradients:
    first = et.where(a >= b, grad_output, 0.0)
    return BinaryGradients(et.sum_to_shape(first, a.shape), et.sum_to_shape(grad_output - first, b.shape))


def max_reduce_with_the_first_of_a_tie(
    grad_output: ExTensor, x: ExTensor, axis: Any = None, keepdims: bool = False
) -> ExTensor:
    right = array(et.max_reduce_backward(grad_output, x, axis=axis, keepdims=keepdims))
    if x.ndim == 1 and x.size and not np.isnan(array(x)).any():
        total = right.sum()
        right[:] = 0
        right[int(np.argmax(x.numpy()))] = total
    return et.asarray(right)


def relu_with_one_at_zero(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    return et.where(x >= 0, grad_output, 0.0) + 0 * x


def relu_with_zero_for_nan(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    return et.where(x > 0, grad_output, 0.0)


def relu_with_a_broken_tail(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    grad = array(et.relu_backward(grad_output, x))
    if grad.ndim == 1 and grad.size > 32:
        grad[32:] = np.where(x.numpy()[32:] >= 0, grad_output.numpy()[32:], 0)
    return et.asarray(grad)


def abs_with_one_at_zero(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    return et.where(x >= 0, grad_output, -grad_output)


def square_that_assumes_contiguous_memory(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    flat = 2 * x.numpy().ravel(order="K") * grad_output.numpy().ravel(order="K")
    return et.asarray(flat.reshape(x.shape))


def sin_that_writes_to_its_argument(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    right = et.sin_backward(grad_output, x)
    if x.size:
        x._array.flat[0] += 1
    return right


def cos_only_right_in_float64(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    scale = 1.0 if x.dtype == et.float64 else 1.02
    return scale * et.cos_backward(grad_output, x)


def concatenate_with_gradients_in_reverse(
    grad_output: ExTensor, tensors: list[ExTensor], axis: int = 0
) -> list[ExTensor]:
    return et.concatenate_backward(grad_output, tensors, axis=axis)[::-1]


def erf_that_raises(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    raise RuntimeError("not today")


def negate_that_returns_none(grad_output: ExTensor) -> ExTensor:
    return None  # type: ignore[return-value]


def conv2d_wrong_where_it_is_large(
    grad_output: ExTensor, x: ExTensor, weight: ExTensor, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> ConvGradients:  # fmt: skip
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    right = et.conv2d_backward(grad_output, x, weight, **options)
    if x.dtype == et.float64 or x.size < 10_000 or right.grad_weight is None:
        return right
    return right._replace(grad_weight=right.grad_weight * 1.01)


MISTAKES: list[tuple[str, Callable[..., Any], str]] = [
    ("divide", divide_with_an_added_epsilon, "grad_b"),
    ("log", log_with_an_added_epsilon, "grad_x"),
    ("sqrt", sqrt_with_an_added_epsilon, "grad_x"),
    ("mean", mean_without_one_over_n, "central differences give"),
    ("sum", sum_that_ignores_keepdims, "raises ValueError"),
    ("add", add_without_the_broadcast_sum, "needs sum_to_shape"),
    ("add", add_with_one_row_instead_of_the_sum, "central differences give"),
    ("subtract", subtract_with_the_wrong_sign, "grad_b"),
    ("multiply", multiply_with_swapped_operands, "central differences give"),
    ("multiply", multiply_in_float64, "has dtype float64 but"),
    ("power", power_without_the_logarithm, "grad_b"),
    ("softmax", softmax_of_zeros, "central differences give"),
    ("softmax", softmax_without_the_sum, "central differences give"),
    ("softmax", softmax_over_the_last_axis_only, "central differences give"),
    ("tanh", tanh_from_x_not_y, "central differences give"),
    ("maximum", maximum_with_the_first_of_a_tie, "at the edge"),
    ("max_reduce", max_reduce_with_the_first_of_a_tie, "at the edge"),
    ("relu", relu_with_one_at_zero, "at the edge"),
    ("relu", relu_with_zero_for_nan, "at the edge"),
    ("relu", relu_with_a_broken_tail, "the same point alone has"),
    ("abs", abs_with_one_at_zero, "at the edge"),
    ("square", square_that_assumes_contiguous_memory, "not contiguous"),
    ("sin", sin_that_writes_to_its_argument, "must be pure"),
    ("cos", cos_only_right_in_float64, "the float64 result is"),
    ("concatenate", concatenate_with_gradients_in_reverse, "grad_tensors[0]"),
    ("erf", erf_that_raises, "raises RuntimeError: not today"),
    ("negate", negate_that_returns_none, "must be a tensor, got NoneType"),
    ("conv2d", conv2d_wrong_where_it_is_large, "the float64 result is"),
]


@pytest.mark.parametrize(("name", "backward", "finding"), MISTAKES, ids=[m[1].__name__ for m in MISTAKES])
def test_found(name: str, backward: Callable[..., Any], finding: str) -> None:
    verdict = examine(name, backward)
    assert not verdict.passed
    findings = [f"{failure.case} {failure.message}" for failure in verdict.failures]
    assert any(finding in text for text in findings), findings[:3]


def test_the_right_backward_passes() -> None:
    for name in {name for name, *_ in MISTAKES}:
        verdict = examine(name, getattr(ops, name).backward)
        assert verdict.passed, verdict.failures[:1]


def test_an_explanation_names_the_element_and_reproduces_it() -> None:
    verdict = examine("multiply", multiply_with_swapped_operands, ("float64",))
    failure = next(f for f in verdict.failures if f.index)
    assert failure.argument in ("a", "b")
    assert f"{failure.analytic:.10g}" in failure.message
    assert f"{failure.expected:.10g}" in failure.message
    printed: list[Any] = []
    exec(failure.snippet, {"print": printed.append})  # it names the public backward, which is right
    gradients, numerical = printed
    for right in (getattr(gradients, f"grad_{failure.argument}"), numerical):
        assert right.numpy()[failure.index] == pytest.approx(failure.expected, rel=1e-6)


def test_a_large_case_is_not_written_out() -> None:
    verdict = examine("conv2d", conv2d_wrong_where_it_is_large, ("float32",))
    assert [failure.snippet for failure in verdict.failures] == ["", ""]
    assert "float64[8, 16, 16, 16]" in verdict.failures[0].case


def test_failures_with_the_smallest_inputs_come_first() -> None:
    sizes = [failure.size for failure in examine("tanh", tanh_from_x_not_y).failures]
    assert sizes == sorted(sizes)
