"""The options of ``extensor train`` from the command line, a TOML file and an earlier run, in this order of strength."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .._spelling import did_you_mean
from ..train.hyperparameters import Hyperparameters
from ..train.recipes import RECIPES, Order

__all__ = ["SETTINGS", "TrainOptions", "parse_assignments", "read_toml"]

SETTINGS = tuple(f.name for f in fields(Hyperparameters))
_TASKS = ("auto", "classification", "regression")


@dataclass
class TrainOptions:
    """What to train; None stands for what was not said."""

    recipe: str | None = None
    data: Path | None = None
    target: str | None = None
    ignore: tuple[str, ...] | None = None
    task: str | None = None
    validation: Path | None = None
    test: Path | None = None
    out: Path | None = None
    epochs: int | None = None
    steps: int | None = None
    seed: int | None = None
    shards: int | None = None
    fold: tuple[int, int] | None = None
    compile: bool | None = None
    overwrite: bool | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def completed_by(self, other: TrainOptions) -> TrainOptions:
        """These options, and those of ``other`` where nothing was said."""
        merged = TrainOptions(settings=other.settings | self.settings)
        for name in (f.name for f in fields(self) if f.name != "settings"):
            mine = getattr(self, name)
            setattr(merged, name, getattr(other, name) if mine is None else mine)
        if self.epochs is not None or self.steps is not None:  # a length replaces the other kind too
            merged.epochs, merged.steps = self.epochs, self.steps
        return merged

    def order(self) -> Order:
        task: Any = self.task or "auto"
        return Order(
            self.data, self.seed or 0, self.target, self.ignore or (), task, self.validation, self.test, self.settings,
            self.fold,
        )  # fmt: skip


def of_run(config: dict[str, Any]) -> TrainOptions:
    """The options an earlier run was started with."""
    ignore = config.get("ignore")
    return TrainOptions(
        data=Path(config["data"]) if config.get("data") else None,
        target=config.get("target"),
        ignore=tuple(ignore) if isinstance(ignore, list) and ignore else None,
        task=config.get("task"),
        validation=Path(config["validation"]) if config.get("validation") else None,
        test=Path(config["test"]) if config.get("test") else None,
        epochs=config.get("epochs"),
        steps=config.get("steps"),
        seed=config.get("seed"),
        shards=config.get("shards"),
        settings={name: config[name] for name in SETTINGS if name in config},
    )


def parse_assignments(texts: tuple[str, ...]) -> dict[str, Any]:
    """``name=value`` for ``--set``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set needs name=value, got {text!r}")
        found[name.strip().replace("-", "_")] = value.strip()
    return found


def read_toml(path: Path) -> TrainOptions:
    """The options in a TOML file: the names of the long options, and settings of the recipe beside them."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from None
    kinds: dict[str, type | tuple[type, ...]] = {
        "recipe": str, "data": str, "target": (str, int), "ignore": list, "task": str, "out": str,
        "validation": str, "test": str,
        "epochs": int, "steps": int, "seed": int, "shards": int,
    }  # fmt: skip
    found = TrainOptions()
    for key, value in content.items():
        name = key.replace("-", "_")
        if name in SETTINGS:
            found.settings[name] = value
            continue
        if name not in kinds:
            near = did_you_mean(name, [*kinds, *SETTINGS])
            raise ValueError(
                f"{path}: there is no option {key!r}; there are {', '.join([*kinds, *SETTINGS])}{near}"
            )
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise ValueError(f"{path}: {key} cannot be {value!r}")
        _set(found, path, name, value)
    return found


def _set(found: TrainOptions, path: Path, name: str, value: Any) -> None:
    choices: Any = {"recipe": RECIPES, "task": _TASKS}.get(name)
    if choices is not None and value not in choices:
        raise ValueError(f"{path}: {name} must be one of {', '.join(choices)}, got {value!r}")
    lowest = {"epochs": 1, "steps": 1, "seed": 0, "shards": 1}.get(name)
    if lowest is not None and value < lowest:
        raise ValueError(f"{path}: {name} must be at least {lowest}, got {value}")
    if name in ("data", "validation", "test", "out"):
        value = path.parent / value  # as seen from the file
    elif name == "ignore":
        value = tuple(str(column) for column in value)
    elif name == "target":
        value = str(value)
    setattr(found, name, value)
