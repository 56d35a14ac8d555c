"""What every function that moves elements is asked: NumPy's values in every dtype, and the exact adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import extensor as et

DTYPES = [
    np.dtype(d) for d in ("bool", "int8", "uint64", "float16", ml_dtypes.bfloat16, "float32", "float64")
]


def whole(shape: Any, seed: int = 0) -> np.ndarray:
    """Whole numbers in float64: sums of them are exact in any order."""
    return np.asarray(np.random.default_rng(seed).integers(-9, 10, shape), np.float64)


def adjoint(oracle: Callable[[np.ndarray], np.ndarray], shape: Any, grad: np.ndarray) -> np.ndarray:
    """The gradient of a linear function, from what it makes of each unit vector."""
    size = int(np.prod(shape))
    units = np.eye(size).reshape(size, *shape)
    return np.array([(oracle(np.asarray(unit)) * grad).sum() for unit in units]).reshape(shape)


def check_moves(
    forward: Callable[[Any], et.ExTensor], oracle: Callable[[np.ndarray], np.ndarray], shape: Any
) -> None:
    """Values and dtype as NumPy has them, for contiguous and strided input of every dtype."""
    for dtype in DTYPES:
        x = whole(shape).astype(dtype)
        for laid_out in (x, np.array(x, order="F"), np.repeat(x[..., None], 2, -1)[..., 0]):
            y = forward(et.asarray(laid_out))
            expected = oracle(x)
            assert y.dtype == dtype
            np.testing.assert_array_equal(y.numpy(), expected)


def check_adjoint(
    backward: Callable[[et.ExTensor, Any], et.ExTensor],
    oracle: Callable[[np.ndarray], np.ndarray],
    shape: Any,
) -> None:
    """The backward is the exact adjoint in every floating dtype, from the tensor and from its shape."""
    grad = whole(np.shape(oracle(np.zeros(shape))), seed=1)
    expected = adjoint(oracle, shape, grad)
    for dtype in (d for d in DTYPES if d in et.dtypes.FLOATING):
        for x in (et.zeros(shape, dtype=dtype), tuple(shape)):
            grad_x = backward(et.tensor(grad, dtype=dtype), x)
            assert grad_x.dtype == dtype
            np.testing.assert_array_equal(grad_x.numpy().astype(np.float64), expected)
