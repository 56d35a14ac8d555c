"""``extensor verify``: every gradient, checked numerically on this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from .._progress import watched
from .._spelling import did_you_mean
from ..testing.tolerances import TOLERANCES
from ..testing.user_pairs import user_subjects
from ..testing.verifier import DTYPES, Subject, Verdict, library_subjects, verify

__all__ = ["command"]


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the Tab key: the functions and families that begin so."""
    found = {name for subject in library_subjects() for name in (subject.name, subject.family)}
    return sorted(name for name in found if name.startswith(incomplete))


@click.command("verify")
@click.argument("files", nargs=-1, metavar="[FILE.py]...", type=click.Path(dir_okay=False))
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=_names,
    help="Functions or families to check; globs work (repeatable).",
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(list(DTYPES)),
    help="Repeatable.  [default: float64 float32 float16]",
)
@click.option(
    "--order",
    metavar="N",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="2 checks second derivatives, in float64: the backward functions differentiated by the recorder.",
)
@click.option(
    "--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="Of the sample inputs."
)
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON to stdout.")
def command(
    files: tuple[str, ...],
    only: tuple[str, ...],
    dtypes: tuple[str, ...],
    order: int,
    seed: int,
    as_json: bool,
) -> None:
    """Check every gradient numerically, on this machine.

    Each backward function is compared with central differences in float64, and in the narrower dtypes with the
    float64 result; upstream gradients are random. Exits with 1 if a gradient is wrong.

    With FILE.py, checks the @differentiable functions that this file defines instead of those of ExTensor.

    \b
    Examples:
      extensor verify                                 every pair of ExTensor
      extensor verify --only softmax --only "*loss*"  some, by name or family
      extensor verify --only matrix --order 2         second derivatives
      extensor verify my_module.py                    your own pairs
    """
    subjects = _choose(files, only)
    if order == 2:
        if set(dtypes) - {"float64"}:
            raise click.BadParameter("second derivatives are checked in float64 alone", param_hint="--dtype")
        dtypes = ("float64",)
    dtypes = tuple(dict.fromkeys(dtypes)) or ("float64", "float32", "float16")
    started = time.perf_counter()
    verdicts = _run(subjects, dtypes, seed, order)
    seconds = time.perf_counter() - started
    if as_json:
        click.echo(json.dumps(_as_data(verdicts, dtypes, seed, seconds), indent=2))
    else:
        _show(verdicts, dtypes, seed, seconds, order)
    sys.exit(0 if all(verdict.passed for verdict in verdicts) else 1)


def _choose(files: Iterable[str], only: tuple[str, ...]) -> list[Subject]:
    try:
        subjects = (
            [subject for path in files for subject in user_subjects(path)] if files else library_subjects()
        )
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    for pattern in only:
        if not any(_matches(subject, pattern) for subject in subjects):
            names = [subject.name for subject in subjects]
            families = {subject.family for subject in subjects}
            near = did_you_mean(pattern.removesuffix("_backward"), [*names, *families])
            instead = near or f"; there are: {', '.join(names)}"
            raise click.BadParameter(f"nothing is called {pattern!r}{instead}", param_hint="--only")
    return [s for s in subjects if not only or any(_matches(s, pattern) for pattern in only)]


def _matches(subject: Subject, pattern: str) -> bool:
    return fnmatchcase(subject.name, pattern.removesuffix("_backward")) or fnmatchcase(
        subject.family, pattern
    )


def _run(subjects: list[Subject], dtypes: tuple[str, ...], seed: int, order: int) -> list[Verdict]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(subjects))
        verdicts = []
        results = verify(subjects, dtypes, seed, order)
        told = subjects if console.is_terminal else watched(subjects, "verifying", "functions")
        for subject in told:
            progress.update(task, description=subject.name)
            verdicts.append(next(results))
            progress.advance(task)
    return verdicts


# For machines


