"""``extensor report``: a run as a page to look at."""

from __future__ import annotations

from pathlib import Path

import click

from ..report import write_comparison, write_report
from ..report.plots import matplotlib_is_there

__all__ = ["command"]


@click.command()
@click.argument(
    "runs",
    metavar="DIR...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="Where the data of the run is now, if it has moved.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Of several runs: the page.  [default: comparison.html beside them]",
)
def command(runs: tuple[Path, ...], data: Path | None, out: Path | None) -> None:
    """Write DIR/report.html, one page that holds everything it needs, and PNG files into DIR/pictures.

    Of several runs, write one page that compares them: what came of each, their curves in one chart, and the settings in which
    they differ.

    DIR is a folder made by extensor train. The page shows the curves of loss, accuracy and learning rate, gradients and
    updates of the layers, the confusion matrix with the most confused examples, the filters of the first layer, the
    layers and the configuration; for a language model, a piece of its text. A run that is still going on, or that was
    interrupted, is shown as far as it came.

    \b
    Examples:
      extensor report runs/lenet
      extensor report runs/mnist --data ~/data/mnist
      extensor report runs/a runs/b runs/c   the three on one page
    """
    if len(runs) > 1:
        if data is not None:
            raise click.UsageError("--data belongs to a single run")
        _compare(runs, out)
        return
    if out is not None:
        raise click.UsageError("--out belongs to several runs; the page of one is DIR/report.html")
    run = runs[0]
    charts = matplotlib_is_there()
    try:
        files = write_report(run, data=data, charts=charts)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"report: {files[0]}")
    if len(files) > 1:
        click.echo(f"pictures: {len(files) - 1} PNG files in {files[1].parent}")
    if not charts:
        click.echo("The charts are in the page; for PNG files of them too: pip install matplotlib")


def _compare(runs: tuple[Path, ...], out: Path | None) -> None:
    try:
        page = write_comparison(runs, out)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"comparison of {len(runs)} runs: {page}")
