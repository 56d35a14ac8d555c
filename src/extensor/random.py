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
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

import numpy as np

from ._habits import RANDOM as _RANDOM
from ._habits import missing_from as _missing_from
from .checks import as_axis, as_bool, as_floating, as_int, as_length, as_number, as_shape, as_tensor
from .dtypes import FLOATING, INTEGER, REAL_FLOATING, as_dtype, bool_, float32, float64, int64
from .errors import describe
from .graph import repeated
from .ops._generators import Rng as Rng  # noqa: PLC0414  (the other floors take it from here)
from .ops._generators import as_generator as as_generator  # noqa: PLC0414
from .ops._generators import per_example
from .tensor import ExTensor

__all__ = [
    "bernoulli", "beta", "categorical", "choice", "exponential", "gamma", "generator", "gumbel", "integers", "laplace",
    "multivariate_normal", "normal", "permutation", "poisson", "shuffle", "uniform",
]  # fmt: skip


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
    if wanted not in REAL_FLOATING:
        raise TypeError(f"[{function}] dtype must be real and floating, got {wanted}")
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
    except MemoryError as error:
        raise MemoryError(f"[{function}] {str(error) or 'out of memory'}") from None
    except ValueError as error:
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


@repeated
@per_example
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


@repeated
@per_example
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


@repeated
@per_example
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


