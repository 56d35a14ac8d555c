"""What ``import extensor`` loads, and that what loads later is found all the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import extensor as et
from extensor import autograd, kernels

LATER = [
    "extensor.ops.conv", "extensor.ops.activation", "extensor.ops.loss_classification", "extensor.kernels.reference.conv",
    "extensor.autograd.transforms", "extensor.autograd.profiler", "extensor.compile.compiled", "extensor.nn", "extensor.optim",
    "extensor.random", "dataclasses", "difflib", "json", "scipy",
]  # fmt: skip


def in_a_fresh_interpreter(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_what_operators_need() -> None:
    code = f"import sys, numpy; before = set(sys.modules); import extensor; print(sorted((set(sys.modules) - before) & {set(LATER)}))"
    assert in_a_fresh_interpreter(code) == "[]\n"


@pytest.mark.parametrize(
    "use",
    [
        "et.conv1d(et.ones((1, 1, 3)), et.ones((1, 1, 2))).tolist()",
        "et.tensor([0.0]).relu().tolist()",
        "et.grad(lambda x: x * x)(et.tensor(2.0)).item()",
        "et.kernels.softmax(et.tensor([0.0]), 0).tolist()",
        "et.kernels.KERNELS['adam_step'].name",
        "et.compile(lambda x: x + 1)(et.tensor(2.0)).item()",
        "et.checkpoint(et.exp)(et.tensor(0.0)).item()",
        "et.hessian(lambda x: et.tanh(x))(et.tensor(0.0)).item()",
        "repr(et.tensor(2.0))",
    ],
)
def test_what_loads_later_is_there_when_it_is_used_first(use: str) -> None:
    assert in_a_fresh_interpreter(f"import extensor as et; print({use})") == f"{eval(use, {'et': et})}\n"


def test_a_name_that_was_used_is_kept() -> None:
    code = (
        "import extensor as et; before = 'conv2d' in vars(et); et.conv2d; print(before, 'conv2d' in vars(et))"
    )
    assert in_a_fresh_interpreter(code) == "False True\n"


def test_the_names_of_transforms_are_known() -> None:
    eager = {"autocast", "differentiable", "no_grad"}
    assert {*autograd.HOME_OF} | eager == {*autograd.__all__}
    assert all(callable(getattr(autograd, name)) for name in autograd.__all__)


def test_the_package_lists_all_its_names() -> None:
    assert {*et.__all__} <= {*dir(et)}


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'convolution'"):
        kernels.convolution  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match="convolution"):
        kernels.KERNELS["convolution"]
    with pytest.raises(AttributeError, match="gradient"):
        autograd.gradient
    with pytest.raises(AttributeError, match="program_of"):
        getattr(sys.modules["extensor.compile"], "program_of")  # noqa: B009  (et.compile is the function)


def test_names_are_looked_for_without_the_extras() -> None:
    code = (
        "import sys; sys.modules.update(onnx=None, sklearn=None)\n"  # as where they are not installed
        "import extensor as et\n"
        "from extensor import config\n"
        "assert et.config is config and not hasattr(et, 'no_such_name')"
    )
    assert in_a_fresh_interpreter(code) == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_forked_while_a_family_loads_can_use_it() -> None:
    """The lock of a module that another thread is loading would stay locked in the child for ever."""
    code = """
import importlib.abc, os, sys, threading, time, warnings
import extensor as et
warnings.simplefilter("ignore")

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "extensor.ops.conv":
            started.set()
            time.sleep(0.5)

started = threading.Event()
sys.meta_path.insert(0, Slow())
threading.Thread(target=lambda: et.conv2d, daemon=True).start()
started.wait()
child = os.fork()
if child == 0:
    et.conv2d
    os._exit(0)
for _ in range(1000):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        os._exit(status)
    time.sleep(0.01)
os.kill(child, 9)
os._exit(3)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
