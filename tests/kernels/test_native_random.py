"""The native stream of random numbers is that of NumPy's default generator, number for number."""

from __future__ import annotations

import numpy as np
import pytest

import extensor as et
from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("pcg64_at_least" not in NATIVE, reason="the native module is not built")


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 1000, 4097, 300_000])
@pytest.mark.parametrize("p", [0.0, 1e-300, 0.1, 0.5, 1 - 2.0**-53, 1.0])
def test_stream(count: int, p: float) -> None:
    words = np.random.default_rng(count).integers(0, 2**64, 4, np.uint64)
    words[2] |= np.uint64(1)  # increments are odd
    found = NATIVE["pcg64_at_least"](words, (count,), p)
    np.testing.assert_array_equal(found, KERNELS["pcg64_at_least"].reference(words, (count,), p), strict=True)


def test_threads() -> None:
    words, before = np.array([1, 2, 3, 4], np.uint64), get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append(NATIVE["pcg64_at_least"](words, (70, 5000), 0.3))
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("shape", [(5,), (1023,), (1024,), (40, 70), (3, 1, 900)])
@pytest.mark.parametrize("begun", [False, True])
def test_dropout_draws_as_numpy(shape: tuple[int, ...], begun: bool) -> None:
    """The masks are those of ``rng.random``, and the generator is afterwards where that leaves it."""
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    if begun:  # half of a number is left over
        ours.integers(0, 10, dtype=np.uint32), theirs.integers(0, 10, dtype=np.uint32)
    for p in (0.25, 0.5):
        mask = et.dropout(et.ones(shape), p, ours).mask
        np.testing.assert_array_equal(mask.numpy(), theirs.random(shape) >= p)
    assert ours.bit_generator.state == theirs.bit_generator.state
    assert ours.integers(0, 10, dtype=np.uint32) == theirs.integers(0, 10, dtype=np.uint32)


def test_dropout_of_other_generators() -> None:
    for kind in (np.random.PCG64DXSM, np.random.Philox, np.random.MT19937):
        mask = et.dropout(et.ones(3000), 0.5, np.random.Generator(kind(1))).mask
        np.testing.assert_array_equal(mask.numpy(), np.random.Generator(kind(1)).random(3000) >= 0.5)
