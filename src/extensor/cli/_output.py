"""What the commands say: safe to show, and never a reason for a run to end."""

from __future__ import annotations

import contextlib

import click

from .._printable import printable

__all__ = ["say"]

quiet = False  # of several processes only one speaks


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Show a line. What came from a file cannot command the terminal, and a closed or full stream is no error."""
    with contextlib.suppress(OSError, ValueError):
        if quiet:
            return
        click.echo(printable(text), err=err, nl=nl)
