"""Normalisations, and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value
from ..table import operator

__all__: list[str] = []


@operator("BatchNormalization", fixed=("mean", "var"))
def batch_normalization(
    x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0, spatial: int = 1, is_test: int = 1, consumed_inputs: Any = None, training: bool = False,
    outputs: int = 1,
) -> Any:  # fmt: skip
    """(x - mean) / sqrt(var + epsilon) scale + bias for each channel; in training with those of the batch."""
    if not spatial:
        raise NotImplementedError(
            "[BatchNormalization] statistics for each place (spatial=0) are not supported"
        )
    if training_mode:
        axes = (0, *range(2, x.ndim))
        across = (-1, *(1,) * (x.ndim - 2))
        now, spread = et.mean(x, axes), et.var(x, axes)
        shifted = (x - now.reshape(across)) / et.sqrt(spread.reshape(across) + epsilon)
        output = et.astype(shifted * scale.reshape(across) + bias.reshape(across), x.dtype)
        kept = [
            et.astype(old * momentum + new * (1 - momentum), old.dtype)
            for old, new in ((mean, now), (var, spread))
        ]
        return (output, *kept)[:outputs] if outputs > 1 else output
    share = round(
        1 - momentum, 7
    )  # of the batch, as batch_norm calls its momentum; the file has 7 digits of the other share
    if training:
        found = et.batch_norm(x, scale, bias, mean, var, True, share, epsilon)
        return found.output, found.running_mean, found.running_var
    return et.batch_norm(x, scale, bias, mean, var, False, share, epsilon).output


@operator("LayerNormalization")
def layer_normalization(
    x: Any,
    scale: Any,
    bias: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    """Mean 0 and variance 1 over the axes from ``axis`` on; and the mean and 1 / standard deviation if asked for."""
    first = axis % x.ndim
    shape, axes = x.shape[first:], tuple(range(first, x.ndim))
    if outputs == 1 and scale.shape == shape and (bias is None or bias.shape == shape):
        return et.layer_norm(x, shape, scale, bias, epsilon)
    wide = x if x.dtype == np.float64 else et.astype(x, "float32")
    mean = et.mean(wide, axes, True)
    inverse = et.reciprocal(et.sqrt(et.var(wide, axes, True) + epsilon))
    output = et.astype((wide - mean) * inverse, x.dtype) * scale
    output = output if bias is None else output + bias
    return (output, mean, inverse)[:outputs] if outputs > 1 else output


@operator("RMSNormalization")
def rms_normalization(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """x divided by its root mean square over the axes from ``axis`` on."""
    first = axis % x.ndim
    shape = x.shape[first:]
    if scale.shape == shape:
        return et.rms_norm(x, shape, scale, epsilon)
    wide = x if x.dtype == np.float64 else et.astype(x, "float32")
    inverse = et.reciprocal(et.sqrt(et.mean(wide * wide, tuple(range(first, x.ndim)), True) + epsilon))
    return et.astype(wide * inverse, x.dtype) * scale


@operator("GroupNormalization")
def group_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    opset: int = 21,
) -> Any:
    """Mean 0 and variance 1 over groups of channels; before operator set 21 with one scale for each group."""
    if opset < 21 and scale.shape != (x.shape[1],):
        times = x.shape[1] // num_groups
        scale, bias = et.repeat(scale, times, 0), et.repeat(bias, times, 0)
    return et.group_norm(x, num_groups, scale, bias, epsilon)


@operator("InstanceNormalization")
def instance_normalization(
    x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, consumed_inputs: Any = None
) -> Any:
    """Mean 0 and variance 1 for each channel of each sample."""
    return et.instance_norm(x, scale, bias, epsilon)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Any, *, axes: list[int] | None = None) -> Any:
    """Mean 0 and variance 1 over axes."""
    along = tuple(axes if axes is not None else (0, 2, 3))
    return (x - et.mean(x, along, True)) / (et.std(x, along, True) + 1e-9)


@operator("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """x divided by its norm along an axis; 0 where that is 0."""
    norm = et.sum(et.abs(x), axis, True) if p == 1 else et.sqrt(et.sum(x * x, axis, True))
    zero = et.equal(norm, 0)
    return et.where(zero, et.zeros_like(x), x / et.where(zero, et.ones_like(norm), norm))


@operator("LRN")
def local_response_normalization(
    x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:
    """x / (bias + alpha / size times the sum of squares of the channels around)^beta"""
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = et.pad(x * x, ((0, 0), (before, after), *((0, 0),) * (x.ndim - 2)))
    total = squares[:, : x.shape[1]]
    for k in range(1, size):
        total = total + squares[:, k : k + x.shape[1]]
    return x / et.power(total * (alpha / size) + bias, beta)


@operator("Dropout", since=12, fixed=("ratio", "training_mode"))
def dropout(
    x: Any, ratio: Any = None, training_mode: Any = None, *, seed: int | None = None, is_test: int = 1,
    consumed_inputs: Any = None, training: bool = False, outputs: int = 1,
) -> Any:  # fmt: skip
    """In training each element is 0 with probability ``ratio`` and the others grow; and which ones stayed."""
    p = 0.5 if ratio is None else float(array_of(ratio).reshape(-1)[0])
    return _dropped(
        x, p, training or (training_mode is not None and bool(array_of(training_mode).any())), seed, outputs
    )


@operator("Dropout", since=1)
def dropout_first(
    x: Any,
    *,
    ratio: float = 0.5,
    is_test: int = 1,
    consumed_inputs: Any = None,
    training: bool = False,
    outputs: int = 1,
) -> Any:
    """Dropout with its probability as an attribute."""
    return _dropped(x, ratio, training, None, outputs)


def _dropped(x: Any, p: float, active: bool, seed: int | None, outputs: int) -> Any:
    if active and p > 0:
        draw = np.random.RandomState(seed & 0xFFFFFFFF if seed is not None else None)
        mask = as_value(draw.uniform(0, 1, x.shape) >= p)
        found = et.where(mask, x * (1 / (1 - p)) if p < 1 else x, et.zeros_like(x))
    else:
        mask, found = et.ones(x.shape, np.bool_), x
    return (found, mask) if outputs > 1 else found
