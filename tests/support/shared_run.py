"""Small runs for several processes, with everything that must not depend on their number: ragged batches, dropout, batch
statistics, momentum, clipping, a schedule, accumulated gradients, metrics, validation, early stopping that waits.

As a script: shared_run.py MODEL FOLDER [name=value ...] trains under ``mpiexec`` or alone, and rank 0 prints the SHA-256 of
all weights and of the metrics. Names are the arguments of :func:`fit`; ``kill_at`` and ``kill_rank`` end a rank at a step,
``kill_after`` so many seconds later, wherever it is then; ``piece_bytes`` is the least that messages take at a time. ``kill_how="SUSPEND"`` puts the whole job to sleep.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import extensor as et
from extensor import data, models, nn, optim, train
from extensor.distributed import LostRankError, World, exchange


def _images(size: int, channels: int) -> tuple[data.Dataset, data.Dataset]:
    digits = data.digits()
    pixels = np.repeat(digits.inputs[:184].astype(np.float32) / 16, channels, 1)
    grown = pixels.repeat(-(-size // 8), 2).repeat(-(-size // 8), 3)[:, :, :size, :size]
    return data.Dataset(grown[:148], digits.targets[:148]), data.Dataset(
        grown[148:184], digits.targets[148:184]
    )


def _texts() -> tuple[data.Dataset, data.Dataset]:
    words = np.random.default_rng(3).integers(0, 30, (184, 17))
    return data.Dataset(words[:148, :-1], words[:148, 1:]), data.Dataset(words[148:, :-1], words[148:, 1:])


def parts(kind: str) -> tuple[nn.Module, tuple[data.Dataset, data.Dataset]]:
    et.seed(11)
    if kind == "lenet":
        return models.LeNet5(), _images(28, 1)
    if kind == "resnet":
        return models.ResNet20(), _images(12, 3)
    if kind == "gpt":
        return models.GPT(vocab_size=30, block_size=16, n_layer=2, n_head=2, n_embd=16, dropout=0.2), _texts()
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24, momentum=None), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(24, 16), nn.BatchNorm1d(16), nn.Dropout(0.2, rng=np.random.default_rng(5)), nn.Linear(16, 10),
    )  # fmt: skip
    return model, _images(8, 1)


class KillAt(train.Callback):
    """Ends a rank as the system would."""

    def __init__(
        self, rank: int, step: int, world: World, how: str, folder: Path | None, after: float = 0.0
    ) -> None:
        self.mine, self.at, self.how, self.folder = world.rank == rank, step, how, folder
        self.after = after

    def on_step_end(self, trainer: Any, loss: float) -> None:
        if not (self.mine or self.how == "SUSPEND") or trainer.step != self.at:
            return
        if self.how in ("PAUSE", "SUSPEND"):
            self._from_outside(5, signal.SIGCONT)
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        number = getattr(signal, f"SIG{self.how}")
        if self.after:
            self._from_outside(self.after, number)
            return
        self._say_when()
        os.kill(os.getpid(), number)
        time.sleep(0.1 if self.how == "INT" else 0)

    def _from_outside(self, seconds: float, number: signal.Signals) -> None:
        """A child sends us the signal: we may sleep, or be anywhere."""
        pid = os.getpid()
        if os.fork() == 0:
            time.sleep(seconds)
            if number == signal.SIGKILL:
                self._say_when()
            try:
                os.kill(pid, number)
            finally:
                os._exit(0)

    def _say_when(self) -> None:
        if self.folder is not None:
            Path(self.folder, "hit").write_text(str(time.time()))


def fit(
    kind: str, world: World | None, folder: Path | None = None, *, shards: int | None = 8, steps: int = 7, batch: int = 38,
    resume: bool = False, optimizer: str = "Adam", callbacks: Any = (), **options: Any,
) -> tuple[nn.Module, train.History]:  # fmt: skip
    """The run; other options go to the trainer."""
    model, (learned, held_out) = parts(kind)
    mover = getattr(optim, optimizer)(model.parameters(), lr=0.01)
    loader = data.DataLoader(learned, batch, shuffle=True, rng=2)
    if kind == "mlp":
        loader = data.DataLoader(
            learned.with_transforms(data.RandomCrop(8, padding=1)), batch, shuffle=True, rng=2
        )
    settings: dict[str, Any] = {
        "schedule": optim.OneCycleLR(mover, 0.02, total_steps=1000), "clip_norm": 1.0, "accumulate": 2, "checkpoint_every": 2,
        "metrics": {"perplexity": train.Perplexity()} if kind == "gpt" else {"confusion": train.ConfusionMatrix(10)},
        "validate_every": 3, "log_every": 2, "layers_every": 4, "display": "off",
    }  # fmt: skip
    trainer = train.Trainer(
        model, mover, et.cross_entropy, folder=folder, world=world, shards=shards,
        callbacks=[train.EarlyStopping(patience=50), *callbacks], **(settings | options),
    )  # fmt: skip
    history = trainer.fit(
        loader, steps=steps, validation=data.DataLoader(held_out, 10), resume=resume, interrupt="return"
    )
    return model, history


def digest(model: nn.Module, history: train.History) -> str:
    """Of all weights and buffers, and of what was measured."""
    found = hashlib.sha256()
    for name, value in model.state_dict().items():
        found.update(name.encode() + value.numpy().tobytes())
    for record in history.records:
        kept = {k: v for k, v in record.items() if k not in ("seconds", "samples_per_second")}
        found.update(json.dumps(kept, default=lambda x: np.asarray(x).tolist()).encode())
    return found.hexdigest()


def main(kind: str, folder: str, *assignments: str) -> None:
    given = {name: json.loads(value) for name, _, value in (text.partition("=") for text in assignments)}
    compress = given.pop("compress", False)
    exchange._PIECE_BYTES = given.pop(
        "piece_bytes", exchange._PIECE_BYTES
    )  # small networks in several pieces
    with World(compress=compress) as world:
        end = [given.pop(name, None) for name in ("kill_rank", "kill_at", "kill_how", "kill_after")]
        place = Path(folder) if folder != "-" else None
        callbacks = (
            [] if end[0] is None else [KillAt(end[0], end[1], world, end[2] or "KILL", place, end[3] or 0.0)]
        )
        try:
            model, history = fit(kind, world, place, callbacks=callbacks, **given)
        except LostRankError as error:  # a launcher whose job breaks may lose what is said on stderr
            if place is not None:
                Path(place, f"lost-{world.rank}").write_text(str(error))
            raise
        found = world.gather(digest(model, history))
        if world.rank == 0:
            print(*sorted(set(found)), history.stopped, history.steps, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
