"""Training on several processes: the same SHA-256 of all weights and metrics for any number of them, whatever happens to them.

A case is a network and settings of its run. It ends alike on 1, 2, 3, 4 and 8 ranks, on ranks of two hosts that exchange
messages, where it goes from 4 ranks to 1 to 3 at its checkpoints, where a rank is stopped for five seconds, and where one is
killed at a random moment and the run is resumed on another number of them.

All of it takes hours on two cores, so it is made of pieces, in an order in which the first fifth has every network with
every setting, every number of ranks, a move, kills and a pause; it ends at the first piece for which there is no time, and says what it
did and what it left out. ``EXTENSOR_RANK_PIECES="gpt; resnet, without compile"`` goes through the pieces whose names begin so alone,
``EXTENSOR_RANK_STEPS=20`` makes every run so long.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from campaign import Campaign
from mpi_jobs import answer, job

RUN = "shared_run.py"
STEPS = int(os.environ.get("EXTENSOR_RANK_STEPS", "300"))
ONLY = os.environ.get("EXTENSOR_RANK_PIECES", "")
SECONDS = 10  # a lost rank is noticed within
NETWORKS: dict[str, tuple[str, ...]] = {
    "lenet": (),
    "gpt": (),
    "resnet": ("batch=12",),
}  # the slowest learns from fewer
USUAL = "compiled, accumulated, clipped"
SETTINGS: dict[str, tuple[str, ...]] = {
    USUAL: (),
    "without compile": ("compile=false",),
    "bfloat16": ('precision="bfloat16"',),
    "one batch a step, not clipped": ("accumulate=1", "clip_norm=null"),
    "compressed": ("compress=true",),
}
WAYS: dict[str, tuple[int, ...]] = {
    "2 ranks": (2,),
    "3 ranks": (3,),
    "4 ranks": (4,),
    "8 ranks": (8,),
    "two hosts": (2, 1),
}
KILLS, PAUSES = 10, 2  # of each network


class Piece(NamedTuple):
    """A run, or what happens to one, that must end as that of one rank does.

    Attributes:
        network, setting: its case.
        what: becomes of it.
        found: its SHA-256, or None where the campaign has been told that there is none to compare.
    """

    network: str
    setting: str
    what: str
    found: Callable[[Campaign, list[object], str], str | None]

    def __str__(self) -> str:
        return ", ".join(self[:3])


def pieces(seed: int) -> list[Piece]:
    """All of them: every case in one of the ways, then each in another; in between, what happens to ranks."""
    cases = [(network, setting) for setting in SETTINGS for network in NETWORKS]
    ways, disturbed = list(WAYS), _disturbances(seed)
    share = -(-len(disturbed) // len(ways))
    found: list[Piece] = []
    for turn in range(len(ways)):
        for number, (network, setting) in enumerate(cases):
            # by networks and by settings: each of both comes to each way
            way = ways[(number + number // len(NETWORKS) + turn) % len(ways)]
            found.append(Piece(network, setting, way, partial(_run, network, setting, WAYS[way])))
        found += disturbed[turn * share : (turn + 1) * share]
    return found


def _disturbances(seed: int) -> list[Piece]:
    found = [Piece(network, USUAL, "4, 1, 3 ranks", partial(_moved, network)) for network in NETWORKS]
    for number in range(max(KILLS, PAUSES)):
        for what, count, how in (("kill", KILLS, _killed), ("pause", PAUSES, _paused)):
            for network in NETWORKS if number < count else ():
                name = f"{what} {number + 1}"
                rng = random.Random(f"{seed} {network} {name}")  # the same moments in whichever order
                found.append(Piece(network, USUAL, name, partial(how, network, rng)))
    return found


def run(campaign: Campaign) -> None:
    todo = [piece for piece in pieces(campaign.seed) if str(piece).startswith(tuple(ONLY.split("; ")))]
    wanted: dict[tuple[str, str], str] = {}
    for number, piece in enumerate(todo):
        if not campaign.goes_on():
            left = "; ".join(map(str, todo[number:]))
            campaign.say(f"{number} of {len(todo)} pieces; no time for: {left}")
            return
        began = time.monotonic()
        case = piece[:2]
        if case not in wanted:
            wanted[case] = _run(*case, (1,))
        told: list[object] = [*piece[:3]]
        found = piece.found(campaign, told, wanted[case])
        if found is not None:
            _compare(campaign, wanted[case], found, told)
        campaign.say(f"{piece}: {wanted[case][:16]}, {time.monotonic() - began:.0f} s")
    campaign.say(f"all of {len(todo)} pieces")


def _run(network: str, setting: str, hosts: tuple[int, ...], *_: object) -> str:
    args = (network, "-", f"steps={STEPS}", *NETWORKS[network], *SETTINGS[setting])
    return answer(sum(hosts), RUN, *args, hosts=hosts if len(hosts) > 1 else (), seconds=1800)


def _compare(campaign: Campaign, wanted: str, found: str, case: list[object]) -> None:
    campaign.did("runs")
    if found != wanted:
        campaign.found(f"{case}: {found[:80]} instead of {wanted[:80]}", case)


def _moved(network: str, *_: object) -> str:
    """From 4 ranks to 1 to 3, each of them ended without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        for ranks, end, resume in ((4, STEPS // 3, "false"), (1, 2 * STEPS // 3, "true")):
            ends = ("kill_rank=0", f"kill_at={end}", f"resume={resume}")
            job(ranks, RUN, network, folder, f"steps={STEPS}", *NETWORKS[network], *ends, seconds=1800)
        return _resumed(3, network, folder)


def _resumed(ranks: int, network: str, folder: str) -> str:
    nobody = ("kill_rank=99", "kill_at=0")  # the callbacks of a run are part of its checkpoints
    args = (network, folder, f"steps={STEPS}", *NETWORKS[network], "resume=true", *nobody)
    return answer(ranks, RUN, *args, seconds=1800)


def _disturbed(rng: random.Random, how: str) -> tuple[int, list[str]]:
    """How many ranks, and which of them is hit when: so long after a step that it may be anywhere in one of the next."""
    ranks = rng.randrange(2, 5)
    who, step, after = rng.randrange(ranks), rng.randrange(2, STEPS), rng.uniform(0.0, 0.05)
    return ranks, [f"kill_rank={who}", f"kill_at={step}", f"kill_after={after}", f'kill_how="{how}"']


def _paused(network: str, rng: random.Random, campaign: Campaign, told: list[object], wanted: str) -> str:
    """A rank sleeps for five seconds."""
    ranks, when = _disturbed(rng, "PAUSE")
    told += [ranks, *when]
    campaign.did("ranks stopped for 5 s")
    return answer(ranks, RUN, network, "-", f"steps={STEPS}", *NETWORKS[network], *when, seconds=1800)


def _killed(
    network: str, rng: random.Random, campaign: Campaign, told: list[object], wanted: str
) -> str | None:
    """A rank is lost; the run goes on with fewer or more."""
    ranks, when = _disturbed(rng, "KILL")
    told += [ranks, *when]
    with tempfile.TemporaryDirectory() as folder:
        args = (network, folder, f"steps={STEPS}", *NETWORKS[network], *when)
        try:
            done = job(ranks, RUN, *args, seconds=1800, keep=True)
        except subprocess.TimeoutExpired:
            campaign.found(f"{told}: never ended", told)
            return None
        hit = Path(folder, "hit")
        if hit.exists():
            campaign.did("ranks killed")
            noticed = time.time() - float(hit.read_text())
            campaign.say(f"{told}: the others ended after {noticed:.1f} s")
            if noticed > SECONDS:
                campaign.found(f"{told}: the others ended after {noticed:.1f} s", told)
        elif done.returncode == 0:  # it had learned enough before that moment
            return done.stdout.strip()
        return _resumed(rng.randrange(1, 6), network, folder)
