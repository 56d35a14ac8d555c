"""``extensor completion``: the Tab key knows commands, recipes, options, functions and columns."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print the script that teaches SHELL to complete extensor's commands with the Tab key.

    Without SHELL, the one you log in with. Keep the script in a file that your shell reads, and open a new one:

    \b
    bash  extensor completion bash > ~/.extensor.bash
          and in ~/.bashrc:  . ~/.extensor.bash
    zsh   extensor completion zsh > ~/.extensor.zsh
          and in ~/.zshrc, after compinit:  . ~/.extensor.zsh
    fish  extensor completion fish > ~/.config/fish/completions/extensor.fish

    To try it in this shell alone:  eval "$(extensor completion bash)"
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in SHELLS else None
    if kind is None:
        raise click.UsageError(f"say which shell: {', '.join(SHELLS)}", ctx)
    click.echo(kind(ctx.find_root().command, {}, "extensor", "_EXTENSOR_COMPLETE").source())
