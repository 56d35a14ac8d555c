"""Starting values for parameters.

Every function makes a new tensor of the shape asked for. The fans of a weight come from its shape
``(out, in, *kernel)``: ``fan_in = in * prod(kernel)`` numbers flow into an output, ``fan_out = out * prod(kernel)``
flow out of an input.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any, Literal

import numpy as np

from . import random
from ._habits import INIT as _INIT
from ._habits import missing_from as _missing_from
from .checks import as_number, as_shape
from .dtypes import as_dtype, float32
from .errors import describe
from .ops import creation
from .random import Rng, as_generator, draw_normal, draw_uniform, drawn, floating
from .tensor import ExTensor, Shape

__all__ = [
    "calculate_gain", "constant", "kaiming_normal", "kaiming_uniform", "lecun_normal", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Mode = Literal["fan_in", "fan_out"]


def _fans(function: str, shape: Any) -> tuple[Shape, int, int]:
    """The shape, fan_in and fan_out."""
    lengths = as_shape(function, "shape", shape)
    if len(lengths) < 2:
        raise ValueError(f"[{function}] shape must be (out, in, *kernel), got {lengths}")
    kernel = math.prod(lengths[2:])
    return lengths, lengths[1] * kernel, lengths[0] * kernel


def _spread(scale: float, fan: float) -> float:
    """``scale / sqrt(fan)``; a weight without elements has no fan and needs no spread."""
    return scale / math.sqrt(fan) if fan else 0.0


def calculate_gain(nonlinearity: str, a: Any = None) -> float:
    """The factor that keeps the variance of activations through a nonlinearity.

    1 for linear layers and sigmoid, 5/3 for tanh, sqrt(2) for relu, sqrt(2 / (1 + a^2)) for leaky_relu with slope
    ``a`` (0.01 by default), 3/4 for selu.

    Example:
        >>> import extensor as et
        >>> round(et.init.calculate_gain("relu"), 4)
        1.4142
    """
    if isinstance(nonlinearity, str) and nonlinearity == "leaky_relu":
        slope = 0.01 if a is None else as_number("calculate_gain", "a", a)
        return math.sqrt(2 / (1 + slope * slope))
    gains = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv_transpose2d": 1.0, "sigmoid": 1.0}
    gains.update(tanh=5 / 3, relu=math.sqrt(2), selu=0.75)
    if not isinstance(nonlinearity, str) or nonlinearity not in gains:
        known = ", ".join([*gains, "leaky_relu"])
        raise ValueError(
            f"[calculate_gain] nonlinearity must be one of {known}, got {describe(nonlinearity)}"
        )
    return gains[nonlinearity]


def xavier_uniform(shape: Any, gain: Any = 1.0, *, rng: Rng, dtype: Any = float32) -> ExTensor:
    """Uniform in ±gain * sqrt(6 / (fan_in + fan_out)): variance 2 gain^2 / (fan_in + fan_out).

    Args:
        shape: (out, in, *kernel).
        gain: a factor for the nonlinearity that follows, see :func:`calculate_gain`.
        rng: an int seed or a generator.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.init.xavier_uniform((4, 3), rng=0).shape
        (4, 3)
    """
    lengths, fan_in, fan_out = _fans("xavier_uniform", shape)
    bound = _spread(as_number("xavier_uniform", "gain", gain) * math.sqrt(6), fan_in + fan_out)
    return draw_uniform("xavier_uniform", rng, lengths, -abs(bound), abs(bound), dtype)


def xavier_normal(shape: Any, gain: Any = 1.0, *, rng: Rng, dtype: Any = float32) -> ExTensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out)). Arguments as :func:`xavier_uniform`.

    Example:
        >>> import extensor as et
        >>> et.init.xavier_normal((4, 3), rng=0).shape
        (4, 3)
    """
    lengths, fan_in, fan_out = _fans("xavier_normal", shape)
    std = _spread(as_number("xavier_normal", "gain", gain) * math.sqrt(2), fan_in + fan_out)
    return draw_normal("xavier_normal", rng, lengths, 0.0, abs(std), dtype)


