"""``extensor bench``: how fast, beside the libraries that are installed."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .. import bench, config
from .._progress import watched
from .._spelling import did_you_mean
from ..version import __version__
from ._output import say

__all__ = ["command"]


@click.command()
@click.option(
    "--group",
    "groups",
    multiple=True,
    type=click.Choice(bench.GROUPS),
    metavar="GROUP",
    help=f"Only these groups (repeatable): {', '.join(bench.GROUPS)}.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Only cases of this name or glob (repeatable).")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="SIZE",
    help="Only cases of this size, e.g. 16, 4K, 1M, 8M (repeatable).",
)
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(1, config.MAX_THREADS),
    help="Threads for every library.  [default: ours]",
)
@click.option(
    "--rounds", metavar="N", type=click.IntRange(2), default=30, show_default=True, help="Rounds per case."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write bench.md, bench.json and bench.png there.",
)
@click.option(
    "--against", type=click.Path(path_type=Path, exists=True), help="An older bench.json to compare with."
)
def command(
    groups: tuple[str, ...], only: tuple[str, ...], sizes: tuple[str, ...], threads: int | None, rounds: int,
    out: Path | None, against: Path | None,
) -> None:  # fmt: skip
    """Measure ExTensor beside PyTorch, NumPy and JAX, those that are installed.

    All libraries run the same computation in one process, in short rounds in turn, with the same number of threads. The
    table shows minima and their ratios, and how near the large cases come to the machine's own limits.

    \b
    Examples:
      extensor bench --group matmul                    one group of cases
      extensor bench --only relu --size 1M --rounds 5  one case
      extensor bench --out results                     table, numbers, chart
    """
    libraries = bench.peers()
    if threads is not None:
        config.set_num_threads(threads)
    threads = config.get_num_threads()
    if "torch" in libraries:
        libraries["torch"].set_num_threads(threads)
    try:
        before = bench.read_json(against) if against is not None else None
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    there = list(bench.cases(libraries, groups or bench.GROUPS))
    for pattern in only:
        if not any(fnmatch.fnmatch(case.name, pattern) for case in there):
            near = did_you_mean(pattern, {case.name for case in there})
            raise click.UsageError(f"no case fits --only {pattern!r}{near}")
    chosen = [
        case
        for case in there
        if (not only or any(fnmatch.fnmatch(case.name, pattern) for pattern in only))
        and (not sizes or case.size in sizes)
    ]
    if not chosen:
        raise click.UsageError("no case fits --group, --only and --size")
    versions = {"extensor": __version__, **{n: m.__version__ for n, m in libraries.items()}}
    console = Console(stderr=True)
    pause = 0.003 if threads > 1 else 0.0  # the workers of OpenMP wait for more work as long as that
    limits = bench.measure_limits()
    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    results = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(chosen))
        for case in chosen if console.is_terminal else watched(chosen, "measuring", "cases"):
            progress.update(task, description=f"{case.name} {case.size}")
            times = bench.compare(case.make(), rounds, pause=pause)
            results.append(
                bench.Result(case.group, case.name, case.size, times, case.bytes_moved, case.operations)
            )
            progress.advance(task)
    run = bench.Run(bench.machine(), threads, versions, *limits, results)
    text = bench.markdown(run)
    click.echo(text)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "bench.md").write_text(text, encoding="utf-8")
        bench.write_json(run, out / "bench.json")
        _draw(run, out / "bench.png", "torch" in libraries)
        console.print(f"written to {out}")
    if before is not None:
        say(bench.compare_runs(before, run))


def _draw(run: bench.Run, path: Path, has_peer: bool) -> None:
    if not has_peer:
        return
    try:
        bench.chart(run, path)
    except ImportError:
        click.echo(
            "no chart: it needs matplotlib: pip install matplotlib (the extra 'plots' of ExTensor)", err=True
        )
