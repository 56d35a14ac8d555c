"""The folder of a run, opened again: its configuration, its model with the best weights, its test samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import data, nn
from .recipes import RECIPES, make_model
from .table_samples import read_again
from .weights import load_weights

__all__ = ["load_model", "read_config", "samples_of", "weights_file"]


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run; FileNotFoundError where there is none, ValueError where it is damaged."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} is not the folder of a run: it has no config.json") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not a configuration")
    return config


def weights_file(folder: Path) -> Path:
    """The best weights of a run, or those of its end where nothing was validated."""
    for name in ("best.safetensors", "model.safetensors"):
        if (folder / name).exists():
            return folder / name
    raise ValueError(f"{folder} has no weights yet; is the run finished? (extensor train ... --resume)")


def load_model(folder: Path, config: dict[str, Any]) -> nn.Module:
    """The model of a run with its best weights, in evaluation mode."""
    model = make_model(config)
    model.load_state_dict(load_weights(weights_file(folder))[0])
    return model.eval()


def samples_of(config: dict[str, Any], path: Path | None = None) -> data.Dataset:
    """The test samples of a run of images or a table; or all that ``path`` holds for testing."""
    recipe = config.get("recipe")
    if recipe not in ("mlp", "lenet", "resnet20"):
        raise ValueError(f"the recipe {recipe!r} has no samples to predict")
    place = path or (Path(config["data"]) if config.get("data") else None)
    if "table" in config and place is not None:
        every = read_again(place, config["table"])[1]
        return every if path is not None else every.split(0.8, rng=0)[1]
    return RECIPES[recipe].build(place, config.get("seed", 0), None).validation.dataset
