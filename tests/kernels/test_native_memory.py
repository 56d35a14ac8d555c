"""The buffer pool: reuse, release, what it keeps for how long, and where memory is short."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import extensor as et
from extensor.kernels import NATIVE

_native = pytest.importorskip("extensor._native")

X = np.random.default_rng(0).normal(size=1_000_003).astype(np.float32)


@pytest.fixture(autouse=True)
def _same_settings_afterwards() -> Iterator[None]:
    limit = _native.get_buffer_limit()
    yield
    _native.set_buffer_limit(limit)
    _native.set_buffer_wait(10_000)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident set as Linux shows it")
def test_memory_of_freed_buffers_goes_back_to_the_system_and_comes_again() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    x = np.arange(80_000, dtype=np.float32)  # a size that shares its pages with others
    kept = NATIVE["negate"](x)
    for _ in range(2):
        made = [NATIVE["negate"](x) for _ in range(200)]
        assert all(np.array_equal(m, kept) for m in made)
        before = resident()
        del made
        _native.release_buffers()
        assert before - resident() > 100 * x.nbytes
    np.testing.assert_array_equal(kept, -x)


def test_freed_buffers_are_reused_up_to_the_limit() -> None:
    limit = _native.get_buffer_limit()
    try:
        _native.release_buffers()
        assert _native.get_buffer_bytes() == 0
        first = NATIVE["negate"](X)
        address = first.ctypes.data
        assert address % 64 == 0
        del first
        held = _native.get_buffer_bytes()
        assert held >= X.nbytes
        second = NATIVE["negate"](X)
        assert second.ctypes.data == address
        assert _native.get_buffer_bytes() == 0
        del second
        _native.set_buffer_limit(0)
        assert _native.get_buffer_bytes() == 0
        third = NATIVE["negate"](X)
        del third
        assert _native.get_buffer_bytes() == 0
    finally:
        _native.set_buffer_limit(limit)
        _native.release_buffers()
    assert _native.get_buffer_limit() == limit


def test_a_view_keeps_its_buffer_alive() -> None:
    _native.release_buffers()
    result = NATIVE["negate"](X)
    view = result[10:20]
    del result
    others = [NATIVE["exp"](X) for _ in range(3)]
    np.testing.assert_array_equal(view, -X[10:20])
    assert len(others) == 3


def test_results_are_never_shared() -> None:
    sizes = (100, 20_000, 70_000, 1_000_003)
    results = [NATIVE["negate"](X[:n]) for n in sizes for _ in range(3)]
    for i, a in enumerate(results):
        for b in results[i + 1 :]:
            assert not np.shares_memory(a, b)


def _hold(count: int, elements: int) -> list[np.ndarray]:
    return [NATIVE["negate"](X[:elements]) for _ in range(count)]


def test_buffers_that_nobody_needs_any_more_go_back() -> None:
    et.release_memory()
    _native.set_buffer_wait(600_000)  # milliseconds: none of what follows takes so long
    _hold(20, 100_000)
    _hold(2, 1_000_000)
    assert et.memory().cached >= 20 * 400_000 + 2 * 4_000_000
    _native.set_buffer_wait(200)
    for _ in range(30):  # another phase of the program
        _hold(3, 50_000)
        time.sleep(0.02)
    assert 3 * 200_000 <= et.memory().cached <= 3 * 225_000


def test_of_one_size_those_in_use_stay() -> None:
    et.release_memory()
    _native.set_buffer_wait(200)
    _hold(20, 100_000)
    for _ in range(30):
        _hold(2, 100_000)
        time.sleep(0.02)
    assert 2 * 400_000 <= et.memory().cached <= 2 * 450_000


def test_figures() -> None:
    et.release_memory()
    before = et.memory()
    assert before.cached == 0
    held = _hold(3, 1_000_000)
    used = et.memory()
    assert 12_000_000 <= used.used - before.used <= 13_500_000
    assert used.peak >= used.used >= 12_000_000
    assert used.reserved >= used.used
    del held
    freed = et.memory()
    assert freed.used == before.used
    assert freed.peak >= used.used
    assert freed.cached == used.used - before.used
    assert et.release_memory() == freed.cached
    assert et.memory().cached == 0
    assert et.memory().reserved < used.reserved
    assert et.release_memory() == 0


def _python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    ).stdout.strip()


@pytest.mark.address_space
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux keeps them")
def test_the_cache_is_small_beside_a_limit_of_the_process() -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))
import extensor as et
print(et.memory().cache_limit)
"""
    assert int(_python(code)) == 2**30 // 8


CHANGING_SIZES = """
import random, resource
import numpy as np
from extensor import _native
from extensor.kernels import NATIVE
_native.set_num_threads(1)
x = np.ones(2**20, np.float32)
size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + 2**30, size + 2**30))
draw = random.Random(0)
kept = []
for phase in range(30):
    elements = draw.randrange(2**14, 2**20)
    made = [NATIVE["negate"](x[:elements]) for _ in range(300 * 2**20 // (4 * elements))]
    kept.append(made[draw.randrange(len(made))])
    del made
print(sum(array.nbytes for array in kept) < 2**27, all((array == -1).all() for array in kept))
"""


@pytest.mark.address_space
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux keeps them")
def test_phases_of_many_sizes_fit_where_each_of_them_does() -> None:
    assert _python(CHANGING_SIZES) == "True True"
