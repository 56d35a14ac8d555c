"""Two processes of one thread each against PyTorch's DistributedDataParallel (gloo), and against one process of two threads.

The same networks, weights, optimisers and global batches as benchmarks/models.py; each process computes half of a batch. The
contestants take turns, and the fastest step of all turns counts: the machine may have other work. Needs torch, mpi4py, mpich.

    python benchmarks/distributed.py
    python benchmarks/distributed.py --only mlp lenet --turns 5 --steps 60
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import numpy as np

import extensor as et
from extensor import data, train
from extensor.data.shards import ShardedBatch, shard_sizes
from extensor.distributed import World
from extensor.distributed.reduction import Reduction
from extensor.distributed.sums import Layout
from extensor.distributed.tree import shards_of
from extensor.train.divided_optimizer import DividedOptimizer
from extensor.train.sharded_gradients import ShardedGradients

RESULT = Path(__file__).parent / "results" / "distributed.md"
REDUCED = 100 << 20  # bytes of the vector that is summed alone
TOGETHER = ("ours, 2 shards", "ours, 8 shards", "ours, exchange", "torch")  # two processes of one thread
ALONE = ("two threads", "one thread", "one thread, 1 shard", "one thread, 8 shards")
NAMES = ("mlp", "lenet", "resnet", "gpt")


def best(step: Callable[[], Any], steps: int, warm_up: int = 5) -> float:
    """The fastest of some steps, in milliseconds, after a few that do not count."""
    found = math.inf
    for number in range(steps + warm_up):
        began = time.perf_counter()
        step()
        if number >= warm_up:
            found = min(found, time.perf_counter() - began)
    return found * 1e3


# What one process of a job does


def sharded_training(
    name: str, world: World, shards: int, divides: bool = False
) -> tuple[Any, Callable[[], Any]]:
    """A network, and a step of the trainer without its log: gradients over the own shards, exchange, divided update.

    With ``divides`` the update goes the way of many ranks on one as well.
    """
    model = models.MODELS[name]
    network = model.ours()
    optimizer = getattr(et.optim, model.optimizer)(network.parameters(), **model.options)

    def loss(logits: Any, targets: Any) -> Any:
        return et.cross_entropy(
            logits.reshape((targets.size, logits.shape[-1])), targets.reshape((targets.size,))
        )

    inputs, targets = model.data(np.random.default_rng(0))
    trainer = train.Trainer(network, optimizer, loss, world=world, shards=shards, display="off")
    loader = data.DataLoader(data.Dataset(inputs, targets), len(inputs))
    sizes = shard_sizes(len(inputs), shards)
    parts = {
        s: loader._gathered(0, np.arange(s * sizes[0], s * sizes[0] + sizes[s]))
        for s in shards_of(world.position, world.size, shards)
        if sizes[s]
    }
    batch = ShardedBatch(len(inputs), sum(size > 0 for size in sizes), parts)
    gradients = ShardedGradients(trainer, world, shards)
    divides = divides or world.size > 1
    gradients.whole = not divides
    mover: Any = DividedOptimizer(optimizer, gradients) if divides else optimizer

    def step() -> None:
        gradients([batch])
        mover.step()

    return network, step


def sharded_step(name: str, world: World, shards: int) -> Callable[[], Any]:
    return sharded_training(name, world, shards)[1]


def reduce_step(world: World) -> Callable[[], Any]:
    exchange = world.exchange(Layout([(REDUCED // 4,)], np.float32), [[0], [1]], 2)
    exchange.slots[0][:] = world.rank + 1
    return lambda: Reduction(exchange, 2).finish()


def exchange_step(name: str, world: World) -> Callable[[], Any]:
    """What a step does beside computing: the sum of the gradients, and the parameters that each rank has moved."""
    layout = Layout([p.shape for p in models.MODELS[name].ours().parameters()], np.float32)
    exchange = world.exchange(layout, [[0], [1]], 2, 1 + len(layout.shapes))
    exchange.slots[0][:] = world.rank + 1

    def step() -> None:
        Reduction(exchange, 2, whole=False).finish()
        exchange.gather_slices([exchange.result[own] for own in exchange.own])

    return step


def our_rank(name: str, kind: str, steps: int) -> None:
    with World() as world:
        if name == "reduce":
            step = reduce_step(world)
        elif kind == "ours, exchange":
            step = exchange_step(name, world)
        else:
            step = sharded_step(name, world, 8 if "8" in kind else 2)
        found = best(step, steps)
        if world.rank == 0:
            print(json.dumps(found), flush=True)


def torch_rank(name: str, steps: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if name == "reduce":
        vector = torch.ones(REDUCED // 4)
        found = best(lambda: dist.all_reduce(vector), steps)
    else:
        model = models.MODELS[name]
        network = model.theirs(torch)
        network.load_state_dict({n: torch.tensor(p.numpy()) for n, p in model.ours().state_dict().items()})
        inputs, targets = model.data(np.random.default_rng(0))
        half = slice(rank * len(inputs) // 2, (rank + 1) * len(inputs) // 2)
        x, y = torch.tensor(inputs[half]), torch.tensor(targets[half]).reshape(-1)
        twin = torch.nn.parallel.DistributedDataParallel(network)
        optimizer = getattr(torch.optim, model.optimizer)(twin.parameters(), **model.options)

        def step() -> float:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(twin(x).reshape(y.numel(), -1), y)
            loss.backward()
            optimizer.step()
            return float(loss.detach())

        found = best(step, steps)
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def in_turn(step: Callable[[], Any]) -> None:
    """A step for each line that is read, and its time."""
    for _ in sys.stdin:
        print(json.dumps(best(step, 1, warm_up=0)), flush=True)


# The driver


def _threads(count: int) -> dict[str, str]:
    return os.environ | {"EXTENSOR_NUM_THREADS": str(count), "OMP_NUM_THREADS": str(count)}


def _say(line: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def run(kind: str, name: str, steps: int) -> float:
    """One turn of a contestant."""
    program = [sys.executable, str(Path(__file__).resolve())]
    tail = [name, "--steps", str(steps)]
    mpiexec = str(Path(sysconfig.get_path("scripts")) / "mpiexec")
    if kind.startswith("ours"):
        return _say([mpiexec, "-n", "2", *program, "--rank", kind, *tail], _threads(1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = _threads(1) | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    line = [*program, "--rank", "torch", *tail]
    other = subprocess.Popen(line, env=common | {"RANK": "1"}, stdout=subprocess.DEVNULL)
    try:
        return _say(line, common | {"RANK": "0"})
    finally:
        other.wait(60)


def run_in_turn(name: str, steps: int) -> dict[str, float]:
    """Those of one process, a step of each at a time: the frequency of a processor may change between two runs."""
    program = [sys.executable, str(Path(__file__).resolve())]
    jobs = {
        kind: subprocess.Popen(
            [*program, "--rank", kind, name],
            env=_threads(2 if kind == "two threads" else 1),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for kind in ALONE
    }  # fmt: skip
    found = dict.fromkeys(ALONE, math.inf)
    for number in range(steps + 5):
        for kind, job in jobs.items():
            assert job.stdin is not None
            assert job.stdout is not None
            job.stdin.write("go\n")
            job.stdin.flush()
            took = float(json.loads(job.stdout.readline()))
            if number >= 5:
                found[kind] = min(found[kind], took)
    for job in jobs.values():
        job.communicate()
    return found


def measure(names: list[str], turns: int, steps: int) -> str:
    kinds = [*TOGETHER, *ALONE]
    rows, ratios = [], []
    for name in names:
        found = dict.fromkeys(kinds, math.inf)
        for _ in range(turns):
            turn = {kind: run(kind, name, steps) for kind in TOGETHER} | run_in_turn(name, steps)
            found = {kind: min(found[kind], turn[kind]) for kind in kinds}
        ratios.append(found["ours, 2 shards"] / found["torch"])
        undivided = min(found["one thread"], found["one thread, 1 shard"])
        cost = found["one thread, 8 shards"] / undivided
        cells = [f"{found[kind]:.{3 if 'exchange' in kind else 2}f}" for kind in kinds]
        rows.append(f"| {models.MODELS[name].title} | {' | '.join(cells)} | {ratios[-1]:.2f} | {cost:.2f} |")
        print(rows[-1], flush=True)
    ours, theirs = (min(run(kind, "reduce", 8) for _ in range(turns)) for kind in ("ours, 2 shards", "torch"))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"""Milliseconds per step, the fastest of {turns} x {steps}. Two processes of one thread each: ExTensor with batches cut into 2 and
