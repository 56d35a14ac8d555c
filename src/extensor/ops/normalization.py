"""Normalisation: batch, layer, RMS, group and instance. Half precision keeps its statistics in float32."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..checks import (
    as_bool,
    as_floating,
    as_grad,
    as_int,
    as_number,
    as_shape,
    as_tensor,
    check_needs,
    differentiable_input,
)
from ..dtypes import promote
from ..graph import backward_of, differentiable
from ..kernels import astype as astype_kernel
from ..kernels.reference import normalization as kernels
from ..tensor import ExTensor, Shape
from ._several import as_grads
from .casting import cast_like

__all__ = [
    "BatchNormResult", "NormGradients", "RMSNormGradients",
    "batch_norm", "batch_norm_backward", "group_norm", "group_norm_backward",
    "instance_norm", "instance_norm_backward", "layer_norm", "layer_norm_backward",
    "rms_norm", "rms_norm_backward",
]  # fmt: skip

Needs3 = tuple[bool, bool, bool]
ALL: Needs3 = (True, True, True)


class NormGradients(NamedTuple):
    """The gradients of a normalisation; without a weight those of weight and bias are None."""

    grad_x: ExTensor | None
    grad_weight: ExTensor | None
    grad_bias: ExTensor | None


class RMSNormGradients(NamedTuple):
    """The gradients of :func:`rms_norm`; without a weight its gradient is None."""

    grad_x: ExTensor | None
    grad_weight: ExTensor | None


class BatchNormResult(NamedTuple):
    """What :func:`batch_norm` returns: the output, and the running statistics after this batch."""

    output: ExTensor
    running_mean: ExTensor | None
    running_var: ExTensor | None


def _eps(function: str, eps: Any) -> float:
    found = as_number(function, "eps", eps)
    if not 0 <= found < float("inf"):
        raise ValueError(f"[{function}] eps must be a finite number that is not negative, got {found}")
    return found


def _optional(function: str, name: str, value: Any, shape: Shape, why: str) -> ExTensor | None:
    """A weight, a bias or a statistic of ``shape``; or None."""
    if value is None:
        return None
    found = as_floating(function, name, value)
    if found.shape != shape:
        raise ValueError(f"[{function}] {name} has shape {found.shape} but must have shape {shape}: {why}")
    return found


def _wanted(needs: Needs3, weight: Any) -> Needs3:
    """Without a weight there is no gradient of it; that of the bias must then be asked for on its own."""
    return needs if weight is not None else (needs[0], False, needs[2] and not needs[1])


# What the formulas share: tensors normalised over axes, and gradients carried back through that


def _normalised(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    centred = x - x.mean(axes, keepdims=True)
    inverse = ((centred * centred).mean(axes, keepdims=True) + eps).rsqrt()
    return centred * inverse, inverse


def _normalised_backward(g: Any, unit: Any, inverse: Any, axes: tuple[int, ...]) -> Any:
    along = (g * unit).mean(axes, keepdims=True)
    return inverse * (g - g.mean(axes, keepdims=True) - unit * along)


def _affine_gradients(g: Any, unit: Any, axes: tuple[int, ...], needs: Needs3) -> tuple[Any, Any]:
    """The gradients of weight and bias: sums over the axes along which they are repeated."""
    return (g * unit).sum(axes) if needs[1] else None, g.sum(axes) if needs[2] else None


# Over the last axes


def _start(function: str, x: ExTensor, normalized_shape: Any) -> tuple[int, Shape]:
    """The first axis that is normalised, and the lengths from there on."""
    shape = as_shape(function, "normalized_shape", normalized_shape)
    if not shape:
        raise ValueError(f"[{function}] normalized_shape must name one axis at least, got ()")
    if x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"[{function}] normalized_shape is {shape} but the last axes of x are {x.shape[-len(shape) :]} (x: {x.shape})"
        )
    return x.ndim - len(shape), shape


_ONE_EACH = "one value for each element of normalized_shape"


@differentiable
def layer_norm(
    x: ExTensor,
    normalized_shape: int | Shape,
    weight: ExTensor | None = None,
    bias: ExTensor | None = None,
    eps: float = 1e-5,
) -> ExTensor:
    """Each sample with mean 0 and variance 1 over the last axes.   y = (x - mean) / sqrt(var + eps) * weight + bias

    Args:
        x: any floating tensor; its last axes are ``normalized_shape``.
        normalized_shape: the lengths of the axes to normalise over; an int for the last alone.
        weight, bias: scale and shift, of shape ``normalized_shape``; None for 1 and 0.
        eps: is added to the variance (the biased one).

    Example:
        >>> import extensor as et
        >>> et.layer_norm(et.tensor([[1.0, 3.0]]), 2, eps=0.0).tolist()
        [[-1.0, 1.0]]
    """
    x = as_floating("layer_norm", "x", x)
    _, shape = _start("layer_norm", x, normalized_shape)
    weight = _optional("layer_norm", "weight", weight, shape, _ONE_EACH)
    bias = _optional("layer_norm", "bias", bias, shape, _ONE_EACH)
    return kernels.layer_norm(x, shape, weight, bias, _eps("layer_norm", eps))


def _layer_norm_formula(
    g: Any, x: Any, normalized_shape: Any, weight: Any = None, eps: float = 1e-5, *, needs: Needs3 = ALL
) -> NormGradients:
    g, x = as_tensor("layer_norm_backward", "grad_output", g), as_tensor("layer_norm_backward", "x", x)
    start, _ = _start("layer_norm_backward", x, normalized_shape)
    axes, wanted = tuple(range(start, x.ndim)), _wanted(needs, weight)
    unit, inverse = _normalised(x, axes, eps)
    grad_x = (
        _normalised_backward(g if weight is None else g * weight, unit, inverse, axes) if needs[0] else None
    )
    return NormGradients(grad_x, *_affine_gradients(g, unit, tuple(range(start)), wanted))


@backward_of(layer_norm, wrt=("x", "weight", "bias"), formula=_layer_norm_formula)
def layer_norm_backward(
    grad_output: ExTensor,
    x: ExTensor,
    normalized_shape: int | Shape,
    weight: ExTensor | None = None,
    eps: float = 1e-5,
    *,
    needs: Needs3 = ALL,
) -> NormGradients:
    """Gradient of :func:`layer_norm`.   dx = (h - mean(h) - u mean(h u)) / s  with h = dy weight, u = (x - mean) / s

    dweight = sum dy u,  dbias = sum dy,  over all samples;  s = sqrt(var + eps).

    Args:
        grad_output: the gradient of the output.
        x, normalized_shape, weight, eps: as given to :func:`layer_norm`. The bias is not asked for; its gradient
            is returned if there is a weight.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.layer_norm_backward(et.ones((2, 2)), et.tensor([[1.0, 3.0], [0.0, 2.0]]), 2, et.ones(2), eps=0.0)
        >>> grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([-2.0, 2.0], [2.0, 2.0])
    """
    name = "layer_norm_backward"
    check_needs(name, needs, 3)
    x = differentiable_input(name, "x", x)
    _, shape = _start(name, x, normalized_shape)
    weight = _optional(name, "weight", weight, shape, _ONE_EACH)
    grad = as_grad(name, grad_output, x.shape)
    grads = kernels.layer_norm_backward(grad, x, shape, weight, _eps(name, eps), _wanted(needs, weight))
    return NormGradients(cast_like(grads[0], x), cast_like(grads[1], weight), cast_like(grads[2], grad))


@differentiable
def rms_norm(
    x: ExTensor, normalized_shape: int | Shape, weight: ExTensor | None = None, eps: float = 1e-6
) -> ExTensor:
    """Each sample with a mean square of 1 over the last axes.   y = x / sqrt(mean(x^2) + eps) * weight

    Args:
        x: any floating tensor; its last axes are ``normalized_shape``.
        normalized_shape: the lengths of the axes to normalise over; an int for the last alone.
        weight: the scale, of shape ``normalized_shape``; None for 1.
        eps: is added to the mean square.

    Example:
        >>> import extensor as et
        >>> [round(v, 3) for v in et.rms_norm(et.tensor([3.0, 4.0]), 2).tolist()]
        [0.849, 1.131]
    """
    x = as_floating("rms_norm", "x", x)
    _, shape = _start("rms_norm", x, normalized_shape)
    weight = _optional("rms_norm", "weight", weight, shape, _ONE_EACH)
    return kernels.rms_norm(x, shape, weight, _eps("rms_norm", eps))


def _rms_norm_formula(
    g: Any,
    x: Any,
    normalized_shape: Any,
    weight: Any = None,
    eps: float = 1e-6,
    *,
    needs: tuple[bool, bool] = (True, True),
) -> RMSNormGradients:
    g, x = as_tensor("rms_norm_backward", "grad_output", g), as_tensor("rms_norm_backward", "x", x)
    start, _ = _start("rms_norm_backward", x, normalized_shape)
    axes = tuple(range(start, x.ndim))
    inverse = ((x * x).mean(axes, keepdims=True) + eps).rsqrt()
    unit = x * inverse
    scaled = g if weight is None else g * weight
    return RMSNormGradients(
        inverse * (scaled - unit * (scaled * unit).mean(axes, keepdims=True)) if needs[0] else None,
        (g * unit).sum(tuple(range(start))) if needs[1] and weight is not None else None,
    )


@backward_of(rms_norm, wrt=("x", "weight"), formula=_rms_norm_formula)
def rms_norm_backward(
    grad_output: ExTensor,
    x: ExTensor,
    normalized_shape: int | Shape,
    weight: ExTensor | None = None,
    eps: float = 1e-6,
    *,
    needs: tuple[bool, bool] = (True, True),
) -> RMSNormGradients:
    """Gradient of :func:`rms_norm`.   dx = (h - u mean(h u)) / s  with h = dy weight, u = x / s

    dweight = sum dy u,  over all samples;  s = sqrt(mean(x^2) + eps).

    Args:
        grad_output: the gradient of the output.
        x, normalized_shape, weight, eps: as given to :func:`rms_norm`.
        needs: which of the two gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.rms_norm_backward(et.ones((3, 2)), et.ones((3, 2)), 2, et.ones(2), eps=0.0)
        >>> grads.grad_weight.tolist()
        [3.0, 3.0]
    """
    name = "rms_norm_backward"
    check_needs(name, needs, 2)
    x = differentiable_input(name, "x", x)
    _, shape = _start(name, x, normalized_shape)
    weight = _optional(name, "weight", weight, shape, _ONE_EACH)
    grad = as_grad(name, grad_output, x.shape)
    wanted = (needs[0], needs[1] and weight is not None)
    grads = kernels.rms_norm_backward(grad, x, shape, weight, _eps(name, eps), wanted)
    return RMSNormGradients(cast_like(grads[0], x), cast_like(grads[1], weight))


# Per channel: x has shape (N, C, ...)


def _channels(function: str, x: ExTensor) -> int:
    if x.ndim < 2:
        raise ValueError(f"[{function}] x must have the axes (N, C, ...), got shape {x.shape}")
    return x.shape[1]


def _vector(function: str, name: str, value: Any, x: ExTensor) -> ExTensor | None:
    """One value per channel, or None."""
    return _optional(function, name, value, (x.shape[1],), f"one value for each channel of x {x.shape}")


def _per_channel(values: Any, x: Any) -> Any:
    return values.reshape((1, *values.shape) + (1,) * (x.ndim - 2))


def _groups(function: str, x: ExTensor, num_groups: Any) -> int:
    channels, groups = _channels(function, x), as_int(function, "num_groups", num_groups)
    if groups < 1 or channels % groups:
        raise ValueError(
            f"[{function}] num_groups is {groups}, which does not divide the {channels} channels of x {x.shape}"
        )
    return groups if channels else 1  # no channels are divided alike into any number


@differentiable
def group_norm(
    x: ExTensor,
    num_groups: int,
    weight: ExTensor | None = None,
    bias: ExTensor | None = None,
    eps: float = 1e-5,
) -> ExTensor:
    """Each group of channels of a sample with mean 0 and variance 1.   y = (x - mean) / sqrt(var + eps) * weight + bias

    Args:
        x: shape (N, C, ...).
        num_groups: into how many groups of neighbours the channels are divided.
        weight, bias: scale and shift of each channel, of shape (C,); None for 1 and 0.
        eps: is added to the variance (the biased one).

    Example:
        >>> import extensor as et
        >>> et.group_norm(et.tensor([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """
    x = as_floating("group_norm", "x", x)
    groups = _groups("group_norm", x, num_groups)
    weight, bias = _vector("group_norm", "weight", weight, x), _vector("group_norm", "bias", bias, x)
    return kernels.group_norm(x, groups, weight, bias, _eps("group_norm", eps))


def _group_norm_formula(
    g: Any, x: Any, num_groups: int, weight: Any = None, eps: float = 1e-5, *, needs: Needs3 = ALL
) -> NormGradients:
    g, x = as_tensor("group_norm_backward", "grad_output", g), as_tensor("group_norm_backward", "x", x)
    wanted = _wanted(needs, weight)
    groups = (x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    unit, inverse = _normalised(x.reshape(groups), (2,), eps)
    grad_x = None
    if needs[0]:
        scaled = g if weight is None else g * _per_channel(weight, x)
        grad_x = _normalised_backward(scaled.reshape(groups), unit, inverse, (2,)).reshape(x.shape)
    return NormGradients(grad_x, *_affine_gradients(g, unit.reshape(x.shape), (0, *range(2, x.ndim)), wanted))


def _group_gradients(
    name: str, grad_output: Any, x: ExTensor, groups: int, weight: Any, eps: Any, needs: Any
) -> NormGradients:
    check_needs(name, needs, 3)
    weight = _vector(name, "weight", weight, x)
    grad = as_grad(name, grad_output, x.shape)
    grads = kernels.group_norm_backward(grad, x, groups, weight, _eps(name, eps), _wanted(needs, weight))
    return NormGradients(cast_like(grads[0], x), cast_like(grads[1], weight), cast_like(grads[2], grad))


@backward_of(group_norm, wrt=("x", "weight", "bias"), formula=_group_norm_formula)
def group_norm_backward(
    grad_output: ExTensor,
    x: ExTensor,
    num_groups: int,
    weight: ExTensor | None = None,
    eps: float = 1e-5,
    *,
    needs: Needs3 = ALL,
) -> NormGradients:
    """Gradient of :func:`group_norm`.   dx = (h - mean(h) - u mean(h u)) / s  with h = dy weight, u = (x - mean) / s

    dweight = sum dy u,  dbias = sum dy,  over samples and positions;  s = sqrt(var + eps), means over a group.

    Args:
        grad_output: the gradient of the output.
        x, num_groups, weight, eps: as given to :func:`group_norm`. The bias is not asked for; its gradient is
            returned if there is a weight.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[1.0, 3.0, 10.0, 30.0]])
        >>> et.group_norm_backward(et.ones((1, 4)), x, 2, et.ones(4), eps=0.0).grad_weight.tolist()
        [-1.0, 1.0, -1.0, 1.0]
    """
    x = differentiable_input("group_norm_backward", "x", x)
    groups = _groups("group_norm_backward", x, num_groups)
    return _group_gradients("group_norm_backward", grad_output, x, groups, weight, eps, needs)


def _several_positions(function: str, x: ExTensor) -> int:
    """The number of channels, once it is sure that a channel of a sample has more than one position."""
    channels = _channels(function, x)
    if math.prod(x.shape[2:]) == 1:
        raise ValueError(
            f"[{function}] x of shape {x.shape} has one position per channel, so it would become 0; "
            "x must have the axes (N, C, ...) with more than one position"
        )
    return channels


@differentiable
def instance_norm(
    x: ExTensor, weight: ExTensor | None = None, bias: ExTensor | None = None, eps: float = 1e-5
) -> ExTensor:
    """Each channel of a sample with mean 0 and variance 1.   y = (x - mean) / sqrt(var + eps) * weight + bias

    The same as :func:`group_norm` with as many groups as channels.

    Args:
        x: shape (N, C, ...), with more than one position per channel.
        weight, bias: scale and shift of each channel, of shape (C,); None for 1 and 0.
        eps: is added to the variance (the biased one).

    Example:
        >>> import extensor as et
        >>> et.instance_norm(et.tensor([[[1.0, 3.0], [10.0, 30.0]]]), eps=0.0).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    x = as_floating("instance_norm", "x", x)
    channels = _several_positions("instance_norm", x)
    weight, bias = _vector("instance_norm", "weight", weight, x), _vector("instance_norm", "bias", bias, x)
    return kernels.group_norm(x, channels, weight, bias, _eps("instance_norm", eps))


def _instance_norm_formula(
    g: Any, x: Any, weight: Any = None, eps: float = 1e-5, *, needs: Needs3 = ALL
) -> NormGradients:
    return _group_norm_formula(
        g, x, as_tensor("instance_norm_backward", "x", x).shape[1], weight, eps, needs=needs
    )


@backward_of(instance_norm, wrt=("x", "weight", "bias"), formula=_instance_norm_formula)
def instance_norm_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor | None = None,
    eps: float = 1e-5,
    *,
    needs: Needs3 = ALL,
) -> NormGradients:
    """Gradient of :func:`instance_norm`: that of :func:`group_norm` with as many groups as channels.

    Args:
        grad_output: the gradient of the output.
        x, weight, eps: as given to :func:`instance_norm`. The bias is not asked for; its gradient is returned if
            there is a weight.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[[1.0, 3.0], [10.0, 30.0]]])
        >>> et.instance_norm_backward(et.ones((1, 2, 2)), x, et.ones(2), eps=0.0).grad_bias.tolist()
        [2.0, 2.0]
    """
    x = differentiable_input("instance_norm_backward", "x", x)
    channels = _several_positions("instance_norm_backward", x)
    return _group_gradients("instance_norm_backward", grad_output, x, channels, weight, eps, needs)


