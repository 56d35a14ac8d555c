"""The first call of a function, and calls of shapes that were not met before: two installed versions against each other.

    python benchmarks/first_calls.py OTHER_PYTHON [rounds]

A first call happens once in a process, so each round is a new process of each version, in turns. Printed are the minima in
microseconds and the ratios, this version's time over the other's: of the first call; of the second, which makes the plan; of a
new shape; and of that shape again. Shapes are small, so that the time is that of the call and not of its kernel.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

COLUMNS = ("first", "second", "new shape", "once more")
UNARY = ["exp", "log", "tanh", "sigmoid", "relu", "gelu", "softplus", "sqrt", "square", "abs", "sin", "silu"]
BINARY = [
    "add",
    "multiply",
    "subtract",
    "divide",
    "maximum",
    "power",
    "relu_backward",
    "tanh_backward",
    "exp_backward",
    "sigmoid_backward",
]


def cases() -> dict[str, Callable[[int], Callable[[], Any]]]:
    """For each function, its call on tensors of a given length."""
    import numpy as np

    import extensor as et

    def t(*shape: int, seed: int = 0) -> et.ExTensor:
        return et.tensor(np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(np.float32))

    def of(function: Any, make: Callable[[int], tuple[Any, ...]], **options: Any) -> Callable[[int], Any]:
        def call_of(n: int) -> Callable[[], Any]:
            given = make(n)
            return lambda: function(*given, **options)

        return call_of

    def labels(n: int) -> et.ExTensor:
        return et.tensor(np.arange(n) % 3)

    found = {name: of(getattr(et, name), lambda n: (t(n),)) for name in UNARY}
    found |= {name: of(getattr(et, name), lambda n: (t(n), t(n, seed=1))) for name in BINARY}
    for name in ("multiply_backward", "divide_backward"):
        found[name] = of(getattr(et, name), lambda n: (t(n), t(n, seed=1), t(n, seed=2)))
    for name in ("sum", "max_reduce", "variance", "argmax"):
        found[name] = of(getattr(et, name), lambda n: (t(n, 3),), axis=1)
    for name in ("mean", "softmax", "log_softmax", "transpose"):
        found[name] = of(getattr(et, name), lambda n: (t(n, 3),))
    for name in ("concatenate", "stack"):
        found[name] = of(getattr(et, name), lambda n: ([t(n), t(n, seed=1)],))
    return found | {
        "matmul": of(et.matmul, lambda n: (t(n, 3), t(3, n))),
        "linear": of(et.linear, lambda n: (t(n, 3), t(4, 3), t(4))),
        "cross_entropy": of(et.cross_entropy, lambda n: (t(n, 3), labels(n))),
        "mean_squared_error": of(et.mean_squared_error, lambda n: (t(n), t(n, seed=1))),
        "reshape": of(et.reshape, lambda n: (t(n, 2), (2, n))),
        "pad": of(et.pad, lambda n: (t(n, 2), 1)),
        "clip": of(et.clip, lambda n: (t(n), 0.2, 0.8)),
        "conv2d": of(et.conv2d, lambda n: (t(1, 1, n + 4, 5), t(1, 1, 3, 3)), padding=1),
        "max_pool2d": of(et.max_pool2d, lambda n: (t(1, 1, 2 * n, 4), 2)),
        "layer_norm": of(et.layer_norm, lambda n: (t(n, 4), 4)),
        "embedding": of(et.embedding, lambda n: (labels(n), t(3, 4))),
        "where": of(et.where, lambda n: (t(n) > 0.5, t(n), t(n, seed=1))),
    }


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure() -> None:
    """One process: every column of every case, as JSON."""
    found = {}
    for name, call_of in cases().items():
        call, shapes = call_of(7), [call_of(n) for n in range(20, 60)]
        first, second = seconds(call), seconds(call)
        new, again = sorted(map(seconds, shapes)), sorted(map(seconds, shapes))
        found[name] = [first, second, new[10], again[10]]
    print(json.dumps(found))


def main(other: str, rounds: int = 7) -> None:
    best: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for python in (sys.executable, other):
            answer = subprocess.run([python, __file__, "--measure"], check=True, capture_output=True).stdout
            for name, times in json.loads(answer).items():
                known = best.setdefault(name, {}).setdefault(python, times)
                best[name][python] = list(map(min, known, times))
    print(f"{'this µs / other µs / ratio':22}" + "".join(f"{column:>24}" for column in COLUMNS))
    ratios = []
    for name, times in best.items():
        pairs = list(zip(times[sys.executable], times[other]))
        ratios.append([this / that for this, that in pairs])
        print(
            f"{name:22}"
            + "".join(f"{this * 1e6:10.1f}{that * 1e6:8.1f}{this / that:6.2f}" for this, that in pairs)
        )
    means = [math.exp(sum(map(math.log, column)) / len(column)) for column in zip(*ratios)]
    print(f"{'geometric mean':22}" + "".join(f"{mean:24.2f}" for mean in means))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--measure":
        measure()
    else:
        main(sys.argv[1], *map(int, sys.argv[2:]))
