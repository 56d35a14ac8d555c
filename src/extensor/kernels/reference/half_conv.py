r"""Convolution of bfloat16 bit by bit, as the native kernels compute it with the processor's dot product of pairs.

.. math:: y_{noij} = \mathrm{round}\big(b_o + \sum_{p, q, c} x_{n, c, i s + p d - a, j s + q d - a}\, w_{o, c, p, q}\big)

One chain of :func:`.half_products.half_product` in float32: by rows of the kernel, then its columns, then the inputs, of which
neighbours (2c, 2c + 1) are a pair; an odd last input has 0 beside it, and so has what lies outside of the image. The gradient of x is
the same sum over the outputs, by rows of the kernel, then its columns from the last to the first. A kernel of one element that sees
every pixel once is a matrix product over the inputs.
"""

from __future__ import annotations

import numpy as np

from .conv import patches
from .half_products import half_product

__all__ = ["half_conv2d"]


def half_conv2d(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
) -> np.ndarray:
    """The convolution of images (N, C, H, W) with a weight (O, C, kh, kw), in bfloat16."""
    n, c, height, width = x.shape
    outputs, _, *size = weight.shape
    out = tuple(
        (length + before + behind - d * (k - 1) - 1) // s + 1
        for length, before, behind, d, k, s in zip(
            (height, width), padding[::2], padding[1::2], dilation, size, stride, strict=True
        )
    )
    if c % 2 == 1:
        x, weight = (np.concatenate([a, np.zeros_like(a[:, :1])], 1) for a in (x, weight))
    seen = patches(x, out, size, stride, padding, dilation, 1).reshape(n, x.shape[1], size[0] * size[1], -1)
    steps = size[0] * size[1] * x.shape[1]
    left = seen.transpose(0, 3, 2, 1).reshape(-1, steps)
    right = weight.reshape(outputs, x.shape[1], -1).transpose(2, 1, 0).reshape(steps, outputs)
    sums = half_product(left, right, flush=True, depth=max(8, steps))
    if bias is not None:
        sums = sums + bias.astype(np.float32)
    return sums.astype(x.dtype).reshape(n, *out, outputs).transpose(0, 3, 1, 2)