@repeated
@per_example
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
    if isinstance(p, (int, float)) and not isinstance(p, bool):
        p = as_number("bernoulli", "p", p)
    chance = (
        np.asarray(p, float64) if isinstance(p, (bool, float)) else as_tensor("bernoulli", "p", p).numpy()
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


@repeated
@per_example
def permutation(rng: Rng, n: Any) -> ExTensor:
    """The numbers 0 to n - 1 in random order, int64.

    Example:
        >>> import extensor as et
        >>> et.random.permutation(0, 5).tolist()
        [2, 4, 3, 0, 1]
    """
    count = as_length("permutation", "n", n)
    source = as_generator("permutation", rng)
    return drawn("permutation", lambda: source.permutation(count), int64)


def _positive(function: str, name: str, value: Any) -> float:
    number = _finite(function, name, value)
    if number <= 0:
        raise ValueError(f"[{function}] {name} must be positive, got {number}")
    return number


@repeated
@per_example
def exponential(rng: Rng, shape: Any, scale: Any = 1.0, dtype: Any = float32) -> ExTensor:
    """Waiting times of an event that happens once per ``scale`` on average.   p(y) = exp(-y / scale) / scale

    Args:
        rng: an int seed or a generator.
        shape: an int or a tuple of ints.
        scale: the mean, positive.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> bool((et.random.exponential(0, (1000,)) >= 0).all())
        True
    """
    source, lengths = as_generator("exponential", rng), as_shape("exponential", "shape", shape)
    mean, wanted = _positive("exponential", "scale", scale), floating("exponential", dtype)
    return drawn("exponential", lambda: mean * source.standard_exponential(lengths), wanted)


@repeated
@per_example
def laplace(rng: Rng, shape: Any, mean: Any = 0.0, scale: Any = 1.0, dtype: Any = float32) -> ExTensor:
    """Numbers from the Laplace distribution.   p(y) = exp(-|y - mean| / scale) / (2 scale)

    Args:
        rng: an int seed or a generator.
        shape: an int or a tuple of ints.
        mean: the centre.
        scale: the mean distance from it, positive.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.random.laplace(0, (2, 3)).shape
        (2, 3)
    """
    source, lengths = as_generator("laplace", rng), as_shape("laplace", "shape", shape)
    centre, width = _finite("laplace", "mean", mean), _positive("laplace", "scale", scale)
    wanted = floating("laplace", dtype)
    return drawn("laplace", lambda: source.laplace(centre, width, lengths), wanted)


@repeated
@per_example
def gumbel(rng: Rng, shape: Any, dtype: Any = float32) -> ExTensor:
    """Numbers from the Gumbel distribution.   y = -log(-log(u)), u uniform

    Args:
        rng: an int seed or a generator.
        shape: an int or a tuple of ints.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.random.gumbel(0, (2, 3)).shape
        (2, 3)
    """
    source, lengths = as_generator("gumbel", rng), as_shape("gumbel", "shape", shape)
    return drawn("gumbel", lambda: source.gumbel(size=lengths), floating("gumbel", dtype))


@repeated
@per_example
def gamma(rng: Rng, concentration: Any, shape: Any, scale: Any = 1.0, dtype: Any = float32) -> ExTensor:
    """Numbers from the gamma distribution.   p(y) ~ y**(concentration - 1) exp(-y / scale)

    Args:
        rng: an int seed or a generator.
        concentration: the shape parameter, positive.
        shape: an int or a tuple of ints.
        scale: the unit, positive.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> bool((et.random.gamma(0, 2.0, (1000,)) > 0).all())
        True
    """
    source, lengths = as_generator("gamma", rng), as_shape("gamma", "shape", shape)
    form, unit = _positive("gamma", "concentration", concentration), _positive("gamma", "scale", scale)
    return drawn("gamma", lambda: unit * source.standard_gamma(form, lengths), floating("gamma", dtype))


@repeated
@per_example
def beta(rng: Rng, a: Any, b: Any, shape: Any, dtype: Any = float32) -> ExTensor:
    """Numbers between 0 and 1 from the beta distribution.   p(y) ~ y**(a - 1) (1 - y)**(b - 1)

    Args:
        rng: an int seed or a generator.
        a, b: the two parameters, positive.
        shape: an int or a tuple of ints.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.random.beta(0, 2.0, 3.0, (2,)).shape
        (2,)
    """
    source, lengths = as_generator("beta", rng), as_shape("beta", "shape", shape)
    first, second = _positive("beta", "a", a), _positive("beta", "b", b)
    return drawn("beta", lambda: source.beta(first, second, lengths), floating("beta", dtype))


@repeated
@per_example
def poisson(rng: Rng, rate: Any, shape: Any, dtype: Any = int64) -> ExTensor:
    """How often an event happens that happens ``rate`` times on average.   p(k) = rate**k exp(-rate) / k!

    Args:
        rng: an int seed or a generator.
        rate: the mean, not negative.
        shape: an int or a tuple of ints.
        dtype: the dtype wanted.

    Example:
        >>> import extensor as et
        >>> et.random.poisson(0, 3.0, (2,)).dtype
        dtype('int64')
    """
    source, lengths = as_generator("poisson", rng), as_shape("poisson", "shape", shape)
    mean = _finite("poisson", "rate", rate)
    if not 0 <= mean < 1e18:
        raise ValueError(f"[poisson] rate must not be negative (nor beyond int64), got {mean}")
    wanted = as_dtype("poisson", dtype)
    return drawn("poisson", lambda: source.poisson(mean, lengths), wanted)


@repeated
@per_example
def categorical(rng: Rng, logits: Any, shape: Any = None, axis: int = -1) -> ExTensor:
    """Classes drawn by their logits, int64.   p(k) = softmax(logits)_k

    Args:
        rng: an int seed or a generator.
        logits: the logarithms of the probabilities, up to a constant; -inf never comes.
        shape: the shape of the result, to which that of ``logits`` without ``axis`` broadcasts; by default that one.
        axis: the axis of the classes.

    Example:
        >>> import extensor as et
        >>> et.random.categorical(0, et.tensor([0.0, float("-inf")]), (4,)).tolist()
        [0, 0, 0, 0]
    """
    source = as_generator("categorical", rng)
    found = as_floating("categorical", "logits", logits)
    along = as_axis("categorical", axis, found.ndim)
    scores = np.moveaxis(found.numpy().astype(float64), along, -1)
    if not scores.shape[-1] or np.isnan(scores).any() or (scores.max(-1) == -np.inf).any():
        raise ValueError(
            f"[categorical] logits must hold a class that can come, without nan (shape {found.shape})"
        )
    lengths = scores.shape[:-1] if shape is None else as_shape("categorical", "shape", shape)
    try:
        spread = np.broadcast_to(scores, (*lengths, scores.shape[-1]))
    except ValueError:
        raise ValueError(
            f"[categorical] logits of shape {found.shape} do not broadcast to {lengths}"
        ) from None
    return drawn("categorical", lambda: np.argmax(spread + source.gumbel(size=spread.shape), -1), int64)


@repeated
@per_example
def choice(rng: Rng, x: Any, shape: Any = (), replace: bool = True, p: Any = None) -> ExTensor:
    """Elements of a tensor along its first axis, drawn at random.

    Args:
        rng: an int seed or a generator.
        x: a tensor with at least one axis, or an int n for the numbers 0 to n - 1.
        shape: how many, an int or a tuple of ints.
        replace: whether one may come again.
        p: the probability of each, a vector; all alike by default.

    Example:
        >>> import extensor as et
        >>> sorted(et.random.choice(0, et.tensor([1, 2, 3]), 3, replace=False).tolist())
        [1, 2, 3]
    """
    source, lengths = as_generator("choice", rng), as_shape("choice", "shape", shape)
    if isinstance(x, int) and not isinstance(x, bool):
        if not 0 <= x < 2**40:
            raise ValueError(f"[choice] x must be a tensor or a number from 0 on, got {x}")
        x = np.arange(x)
    found, again = as_tensor("choice", "x", x), as_bool("choice", "replace", replace)
    if not found.ndim:
        raise ValueError("[choice] x must have at least one axis, got a 0-d tensor")
    chances = None if p is None else as_floating("choice", "p", p).numpy().astype(float64)
    if chances is not None and chances.shape != found.shape[:1]:
        raise ValueError(
            f"[choice] p must have shape {found.shape[:1]}, one for each element, got {chances.shape}"
        )
    if chances is not None and not ((chances >= 0).all() and 0 < chances.sum() < np.inf):
        raise ValueError("[choice] p must not be negative, and one must be positive")
    if chances is not None:
        chances = chances / chances.sum()
    try:
        places = source.choice(found.shape[0], lengths, again, chances)
    except MemoryError as error:
        raise MemoryError(f"[choice] {str(error) or 'out of memory'}") from None
    except ValueError as error:
        raise ValueError(f"[choice] {error}") from None
    return ExTensor(np.asarray(found.numpy()[places]))


@repeated
@per_example
def shuffle(rng: Rng, x: Any, axis: int = 0) -> ExTensor:
    """The slices along an axis in random order; ``x`` stays as it is.

    Args:
        rng: an int seed or a generator.
        x: a tensor with at least one axis.
        axis: the axis.

    Example:
        >>> import extensor as et
        >>> sorted(et.random.shuffle(0, et.tensor([1, 2, 3])).tolist())
        [1, 2, 3]
    """
    source, found = as_generator("shuffle", rng), as_tensor("shuffle", "x", x)
    along = as_axis("shuffle", axis, found.ndim)
    return ExTensor(np.take(found.numpy(), source.permutation(found.shape[along]), along))


@repeated
@per_example
def multivariate_normal(
    rng: Rng, mean: Any, covariance: Any, shape: Any = (), dtype: Any = float32
) -> ExTensor:
    """Vectors from a normal distribution of several variables.   y = mean + L z,  L L^T = covariance

    Args:
        rng: an int seed or a generator.
        mean: the centre, a vector of length n.
        covariance: a positive definite matrix (n, n).
        shape: how many vectors, an int or a tuple of ints.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.random.multivariate_normal(0, et.zeros(2), et.eye(2), (5,)).shape
        (5, 2)
    """
    name = "multivariate_normal"
    source, lengths = as_generator(name, rng), as_shape(name, "shape", shape)
    centre = as_floating(name, "mean", mean).numpy().astype(float64)
    spread = as_floating(name, "covariance", covariance).numpy().astype(float64)
    if centre.ndim != 1 or spread.shape != (centre.size,) * 2:
        raise ValueError(
            f"[{name}] mean must be a vector and covariance a square matrix (mean: {centre.shape}, covariance: {spread.shape})"
        )
    wanted = floating(name, dtype)
    try:
        factor = np.linalg.cholesky((spread + spread.T) / 2)
    except np.linalg.LinAlgError:
        raise ValueError(f"[{name}] covariance is not positive definite") from None
    return drawn(name, lambda: centre + source.standard_normal((*lengths, centre.size)) @ factor.T, wanted)


if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _RANDOM)
