"""What a step costs on 2 to 1,024 hosts: measured on two, predicted beyond.

Two ranks that share no memory measure the exchange of vectors of several lengths, and steps of real networks. What a
message costs follows from the vectors, by its length, and what a backward pass hides from when its gradients are complete; the
steps, which took no part in that, show how far the prediction is to be believed, and that their weights are those of one process.
For more hosts, messages and bytes are counted as the exchange sends them. Steps whose exchange waits for the end of the pass are
measured too.

    python benchmarks/scaling.py                       two ranks of this machine, by messages
    sudo python benchmarks/scaling.py --namespaces     two network namespaces joined by a cable, with TCP between them
    sudo python benchmarks/scaling.py --namespaces --delay 1 --loss 0.1     1 ms each way, 0.1 % of packets lost
    python benchmarks/scaling.py --latency 2e-6 --bandwidth 12e9     predict for another network
"""

from __future__ import annotations

import argparse
import hashlib
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
from unittest import mock

import distributed as twin
import numpy as np

from extensor.distributed import World, exchange
from extensor.distributed.exchange import Exchange
from extensor.distributed.reduction import Reduction
from extensor.distributed.sums import Layout
from extensor.distributed.tree import shards_of
from extensor.train.passes import Passes

RESULT = Path(__file__).parent / "results" / "scaling.md"
LENGTHS = [1 << 8, *(m << n for n in range(11, 19) for m in (2, 3)), 1 << 20]  # elements of float32
NETWORKS = ("mlp", "lenet", "resnet", "gpt")
SIDE = 64  # numbers beside a vector: losses and the like
IN_TURN = 3  # steps that count, before it is another's turn
COMPARED = 5  # steps after which weights are compared with those of one process
HOSTS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


class Sent(NamedTuple):
    """A piece of the gradients: its bytes, and how long before the end of the pass it was complete."""

    size: float
    before: float


class Network(NamedTuple):
    """What a message costs, by its length: seconds at some numbers of bytes, straight lines between them."""

    sizes: np.ndarray
    seconds: np.ndarray

    def message(self, size: float) -> float:
        beyond = size - self.sizes[-1]
        slope = (self.seconds[-1] - self.seconds[-2]) / (self.sizes[-1] - self.sizes[-2])
        return float(np.interp(size, self.sizes, self.seconds)) + max(beyond, 0.0) * slope

    def exchange(self, pieces: list[Sent], hosts: int) -> float:
        """What is left of an exchange when the backward pass ends: parts of the pieces to the hosts that add them, one after
        the other as they are complete, and losses and statistics of the shards around to all; then the parameters that each
        host moved around to all.

        Parts and parameters are the share (hosts - 1) / hosts of the bytes; what goes around doubles with each message.
        """
        share, around = (hosts - 1) / hosts, math.ceil(math.log2(hosts))
        sent = -math.inf
        for size, before in pieces:
            sent = max(sent, -before * 2 / hosts) + self.message(size * share) - self.message(0)
        moved = self.message(sum(size for size, _ in pieces) * share)
        return max(sent + self.message(0), around * self.message(0)) + moved + (around - 1) * self.message(0)


def by_vectors(times: dict[int, float]) -> Network:
    """What vectors of several lengths say on two hosts: each takes two messages of half of its bytes."""
    sizes = np.array([4 * length / 2 for length in times], float)
    seconds = np.array(list(times.values())) / 2
    return Network(np.concatenate([[0.0], sizes]), np.concatenate([[seconds.min()], seconds]))


def by_numbers(latency: float, bandwidth: float) -> Network:
    """latency + bytes / bandwidth"""
    return Network(np.array([0.0, bandwidth]), np.array([latency, latency + 1.0]))


# What one rank measures


def exchange_step(world: World, length: int) -> Callable[[], Any]:
    vectors = Exchange(world.hosts, Layout([(length,)], np.float32), [[0], [1]], 2, SIDE, world.compress)
    vectors.slots[0][:] = world.rank

    def step() -> None:
        Reduction(vectors, 2, whole=False).finish()
        vectors.gather_slices([vectors.result[own] for own in vectors.own])

    return step


