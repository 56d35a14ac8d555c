"""What show_config prints, and the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.config import has_bf16_unit
from extensor.kernels import KERNELS, NATIVE


@pytest.fixture(autouse=True)
def _same_threads_afterwards() -> Iterator[None]:
    before = et.get_num_threads()
    yield
    et.set_num_threads(before)


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    et.set_num_threads(3)
    et.show_config()
    title, kernels, instructions, threads = capsys.readouterr().out.splitlines()
    assert title.startswith(
        f"ExTensor {et.__version__} (Python {sys.version.split()[0]}, NumPy {np.__version__})"
    )
    native = len(KERNELS.keys() & NATIVE.keys())
    if NATIVE:
        assert (
            kernels.split() == f"kernels {native} native, {len(KERNELS) - native} reference (NumPy)".split()
        )
        assert instructions.split()[2] in {"baseline", "avx2", "avx512"}
        assert instructions.endswith("with bfloat16 dot products") == has_bf16_unit()
        assert threads.split() == ["threads", "3"]
    else:
        assert f"{len(KERNELS)} reference" in kernels
        assert "not installed" in kernels
        assert threads.split()[:2] == ["threads", "3,"]


@pytest.mark.parametrize("n", [1, 2, 7, 256, np.int64(4)])
def test_threads_are_kept(n: int) -> None:
    et.set_num_threads(n)
    assert et.get_num_threads() == n


@pytest.mark.parametrize(
    ("n", "error"),
    [(0, ValueError), (-1, ValueError), (257, ValueError), (2**70, ValueError)]
    + [(bad, TypeError) for bad in (1.0, "2", None, True, [1])],
)
def test_threads_are_checked(n: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^\[set_num_threads\] n must be"):
        et.set_num_threads(n)


@pytest.mark.parametrize(
    ("value", "expected"), [("3", 3), ("1", 1), ("100000", 256), ("nonsense", None), ("0", None)]
)
def test_threads_from_the_environment(value: str, expected: int | None) -> None:
    code = "import extensor; print(extensor.get_num_threads())"
    env = {**os.environ, "EXTENSOR_NUM_THREADS": value}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert int(run.stdout) == (expected or len(os.sched_getaffinity(0)))
