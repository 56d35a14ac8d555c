"""Activation memory and time of 64 layers, plain and in 8 checkpointed segments.

Memory is the growth of the peak of the whole process over a forward and a backward pass, each in a process of its own, less
the gradients that both must hold.

    python benchmarks/checkpoint_memory.py
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np

import extensor as et
from extensor.bench import best_times, table

DEPTH, SEGMENTS, WIDTH, BATCH = 64, 8, 128, 4096


class Network:
    """Layers of tanh(x w), with the gradients of the weights."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        scale = 1 / np.sqrt(WIDTH)
        draws = [rng.normal(size=(WIDTH, WIDTH)).astype(np.float32) * np.float32(scale) for _ in range(DEPTH)]
        self.weights = [et.tensor(draw, requires_grad=True) for draw in draws]
        self.layers = [lambda x, w=w: et.tanh(x @ w) for w in self.weights]
        self.x = et.tensor(rng.normal(size=(BATCH, WIDTH)).astype(np.float32))
        self.forward = {"plain": self.plain, "checkpointed": et.checkpoint_sequential(self.layers, SEGMENTS)}

    def plain(self, h: et.ExTensor) -> et.ExTensor:
        for layer in self.layers:
            h = layer(h)
        return h

    def gradients(self, kind: str) -> list[np.ndarray]:
        for w in self.weights:
            w.grad = None
        self.forward[kind](self.x).square().sum().backward()
        return [w.grad.numpy() for w in self.weights]


def peak_growth(kind: str) -> int:
    """Bytes by which one pass raises the peak of this process."""
    network = Network()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    network.gradients(kind)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return grown - sum(w.nbytes for w in network.weights)


def main() -> None:
    if len(sys.argv) > 1:
        print(peak_growth(sys.argv[1]))
        return
    kinds = ("plain", "checkpointed")
    runs = {
        kind: subprocess.run([sys.executable, __file__, kind], capture_output=True, text=True, check=True)
        for kind in kinds
    }
    peaks = {kind: int(run.stdout) for kind, run in runs.items()}
    network = Network()
    same = all(
        np.array_equal(a, b) for a, b in zip(network.gradients("plain"), network.gradients("checkpointed"))
    )
    best = best_times({kind: lambda kind=kind: network.gradients(kind) for kind in kinds}, rounds=8)
    rows = [(f"{DEPTH} layers, {SEGMENTS} segments", "activations MB", "step ms")]
    rows += [(kind, f"{peaks[kind] / 2**20:.1f}", f"{best[kind] * 1e3:.1f}") for kind in kinds]
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
