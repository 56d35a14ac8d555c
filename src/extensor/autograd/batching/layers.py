"""Batching rules of layers: examples go where a layer has an axis for its batch, or for its channels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...graph import backward_of, differentiable
from ...ops import conv
from ...ops.shape import moveaxis, reshape
from ...tensor import ExTensor
from .batched import Level
from .elementwise import aligned, names_of
from .products import first_of, plus_bias
from .registry import batches, by_body, each_example

__all__: list[str] = []


def folded(level: Level, x: Any, axis: int = 0) -> ExTensor:
    """All examples, one after the other along an axis of theirs: (examples * N, ...) for the first."""
    full = level.full(x)
    if axis:
        full = moveaxis(full, 0, axis)
    return reshape(full, (*x.shape[:axis], level.size * x.shape[axis], *x.shape[axis + 1 :]))


def unfolded(level: Level, y: ExTensor, axis: int = 0) -> ExTensor:
    """What was :func:`folded` along an axis, with the examples in front again."""
    count = y.shape[axis] // level.size if level.size else 0
    found = reshape(y, (*y.shape[:axis], level.size, count, *y.shape[axis + 1 :]))
    return moveaxis(found, axis, 0) if axis else found


# Convolutions

_DIRECTIONS = {"1d": 1, "2d": 2, "3d": 3}


class _PerExample(NamedTuple):
    grad_x: ExTensor | None
    grad_weight: ExTensor | None
    grad_bias: ExTensor | None


_OPS = {name: getattr(conv, name) for name in dir(conv) if name in conv.__all__ and not name[0].isupper()}


@differentiable
def shared_conv(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    name: str = "conv2d",
    options: tuple[tuple[str, Any], ...] = (),
) -> ExTensor:
    """A convolution where each example has the same weight, and a gradient of its own.

    x: (examples, N, C, ...), weight: (examples, out, in, ...), bias: (examples, out); all examples of weight are equal.
    """
    count = x.shape[:2]
    y = _OPS[name](
        reshape(x, (count[0] * count[1], *x.shape[2:])), weight[0], first_of(bias), **dict(options)
    )
    return reshape(y, (*count, *y.shape[1:]))


@backward_of(shared_conv, wrt=("x", "weight", "bias"))
def shared_conv_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    name: str = "conv2d",
    options: tuple[tuple[str, Any], ...] = (),
    *,
    needs: tuple[bool, bool, bool] = (True, True, True),
) -> _PerExample:
    """Gradient of :func:`shared_conv`: that of x all at once, that of the weight with a group of channels per example."""
    backward, named = _OPS[f"{name}_backward"], dict(options)
    grad_x = grad_weight = grad_bias = None
    if needs[0]:
        flat_grad = reshape(grad_output, (-1, *grad_output.shape[2:]))
        flat_x = reshape(x, (-1, *x.shape[2:]))
        grad_x = reshape(
            backward(flat_grad, flat_x, weight[0], needs=(True, False, False), **named).grad_x, x.shape
        )
    if needs[1] or needs[2]:
        named["groups"] = named.get("groups", 1) * x.shape[0]
        wide = [
            reshape(moveaxis(t, 0, 1), (t.shape[1], t.shape[0] * t.shape[2], *t.shape[3:]))
            for t in (grad_output, x)
        ]
        stacked = reshape(weight, (weight.shape[0] * weight.shape[1], *weight.shape[2:]))
        found = backward(*wide, stacked, needs=(False, needs[1], needs[2]), **named)
        if needs[1]:
            grad_weight = reshape(found.grad_weight, weight.shape)
        if needs[2]:
            grad_bias = reshape(found.grad_bias, (x.shape[0], -1))
    return _PerExample(grad_x, grad_weight, grad_bias)


@batches("conv1d", "conv2d", "conv_transpose2d")
def convolution(
    level: Level, op: Any, x: Any, weight: Any, bias: Any = None, *options: Any, **named: Any
) -> Any:
    """One weight: examples are more images. Weights that differ: examples are more channels, in groups of their own."""
    directions = _DIRECTIONS[op.__name__[-2:]]
    named = {**dict(zip(names_of(op).names[3:], options)), **named}
    alone = x.ndim == directions + 1  # one image, without an axis for several
    if alone:
        x = level.wrapped(reshape(level.full(x), (level.size, 1, *x.shape)))
    if x.ndim != directions + 2 or weight.ndim != directions + 2 or not level.size:
        return each_example(level, op, x, weight, bias, **named)  # which says what is wrong
    if not level.has(weight):
        y = unfolded(level, op(folded(level, x), weight, None if level.has(bias) else bias, **named))
        if level.has(bias):
            y = plus_bias(level, y, bias, 1, directions)
    elif weight.shared and (bias is None or not level.has(bias) or bias.shared):
        options = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in named.items())
        y = shared_conv(
            level.full(x), weight.batch, None if bias is None else level.full(bias), op.__name__, options
        )
    else:
        named["groups"] = named.get("groups", 1) * level.size
        y = unfolded(
            level,
            op(
                folded(level, x, 1),
                folded(level, weight),
                None if bias is None else folded(level, bias),
                **named,
            ),
            1,
        )
    return reshape(y, (level.size, *y.shape[2:])) if alone else y


@batches(
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "global_avg_pool2d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "max_pool_indices", "adaptive_max_pool_indices", "interpolate",
)  # fmt: skip
def of_images(level: Level, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Examples are more images."""
    if not level.has(x) or x.ndim < 3 or not level.size:
        return each_example(level, op, x, *args, **kwargs)
    if f"{x.ndim - 1}d" == op.__name__[-2:]:  # one image, without an axis for several
        return op(x.batch, *args, **kwargs)
    return _each_part(op(folded(level, x), *args, **kwargs), lambda y: unfolded(level, y))