into 8 shards, its exchange of gradients and parameters alone, PyTorch DistributedDataParallel over gloo. One process: a loop
of one's own with two threads and with one, and the trainer's step with one thread and 1 and 8 shards. *ratio* is ExTensor (2 shards)
over PyTorch, *cut* 8 shards on one thread over the faster of the two that leave the batch undivided.

| network | 2 ranks, 2 shards | 2 ranks, 8 shards | exchange alone | PyTorch DDP | 2 threads | 1 thread | 1 thread, 1 shard | 1 thread, 8 shards | ratio | cut |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

Geometric mean of the ratios: {mean:.2f}. Sum of {REDUCED >> 20} MiB of float32 on two ranks: {ours:.1f} ms, gloo {theirs:.1f} ms,
ratio {ours / theirs:.2f}.
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?")
    parser.add_argument("--rank")
    parser.add_argument("--only", nargs="*", default=list(NAMES))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    if given.rank is None:
        text = measure(given.only, given.turns, given.steps)
        print(text)
        RESULT.write_text(text)
    elif given.rank.startswith("ours"):
        our_rank(given.name, given.rank, given.steps)
    elif given.rank == "torch":
        torch_rank(given.name, given.steps)
    elif "shard" in given.rank:
        in_turn(sharded_step(given.name, World.alone(), 8 if "8" in given.rank else 1))
    else:
        in_turn(models.our_step(models.MODELS[given.name]))


if __name__ == "__main__":
    main()
