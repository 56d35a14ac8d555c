"""Reductions: values against NumPy and SciPy, gradients against HIPS autograd, edges, dtypes, error texts."""

from __future__ import annotations

import math
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
import scipy.special
from autograd.scipy.special import logsumexp as autograd_logsumexp

import extensor as et
from extensor.autograd import vjp

INF, NAN = math.inf, math.nan
NUMPY: dict[str, Any] = {
    "sum": np.sum, "mean": np.mean, "max_reduce": np.max, "min_reduce": np.min, "variance": np.var, "std": np.std,
    "prod": np.prod, "logsumexp": scipy.special.logsumexp,
}  # fmt: skip
AUTOGRAD: dict[str, Any] = {
    "sum": anp.sum, "mean": anp.mean, "max_reduce": anp.max, "min_reduce": anp.min, "variance": anp.var, "std": anp.std,
    "prod": anp.prod, "logsumexp": autograd_logsumexp,
}  # fmt: skip
AXES: list[tuple[tuple[int, ...], Any, bool]] = [
    ((), None, False), ((1,), 0, False), ((7,), None, True), ((3, 4), 0, False), ((3, 4), -1, True), ((33,), -1, False),
    ((2, 3, 5), None, False), ((2, 3, 5), (0, 2), False), ((2, 3, 5), (-1, -2), True), ((2, 3), (), False), ((2, 0, 3), 0, True),
]  # fmt: skip
HALF = [et.float16, et.bfloat16]


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def backward(name: str) -> Any:
    return getattr(et, f"{name}_backward")


def gradient(name: str, x: Any, grad_output: Any = 1.0, dtype: Any = et.float64, **options: Any) -> list[Any]:
    return backward(name)(et.tensor(grad_output, dtype=dtype), et.tensor(x, dtype=dtype), **options).tolist()


@pytest.mark.parametrize("name", NUMPY)
class TestAgainstOracles:
    @pytest.mark.parametrize(("shape", "axis", "keepdims"), AXES)
    def test_value(self, name: str, shape: tuple[int, ...], axis: Any, keepdims: bool) -> None:
        x = rng().standard_normal(shape)
        if name in ("max_reduce", "min_reduce", "logsumexp") and not x.size:
            expected = np.zeros((1, 0, 3))
        else:
            expected = np.asarray(NUMPY[name](x, axis=axis, keepdims=keepdims))
        found = getattr(et, name)(et.asarray(x), axis, keepdims)
        assert found.shape == expected.shape
        assert found.dtype == et.float64
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13, atol=1e-15)

    # the oracle takes no 0-d tensors, no empty ones and no empty tuple of axes
    @pytest.mark.parametrize(
        ("shape", "axis", "keepdims"), [a for a in AXES if math.prod(a[0]) and a[0] and a[1] != ()]
    )
    def test_gradient(self, name: str, shape: tuple[int, ...], axis: Any, keepdims: bool) -> None:
        x = rng().standard_normal(shape)
        g = rng().standard_normal(np.sum(x, axis, keepdims=keepdims).shape)
        axes = axis if not isinstance(axis, tuple) else tuple(a % len(shape) for a in axis)
        if name == "std" and x.size == 1:
            expected = np.zeros(shape)
        else:
            expected = autograd.grad(lambda x: anp.sum(AUTOGRAD[name](x, axis=axes, keepdims=keepdims) * g))(
                x
            )
        found = backward(name)(et.asarray(g), et.asarray(x), axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)

    @pytest.mark.parametrize(("shape", "axis", "keepdims"), AXES)
    @pytest.mark.parametrize("dtype", HALF)
    def test_half_is_float32_rounded_once(
        self, name: str, shape: tuple[int, ...], axis: Any, keepdims: bool, dtype: Any
    ) -> None:
        x = et.asarray(rng().standard_normal(shape)).astype(dtype)
        forward, options = getattr(et, name), {"axis": axis, "keepdims": keepdims}
        found, expected = forward(x, **options), forward(x.astype(et.float32), **options)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())
        g = et.asarray(rng().standard_normal(found.shape)).astype(dtype)
        found = backward(name)(g, x, **options)
        expected = backward(name)(g.astype(et.float32), x.astype(et.float32), **options)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


