"""Functions that ONNX has no operator for, said with functions it has one for.

They are called instead of the function while a model is traced, so each is the formula of its docstring.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et

__all__ = ["DECOMPOSITIONS", "decomposes"]

DECOMPOSITIONS: dict[str, Callable[..., Any]] = {}


def decomposes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a formula into the table, under the name of what it stands for."""
    DECOMPOSITIONS[function.__name__] = function
    return function


# Elementwise


@decomposes
def square(x: Any) -> Any:
    return et.multiply(x, x)


@decomposes
def rsqrt(x: Any) -> Any:
    return et.reciprocal(et.sqrt(x))


@decomposes
def trunc(x: Any) -> Any:
    return et.multiply(et.sign(x), et.floor(et.abs(x)))


@decomposes
def expm1(x: Any) -> Any:
    half = et.multiply(x, 0.5)  # e^x - 1 = 2 sinh(x/2) e^(x/2), without cancellation
    return et.multiply(et.multiply(et.sinh(half), 2.0), et.exp(half))


@decomposes
def log1p(x: Any) -> Any:
    ratio = et.divide(x, et.add(x, 2.0))  # log(1 + x) = 2 atanh(x / (2 + x)); a series is enough near 0
    squared = et.multiply(ratio, ratio)
    series: Any = 1 / 13
    for k in (11, 9, 7, 5, 3, 1):
        series = et.add(et.multiply(squared, series), 1 / k)
    near = et.multiply(et.multiply(ratio, 2.0), series)
    return et.where(et.less(et.abs(x), 0.25), near, et.log(et.add(x, 1.0)))


@decomposes
def log2(x: Any) -> Any:
    return et.multiply(et.log(x), 1 / math.log(2))


@decomposes
def log10(x: Any) -> Any:
    return et.multiply(et.log(x), 1 / math.log(10))


@decomposes
def silu(x: Any) -> Any:
    return et.multiply(x, et.sigmoid(x))


@decomposes
def mish(x: Any) -> Any:
    return et.multiply(x, et.tanh(et.softplus(x)))


@decomposes
def log_sigmoid(x: Any) -> Any:
    return et.negate(et.softplus(et.negate(x)))


@decomposes
def tanh_shrink(x: Any) -> Any:
    return et.subtract(x, et.tanh(x))


@decomposes
def hard_shrink(x: Any, lambd: float = 0.5) -> Any:
    return et.where(et.less_equal(et.abs(x), lambd), 0.0, x)


@decomposes
def soft_shrink(x: Any, lambd: float = 0.5) -> Any:
    return et.multiply(et.sign(x), et.relu(et.subtract(et.abs(x), lambd)))


@decomposes
def softsign(x: Any) -> Any:
    return et.divide(x, et.add(et.abs(x), 1.0))


@decomposes
def celu(x: Any, alpha: float = 1.0) -> Any:
    return et.where(et.greater(x, 0.0), x, et.multiply(expm1(et.divide(x, alpha)), alpha))


@decomposes
def threshold(x: Any, threshold: float, value: float) -> Any:
    return et.where(et.less_equal(x, threshold), value, x)


# Shapes and reductions


@decomposes
def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return et.reshape(roll(et.ravel(x), shift, 0), x.shape)
    shifts = shift if isinstance(shift, (list, tuple)) else [shift]
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    if len(shifts) == 1:
        shifts = list(shifts) * len(axes)
    for by, along in zip(shifts, axes):
        length = x.shape[along]
        cut = -by % length if length else 0
        if cut:
            x = et.concatenate(et.split(x, (cut,), along)[::-1], along)
    return x


