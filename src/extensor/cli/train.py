"""``extensor train``: a recipe from data to weights, in a folder that survives anything."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from .. import config
from ..distributed import World
from ..distributed.mpi import launched_ranks
from ..train import FolderInUseError
from ..train.hyperparameters import OPTIMIZERS, SCHEDULES
from ..train.launch import test_results
from ..train.mixed_precision import PRECISIONS
from ..train.recipes import RECIPES
from ._output import say
from ._processes import run_processes
from ._ranks import JOB, as_rank
from ._train_options import TrainOptions, parse_assignments, read_toml
from ._training import SHARDS, closing_line, over_folds, prepare, run_training, verify_run, write_page

__all__ = ["command"]

_ARGUMENTS = "extensor.train.arguments"


def _line(name: str) -> str:
    """A recipe in the help."""
    recipe = RECIPES[name]
    length = f"{recipe.epochs} epochs" if recipe.epochs is not None else f"{recipe.steps} steps"
    return f"  {name:9} {recipe.about} ({length})"


class _Command(click.Command):
    """Keeps its arguments as they were typed, for the processes it may start."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


@click.command(
    cls=_Command,
    help=f"""Train RECIPE (lenet if none is named) and keep everything in a folder: weights, log, checkpoints, and a \
page to look at.

\b
Recipes:
{chr(10).join(_line(name) for name in RECIPES)}

\b
Examples:
  extensor train lenet                   digits that come with ExTensor
  extensor train lenet --data mnist/     a folder with the MNIST files
  extensor train mlp --data flowers.csv  your own table; the last column is
                                         predicted, or the one --target names
  extensor train chargpt --data my.txt   then: extensor sample runs/chargpt
  extensor train lenet --resume          go on after a crash, to the same bits

In a table, a column of words becomes one input for each of its words (100 at most), and an empty cell among numbers \
counts as the mean of its column, one among words as one more word. A tenth of the rows chooses the best weights \
(validation), and a fifth is kept for testing.

Several processes share each batch: --processes 4 on one machine, mpiexec -n 4 extensor train ... or srun on many. \
For the same --shards the weights are the same bits on any number of processes, and a run may go on with another.

Ctrl-C ends a run with a checkpoint and the exit code 130; a second one ends it at once.
""",
)
@click.argument("recipe", metavar="[RECIPE]", type=click.Choice(list(RECIPES)), required=False)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="A folder or file to learn from.  [default: embedded digits]",
)
@click.option(
    "--target", metavar="COLUMN", help="Of a table: what to predict, by name or number.  [default: the last]"
)
@click.option(
    "--ignore", metavar="COLUMN", multiple=True, help="Of a table: a column to leave out (repeatable)."
)
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    help="Whether targets are classes or quantities.  [default: auto]",
)
@click.option(
    "--validation",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file that chooses the best weights.  [default: a tenth of the data]",
)
@click.option(
    "--test",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file to test with.  [default: a fifth of the data]",
)
@click.option(
    "--folds",
    metavar="K",
    type=click.IntRange(2, 1000),
    help="Train K times, each time testing with another Kth of the data.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The run's folder.  [default: runs/RECIPE]",
)
@click.option(
    "--epochs",
    metavar="N",
    type=click.IntRange(1),
    help="How often to go through the data.  [default: see above]",
)
@click.option(
    "--steps", metavar="N", type=click.IntRange(1), help="How many optimiser steps, instead of epochs."
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    help="Of weights, shuffling and dropout.  [default: 0]",
)
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(1, config.MAX_THREADS),
    help="Threads to compute with.  [default: all cores]",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(1, 1024),
    help="Train on N processes of this machine; the same weights.",
)
@click.option(
    "--shards",
    metavar="M",
    type=click.IntRange(1, 1 << 20),
    help="Parts that each batch is cut into.  [default: 8 with several processes]",
)
@click.option(
    "--restarts",
    metavar="K",
    type=click.IntRange(0),
    default=0,
    help="With --processes: go on up to K times when a process is lost.",
)
@click.option("--resume", is_flag=True, help="Go on from the newest whole checkpoint in the folder.")
@click.option("--overwrite", is_flag=True, help="Remove the run that is in the folder and begin anew.")
@click.option("--lr", metavar="RATE", help="The highest learning rate.")
@click.option("--batch-size", metavar="N", help="Samples per step.")
@click.option("--hidden", metavar="N,N,...", help="Widths of the hidden layers, for mlp.")
@click.option("--weight-decay", metavar="X", help="How much weights shrink.")
@click.option("--patience", metavar="N", help="End after N validations without a better one.")
@click.option("--optimizer", type=click.Choice(list(OPTIMIZERS)), help="What moves the weights.")
@click.option("--schedule", type=click.Choice(SCHEDULES), help="How the learning rate changes.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help="Of products; auto measures a few steps and takes the faster.  [default: float32]",
)
@click.option(
    "--set",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any setting of the recipe (repeatable).",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A TOML file with options; the command line wins.",
)
@click.option(
    "--compile/--no-compile",
    "compiles",
    default=None,
    help="Record the passes once and repeat them natively; the weights are the same.  [default: compile]",
)
@click.option("--show-config", is_flag=True, help="Print what would run, and do not run it.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard's event files too.")
@click.option(
    "--verify", is_flag=True, help="Afterwards check the gradients of the functions that were used."
)
def command(
    recipe: str | None, data: Path | None, target: str | None, ignore: tuple[str, ...], task: str | None, out: Path | None,
    validation: Path | None, test: Path | None, folds: int | None, epochs: int | None, steps: int | None,
    seed: int | None, threads: int | None, processes: int | None, shards: int | None, restarts: int, resume: bool, overwrite: bool,
    assignments: tuple[str, ...], config_file: Path | None, compiles: bool | None, show_config: bool, tensorboard: bool, verify: bool,
    **settings: Any,
) -> None:  # fmt: skip
    """See the help above."""
    if epochs is not None and steps is not None:
        raise click.UsageError("give --epochs or --steps, not both")
    if resume and overwrite:
        raise click.UsageError("--resume goes on with a run, --overwrite removes it; give one of them")
    if processes is not None and launched_ranks() == 1 and JOB not in os.environ:
        if processes > (shards or SHARDS):
            raise click.UsageError(
                f"--processes {processes} needs as many shards: --shards {processes} or more"
            )
        if not show_config:
            raise SystemExit(
                run_processes(click.get_current_context().meta[_ARGUMENTS], processes, restarts, threads)
            )
    if restarts and processes is None:
        raise click.UsageError(
            "--restarts belongs to --processes; under a scheduler, its own requeue restarts a job"
        )
    if threads is not None:
        config.set_num_threads(threads)
    try:
        given = {name: value for name, value in settings.items() if value is not None}
        options = TrainOptions(
            recipe, data, target, ignore or None, task, validation, test, out, epochs, steps, seed, shards,
            settings=given | parse_assignments(assignments), compile=compiles,
            overwrite=overwrite,
        )  # fmt: skip
        if config_file is not None:
            options = options.completed_by(read_toml(config_file))
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    _check(options)
    folder = options.out or Path("runs") / str(options.recipe)
    if folds is not None and test is not None:
        raise click.UsageError("give --folds or --test, not both")
    if processes is not None and options.shards is None:
        options.shards = SHARDS  # the same run as on several
    with as_rank(threads) as world:
        _train_all(options, folder, folds, resume, show_config, tensorboard, verify, world)


