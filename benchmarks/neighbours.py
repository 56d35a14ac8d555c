"""What training costs the neighbours: processor time of a step, and what is left to another busy process.

    python benchmarks/neighbours.py
    python benchmarks/neighbours.py --threads 4 --rounds 20

A neighbour is a process that counts as fast as it can, one per core. Each contestant trains the same network for a while in a
process of its own, alone and beside the neighbours, in turns; printed are medians. A pool whose workers wait by spinning costs
processor time that brings no step, and takes it from whoever is beside it: "left" is what the neighbours still count of what
they count alone. An even division between our threads and the neighbours leaves half.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from extensor.bench import table

BATCH, SIZES = 64, (784, 256, 256, 10)


def ours(threads: int) -> Callable[[], Any]:
    import extensor as et
    from extensor import nn, optim

    et.set_num_threads(threads)
    layers: list[nn.Module] = []
    for into, out in zip(SIZES, SIZES[1:]):
        layers += [nn.Linear(into, out), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = optim.Adam(model.parameters())
    x, y = et.ones((BATCH, SIZES[0])), et.zeros(BATCH, dtype=et.int64)

    def step() -> None:
        optimizer.zero_grad()
        et.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def pytorch(threads: int) -> Callable[[], Any]:
    torch: Any = import_module("torch")
    nn = torch.nn

    torch.set_num_threads(threads)
    layers: list[Any] = []
    for into, out in zip(SIZES, SIZES[1:]):
        layers += [nn.Linear(into, out), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.ones(BATCH, SIZES[0]), torch.zeros(BATCH, dtype=torch.int64)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


CONTESTANTS = {"extensor": ours, "pytorch": pytorch}


def train(name: str, threads: int, seconds: float) -> None:
    """In a process of its own: steps for a while, and what they cost, as JSON."""
    step = CONTESTANTS[name](threads)
    for _ in range(20):
        step()
    before, begin, steps = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), 0
    while time.perf_counter() < begin + seconds:
        step()
        steps += 1
    after = resource.getrusage(resource.RUSAGE_SELF)
    passed = time.perf_counter() - begin
    print(
        json.dumps(
            {
                "step": passed / steps,
                "user": (after.ru_utime - before.ru_utime) / steps,
                "system": (after.ru_stime - before.ru_stime) / steps,
                "begin": begin,
                "end": begin + passed,
            }
        )
    )


def count(counter: Any) -> None:
    while True:
        for _ in range(1000):
            pass
        counter.value += 1000


class Neighbours:
    """Busy processes, one per core; ``rate`` is what they count in a second, all together."""

    def __enter__(self) -> Neighbours:
        self.counters = [multiprocessing.Value("q", 0, lock=False) for _ in os.sched_getaffinity(0)]
        self.processes = [
            multiprocessing.Process(target=count, args=(c,), daemon=True) for c in self.counters
        ]
        for process in self.processes:
            process.start()
        time.sleep(0.2)
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()

    def counted(self) -> tuple[float, int]:
        return time.perf_counter(), sum(counter.value for counter in self.counters)

    def rate_alone(self, seconds: float) -> float:
        (begin, first) = self.counted()
        time.sleep(seconds)
        (end, last) = self.counted()
        return (last - first) / (end - begin)

    def rate_beside(self, trial: subprocess.Popen[str]) -> tuple[float, dict[str, float]]:
        """What they count while the steps of ``trial`` are timed, and what it says."""
        seen = [self.counted()]
        while trial.poll() is None:
            time.sleep(0.02)
            seen.append(self.counted())
        told = json.loads(trial.communicate()[0])
        timed = [(when, what) for when, what in seen if told["begin"] <= when <= told["end"]]
        (begin, first), (end, last) = timed[0], timed[-1]
        return (last - first) / (end - begin), told


def start(name: str, threads: int, seconds: float) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        __file__,
        "--train",
        name,
        "--threads",
        str(threads),
        "--seconds",
        str(seconds),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of a contestant (2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each (7)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn (1)")
    parser.add_argument("--out", type=Path, help="write the table there too")
    parser.add_argument("--train", choices=CONTESTANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train, options.threads, options.seconds)
        return
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for name in CONTESTANTS:
            alone = start(name, options.threads, options.seconds)
            found.setdefault((name, "alone"), []).append(json.loads(alone.communicate()[0]))
            with Neighbours() as neighbours:
                before = neighbours.rate_alone(options.seconds / 2)
                rate, told = neighbours.rate_beside(start(name, options.threads, options.seconds))
            found.setdefault((name, "beside busy processes"), []).append({**told, "left": rate / before})
    rows = [("", "", "µs per step", "user µs", "system µs", "processor time / step", "left to neighbours")]
    for (name, how), trials in found.items():
        middle = {key: statistics.median(trial[key] for trial in trials) for key in trials[0]}
        used = (middle["user"] + middle["system"]) / middle["step"]
        step, user, system = (f"{middle[key] * 1e6:.0f}" for key in ("step", "user", "system"))
        rows.append(
            (
                name,
                how,
                step,
                user,
                system,
                f"{used:.2f}",
                f"{middle['left']:.0%}" if "left" in middle else "",
            )
        )
    text = table(rows)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
