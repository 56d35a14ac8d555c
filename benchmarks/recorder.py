"""The cost of recording: one elementwise operation on 16 floats, and a chain of ten, against PyTorch.

python benchmarks/recorder.py
"""

from __future__ import annotations

import torch

import extensor as et
from extensor.bench import best_times, table

FUNCTIONS = ("tanh", "exp", "sigmoid", "relu", "square", "sqrt")


def chain(function, x):
    for _ in range(10):
        x = function(x)
    return x


def main() -> None:
    torch.set_num_threads(1)
    ours, theirs = et.full(16, 0.7), torch.full((16,), 0.7)
    x, y = et.tensor(ours, requires_grad=True), theirs.clone().requires_grad_()
    seed, their_seed = et.ones(16), torch.ones(16)
    cases = {
        f"record {name}": (lambda f=getattr(et, name): f(x), lambda f=getattr(torch, name): f(y))
        for name in FUNCTIONS
    }
    cases["record x * x"] = (lambda: x * x, lambda: y * y)
    cases["record x + 1.0"] = (lambda: x + 1.0, lambda: y + 1.0)
    for name in ("tanh", "square", "relu"):
        cases[f"ten {name}, forward and backward"] = (
            lambda f=getattr(et, name): chain(f, x).backward(seed),
            lambda f=getattr(torch, name): chain(f, y).backward(their_seed),
        )
    cases["ten x * x, forward and backward"] = (
        lambda: chain(lambda v: v * x, x).backward(seed),
        lambda: chain(lambda v: v * y, y).backward(their_seed),
    )
    rows = [("16 float32 elements", "ExTensor µs", "PyTorch µs", "ratio")]
    for name, (mine, other) in cases.items():
        best = best_times({"extensor": mine, "torch": other})
        rows.append(
            (
                name,
                f"{best['extensor'] * 1e6:.2f}",
                f"{best['torch'] * 1e6:.2f}",
                f"{best['extensor'] / best['torch']:.2f}",
            )
        )
    print(table(rows))


if __name__ == "__main__":
    main()
