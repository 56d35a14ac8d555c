"""A small run that uses everything a checkpoint must bring back: dropout, running statistics, momentum, a schedule, random
transforms, accumulated gradients, metrics in the middle of an epoch, early stopping that waits.

As a script: small_run.py FOLDER SECONDS trains in FOLDER, resuming, and kills itself after SECONDS (never, if 0).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import extensor as et
from extensor import data, nn, optim, train

EPOCHS = 3
STEPS = EPOCHS * 4  # 7 batches in each epoch, 2 for each step


def parts(prefetch: int = 0) -> tuple[nn.Module, optim.Optimizer, data.DataLoader, data.DataLoader]:
    et.seed(7)
    digits = data.digits()
    some = data.Dataset(digits.inputs[:256], digits.targets[:256], digits.transforms)
    first, second = some.split(0.78, rng=1)
    crop = first.with_transforms(data.RandomCrop(8, padding=1))
    loader = data.DataLoader(crop, 32, shuffle=True, rng=2, prefetch=prefetch)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(24, 16), nn.Dropout(0.2, rng=np.random.default_rng(5)), nn.ReLU(), nn.Linear(16, 10),
    )  # fmt: skip
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    return model, optimizer, loader, data.DataLoader(second, 40)


def fit(
    folder: Path | None, resume: bool = False, prefetch: int = 0, **options: Any
) -> tuple[nn.Module, train.History]:
    """The run, in a folder if one is given; more callbacks and other options of the trainer may be added."""
    model, optimizer, loader, validation = parts(prefetch)
    callbacks = [train.EarlyStopping(patience=50), *options.pop("callbacks", [])]
    settings = {
        "schedule": optim.OneCycleLR(optimizer, 0.02, total_steps=STEPS + 1),
        "metrics": {"accuracy": train.Accuracy(), "confusion": train.ConfusionMatrix(10)},
        "clip_norm": 1.0, "accumulate": 2, "validate_every": 5, "checkpoint_every": 3, "log_every": 2, "layers_every": 4,
        "display": "off",
    }  # fmt: skip
    trainer = train.Trainer(
        model, optimizer, et.cross_entropy, folder=folder, callbacks=callbacks, **(settings | options)
    )
    return model, trainer.fit(loader, epochs=EPOCHS, validation=validation, resume=resume, interrupt="return")


def bits(model: nn.Module) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in model.state_dict().items()}


class Slow(train.Callback):
    """Gives a killer more moments to choose from."""

    def on_step_end(self, trainer: Any, loss: float) -> None:
        time.sleep(0.01)


def main(folder: str, seconds: str) -> None:
    def kill() -> None:
        time.sleep(float(seconds))
        os.kill(os.getpid(), signal.SIGKILL)

    if float(seconds):
        threading.Thread(target=kill, daemon=True).start()
    fit(Path(folder), resume=True, prefetch=2, callbacks=[Slow()])


if __name__ == "__main__":
    main(*sys.argv[1:])
