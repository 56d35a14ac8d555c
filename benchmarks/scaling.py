"""What a step costs on 2 to 1,024 hosts: measured on two, predicted beyond.

Two ranks that share no memory measure the exchange of vectors of several lengths, and steps of real networks. The times
follow  latency + bytes / bandwidth,  whose two numbers are fitted to the vectors; the steps, which took no part in the fit,
show how far the prediction is to be believed. For more hosts, messages and bytes are counted as the exchange sends them.

    python benchmarks/scaling.py                       two ranks of this machine, by messages
    sudo python benchmarks/scaling.py --namespaces     two network namespaces joined by a cable, with TCP between them
    sudo python benchmarks/scaling.py --namespaces --delay 1ms --loss 0.01%
    python benchmarks/scaling.py --latency 2e-6 --bandwidth 12e9     predict for another network
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import distributed as twin
import numpy as np

from extensor.distributed import World
from extensor.distributed.sums import Layout
from extensor.distributed.tree import shards_of

RESULT = Path(__file__).parent / "results" / "scaling.md"
LENGTHS = [1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22]  # elements of float32
NETWORKS = ("mlp", "lenet", "resnet", "gpt")
HOSTS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


class Network(NamedTuple):
    """Seconds per message, bytes per second, and seconds per byte of what a rank does with the bytes itself."""

    latency: float
    bandwidth: float

    def exchange(self, size: float, hosts: int) -> float:
        """Parts to the hosts that add them, all at once; then the parameters they moved around to all.

        Each of the two moves the share (hosts - 1) / hosts of the bytes; what goes around doubles with each message.
        """
        moved = size * (hosts - 1) / hosts / self.bandwidth
        messages = 1 + math.ceil(math.log2(hosts))
        return messages * self.latency + 2 * moved


def fit(times: dict[int, float]) -> Network:
    """Latency and bandwidth that explain the times of vectors on two hosts, relative errors weighing alike."""
    sizes = np.array([4 * length for length in times], float)
    seconds = np.array(list(times.values()))
    columns = np.stack([np.full_like(sizes, 2.0), sizes], 1)  # two messages, half of the bytes in each
    found, *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones_like(seconds), rcond=None)
    return Network(max(float(found[0]), 1e-9), 1 / max(float(found[1]), 1e-15))


# What one rank measures


def fastest(step: Callable[[], Any], steps: int) -> float:
    return twin.best(step, steps) / 1e3


def exchange_step(world: World, length: int) -> Callable[[], Any]:
    exchange = world.exchange(Layout([(length,)], np.float32), [[0], [1]], 2)
    exchange.slots[0][:] = world.rank

    def step() -> None:
        exchange.reduce(2, whole=False)
        exchange.gather_slices(exchange.result[exchange.own])

    return step


def rank(steps: int) -> None:
    found: dict[str, Any] = {"vectors": {}, "alone": {}, "step": {}, "parameters": {}}
    with World(timeout=60) as world:
        if world.size != 2 or world.hosts.count != 2:
            raise SystemExit("two ranks on two hosts are needed")
        for length in LENGTHS:
            found["vectors"][length] = fastest(
                exchange_step(world, length), steps if length < 1 << 20 else steps // 3
            )
        for name in NETWORKS:
            found["step"][name] = fastest(twin.sharded_step(name, world, 2), steps)
            world.barrier()
            found["parameters"][name] = sum(p.size for p in twin.models.MODELS[name].ours().parameters())
            # one of two shards, without anybody to exchange with
            found["alone"][name] = fastest(half_step(name), steps)
            world.barrier()
        if world.rank == 0:
            print(json.dumps(found), flush=True)


def half_step(name: str) -> Callable[[], Any]:
    """What one of two ranks computes: a shard of half a batch, and half of the update."""
    model = twin.models.MODELS[name]

    def halved(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        inputs, targets = model.data(rng)
        part = shards_of(0, 2, len(inputs))
        return inputs[part.start : part.stop], targets[part.start : part.stop]

    twin.models.MODELS["half"] = model._replace(data=halved)
    return twin.sharded_step("half", World.alone(), 1)


# Two hosts


@contextmanager
def namespaces(delay: str, loss: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Two network namespaces joined by a virtual cable; yields how to start two ranks in them."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    names, addresses = ("extensor-a", "extensor-b"), ("10.79.0.1", "10.79.0.2")
    with tempfile.TemporaryDirectory() as folder:
        starter = Path(folder, "start")
        starter.write_text(
            '#!/bin/bash\nwhile [[ "$1" == -* ]]; do shift; done\nhost=$1; shift\n'
            f'[ "$host" = {addresses[0]} ] && space={names[0]} || space={names[1]}\n'
            'exec ip netns exec $space bash -c "$*"\n'
        )
        starter.chmod(0o755)
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", "exa", "type", "veth", "peer", "name", "exb")
            for name, device, address in zip(names, ("exa", "exb"), addresses):
                ip("link", "set", device, "netns", name)
                ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", device, "up")
                if delay != "0ms" or loss != "0%":
                    shape = ["root", "netem", "delay", delay, "loss", loss]
                    subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", device, *shape], check=True)
            line = [
                "ip",
                "netns",
                "exec",
                names[0],
                _mpiexec(),
                "-localhost",
                addresses[0],
                "-launcher",
                "ssh",
            ]
            line += ["-launcher-exec", str(starter), "-hosts", ",".join(addresses), "-n", "2", "-ppn", "1"]
            yield line, {"UCX_TLS": "tcp,self"}
        finally:
            for name in names:
                subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextmanager
def one_machine() -> Iterator[tuple[list[str], dict[str, str]]]:
    """Two ranks that may not share memory."""
    program = ["-n", "1", "-env", "EXTENSOR_HOST"]
    me = [sys.executable, str(Path(__file__).resolve()), "--rank"]
    yield [_mpiexec(), *program, "a", *me, ":", *program, "b"], {}


def _mpiexec() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "mpiexec")


def measured(given: argparse.Namespace) -> dict[str, Any]:
    hosts = namespaces(given.delay, given.loss) if given.namespaces else one_machine()
    with hosts as (line, environment):
        program = [sys.executable, str(Path(__file__).resolve()), "--rank", "--steps", str(given.steps)]
        variables = os.environ | {"EXTENSOR_NUM_THREADS": "1"} | environment
        done = subprocess.run([*line, *program], env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


# The page


def prediction(network: Network, alone: float, parameters: int, hosts: int) -> float:
    """Seconds of a step whose batch is shared by so many hosts; ``alone`` is that of half of the batch."""
    return 2 * alone / hosts + network.exchange(4 * parameters, hosts)


def page(found: dict[str, Any], network: Network, where: str) -> str:
    rows = []
    for name in NETWORKS:
        step, alone, parameters = (found[key][name] for key in ("step", "alone", "parameters"))
        guess = prediction(network, alone, parameters, 2)
        rows.append(
            f"| {name} | {parameters:,} | {alone * 1e3:.2f} | {step * 1e3:.2f} | {guess * 1e3:.2f} | {guess / step - 1:+.0%} |"
        )
    vectors = ", ".join(f"{4 * int(n) / 1024:,.0f} KiB {s * 1e3:.3f} ms" for n, s in found["vectors"].items())
    further = []
    for name in NETWORKS:
        alone, parameters = found["alone"][name], found["parameters"][name]
        times = {hosts: prediction(network, alone, parameters, hosts) for hosts in HOSTS}
        one = 2 * alone
        pays = [hosts for hosts in HOSTS if one / times[hosts] / hosts >= 0.5]
        fastest_at = min(times, key=times.__getitem__)
        cells = " | ".join(f"{times[hosts] * 1e3:.2f}" for hosts in HOSTS)
        further.append(
            f"| {name} | {one * 1e3:.1f} | {cells} | {max(pays, default=1)} | {fastest_at if times[fastest_at] < one else 1} |"
        )
    return f"""# Measured: two ranks of one thread that share no memory, {where}

