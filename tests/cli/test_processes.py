"""``extensor train`` on several processes of this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from mpi_jobs import needs_mpi

from extensor.cli import main

TRAIN = [sys.executable, "-m", "extensor.cli", "train", "mlp", "--threads", "1"]


def weights(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def ranks_of(launcher: int) -> list[int]:
    """The processes of a job, by their rank."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            line = (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        named = dict(v.split(b"=", 1) for v in variables if b"=" in v)
        mine = named.get(b"EXTENSOR_TEST_JOB") == str(launcher).encode()
        if b"extensor.cli" in line and mine and b"PMI_RANK" in named:
            found[int(named[b"PMI_RANK"])] = int(entry.name)
    return [found[rank] for rank in sorted(found)]


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    environment = os.environ | {"EXTENSOR_TEST_JOB": str(os.getpid())}
    line = [*TRAIN, "--out", str(folder), *options]
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_a_checkpoint(folder: Path, job: subprocess.Popen[str]) -> None:
    while not list(folder.glob("checkpoints/*.safetensors")):
        assert job.poll() is None, job.communicate()
        time.sleep(0.02)


@needs_mpi
def test_a_lost_process_is_replaced_by_those_that_are_left(tmp_path: Path) -> None:
    options = ("--epochs", "8", "--shards", "4")
    subprocess.run([*TRAIN, "--out", str(tmp_path / "whole"), *options], check=True, capture_output=True)
    expected = "1 of the ranks lost; going on with 2 processes (0 more restarts)"
    folder = tmp_path / "lost"
    job = started(folder, *options, "--processes", "3", "--restarts", "1")
    wait_for_a_checkpoint(folder, job)
    os.kill(ranks_of(os.getpid())[1], signal.SIGKILL)
    said, complained = job.communicate(timeout=100)
    assert job.returncode == 0, complained
    assert said.count("report:") == 1
    assert weights(folder) == weights(tmp_path / "whole")
    assert expected in complained
    assert "rank 1 (host" in complained


@needs_mpi
def test_an_interrupt_stops_all_and_another_number_goes_on(tmp_path: Path) -> None:
    job = started(tmp_path / "cut", "--epochs", "8", "--processes", "2")
    wait_for_a_checkpoint(tmp_path / "cut", job)
    job.send_signal(signal.SIGINT)
    said, complained = job.communicate(timeout=60)
    assert job.returncode == 130, complained
    assert "--resume goes on" in said
    assert not ranks_of(os.getpid())
    for folder, options in (("cut", ["--resume"]), ("whole", ["--shards", "8"])):
        line = [*TRAIN, "--out", str(tmp_path / folder), "--epochs", "8", *options]
        subprocess.run(line, check=True, capture_output=True)
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--processes", "9"], "--processes 9 needs as many shards: --shards 9 or more"),
        (["--processes", "3", "--shards", "2"], "--processes 3 needs as many shards"),
        (["--restarts", "2"], "--restarts belongs to --processes"),
    ],
)
def test_options_that_make_no_sense(options: list[str], text: str) -> None:
    done = CliRunner().invoke(main, ["train", "mlp", *options])
    assert done.exit_code == 2
    assert text in done.stderr


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["train", "mlp", "--processes", "2"])
    assert done.exit_code == 1
    assert "pip install mpi4py mpich (the extra 'mpi' of ExTensor)" in done.stderr


def test_a_missing_launcher_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["train", "mlp", "--processes", "2"])
    assert done.exit_code == 1
    assert (
        "--processes needs mpiexec (an MPI), which is not installed: pip install mpi4py mpich (the extra 'mpi' of ExTensor)"
        in done.stderr
    )


def test_shards_belong_to_the_run(tmp_path: Path) -> None:
    run = ["train", "mlp", "--out", str(tmp_path), "--steps", "2", "--shards", "2"]
    assert CliRunner().invoke(main, run).exit_code == 0
    again = CliRunner().invoke(main, [*run[:-1], "4", "--resume"])
    assert again.exit_code == 1
    assert "was started with another shards (2, now 4)" in again.stderr
    assert CliRunner().invoke(main, [*run[:4], "--steps", "3", "--resume"]).exit_code == 0
