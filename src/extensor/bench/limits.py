"""What the machine itself can do, measured in the same run: copying memory, and multiplying."""

from __future__ import annotations

import os
import platform
from typing import NamedTuple

import numpy as np

import extensor as et

from .timing import best_times

__all__ = ["Limits", "machine", "measure_limits"]


class Limits(NamedTuple):
    """Bytes moved per second by a copy in NumPy, and floating-point operations per second of the best matrix product."""

    copy_bandwidth: float
    peak_flops: float


def measure_limits() -> Limits:
    """Copy 32 MB into a buffer that exists, and multiply 1024 x 1024 matrices."""
    source = np.ones(8 << 20, np.float32)
    target = np.empty_like(source)
    a = np.ones((1024, 1024), np.float32)
    ta = et.asarray(a)
    times = best_times(
        {
            "copy": lambda: np.copyto(target, source),
            "numpy": lambda: a @ a,
            "extensor": lambda: et.matmul(ta, ta),
        },
        rounds=15,
    )
    return Limits(2 * source.nbytes / times["copy"], 2 * 1024**3 / min(times["numpy"], times["extensor"]))


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
