"""Ranks that are lost: noticed, named, and the run goes on to the same bits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from mpi_jobs import answer, job, needs_mpi

pytestmark = needs_mpi
RUN = "shared_run.py"
NOTICED = 10  # seconds in which every rank must have ended


@pytest.mark.parametrize("rank", [0, 2])
def test_a_killed_rank_ends_the_job_and_fewer_go_on_to_the_same_bits(tmp_path: Path, rank: int) -> None:
    whole = answer(1, RUN, "mlp", str(tmp_path / "whole"))
    for attempt in range(3):  # the first to notice ends the job, now and then before anybody has written
        cut = tmp_path / f"cut-{attempt}"
        began = time.monotonic()
        done = job(3, RUN, "mlp", str(cut), f"kill_rank={rank}", "kill_at=5", keep=True)
        assert done.returncode != 0
        files = [cut / f"lost-{other}" for other in {0, 1, 2} - {rank}]
        said = [text for text in (file.read_text() for file in files if file.exists()) if text]
        if said:
            break
    assert said
    for text in said:
        assert text.startswith(f"[World] rank {rank} (host host0, process")
        assert "ended without a word" in text
    assert time.monotonic() - began < NOTICED + 20  # generous: the job begins with three imports
    for ranks, steps in ((1, 6), (4, 7)):
        text = answer(
            ranks,
            RUN,
            "mlp",
            str(cut),
            "resume=true",
            f"steps={steps}",
            "kill_rank=9",
            "kill_at=0",
        )
    assert text.split()[1:] == whole.split()[1:]
    assert text == whole


def test_a_stopped_rank_ends_the_job(tmp_path: Path) -> None:
    args = ("mlp", str(tmp_path), "kill_rank=1", "kill_at=3", 'kill_how="STOP"')
    done = job(2, RUN, *args, env={"EXTENSOR_TIMEOUT": "2"})  # the launcher ends the stopped one
    assert done.returncode != 0
    assert "has been silent for" in (tmp_path / "lost-0").read_text()


def test_a_pause_does_no_harm(tmp_path: Path) -> None:
    args = ("mlp", "-", "kill_rank=1", "kill_at=3")
    paused = job(2, RUN, *args, 'kill_how="PAUSE"')
    assert paused.returncode == 0, paused.stderr
    assert paused.stdout.strip() == answer(2, RUN, "mlp", "-", "kill_rank=9", "kill_at=0")


def test_a_job_that_is_put_aside_as_a_whole_goes_on() -> None:
    """As ``scontrol suspend`` does: longer than the silence that counts as a loss, but all of them."""
    args = ("mlp", "-", "kill_rank=9", "kill_at=3")
    done = job(3, RUN, *args, 'kill_how="SUSPEND"', env={"EXTENSOR_TIMEOUT": "2"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == answer(3, RUN, "mlp", "-", "kill_rank=9", "kill_at=0")


def test_an_interrupt_of_one_rank_stops_all_with_a_checkpoint(tmp_path: Path) -> None:
    done = job(
        2, RUN, "mlp", str(tmp_path), "kill_rank=1", "kill_at=3", 'kill_how="INT"', "checkpoint_every=100"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["interrupted", "3"]
    assert (tmp_path / "checkpoints" / "step-000000003.safetensors").exists()
