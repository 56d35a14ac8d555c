"""A finished run, opened again: its configuration and its model with the best weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..nn import Module
from ..train import load_weights
from ..train.recipes import make_model

__all__ = ["open_run"]


def open_run(folder: Path) -> tuple[dict[str, Any], Module]:
    """The configuration of a run and its model in evaluation mode."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError(f"{folder / 'config.json'} is not a configuration")
        model = make_model(config)
        files = [folder / name for name in ("best.safetensors", "model.safetensors")]
        found = next((file for file in files if file.exists()), None)
        if found is None:
            raise ValueError(
                f"{folder} has no weights yet; is the run finished? (extensor train ... --resume)"
            )
        model.load_state_dict(load_weights(found)[0])
    except FileNotFoundError:
        raise click.ClickException(f"{folder} is not the folder of a run: it has no config.json") from None
    except (ValueError, TypeError, OSError) as error:
        raise click.ClickException(str(error)) from None
    return config, model.eval()
