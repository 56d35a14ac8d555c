"""The update rules of optimisers: each kernel moves a whole list of parameters one step on.

Arrays come as parallel lists: parameters, gradients, then what the rule remembers of earlier steps. The results are
new arrays in the same order. Half-precision parameters are updated in float32 and rounded once; what a rule remembers
is never narrower than float32 (the average of a squared gradient would vanish in float16).
"""

from __future__ import annotations

import math

import numpy as np

from ...dtypes import HALF, bfloat16, float32
from ..dispatch import kernel
from ..namespace import namespace_of, wide_dtype, xp

__all__ = [
    "adagrad_step", "adam_step", "clip_grad_norm", "clip_grad_value", "ema_step", "lamb_step", "lion_step",
    "rmsprop_step", "round_stochastically", "sgd_step", "unscale_gradients",
]  # fmt: skip


def _wide(array, maximize=False):
    """At least float32; uphill is downhill against the gradient."""
    wide = array.astype(float32) if array.dtype in HALF else array
    return -wide if maximize else wide


def _gradient(param, grad, weight_decay, maximize):
    """The gradient in the dtype of the update, with that of the penalty weight_decay / 2 * |param|^2."""
    grad = _wide(grad, maximize).astype(param.dtype, copy=False)
    return grad + weight_decay * param if weight_decay else grad


def _number(x):
    """One element as a Python number; of another library than NumPy it may not be known yet."""
    return x.item() if namespace_of(x) is np else x


def root(number):
    """The square root of a Python number, or of one that is traced; neither widens what it divides."""
    return math.sqrt(number) if isinstance(number, float) else namespace_of(number).sqrt(number)


def _same(array, like):
    """The result as an array of the dtype of the parameter it replaces (one rounding)."""
    return xp.asarray(array, dtype=like.dtype)


@kernel(exact=True)
def sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize):
    new_params, new_buffers = [], []
    for param, grad, buffer in zip(params, grads, buffers):
        p = _wide(param)
        g = _gradient(p, grad, weight_decay, maximize)
        if momentum:
            buffer = xp.asarray(g if buffer is None else momentum * buffer + (1 - dampening) * g)
            g = g + momentum * buffer if nesterov else buffer
        new_params.append(_same(p - lr * g, param))
        new_buffers.append(buffer)
    return new_params, new_buffers


@kernel(exact=True)
def adam_step(
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize,
):  # fmt: skip
    # max_exp_avg_sqs: None, or the largest averages so far (AMSGrad). decoupled: the parameter decays by itself (AdamW).
    # steps: for each parameter the number of this step, from 1.
    new_params, new_avgs, new_sqs, new_maxima = [], [], [], None if max_exp_avg_sqs is None else []
    for i, (param, grad, step) in enumerate(zip(params, grads, steps)):
        p = _wide(param)
        g = _gradient(p, grad, 0.0 if decoupled else weight_decay, maximize)
        if decoupled and weight_decay:
            p = p * (1 - lr * weight_decay)
        avg = beta1 * exp_avgs[i] + (1 - beta1) * g
        square = beta2 * exp_avg_sqs[i] + (1 - beta2) * (g * g)
        largest = square
        if new_maxima is not None:
            largest = xp.maximum(max_exp_avg_sqs[i], square)
            new_maxima.append(xp.asarray(largest))
        spread = xp.sqrt(largest) / root(1 - beta2**step) + eps
        new_params.append(_same(p - lr / (1 - beta1**step) * avg / spread, param))
        new_avgs.append(xp.asarray(avg))
        new_sqs.append(xp.asarray(square))
    return new_params, new_avgs, new_sqs, new_maxima


@kernel(exact=True)
def rmsprop_step(
    params, grads, square_avgs, grad_avgs, buffers, lr, alpha, eps, weight_decay, momentum, maximize
):
    # grad_avgs: None, or the averages of the gradient (centred); buffers: None, or the velocities (momentum).
    new_params, new_squares = [], []
    new_avgs, new_buffers = None if grad_avgs is None else [], None if buffers is None else []
    for i, (param, grad) in enumerate(zip(params, grads)):
        p = _wide(param)
        g = _gradient(p, grad, weight_decay, maximize)
        square = alpha * square_avgs[i] + (1 - alpha) * (g * g)
        variance = square
        if new_avgs is not None:
            avg = grad_avgs[i] + (1 - alpha) * (g - grad_avgs[i])
            new_avgs.append(xp.asarray(avg))
            variance = square - avg * avg
        step = g / (xp.sqrt(variance) + eps)
        if new_buffers is not None:
            step = momentum * buffers[i] + step
            new_buffers.append(xp.asarray(step))
        new_params.append(_same(p - lr * step, param))
        new_squares.append(xp.asarray(square))
    return new_params, new_squares, new_avgs, new_buffers


