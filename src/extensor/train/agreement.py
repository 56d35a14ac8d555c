"""Whether all ranks are about to run the same thing: found before the first step, and named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..config import build_info
from ..data import DataLoader, Dataset
from ..distributed import MismatchError, World
from .random_state import get_random_state
from .trainer_base import TrainerBase

__all__ = ["check_alike"]

_SAMPLES = 1024  # of a dataset that are compared, spread over it


def check_alike(world: World, trainer: TrainerBase, train: DataLoader, validation: Any) -> None:
    """Raise on every rank if one of them differs from rank 0.

    Raises:
        MismatchError: says which rank, in what, and what to do about it.
    """
    if world.size == 1:
        return
    told = world.gather(_description(world, trainer, train, validation))
    for rank, other in enumerate(told):
        for name, (value, advice) in told[0].items():
            if other[name][0] != value:
                raise MismatchError(
                    f"[fit] rank {rank} has another {name} than rank 0 ({_short(other[name][0])}, not {_short(value)}); {advice}"
                )


def _description(
    world: World, trainer: TrainerBase, train: DataLoader, validation: Any
) -> dict[str, list[Any]]:
    build = build_info()
    model = trainer.model
    weights = {name: (p.shape, p.dtype.name) for name, p in model.named_parameters()}
    options: list[Any] = [
        trainer.clip_norm,
        trainer.clip_value,
        trainer.accumulate,
        trainer.validate_every,
        trainer.checkpoint_every,
    ]
    options += [
        trainer.folder is not None,
        trainer.schedule_every,
        trainer.monitor,
        len(trainer.callbacks),
        trainer.log_every,
    ]
    made = {name: value for name, value in trainer.made_with.items() if name != "threads"}
    return {
        "version": [build["version"], "install the same version of extensor everywhere"],
        "numpy": [build["numpy"], "install the same version everywhere: its sums may differ in the last bit"],
        "native core": [build.get("core"), "build it from the same source everywhere"],
        "arithmetic": [
            build.get("arithmetic"),
            "leave out processors that round in another way, or EXTENSOR_ISA=baseline",
        ],
        "number of shards": [trainer.shards, "give every rank the same shards"],
        "exchange": [world.compress, "give every rank the same compress"],
        "shape of the model": [weights and _digest(weights), "all ranks must build the same model"],
        "optimiser or loss": [json.dumps(made, default=str), "all ranks must be given the same"],
        "option of the trainer": [options, "all ranks must be given the same"],
        "start of the weights": [
            _of_arrays(model.state_dict().values()),
            "seed the layers alike: extensor.seed(n)",
        ],
        "random state": [_digest(get_random_state(model)), "seed the layers alike: extensor.seed(n)"],
        "position or seed of the data": [
            train.state_dict(),
            "give every DataLoader the same options and rng",
        ],
        "training data": [_of_data(train), "all ranks must read the same data"],
        "validation data": [_of_data(validation), "all ranks must read the same data"],
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=lambda x: np.asarray(x).tolist())
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _of_arrays(arrays: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def _of_data(loader: Any) -> list[Any] | None:
    """How many samples there are, and a digest of some of them as they are stored."""
    if not isinstance(loader, DataLoader) or not isinstance(loader.dataset, Dataset):
        return None  # what a program hands out cannot be looked at without taking it
    count = len(loader.dataset)
    places = np.unique(np.linspace(0, count - 1, min(count, _SAMPLES)).astype(np.int64))
    return [count, _of_arrays(x for x in loader.dataset.gather(places) if x is not None)]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
