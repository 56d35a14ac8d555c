"""Convolution, pooling, normalisation and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..emit import Emitter, Value, exports

__all__: list[str] = []


def _pair(value: Any, count: int = 2) -> list[int]:
    found = [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]
    return found * count if len(found) == 1 else found


def _pads(padding: Any, count: int, reach: list[int] | None = None) -> dict[str, Any]:
    """Padding before and after each axis; "same" adds what a window of ``reach`` more than one element takes away."""
    if padding == "same":
        before, after = [n // 2 for n in reach or []], [n - n // 2 for n in reach or []]
        return {"pads": before + after}
    pads = _pair(0 if padding == "valid" else padding, count)
    return {"pads": pads + pads} if any(pads) else {}


@exports("conv1d", "conv2d")
def conv(
    e: Emitter, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> str:  # fmt: skip
    """Conv."""
    n = x.ndim - 2
    reach = [(k - 1) * d for k, d in zip(weight.shape[2:], _pair(dilation, n))]
    return str(
        e.node(
            "Conv", e.use(x, e.out.dtype), e.use(weight, e.out.dtype), e.use(bias, e.out.dtype),
            strides=_pair(stride, n), dilations=_pair(dilation, n), group=groups, **_pads(padding, n, reach),
        )
    )  # fmt: skip


@exports("conv_transpose2d")
def conv_transpose2d(
    e: Emitter, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, output_padding: Any = 0,
) -> str:  # fmt: skip
    """ConvTranspose; what is added beyond a stride at the end is taken from the padding there, or is bias alone."""
    more, steps = _pair(output_padding), _pair(stride)
    if any(m >= s for m, s in zip(more, steps)):
        before = _pair(padding)
        ends = [max(b - m, 0) for b, m in zip(before, more)]
        missing = [max(m - b, 0) for b, m in zip(before, more)]
        found = e.node(
            "ConvTranspose", e.use(x), e.use(weight), strides=steps, dilations=_pair(dilation), group=groups,
            pads=before + ends,
        )  # fmt: skip
        if any(missing):
            found = e.node("Pad", found, e.constant([0] * 6 + missing, np.int64), e.constant(0, x.dtype))
        return str(
            found
            if bias is None
            else e.node("Add", found, e.reshape(e.use(bias), (weight.shape[1] * groups, 1, 1)))
        )
    return str(
        e.node(
            "ConvTranspose", e.use(x), e.use(weight), e.use(bias), strides=_pair(stride), dilations=_pair(dilation),
            group=groups, output_padding=_pair(output_padding), **_pads(padding, 2),
        )
    )  # fmt: skip


@exports("max_pool2d")
def max_pool2d(
    e: Emitter, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, dilation: Any = 1
) -> str:  # fmt: skip
    """MaxPool."""
    kernel = _pair(kernel_size)
    return str(
        e.node(
            "MaxPool", e.use(x), kernel_shape=kernel, strides=_pair(stride if stride is not None else kernel),
            ceil_mode=int(ceil_mode) or None, dilations=_pair(dilation) if set(_pair(dilation)) != {1} else None,
            **_pads(padding, 2),
        )
    )  # fmt: skip


@exports("avg_pool2d")
def avg_pool2d(
    e: Emitter, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> str:  # fmt: skip
    """AveragePool."""
    kernel = _pair(kernel_size)
    return str(
        e.node(
            "AveragePool", e.use(x), kernel_shape=kernel, strides=_pair(stride if stride is not None else kernel),
            ceil_mode=int(ceil_mode) or None, count_include_pad=int(count_include_pad), **_pads(padding, 2),
        )
    )  # fmt: skip


@exports("global_avg_pool2d")
def global_avg_pool2d(e: Emitter, x: Value) -> str:
    """GlobalAveragePool."""
    return str(e.node("GlobalAveragePool", e.use(x)))


# Normalisation


def _weights(e: Emitter, weight: Any, bias: Any, shape: Any, dtype: Any) -> tuple[str, str]:
    """Scale and shift; ones and zeros where there are none."""
    scale = e.use(weight, dtype) if weight is not None else e.constant(np.ones(shape), dtype)
    return scale, e.use(bias, dtype) if bias is not None else e.constant(np.zeros(shape), dtype)


@exports("batch_norm")
def batch_norm(
    e: Emitter, x: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """BatchNormalization with the running statistics."""
    if training or running_mean is None or running_var is None:
        raise NotImplementedError(
            "[export] batch_norm with the statistics of the batch is not exported; call eval()"
        )
    scale, shift = _weights(e, weight, bias, (x.shape[1],), x.dtype)
    mean, var = e.use(running_mean), e.use(running_var)
    found = e.node(
        "BatchNormalization", e.use(x), scale, shift, mean, var, epsilon=eps, momentum=1 - momentum
    )
    return found, mean, var


@exports("layer_norm")
def layer_norm(
    e: Emitter, x: Value, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> str:
    """LayerNormalization."""
    shape = _pair(normalized_shape, 1)
    scale = e.use(weight, x.dtype) if weight is not None else e.constant(np.ones(shape), x.dtype)
    return str(
        e.node("LayerNormalization", e.use(x), scale, e.use(bias, x.dtype), axis=-len(shape), epsilon=eps)
    )


@exports("instance_norm")
def instance_norm(e: Emitter, x: Value, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> str:
    """InstanceNormalization."""
    scale, shift = _weights(e, weight, bias, (x.shape[1],), x.dtype)
    return str(e.node("InstanceNormalization", e.use(x), scale, shift, epsilon=eps))


@exports("group_norm")
def group_norm(
    e: Emitter, x: Value, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> str:
    """InstanceNormalization of the groups: in runtimes it keeps more digits than GroupNormalization does."""
    scale, shift = _weights(e, weight, bias, (x.shape[1],), x.dtype)
    grouped = e.node("Reshape", e.use(x), e.constant([0, num_groups, -1], np.int64))
    ones, zeros = e.constant(np.ones(num_groups), x.dtype), e.constant(np.zeros(num_groups), x.dtype)
    normal = e.node("InstanceNormalization", grouped, ones, zeros, epsilon=eps)
    whole = e.node("Reshape", normal, e.node("Shape", e.use(x)))
    across = (x.shape[1], *(1,) * (x.ndim - 2))
    return str(e.node("Add", e.node("Mul", whole, e.reshape(scale, across)), e.reshape(shift, across)))


@exports("rms_norm")
def rms_norm(e: Emitter, x: Value, normalized_shape: Any, weight: Any = None, eps: float = 1e-6) -> str:
    """RMSNormalization from operator set 23 on; before it, its formula."""
    count = len(_pair(normalized_shape, 1))
    name = e.use(x)
    if e.opset >= 23:
        scale = (
            e.use(weight, x.dtype)
            if weight is not None
            else e.constant(np.ones(_pair(normalized_shape, 1)), x.dtype)
        )
        return str(e.node("RMSNormalization", name, scale, axis=-count, epsilon=eps))
    axes = list(range(-count, 0))
    squares = e.node("Mul", name, name)
    if e.opset >= 18:
        mean = e.node("ReduceMean", squares, e.constant(axes, np.int64), keepdims=1)
    else:
        mean = e.node("ReduceMean", squares, axes=axes, keepdims=1)
    root = e.node("Sqrt", e.node("Add", mean, e.constant(eps, x.dtype)))
    normal = e.node("Div", name, root)
    return str(normal if weight is None else e.node("Mul", normal, e.use(weight, x.dtype)))


# Attention


@exports("scaled_dot_product_attention")
def attention(
    e: Emitter,
    q: Value,
    k: Value,
    v: Value,
    mask: Any = None,
    causal: bool = False,
    scale: float | None = None,
) -> str:
    """MatMul, mask, Softmax, MatMul; a query that may see nothing gives 0."""
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    order = [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2]
    scaled = e.node("Mul", e.use(q), e.constant(factor, q.dtype))
    scores = e.node("MatMul", scaled, e.node("Transpose", e.use(k), perm=order))
    hidden = e.constant(-np.inf, q.dtype)
    if causal:
        rows, columns = (
            e.node("Range", e.constant(0, np.int64), e.scalar(n), e.constant(1, np.int64))
            for n in (q.shape[-2], k.shape[-2])
        )
        seen = e.node("GreaterOrEqual", e.node("Unsqueeze", rows, e.constant([1], np.int64)), columns)
        scores = e.node("Where", seen, scores, hidden)
    if mask is not None:
        boolean = (mask.dtype if isinstance(mask, Value) else np.asarray(mask).dtype) == np.bool_
        scores = (
            e.node("Where", e.use(mask), scores, hidden)
            if boolean
            else e.node("Add", scores, e.use(mask, q.dtype))
        )
    weights = e.node("Softmax", scores, axis=-1)
    if mask is not None:
        last = [-1]
        if e.opset >= 18:
            best = e.node("ReduceMax", scores, e.constant(last, np.int64), keepdims=1)
        else:
            best = e.node("ReduceMax", scores, axes=last, keepdims=1)
        blind = e.node("IsInf", best, detect_positive=0)
        weights = e.node("Where", blind, e.constant(0.0, q.dtype), weights)
    return str(e.node("MatMul", weights, e.use(v)))
