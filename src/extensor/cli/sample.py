"""``extensor sample``: text from a trained language model, as it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import random
from ..data import Text
from ..graph import no_grad
from ..ops.softmax import softmax
from ..tensor import ExTensor
from ._runs import open_run

__all__ = ["command"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--tokens", type=click.IntRange(1), default=500, show_default=True, help="How many characters.")
@click.option("--prompt", default="\n", help="How the text begins.  [default: a new line]")
@click.option("--temperature", type=click.FloatRange(0, min_open=True), default=0.8, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def command(run: Path, tokens: int, prompt: str, temperature: float, seed: int) -> None:
    """Write text with the model of RUN, a folder made by extensor train chargpt (or lstm)."""
    config, model = open_run(run)
    if "vocabulary" not in config:
        raise click.ClickException(f"{run} holds no language model; use extensor predict {run}")
    alphabet = Text(config["vocabulary"], config["vocabulary"])
    try:
        start = alphabet.encode(prompt)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if not len(start):
        raise click.ClickException("--prompt must not be empty")
    click.echo(prompt, nl=False)
    for token in _drawn(model, start, tokens, config["length"], temperature, random.generator(seed)):
        click.echo(alphabet.decode([token]), nl=False)
    click.echo()


def _drawn(
    model: Any, start: np.ndarray, count: int, length: int, temperature: float, rng: np.random.Generator
) -> Iterator[int]:
    """Token after token, each drawn from what the model expects after the last ``length``."""
    known = start.astype(np.int64)
    with no_grad():
        for _ in range(count):
            outputs = model(ExTensor(known[None, -length:].copy()))
            logits = (outputs[0] if isinstance(outputs, tuple) else outputs)[0, -1]
            likely = softmax(logits.astype("float64") / temperature).numpy()
            token = int(rng.choice(len(likely), p=likely))
            known = np.append(known, token)
            yield token
