"""Compiled training beside eager training: every network, optimiser, schedule and way of a step; the same bits on 1 to 4 threads.

One training is 200 steps; a hash of all losses, outputs, weights, gradients, buffers and states is compared with that of the
eager one on one thread. All trainings take about a quarter of an hour; ``--count`` ends it earlier.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from campaign import Campaign
from networks import NETWORKS, OPTIMIZERS, SCHEDULES, Training

import extensor as et

STEPS = 200
THREADS = (1, 2, 3, 4)
WAYS: dict[str, dict[str, Any]] = {
    "clipped": {"clip": True},
    "checkpointed": {"checkpoint": True},
    "accumulated": {"pieces": 2},
    "all of it": {"clip": True, "checkpoint": True, "pieces": 2, "schedule": "warmup"},
}


def cases() -> Iterator[list[Any]]:
    """Network, optimiser, options: each optimiser and each way with each network, each schedule with one."""
    for network in NETWORKS:
        for optimizer in OPTIMIZERS:
            yield [network, optimizer, {}]
        for options in WAYS.values():
            yield [network, "adamw", options]
            yield [network, "momentum", options]
    for schedule in SCHEDULES:
        yield ["mlp", "adam", {"schedule": schedule}]


def digest(network: str, optimizer: str, options: dict[str, Any], compiles: bool) -> tuple[str, str]:
    """The hash of a training, and what is wrong with its programs."""
    training = Training(network, OPTIMIZERS[optimizer], **options)
    if not compiles:
        return training.digest(STEPS, training.step), ""
    step = et.compile(training.step)
    found = training.digest(STEPS, step)
    runs = sum(program.times()[1] for program in step.programs)
    known = any(
        "checkpointed segment" in reason for reason in step.reasons
    )  # with dropout: runs as it is written
    fits = runs >= STEPS - step.recordings > 0 or known
    return found, "" if fits else f"only {runs} of {STEPS} steps ran a program: {step.reasons}"


def run(campaign: Campaign) -> None:
    every = list(cases())
    random.Random(campaign.seed).shuffle(every)
    every = [*campaign.corpus(), *every]
    expected: dict[int, str] = {}
    before = et.get_num_threads()
    for turn in range(len(THREADS)):  # every case on one number of threads, then on the next
        for number, case in enumerate(every):
            if not campaign.goes_on():
                break
            if number not in expected:
                et.set_num_threads(1)
                expected[number], _ = digest(*case, compiles=False)
            threads = THREADS[(number + turn) % len(THREADS)]
            et.set_num_threads(threads)
            found, problem = digest(*case, compiles=True)
            campaign.did("trainings")
            if found != expected[number]:
                problem = "other bits than eager"
            if problem:
                campaign.found(f"{case}, {threads} threads: {problem}", case)
    et.set_num_threads(before)