@pytest.mark.parametrize("ddof", [0, 1, 0.5])
@pytest.mark.parametrize(("name", "oracle"), [("variance", lambda v: v), ("std", anp.sqrt)])
def test_ddof(name: str, oracle: Any, ddof: float) -> None:
    x = rng().standard_normal((4, 5))
    g = rng().standard_normal(5)
    found = getattr(et, name)(et.asarray(x), axis=0, ddof=ddof).numpy()
    np.testing.assert_allclose(found, NUMPY[name](x, axis=0, ddof=ddof), rtol=1e-13)
    expected = autograd.grad(lambda x: anp.sum(oracle(anp.var(x, axis=0) * 4 / (4 - ddof)) * g))(x)
    found = backward(name)(et.asarray(g), et.asarray(x), axis=0, ddof=ddof).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "axis"), [((), None), ((0,), 0), ((7,), None), ((3, 4), None), ((3, 4), 0), ((2, 3, 5), -2)]
)
def test_cumsum(shape: tuple[int, ...], axis: int | None) -> None:
    x = rng().standard_normal(shape)
    expected = np.cumsum(x, axis)
    np.testing.assert_allclose(et.cumsum(et.asarray(x), axis).numpy(), expected, rtol=1e-13)
    g = rng().standard_normal(expected.shape)
    along = 0 if axis is None else axis
    reverse = np.flip(np.cumsum(np.flip(g, along), along), along).reshape(shape)
    for given in (et.asarray(x), shape):
        np.testing.assert_allclose(
            et.cumsum_backward(et.asarray(g), given, axis).numpy(), reverse, rtol=1e-13
        )


@pytest.mark.parametrize("dtype", HALF)
def test_cumsum_of_half_is_rounded_once(dtype: Any) -> None:
    x = et.asarray(rng().standard_normal(300)).astype(dtype)
    for found, expected in (
        (et.cumsum(x), et.cumsum(x.astype(et.float32))),
        (et.cumsum_backward(x, x), et.cumsum_backward(x.astype(et.float32), (300,))),
    ):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


def test_other_names_are_the_same_functions() -> None:
    for alias, name in (("max", "max_reduce"), ("min", "min_reduce"), ("var", "variance")):
        assert getattr(et, alias) is getattr(et, name)
        assert backward(alias) is backward(name)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_backward_takes_a_shape_or_the_input(name: str) -> None:
    g = et.tensor([1.0, 2.0])
    assert backward(name)(g, (2, 4), axis=1).tolist() == backward(name)(g, et.zeros((2, 4)), axis=1).tolist()
    assert backward(name)(g, et.zeros((2, 4), et.float64), axis=1).dtype == et.float64


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint8, np.uint64])
def test_integers_and_their_averages(dtype: Any) -> None:
    x = np.array([[1, 0, 1], [100, 100, 1]]).astype(dtype)
    for name in ("sum", "mean", "max_reduce", "min_reduce", "variance", "std", "prod"):
        found, expected = getattr(et, name)(et.asarray(x), axis=1), NUMPY[name](x, axis=1)
        assert found.dtype == (np.float32 if name in ("mean", "variance", "std") else expected.dtype)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    assert et.cumsum(et.asarray(x), 1).dtype == np.cumsum(x, 1).dtype


class TestAccuracy:
    """Against exact sums: float32 is rounded once, not once per element."""

    x = rng().standard_normal(200_001).astype(np.float32) * 1000

    @pytest.mark.parametrize("layout", ["contiguous", "strided", "column"])
    def test_sum(self, layout: str) -> None:
        x = {"contiguous": self.x, "strided": self.x[::2], "column": self.x[:200_000].reshape(-1, 2)}[layout]
        exact = [math.fsum(column) for column in np.atleast_2d(x.T)]
        found = et.sum(et.asarray(x), axis=0).numpy()
        np.testing.assert_array_equal(found.reshape(-1), np.array(exact, np.float32))

    def test_mean_cumsum_variance(self) -> None:
        mean = math.fsum(self.x) / self.x.size
        assert et.mean(et.asarray(self.x)).item() == np.float32(mean)
        assert et.cumsum(et.asarray(self.x)).numpy()[-1] == np.float32(math.fsum(self.x))
        far = self.x + np.float32(1e7)  # the deviations are small beside the mean
        exact = np.var(far.astype(np.float64))
        assert et.variance(et.asarray(far)).item() == np.float32(exact)


