"""Where memory, address space or numbers run out: an error in Python, never the end of the process."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.kernels import NATIVE

pytestmark = pytest.mark.skipif("take_backward" not in NATIVE, reason="the native module is not built")
FIRST = et.tensor(np.array([0]))
HUGE = 2**62 - 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: et.take_backward(et.ones(1), (HUGE,), FIRST, 0),
        lambda: et.sum_backward(et.tensor(1.0), (HUGE,)),
        lambda: et.embedding_backward(et.ones((1, 1)), FIRST, (HUGE, 1)),
        lambda: et.conv2d(et.ones((1, 1, 3, 3)), et.ones((1, 1, 3, 3)), None, 1, 2**31 - 1),
    ],
)
def test_sizes_beyond_any_memory(call: Callable[[], Any]) -> None:
    with pytest.raises((MemoryError, ValueError)):
        call()


LITTLE_MEMORY = """
import resource, numpy as np, extensor as et
et.set_num_threads({threads})
first = et.tensor(np.array([0]))
et.take_backward(et.ones(1), (10,), first, 0)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + {room} * 2**20, -1))
try:
    {call}
except MemoryError:
    print("MemoryError")
print((et.ones((160, 160)) * 2.0).sum().item())
"""


@pytest.mark.address_space
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_that_a_kernel_needs_for_itself(threads: int) -> None:
    calls = [
        (700, "et.take_backward(et.ones(1), (2**27,), first, 0)"),
        (150, "et.take_backward(et.ones((8, 1)), (8, 2**22), first, 1)"),
    ]
    for room, call in calls:
        program = LITTLE_MEMORY.format(threads=threads, room=room, call=call)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split()) == (0, ["MemoryError", "51200.0"]), done.stderr


@pytest.mark.address_space
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_a_small_tensor_needs_little_address_space() -> None:
    program = LITTLE_MEMORY.format(threads=1, room=24, call="pass")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["51200.0"]), done.stderr


@pytest.mark.parametrize(
    "call", [lambda x, p: et.linear(x, p), lambda x, p: p * 1.0], ids=["linear", "multiply"]
)
def test_a_parameter_may_change_while_another_thread_computes_with_it(call: Callable[..., Any]) -> None:
    parameter, x = et.nn.Parameter(et.ones((600, 600))), et.ones((64, 600))
    with et.no_grad():
        expected = call(x, parameter).numpy().max()
    wrong: list[float] = []
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            with et.no_grad():
                found = call(x, parameter).numpy()
            if found.max() != expected or found.min() != expected:
                wrong.append(float(found.max()))

    thread = threading.Thread(target=compute)
    thread.start()
    for _ in range(400):
        parameter.assign(et.ones((600, 600)) + 0.0)
        et.ones((600, 600)) * 7.0
    done.set()
    thread.join()
    assert not wrong


def test_needs_that_are_no_booleans() -> None:
    odd = (np.array([1, 2]), True)
    x = et.ones((2, 2))
    for backward in (et.multiply_backward, et.matmul_backward, et.add_backward):
        with pytest.raises(TypeError, match="needs must be a tuple of 2 booleans"):
            backward(x, x, x, needs=odd)


def test_padding_that_overflows() -> None:
    for pool in (et.avg_pool2d, et.max_pool2d):
        with pytest.raises(ValueError, match="padding"):
            pool(et.ones((1, 2, 4, 5)), 2, None, 2**63 - 1)


def test_positions_on_an_empty_axis() -> None:
    zeros = et.tensor(np.zeros((2, 3), np.int64))
    with pytest.raises(IndexError):
        et.take_along_axis_backward(et.ones((2, 3)), (0, 3), zeros, 0)
