"""How many numbers the optimiser of each rank remembers in the middle of a run, and how many after it."""

from __future__ import annotations

from typing import Any

from shared_run import fit

from extensor import train
from extensor.distributed import World


def remembered(optimizer: Any) -> int:
    return sum(getattr(value, "size", 0) for state in optimizer.state.values() for value in state.values())


class Count(train.Callback):
    def __init__(self) -> None:
        self.found: list[int] = []

    def on_step_end(self, trainer: Any, loss: float) -> None:
        own = trainer.optimizer if trainer.divided is None else trainer.divided._own
        self.found = [remembered(own), remembered(trainer.optimizer), trainer.optimizer]


def main() -> None:
    with World() as world:
        count = Count()
        model, _ = fit("mlp", world, steps=3, callbacks=[count])
        inside, rest, optimizer = count.found
        parameters = sum(p.size for p in model.parameters())
        told = world.gather([inside, rest, remembered(optimizer), parameters])
        if world.rank == 0:
            print(told)


if __name__ == "__main__":
    main()
