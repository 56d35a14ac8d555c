"""Training on several processes: the same SHA-256 of all weights and metrics for any number of them, whatever happens to them.

A case is a network and settings of its run. It ends alike on 1, 2, 3, 4 and 8 ranks, on ranks of two hosts that exchange
messages, where it goes from 4 ranks to 1 to 3 at its checkpoints, and where ranks are killed or stopped at random steps
and the run is resumed on another number of them.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

from campaign import Campaign
from mpi_jobs import answer, job

RUN = "shared_run.py"
STEPS = int(os.environ.get("EXTENSOR_RANK_STEPS", "300"))
SECONDS = 10  # a lost rank is noticed within
NETWORKS = ("lenet", "resnet", "gpt")
SETTINGS: dict[str, tuple[str, ...]] = {
    "compiled, accumulated, clipped": (),
    "without compile": ("compile=false",),
    "bfloat16": ('precision="bfloat16"',),
    "one batch a step, not clipped": ("accumulate=1", "clip_norm=null"),
    "compressed": ("compress=true",),
}
RANKS = (2, 3, 4, 8)


def run(campaign: Campaign) -> None:
    rng = random.Random(campaign.seed)
    cases = [(network, name) for name in SETTINGS for network in NETWORKS]
    for network, name in cases:
        if not campaign.goes_on():
            return
        args = (network, "-", f"steps={STEPS}", *SETTINGS[name])
        wanted = _answer(1, *args)
        campaign.say(f"{network}, {name}: {wanted[:16]}")
        for ranks in RANKS:
            _compare(campaign, wanted, _answer(ranks, *args), [network, name, ranks])
        _compare(campaign, wanted, _answer(3, *args, hosts=(2, 1)), [network, name, "two hosts"])
        if name == "compiled, accumulated, clipped":
            _moved(campaign, network, wanted)
            for _ in range(10):
                _killed(campaign, network, wanted, rng)


def _answer(ranks: int, *args: str, hosts: tuple[int, ...] = ()) -> str:
    return answer(ranks, RUN, *args, hosts=hosts, seconds=1800)


def _compare(campaign: Campaign, wanted: str, found: str, case: list[object]) -> None:
    campaign.did("runs")
    if found != wanted:
        campaign.found(f"{case}: {found[:80]} instead of {wanted[:80]}", case)


def _moved(campaign: Campaign, network: str, wanted: str) -> None:
    """From 4 ranks to 1 to 3, each of them ended without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        for ranks, end, resume in ((4, STEPS // 3, "false"), (1, 2 * STEPS // 3, "true")):
            ends = ("kill_rank=0", f"kill_at={end}", f"resume={resume}")
            job(ranks, RUN, network, folder, f"steps={STEPS}", *ends, seconds=1800)
        found = _resumed(3, network, folder)
    _compare(campaign, wanted, found, [network, "4, 1, 3 ranks"])


def _resumed(ranks: int, network: str, folder: str) -> str:
    nobody = ("kill_rank=99", "kill_at=0")  # the callbacks of a run are part of its checkpoints
    return _answer(ranks, network, folder, f"steps={STEPS}", "resume=true", *nobody)


def _killed(campaign: Campaign, network: str, wanted: str, rng: random.Random) -> None:
    """A rank is lost, or sleeps for a while, at a random step; the run goes on with fewer or more."""
    ranks, step = rng.randrange(2, 5), rng.randrange(2, STEPS)
    how = rng.choice(["KILL", "KILL", "KILL", "PAUSE"])
    case = [network, ranks, step, how]
    with tempfile.TemporaryDirectory() as folder:
        disturbed = (f"kill_rank={rng.randrange(ranks)}", f"kill_at={step}", f'kill_how="{how}"')
        try:
            done = job(ranks, RUN, network, folder, f"steps={STEPS}", *disturbed, seconds=1800, keep=True)
        except subprocess.TimeoutExpired:
            campaign.found(f"{case}: never ended", case)
            return
        campaign.did(f"ranks hit by {how}")
        if how == "PAUSE":
            _compare(campaign, wanted, done.stdout.strip(), case)
            return
        hit = Path(folder, "hit")
        if hit.exists():
            noticed = time.time() - float(hit.read_text())
            campaign.say(f"{case}: the others ended after {noticed:.1f} s")
            if noticed > SECONDS:
                campaign.found(f"{case}: the others ended after {noticed:.1f} s", case)
        elif done.returncode == 0:  # it had learned enough before that step
            _compare(campaign, wanted, done.stdout.strip(), case)
            return
        found = _resumed(rng.randrange(1, 6), network, folder)
    _compare(campaign, wanted, found, case)
