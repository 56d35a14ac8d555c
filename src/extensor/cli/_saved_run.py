"""The folder of a run on the command line: what is wrong with it becomes a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..nn import Module
from ..train.saved_run import load_model, read_config

__all__ = ["open_run"]


def open_run(folder: Path) -> tuple[dict[str, Any], Module]:
    """The configuration of a run and its model in evaluation mode."""
    try:
        config = read_config(folder)
        return config, load_model(folder, config)
    except (ValueError, TypeError, OSError, MemoryError) as error:
        raise click.ClickException(str(error)) from None
