"""The folder of a run, opened again: its configuration, its model with the best weights, its samples."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .. import data, nn
from ..data.pictures import PICTURES, PictureFiles, flat_pictures, has_pictures
from .array_samples import read_array_samples
from .data_identity import check_data
from .model_config import make_model
from .recipe import Order, Task
from .run_files import check_own, read_own
from .sample_files import load_parts
from .sample_recipes import enlarged
from .table_notes import strange_cells
from .table_samples import is_description, is_table, read_again
from .weights import load_weights, read_header

__all__ = ["load_model", "new_samples", "read_config", "held_out_samples", "prepared", "weights_file"]

_PREDICT = ("mlp", "lenet", "resnet20")


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run; FileNotFoundError where there is none, ValueError where it is damaged."""
    path = folder / "config.json"
    try:
        config = json.loads(read_own("read_config", path).decode("utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} is not the folder of a run: it has no config.json") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not a configuration")
    problem = _problem(config)
    if problem:
        raise ValueError(f"{path} is damaged: {problem}")
    return config


_TEXTS = (
    "recipe", "data", "data_sha256", "validation", "validation_sha256", "test", "test_sha256", "vocabulary", "task",
    "target",
)  # fmt: skip


def _problem(config: dict[str, Any]) -> str | None:
    """What is wrong with the parts that are used without further checks."""
    for name in _TEXTS:
        if config.get(name) is not None and not isinstance(config[name], str):
            return f"{name} is no text"
    for name, lowest in (("seed", 0), ("length", 1), ("data_bytes", 0)):
        value = config.get(name, lowest)
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value < 1 << 62:
            return f"{name} is no whole number of at least {lowest}"
    if type(config.get("image_size", 32)) is not int or not 1 <= config.get("image_size", 32) <= 4096:
        return "image_size is no size"
    for name in ("epochs", "steps"):
        value = config.get(name)
        if value is not None and (type(value) is not int or not 1 <= value < 1 << 62):
            return f"{name} is no number of them"
    classes = config.get("classes", [])
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        return "classes is no list of names"
    if "vocabulary" in config and (not config["vocabulary"] or "length" not in config):
        return "a language model needs a vocabulary and a length"
    if len(set(config.get("vocabulary", ""))) != len(config.get("vocabulary", "")):
        return "a character stands twice in the vocabulary"
    if "table" in config and not is_description(config["table"]):
        return "table is no description of a table"
    fold = config.get("fold", [1, 2])
    if (
        not isinstance(fold, list)
        or [type(n) for n in fold] != [int, int]
        or not 1 <= fold[0] <= fold[1] < 1 << 31
    ):
        return "fold is no pair of numbers"
    ignore = config.get("ignore", [])
    if not isinstance(ignore, list) or not all(isinstance(column, str) for column in ignore):
        return "ignore is no list of columns"
    return None


def weights_file(folder: Path) -> Path:
    """The best weights of a run, or those of its end where nothing was validated."""
    for name in ("best.safetensors", "model.safetensors"):
        if (folder / name).exists():
            check_own("load_model", folder / name)
            return folder / name
    raise ValueError(f"{folder} has no weights yet; is the run finished? (extensor train ... --resume)")


def load_model(folder: Path, config: dict[str, Any]) -> nn.Module:
    """The model of a run with its best weights, in evaluation mode."""
    file = weights_file(folder)
    model = make_model(config, sum(math.prod(info.shape) for info in read_header(file).tensors.values()))
    model.load_state_dict(load_weights(file)[0])
    return model.eval()


def held_out_samples(config: dict[str, Any], moved: Path | None = None) -> data.Dataset:
    """The samples that the run kept for testing.

    Args:
        config: of a run of images or a table.
        moved: where its data is now, if that is not where it was.

    Raises:
        ValueError: the data is not what the run learned from.
    """
    _check_recipe(config)
    place = moved or (Path(config["data"]) if config.get("data") else None)
    check_data(config, place)
    parts = {name: Path(config[name]) if config.get(name) else None for name in ("validation", "test")}
    for name, path in parts.items():
        check_data(config, path, name)
    columns = config.get("target"), tuple(config.get("ignore", ()))
    fold = tuple(config["fold"]) if "fold" in config else None
    order = Order(place, 0, *columns, _task(config), parts["validation"], parts["test"], fold=fold)
    return prepared(config, load_parts(order, "table" in config, config.get("image_size", 32)).test)


def new_samples(config: dict[str, Any], path: Path) -> tuple[data.Dataset, list[str]]:
    """Every sample of a file or folder, in its order, with targets where it has them; and what is strange about them."""
    _check_recipe(config)
    if "table" in config:
        if not is_table(path):
            raise ValueError(f"the run learned from a table (.csv); {path} is none")
        table, samples = read_again(path, config["table"])
        return samples, strange_cells(table)
    if path.suffix.lower() in PICTURES or (path.is_dir() and (has_pictures(path) or flat_pictures(path))):
        return prepared(config, _pictures(config, path)), []
    if path.suffix == ".npz":
        samples, notes = read_array_samples(
            path,
            "classification" if config.get("classes") else "regression",
            config.get("classes"),
            needs_targets=False,
        )
        return prepared(config, samples), notes[1:]
    return prepared(config, load_parts(Order(path, task=_task(config))).test), []


def _pictures(config: dict[str, Any], path: Path) -> data.Dataset:
    """One picture, or those of a folder; with targets where it has a folder for each class."""
    size, channels = config.get("image_size", 32), int(config["model"]["args"].get("in_channels", 3))
    if path.is_dir() and has_pictures(path):
        return data.image_folder(path, size, channels, classes=config.get("classes"))
    files = flat_pictures(path) if path.is_dir() else [path]
    return data.Dataset(PictureFiles(files, (size, size), channels), None, [data.ToFloat()])


def _task(config: dict[str, Any]) -> Task:
    found: Any = config.get("task")
    return found if found in ("classification", "regression") else "auto"


def prepared(config: dict[str, Any], samples: data.Dataset) -> data.Dataset:
    """Samples in the form that the recipe of a run takes."""
    return enlarged(samples) if config["recipe"] == "lenet" else samples


def _check_recipe(config: dict[str, Any]) -> None:
    if config.get("recipe") not in _PREDICT:
        raise ValueError(f"the recipe {config.get('recipe')!r} has no samples to predict")
