"""Every allocation of every kernel fails once: a MemoryError, and nothing is lost."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernel_calls import LAYOUTS, arguments

import extensor as et
from extensor.kernels import NATIVE

native = pytest.importorskip("extensor._native", reason="the native core is not installed")

NAMES = sorted(NATIVE)
WITHOUT_MEMORY = {
    "first_outside", "first_unlike", "flip", "permute", "reshape", "sum_backward", "swapaxes", "transpose",
}  # fmt: skip
ROUNDS = 10
# On the malloc of the address sanitizer Python's count grows with every str(dtype) that is made and freed.
COUNTED = os.environ.get("PYTHONMALLOC") != "malloc"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The same allocations in every call, and none that fails afterwards."""
    threads = native.get_num_threads()
    native.set_num_threads(1)
    yield
    native.set_num_threads(threads)
    native.fail_allocation_after(-1)


def failing(name: str, args: list[Any], count: int) -> bool | None:
    """Whether the kernel raised MemoryError when its allocation after ``count`` failed; None if it has fewer."""
    native.fail_allocation_after(count)
    try:
        NATIVE[name](*args)
        raised = False
    except MemoryError:
        raised = True
    return raised if native.fail_allocation_after(-1) < 0 else None


def references(args: list[Any]) -> list[int]:
    arrays = [v for a in args for v in (a if isinstance(a, list) else (a,)) if isinstance(v, np.ndarray)]
    return [sys.getrefcount(a) for a in arrays]


def bytes_lost(name: str, args: list[Any], count: int) -> int:
    """How much more Python and NumPy hold after the allocation failed several times."""
    tracemalloc.start()
    failing(name, args, count)  # fills the caches of Python and NumPy
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(ROUNDS):
        failing(name, args, count)
    lost = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return lost


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_out_of_memory(name: str, layout: str) -> None:
    args = arguments(name, layout)
    found = NATIVE[name](*args)
    if layout == "contiguous":
        assert found is not NotImplemented
    del found
    before, used = references(args), native.buffer_figures()[0]
    count = 0
    while (raised := failing(name, args, count)) is not None:
        assert raised, f"allocation {count} failed and was not reported"
        assert references(args) == before
        assert native.buffer_figures()[0] == used, f"a buffer was lost with allocation {count}"
        # another thread may allocate meanwhile, but not each time
        few = not COUNTED or any(bytes_lost(name, args, count) < 64 * ROUNDS for _ in range(20))
        assert few, f"allocation {count} loses an object"
        count += 1
    if layout == "contiguous":
        assert (count == 0) == (name in WITHOUT_MEMORY)


def test_gradient_of_a_convolution_that_is_not_contiguous() -> None:
    args = arguments("conv2d_backward", "gaps")
    with pytest.raises(MemoryError):
        native.fail_allocation_after(0)
        NATIVE["conv2d_backward"](*args)


@pytest.mark.parametrize("x", [et.ones((3, 4)), et.ones((600, 600))], ids=["small", "pooled"])
def test_a_plan_that_finds_no_memory_says_so_as_its_body_does(x: et.ExTensor) -> None:
    texts = []
    for plans in (True, False):
        native.enable_plans(plans)
        try:
            for _ in range(3):
                et.exp(x)
            native.fail_allocation_after(0)
            with pytest.raises(MemoryError) as caught:
                et.exp(x)
            texts.append(str(caught.value))
        finally:
            native.enable_plans(True)
    said = f"[exp] Unable to allocate an array with shape {x.shape} and data type float32"
    assert texts == [said, said]


def test_an_allocation_without_a_text_gets_one() -> None:
    x, weight = et.ones((2, 3, 20, 20)), et.ones((8, 3, 5, 5))
    texts = set()
    for count in itertools.count():
        native.fail_allocation_after(count)
        try:
            et.conv2d(x, weight)
        except MemoryError as error:
            texts.add(str(error))
        else:
            break
    assert "[conv2d] out of memory" in texts
    assert all(text.startswith("[conv2d] ") for text in texts)


def test_each_allocation_of_a_training_step() -> None:
    rng = np.random.default_rng(0)
    model = et.nn.Sequential(
        et.nn.Conv2d(1, 6, 5, padding=2, rng=0), et.nn.ReLU(), et.nn.MaxPool2d(2), et.nn.Conv2d(6, 16, 5, rng=1), et.nn.ReLU(),
        et.nn.AvgPool2d(2), et.nn.Flatten(), et.nn.Linear(400, 120, rng=2), et.nn.LayerNorm(120), et.nn.Linear(120, 10, rng=3),
    )  # fmt: skip
    x = et.tensor(rng.standard_normal((64, 1, 28, 28)).astype(np.float32))
    labels = et.tensor(rng.integers(0, 10, 64))
    optimizer = et.optim.Adam(list(model.parameters()), lr=0.0)

    def step() -> float:
        optimizer.zero_grad()
        loss = et.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(3):
        expected = step()
    for count in itertools.count():
        native.fail_allocation_after(count)
        try:
            step()
        except MemoryError:
            assert native.fail_allocation_after(-1) < 0
        else:
            assert native.fail_allocation_after(-1) >= 0, f"allocation {count} failed and was not reported"
            break
    assert count > 100
    assert step() == expected


def test_a_daemon_thread_inside_a_kernel_at_exit() -> None:
    program = """
import threading, time
import numpy as np
from extensor.kernels import NATIVE
x = np.ones((700, 700), np.float32)
def work():
    while True:
        NATIVE["matmul"](x, x)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
