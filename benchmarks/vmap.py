"""Per-sample gradients, ``vmap(grad(loss))``, beside PyTorch's vmap and jax.jit, in one process.

    python benchmarks/vmap.py [network...] [--batch 64] [--threads 1] [--rounds 30]

The gradients of each example's loss with respect to every parameter of three networks: ours as called and compiled
(``et.compile(et.vmap(et.grad(...)))``), PyTorch's ``torch.func.vmap(torch.func.grad(...))`` and JAX's ``jax.jit(jax.vmap(...))``.
The gradients are compared first. Short rounds in turn, the minimum of each counts. Needs torch and jax; JAX takes the threads
that it finds (``taskset -c 0`` for one).
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et
from extensor import nn
from extensor.bench.timing import best_times, table

Run = Callable[[], Any]


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 64, rng=0), nn.ReLU(), nn.Linear(64, 64, rng=1), nn.ReLU(), nn.Linear(64, 10, rng=2)
    )


def wide_mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 128, rng=0), nn.ReLU(), nn.Linear(128, 10, rng=1))


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, rng=0), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, rng=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 10, rng=2),
    )  # fmt: skip


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP 64-64-64-10": (mlp, (64,)), "MLP 784-128-10": (wide_mlp, (784,)), "two convolutions": (convolutions, (1, 28, 28)),
}  # fmt: skip


def ours(model: nn.Module, x: np.ndarray, y: np.ndarray) -> tuple[Run, Run]:
    def loss(model: Any, x: Any, y: Any) -> Any:
        return et.cross_entropy(model(x.reshape((1, *x.shape))), y.reshape((1,)))

    per_sample = et.vmap(et.grad(loss), in_axes=(None, 0, 0))
    compiled = et.compile(per_sample)
    given = et.tensor(x), et.tensor(y)
    return lambda: per_sample(model, *given), lambda: compiled(model, *given)


def torch_layers(torch: Any, model: nn.Module) -> Any:
    def twin(layer: Any) -> Any:
        if isinstance(layer, nn.Linear):
            return torch.nn.Linear(layer.in_features, layer.out_features)
        if isinstance(layer, nn.Conv2d):
            return torch.nn.Conv2d(layer.in_channels, layer.out_channels, 3)
        if isinstance(layer, nn.MaxPool2d):
            return torch.nn.MaxPool2d(2)
        return {"ReLU": torch.nn.ReLU, "Flatten": torch.nn.Flatten}[type(layer).__name__]()

    found = torch.nn.Sequential(*map(twin, model))
    found.load_state_dict({name: torch.tensor(p.numpy()) for name, p in model.state_dict().items()})
    return found


def torch_run(model: nn.Module, x: np.ndarray, y: np.ndarray, threads: int) -> Run:
    import torch

    torch.set_num_threads(threads)
    twin = torch_layers(torch, model)
    parameters = {name: p.detach() for name, p in twin.named_parameters()}

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        scores = torch.func.functional_call(twin, parameters, (x[None],))
        return torch.nn.functional.cross_entropy(scores, y[None])

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    given = torch.tensor(x), torch.tensor(y)
    return lambda: per_sample(parameters, *given)


def jax_run(model: nn.Module, x: np.ndarray, y: np.ndarray) -> Run:
    import jax
    import jax.numpy as jnp

    parameters = {name: jnp.asarray(p.numpy()) for name, p in model.state_dict().items()}
    layers = list(model)  # type: ignore[call-overload]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        x = x[None]
        for i, layer in enumerate(layers):
            w, b = parameters.get(f"{i}.weight"), parameters.get(f"{i}.bias")
            if isinstance(layer, nn.Linear):
                x = x @ w.T + b
            elif isinstance(layer, nn.Conv2d):
                x = jax.lax.conv(x, w, (1, 1), "VALID") + b[:, None, None]
            elif isinstance(layer, nn.MaxPool2d):
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
            elif isinstance(layer, nn.ReLU):
                x = jax.nn.relu(x)
            else:
                x = x.reshape(1, -1)
        return -jax.nn.log_softmax(x)[0, y]

    per_sample = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
    given = jnp.asarray(x), jnp.asarray(y)
    return lambda: jax.block_until_ready(per_sample(parameters, *given))


def leaves(value: Any) -> dict[str, np.ndarray]:
    found = value.items() if isinstance(value, dict) else dict(value).items()
    return {name: np.asarray(v.numpy() if hasattr(v, "numpy") else v) for name, v in found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", help="only those whose name contains one of these")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    if options.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    et.set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    ratios_of = (("called", "torch"), ("compiled", "torch"), ("compiled", "jax"))
    titles = {"called": "called", "compiled": "compiled", "torch": "PyTorch", "jax": "jax.jit"}
    rows = [
        (
            "network",
            *(f"{t} [us]" for t in titles.values()),
            *(f"{titles[a]} / {titles[b]}" for a, b in ratios_of),
        )
    ]
    ratios: list[list[float]] = []
    for name, (make, shape) in NETWORKS.items():
        if options.networks and not any(part in name for part in options.networks):
            continue
        model = make()
        x = rng.normal(size=(options.batch, *shape)).astype(np.float32)
        y = rng.integers(0, 10, options.batch)
        called, compiled = ours(model, x, y)
        runs = {
            "called": called,
            "compiled": compiled,
            "torch": torch_run(model, x, y, options.threads),
            "jax": jax_run(model, x, y),
        }
        found = {kind: leaves(run()) for kind, run in runs.items()}
        for kind, gradients in found.items():
            for key, value in gradients.items():
                np.testing.assert_allclose(
                    value, found["torch"][key], rtol=1e-3, atol=1e-5, err_msg=f"{kind} {key}"
                )
        t = best_times(runs, options.rounds)
        ratios.append([t[a] / t[b] for a, b in ratios_of])
        rows.append((name, *(f"{t[k] * 1e6:.0f}" for k in runs), *(f"{r:.2f}" for r in ratios[-1])))
    means = [math.exp(sum(map(math.log, column)) / len(ratios)) for column in zip(*ratios)]
    rows.append(("geometric mean", "", "", "", "", *(f"{m:.2f}" for m in means)))
    print(table(rows))


if __name__ == "__main__":
    main()
