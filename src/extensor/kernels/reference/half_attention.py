r"""Attention of bfloat16 as the native kernels compute it with the processor's dot product of pairs.

The products take bfloat16 operands and add up in float32, in one chain (:mod:`.half_products`); scores, softmax and the sums of
gradients are float32. What comes to be on the way is rounded to bfloat16 where it is an operand: :math:`e` in the forward,
:math:`p` and :math:`\mathrm{d}s` in the backward (with :math:`\hat x` for x rounded):

.. math::
    e_{ij} = \exp(c\, q_i \cdot k_j + m_{ij} - \max_j), \quad
    o_i = \frac{\sum_j \hat e_{ij} v_j}{\sum_j \hat e_{ij}}, \quad
    p_{ij} = \frac{e_{ij}}{\sum_j e_{ij}}, \quad
    \mathrm{d}s_{ij} = c\, p_{ij} \big(g_i \cdot v_j - \sum_j p_{ij}\, g_i \cdot v_j\big)

.. math::
    \mathrm{d}q = \widehat{\mathrm{d}s}\, k, \quad \mathrm{d}k = \widehat{\mathrm{d}s}^T q, \quad \mathrm{d}v = \hat p^T g

One matrix at a time; tests hold the native kernels to it, up to the last digit of the exponential and the order of float32 sums.
"""

from __future__ import annotations

import numpy as np

from ...dtypes import bfloat16
from .half_products import half_product

__all__ = ["half_attention", "half_attention_backward"]


def half_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, added: np.ndarray | None, causal: bool, scale: float
) -> np.ndarray:
    """Attention of one batch element: q (n, d), k (m, d), v (m, w); ``added`` is a mask in float32, -inf where hidden."""
    e = exponentials(q, k, added, causal, scale).astype(bfloat16)
    total = e.astype(np.float32).sum(1, keepdims=True)
    return (product(e, v) / np.where(total == 0, 1, total)).astype(bfloat16)


def half_attention_backward(
    g: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    added: np.ndarray | None,
    causal: bool,
    scale: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of q, k and v."""
    e = exponentials(q, k, added, causal, scale)
    total = e.sum(1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    dp = product(g, v.T)
    ds = (p * (dp - (p * dp).sum(1, keepdims=True)) * np.float32(scale)).astype(bfloat16)
    rounded = p.astype(bfloat16)
    return (
        product(ds, k).astype(bfloat16),
        product(ds.T, q).astype(bfloat16),
        product(rounded.T, g).astype(bfloat16),
    )


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of the unit in one chain."""
    return half_product(a, b, flush=True, depth=max(8, a.shape[1]))


def exponentials(
    q: np.ndarray, k: np.ndarray, added: np.ndarray | None, causal: bool, scale: float
) -> np.ndarray:
    """exp(score - largest score of the row), 0 for what is hidden."""
    scores = product(q, k.T) * np.float32(scale)
    if added is not None:
        scores = scores + added
    if causal:
        scores = np.where(np.tri(*scores.shape, dtype=np.bool_), scores, np.float32(-np.inf))
    largest = scores.max(1, keepdims=True)
    return np.exp(scores - np.where(np.isneginf(largest), np.float32(0), largest))
