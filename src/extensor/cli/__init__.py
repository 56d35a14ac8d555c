"""The command line: ``extensor <command>``. One file per command, imported when the command is used."""

from __future__ import annotations

import importlib

import click
from click.shell_completion import CompletionItem

from .._printable import printable
from .._spelling import did_you_mean
from ..version import __version__
from ._progress import showing_progress

__all__ = ["main"]

INTERRUPTED = 130  # as shells count: 128 and the number of the signal

# command -> the line that ``extensor --help`` shows; the file of the same name defines it as ``command``
COMMANDS = {
    "train": "Train a network, with checkpoints that survive anything.",
    "sweep": "Train with many settings, and compare the runs.",
    "predict": "What a trained model says about samples.",
    "sample": "Text from a trained language model.",
    "report": "A page with the curves, mistakes and layers of a run.",
    "export": "A trained model as an ONNX file.",
    "onnx": "What an ONNX file holds, and whether it is right.",
    "inspect": "What a safetensors file holds.",
    "verify": "Check every gradient numerically, on this machine.",
    "bench": "Measure the speed beside PyTorch, NumPy and JAX.",
    "completion": "Teach your shell to complete these commands.",
}


class _Commands(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"{__name__}.{cmd_name}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = "" if args[0] in COMMANDS else did_you_mean(args[0], COMMANDS)
        if near and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(n, help=about) for n, about in COMMANDS.items() if n.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with showing_progress():
                return super().invoke(ctx)
        except KeyboardInterrupt:  # click would call it a failure
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except click.ClickException as error:  # it may repeat what a file says
            error.message = printable(error.message)  # type: ignore[misc]  # click declares it final
            raise


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@click.group(cls=_Commands, context_settings=SETTINGS)
@click.version_option(__version__, "-V", "--version", prog_name="extensor")
def main() -> None:
    """ExTensor: neural networks on a CPU, with gradients you can read, call and verify.

    \b
    To begin with:
      extensor train lenet         a network that reads digits, in a few seconds
      extensor predict runs/lenet  what it says about digits it has not seen
      extensor verify              is every gradient right on this machine?

    Each command has its own help: extensor train --help

    \b
    Exit codes:
      0    done, and everything that was checked is right
      1    it could not be done, or a check failed; the reason is on stderr
      2    the command line is wrong; nothing was done
      130  interrupted with Ctrl-C; train has written a checkpoint for --resume
    """
