"""``extensor inspect``: what a safetensors file holds."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._printable import printable
from ..train import read_header

__all__ = ["command"]


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def command(file: Path) -> None:
    """Show the tensors of a safetensors FILE: names, dtypes, shapes, sizes, and its metadata.

    Only the header is read; nothing is ever unpickled. A damaged file gets a message and the exit code 1.

    \b
    Examples:
      extensor inspect runs/lenet/best.safetensors
      extensor inspect downloaded.safetensors
    """
    try:
        header = read_header(file)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("tensor")
    table.add_column("dtype")
    table.add_column("shape")
    table.add_column("elements", justify="right")
    total = 0
    for name, info in header.tensors.items():
        count = 1
        for n in info.shape:
            count *= n
        total += count
        table.add_row(_shown(name), str(info.dtype), str(tuple(info.shape)), f"{count:,}")
    console = Console()
    console.print(table)
    console.print(f"\n{len(header.tensors)} tensors, {total:,} elements, {file.stat().st_size:,} bytes")
    for key, value in header.metadata.items():
        shown = value if len(value) <= 200 else value[:197] + "..."
        console.print(Text.assemble(_shown(key, "bold"), ": ", _shown(shown)))


def _shown(text: str, style: str = "") -> Text:
    """What the file says, as text and nothing else: no markup, no escape sequences, no links."""
    return Text(printable(text, keep=""), style=style)
