"""Random tensors. The source of randomness is always an argument, never hidden state.

``rng`` is an int or a ``numpy.random.Generator``. An int is a seed: the same call with the same seed gives the
same tensor, on every platform. A generator moves on with every call, so that several tensors can be drawn from it:

    rng = extensor.random.generator(0)
    w = extensor.random.normal(rng, (3, 4))
    b = extensor.random.normal(rng, (4,))

Numbers are drawn in float64 and rounded once: another dtype gives the same numbers, less exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .checks import as_int, as_number, as_shape, as_tensor
from .dtypes import FLOATING, INTEGER, as_dtype, bool_, float32, float64, int64
from .errors import describe
from .ops._generators import Rng as Rng  # noqa: PLC0414  (the other floors take it from here)
from .ops._generators import as_generator as as_generator  # noqa: PLC0414
from .tensor import ExTensor

__all__ = ["bernoulli", "generator", "integers", "normal", "permutation", "uniform"]


def generator(seed: Any) -> np.random.Generator:
    """A generator of random numbers that starts from ``seed``.

    Example:
        >>> import extensor as et
        >>> rng = et.random.generator(0)
        >>> et.random.integers(rng, 0, 10, (3,)).tolist(), et.random.integers(rng, 0, 10, (3,)).tolist()
        ([8, 6, 5], [2, 3, 0])
    """
    return as_generator("generator", seed)


def floating(function: str, dtype: Any) -> np.dtype[Any]:
    """A ``dtype`` argument that must be floating."""
    wanted = as_dtype(function, dtype)
    if wanted not in FLOATING:
        raise TypeError(f"[{function}] dtype must be floating, got {wanted}")
    return wanted


def _finite(function: str, name: str, value: Any) -> float:
    number = as_number(function, name, value)
    if not np.isfinite(number):
        raise ValueError(f"[{function}] {name} must be finite, got {number}")
    return number


def drawn(function: str, draw: Callable[[], Any], dtype: np.dtype[Any]) -> ExTensor:
    """What ``draw()`` draws, rounded to ``dtype``."""
    try:
        array = np.asarray(draw())
    except (MemoryError, ValueError) as error:
        raise ValueError(f"[{function}] the tensor cannot be made: {error}") from None
    with np.errstate(over="ignore"):  # a number beyond float16 is inf, as in any cast
        return ExTensor(array.astype(dtype, copy=False))


def draw_normal(function: str, rng: Any, shape: Any, mean: Any, std: Any, dtype: Any) -> ExTensor:
    """:func:`normal`, for the function that its errors name."""
    source, lengths = as_generator(function, rng), as_shape(function, "shape", shape)
    centre, spread = _finite(function, "mean", mean), _finite(function, "std", std)
    if spread < 0:
        raise ValueError(f"[{function}] std must not be negative, got {spread}")
    wanted = floating(function, dtype)
    return drawn(function, lambda: centre + spread * source.standard_normal(lengths), wanted)


def draw_uniform(function: str, rng: Any, shape: Any, low: Any, high: Any, dtype: Any) -> ExTensor:
    """:func:`uniform`, for the function that its errors name."""
    source, lengths = as_generator(function, rng), as_shape(function, "shape", shape)
    start, end = _finite(function, "low", low), _finite(function, "high", high)
    if not 0 <= end - start < float("inf"):
        raise ValueError(f"[{function}] high must not be below low, got low={start} and high={end}")
    wanted = floating(function, dtype)
    found = drawn(function, lambda: start + (end - start) * source.random(lengths), wanted)
    if start == end:
        return found
    # rounding to the dtype may reach the end; the last number before it stands for those
    with np.errstate(over="ignore"):
        last = np.nextafter(np.asarray(end).astype(wanted), np.asarray(start).astype(wanted))
    return ExTensor(np.asarray(np.minimum(found.numpy(), last)))


def normal(rng: Rng, shape: Any, mean: Any = 0.0, std: Any = 1.0, dtype: Any = float32) -> ExTensor:
    """Numbers from the normal distribution.

    Args:
        rng: an int seed or a generator.
        shape: an int or a tuple of ints.
        mean: the centre.
        std: the standard deviation, not negative.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.random.normal(0, (2, 3)).shape
        (2, 3)
    """
    return draw_normal("normal", rng, shape, mean, std, dtype)


def uniform(rng: Rng, shape: Any, low: Any = 0.0, high: Any = 1.0, dtype: Any = float32) -> ExTensor:
    """Numbers evenly spread over ``low <= y < high``.

    Args:
        rng: an int seed or a generator.
        shape: an int or a tuple of ints.
        low: the smallest number possible.
        high: the end, itself not included (unless it equals ``low``).
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> x = et.random.uniform(0, (1000,), -1, 1)
        >>> bool(x.min() >= -1) and bool(x.max() < 1)
        True
    """
    return draw_uniform("uniform", rng, shape, low, high, dtype)


def integers(rng: Rng, low: Any, high: Any, shape: Any, dtype: Any = int64) -> ExTensor:
    """Whole numbers, each of ``low <= y < high`` equally likely.

    Args:
        rng: an int seed or a generator.
        low: the smallest number.
        high: one more than the largest.
        shape: an int or a tuple of ints.
        dtype: an integer dtype.

    Example:
        >>> import extensor as et
        >>> et.random.integers(0, 0, 10, (5,)).tolist()
        [8, 6, 5, 2, 3]
    """
    source, lengths = as_generator("integers", rng), as_shape("integers", "shape", shape)
    start, end = as_int("integers", "low", low), as_int("integers", "high", high)
    wanted = as_dtype("integers", dtype)
    if wanted not in INTEGER:
        raise TypeError(f"[integers] dtype must be an integer dtype, got {wanted}")
    bounds = np.iinfo(wanted)
    if not start < end or start < bounds.min or end > bounds.max + 1:
        raise ValueError(f"[integers] needs low < high within {wanted}, got low={start} and high={end}")
    wide = np.uint64 if wanted == np.uint64 else np.int64
    return drawn("integers", lambda: source.integers(start, end, lengths, dtype=wide), wanted)


def bernoulli(rng: Rng, p: Any, shape: Any, dtype: Any = bool_) -> ExTensor:
    """True with probability ``p``, else False (1 and 0 in another dtype).

    Args:
        rng: an int seed or a generator.
        p: the probability, a number or a tensor that broadcasts to ``shape``.
        shape: an int or a tuple of ints.
        dtype: the dtype wanted.

    Example:
        >>> import extensor as et
        >>> et.random.bernoulli(0, 0.5, (5,)).tolist()
        [False, True, True, True, False]
    """
    source, lengths = as_generator("bernoulli", rng), as_shape("bernoulli", "shape", shape)
    chance = (
        as_tensor("bernoulli", "p", p).numpy() if not isinstance(p, (int, float)) else np.asarray(p, float64)
    )
    if chance.dtype not in FLOATING:
        raise TypeError(f"[bernoulli] p must be floating, got {chance.dtype}")
    if not ((chance >= 0) & (chance <= 1)).all():
        raise ValueError(f"[bernoulli] p must lie between 0 and 1, got {describe(p)}")
    try:
        chance = np.broadcast_to(chance, lengths)
    except ValueError:
        raise ValueError(f"[bernoulli] p of shape {chance.shape} does not broadcast to {lengths}") from None
    wanted = as_dtype("bernoulli", dtype)
    return drawn("bernoulli", lambda: source.random(lengths) < chance.astype(float64), wanted)


def permutation(rng: Rng, n: Any) -> ExTensor:
    """The numbers 0 to n - 1 in random order, int64.

    Example:
        >>> import extensor as et
        >>> et.random.permutation(0, 5).tolist()
        [2, 4, 3, 0, 1]
    """
    count = as_int("permutation", "n", n)
    if count < 0:
        raise ValueError(f"[permutation] n must not be negative, got {count}")
    source = as_generator("permutation", rng)
    return drawn("permutation", lambda: source.permutation(count), int64)
