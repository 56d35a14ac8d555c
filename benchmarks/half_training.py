"""Training steps under autocast, beside PyTorch's autocast and beside float32: the same weights and data, interleaved, equal threads.

    python benchmarks/half_training.py [gpt384 | mlp1024 | resnet...] [--threads 1] [--rounds 20]
    python benchmarks/half_training.py gpt384 --memory --details

A step is zero_grad, forward, loss, backward and update; ours runs eagerly and compiled. Printed are minima of rounds in turn, as
milliseconds and as ratios: of PyTorch's autocast, and of our float32 run the same way. ``--memory`` prints what a forward pass keeps for
the backward pass instead: activations, and beside them the half copies of parameters.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from models import MODELS, VOCABULARY, Model, text, torch_gpt, torch_mlp

import extensor as et
from extensor.bench import compare, table
from extensor.graph.nodes import Branch, Node
from extensor.graph.precision import _casts

PAUSE = 0.005
SIZES = (784, 1024, 1024, 10)
Step = Callable[[], Any]

NETWORKS = {
    "gpt384": Model(
        "GPT 4 layers, 6 heads, 384 wide, context 256, batch 8, AdamW", 0.85,
        lambda: et.models.GPT(VOCABULARY, 256, n_head=6, n_embd=384, rng=0),
        lambda torch: torch_gpt(torch, context=256, heads=6, width=384), text(8, 256), "AdamW", {"lr": 1e-4},
    ),
    "mlp1024": Model(
        "MLP 784-1024-1024-10, batch 128, SGD", 0.85, lambda: et.models.MLP(list(SIZES), rng=0), lambda torch: torch_mlp(torch, SIZES),
        lambda rng: (rng.normal(size=(128, 784)).astype(np.float32), rng.integers(0, 10, 128)), "SGD", {"lr": 0.01},
    ),
    "resnet": MODELS["resnet"],
}  # fmt: skip


def loss_of(network: Any, inputs: et.ExTensor, targets: et.ExTensor) -> et.ExTensor:
    logits = network(inputs)
    return et.cross_entropy(logits.reshape((targets.size, logits.shape[-1])), targets)


def drawn(model: Model) -> tuple[et.ExTensor, et.ExTensor]:
    inputs, targets = map(et.tensor, model.data(np.random.default_rng(0)))
    return inputs, targets.reshape((targets.size,))


def our_step(model: Model, dtype: Any, compiled: bool) -> Step:
    network, (inputs, targets) = model.ours(), drawn(model)
    optimizer = getattr(et.optim, model.optimizer)(network.parameters(), **model.options)

    def step(inputs: et.ExTensor, targets: et.ExTensor) -> et.ExTensor:
        optimizer.zero_grad()
        with et.autocast(dtype):
            loss = loss_of(network, inputs, targets)
        loss.backward()
        optimizer.step()
        return loss

    run = et.compile(step) if compiled else step
    return lambda: run(inputs, targets).item()


def torch_step(model: Model, channels_last: bool) -> Step:
    network = model.theirs(torch)
    network.load_state_dict({name: torch.tensor(p.numpy()) for name, p in model.ours().state_dict().items()})
    inputs, targets = map(torch.tensor, model.data(np.random.default_rng(0)))
    targets = targets.reshape(-1)
    if channels_last:
        network, inputs = (thing.to(memory_format=torch.channels_last) for thing in (network, inputs))
    optimizer = getattr(torch.optim, model.optimizer)(network.parameters(), **model.options)

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = network(inputs)
            loss = torch.nn.functional.cross_entropy(logits.reshape(targets.numel(), -1), targets)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def measure(names: list[str], threads: int, rounds: int) -> list[tuple[str, ...]]:
    et.set_num_threads(threads)
    torch.set_num_threads(threads)
    rows: list[tuple[str, ...]] = [
        ("step", "way", "float32 ms", "bfloat16 ms", "PyTorch autocast ms", "/ PyTorch", "/ float32")
    ]
    for name in names:
        model = NETWORKS[name]
        contestants: dict[str, Step] = {"torch": torch_step(model, False)}
        if model.data(np.random.default_rng(0))[0].ndim == 4:
            contestants["torch, channels last"] = torch_step(model, True)
        for way in ("eager", "compiled"):
            for dtype in (et.float32, et.bfloat16):
                contestants[f"{way} {dtype.name}"] = our_step(model, dtype, way == "compiled")
        found = {
            name: timing.best * 1e3 for name, timing in compare(contestants, rounds, 0.02, PAUSE).items()
        }
        peer = min(time for name, time in found.items() if name.startswith("torch"))
        for way in ("eager", "compiled"):
            wide, half = found[f"{way} float32"], found[f"{way} bfloat16"]
            times = (f"{wide:.2f}", f"{half:.2f}", f"{peer:.2f}")
            rows.append((model.title, way, *times, f"{half / peer:.2f}", f"{half / wide:.2f}"))
    return rows


def kept(model: Model, dtype: Any) -> dict[str, list[tuple[str, np.ndarray]]]:
    """What the graph of a forward pass holds for the backward pass, each array once with the function that asked for it first."""
    network, (inputs, targets) = model.ours(), drawn(model)
    with et.autocast(dtype):
        loss = loss_of(network, inputs, targets)
        copies = {memory_of(half) for _, _, half in _casts.kept.values()}
    parameters = {memory_of(p.numpy()) for p in network.parameters()}
    found: dict[str, list[tuple[str, np.ndarray]]] = {"activations": [], "half copies of parameters": []}
    seen = parameters | {memory_of(x.numpy()) for x in (inputs, targets)}
    nodes, waiting = set(), [loss._node]
    while waiting:
        node = waiting.pop()
        node = node.node if isinstance(node, Branch) else node
        if not isinstance(node, Node) or id(node) in nodes:
            continue
        nodes.add(id(node))
        waiting += node.edges
        for array in arrays_of((node.saved, node.options)):
            if memory_of(array) not in seen:
                seen.add(memory_of(array))
                kind = "half copies of parameters" if memory_of(array) in copies else "activations"
                found[kind].append((node.op.__name__, array))
    return found


def memory_of(array: np.ndarray) -> int:
    """The address of the memory that an array, or a view of it, lies in."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return int(array.ctypes.data)


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, et.ExTensor):
        yield value.numpy()
    elif isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        yield from arrays_of(tuple(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_of(item)


def print_memory(names: list[str], details: bool) -> None:
    for name in names:
        model = NETWORKS[name]
        wide, half = kept(model, et.float32), kept(model, et.bfloat16)
        totals = {kind: sum(array.nbytes for _, array in half[kind]) / 2**20 for kind in half}
        before = sum(array.nbytes for _, array in wide["activations"]) / 2**20
        activations = totals["activations"]
        print(
            f"{model.title}: activations {activations:.2f} MB of {before:.2f}: {activations / before:.2f};",
            end=" ",
        )
        print(
            f"with the half copies of parameters {sum(totals.values()):.2f}: {sum(totals.values()) / before:.2f}"
        )
        for title, arrays in (
            (("float32", wide["activations"]), ("bfloat16", half["activations"])) if details else ()
        ):
            counts = Counter((by, array.shape, array.dtype.name) for by, array in arrays)
            print(f"  {title}")
            for (by, shape, dtype), count in counts.items():
                print(f"    {count:3d} x {by:24} {shape!s:20} {dtype}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS], default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--memory", action="store_true", help="what is kept for the backward pass, instead of times"
    )
    parser.add_argument("--details", action="store_true", help="with --memory: every kind of tensor")
    options = parser.parse_args()
    names = options.networks or list(NETWORKS)
    if options.memory:
        print_memory(names, options.details)
        return
    print(table(measure(names, options.threads, options.rounds)))


if __name__ == "__main__":
    main()
