"""``extensor export``: a trained model as an ONNX file that needs nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import data as datasets
from ..nn import Module
from ..ops.softmax import softmax
from ..tensor import ExTensor, asarray
from ..train.sample_recipes import Enlarged
from ..train.saved_run import held_out_samples
from ._saved_run import open_run

__all__ = ["command"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="Where the images of the run are now, if they were moved.",
)
@click.option("--opset", type=int, metavar="N", help="Version of the operator set, 17 to 23.  [default: 20]")
def command(run: Path, target: Path, data: Path | None, opset: int | None) -> None:
    """Write the best weights of RUN, a folder made by extensor train, to an ONNX file.

    The file is usable alone. From a table: it takes columns in their own units and gives quantities in theirs, or
    probabilities of classes. From images: it takes pixels as they are stored and gives probabilities. From text: it takes
    numbers of characters and gives the logits of the next. Class names, columns and vocabulary are in its metadata.

    \b
    Examples:
      extensor export runs/lenet --to lenet.onnx
      extensor export runs/mlp --to prices.onnx --opset 17
    """
    config, model = open_run(run)
    try:
        from .. import onnx
    except ModuleNotFoundError as error:
        raise click.ClickException(str(error)) from None
    try:
        alone, example, free = _alone(config, model, data)
        written = onnx.export(
            alone, target, example, dynamic_axes={0: free}, opset=opset, metadata=_metadata(config)
        )
    except (ValueError, NotImplementedError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(str(written))


def _alone(
    config: dict[str, Any], model: Module, data: Path | None
) -> tuple[Module, ExTensor, dict[int, str]]:
    """The model with what stands before and after it, a sample, and the free axes."""
    if config.get("vocabulary"):
        count = len(config["vocabulary"])
        tokens = np.arange(2 * min(8, config["length"])).reshape((2, -1)) % count
        return _Logits(model), asarray(tokens), {0: "batch", 1: "time"}
    table = config.get("table")
    if table is not None:  # rows around the mean do as well as any
        scale = table["inputs"]
        steps = np.array([[-0.5], [0.5]])
        inputs = (np.array(scale["mean"]) + steps * np.array(scale["spread"])).astype(np.float32)
        classes = config.get("classes") is not None
        return _Scaled(model, (), table, classes).eval(), asarray(inputs), {0: "batch"}
    samples = held_out_samples(config, data)
    places, transforms = np.arange(2) % len(samples), samples.transforms
    inputs, ready = samples.gather(places)[0], samples.batch(places)[0]
    if any(not isinstance(t, (datasets.ToFloat, datasets.Normalize, Enlarged)) for t in transforms):
        inputs, transforms = ready.numpy(), ()
    classes = config.get("classes") is not None or int(model(ready).shape[-1]) > 1
    return _Scaled(model, transforms, None, classes).eval(), asarray(inputs), {0: "batch"}


def _transformed(x: ExTensor, transform: Any) -> ExTensor:
    """What a transform of a dataset does, in functions that can be exported."""
    if isinstance(transform, datasets.ToFloat):
        return x.astype("float32") * np.float32(1 / transform.highest)
    if isinstance(transform, datasets.Normalize):
        across = (-1, *(1,) * (x.ndim - 2)) if transform.mean.ndim else ()
        mean, std = (v.astype(np.float32).reshape(across) for v in (transform.mean, transform.std))
        return (x - mean) / std
    return x.repeat(3, 2).repeat(3, 3).pad(((0, 0), (0, 0), (2, 2), (2, 2)))


class _Logits(Module):
    """A language model without the state beside its logits."""

    def __init__(self, model: Module) -> None:
        self.model = model

    def forward(self, tokens: ExTensor) -> ExTensor:
        found = self.model(tokens)
        return found[0] if isinstance(found, tuple) else found


class _Scaled(Module):
    """A model between its data as they are stored and probabilities, or the units of its target."""

    def __init__(self, model: Module, transforms: Any, table: Any, classes: bool) -> None:
        self.model = model
        self.transforms = transforms
        self.classes = classes
        self.scale = None if table is None else table["inputs"]
        self.target = None if table is None else table["target"]

    def forward(self, x: ExTensor) -> ExTensor:
        for transform in self.transforms:
            x = _transformed(x, transform)
        if self.scale is not None:
            x = (x - np.array(self.scale["mean"], np.float32)) / np.array(self.scale["spread"], np.float32)
        found = self.model(x)
        if self.classes:
            return softmax(found)
        return found if self.target is None else found * self.target["spread"][0] + self.target["mean"][0]


def _metadata(config: dict[str, Any]) -> dict[str, str]:
    """What a user of the file must know, as texts."""
    found = {"recipe": str(config.get("recipe"))}
    if config.get("classes") is not None:
        found["classes"] = json.dumps(config["classes"])
    if config.get("vocabulary"):
        found["vocabulary"] = config["vocabulary"]
    if config.get("table") is not None:
        found["columns"] = json.dumps(config["table"]["encoding"]["columns"])
    return found