Sum and update of a vector: {vectors}. Fitted: {network.latency * 1e6:.0f} µs per message, {network.bandwidth / 1e9:.2f} GB/s.

| network | parameters | half a batch alone, ms | step of both, ms | predicted, ms | error |
| --- | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

# Predicted: the same batch on more hosts of this kind, ms per step

Nothing in this table was measured. *pays to*: the most hosts that still compute half of the time; *fastest*: where another
host makes the step longer. A larger batch per step moves both to the right in proportion.

| network | 1 host | {" | ".join(map(str, HOSTS))} | pays to | fastest |
| --- | {" | ".join("---:" for _ in range(len(HOSTS) + 3))} |
{chr(10).join(further)}
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", action="store_true", help="be one of the two ranks")
    parser.add_argument("--namespaces", action="store_true", help="two network namespaces (needs root)")
    parser.add_argument("--delay", default="0ms")
    parser.add_argument("--loss", default="0%")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--latency", type=float, help="seconds per message of the network to predict for")
    parser.add_argument("--bandwidth", type=float, help="bytes per second of it")
    given = parser.parse_args()
    if given.rank:
        rank(given.steps)
        return
    began = time.perf_counter()
    found = measured(given)
    network = fit({int(n): s for n, s in found["vectors"].items()})
    where = "in two network namespaces joined by TCP" if given.namespaces else "on one machine"
    if given.delay != "0ms" or given.loss != "0%":
        where += f", {given.delay} of delay each way and {given.loss} of packets lost"
    if given.latency or given.bandwidth:
        network = Network(given.latency or network.latency, given.bandwidth or network.bandwidth)
    text = page(found, network, where)
    print(text)
    RESULT.write_text(text)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
