"""Jobs of several processes, where there is an MPI to start them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MPIEXEC = Path(sysconfig.get_path("scripts")) / "mpiexec"

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="needs mpi4py and an MPI: pip install '.[mpi]'",
)


def job(
    ranks: int, script: str, *args: str, hosts: tuple[int, ...] = (), env: dict[str, str] | None = None, seconds: int = 120,
    keep: bool = False,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a script of this folder on so many ranks; ``hosts`` tells how many of them believe to be on one host.

    With ``keep`` the launcher does not end the others when one is killed: they must notice.
    """
    program = [sys.executable, str(HERE / script), *args]
    line = [str(MPIEXEC)] + ["-disable-auto-cleanup"] * keep
    for number, count in enumerate(hosts or (ranks,)):
        line += [":"] * bool(number) + [
            "-n",
            str(count),
            "-env",
            "EXTENSOR_HOST",
            f"host{number if hosts else 0}",
        ]
        line += program
    variables = os.environ | {"EXTENSOR_NUM_THREADS": "1", **(env or {})}
    return subprocess.run(line, capture_output=True, text=True, timeout=seconds, env=variables)


def answer(ranks: int, script: str, *args: str, hosts: tuple[int, ...] = (), seconds: int = 120) -> str:
    """What a job that succeeds says."""
    done = job(ranks, script, *args, hosts=hosts, seconds=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