def _train_all(
    options: TrainOptions, folder: Path, folds: int | None, resume: bool, show_config: bool, tensorboard: bool, verify: bool,
    world: World | None,
) -> None:  # fmt: skip
    """Train the run, or one for each fold."""
    if folds is None:
        _train(options, folder, resume, show_config, tensorboard, verify, world)
        return
    results = []
    for k in range(1, 2 if show_config else folds + 1):
        options.fold = (k, folds)
        say(f"fold {k} of {folds}", err=True)
        results.append(
            _train(options, folder / f"fold-{k}", resume, show_config, tensorboard, verify and k == 1, world)
        )
    if not show_config:
        say(over_folds(results))


def _check(options: TrainOptions) -> None:
    """UsageError for options that the recipe does not have."""
    options.recipe = options.recipe or "lenet"
    chosen = RECIPES[options.recipe]
    if (options.target or options.ignore) and not chosen.tables:
        raise click.UsageError(
            f"--target and --ignore are for tables, and {options.recipe} learns from none; use mlp"
        )


def _train(
    options: TrainOptions, folder: Path, resume: bool, show_config: bool, tensorboard: bool, verify: bool,
    world: World | None,
) -> dict[str, float]:  # fmt: skip
    """Train one run in its folder; returns how good it is on its test samples."""
    with ExitStack() as owning:
        return _train_owned(options, folder, resume, show_config, tensorboard, verify, owning, world)


def _train_owned(
    options: TrainOptions, folder: Path, resume: bool, show_config: bool, tensorboard: bool, verify: bool,
    owning: ExitStack, world: World | None,
) -> dict[str, float]:  # fmt: skip
    try:
        setup, options = prepare(options, folder, resume, world)
        for note in setup.notes:
            say(note, err=True)
        if show_config:
            say(json.dumps({"recipe": options.recipe, "out": str(folder), **setup.config}, indent=2))
            return {}
        history = run_training(setup, options, folder, tensorboard, resume, owning, world)
    except FileExistsError:
        raise click.ClickException(
            f"{folder} holds a run already: --resume goes on with it, --overwrite removes it, --out names another folder"
        ) from None
    except (ValueError, OSError, FolderInUseError, FloatingPointError) as error:
        raise click.ClickException(str(error)) from None
    if world is not None and world.rank != 0:
        if history.stopped == "interrupted":
            raise SystemExit(130)
        return {}
    results = {} if history.stopped == "interrupted" else test_results(setup, folder)
    say(closing_line(results, history, folder))
    if history.stopped == "interrupted":
        raise SystemExit(130)
    if verify:
        verify_run(setup)
    write_page(setup, folder)
    return results