def _check_batch(
    function: str, x: ExTensor, running_mean: Any, running_var: Any, training: Any
) -> tuple[ExTensor | None, ExTensor | None, bool]:
    """The running statistics and the mode, once they are sure to fit x."""
    _channels(function, x)
    trains = as_bool(function, "training", training)
    mean = _vector(function, "running_mean", running_mean, x)
    var = _vector(function, "running_var", running_var, x)
    if trains and math.prod(x.shape[2:]) * x.shape[0] < 2:
        raise ValueError(
            f"[{function}] training needs more than one value per channel, but x has shape {x.shape}; "
            "use a larger batch, or training=False"
        )
    if not trains and (mean is None or var is None):
        raise ValueError(f"[{function}] running_mean and running_var must be given when training is False")
    return mean, var, trains


def _momentum(function: str, momentum: Any) -> float:
    found = as_number(function, "momentum", momentum)
    if not 0 <= found <= 1:
        raise ValueError(f"[{function}] momentum must lie between 0 and 1, got {found}")
    return found


@differentiable
def batch_norm(
    x: ExTensor,
    weight: ExTensor | None,
    bias: ExTensor | None,
    running_mean: ExTensor | None,
    running_var: ExTensor | None,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> BatchNormResult:
    """Each channel with mean 0 and variance 1 over the batch.   y = (x - mean) / sqrt(var + eps) * weight + bias

    In training, mean and (biased) variance are those of the batch, and the running statistics move towards them:
    new = (1 - momentum) old + momentum batch, with the unbiased variance. Otherwise they are the running ones,
    which stay as they are. Nothing is changed in place: the new statistics are returned.

    Args:
        x: shape (N, C, ...); in training with more than one value per channel.
        weight, bias: scale and shift of each channel, of shape (C,); None for 1 and 0.
        running_mean, running_var: statistics of shape (C,), constants for the gradient; in training they may be None,
            and then are not kept. Each keeps its dtype.
        training: whether the statistics are those of the batch.
        momentum: the weight of this batch in the new running statistics.
        eps: is added to the variance.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[1.0], [3.0]])
        >>> result = et.batch_norm(x, None, None, et.zeros(1), et.ones(1), training=True, momentum=0.5, eps=0.0)
        >>> result.output.tolist(), result.running_mean.tolist(), result.running_var.tolist()
        ([[-1.0], [1.0]], [1.0], [1.5])
    """
    x = as_floating("batch_norm", "x", x)
    mean, var, trains = _check_batch("batch_norm", x, running_mean, running_var, training)
    weight, bias = _vector("batch_norm", "weight", weight, x), _vector("batch_norm", "bias", bias, x)
    step, guard = _momentum("batch_norm", momentum), _eps("batch_norm", eps)
    output, new_mean, new_var = kernels.batch_norm(x, weight, bias, mean, var, trains, step, guard)
    dtype = promote(*(t.dtype for t in (x, weight, bias) if t is not None))
    if output.dtype != dtype:  # wider statistics do not widen the output
        output = astype_kernel(output, dtype)
    return BatchNormResult(output, cast_like(new_mean, mean), cast_like(new_var, var))


def _upstream(
    function: str, grad_output: Any, x: ExTensor, mean: ExTensor | None, var: ExTensor | None
) -> list[ExTensor]:
    """The gradients of the output and of the new statistics; zeros for statistics that are not kept."""
    statistics = (x.shape[1],)
    if isinstance(grad_output, (list, tuple)) and len(grad_output) == 3:
        kept = [True, mean is not None, var is not None]
        grad_output = [grad if keep else None for grad, keep in zip(grad_output, kept)]
    return as_grads(function, grad_output, [x.shape, statistics, statistics], x.dtype)


def _batch_norm_formula(
    grad_output: Any,
    x: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    needs: Needs3 = ALL,
) -> NormGradients:
    x, wanted = as_tensor("batch_norm_backward", "x", x), _wanted(needs, weight)
    g, g_mean, g_var = _upstream("batch_norm_backward", grad_output, x, running_mean, running_var)
    axes = (0, *range(2, x.ndim))
    scaled = g if weight is None else g * _per_channel(weight, x)
    if training:
        n = x.size // x.shape[1] if x.size else 2
        unit, inverse = _normalised(x, axes, eps)
        centred = x - x.mean(axes, keepdims=True)
        of_var = _per_channel(g_var, x) * centred * (2 * momentum / (n - 1))
        of_mean = _per_channel(g_mean, x) * (momentum / n)
        grad_x = _normalised_backward(scaled, unit, inverse, axes) + of_mean + of_var
    else:
        inverse = (_per_channel(running_var, x) + eps).rsqrt()
        unit, grad_x = (x - _per_channel(running_mean, x)) * inverse, scaled * inverse
    return NormGradients(grad_x if needs[0] else None, *_affine_gradients(g, unit, axes, wanted))


@backward_of(batch_norm, wrt=("x", "weight", "bias"), takes_none=True, formula=_batch_norm_formula)
def batch_norm_backward(
    grad_output: ExTensor | tuple[ExTensor | None, ...] | list[ExTensor | None],
    x: ExTensor,
    weight: ExTensor | None,
    running_mean: ExTensor | None,
    running_var: ExTensor | None,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    needs: Needs3 = ALL,
) -> NormGradients:
    """Gradient of :func:`batch_norm`.   dx = (h - mean(h) - u mean(h u)) / s  with h = dy weight, u = (x - mean) / s

    dweight = sum dy u,  dbias = sum dy,  over samples and positions;  s = sqrt(var + eps). Without training the
    statistics are constants:  dx = h / s.

    Args:
        grad_output: the gradient of the output; or a tuple of it and of the gradients of the two new running
            statistics, which depend on x in training (None for those that are not used).
        x, weight, running_mean, running_var, training, momentum, eps: as given to :func:`batch_norm`, the old running
            statistics among them. The bias is not asked for; its gradient is returned if there is a weight.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[1.0], [3.0]])
        >>> grads = et.batch_norm_backward(et.tensor([[1.0], [2.0]]), x, et.ones(1), None, None, True, eps=0.0)
        >>> grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([1.0], [3.0])
    """
    name = "batch_norm_backward"
    check_needs(name, needs, 3)
    x = differentiable_input(name, "x", x)
    mean, var, trains = _check_batch(name, x, running_mean, running_var, training)
    weight = _vector(name, "weight", weight, x)
    grad, g_mean, g_var = _upstream(name, grad_output, x, mean, var)
    step, guard = _momentum(name, momentum), _eps(name, eps)
    grads = kernels.batch_norm_backward(
        grad, g_mean, g_var, x, weight, mean, var, trains, step, guard, _wanted(needs, weight)
    )
    return NormGradients(cast_like(grads[0], x), cast_like(grads[1], weight), cast_like(grads[2], grad))
