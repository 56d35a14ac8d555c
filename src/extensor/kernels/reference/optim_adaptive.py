"""More update rules of optimisers, in the manner of :mod:`.optim`: NAdam, RAdam, Adadelta, Adafactor, Muon."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import namespace_of, wide_dtype, xp
from .optim import _gradient, _number, _same, _wide, root

__all__ = ["adadelta_step", "adafactor_step", "muon_step", "nadam_step", "radam_step"]


def _averages(p, g, avg, square, beta1, beta2):
    """The moving averages of the gradient and of its square."""
    return beta1 * avg + (1 - beta1) * g, beta2 * square + (1 - beta2) * (g * g)


def _decayed(p, grad, lr, weight_decay, decoupled, maximize):
    """The parameter, smaller by itself (decoupled), and the gradient, else with that of the penalty."""
    g = _gradient(p, grad, 0.0 if decoupled else weight_decay, maximize)
    return (p * (1 - lr * weight_decay) if decoupled and weight_decay else p), g


@kernel(exact=True)
def nadam_step(
    params, grads, exp_avgs, exp_avg_sqs, mu_products, steps, lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled,
    maximize,
):  # fmt: skip
    # mu_products: the product of all momenta up to the last step, a number per parameter.
    new_params, new_avgs, new_sqs, new_products = [], [], [], []
    for param, grad, avg, square, product, step in zip(
        params, grads, exp_avgs, exp_avg_sqs, mu_products, steps
    ):
        p, g = _decayed(_wide(param), grad, lr, weight_decay, decoupled, maximize)
        momentum = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
        after = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
        product = product * momentum
        avg, square = _averages(p, g, avg, square, beta1, beta2)
        spread = xp.sqrt(square / (1 - beta2**step)) + eps
        ahead = (1 - momentum) / (1 - product) * g + after / (1 - product * after) * avg
        new_params.append(_same(p - lr * ahead / spread, param))
        new_avgs.append(xp.asarray(avg))
        new_sqs.append(xp.asarray(square))
        new_products.append(product)
    return new_params, new_avgs, new_sqs, new_products


@kernel(exact=True)
def radam_step(
    params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize
):
    new_params, new_avgs, new_sqs = [], [], []
    longest = 2 / (1 - beta2) - 1  # the length of the average of squares, once it is full
    for param, grad, avg, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, steps):
        p, g = _decayed(_wide(param), grad, lr, weight_decay, decoupled, maximize)
        avg, square = _averages(p, g, avg, square, beta1, beta2)
        correction = 1 - beta2**step
        length = longest - 2 * step * beta2**step / correction
        move = avg / (1 - beta1**step)
        enough = length > 5  # squares for their mean to mean something
        if not isinstance(enough, bool) or enough:
            share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            rectified = move * (root(share * correction) / (xp.sqrt(square) + eps))
            move = rectified if isinstance(enough, bool) else xp.where(enough, rectified, move)
        new_params.append(_same(p - lr * move, param))
        new_avgs.append(xp.asarray(avg))
        new_sqs.append(xp.asarray(square))
    return new_params, new_avgs, new_sqs


@kernel(exact=True)
def adadelta_step(params, grads, square_avgs, acc_deltas, lr, rho, eps, weight_decay, maximize):
    new_params, new_squares, new_deltas = [], [], []
    for param, grad, square, moved in zip(params, grads, square_avgs, acc_deltas):
        p = _wide(param)
        g = _gradient(p, grad, weight_decay, maximize)
        square = rho * square + (1 - rho) * (g * g)
        move = xp.sqrt(moved + eps) / xp.sqrt(square + eps) * g
        new_params.append(_same(p - lr * move, param))
        new_squares.append(xp.asarray(square))
        new_deltas.append(xp.asarray(rho * moved + (1 - rho) * (move * move)))
    return new_params, new_squares, new_deltas


def _mean(x, axis):
    """The mean along an axis, which stays; 0 of nothing."""
    return (x.sum(axis, keepdims=True, dtype=wide_dtype(x)) / max(x.shape[axis], 1)).astype(x.dtype)


def _root_mean_square(x):
    return root(_number(xp.square(x.astype(wide_dtype(x))).sum()) / max(x.size, 1))


def _larger(a, b):
    """The larger of two numbers, which may be traced."""
    return max(a, b) if isinstance(a, float) and isinstance(b, float) else namespace_of(a, b).maximum(a, b)


@kernel(exact=True)
def adafactor_step(
    params, grads, rows, columns, variances, steps, lr, beta2_decay, eps1, eps2, d, weight_decay, maximize
):
    # A matrix has averages of squares per row and per column, (..., R, 1) and (..., 1, C); a vector has variances. The
    # others are None. eps1: None is the distance from 1 to the next number of the dtype.
    new_params, new_rows, new_columns, new_variances = [], [], [], []
    for param, grad, row, column, variance, step in zip(params, grads, rows, columns, variances, steps):
        p = _wide(param)
        g = _gradient(p, grad, 0.0, maximize)
        share = (1.0 * step) ** beta2_decay
        tiny = np.finfo(p.dtype).eps.item() if eps1 is None else eps1
        length = _larger(eps2, _root_mean_square(p)) * -_larger(-lr, -1 / root(1.0 * step))
        p = p * (1 - lr * weight_decay) if weight_decay else p
        if variance is None:
            row = row + share * (_mean(g * g, -1) - row)
            column = column + share * (_mean(g * g, -2) - column)
            spread = row * column / xp.maximum(_mean(row, -2), tiny)
        else:
            variance = xp.asarray(variance + share * (g * g - variance))
            spread = variance
        move = g / xp.sqrt(xp.maximum(spread, tiny * tiny))
        move = move * (length / _larger(1.0, _root_mean_square(move) / d))
        new_params.append(_same(p - move, param))
        new_rows.append(row)
        new_columns.append(column)
        new_variances.append(variance)
    return new_params, new_rows, new_columns, new_variances


def _orthogonal(x, coefficients, steps, eps):
    """Near the orthogonal matrix closest to x: an odd polynomial drives all singular values towards 1."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    y = x.T if tall else x
    y = y / _larger(root(_number(xp.square(y.astype(wide_dtype(y))).sum())), eps)
    for _ in range(steps):
        gram = y @ y.T
        y = a * y + (b * gram + c * (gram @ gram)) @ y
    return y.T if tall else y


@kernel(exact=True)
def muon_step(
    params,
    grads,
    buffers,
    lr,
    momentum,
    weight_decay,
    nesterov,
    coefficients,
    eps,
    steps,
    match_adamw,
    maximize,
):
    new_params, new_buffers = [], []
    for param, grad, buffer in zip(params, grads, buffers):
        p = _wide(param)
        g = _gradient(p, grad, 0.0, maximize)
        buffer = momentum * buffer + (1 - momentum) * g
        direction = (1 - momentum) * g + momentum * buffer if nesterov else buffer
        rows, columns = p.shape
        scale = 0.2 * max(rows, columns) ** 0.5 if match_adamw else max(1.0, rows / columns) ** 0.5
        move = lr * scale * _orthogonal(direction, coefficients, steps, eps)
        new_params.append(_same(p * (1 - lr * weight_decay) - move, param))
        new_buffers.append(xp.asarray(buffer))
    return new_params, new_buffers
