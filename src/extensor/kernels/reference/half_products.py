r"""Products of float16 and bfloat16 bit by bit, as the native kernels compute them.

Products of two elements are exact in float32; their sum is a chain of fused multiply-adds in float32. k is cut into equal
blocks (:func:`block_depth`); a block starts at 0 and takes its steps in pairs, of each pair the second step first:

.. math:: s \leftarrow \mathrm{fma}(a_{2p+1}, b_{2p+1}, s), \quad s \leftarrow \mathrm{fma}(a_{2p}, b_{2p}, s)

A last step without a partner has 0 beside it. Blocks are added in order, in float32, then the biases, and the result is
rounded once, half to even. The dot product of bfloat16 pairs of AVX512-BF16 (``vdpbf16ps``) does the same with one difference:
subnormal operands, and sums that become subnormal, are 0 (``flush=True``). So bits differ between processors with and without
it only where subnormal float32 numbers occur.

One row times a matrix that lies dense along k, or one column with such a matrix before it, is made of scalar products in another order
(:func:`half_dot`).

The kernels of this package's reference sum up in float64 and are no slower for it; this is the text that tests hold the native
ones to.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["block_depth", "half_dot", "half_product"]

DEEPEST = 1024
CHAINS, SHORTEST_DOT = 64, 64
SMALLEST_NORMAL = np.float32(2.0**-126)


def block_depth(k: int) -> int:
    """How many steps a block of k has: k alone decides."""
    blocks = max(1, math.ceil(k / DEEPEST))
    return max(8, math.ceil(math.ceil(k / blocks) / 8) * 8)


def half_product(a: np.ndarray, b: np.ndarray, flush: bool, depth: int | None = None) -> np.ndarray:
    """``a @ b`` of two matrices of half precision, in float32 before it is rounded.

    Args:
        a: float16 or bfloat16, (m, k).
        b: of the same dtype, (k, n).
        flush: Take subnormal numbers for 0, as the bfloat16 unit does.
        depth: How many steps a block has; that of a matrix product if it is not given.
    """
    (m, k), n = a.shape, b.shape[1]
    a, b = a.astype(np.float32), b.astype(np.float32)
    if k % 2 == 1:
        a, b = np.hstack([a, np.zeros((m, 1), np.float32)]), np.vstack([b, np.zeros((1, n), np.float32)])
    if flush:
        a, b = flushed(a), flushed(b)
    total = np.zeros((m, n), np.float32)
    depth = block_depth(k) if depth is None else depth
    with np.errstate(all="ignore"):
        for start in range(0, k, depth):
            block = np.zeros((m, n), np.float32)
            for p in range(start, min(k, start + depth), 2):
                for step in (p + 1, p):
                    block = fused_multiply_add(a[:, step, None], b[None, step, :], block)
                    block = flushed(block) if flush else block
            total = block if start == 0 else block + total
    return total


def half_dot(a: np.ndarray, b: np.ndarray, flush: bool) -> np.ndarray:
    """The scalar products of ``a`` (k,) with the rows of ``b`` (n, k), k at least ``SHORTEST_DOT``, in float32.

    Pair p goes to chain p mod 64. Chains i, i + 16, i + 32 and i + 48 are added ((0 + 1) + (2 + 3)), the 16 sums in halves.
    """
    n, k = b.shape
    padded = math.ceil(k / (2 * CHAINS)) * 2 * CHAINS
    left, right = np.zeros((1, padded), np.float32), np.zeros((n, padded), np.float32)
    left[0, :k], right[:, :k] = a, b
    if flush:
        left, right = flushed(left), flushed(right)
    left, right = left.reshape(1, -1, CHAINS, 2), right.reshape(n, -1, CHAINS, 2)
    sums = np.zeros((n, CHAINS), np.float32)
    with np.errstate(all="ignore"):
        for turn in range(left.shape[1]):
            for step in (1, 0):
                sums = fused_multiply_add(left[:, turn, :, step], right[:, turn, :, step], sums)
                sums = flushed(sums) if flush else sums
        quarters = sums.reshape(n, 4, CHAINS // 4)
        total = (quarters[:, 0] + quarters[:, 1]) + (quarters[:, 2] + quarters[:, 3])
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            total = total[:, :half] + total[:, half:]
    return total[:, 0]


def flushed(x: np.ndarray) -> np.ndarray:
    """Subnormal numbers as zeros of their sign."""
    return np.where(np.abs(x) < SMALLEST_NORMAL, np.copysign(np.float32(0), x), x)


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``a * b + c`` rounded once to float32, for a and b of half precision."""
    product = a.astype(np.float64) * b.astype(np.float64)  # exact
    wide = c.astype(np.float64)
    total = product + wide
    # What the sum in float64 lost, and rounding to odd: then rounding once more cannot see a tie that was none.
    kept = total - product
    lost = (product - (total - kept)) + (wide - kept)
    even = total.view(np.int64) & 1 == 0
    odd = np.nextafter(total, np.copysign(np.inf, lost))
    return np.where(np.isfinite(total) & (lost != 0) & even, odd, total).astype(np.float32)
