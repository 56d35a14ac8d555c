"""Random calls of every public function: by plan as by body, and only documented exceptions; layers and losses beside PyTorch,
where it is installed; random networks beside differences of their loss."""

from __future__ import annotations

import random
import resource
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peer
from campaign import Campaign

import extensor as et
from extensor.graph import clear_plans, no_grad

CALLS = 40  # of one function, from one seed
ROOM = 6 << 30  # bytes that calls may take


def run(campaign: Campaign) -> None:
    import test_garbage
    import test_one_road

    _limit_memory()
    torch = peer.library()
    campaign.say("PyTorch is beside us" if torch else "PyTorch is not installed: nothing is compared with it")
    rng = random.Random(campaign.seed)
    cases = campaign.corpus()
    while campaign.goes_on():
        case = cases.pop() if cases else _drawn(rng, test_one_road.OPS, test_garbage.FUNCTIONS)
        kind, name, seed = case
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            if kind == "road" and name in test_one_road.OPS:
                _drive(campaign, test_one_road, name, seed)
            elif kind == "garbage" and name in test_garbage.FUNCTIONS:
                _spoil(campaign, test_garbage, test_garbage.calls, case)
            elif kind == "limits" and name in test_garbage.FUNCTIONS:
                _spoil(campaign, test_garbage, test_garbage.calls_at_limits, case)
            elif kind == "network":
                _network(campaign, seed)
            elif kind == "peer" and torch:
                _compare(campaign, torch, name, seed)


def _limit_memory() -> None:
    """Sizes that no machine has end in a MemoryError; those that this one nearly has must not end its other processes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    kind = resource.RLIMIT_AS
    resource.setrlimit(kind, (pages * resource.getpagesize() + ROOM, resource.getrlimit(kind)[1]))


def _drawn(rng: random.Random, ops: dict[str, Any], functions: dict[str, Any]) -> list[Any]:
    kind = rng.choice(["road", "road", "garbage", "limits", "network", "peer"])
    names = {
        "road": ops,
        "garbage": functions,
        "limits": functions,
        "network": ["network"],
        "peer": peer.CASES,
    }
    return [kind, rng.choice(sorted(names[kind])), rng.getrandbits(31)]


def _drive(campaign: Campaign, road: Any, name: str, seed: int) -> None:
    road.SEED = seed
    rng = random.Random(seed)
    for call in road.calls(name, road.OPS[name], CALLS // 3):
        if rng.random() < 0.01:
            clear_plans()
        if rng.random() < 0.2:
            with no_grad():
                problem = road.difference(road.OPS[name], call)
        else:
            problem = road.difference(road.OPS[name], call)
        campaign.did("calls")
        if problem and "MemoryError" not in problem:  # there was room for one of both ways
            campaign.found(f"{road.told(name, call)} {problem}"[:2000], ["road", name, seed])
            return


def _spoil(campaign: Campaign, garbage: Any, calls: Callable[..., Iterator[Any]], case: list[Any]) -> None:
    _, name, seed = case
    garbage.SEED, garbage.CALLS = seed, CALLS
    for args, kwargs in calls(name, garbage.FUNCTIONS[name]):
        problem = garbage.broken_promise(garbage.FUNCTIONS[name], args, kwargs)
        campaign.did("calls")
        if problem:
            campaign.found(f"{garbage.told(name, (args, kwargs))} {problem}"[:2000], case)
            return


def _compare(campaign: Campaign, torch: Any, name: str, seed: int) -> None:
    for place in range(CALLS // 4):  # a call and its gradient, by each library
        problem = peer.difference(torch, name, seed + place)
        campaign.did("calls")
        campaign.did("of them beside PyTorch")
        if problem:
            campaign.found(problem[:2000], ["peer", name, seed + place])
            return


def _network(campaign: Campaign, seed: int) -> None:
    """A random network in float64: its gradient beside differences of its loss along one random direction."""
    rng = np.random.default_rng(seed)
    layers: list[et.nn.Module] = []
    width = int(rng.integers(1, 9))
    first = width
    for _ in range(int(rng.integers(1, 6))):
        kind = rng.integers(6)
        if kind == 0:
            layers.append(et.nn.LayerNorm(width)) if width > 3 else None
        elif kind == 1:
            layers.append(rng.choice([et.nn.Tanh(), et.nn.GELU(), et.nn.SiLU(), et.nn.Softplus()]))
        else:
            other = int(rng.integers(1, 9))
            layers.append(et.nn.Linear(width, other, rng=int(rng.integers(1 << 30))))
            width = other
    model = et.nn.Sequential(*layers)
    for _, parameter in model.named_parameters():
        parameter._array = rng.normal(size=parameter.shape)
    x = et.tensor(rng.normal(size=(int(rng.integers(1, 7)), first)))
    named = dict(model.named_parameters())
    start = {name: parameter.numpy().copy() for name, parameter in named.items()}
    direction = {name: rng.normal(size=value.shape) for name, value in start.items()}

    def loss(step: float) -> et.ExTensor:
        for name, parameter in named.items():
            parameter._array = start[name] + step * direction[name]
        return (model(x) ** 2).mean()

    step = 1e-6
    expected = (loss(step).item() - loss(-step).item()) / (2 * step)
    loss(0.0).backward() if named else None
    found = sum(
        float((p.grad.numpy() * direction[name]).sum()) for name, p in named.items() if p.grad is not None
    )
    size = sum(
        float(np.abs(p.grad.numpy() * direction[name]).sum())
        for name, p in named.items()
        if p.grad is not None
    )
    campaign.did("calls", 4 * len(layers))
    if abs(found - expected) > 1e-4 * max(1.0, size):
        campaign.found(
            f"network of seed {seed}: gradient {found}, differences {expected}", ["network", "network", seed]
        )
