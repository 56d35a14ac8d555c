"""What every elementwise function is asked, given an oracle that HIPS autograd can differentiate."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from autograd import elementwise_grad

import extensor as et

SHAPES = [(), (0,), (1,), (7,), (33,), (3, 4), (2, 0, 3), (2, 3, 5)]
# around the widths of vector registers, single and several; every position of each carries the nan once
LENGTHS = [1, 2, 3, 5, 8, 9, 16, 17, 33, 70]


@dataclass(frozen=True)
class Function:
    """A public function, what it should compute, and where: an interval, and points it has kinks at."""

    name: str
    oracle: Callable[[Any], Any]
    low: float = -3.0
    high: float = 3.0
    kinks: tuple[float, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name + "".join(f"-{k}={v}" for k, v in self.options.items())

    @property
    def saves_output(self) -> bool:
        return "output" in inspect.signature(self.raw_backward).parameters

    @property
    def raw_backward(self) -> Any:
        return getattr(et, f"{self.name}_backward")

    def forward(self, x: Any) -> et.ExTensor:
        return getattr(et, self.name)(x, **self.options)

    def backward(self, grad: Any, x: Any) -> et.ExTensor:
        """The gradient, with whatever the backward wants to have saved."""
        return self.raw_backward(grad, self.forward(x) if self.saves_output else x, **self.options)

    def draw(self, shape: Any, dtype: Any = np.float64) -> np.ndarray:
        x = np.asarray(np.random.default_rng(5).uniform(self.low, self.high, shape))
        for kink in self.kinks:
            x = np.where(np.abs(x - kink) < 0.05, kink + 0.1, x)
        return x.astype(dtype)


def gradient_like(x: np.ndarray, seed: int = 6) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=x.shape)).astype(x.dtype)


def slope_of(oracle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative by HIPS autograd; ``0 * x`` ties pieces that are constant to the input."""
    return elementwise_grad(lambda x: oracle(x) + 0.0 * x)


def check_values(f: Function) -> None:
    for shape in SHAPES:
        x = f.draw(shape)
        y = f.forward(et.tensor(x))
        assert y.dtype == np.float64
        assert y.shape == shape
        np.testing.assert_allclose(y.numpy(), f.oracle(x), rtol=1e-13, atol=1e-15)
        x = f.draw(shape, np.float32)
        y = f.forward(et.tensor(x))
        assert y.dtype == np.float32
        np.testing.assert_allclose(y.numpy(), f.oracle(x.astype(np.float64)), rtol=2e-6, atol=1e-7)


def check_strided(f: Function) -> None:
    x = f.draw((6, 10))
    for view in (x.T, x[::-1, ::2], x[:, 3], np.broadcast_to(x[0], (3, 10))):
        g = gradient_like(view)
        plain = np.ascontiguousarray(view)
        np.testing.assert_array_equal(
            f.forward(et.asarray(view)).numpy(), f.forward(et.asarray(plain)).numpy()
        )
        np.testing.assert_array_equal(
            f.backward(et.asarray(g.T).T, et.asarray(view)).numpy(),
            f.backward(et.asarray(g), et.asarray(plain)).numpy(),
        )


def check_gradients(f: Function) -> None:
    slope = slope_of(f.oracle)
    for shape in SHAPES:
        x = f.draw(shape)
        g = gradient_like(x)
        expected = g * slope(x) if x.size else x
        found = f.backward(et.tensor(g), et.tensor(x))
        assert found.dtype == np.float64
        assert found.shape == shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-13)
        found = f.backward(et.tensor(g, dtype=np.float32), et.tensor(x, dtype=np.float32))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=2e-6)


def check_mixed_dtypes(f: Function) -> None:
    """The gradient has the dtype of the input, whatever the upstream gradient has."""
    x = et.tensor(f.draw(5))
    for there, here in ((et.float64, et.float32), (et.float32, et.float64), (et.float16, et.float32)):
        assert f.backward(et.ones(5, dtype=there), x.astype(here)).dtype == here