def _as_data(verdicts: list[Verdict], dtypes: tuple[str, ...], seed: int, seconds: float) -> dict[str, Any]:
    return {
        "passed": all(verdict.passed for verdict in verdicts),
        "seed": seed,
        "dtypes": {
            name: {"rtol": TOLERANCES[DTYPES[name]].rtol, "atol": TOLERANCES[DTYPES[name]].atol}
            for name in dtypes
        },
        "seconds": round(seconds, 3),
        "functions": [
            {
                "name": verdict.name,
                "family": verdict.family,
                "cases": verdict.cases,
                "worst_relative_error": {name: _finite(error) for name, error in verdict.worst.items()},
                "passed": verdict.passed,
                "failures": [
                    {name: _finite(value) for name, value in asdict(failure).items()}
                    for failure in verdict.failures
                ],
            }
            for verdict in verdicts
        ],
    }


def _finite(value: Any) -> Any:
    """JSON has no inf and no nan."""
    return str(value) if isinstance(value, float) and not abs(value) < float("inf") else value


# For people


def _show(verdicts: list[Verdict], dtypes: tuple[str, ...], seed: int, seconds: float, order: int) -> None:
    console = Console(highlight=False)
    console.print(_table(verdicts, dtypes))
    failed = [verdict for verdict in verdicts if not verdict.passed]
    for verdict in failed:
        console.print()
        _explain(console, verdict)
    console.print()
    console.print(_summary(verdicts, failed, dtypes, seed, seconds, order))


def _table(verdicts: list[Verdict], dtypes: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", collapse_padding=True)
    table.add_column("function", no_wrap=True)
    table.add_column("cases", justify="right", min_width=5)
    for name in dtypes:
        table.add_column(name, justify="right", no_wrap=True, min_width=7)
    table.add_column("verdict", min_width=7)
    limits = [Text(f"{TOLERANCES[DTYPES[name]].limit:.0e}", style="dim") for name in dtypes]
    table.add_row(Text("largest relative error", style="dim"), "", *limits, Text("allowed", style="dim"))
    family = None
    for verdict in verdicts:
        if verdict.family != family:
            table.add_row()
            table.add_row(Text(verdict.family, style="cyan"))
            family = verdict.family
        errors = [_error(verdict, name) for name in dtypes]
        mark = Text("right", style="green") if verdict.passed else Text("WRONG", style="bold red")
        table.add_row(f"  {verdict.name}", str(verdict.cases), *errors, mark)
    return table


def _error(verdict: Verdict, dtype: str) -> Text:
    error = verdict.worst.get(dtype, 0.0)
    limit = TOLERANCES[DTYPES[dtype]].limit
    return Text(
        "0" if error == 0 else f"{error:.1e}", style="red" if error > limit else "dim" if error == 0 else ""
    )


def _explain(console: Console, verdict: Verdict) -> None:
    """What is wrong, and code to paste: no frame around it and no line broken."""
    console.print(Rule(Text(verdict.name, style="bold red"), style="red", align="left"))
    if not verdict.failures:
        console.print("no sample of it could be compared")
        return
    first, *others = verdict.failures
    console.print(Text(f"{first.dtype} {first.case}".strip(), style="dim"))
    console.print(Text(first.message))
    if first.snippet:
        console.print()
        console.print(
            Syntax(first.snippet, "python", theme="ansi_dark").highlight(first.snippet),
            soft_wrap=True,
            end="",
        )
    if others:
        more = "1 more case fails" if len(others) == 1 else f"{len(others)} more cases fail"
        console.print(Text(f"\n{more}; --json lists them all", style="dim"))


def _summary(
    verdicts: list[Verdict],
    failed: list[Verdict],
    dtypes: tuple[str, ...],
    seed: int,
    seconds: float,
    order: int,
) -> Text:
    cases = sum(verdict.cases for verdict in verdicts)
    pairs = "1 pair" if len(verdicts) == 1 else f"{len(verdicts)} pairs"
    done = f"{pairs}, {cases:,} cases, {', '.join(dtypes)}, seed {seed}, {seconds:.1f} s"
    if failed:
        names = ", ".join(verdict.name for verdict in failed)
        return Text.assemble((f"{len(failed)} wrong: {names}\n", "bold red"), (done, "dim"))
    if order == 1:
        done += "\nEach call made by the body of its function and repeated by its plan: the same bits."
        if {"float16", "bfloat16"} & set(dtypes):
            done += "\nHalf precision also as autocast casts to it, and back to float32."
    return Text.assemble(("Every gradient is right.\n", "bold green"), (done, "dim"))
