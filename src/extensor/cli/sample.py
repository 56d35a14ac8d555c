"""``extensor sample``: text from a trained language model, as it is drawn."""

from __future__ import annotations

import math
from pathlib import Path

import click

from .. import random
from .._printable import printable
from ..data import Text
from ..train.text_sampling import drawn_tokens
from ._saved_run import open_run

__all__ = ["command"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--tokens",
    metavar="N",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="How many characters.",
)
@click.option("--prompt", help="How the text begins.  [default: a new line, if the model knows it]")
@click.option(
    "--temperature",
    metavar="T",
    type=click.FloatRange(0, min_open=True),
    default=0.8,
    show_default=True,
    help="Below 1 the likely characters are preferred, above 1 the unlikely come more often.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of what is drawn: the same seed gives the same text.",
)
def command(run: Path, tokens: int, prompt: str | None, temperature: float, seed: int) -> None:
    """Write text with the model of RUN, a folder made by extensor train chargpt (or lstm).

    \b
    Examples:
      extensor sample runs/chargpt
      extensor sample runs/chargpt --prompt "ROMEO:" --temperature 0.6
    """
    if math.isnan(temperature):
        raise click.BadParameter(
            "nan is no temperature; 1 leaves the probabilities as they are", param_hint="--temperature"
        )
    config, model = open_run(run)
    if "vocabulary" not in config:
        raise click.ClickException(f"{run} holds no language model; use extensor predict {run}")
    alphabet = Text(config["vocabulary"], config["vocabulary"])
    if prompt is None:
        prompt = "\n" if "\n" in alphabet.vocabulary else alphabet.vocabulary[0]
    try:
        start = alphabet.encode(prompt)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if not len(start):
        raise click.ClickException("--prompt must not be empty")
    click.echo(printable(prompt), nl=False)
    try:
        for token in drawn_tokens(
            model, start, tokens, config["length"], temperature, random.generator(seed)
        ):
            click.echo(printable(alphabet.decode([token])), nl=False)
    except (ValueError, TypeError) as error:  # a configuration that does not fit its weights
        click.echo()
        raise click.ClickException(str(error)) from None
    click.echo()
