"""The thread pool: many callers at once, forks, changes of the thread count and of the cores, threads that cannot start."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

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
    os.sched_setaffinity(0, {here, there})  # may leave, but need not
    NATIVE["exp"](x)  # caller and worker on one core
    NATIVE["exp"](x)
    left = left or any(os.sched_getaffinity(worker) == {there} for worker in workers)
print(left, os.sched_getaffinity(0) == {here, there})
"""
    assert _python(code, EXTENSOR_NUM_THREADS="2") == "True True"


WORKERS = """
import os, time
import numpy as np
from extensor import _native
from extensor.kernels import NATIVE

def tasks():
    return set(map(int, os.listdir("/proc/self/task")))

x = np.linspace(0, 1, 1_000_000, dtype=np.float32)
_native.set_num_threads(1)
want, before = NATIVE["exp"](x), tasks()
_native.set_num_threads({threads})

def run():
    assert np.array_equal(NATIVE["exp"](x), want)
    return tasks() - before  # ours, and with a sanitizer its own
"""


@pytest.mark.plain_build
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)
def test_workers_follow_the_affinity_of_the_process() -> None:
    code = """
here, there = sorted(os.sched_getaffinity(0))[:2]
first = run()
for cores in ({here}, {there}, {here, there}):
    os.sched_setaffinity(0, cores)
    time.sleep(0.01)
    workers = run()
    print(len(workers) > 0 and all(os.sched_getaffinity(worker) <= cores for worker in workers))
"""
    assert _python(WORKERS.replace("{threads}", "2") + code).split() == ["True"] * 3


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)
def test_the_number_of_threads_follows_the_affinity_unless_it_was_set() -> None:
    code = """
import os, time
from extensor import _native
here, there = sorted(os.sched_getaffinity(0))[:2]
for cores in ({here}, {here, there}, {there}):
    os.sched_setaffinity(0, cores)
    time.sleep(0.01)
    print(_native.get_num_threads())
_native.set_num_threads(5)
print(_native.get_num_threads())
"""
    assert _python(code, EXTENSOR_NUM_THREADS="").split() == ["1", "2", "1", "5"]
    assert _python(code, EXTENSOR_NUM_THREADS="3").split() == ["3", "3", "3", "5"]


LIMITS = {
    "address space": """
import resource
size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
kind, limit = resource.RLIMIT_AS, size + 2**22  # less than a stack
""",
    "processes": """
import resource
if os.getuid() == 0:
    os.setuid(65534)  # the limit is not for root
kind, limit = resource.RLIMIT_NPROC, 1
""",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux keeps them")
@pytest.mark.parametrize(
    "limit", [pytest.param("address space", marks=pytest.mark.address_space), "processes"]
)
def test_a_thread_that_cannot_start_is_done_without(limit: str) -> None:
    code = f"""
run()  # leaves the memory of a result for the next one
{LIMITS[limit]}
most = resource.getrlimit(kind)[1]
resource.setrlimit(kind, (limit, most))
_native.set_num_threads(8)
print(all(len(run()) == 0 for _ in range(100)))
resource.setrlimit(kind, (most, most))
time.sleep(1.1)  # one does not try all the time
print(len(run()))
"""
    assert _python(WORKERS.replace("{threads}", "1") + code).split() == ["True", "7"]


@pytest.mark.plain_build
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals as POSIX has them")
def test_signals_are_left_to_the_threads_of_python() -> None:
    code = """
import signal
workers = run()

def settled():
    masks = [int(line.split()[1], 16) for worker in workers for line in open(f"/proc/self/task/{worker}/status") if line.startswith("SigBlk")]
    return len(masks) == len(workers) and all(mask >> (signal.SIGINT - 1) & 1 and not mask >> (signal.SIGSEGV - 1) & 1 for mask in masks)

end = time.monotonic() + 10  # the C library blocks every signal while a thread starts
while not settled() and time.monotonic() < end:
    time.sleep(0.01)
print(len(workers), settled())
print(signal.pthread_sigmask(signal.SIG_BLOCK, []) == set())
"""
    assert _python(WORKERS.replace("{threads}", "2") + code).split() == ["1", "True", "True"]


def test_the_environment_can_ask_for_an_instruction_set_that_was_built() -> None:
    code = """
try:
    from extensor import _native
    print(_native.isa())
except RuntimeError as error:
    print(error)
"""
    best = _python(code, EXTENSOR_ISA="")
    assert _python(code, EXTENSOR_ISA="nonsense") == best
    for name in ("baseline", "avx2", "avx512"):
        said = _python(code, EXTENSOR_ISA=name)
        refused = f"[extensor] EXTENSOR_ISA={name}: the native core was built for "
        assert said in {name, best} or (said.startswith(refused) and "EXTENSOR_ISAS=all" in said)
        assert name != best or said == best
