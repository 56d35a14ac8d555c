"""Whole trainings of `extensor train` beside PyTorch: the same first weights, batches, optimiser and schedule, in turn.

Both take their batches from the same loader and measure the same held-out data equally often. Ours is the run a person
starts: with its log, its checkpoints and its statistics of the layers.

    python benchmarks/recipes.py lenet --data mnist/ --seeds 0 1 2
    python benchmarks/recipes.py chargpt --data tinyshakespeare/input.txt --threads 2
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from models import torch_gpt, torch_lenet

import extensor as et
from extensor.bench import table
from extensor.train.launch import make_trainer
from extensor.train.recipes import RECIPES, Order, Setup


class Outcome(NamedTuple):
    """What a training ended with."""

    seconds: float
    loss: float
    accuracy: float  # nan for texts


def ours(recipe: str, data: Path, seed: int, epochs: int | None, steps: int | None) -> Outcome:
    setup = RECIPES[recipe].set_up(Order(data, seed))
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(setup, Path(folder) / "run", recipe, setup.total_steps(epochs, steps))
        start = time.perf_counter()
        history = trainer.fit(setup.train, epochs=epochs, steps=steps, validation=setup.validation)
        seconds = time.perf_counter() - start
    return Outcome(seconds, history.last("val_loss"), history.last("val_accuracy") or math.nan)


def theirs(torch: Any, recipe: str, data: Path, seed: int, epochs: int | None, steps: int | None) -> Outcome:
    setup = RECIPES[recipe].set_up(Order(data, seed))
    network = torch_lenet(torch) if recipe == "lenet" else torch_gpt(torch, bias=False)
    network.load_state_dict({name: torch.tensor(v.numpy()) for name, v in setup.model.state_dict().items()})
    optimizer, schedule = torch_optimizer(torch, recipe, network, setup, setup.total_steps(epochs, steps))
    total, done = setup.total_steps(epochs, steps), 0
    every = setup.validate_every or len(setup.train)
    found = (math.nan, math.nan)
    start = time.perf_counter()
    while done < total:
        for x, y in setup.train:
            loss = torch_loss(torch, network, x, y)
            optimizer.zero_grad()
            loss.backward()
            if setup.hyperparameters.clip_norm:
                torch.nn.utils.clip_grad_norm_(network.parameters(), setup.hyperparameters.clip_norm)
            optimizer.step()
            schedule.step()
            done += 1
            if done % every == 0 or done == total:
                found = evaluate(torch, network, setup)
            if done == total:
                break
    return Outcome(time.perf_counter() - start, *found)


def torch_optimizer(torch: Any, recipe: str, network: Any, setup: Setup, total: int) -> tuple[Any, Any]:
    scheduler = torch.optim.lr_scheduler
    if recipe == "lenet":
        lr = setup.config["lr"]
        optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=1e-2)
        return optimizer, scheduler.CosineAnnealingLR(optimizer, total, eta_min=lr / 100)
    groups = [
        {"params": [p for p in network.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in network.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
    warm = scheduler.LinearLR(optimizer, 0.01, 1.0, 100)
    after = scheduler.CosineAnnealingLR(optimizer, total - 100, eta_min=1e-4)
    return optimizer, scheduler.SequentialLR(optimizer, [warm, after], [100])


def as_torch(torch: Any, value: Any) -> Any:
    found = torch.from_numpy(np.array(value.numpy() if isinstance(value, et.ExTensor) else value))
    return found if found.is_floating_point() else found.long()


def torch_loss(torch: Any, network: Any, x: Any, y: Any) -> Any:
    logits, targets = network(as_torch(torch, x)), as_torch(torch, y).reshape(-1)
    return torch.nn.functional.cross_entropy(logits.reshape(targets.numel(), -1), targets)


def evaluate(torch: Any, network: Any, setup: Setup) -> tuple[float, float]:
    """Loss and accuracy on the held-out data."""
    loss = right = count = 0.0
    with torch.no_grad():
        for x, y in setup.validation:
            targets = as_torch(torch, y).reshape(-1)
            logits = network(as_torch(torch, x)).reshape(targets.numel(), -1)
            loss += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
            right += float((logits.argmax(-1) == targets).sum())
            count += targets.numel()
    return loss / count, right / count


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole trainings beside PyTorch.")
    parser.add_argument("recipe", choices=("lenet", "chargpt"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--steps", type=int, help="instead of epochs, for chargpt")
    parser.add_argument("--threads", type=int, default=et.get_num_threads(), help="of both libraries")
    arguments = parser.parse_args()
    import torch

    et.set_num_threads(arguments.threads)
    torch.set_num_threads(arguments.threads)
    epochs, steps = arguments.epochs, arguments.steps
    if epochs is None and steps is None:
        epochs, steps = RECIPES[arguments.recipe].epochs, RECIPES[arguments.recipe].steps
    header = ("seed", "ExTensor s", "PyTorch s", "ratio", "loss", "PyTorch's")
    classes = arguments.recipe == "lenet"
    rows: list[tuple[str, ...]] = [(*header, "accuracy", "PyTorch's") if classes else header]
    for seed in arguments.seeds:
        a = ours(arguments.recipe, arguments.data, seed, epochs, steps)
        b = theirs(torch, arguments.recipe, arguments.data, seed, epochs, steps)
        times = (f"{a.seconds:.1f}", f"{b.seconds:.1f}", f"{a.seconds / b.seconds:.2f}")
        row = (str(seed), *times, f"{a.loss:.4f}", f"{b.loss:.4f}")
        rows.append((*row, f"{a.accuracy:.2%}", f"{b.accuracy:.2%}") if classes else row)
        print(" ".join(rows[-1]), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
