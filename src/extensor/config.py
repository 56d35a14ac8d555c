"""What runs: version, kernels, instruction set, threads and memory."""

from __future__ import annotations

import functools
import operator
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from .errors import describe
from .kernels import KERNELS
from .version import __version__

try:
    from . import _native
except ImportError:
    _native = None  # type: ignore[assignment]

__all__ = [
    "build_info",
    "get_num_threads",
    "has_bf16_unit",
    "memory",
    "release_memory",
    "set_num_threads",
    "show_config",
]

MAX_THREADS = 256


def _usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system has affinities
        return os.cpu_count() or 1


def _initial_threads() -> int:
    """EXTENSOR_NUM_THREADS, or what the machine has; what the native module does on its own."""
    text = os.environ.get("EXTENSOR_NUM_THREADS", "")
    wanted = int(text) if text.isdecimal() else 0
    return min(wanted or _usable_cpus(), MAX_THREADS)


_reference_threads = _initial_threads()


def get_num_threads() -> int:
    """How many threads a kernel may use, the calling one included.

    Starts as the environment's ``EXTENSOR_NUM_THREADS`` or, without it, as the number of processors this
    process may use. Results do not depend on it, to the last bit.

    Example:
        >>> import extensor as et
        >>> et.get_num_threads() >= 1
        True
    """
    return _reference_threads if _native is None else _native.get_num_threads()


def set_num_threads(n: int) -> None:
    """Let kernels use at most ``n`` threads, the calling one included.

    Where only the NumPy kernels are installed the number is kept and changes nothing.

    Args:
        n: from 1 to 256.

    Example:
        >>> import extensor as et
        >>> before = et.get_num_threads()
        >>> et.set_num_threads(1)
        >>> et.get_num_threads()
        1
        >>> et.set_num_threads(before)
    """
    global _reference_threads
    count = _as_count(n)
    if _native is None:
        _reference_threads = count
    else:
        _native.set_num_threads(count)


def _as_count(n: Any) -> int:
    try:
        if isinstance(n, (bool, np.bool_)):
            raise TypeError
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"[set_num_threads] n must be an int, got {describe(n)}") from None
    if not 1 <= count <= MAX_THREADS:
        raise ValueError(f"[set_num_threads] n must be from 1 to {MAX_THREADS}, got {count}")
    return count


class MemoryUse(NamedTuple):
    """Bytes that the native core holds: its results from 64 KiB on and the workspaces of its kernels."""

    used: int
    peak: int
    cached: int
    cache_limit: int
    reserved: int


def memory() -> MemoryUse:
    """How much memory the native core holds, in bytes.

    Freed buffers are kept for the next result of their size, since fresh memory is slow. One that nobody needed for ten
    seconds goes back to the system; so do the oldest when memory runs short, on the machine, in the control group or under
    a limit of the process. Small results and what NumPy allocates are not counted; without the native core all is 0.

    Returns:
        A tuple of ``used`` (in tensors and workspaces), ``peak`` (the most so far), ``cached`` (kept for reuse),
        ``cache_limit`` (at most kept: an eighth of the memory, 2 GiB or less) and ``reserved`` (addresses held).

    Example:
        >>> import extensor as et
        >>> before = et.memory().used
        >>> x = et.ones(1_000_000) + 1
        >>> 4_000_000 <= et.memory().used - before <= 4_500_000 or et.memory().reserved == 0
        True
    """
    return MemoryUse(*(_native.buffer_figures() if _native is not None else (0,) * 5))


def release_memory() -> int:
    """Give the memory that is kept for reuse back to the system, and return how many bytes that was.

    There is no need to: memory that others need goes back by itself. It helps before a pause of the process, between two
    measurements, and before another program is started that wants all there is.

    Example:
        >>> import extensor as et
        >>> x = et.ones(1_000_000) + 1
        >>> del x
        >>> et.release_memory() >= 0, et.memory().cached
        (True, 0)
    """
    return _native.release_buffers() if _native is not None else 0


@functools.cache
def build_info() -> dict[str, str]:
    """What decides the last bits of results: version, arithmetic, the sources of the native core, NumPy.

    Instruction sets that fuse multiply-adds (AVX2, AVX-512, NEON) give the same bits, the baseline gives others. So does a
    unit for bfloat16, in products of bfloat16 alone: it takes subnormal numbers for 0.

    Example:
        >>> from extensor.config import build_info
        >>> sorted(build_info())
        ['arithmetic', 'bfloat16 products', 'core', 'numpy', 'version']
    """
    found = {"version": __version__, "numpy": np.__version__}
    if _native is None:
        return found | {"arithmetic": "NumPy's", "bfloat16 products": "NumPy's", "core": "none"}
    return found | {
        "arithmetic": "baseline" if _native.isa() == "baseline" else "fused multiply-adds",
        "bfloat16 products": "by a unit" if _native.has_bf16_unit() else "widened",
        "core": _native.source_digest(),
    }


def has_bf16_unit() -> bool:
    """Whether products of bfloat16 use the processor's dot product of pairs (AVX512-BF16).

    ``EXTENSOR_BF16_UNIT=0`` in the environment leaves it alone: elements are then widened to float32 first.

    Example:
        >>> from extensor.config import has_bf16_unit
        >>> has_bf16_unit() in (True, False)
        True
    """
    return _native is not None and _native.has_bf16_unit()


def _instruction_set() -> str:
    assert _native is not None
    return _native.isa() + (" with bfloat16 dot products" if has_bf16_unit() else "")


def show_config() -> None:
    """Print the version, which kernels are native, the instruction set they use, and the threads.

    Example:
        >>> import extensor as et
        >>> et.show_config()
        ExTensor ...
          kernels ...
          instruction set ...
          threads ...
    """
    native = sum(kernel.native is not None for kernel in KERNELS.complete().values())
    reference = len(KERNELS) - native
    if _native is None:
        kernels = f"{reference} reference (NumPy); the native core is not installed"
        instructions = "NumPy's"
        threads = f"{get_num_threads()}, unused by NumPy kernels"
    else:
        kernels = f"{native} native, {reference} reference (NumPy)"
        instructions = _instruction_set()
        threads = str(get_num_threads())
    print(f"ExTensor {__version__} (Python {sys.version.split()[0]}, NumPy {np.__version__})")
    print(f"  kernels          {kernels}")
    print(f"  instruction set  {instructions}")
    print(f"  threads          {threads}")