def _each_part(result: Any, function: Any) -> Any:
    if isinstance(result, ExTensor):
        return function(result)
    parts = [_each_part(part, function) for part in result]
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


batches(
    "glu", "conv3d", "conv_transpose1d", "conv_transpose3d", "grid_sample", "affine_grid", "pixel_shuffle",
    "pixel_unshuffle", "local_response_norm", "rotary_embedding", "soft_margin", "hinge_embedding", "margin_ranking",
    "multi_margin", "multilabel_margin", "multilabel_soft_margin", "nll", "gaussian_nll", "poisson_nll", "convolve", "correlate",
)(by_body)  # fmt: skip
batches("ctc")(each_example)


# Normalisation


@batches("layer_norm", "rms_norm")
def norm_of_last_axes(
    level: Level,
    op: Any,
    x: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = None,
) -> Any:
    """The norm itself; weights that differ come after it."""
    if op.__name__ == "rms_norm" and isinstance(bias, float):
        bias, eps = None, bias
    named = {} if eps is None else {"eps": eps}
    if not level.has(weight) and not level.has(bias):
        more = () if op.__name__ == "rms_norm" else (bias,)
        return op(level.full(x), normalized_shape, weight, *more, **named)
    y = op(level.full(x), normalized_shape, **named)
    if weight is not None:
        y = y * aligned(level, weight, x.ndim)
    return y if bias is None else y + aligned(level, bias, x.ndim)


@batches("group_norm", "instance_norm")
def norm_of_channels(level: Level, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Examples are more images; weights that differ come after the norm."""
    named = {**dict(zip(names_of(op).names[1:], args)), **kwargs}
    weight, bias = named.pop("weight", None), named.pop("bias", None)
    if x.ndim < 2 or not level.size:
        return each_example(level, op, x, *args, **kwargs)
    if not level.has(weight) and not level.has(bias):
        return unfolded(level, op(folded(level, x), weight=weight, bias=bias, **named))
    y = unfolded(level, op(folded(level, x), **named))
    after = x.ndim - 2
    if weight is not None:
        shape = (1, *weight.shape, *(1,) * after)
        y = y * (reshape(weight.batch, (level.size, *shape)) if level.has(weight) else reshape(weight, shape))
    return y if bias is None else plus_bias(level, y, bias, 1, after)


@batches("batch_norm")
def batch_norm(
    level: Level,
    op: Any,
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Examples are more channels: each has statistics of its own."""
    if x.ndim < 2 or not level.size:
        return each_example(level, op, x, weight, bias, running_mean, running_var, training, *args, **kwargs)
    per_channel = [None if t is None else folded(level, t) for t in (weight, bias, running_mean, running_var)]
    found = op(folded(level, x, 1), *per_channel, training, *args, **kwargs)
    parts = [unfolded(level, found[0], 1), *(None if t is None else unfolded(level, t) for t in found[1:])]
    return type(found)(*parts)


# Attention, recurrence, dropout


@batches("scaled_dot_product_attention")
def attention(
    level: Level, op: Any, q: Any, k: Any, v: Any, mask: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Attention has any number of axes in front; they broadcast."""
    ndim = max(t.ndim for t in (q, k, v))
    if mask is not None and level.has(mask) and mask.ndim < ndim:
        mask = aligned(level, mask, ndim)
    elif mask is not None and level.has(mask):
        mask = mask.batch
    full = [aligned(level, t, ndim) if level.has(t) else level.full(t) for t in (q, k, v)]
    return op(*full, mask, *args, **kwargs)


@batches("rnn_cell", "gru_cell", "lstm_cell", "rnn_sequence", "gru_sequence", "lstm_sequence")
def recurrent(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Examples are more sequences; weights that differ have no rule."""
    named = {**dict(zip(names_of(op).names, args)), **kwargs}
    states = [name for name in ("x", "h", "c") if name in named]
    if level.holds(v for name, v in named.items() if name not in states) or not level.size:
        return each_example(level, op, *args, **kwargs)
    axes = {
        name: named[name].ndim - 2 for name in states
    }  # sequences are (T, N, features), states (N, features)
    if min(axes.values()) < 0:
        return each_example(level, op, *args, **kwargs)
    named.update({name: folded(level, named[name], axis) for name, axis in axes.items()})
    found = op(**named)
    return _each_part(found, lambda y: unfolded(level, y, y.ndim - 2))


@batches("dropout")
def dropout(level: Level, op: Any, x: Any, p: float, rng: Any) -> Any:
    """A generator gives each example numbers of its own; a seed gives all the same."""
    if isinstance(rng, np.random.Generator):
        return op(level.full(x), p, rng)
    return each_example(level, op, x, p, rng)
