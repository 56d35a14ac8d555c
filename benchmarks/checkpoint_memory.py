"""Activation memory and time of 64 layers, plain and in 8 checkpointed segments.

python benchmarks/checkpoint_memory.py
"""

from __future__ import annotations

import tracemalloc

import numpy as np

import extensor as et
from extensor.bench import best_times, table


def main(depth: int = 64, segments: int = 8, width: int = 256, batch: int = 256) -> None:
    rng = np.random.default_rng(0)
    weights = [
        et.tensor(rng.normal(size=(width, width)).astype(np.float32) / np.sqrt(width), requires_grad=True)
        for _ in range(depth)
    ]
    layers = [lambda x, w=w: et.tanh(x @ w) for w in weights]
    x = et.tensor(rng.normal(size=(batch, width)).astype(np.float32))

    def run(forward):
        for w in weights:
            w.grad = None
        forward(x).square().sum().backward()
        return [w.grad.numpy() for w in weights]

    def plain(h):
        for layer in layers:
            h = layer(h)
        return h

    checkpointed = et.checkpoint_sequential(layers, segments)
    same = all(np.array_equal(a, b) for a, b in zip(run(plain), run(checkpointed)))
    peaks = {}
    gradients = sum(w.nbytes for w in weights)
    for name, forward in {"plain": plain, "checkpointed": checkpointed}.items():
        tracemalloc.start()
        run(forward)
        peaks[name] = tracemalloc.get_traced_memory()[1] - gradients
        tracemalloc.stop()
    best = best_times({"plain": lambda: run(plain), "checkpointed": lambda: run(checkpointed)}, rounds=12)
    rows = [(f"{depth} layers, {segments} segments", "activations MB", "step ms")]
    rows += [(name, f"{peaks[name] / 2**20:.1f}", f"{best[name] * 1e3:.1f}") for name in peaks]
    rows.append(
        (
            "ratio",
            f"{peaks['checkpointed'] / peaks['plain']:.2f}",
            f"{best['checkpointed'] / best['plain']:.2f}",
        )
    )
    print(table(rows))
    print("same bits:", "yes" if same else "NO")


if __name__ == "__main__":
    main()
