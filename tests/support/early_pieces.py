"""How many pieces of the exchange leave during the backward pass: rank 0 prints, for each rank, the number of pieces and, step by
step, how many were given while a pass ran."""

from __future__ import annotations

import json
from typing import Any

from shared_run import fit

from extensor.distributed import World, exchange
from extensor.distributed.reduction import Reduction
from extensor.train import Callback
from extensor.train.passes import Passes


class Counter(Callback):
    """What happened in each step."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.given, self.running = 0, False

    def on_step_end(self, trainer: Any, loss: float) -> None:
        self.steps.append(self.given)
        self.given = 0


def main() -> None:
    exchange._PIECE_BYTES = 4096
    counter = Counter()
    give, tell = Reduction.give, Passes.learn_telling

    def noted(self: Reduction) -> None:
        counter.given += counter.running
        give(self)

    def watched(self: Passes, listener: Any) -> Any:
        learn = tell(self, listener)

        def pass_(*args: Any) -> Any:
            counter.running = True
            try:
                return learn(*args)
            finally:
                counter.running = False

        return pass_

    Reduction.give, Passes.learn_telling = noted, watched  # type: ignore[method-assign]
    with World() as world:
        fit("lenet", world, None, shards=2, steps=4, batch=37, callbacks=[counter], validate_every=None)
        pieces = len(next(iter(world._exchanges.values())).pieces)
        told = world.gather([pieces, counter.steps])
        if world.rank == 0:
            print(json.dumps(told))


if __name__ == "__main__":
    main()
