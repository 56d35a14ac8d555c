"""The command line, as each command explains itself."""

from __future__ import annotations

import click

from extensor.cli import main

from .markdown import block

WIDTH = 96  # columns of a code block


def command_line_page() -> str:
    """The help of ``extensor`` and of every command."""
    top = click.Context(main, info_name="extensor", **(main.context_settings | {"terminal_width": WIDTH}))
    parts = ["# The command line", block(main.get_help(top), "text")]
    for name in main.list_commands(top):
        command = main.get_command(top, name)
        if command is not None:
            inner = click.Context(command, info_name=name, parent=top, terminal_width=WIDTH)
            parts += [f"## extensor {name} {{ #{name} }}", block(command.get_help(inner), "text")]
    return "\n\n".join(parts) + "\n"
