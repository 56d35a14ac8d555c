"""Steps of a small network with changing shapes, eager and compiled, by the million: memory stays flat."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
from campaign import Campaign

import extensor as et

GROWTH = 1 << 20  # bytes
SHAPES = 97  # different batches
COMPILED_SHAPES = 40  # of them that the compiled step gets, each with a program of its own
WARM = 5000


def resident() -> int:
    """The bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def run(campaign: Campaign) -> None:
    rng = np.random.default_rng(campaign.seed)
    model = et.nn.Sequential(et.nn.Linear(8, 16, rng=0), et.nn.ReLU(), et.nn.Linear(16, 4, rng=1))
    optimizer = et.optim.Adam(model.parameters(), lr=1e-3)
    inputs = [et.tensor(rng.standard_normal((n, 8)).astype(np.float32)) for n in range(1, SHAPES + 1)]
    labels = [et.tensor(rng.integers(0, 4, n)) for n in range(1, SHAPES + 1)]

    def step(x: et.ExTensor, y: et.ExTensor) -> None:
        optimizer.zero_grad()
        et.cross_entropy(model(x), y).backward()
        optimizer.step()

    compiled = et.compile(step)

    def steps(count: int) -> None:
        for place in rng.integers(0, SHAPES, count):
            step(inputs[place], labels[place])
        for place in rng.integers(0, COMPILED_SHAPES, count):
            compiled(inputs[place], labels[place])

    steps(WARM)
    gc.collect()
    before, measured = resident(), []
    while campaign.goes_on():
        steps(1000)
        campaign.did("steps", 1000)
        campaign.did("compiled steps", 1000)
        measured.append(resident() - before)
    gc.collect()
    grown = resident() - before
    campaign.say(f"memory grew by {grown / 1024:.0f} KB, at most by {max(measured, default=0) / 1024:.0f} KB")
    if len(compiled.programs) != COMPILED_SHAPES:
        campaign.found(f"{len(compiled.programs)} programs for {COMPILED_SHAPES} shapes", campaign.seed)
    if grown > GROWTH:
        campaign.found(f"memory grew by {grown / 1e6:.1f} MB over {campaign.so_far()}", campaign.seed)