def _kaiming(function: str, shape: Any, mode: Any, nonlinearity: str, a: Any) -> tuple[Shape, float]:
    """The shape, and the standard deviation gain / sqrt(fan)."""
    lengths, fan_in, fan_out = _fans(function, shape)
    if not isinstance(mode, str) or mode not in ("fan_in", "fan_out"):
        raise ValueError(f"[{function}] mode must be 'fan_in' or 'fan_out', got {describe(mode)}")
    try:
        gain = calculate_gain(nonlinearity, as_number(function, "a", a))
    except ValueError as error:
        raise ValueError(str(error).replace("[calculate_gain]", f"[{function}]")) from None
    return lengths, _spread(gain, fan_in if mode == "fan_in" else fan_out)


def kaiming_uniform(
    shape: Any,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    a: Any = 0.0,
    *,
    rng: Rng,
    dtype: Any = float32,
) -> ExTensor:
    """Uniform in ±gain * sqrt(3 / fan): variance gain^2 / fan.

    Args:
        shape: (out, in, *kernel).
        mode: ``"fan_in"`` keeps the variance of activations, ``"fan_out"`` that of gradients.
        nonlinearity: what follows the layer; its gain comes from :func:`calculate_gain`.
        a: the slope of ``leaky_relu`` for negative numbers.
        rng: an int seed or a generator.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> et.init.kaiming_uniform((4, 3), nonlinearity="relu", rng=0).shape
        (4, 3)
    """
    lengths, std = _kaiming("kaiming_uniform", shape, mode, nonlinearity, a)
    return draw_uniform("kaiming_uniform", rng, lengths, -std * math.sqrt(3), std * math.sqrt(3), dtype)


def kaiming_normal(
    shape: Any,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    a: Any = 0.0,
    *,
    rng: Rng,
    dtype: Any = float32,
) -> ExTensor:
    """Normal with standard deviation gain / sqrt(fan). Arguments as :func:`kaiming_uniform`.

    Example:
        >>> import extensor as et
        >>> et.init.kaiming_normal((4, 3), mode="fan_out", rng=0).shape
        (4, 3)
    """
    lengths, std = _kaiming("kaiming_normal", shape, mode, nonlinearity, a)
    return draw_normal("kaiming_normal", rng, lengths, 0.0, std, dtype)


def lecun_normal(shape: Any, *, rng: Rng, dtype: Any = float32) -> ExTensor:
    """Normal with standard deviation 1 / sqrt(fan_in), for selu networks.

    Example:
        >>> import extensor as et
        >>> et.init.lecun_normal((4, 3), rng=0).shape
        (4, 3)
    """
    lengths, fan_in, _ = _fans("lecun_normal", shape)
    return draw_normal("lecun_normal", rng, lengths, 0.0, _spread(1.0, fan_in), dtype)