@kernel(exact=True)
def adagrad_step(params, grads, sums, steps, lr, lr_decay, eps, weight_decay, maximize):
    new_params, new_sums = [], []
    for param, grad, total, step in zip(params, grads, sums, steps):
        p = _wide(param)
        g = _gradient(p, grad, weight_decay, maximize)
        total = total + g * g
        new_params.append(_same(p - lr / (1 + (step - 1) * lr_decay) * g / (xp.sqrt(total) + eps), param))
        new_sums.append(xp.asarray(total))
    return new_params, new_sums


@kernel(exact=True)
def lion_step(params, grads, exp_avgs, lr, beta1, beta2, weight_decay, maximize):
    new_params, new_avgs = [], []
    for param, grad, avg in zip(params, grads, exp_avgs):
        p = _wide(param)
        g = _gradient(p, grad, 0.0, maximize)
        direction = xp.sign(beta1 * avg + (1 - beta1) * g)
        new_params.append(_same(p - lr * (direction + weight_decay * p), param))
        new_avgs.append(xp.asarray(beta2 * avg + (1 - beta2) * g))
    return new_params, new_avgs


def _norm(array):
    """The Euclidean norm, added up in float64."""
    return root(_number(xp.square(array.astype(wide_dtype(array))).sum()))


def _ratio(length, stride):
    """1 where either is 0."""
    if isinstance(length, float):
        return length / stride if length and stride else 1.0
    sound = (length != 0) & (stride != 0)
    return xp.where(sound, length / xp.where(sound, stride, 1.0), 1.0)


@kernel(exact=True)
def lamb_step(params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, maximize):
    new_params, new_avgs, new_sqs = [], [], []
    for param, grad, avg, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, steps):
        p = _wide(param)
        g = _gradient(p, grad, 0.0, maximize)
        avg = beta1 * avg + (1 - beta1) * g
        square = beta2 * square + (1 - beta2) * (g * g)
        direction = avg / (1 - beta1**step) / (xp.sqrt(square / (1 - beta2**step)) + eps) + weight_decay * p
        length, stride = _norm(p), _norm(direction)
        trust = _ratio(length, stride)
        new_params.append(_same(p - lr * trust * direction, param))
        new_avgs.append(xp.asarray(avg))
        new_sqs.append(xp.asarray(square))
    return new_params, new_avgs, new_sqs


@kernel(exact=True)
def ema_step(averages, values, decay):
    return [
        xp.asarray(decay * average + (1 - decay) * _wide(value)).astype(average.dtype)
        for average, value in zip(averages, values)
    ]


def _total_norm(grads, order):
    """The norm of all gradients as one vector, in float64."""
    if order == np.inf:
        tops = [xp.max(xp.abs(_wide(g))) for g in grads if g.size]
        return _number(xp.stack(tops).max()) if tops else 0.0
    powers = [xp.sum(xp.abs(_wide(g).astype(wide_dtype(g), copy=False)) ** order) for g in grads]
    return _number(sum(powers, np.zeros(())) ** (1 / order))


@kernel(exact=True)
def clip_grad_norm(grads, max_norm, order):
    total = _total_norm(grads, order)
    scale = max_norm / (total + 1e-6)
    if not isinstance(scale, float):  # of another library, where it may not be known yet
        return [
            _same(_wide(g) * xp.where(scale >= 1, 1.0, scale).astype(_wide(g).dtype), g) for g in grads
        ], total
    if scale >= 1:
        return list(grads), total
    return [_same(_wide(g) * scale, g) for g in grads], total


@kernel(exact=True)
def clip_grad_value(grads, limit):
    return [_same(xp.clip(_wide(g), -limit, limit), g) for g in grads]


@kernel(exact=True)
def unscale_gradients(grads, scale):
    """Each gradient / scale, half precision in float32; and whether every element is finite."""
    unscaled = [xp.asarray(_wide(g) / _wide(g).dtype.type(scale)) for g in grads]
    finite = [xp.isfinite(g).all() for g in unscaled]
    return unscaled, _number(xp.stack(finite).all()) if finite else True


@kernel(exact=True)
def round_stochastically(x, seed, step, place):
    """float32 as one of the two nearest bfloat16 numbers: the farther one with the probability of the nearer one's distance."""
    # bfloat16 is the upper half of float32: a random lower half added to it carries as often as the lower half is large.
    chance = np.random.Generator(np.random.Philox(key=[seed, 0], counter=[0, 0, place, step]))
    bits = np.asarray(x, order="C").view(np.uint32)
    added = bits + chance.integers(0, 1 << 16, x.shape, np.uint16)
    raised = (added >> 16).astype(np.uint16).view(bfloat16)
    return np.where(np.isfinite(x), raised, x.astype(bfloat16))
