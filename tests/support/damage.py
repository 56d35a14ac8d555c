"""Files as they come off a bad disk or from a bad person, and the memory that reading them may take."""

from __future__ import annotations

import os
import pickle
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class _Hostile:
    """Unpickled, it would leave a mark in the environment."""

    def __reduce__(self):
        return os.putenv, ("EXTENSOR_UNPICKLED", "1")


def truncated(good: bytes, rng: random.Random) -> bytes:
    return good[: rng.randrange(len(good))]


def flipped(good: bytes, rng: random.Random) -> bytes:
    bad = bytearray(good)
    bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
    return bytes(bad)


def overwritten(good: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(good))
    return good[:start] + rng.randbytes(rng.randrange(1, 64)) + good[start + 16 :]


def lengthened(good: bytes, rng: random.Random) -> bytes:
    return good + rng.randbytes(rng.randrange(1, 5000))


def noise(good: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(len(good)))


def disguised_pickle(good: bytes, rng: random.Random) -> bytes:
    return pickle.dumps([_Hostile()] * rng.randrange(1, 100), protocol=rng.randrange(6))


DAMAGES = [truncated, flipped, overwritten, lengthened, noise, disguised_pickle]


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """What Python and NumPy allocate in this block stays below ``limit`` bytes at every moment."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit, f"{peak / 1e6:.0f} MB were allocated"
