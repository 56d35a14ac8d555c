"""Memory of 20,000 training steps of a small network: what the process holds after the first hundred, and at the end.

python benchmarks/training_memory.py
"""

from __future__ import annotations

import numpy as np

import extensor as et


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def main(steps: int = 20_000) -> None:
    rng = np.random.default_rng(0)
    x = et.tensor(rng.normal(size=(32, 64)).astype(np.float32))
    labels = et.tensor(rng.integers(0, 10, 32))
    params = {
        "w1": et.tensor(rng.normal(size=(64, 64)).astype(np.float32) / 8), "b1": et.zeros(64),
        "w2": et.tensor(rng.normal(size=(64, 10)).astype(np.float32) / 8), "b2": et.zeros(10),
    }  # fmt: skip

    def loss(p):
        return et.cross_entropy(et.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], labels)

    step = et.value_and_grad(loss)
    before = 0
    for i in range(steps):
        value, grads = step(params)
        params = {name: et.sgd_step(params[name], grads[name], 0.01) for name in params}
        if i == 100:
            before = resident_bytes()
        if i % 4000 == 100:
            print(f"step {i:6d}  loss {value.item():.5f}  {resident_bytes() / 2**20:8.2f} MB")
    print(f"grown since step 100: {(resident_bytes() - before) / 2**20:.2f} MB in {steps} steps")


if __name__ == "__main__":
    main()
