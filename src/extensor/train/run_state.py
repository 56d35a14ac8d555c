"""Everything that decides how a run goes on, gathered for a checkpoint and put back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..config import build_info
from ..data import DataLoader
from ..dtypes import bfloat16
from .random_state import get_random_state, set_random_state
from .trainer_base import TrainerBase

__all__ = ["load_run_state", "other_build", "run_state"]


def run_state(trainer: TrainerBase, train: DataLoader, validation: Any) -> dict[str, Any]:
    """The state of a run between two steps."""
    return {
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer_state(),
        "schedule": None if trainer.schedule is None else trainer.schedule.state_dict(),
        "random": get_random_state(trainer.model),
        "data": train.state_dict(),
        "validation": validation.state_dict() if isinstance(validation, DataLoader) else None,
        "callbacks": [callback.state_dict() for callback in trainer.callbacks],
        "progress": trainer.progress.state_dict(),
        "precision": trainer.mixed_precision.state_dict(),
        "made_with": trainer.made_with,
        "build": build_info(),
        "shards": trainer.shards,
        "compress": trainer.world is not None and trainer.world.compress,
    }


def other_build(state: dict[str, Any]) -> str | None:
    """A sentence about the build that a state was computed with, if this one may give other bits."""
    then, now = state.get("build"), build_info()
    if not isinstance(then, dict):
        return "the checkpoint does not say what it was computed with"
    counting = [name for name in now if name != "bfloat16 products" or _has_bfloat16(state)]
    differing = [
        f"{name} {then.get(name)!s:.40}, here {now[name]}" for name in counting if then.get(name) != now[name]
    ]
    return f"the checkpoint was computed with {'; '.join(differing)}" if differing else None


def _has_bfloat16(state: dict[str, Any]) -> bool:
    """Whether a run multiplies in bfloat16."""
    precision, model = state.get("precision"), state.get("model")
    chosen = precision.get("name") if isinstance(precision, dict) else None
    weights = model.values() if isinstance(model, dict) else ()
    return chosen == "bfloat16" or any(getattr(value, "dtype", None) == bfloat16 for value in weights)


def load_run_state(
    trainer: TrainerBase, state: dict[str, Any], train: DataLoader, validation: Any, path: Path
) -> None:
    """Take over a state from the file ``path``; if any part of it does not fit, everything is as it was."""
    before = run_state(trainer, train, validation)
    try:
        _apply(trainer, state, train, validation)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _apply(trainer, before, train, validation)
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"[fit] {path} does not fit this trainer: {reason}") from error


def _apply(trainer: TrainerBase, state: dict[str, Any], train: DataLoader, validation: Any) -> None:
    if (state["schedule"] is None) != (trainer.schedule is None):
        raise ValueError("only one of the two has a schedule")
    if len(state["callbacks"]) != len(trainer.callbacks):
        raise ValueError(
            f"it has {len(state['callbacks'])} callbacks, the trainer has {len(trainer.callbacks)}"
        )
    _check_made_alike(trainer, state.get("made_with"))
    _check_shards(trainer, state)
    trainer.mixed_precision.load_state_dict(state.get("precision"))
    trainer.model.load_state_dict(state["model"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    if trainer.schedule is not None:
        trainer.schedule.load_state_dict(state["schedule"])
    set_random_state(trainer.model, state["random"])
    train.load_state_dict(state["data"])
    if isinstance(validation, DataLoader) and state["validation"] is not None:
        validation.load_state_dict(state["validation"])
    for callback, saved in zip(trainer.callbacks, state["callbacks"]):
        callback.load_state_dict(saved)
    trainer.progress.load_state_dict(state["progress"])


def _check_shards(trainer: TrainerBase, state: dict[str, Any]) -> None:
    """ValueError if batches were cut in another way: the weights would be others."""
    then, now = state.get("shards"), trainer.shards
    if then != now:
        was, new = (f"cut into {n} shards" if n else "not cut into shards" for n in (then, now))
        raise ValueError(f"its batches were {was}, the trainer's are {new}; a run goes on with shards={then}")
    if bool(state.get("compress")) != (trainer.world is not None and trainer.world.compress):
        raise ValueError("only one of the two exchanges gradients in bfloat16 (compress)")


def _check_made_alike(trainer: TrainerBase, then: Any) -> None:
    """ValueError if another optimiser, schedule or loss made the run, or the same with other options.

    What a checkpoint holds would win over what the trainer was given, without a word.
    """
    if not isinstance(then, dict):
        return
    for name in ("optimizer", "schedule", "loss"):
        old, new = (json.loads(json.dumps(made.get(name))) for made in (then, trainer.made_with))
        if isinstance(old, dict) and isinstance(new, dict) and old.get("name") == new.get("name"):
            changed = [key for key in new if old.get(key) != new[key]]
            if changed:
                was, now = (", ".join(f"{key}={values.get(key)}" for key in changed) for values in (old, new))
                raise ValueError(
                    f"its {name} {new['name']} has {was}, the trainer's {now}; a run goes on with the options it began with"
                )
        elif old != new:
            names = [value.get("name") if isinstance(value, dict) else value for value in (old, new)]
            raise ValueError(f"its {name} is {names[0]}, the trainer's {names[1]}")
