"""A job whose second rank differs from the first, or breaks: failing_ranks.py WHAT FILE. Rank 0 writes its error to FILE."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import extensor as et
from extensor import data, nn, optim, train
from extensor.distributed import LostRankError, MismatchError, World


class Breaks(train.Callback):
    def on_step_end(self, trainer: train.Trainer, loss: float) -> None:
        if trainer.step == 2:
            raise ValueError("rank 1 broke")


def main(what: str, file: str) -> None:
    with World() as world:
        odd = world.rank == 1
        et.seed(5 if odd and what == "weights" else 4)
        model = nn.Linear(3, 2)
        inputs = np.random.default_rng(9).normal(size=(40, 3)).astype(np.float32)
        if odd and what == "data":
            inputs[7] += 1
        loader = data.DataLoader(
            data.Dataset(inputs, np.arange(40) % 2), 8, shuffle=True, rng=1 if odd and what == "seed" else 0
        )
        mover = optim.SGD(model.parameters(), lr=0.2 if odd and what == "optimizer" else 0.1)
        trainer = train.Trainer(
            model, mover, et.cross_entropy, world=world, shards=4 if odd and what == "shards" else 8, display="off",
            callbacks=[Breaks() if odd and what == "error" else train.Callback()],
        )  # fmt: skip
        try:
            trainer.fit(loader, epochs=2)
        except (LostRankError, MismatchError) as error:
            if world.rank == 0:
                Path(file).write_text(f"{type(error).__name__}: {error}")
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