class TestNothingToReduce:
    def test_values(self) -> None:
        x = et.zeros((2, 0))
        assert et.sum(x, 1).tolist() == [0.0, 0.0]
        assert et.prod(x, 1).tolist() == [1.0, 1.0]
        assert et.logsumexp(x, 1).tolist() == [-INF, -INF]
        for name in ("mean", "variance", "std"):
            assert np.isnan(getattr(et, name)(x, 1).numpy()).all()

    @pytest.mark.parametrize("name", ["max_reduce", "min_reduce"])
    def test_no_extreme_element(self, name: str) -> None:
        with pytest.raises(ValueError, match=rf"\[{name}\] x of shape \(2, 0\) has no elements along axis 1"):
            getattr(et, name)(et.zeros((2, 0)), 1)
        assert getattr(et, name)(et.zeros((2, 0)), 0).shape == (0,)
        assert backward(name)(et.zeros((0,)), et.zeros((2, 0)), axis=0).shape == (2, 0)

    @pytest.mark.parametrize("name", ["sum", "mean", "variance", "std", "prod", "logsumexp"])
    def test_gradients_are_empty(self, name: str) -> None:
        assert backward(name)(et.ones(2), et.zeros((2, 0)), axis=1).shape == (2, 0)


EDGES = [
    ("max_reduce", [1.0, 3.0, 2.0, 3.0], {}, [0.0, 0.5, 0.0, 0.5]),
    ("max_reduce", [INF, 1.0, INF], {}, [0.5, 0.0, 0.5]),
    ("max_reduce", [-INF, -INF], {}, [0.5, 0.5]),
    ("max_reduce", [0.0, -0.0], {}, [0.5, 0.5]),
    ("min_reduce", [1.0, 3.0, 1.0, 1.0], {}, [1 / 3, 0.0, 1 / 3, 1 / 3]),
    ("prod", [0.0, 2.0, 3.0], {}, [6.0, 0.0, 0.0]),
    ("prod", [0.0, 0.0, 3.0], {}, [0.0, 0.0, 0.0]),
    ("prod", [0.0], {}, [1.0]),
    ("prod", [INF, 2.0], {}, [2.0, INF]),
    ("variance", [1.0, 2.0], {"ddof": 2}, [-INF, INF]),
    ("variance", [1.0, 2.0], {"ddof": 5}, [-INF, INF]),
    ("variance", [1.0], {"ddof": 1}, [NAN]),
    ("std", [2.0, 2.0, 2.0], {}, [0.0, 0.0, 0.0]),
    ("std", [1.0], {"ddof": 1}, [NAN]),
    ("logsumexp", [1000.0, 1000.0], {}, [0.5, 0.5]),
    ("logsumexp", [-INF, 1.0], {}, [0.0, 1.0]),
    ("logsumexp", [-INF, -INF], {}, [NAN, NAN]),
    ("logsumexp", [INF, 1.0], {}, [NAN, 0.0]),
]


@pytest.mark.parametrize(("name", "x", "options", "expected"), EDGES)
@pytest.mark.parametrize("dtype", [et.float64, et.float32, et.float16, et.bfloat16])
def test_edges(name: str, x: list[float], options: dict[str, Any], expected: list[float], dtype: Any) -> None:
    rounded = np.array(expected).astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(gradient(name, x, dtype=dtype, **options), rounded)


