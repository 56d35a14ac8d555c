"""What the machine can do on as many threads, measured in the same run: copying memory, and multiplying."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import extensor as et

from .timing import best_times

__all__ = ["Limits", "machine", "measure_limits"]


class Limits(NamedTuple):
    """Bytes moved per second by a copy in NumPy, and float32 operations per second of the fastest of our own products.

    The products run on the threads in use. Those of NumPy do not count: its BLAS has threads of its own.
    """

    copy_bandwidth: float
    peak_flops: float


def measure_limits() -> Limits:
    """Copy 32 MB into a buffer that exists, and multiply square matrices of several sizes."""
    source = np.ones(8 << 20, np.float32)
    target = np.empty_like(source)
    calls: dict[str, Callable[[], object]] = {"copy": lambda: np.copyto(target, source)}
    sizes = (256, 512, 1024)
    for size in sizes:
        matrix = et.ones((size, size))
        calls[str(size)] = partial(et.matmul, matrix, matrix)
    times = best_times(calls, rounds=15)
    return Limits(2 * source.nbytes / times["copy"], max(2 * size**3 / times[str(size)] for size in sizes))


def machine() -> str:
    """The processor and its cores, in one line."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(
                (line.split(":")[1].strip() for line in file if line.startswith("model name")), model
            )
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"