def half_step(name: str) -> tuple[Any, Callable[[], Any]]:
    """What one of two ranks computes: a shard of half a batch, and an update; and the network."""
    model = twin.models.MODELS[name]

    def halved(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        inputs, targets = model.data(rng)
        part = shards_of(0, 2, len(inputs))
        return inputs[part.start : part.stop], targets[part.start : part.stop]

    twin.models.MODELS["half"] = model._replace(data=halved)
    return twin.sharded_training("half", World.alone(), 1, divides=True)


def pieces_of(network: Any, step: Callable[[], Any]) -> list[Sent]:
    """The pieces of a network in a step whose gradients nobody takes, the quickest of some."""
    parameters = list(network.parameters())
    pieces = Layout([p.shape for p in parameters], np.float32).pieces(
        exchange._MOST_PIECES, exchange._PIECE_BYTES
    )
    told: dict[int, float] = {}

    def note(leaf: Any) -> None:
        told[id(leaf)] = time.perf_counter()

    found = []
    tell = Passes.learn_telling
    for _ in range(10):
        told.clear()
        with mock.patch.object(Passes, "learn_telling", lambda passes, _: tell(passes, note)):
            step()
        if told:
            end = max(told.values())
            found.append([end - max(told[id(p)] for p in parameters[piece.tensors]) for piece in pieces])
    before = min(found, key=lambda row: row[0])
    return [Sent(4 * piece.layout.length, time) for piece, time in zip(pieces, before)]


def digest(name: str, world: World) -> str:
    """Of the weights after some steps of a batch in two shards."""
    network, step = twin.sharded_training(name, world, 2)
    for _ in range(COMPARED):
        step()
    found = hashlib.sha256()
    for value in network.state_dict().values():
        found.update(value.numpy().tobytes())
    return found.hexdigest()


def rank(rounds: int) -> None:
    """Median times of all, a few steps of each in turn: what else the machine does then concerns them alike."""
    with World(timeout=60) as world:
        if world.size != 2 or world.hosts.count != 2:
            raise SystemExit("two ranks on two hosts are needed")
        same = {
            name: set(world.gather(digest(name, world))) == {digest(name, World.alone())} for name in NETWORKS
        }
        steps: dict[tuple[str, Any], Callable[[], Any]] = {
            ("vectors", length): exchange_step(world, length) for length in LENGTHS
        }
        pieces = {}
        late = World(timeout=60)
        for name in NETWORKS:
            steps["step", name] = twin.sharded_step(name, world, 2)
            steps["late", name] = twin.sharded_step(name, late, 2)
            with mock.patch.object(exchange, "_MOST_PIECES", 1):
                steps["late", name]()  # what is exchanged in one piece waits for the end of the pass
            network, steps["alone", name] = half_step(name)  # without anybody to exchange with
            pieces[name] = pieces_of(network, steps["alone", name])
        times: dict[tuple[str, Any], list[float]] = {key: [] for key in steps}
        order = np.random.default_rng(
            0
        )  # TCP remembers how much the last one sent: each comes after each of the others
        for _ in range(rounds):
            for number in order.permutation(len(steps)):
                key, step = list(steps.items())[number]
                world.barrier()
                step()  # which begins on the two hosts as the barrier lets them go
                for _ in range(IN_TURN):
                    began = time.perf_counter()
                    step()
                    times[key].append(time.perf_counter() - began)
        slower = {
            key: np.maximum(*world.gather(every)) for key, every in times.items()
        }  # who the other waits for
        if world.rank == 0:
            found: dict[str, Any] = {
                "vectors": {}, "step": {}, "late": {}, "alone": {}, "same bits": same, "pieces": pieces,
            }  # fmt: skip
            for (kind, name), every in slower.items():
                found[kind][name] = float(np.median(every))
            found["parameters"] = {
                name: sum(p.size for p in twin.models.MODELS[name].ours().parameters()) for name in NETWORKS
            }
            print(json.dumps(found), flush=True)


# Two hosts


@contextmanager
def cable(delay: float, loss: float, devices: tuple[str, str]) -> Iterator[None]:
    """Two network devices, of which each gets what the other sends: at once, or later and not all of it."""
    if not delay and not loss:
        subprocess.run(
            ["ip", "link", "add", devices[0], "type", "veth", "peer", "name", devices[1]], check=True
        )
        yield
        return
    source = Path(__file__).with_name("lossy_link.cpp")
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "lossy_link"))
        subprocess.run(["g++", "-O2", "-o", program, str(source)], check=True)
        line = [program, *devices, str(delay), str(loss), "0"]
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as link:
            assert link.stdin is not None
            assert link.stdout is not None
            if link.stdout.readline() != "ready\n":
                raise SystemExit("the cable cannot be made: is /dev/net/tun there?")
            try:
                yield
            finally:
                link.stdin.close()


