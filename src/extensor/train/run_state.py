"""Everything that decides how a run goes on, gathered for a checkpoint and put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data import DataLoader
from .random_state import get_random_state, set_random_state
from .trainer_base import TrainerBase

__all__ = ["load_run_state", "run_state"]


def run_state(trainer: TrainerBase, train: DataLoader, validation: Any) -> dict[str, Any]:
    """The state of a run between two steps."""
    return {
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "schedule": None if trainer.schedule is None else trainer.schedule.state_dict(),
        "random": get_random_state(trainer.model),
        "data": train.state_dict(),
        "validation": validation.state_dict() if isinstance(validation, DataLoader) else None,
        "callbacks": [callback.state_dict() for callback in trainer.callbacks],
        "progress": trainer.progress.state_dict(),
    }


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
