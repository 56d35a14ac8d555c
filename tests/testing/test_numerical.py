"""Central differences, comparisons and their tolerances."""

from __future__ import annotations

import numpy as np
import pytest

import extensor as et
from extensor.testing import TOLERANCES, assert_gradients_close, check_gradient, compute_numerical_gradient

X = np.array([[0.3, -1.7, 2.5], [1e-3, 40.0, -0.2]])


def test_the_table_of_tolerances() -> None:
    assert {d.name: tuple(t) for d, t in TOLERANCES.items()} == {
        "float64": (1e-6, 1e-8),
        "float32": (1e-4, 1e-5),
        "float16": (1e-2, 1e-3),
        "bfloat16": (8e-2, 8e-3),
    }


class TestComputeNumericalGradient:
    def test_weights_each_element_of_the_result(self) -> None:
        weights = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
        dx = compute_numerical_gradient(lambda x: x * x * x, et.tensor(X), weights)
        assert dx.dtype == et.float64
        np.testing.assert_allclose(dx.numpy(), 3 * X**2 * weights, rtol=1e-8, atol=1e-9)

    def test_without_weights_it_differentiates_the_sum(self) -> None:
        dx = compute_numerical_gradient(lambda x: x * x, et.tensor(X))
        np.testing.assert_allclose(dx.numpy(), 2 * X, rtol=1e-8, atol=1e-10)

    @pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (2, 3, 2)])
    def test_shapes(self, shape: tuple[int, ...]) -> None:
        x = np.random.default_rng(0).uniform(1, 2, shape)
        dx = compute_numerical_gradient(lambda x: 1 / x, x)
        np.testing.assert_allclose(dx.numpy(), -(x**-2.0), rtol=1e-8)
        assert dx.shape == shape

    @pytest.mark.parametrize("dtype", [et.float32, et.float16, et.bfloat16])
    def test_narrow_inputs_are_differentiated_in_float64(self, dtype: np.dtype) -> None:
        x = et.tensor([1.5, -0.5], dtype=dtype)
        seen = set()

        def cube(x: et.ExTensor) -> et.ExTensor:
            seen.add(x.dtype)
            return x * x * x

        np.testing.assert_allclose(compute_numerical_gradient(cube, x).numpy(), [6.75, 0.75], rtol=1e-8)
        assert seen == {et.float64}

    def test_never_writes_to_x(self) -> None:
        x = X.copy()
        x.flags.writeable = False
        compute_numerical_gradient(lambda x: x * 2, x)
        np.testing.assert_array_equal(x, X)

    def test_the_default_step_grows_with_x(self) -> None:
        seen: list[float] = []

        def identity(x: et.ExTensor) -> et.ExTensor:
            seen.append(float(x))
            return x

        for point in (0.0, 1e6):
            seen.clear()
            compute_numerical_gradient(identity, np.array(point))
            assert seen[0] - point == pytest.approx(
                np.finfo(float).eps ** (1 / 3) * max(1.0, point), rel=1e-4
            )

    def test_a_step_of_ones_own(self) -> None:
        # the central difference of x**3 is exactly 3 x**2 + h**2
        dx = compute_numerical_gradient(lambda x: x * x * x, np.array(2.0), epsilon=0.5)
        assert dx.item() == pytest.approx(12.25, rel=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"x": np.array([1, 2])}, TypeError),
            ({"epsilon": 0.0}, ValueError),
            ({"epsilon": -1e-3}, ValueError),
            ({"grad_output": np.ones(3)}, ValueError),
            ({"grad_output": np.array([[1, 2, 3]] * 2)}, TypeError),
        ],
    )
    def test_bad_input(self, arguments: dict, error: type[Exception]) -> None:
        with pytest.raises(error, match=r"^\[compute_numerical_gradient\]"):
            compute_numerical_gradient(**{"fn": lambda x: x * 1, "x": X, **arguments})