@pytest.mark.parametrize("name", ["max_reduce", "min_reduce", "prod"])
def test_a_nan_makes_its_slice_nan_and_no_other(name: str) -> None:
    for n in range(1, 70):
        for at in {0, n // 2, n - 1}:
            x = np.ones((3, n), np.float32)
            x[1, at] = NAN
            grad = backward(name)(et.ones(3), et.asarray(x), axis=1).numpy()
            assert np.isnan(grad[1]).all()
            assert np.isfinite(grad[[0, 2]]).all()


def test_extremes_ignore_an_infinite_gradient_elsewhere() -> None:
    """An element that was not chosen has the gradient 0, also when the gradient of the maximum is infinite."""
    assert gradient("max_reduce", [1.0, 2.0], INF) == [0.0, INF]


def test_infinities_forward() -> None:
    assert et.logsumexp(et.tensor([-INF, -INF])).item() == -INF
    assert et.logsumexp(et.tensor([INF, 1.0])).item() == INF
    assert math.isnan(et.logsumexp(et.tensor([INF, NAN])).item())
    assert et.logsumexp(et.tensor([1e4, -1e4])).item() == 1e4
    assert et.variance(et.tensor([1.0, 2.0]), ddof=3).item() == INF


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_second_derivative_of_prod_with_zeros(zeros: int) -> None:
    x = np.array([2.0, 3.0, 5.0, 7.0])
    x[:zeros] = 0.0
    expected = np.array([[np.prod(np.delete(x, [i, j])) * (i != j) for j in range(4)] for i in range(4)])
    for i in range(4):
        grad = vjp(lambda x, i=i: et.autograd.grad(et.prod)(x)[i], et.asarray(x))[1](
            et.tensor(1.0, et.float64)
        )
        np.testing.assert_allclose((grad[0] if isinstance(grad, tuple) else grad).numpy(), expected[i])


def test_second_derivative_of_prod_needs_memory_like_its_input() -> None:
    """Thousands of elements: a table of all pairs, and of their gradients, would not fit."""
    rng = np.random.default_rng(0)
    x, v = rng.uniform(0.9, 1.1, 4001), rng.normal(size=4001)
    found = et.hvp(et.prod, et.asarray(x), et.asarray(v)).numpy()
    np.testing.assert_allclose(found, x.prod() / x * ((v / x).sum() - v / x), rtol=1e-9)


def test_second_derivative_of_std_at_equal_elements_is_finite() -> None:
    x = et.tensor([2.0, 2.0, 2.0])
    second = et.autograd.grad(lambda x: (et.autograd.grad(et.std)(x) * et.tensor([1.0, 2.0, 3.0])).sum())(x)
    assert second.tolist() == [0.0, 0.0, 0.0]


PAIRS = [*NUMPY, "cumsum"]


@pytest.mark.parametrize("name", PAIRS)
def test_a_recorded_backward_takes_what_the_plain_one_takes(name: str) -> None:
    """Numbers, lists and keywords, where the gradient itself is being differentiated."""
    x = et.tensor([2.0, 5.0], requires_grad=True)
    g: Any = [1.0, 3.0] if name == "cumsum" else 2.0
    plain = backward(name)(g, x.detach())
    assert backward(name)(g, x).tolist() == pytest.approx(plain.tolist(), rel=1e-6)
    assert backward(name)(grad_output=g, x=x).tolist() == pytest.approx(plain.tolist(), rel=1e-6)
    assert backward(name)(
        et.tensor(g, requires_grad=True), [2.0, 5.0] if name not in ("sum", "mean", "cumsum") else (2,)
    ).requires_grad


@pytest.mark.parametrize("name", PAIRS)
def test_forward_errors(name: str) -> None:
    function = getattr(et, name)
    with pytest.raises(ValueError, match=rf"\[{name}\] axis 2 is out of range for a tensor with 1 axes"):
        function(et.ones(3), axis=2)
    with pytest.raises(TypeError, match=rf"\[{name}\] axis must be an int"):
        function(et.ones(3), axis=0.5)
    with pytest.raises(TypeError, match=rf"\[{name}\] x must be a tensor"):
        function("x")
    if name != "cumsum":
        with pytest.raises(ValueError, match=rf"\[{name}\] axis \(0, -1\) names an axis twice"):
            function(et.ones(3), axis=(0, -1))
        with pytest.raises(TypeError, match=rf"\[{name}\] keepdims must be True or False"):
            function(et.ones(3), keepdims="yes")
    if name in ("variance", "std"):
        with pytest.raises(TypeError, match=rf"\[{name}\] ddof must be a number"):
            function(et.ones(3), ddof="1")


@pytest.mark.parametrize("name", PAIRS)
def test_backward_errors(name: str) -> None:
    label = rf"\[{name}_backward\]"
    with pytest.raises(
        ValueError, match=label + r" grad_output has shape \(4,\) but the forward's result has shape \(3,\)"
    ):
        backward(name)(
            et.ones(4),
            et.ones((3, 2)) if name != "cumsum" else et.ones(3),
            **({"axis": 1} if name != "cumsum" else {}),
        )
    with pytest.raises(TypeError, match=label + " x has dtype int64; only floating tensors have gradients"):
        backward(name)(et.ones(()), et.tensor([1, 2]))
    with pytest.raises(TypeError, match=label + " grad_output must have a floating dtype"):
        backward(name)(et.tensor(1), et.ones(()))
    with pytest.raises(ValueError, match=label + " axis 5 is out of range"):
        backward(name)(et.ones(()), et.ones(3), axis=5)


def test_a_complex_gradient_of_a_real_product_is_its_real_part() -> None:
    assert et.prod_backward(et.tensor(2 + 3j), et.tensor([2.0, 5.0])).tolist() == [10.0, 4.0]


@pytest.mark.parametrize("shape", [(3, 1 << 62), (1 << 70,), (0, 1 << 62, 1 << 62)])
def test_shapes_beyond_every_memory(shape: tuple[int, ...]) -> None:
    for backward in (et.sum_backward, et.mean_backward, et.max_reduce_backward):
        with pytest.raises((ValueError, TypeError), match=rf"^\[{backward.__name__}\] "):
            backward(et.tensor(1.0), shape)