def check_second_derivative(f: Function) -> None:
    """Differentiating the backward: with respect to the upstream gradient, and to the input."""
    x = f.draw(9)
    g, h = gradient_like(x), gradient_like(x, seed=7)
    slope = slope_of(f.oracle)
    recorded = f.backward(et.tensor(g), et.tensor(x, requires_grad=True))
    np.testing.assert_allclose(
        recorded.numpy(), f.backward(et.tensor(g), et.tensor(x)).numpy(), rtol=1e-11, atol=1e-13
    )
    by_g, by_x = et.grad(lambda g, x: (f.backward(g, x) * et.tensor(h)).sum(), argnums=(0, 1))(
        et.tensor(g), et.tensor(x)
    )
    np.testing.assert_allclose(by_g.numpy(), h * slope(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(by_x.numpy(), g * h * slope_of(slope)(x), rtol=1e-9, atol=1e-11)


def check_nan_at_every_position(f: Function, gradient_is_nan: bool = True) -> None:
    """A nan stays where it is, and its neighbours do not notice, in the vector body and in the tail."""
    for dtype in (np.float32, np.float64):
        for n in LENGTHS:
            x = f.draw(n, dtype)
            g = gradient_like(x)
            y, gx = f.forward(et.tensor(x)).numpy(), f.backward(et.tensor(g), et.tensor(x)).numpy()
            for i in range(n):
                holed = x.copy()
                holed[i] = np.nan
                for found, whole, is_nan in (
                    (f.forward(et.tensor(holed)).numpy(), y, True),
                    (f.backward(et.tensor(g), et.tensor(holed)).numpy(), gx, gradient_is_nan),
                ):
                    assert np.isnan(found[i]) == is_nan, (dtype, n, i)
                    assert np.delete(found, i).tobytes() == np.delete(whole, i).tobytes(), (dtype, n, i)


def check_half_precision(f: Function) -> None:
    """float16 and bfloat16 are the float32 result rounded once."""
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = f.draw(61).astype(dtype)
        g = gradient_like(x)
        y = f.forward(et.tensor(x))
        assert y.dtype == dtype
        assert (
            y.numpy().tobytes() == f.forward(et.tensor(x, dtype=et.float32)).numpy().astype(dtype).tobytes()
        )
        saved = y if f.saves_output else et.tensor(x)
        found = f.raw_backward(et.tensor(g), saved, **f.options)
        wide = f.raw_backward(et.tensor(g, dtype=et.float32), saved.astype(et.float32), **f.options)
        assert found.dtype == dtype
        assert found.numpy().tobytes() == wide.numpy().astype(dtype).tobytes()


def check_errors(f: Function) -> None:
    good = et.tensor(f.draw(3))
    with pytest.raises(TypeError, match=rf"^\[{f.name}\] x must be"):
        f.forward(object())
    with pytest.raises(ValueError, match=rf"^\[{f.name}_backward\] grad_output has shape \(1, 3\)"):
        f.raw_backward(et.ones((1, 3)), good, **f.options)
    with pytest.raises(TypeError, match=rf"^\[{f.name}_backward\] grad_output must have a floating dtype"):
        f.raw_backward(et.ones(3, dtype=et.int32), good, **f.options)
    with pytest.raises(TypeError, match=rf"^\[{f.name}_backward\] (x|output) has dtype int32"):
        f.raw_backward(et.ones(3), et.ones(3, dtype=et.int32), **f.options)


CHECKS = [
    check_values, check_strided, check_gradients, check_mixed_dtypes, check_second_derivative,
    check_nan_at_every_position, check_half_precision, check_errors,
]  # fmt: skip


def gradient_at(name: str, x: Any, grad: float = 1.0, **options: Any) -> list[float]:
    """The gradients at a few points, in float64."""
    f = Function(name, np.asarray, options=options)
    x = np.asarray(x, np.float64)
    return f.backward(et.tensor(np.full(x.shape, grad)), et.tensor(x)).tolist()