class TestAssertGradientsClose:
    @pytest.mark.parametrize("dtype", [et.float64, et.float32, et.float16, et.bfloat16])
    def test_the_tolerance_is_that_of_the_dtype(self, dtype: np.dtype) -> None:
        limits = TOLERANCES[dtype]
        expected = np.array([1.0, 100.0, 0.0])
        # half an allowed error, rounded to the dtype, passes; twice the allowed error does not
        spacing = np.array([0.5, 0.5, 0.5]) * (limits.atol + limits.rtol * expected)
        assert_gradients_close(et.tensor(expected + spacing, dtype=dtype), expected)
        for i in range(3):
            wrong = expected.copy()
            wrong[i] += 2 * (limits.atol + limits.rtol * expected[i])
            with pytest.raises(AssertionError, match=rf"element \({i},\) is"):
                assert_gradients_close(et.tensor(wrong, dtype=dtype), expected)

    def test_nan_and_infinities(self) -> None:
        special = np.array([np.nan, np.inf, -np.inf])
        assert assert_gradients_close(special, special).worst == 0
        for other in (np.array([0.0, np.inf, -np.inf]), np.array([np.nan, -np.inf, -np.inf])):
            with pytest.raises(AssertionError):
                assert_gradients_close(special, other)
            with pytest.raises(AssertionError):
                assert_gradients_close(other, special)

    def test_tolerances_of_ones_own(self) -> None:
        assert_gradients_close(np.array([1.1]), np.array([1.0]), rtol=0, atol=0.11)
        with pytest.raises(AssertionError):
            assert_gradients_close(np.array([1.1]), np.array([1.0]), rtol=0, atol=0.09)
        with pytest.raises(AssertionError):
            assert_gradients_close(np.array([1.0 + 1e-15]), np.array([1.0]), rtol=0, atol=0)
        with pytest.raises(ValueError, match=r"^\[assert_gradients_close\] rtol"):
            assert_gradients_close(np.ones(1), np.ones(1), rtol=-1)

    def test_shapes_must_agree_even_where_they_broadcast(self) -> None:
        with pytest.raises(AssertionError, match=r"shape \(3,\) but should have \(1,\)"):
            assert_gradients_close(np.ones(3), np.ones(1))

    def test_the_message_of_the_caller_comes_first(self) -> None:
        with pytest.raises(AssertionError, match="layer 2: element"):
            assert_gradients_close(np.zeros(1), np.ones(1), message="layer 2")


class TestCheckGradient:
    @pytest.mark.parametrize("dtype", [et.float64, et.float32, et.float16, et.bfloat16])
    def test_right_and_wrong(self, dtype: np.dtype) -> None:
        x = et.tensor([[0.5, -1.25, 2.0]], dtype=dtype)
        assert check_gradient(lambda x: x * x, lambda g, x: 2 * g * x, x).passed
        with pytest.raises(AssertionError, match=r"^\[check_gradient\] element"):
            check_gradient(lambda x: x * x, lambda g, x: 1.8 * g * x, x)

    def test_the_default_upstream_gradient_is_random(self) -> None:
        grads = []

        def backward(g: et.ExTensor, x: et.ExTensor) -> et.ExTensor:
            grads.append(g.numpy())
            return g * 1

        check_gradient(lambda x: x * 1, backward, np.ones((4, 5)))
        assert len(np.unique(np.abs(grads[0]))) == 20
        assert (grads[0] > 0).any()
        assert (grads[0] < 0).any()

    def test_zeros_do_not_pass_for_softmax(self) -> None:
        x = et.tensor(X)
        check_gradient(et.softmax, et.softmax_backward, x)
        with pytest.raises(AssertionError):
            check_gradient(et.softmax, lambda g, x: x * 0, x)

    def test_a_backward_that_saves_y_gets_the_output(self) -> None:
        x = et.tensor([0.5, -1.0])
        check_gradient(et.tanh, et.tanh_backward, x)
        check_gradient(lambda x: et.tanh(x), et.tanh_backward, x)
        check_gradient(lambda x: x.exp(), lambda g, output: g * output, x)

    def test_a_backward_that_needs_only_the_gradient(self) -> None:
        check_gradient(et.negate, et.negate_backward, et.tensor([1.0, 2.0]))

    def test_options_are_closed_over(self) -> None:
        x = et.tensor(X)
        check_gradient(lambda x: et.sum(x, axis=1), lambda g, x: et.sum_backward(g, x, axis=1), x)

    def test_shape_and_dtype_of_the_gradient(self) -> None:
        with pytest.raises(AssertionError, match="shape and dtype of x"):
            check_gradient(lambda x: x * 2, lambda g, x: (2 * g).reshape(3, 1), et.tensor([1.0, 2.0, 3.0]))
        with pytest.raises(AssertionError, match="shape and dtype of x"):
            check_gradient(
                lambda x: x * 2, lambda g, x: (2 * g).astype(et.float64), et.tensor([1.0, 2.0, 3.0])
            )
        with pytest.raises(TypeError, match="one tensor"):
            check_gradient(lambda x: x * 2, lambda g, x: (g, g), et.tensor([1.0]))

    def test_records_nothing(self) -> None:
        x = et.tensor([1.0, 2.0], requires_grad=True)
        check_gradient(lambda x: x * x, lambda g, x: 2 * g * x, x)
        assert x.grad is None