@contextmanager
def namespaces(delay: float, loss: float) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Two network namespaces joined by a cable; yields how to start two ranks in them."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    names, addresses, devices = ("extensor-a", "extensor-b"), ("10.79.0.1", "10.79.0.2"), ("exa", "exb")
    with tempfile.TemporaryDirectory() as folder, cable(delay, loss, devices):
        starter = Path(folder, "start")
        starter.write_text(
            '#!/bin/bash\nwhile [[ "$1" == -* ]]; do shift; done\nhost=$1; shift\n'
            f'[ "$host" = {addresses[0]} ] && space={names[0]} || space={names[1]}\n'
            'exec ip netns exec $space bash -c "$*"\n'
        )
        starter.chmod(0o755)
        try:
            for name, device, address, other in zip(names, devices, addresses, addresses[::-1]):
                ip("netns", "add", name)
                ip("link", "set", device, "netns", name)
                ip("-n", name, "addr", "add", address, "peer", other, "dev", device)
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", device, "up")
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
def one_machine(rounds: int) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Two ranks that may not share memory."""
    program = ["-n", "1", "-env", "EXTENSOR_HOST"]
    yield [_mpiexec(), *program, "a", *_me(rounds), ":", *program, "b"], {}


def _me(rounds: int) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "--rank", "--rounds", str(rounds)]


def _mpiexec() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "mpiexec")


def measured(given: argparse.Namespace) -> dict[str, Any]:
    hosts = namespaces(given.delay, given.loss) if given.namespaces else one_machine(given.rounds)
    with hosts as (line, environment):
        variables = os.environ | {"EXTENSOR_NUM_THREADS": "1"} | environment
        done = subprocess.run([*line, *_me(given.rounds)], env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


# The page


def prediction(network: Network, alone: float, pieces: list[Sent], hosts: int) -> float:
    """Seconds of a step whose batch is shared by so many hosts; ``alone`` is that of half of the batch, as ``pieces`` are."""
    return 2 * alone / hosts + network.exchange(pieces, hosts)


def _bandwidth(network: Network) -> float:
    """Bytes per second of long messages."""
    return float((network.sizes[-1] - network.sizes[-2]) / (network.seconds[-1] - network.seconds[-2]))


def page(found: dict[str, Any], network: Network, where: str) -> str:
    rows = []
    for name in NETWORKS:
        step, late, alone, parameters = (found[key][name] for key in ("step", "late", "alone", "parameters"))
        guess = prediction(network, alone, found["pieces"][name], 2)
        same = "yes" if found["same bits"][name] else "NO"
        rows.append(
            f"| {name} | {parameters:,} | {len(found['pieces'][name])} | {alone * 1e3:.2f} | {late * 1e3:.2f} | {step * 1e3:.2f} | {guess * 1e3:.2f} | {guess / step - 1:+.0%} | {same} |"
        )
    vectors = ", ".join(f"{4 * int(n) / 1024:,.0f} KiB {s * 1e3:.3f} ms" for n, s in found["vectors"].items())
    further = []
    for name in NETWORKS:
        alone, pieces = found["alone"][name], found["pieces"][name]
        times = {hosts: prediction(network, alone, pieces, hosts) for hosts in HOSTS}
        one = 2 * alone
        pays = [hosts for hosts in HOSTS if one / times[hosts] / hosts >= 0.5]
        fastest_at = min(times, key=times.__getitem__)
        cells = " | ".join(f"{times[hosts] * 1e3:.2f}" for hosts in HOSTS)
        further.append(
            f"| {name} | {one * 1e3:.1f} | {cells} | {max(pays, default=1)} | {fastest_at if times[fastest_at] < one else 1} |"
        )
    return f"""# Measured: two ranks of one thread that share no memory, {where}

Medians. Sum and update of a vector: {vectors}.
An empty message takes {network.message(0) * 1e6:.0f} µs, long ones pass {_bandwidth(network) / 1e9:.2f} GB/s.

*at the end*: the exchange waits for the backward pass; *step*: complete pieces travel meanwhile, as in a run.

| network | parameters | pieces | half a batch alone, ms | at the end, ms | step, ms | predicted, ms | error | bits of one process |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
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
    parser.add_argument("--delay", type=float, default=0.0, help="milliseconds each way")
    parser.add_argument("--loss", type=float, default=0.0, help="per cent of packets")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--latency", type=float, help="seconds per message of the network to predict for")
    parser.add_argument("--bandwidth", type=float, help="bytes per second of it")
    given = parser.parse_args()
    if given.rank:
        rank(given.rounds)
        return
    began = time.perf_counter()
    found = measured(given)
    network = by_vectors({int(n): s for n, s in found["vectors"].items()})
    where = "in two network namespaces joined by TCP" if given.namespaces else "on one machine"
    if given.delay or given.loss:
        where += f", {given.delay:g} ms of delay each way and {given.loss:g} % of packets lost"
    if given.latency or given.bandwidth:
        network = by_numbers(given.latency or network.message(0), given.bandwidth or _bandwidth(network))
    text = page(found, network, where)
    print(text)
    RESULT.write_text(text)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