@decomposes
def variance(x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
    axes = tuple(range(x.ndim)) if axis is None else axis
    off = et.subtract(x, et.mean(x, axes, True))
    spread = et.mean(et.multiply(off, off), axes, keepdims)
    if not ddof:
        return spread
    along = axes if isinstance(axes, tuple) else (axes,)
    count = math.prod(x.shape[a] for a in along)
    return et.multiply(spread, count / (count - ddof))


@decomposes
def var(x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
    return variance(x, axis, keepdims, ddof)


@decomposes
def std(x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
    return et.sqrt(variance(x, axis, keepdims, ddof))


@decomposes
def outer(a: Any, b: Any) -> Any:
    return et.multiply(et.reshape(et.ravel(a), (-1, 1)), et.ravel(b))


@decomposes
def inner(a: Any, b: Any) -> Any:
    if not a.ndim or not b.ndim:
        return et.multiply(a, b)
    return tensordot(a, b, ((-1,), (-1,)))


@decomposes
def dot(a: Any, b: Any) -> Any:
    if not a.ndim or not b.ndim:
        return et.multiply(a, b)
    return et.matmul(a, b) if b.ndim <= 2 else tensordot(a, b, ((-1,), (-2,)))


@decomposes
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = ([v] if isinstance(v, int) else list(v) for v in axes)
    letters = iter(string.ascii_letters)
    first = [next(letters) for _ in range(a.ndim)]
    second = [next(letters) for _ in range(b.ndim)]
    for i, j in zip(left, right):
        second[j] = first[i]
    summed = {first[i] for i in left}
    kept = [c for c in first + second if c not in summed]
    return et.einsum(f"{''.join(first)},{''.join(second)}->{''.join(kept)}", a, b)


# Layers


@decomposes
def adaptive_avg_pool2d(x: Any, output_size: Any) -> Any:
    pair = output_size if isinstance(output_size, (list, tuple)) else (output_size, output_size)
    rows, columns = (n if m is None else m for m, n in zip(pair, x.shape[2:]))
    if rows == columns == 1:
        return et.global_avg_pool2d(x)
    height, width = x.shape[2:]
    if not height % rows and not width % columns:
        return et.avg_pool2d(x, (height // rows, width // columns))
    lines = []
    for i in range(rows):
        top, bottom = i * height // rows, -(-(i + 1) * height // rows)
        cells = []
        for j in range(columns):
            left, right = j * width // columns, -(-(j + 1) * width // columns)
            cells.append(
                et.mean(
                    et.index(x, (slice(None), slice(None), slice(top, bottom), slice(left, right))),
                    (2, 3),
                    True,
                )
            )
        lines.append(et.concatenate(cells, 3))
    return et.concatenate(lines, 2)


@decomposes
def batch_norm(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    if not training and running_mean is not None and running_var is not None:
        return NotImplemented  # there is an operator
    axes, across = (0, *range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
    mean, spread = et.mean(x, axes), variance(x, axes)
    found = et.divide(
        et.subtract(x, et.reshape(mean, across)), et.sqrt(et.add(et.reshape(spread, across), eps))
    )
    found = found if weight is None else et.multiply(found, et.reshape(weight, across))
    found = found if bias is None else et.add(found, et.reshape(bias, across))
    if running_mean is None or not training:
        return et.BatchNormResult(found, running_mean, running_var)
    count = math.prod(x.shape[a] for a in axes)
    wide = et.multiply(spread, count / max(count - 1, 1))
    kept = [
        et.add(et.multiply(old, 1 - momentum), et.multiply(new, momentum))
        for old, new in ((running_mean, mean), (running_var, wide))
    ]
    return et.BatchNormResult(found, *kept)


@decomposes
def self_attention(x: Any, num_heads: int = 1, causal: bool = False) -> Any:
    n, length, width = x.shape
    size = width // 3 // num_heads

    def apart(part: Any) -> Any:
        return et.swapaxes(et.reshape(part, (n, length, num_heads, size)), 1, 2)

    q, k, v = map(apart, et.split(x, 3, -1))
    found = et.scaled_dot_product_attention(q, k, v, None, causal)
    return et.reshape(et.swapaxes(found, 1, 2), (n, length, num_heads * size))


@decomposes
def rnn_cell(
    x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, nonlinearity: str = "tanh"
) -> Any:
    total = et.add(et.linear(x, w_ih, b_ih), et.linear(h, w_hh, b_hh))
    return et.tanh(total) if nonlinearity == "tanh" else et.relu(total)


@decomposes
def gru_cell(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    xr, xz, xn = et.split(et.linear(x, w_ih, b_ih), 3, -1)
    hr, hz, hn = et.split(et.linear(h, w_hh, b_hh), 3, -1)
    reset, update = et.sigmoid(et.add(xr, hr)), et.sigmoid(et.add(xz, hz))
    new = et.tanh(et.add(xn, et.multiply(reset, hn)))
    return et.add(et.multiply(et.subtract(1.0, update), new), et.multiply(update, h))


@decomposes
def lstm_cell(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    total = et.add(et.linear(x, w_ih, b_ih), et.linear(h, w_hh, b_hh))
    i, f, g, o = et.split(total, 4, -1)
    cell = et.add(et.multiply(et.sigmoid(f), c), et.multiply(et.sigmoid(i), et.tanh(g)))
    return et.LSTMCellResult(et.multiply(et.sigmoid(o), et.tanh(cell)), cell)


# Losses


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else et.sum(loss) if reduction == "sum" else et.mean(loss)


def _weighted(loss: Any, weight: Any) -> Any:
    return loss if weight is None else et.multiply(loss, weight)


@decomposes
def mean_squared_error(predictions: Any, targets: Any, reduction: str = "mean") -> Any:
    off = et.subtract(predictions, targets)
    return _reduced(et.multiply(off, off), reduction)


@decomposes
def mean_absolute_error(predictions: Any, targets: Any, reduction: str = "mean") -> Any:
    return _reduced(et.abs(et.subtract(predictions, targets)), reduction)


@decomposes
def smooth_l1(predictions: Any, targets: Any, beta: float = 1.0, reduction: str = "mean") -> Any:
    off = et.abs(et.subtract(predictions, targets))
    near = et.multiply(et.multiply(off, off), 0.5 / (beta or 1))
    return _reduced(et.where(et.less(off, beta), near, et.subtract(off, 0.5 * beta)), reduction)


@decomposes
def huber(predictions: Any, targets: Any, delta: float = 1.0, reduction: str = "mean") -> Any:
    off = et.abs(et.subtract(predictions, targets))
    near, far = et.multiply(et.multiply(off, off), 0.5), et.multiply(et.subtract(off, 0.5 * delta), delta)
    return _reduced(et.where(et.less_equal(off, delta), near, far), reduction)


@decomposes
def binary_cross_entropy(predictions: Any, targets: Any, weight: Any = None, reduction: str = "mean") -> Any:
    yes = et.maximum(et.log(predictions), -100.0)
    no = et.maximum(log1p(et.negate(predictions)), -100.0)
    loss = et.negate(et.add(et.multiply(targets, yes), et.multiply(et.subtract(1.0, targets), no)))
    return _reduced(_weighted(loss, weight), reduction)


@decomposes
def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:
    yes = _weighted(et.multiply(targets, et.softplus(et.negate(logits))), pos_weight)
    no = et.multiply(et.subtract(1.0, targets), et.softplus(logits))
    return _reduced(_weighted(et.add(yes, no), weight), reduction)


@decomposes
def focal(logits: Any, targets: Any, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "mean") -> Any:
    other = et.subtract(1.0, targets)
    miss = et.add(et.multiply(et.sigmoid(logits), other), et.multiply(et.sigmoid(et.negate(logits)), targets))
    entropy = binary_cross_entropy_with_logits(logits, targets, reduction="none")
    loss = et.multiply(et.power(miss, gamma), entropy)
    if alpha != -1:
        loss = et.multiply(loss, et.add(et.multiply(targets, alpha), et.multiply(other, 1 - alpha)))
    return _reduced(loss, reduction)


@decomposes
def hinge(predictions: Any, targets: Any, reduction: str = "mean") -> Any:
    labels = et.astype(targets, predictions.dtype)
    return _reduced(et.relu(et.subtract(1.0, et.multiply(labels, predictions))), reduction)


@decomposes
def kl_divergence(p: Any, q: Any, axis: int = -1, reduction: str = "mean") -> Any:
    terms = et.multiply(p, et.subtract(et.log(p), et.log(q)))
    return _reduced(et.sum(et.where(et.equal(p, 0.0), 0.0, terms), axis), reduction)


@decomposes
def triplet_margin(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    def distance(a: Any, b: Any) -> Any:
        size = et.abs(et.add(et.subtract(a, b), eps))
        if p == math.inf:
            return et.max(size, -1)
        return et.power(et.sum(et.power(size, float(p)), -1), 1 / p)

    far = distance(anchor, negative)
    if swap:
        far = et.minimum(far, distance(positive, negative))
    return _reduced(et.relu(et.add(et.subtract(distance(anchor, positive), far), margin)), reduction)


@decomposes
def cosine_embedding(x1: Any, x2: Any, targets: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    def length(x: Any) -> Any:
        return et.add(et.sum(et.multiply(x, x), -1), float(np.float32(1e-12)))

    cosine = et.divide(et.sum(et.multiply(x1, x2), -1), et.sqrt(et.multiply(length(x1), length(x2))))
    far = et.relu(et.subtract(cosine, margin))
    return _reduced(et.where(et.equal(targets, 1), et.subtract(1.0, cosine), far), reduction)


@decomposes
def cross_entropy(
    logits: Any, targets: Any, axis: int = -1, label_smoothing: float = 0.0, weight: Any = None,
    ignore_index: int | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    logs = et.log_softmax(logits, axis)
    along = axis % logits.ndim
    classes = logits.shape[along]
    across = tuple(-1 if i == along else 1 for i in range(logits.ndim))
    weights = None if weight is None else et.reshape(weight, across)
    if targets.dtype.kind not in "iu":
        t = targets
        if label_smoothing:
            t = et.add(et.multiply(t, 1 - label_smoothing), label_smoothing / classes)
        return _reduced(et.negate(et.sum(_weighted(et.multiply(t, logs), weights), along)), reduction)
    labels = et.expand_dims(targets, along)
    hit = et.equal(labels, np.arange(classes).reshape(across))
    if ignore_index is not None:
        hit = et.logical_and(hit, et.not_equal(labels, ignore_index))
    counted = _weighted(et.astype(hit, logits.dtype), weights)
    loss = et.negate(et.sum(et.where(hit, _weighted(logs, weights), 0.0), along))
    if label_smoothing:
        even = et.negate(et.mean(_weighted(logs, weights), along))
        if ignore_index is not None:
            even = et.where(et.not_equal(targets, ignore_index), even, 0.0)
        loss = et.add(et.multiply(loss, 1 - label_smoothing), et.multiply(even, label_smoothing))
    if reduction != "mean":
        return _reduced(loss, reduction)
    return et.divide(et.sum(loss), et.sum(counted))
