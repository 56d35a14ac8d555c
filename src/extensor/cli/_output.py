"""What the commands say: safe to show, and never a reason for a run to end."""

from __future__ import annotations

import contextlib
import os
import sys

import click

from .._printable import printable

__all__ = ["release_broken_streams", "say"]


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Show a line. What came from a file cannot command the terminal, and a closed or full stream is no error."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(printable(text), err=err, nl=nl)


def release_broken_streams() -> None:
    """Let go of an output that takes nothing any more, or Python would fail to flush it at the very end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except ValueError:  # closed already
            continue
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            with contextlib.suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