def orthogonal(shape: Any, gain: Any = 1.0, *, rng: Rng, dtype: Any = float32) -> ExTensor:
    """Rows, or columns if there are fewer of them, that are orthogonal and of length ``gain``.

    A shape with more than two axes is a matrix of ``shape[0]`` rows. The matrix is uniformly distributed among all
    orthogonal ones: it is Q of the QR decomposition of a normal matrix, with the signs of R's diagonal.

    Example:
        >>> import extensor as et
        >>> w = et.init.orthogonal((2, 3), rng=0)
        >>> (w @ w.T).abs().numpy().round(3).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    lengths, _, _ = _fans("orthogonal", shape)
    factor, source = as_number("orthogonal", "gain", gain), as_generator("orthogonal", rng)
    rows, columns = lengths[0], math.prod(lengths[1:])

    def draw() -> np.ndarray:
        q, r = np.linalg.qr(source.standard_normal((max(rows, columns), min(rows, columns))))
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)
        return factor * (q if rows >= columns else q.T).reshape(lengths)

    return drawn("orthogonal", draw, floating("orthogonal", dtype))


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    std: Any = 1.0,
    a: Any = -2.0,
    b: Any = 2.0,
    *,
    rng: Rng,
    dtype: Any = float32,
) -> ExTensor:
    """The normal distribution, cut off outside ``a <= y <= b``.

    Args:
        shape: an int or a tuple of ints.
        mean: the centre of the uncut distribution.
        std: the standard deviation of the uncut distribution, positive.
        a: the smallest value.
        b: the largest value.
        rng: an int seed or a generator.
        dtype: a floating dtype.

    Example:
        >>> import extensor as et
        >>> x = et.init.truncated_normal((1000,), std=0.02, a=-0.04, b=0.04, rng=0)
        >>> bool(x.abs().max() <= 0.04)
        True
    """
    lengths, source = as_shape("truncated_normal", "shape", shape), as_generator("truncated_normal", rng)
    centre, spread = as_number("truncated_normal", "mean", mean), as_number("truncated_normal", "std", std)
    low, high = as_number("truncated_normal", "a", a), as_number("truncated_normal", "b", b)
    if not 0 < spread < math.inf or not math.isfinite(centre):
        raise ValueError(
            f"[truncated_normal] needs a finite mean and a positive std, got mean={centre}, std={spread}"
        )
    if not low < high:
        raise ValueError(f"[truncated_normal] a must lie below b, got a={low} and b={high}")
    nearest = min(max(low, centre), high)
    far = abs(nearest - centre) / spread > _FAR

    def draw() -> np.ndarray:
        if far:
            return np.full(lengths, nearest)
        z = _standard_truncated(source, math.prod(lengths), (low - centre) / spread, (high - centre) / spread)
        return (centre + spread * z).clip(low, high).reshape(lengths)

    return drawn("truncated_normal", draw, floating("truncated_normal", dtype))


_FAR = 1e9  # standard deviations; from there on the tail is as thin as what rounding leaves of its distance


def _standard_truncated(source: np.random.Generator, count: int, low: float, high: float) -> np.ndarray:
    """Standard normal numbers in [low, high], by rejection from a uniform distribution.

    The density is highest at the point ``peak`` nearest to 0; where it has fallen by 2^-60 the tail is cut.
    """
    peak = min(max(low, 0.0), high)
    reach = math.sqrt(peak * peak + 120 * math.log(2))
    low, high = max(low, -reach), min(high, reach)
    found = np.empty(0)
    while found.size < count:
        z = low + (high - low) * source.random(max(64, 2 * (count - found.size)))
        accepted = z[source.random(z.size) < np.exp((peak - z) * (peak + z) / 2)]
        found = np.concatenate([found, accepted])
    return found[:count]


def uniform(shape: Any, low: Any = 0.0, high: Any = 1.0, *, rng: Rng, dtype: Any = float32) -> ExTensor:
    """Evenly spread over ``low <= y < high``.

    Example:
        >>> import extensor as et
        >>> et.init.uniform((2, 3), -0.1, 0.1, rng=0).shape
        (2, 3)
    """
    return random.uniform(rng, shape, low, high, dtype)


def normal(shape: Any, mean: Any = 0.0, std: Any = 1.0, *, rng: Rng, dtype: Any = float32) -> ExTensor:
    """Normal with the given mean and standard deviation.

    Example:
        >>> import extensor as et
        >>> et.init.normal((2, 3), std=0.02, rng=0).shape
        (2, 3)
    """
    return random.normal(rng, shape, mean, std, dtype)


def constant(shape: Any, value: Any, *, dtype: Any = float32) -> ExTensor:
    """``value`` everywhere.

    Example:
        >>> import extensor as et
        >>> et.init.constant((2,), 0.5).tolist()
        [0.5, 0.5]
    """
    lengths = as_shape("constant", "shape", shape)
    return creation.filled("constant", lengths, value, as_dtype("constant", dtype))


def zeros(shape: Any, *, dtype: Any = float32) -> ExTensor:
    """Zeros.

    Example:
        >>> import extensor as et
        >>> et.init.zeros(2).tolist()
        [0.0, 0.0]
    """
    return creation.zeros(shape, dtype)


def ones(shape: Any, *, dtype: Any = float32) -> ExTensor:
    """Ones.

    Example:
        >>> import extensor as et
        >>> et.init.ones(2).tolist()
        [1.0, 1.0]
    """
    return creation.ones(shape, dtype)


if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _INIT)
