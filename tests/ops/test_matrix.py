"""Matrix products and the transpose: against NumPy and HIPS autograd, dtypes, accuracy, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et
from extensor.kernels import KERNELS

Shape = tuple[int, ...]


def same_bits(ours: et.ExTensor, theirs: np.ndarray) -> None:
    np.testing.assert_array_equal(ours.numpy(), theirs, strict=True)


CASES: list[tuple[str, Shape, Shape, dict[str, Any]]] = [
    *[("matmul", a, b, {}) for a, b in [
        ((7,), (7,)), ((3, 7), (7,)), ((7,), (7, 3)), ((3, 7), (7, 5)), ((4, 3, 2), (2, 5)), ((4, 3, 2), (4, 2, 5)),
        ((1, 3, 2), (4, 2, 5)), ((4, 3, 2), (1, 2, 5)), ((2, 1, 3, 2), (4, 2, 5)), ((3, 2), (4, 2, 5)), ((4, 3, 2), (2,)),
        ((2,), (4, 2, 5)), ((0, 3), (3, 2)), ((3, 0), (0, 2)), ((2, 0, 3), (3, 4)), ((33, 65), (65, 17)),
    ]],
    *[("dot", a, b, {}) for a, b in [
        ((), ()), ((), (3,)), ((2, 3), ()), ((7,), (7,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3), (3, 4)), ((2, 5, 3), (4, 3, 2)),
    ]],
    *[("inner", a, b, {}) for a, b in [((), (3,)), ((2, 3), ()), ((7,), (7,)), ((3, 4), (4,)), ((2, 3), (4, 3)), ((2, 5, 3), (4, 2, 3))]],
    *[("outer", a, b, {}) for a, b in [((), ()), ((3,), (4,)), ((2, 3), (4, 1)), ((0,), (4,))]],
    ("tensordot", (2, 3, 4), (3, 4, 5), {}),
    *[("tensordot", a, b, {"axes": axes}) for a, b, axes in [
        ((2, 3), (4,), 0), ((2, 3), (3, 4), 1), ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))), ((2, 3, 4), (4, 2), ((0, -1), (1, 0))),
        ((3, 2), (3,), (0, 0)), ((2, 3, 4, 5), (5, 3, 6, 2), ((0, 1, 3), (3, 1, 0))), ((2, 0), (0, 3), 1), ((2, 3), (2, 3), ([0, 1], [0, 1])),
    ]],
]  # fmt: skip


def operands(a: Shape, b: Shape) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    return np.asarray(rng.standard_normal(a)), np.asarray(rng.standard_normal(b))


def backward(name: str) -> Any:
    return getattr(et, f"{name}_backward")


@pytest.mark.parametrize(("name", "shape_a", "shape_b", "options"), CASES)
class TestAgainstOracles:
    def test_value(self, name: str, shape_a: Shape, shape_b: Shape, options: dict[str, Any]) -> None:
        a, b = operands(shape_a, shape_b)
        expected = getattr(np, name)(a, b, **options)
        found = getattr(et, name)(et.asarray(a), et.asarray(b), **options)
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)

    def test_gradient(self, name: str, shape_a: Shape, shape_b: Shape, options: dict[str, Any]) -> None:
        """Each function is bilinear: <da, v> = <g, f(v, b)> and <db, w> = <g, f(a, w)> for every v and w."""
        a, b = operands(shape_a, shape_b)
        g = np.random.default_rng(12).standard_normal(np.shape(getattr(np, name)(a, b, **options)))
        grads = backward(name)(et.asarray(np.asarray(g)), et.asarray(a), et.asarray(b), **options)
        assert (grads.grad_a.shape, grads.grad_b.shape) == (shape_a, shape_b)
        v, w = (np.random.default_rng(13).standard_normal(s) for s in (shape_a, shape_b))
        forward = getattr(np, name)
        np.testing.assert_allclose(
            np.sum(grads.grad_a.numpy() * v), np.sum(g * forward(v, b, **options)), rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(
            np.sum(grads.grad_b.numpy() * w), np.sum(g * forward(a, w, **options)), rtol=1e-10, atol=1e-12
        )

    def test_only_what_is_needed(
        self, name: str, shape_a: Shape, shape_b: Shape, options: dict[str, Any]
    ) -> None:
        a, b = map(et.asarray, operands(shape_a, shape_b))
        g = et.ones_like(getattr(et, name)(a, b, **options))
        both = backward(name)(g, a, b, **options)
        first = backward(name)(g, a, b, needs=(True, False), **options)
        second = backward(name)(g, a, b, needs=(False, True), **options)
        assert first.grad_b is second.grad_a is None
        assert first.grad_a.tolist() == both.grad_a.tolist()
        assert second.grad_b.tolist() == both.grad_b.tolist()

    @pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
    def test_half_is_float32_rounded_once(
        self, name: str, shape_a: Shape, shape_b: Shape, options: dict[str, Any], dtype: Any
    ) -> None:
        a, b = (et.asarray(v).astype(dtype) for v in operands(shape_a, shape_b))
        wide = a.astype(et.float32), b.astype(et.float32)
        found, expected = getattr(et, name)(a, b, **options), getattr(et, name)(*wide, **options)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())
        for grad, twin in zip(
            backward(name)(found, a, b, **options), backward(name)(found.astype(et.float32), *wide, **options)
        ):
            assert grad.dtype == dtype
            np.testing.assert_array_equal(grad.numpy(), twin.astype(dtype).numpy())


AUTOGRAD = [c for c in CASES if 0 not in c[1] + c[2] and c[1] and c[2]]


@pytest.mark.parametrize(("name", "shape_a", "shape_b", "options"), AUTOGRAD)
def test_gradients_agree_with_autograd(
    name: str, shape_a: Shape, shape_b: Shape, options: dict[str, Any]
) -> None:
    a, b = operands(shape_a, shape_b)
    if name == "outer":
        a, b = a.reshape(-1), b.reshape(-1)
    g = np.random.default_rng(12).standard_normal(np.shape(getattr(np, name)(a, b, **options)))
    expected = autograd.grad(lambda ab: anp.sum(getattr(anp, name)(*ab, **options) * g))((a, b))
    found = backward(name)(et.asarray(np.asarray(g)), et.asarray(a), et.asarray(b), **options)
    for grad, oracle in zip(found, expected):
        np.testing.assert_allclose(grad.numpy(), oracle, rtol=1e-11, atol=1e-13)


def test_float32_adds_up_accurately() -> None:
    """Adding up one product after the other in float32 is off by 3e-6 here."""
    rng = np.random.default_rng(0)
    a, b = (np.abs(rng.standard_normal(s)).astype(np.float32) for s in ((3, 20_000), (20_000, 5)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(et.matmul(et.asarray(a), et.asarray(b)).numpy(), exact, rtol=1e-6)
    np.testing.assert_array_equal(KERNELS["matmul"].reference(a, b), exact.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint8])
def test_integers_as_numpy_has_them(dtype: Any) -> None:
    a = np.array([[100, 1], [1, 0]]).astype(dtype)
    for name in ("matmul", "inner", "outer", "tensordot", "dot"):
        found, expected = getattr(et, name)(et.asarray(a), et.asarray(a)), getattr(np, name)(a, a)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected)


def test_mixed_dtypes() -> None:
    a, b = et.ones((2, 3), et.float32), et.ones((3, 2), et.float64)
    assert et.matmul(a, b).dtype == et.float64
    assert [g.dtype for g in et.matmul_backward(et.ones((2, 2), et.float64), a, b)] == [
        et.float32,
        et.float64,
    ]
    integers = et.ones((3, 2), et.int32)
    grad = et.matmul_backward(et.ones((2, 2), et.float64), a, integers, needs=(True, False)).grad_a
    assert grad.dtype == et.float32
    assert grad.tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((), None), ((3,), None), ((2, 3), None), ((2, 3, 4), None), ((2, 3, 4), (1, 2, 0)), ((2, 3, 4), (-1, 0, -2)), ((2, 0, 3), (2, 0, 1))],
)  # fmt: skip
def test_transpose(shape: Shape, axes: Any) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = et.transpose(et.asarray(x), axes)
    np.testing.assert_array_equal(found.numpy(), np.transpose(x, axes))
    if x.size:
        assert np.shares_memory(found.numpy(), x)
    np.testing.assert_array_equal(et.transpose_backward(found.astype(et.float32), axes).numpy(), x)


def test_nan_and_inf_stay_where_they_belong() -> None:
    a = et.tensor([[1.0, float("nan")], [0.0, 2.0]])
    product = et.matmul(a, et.tensor([[1.0, float("inf")], [2.0, 3.0]])).numpy()
    np.testing.assert_array_equal(product, [[np.nan, np.nan], [4.0, np.nan]])


ERRORS = [
    (lambda: et.matmul(et.ones((2, 3)), et.ones((4, 5))), ValueError, r"\[matmul\] a has 3 columns but b has 4 rows \(a: \(2, 3\), b: \(4, 5\)\)"),
    (lambda: et.matmul(et.ones((2, 2, 3)), et.ones((3, 3, 4))), ValueError, r"\[matmul\] the batches \(2,\) and \(3,\) do not broadcast"),
    (lambda: et.matmul(et.tensor(1.0), et.ones(3)), ValueError, r"\[matmul\] a is 0-d"),
    (lambda: et.matmul(et.ones(3), 2.0), ValueError, r"\[matmul\] b is 0-d"),
    (lambda: et.matmul("a", et.ones(3)), TypeError, r"\[matmul\] a must be a tensor"),
    (lambda: et.matmul_backward(et.ones((2, 2)), et.ones((2, 3)), et.ones((3, 4))), ValueError, r"\[matmul_backward\] grad_output has shape \(2, 2\) but .* \(2, 4\)"),
    (lambda: et.matmul_backward(et.ones(()), et.tensor([1]), et.ones(1)), TypeError, r"\[matmul_backward\] a has dtype int64"),
    (lambda: et.transpose(et.ones((2, 3)), (0, 0)), ValueError, r"\[transpose\] axes \(0, 0\) must name each of the 2 axes once"),
    (lambda: et.transpose(et.ones((2, 3)), (0, 2)), ValueError, r"\[transpose\] axes \(0, 2\): 2 is out of range"),
    (lambda: et.transpose(et.ones((2, 3)), 1.5), TypeError, r"\[transpose\] axes must be an int"),
    (lambda: et.transpose_backward(et.ones((2, 3)), (0,)), ValueError, r"\[transpose_backward\] axes \(0,\) must name each"),
    (lambda: et.transpose_backward(et.tensor([1])), TypeError, r"\[transpose_backward\] grad_output must have a floating dtype"),
    (lambda: et.dot(et.ones((2, 3)), et.ones((4, 3))), ValueError, r"\[dot\] the last axis of a has length 3 but axis -2 of b has 4"),
    (lambda: et.dot_backward(et.ones(3), et.ones((2, 3)), et.ones(3)), ValueError, r"\[dot_backward\] grad_output has shape \(3,\) but .* \(2,\)"),
    (lambda: et.dot_backward(et.ones(3), et.ones(()), et.ones(2)), ValueError, r"\[dot_backward\] grad_output has shape \(3,\) but .* \(2,\)"),
    (lambda: et.inner(et.ones(3), et.ones(4)), ValueError, r"\[inner\] the last axis of a has length 3 but axis -1 of b has 4"),
    (lambda: et.inner_backward(et.ones(3), et.ones(3), et.ones(3)), ValueError, r"\[inner_backward\] grad_output has shape \(3,\)"),
    (lambda: et.outer(et.ones(3), None), TypeError, r"\[outer\] b must be a tensor"),
    (lambda: et.outer_backward(et.ones(3), et.ones(3), et.ones(2)), ValueError, r"\[outer_backward\] grad_output has shape \(3,\) but .* \(3, 2\)"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((3, 2)), 3), ValueError, r"\[tensordot\] axes=3: a has 2 axes"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((2, 3)), 1), ValueError, r"\[tensordot\] axes \(1,\) of a have lengths \(3,\) but axes \(0,\) of b have \(2,\)"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((2, 3)), ((0, 0), (0, 1))), ValueError, r"\[tensordot\] axes \(0, 0\) names an axis twice"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((2, 3)), ((0, 1), (0,))), ValueError, r"\[tensordot\] axes names 2 axes of a but 1 of b"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((2, 3)), (0, 1, 2)), ValueError, r"\[tensordot\] axes must be an int or a pair"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((2, 3)), (0, 5)), ValueError, r"\[tensordot\] axis 5 is out of range"),
    (lambda: et.tensordot(et.ones((2, 3)), et.ones((2, 3)), "ij"), TypeError, r"\[tensordot\] axes must be an int"),
    (lambda: et.tensordot_backward(et.ones(2), et.ones((2, 3)), et.ones((2, 3))), ValueError, r"\[tensordot_backward\] grad_output has shape \(2,\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


PAIRS = [("float64", "float32"), ("float32", "float64"), ("int64", "float32"), ("float16", "float32")]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_products_of_mixed_dtypes_are_those_of_their_common_dtype(first: str, second: str) -> None:
    """To the bit: they take the same kernel, which is many times faster than one for mixed dtypes."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (64, 64)).astype(dtype) for dtype in (first, second))
    g, common = rng.normal(size=(64, 64)).astype(np.float32), np.result_type(first, second)
    wide_a, wide_b = a.astype(common), b.astype(common)
    same_bits(et.matmul(et.tensor(a), et.tensor(b)), et.matmul(et.tensor(wide_a), et.tensor(wide_b)).numpy())
    same_bits(et.dot(et.tensor(a), et.tensor(b)), et.dot(et.tensor(wide_a), et.tensor(wide_b)).numpy())
    if a.dtype.kind != "f":
        return
    found = et.matmul_backward(et.tensor(g), et.tensor(a), et.tensor(b))
    expected = et.matmul_backward(et.tensor(g.astype(common)), et.tensor(wide_a), et.tensor(wide_b))
    for mine, its, dtype in zip(found, expected, (first, second)):
        same_bits(mine, its.numpy().astype(dtype))
    found = et.linear_backward(et.tensor(g), et.tensor(a), et.tensor(b))
    expected = et.linear_backward(et.tensor(g.astype(common)), et.tensor(wide_a), et.tensor(wide_b))
    for mine, its, dtype in zip(found, expected, (first, second, "float32")):
        same_bits(mine, its.numpy().astype(dtype))
    same_bits(et.linear(et.tensor(a), et.tensor(b)), et.linear(et.tensor(wide_a), et.tensor(wide_b)).numpy())


@pytest.mark.parametrize("dtype", [et.float32, et.float64, et.bfloat16, et.float16])
def test_outer_products_keep_the_sign_of_zero(dtype):
    a, b = np.array([0.0, -0.0, 2.0]), np.array([-1.0, 3.0, -0.0])
    found = et.outer(et.tensor(a).astype(dtype), et.tensor(b).astype(dtype)).numpy().astype(float)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(np.outer(a, b)))
