"""The thread pool and the buffer pool: many callers at once, forks, changes of the thread count, reuse and release."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from extensor.kernels import NATIVE

_native = pytest.importorskip("extensor._native")

X = np.random.default_rng(0).normal(size=1_000_003).astype(np.float32)


@pytest.fixture(autouse=True)
def _thread_count():
    before = _native.get_num_threads()
    yield
    _native.set_num_threads(before)


def test_many_python_threads_at_once() -> None:
    _native.set_num_threads(3)
    want = {name: NATIVE[name](X) for name in ("exp", "negate", "tanh")}
    wrong: list[str] = []

    def call(name: str) -> None:
        wrong.extend(name for _ in range(10) if NATIVE[name](X).tobytes() != want[name].tobytes())

    callers = [threading.Thread(target=call, args=(name,)) for name in want for _ in range(3)]
    for caller in callers:
        caller.start()
    for count in (1, 4, 2, 3):
        _native.set_num_threads(count)
    for caller in callers:
        caller.join()
    assert not wrong


def _compute_in_child(queue) -> None:
    queue.put(float(NATIVE["exp"](X).astype(np.float64).sum()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_threads() -> None:
    _native.set_num_threads(2)
    want = float(NATIVE["exp"](X).astype(np.float64).sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_compute_in_child, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    results = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert results == [want] * 3
    assert float(NATIVE["exp"](X).astype(np.float64).sum()) == want


def _python(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_the_environment_sets_the_number_of_threads() -> None:
    code = "from extensor import _native; print(_native.get_num_threads())"
    assert _python(code, EXTENSOR_NUM_THREADS="3") == "3"
    assert int(_python(code, EXTENSOR_NUM_THREADS="")) >= 1
    assert int(_python(code, EXTENSOR_NUM_THREADS="many")) >= 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_affinity_is_respected() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from extensor import _native; print(_native.get_num_threads())"
    assert _python(code, EXTENSOR_NUM_THREADS="") == "1"


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)
def test_a_worker_leaves_the_core_of_its_caller() -> None:
    code = """
import os
import numpy as np
from extensor import _native
from extensor.kernels import NATIVE

def tasks():
    return set(map(int, os.listdir("/proc/self/task")))

here, there = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, {here, there})
x, before = np.ones(1_000_000, np.float32), tasks()
NATIVE["exp"](x)
workers = tasks() - before  # ours, and with a sanitizer its own
left = False
for _ in range(20):  # the worker may sleep through a call
    for task in (0, *workers):
        os.sched_setaffinity(task, {here})
    NATIVE["exp"](x)  # caller and worker on one core
    NATIVE["exp"](x)
    left = left or any(os.sched_getaffinity(worker) == {there} for worker in workers)
print(left, os.sched_getaffinity(0) == {here})
"""
    assert _python(code, EXTENSOR_NUM_THREADS="2") == "True True"


def test_the_environment_can_ask_for_a_lower_instruction_set() -> None:
    code = "from extensor import _native; print(_native.isa())"
    assert _python(code, EXTENSOR_ISA="baseline") == "baseline"
    assert _python(code, EXTENSOR_ISA="nonsense") == _python(code, EXTENSOR_ISA="")


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
