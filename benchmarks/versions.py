"""Two installed versions of ExTensor against each other: calls of 16 elements, second derivatives, training steps.

    python benchmarks/versions.py OTHER_PYTHON [case ...]
    python benchmarks/versions.py OTHER_PYTHON "bench softmax" "bench reduction"     the cases of `extensor bench`, up to 1M

Each version runs in a process of its own; the two take turns, case by case, in many short rounds, so that both see the same
quiet moments of the machine. Printed are the minima and their ratio, this version's time over the other's.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

GROUPS = ("small", "second order", "step", "bench")


def cases() -> dict[str, Callable[[], Any]]:
    """Every case by its name, which starts with its group."""
    import numpy as np

    import extensor as et
    from extensor import nn, optim

    rng = np.random.default_rng(0)
    x = et.tensor(np.linspace(0.1, 0.9, 16), dtype=et.float32)
    y = et.tensor(np.linspace(0.2, 1.9, 16), dtype=et.float32)
    m, row, ones = x.reshape((4, 4)), et.ones(4), et.ones((4, 4))
    xr, mr = et.tensor(x, requires_grad=True), et.tensor(m, requires_grad=True)
    weight, bias = et.tensor(m, requires_grad=True), et.tensor(row, requires_grad=True)
    labels, one, half = et.tensor([0, 1, 2, 3]), et.tensor(1.0), x * 0.5
    signs, image, kernel = et.sign(x - 0.5) + (x == 0.5), m.reshape((1, 1, 4, 4)), et.ones((1, 1, 3, 3))
    found: dict[str, Callable[[], Any]] = {
        "small add": lambda: et.add(x, y),
        "small x + 1.0": lambda: x + 1.0,
        "small x * y, recorded": lambda: xr * y,
        "small exp": lambda: et.exp(x),
        "small tanh, recorded": lambda: et.tanh(xr),
        "small relu_backward": lambda: et.relu_backward(x, y),
        "small multiply_backward": lambda: et.multiply_backward(x, x, y),
        "small a row added": lambda: m + row,
        "small less": lambda: x < y,
        "small where": lambda: et.where(labels == 0, row, row),
        "small clip": lambda: et.clip(x, 0.0, 1.0),
        "small x ** 2": lambda: x**2,
        "small gelu": lambda: et.gelu(x),
        "small softmax": lambda: et.softmax(m),
        "small softmax_backward": lambda: et.softmax_backward(ones, m),
        "small sum": lambda: et.sum(x),
        "small sum of rows, recorded": lambda: et.sum(mr, axis=1),
        "small mean_backward": lambda: et.mean_backward(one, (4, 4)),
        "small variance": lambda: et.variance(m, axis=-1),
        "small max": lambda: et.max_reduce(m, axis=1),
        "small argmax": lambda: et.argmax(m, axis=1),
        "small matmul": lambda: et.matmul(m, m),
        "small linear, recorded": lambda: et.linear(mr, weight, bias),
        "small linear_backward": lambda: et.linear_backward(ones, m, m),
        "small cross_entropy": lambda: et.cross_entropy(m, labels),
        "small cross_entropy, recorded": lambda: et.cross_entropy(mr, labels),
        "small cross_entropy_backward": lambda: et.cross_entropy_backward(one, m, labels),
        "small mean_squared_error": lambda: et.mean_squared_error(x, y),
        "small binary_cross_entropy": lambda: et.binary_cross_entropy(x, half),
        "small hinge": lambda: et.hinge(x, signs),
        "small reshape": lambda: x.reshape((4, 4)),
        "small T": lambda: m.T,
        "small x[1]": lambda: m[1],
        "small x[:, 1:3]": lambda: m[:, 1:3],
        "small take": lambda: et.take(m, labels, 0),
        "small embedding": lambda: et.embedding(labels, m),
        "small concatenate": lambda: et.concatenate([m, m]),
        "small stack": lambda: et.stack([x, y]),
        "small pad": lambda: et.pad(m, 1),
        "small astype": lambda: x.astype(et.float64),
        "small layer_norm": lambda: et.layer_norm(m, 4),
        "small conv2d": lambda: et.conv2d(image, kernel, padding=1),
        "small max_pool2d": lambda: et.max_pool2d(image, 2),
    }

    w1, w2 = (
        et.tensor(rng.normal(size=(8, 16)), dtype=et.float32),
        et.tensor(rng.normal(size=(16, 1)), dtype=et.float32),
    )
    inputs = et.tensor(rng.normal(size=(4, 8)), dtype=et.float32)

    def network(v: Any) -> Any:
        return et.tanh(et.tanh(v @ w1) @ w2).sum()

    def penalty(weight: Any) -> Any:
        slope = et.grad(lambda v: et.sigmoid(et.matmul(v, weight)).sum())(inputs)
        return et.square(et.sqrt(et.square(slope).sum(axis=1)) - 1.0).mean()

    found["second order hessian"] = lambda: et.hessian(network)(inputs)
    found["second order hvp"] = lambda: et.hvp(network, inputs, inputs)
    found["second order gradient penalty"] = lambda: et.grad(penalty)(w1)
    found["second order softmax hvp"] = lambda: et.hvp(
        lambda v: et.log_softmax(v @ w1)[:, 0].sum(), inputs, inputs
    )

    et.seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    adam = optim.Adam(model.parameters())
    batch, targets = et.random.normal(0, (32, 64)), et.random.integers(1, 0, 10, (32,))

    def step() -> None:
        adam.zero_grad()
        et.cross_entropy(model(batch), targets).backward()
        adam.step()

    found["step MLP 64-64-10, Adam"] = step
    return found


def bench_cases() -> dict[str, Callable[[], Any]]:
    """Those of `extensor bench`, each made when it is first called."""
    from extensor.bench.cases import cases

    def run_of(make: Callable[[], dict[str, Callable[[], Any]]]) -> Callable[[], Any]:
        made: list[Callable[[], Any]] = []

        def run() -> Any:
            if not made:
                made.append(make()["extensor"])
            return made[0]()

        return run

    return {f"bench {c.group} {c.name} {c.size}": run_of(c.make) for c in cases({}) if "8M" not in c.size}


def serve(wanted: list[str]) -> None:
    """Answer the number of a case on standard input with its time."""
    found = bench_cases() if any(w.startswith("bench") for w in wanted) else cases()
    chosen = {name: f for name, f in found.items() if not wanted or any(w in name for w in wanted)}
    for run in chosen.values():
        for _ in range(5):
            run()
    print(json.dumps(list(chosen)), flush=True)
    runs = list(chosen.values())
    for line in sys.stdin:
        run = runs[int(line)]
        start = time.perf_counter()
        run()
        count = max(1, int(0.0005 / (time.perf_counter() - start)))
        best = math.inf
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(count):
                run()
            best = min(best, (time.perf_counter() - start) / count)
        print(best, flush=True)


def main(other: str, wanted: list[str], rounds: int = 30) -> None:
    pythons = {"this": sys.executable, "other": other}
    servers = {
        name: subprocess.Popen(
            [python, __file__, "--serve", *wanted], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name, python in pythons.items()
    }
    names, others = (json.loads(server.stdout.readline()) for server in servers.values())
    if names != others:
        sys.exit("the two versions have different cases; name those of both")
    best = {name: dict.fromkeys(servers, math.inf) for name in names}
    for _ in range(rounds):
        for i, name in enumerate(names):
            for version, server in servers.items():
                server.stdin.write(f"{i}\n")
                server.stdin.flush()
                best[name][version] = min(best[name][version], float(server.stdout.readline()))
    print(f"{'':48}{'this µs':>10}{'other µs':>10}{'ratio':>8}")
    for name, times in best.items():
        print(
            f"{name:48}{times['this'] * 1e6:10.2f}{times['other'] * 1e6:10.2f}{times['this'] / times['other']:8.2f}"
        )
    for group in GROUPS:
        ratios = [t["this"] / t["other"] for name, t in best.items() if name.startswith(group)]
        if ratios:
            print(f"{group + ', geometric mean':68}{math.exp(sum(map(math.log, ratios)) / len(ratios)):8.2f}")
    for server in servers.values():
        server.stdin.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--serve":
        serve(sys.argv[2:])
    else:
        main(sys.argv[1], sys.argv[2:])
