"""The command line: ``extensor <command>``. One file per command, imported when the command is used."""

from __future__ import annotations

import importlib

import click

from ..version import __version__

__all__ = ["main"]

# command -> the line that ``extensor --help`` shows; the file of the same name defines it as ``command``
COMMANDS = {
    "train": "Train a network, with checkpoints that survive anything.",
    "predict": "What a trained model says about samples.",
    "sample": "Text from a trained language model.",
    "report": "A page with the curves, mistakes and layers of a run.",
    "inspect": "What a safetensors file holds.",
    "verify": "Check every gradient numerically, on this machine.",
    "bench": "Measure the speed beside PyTorch, NumPy and JAX.",
}


class _Commands(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"{__name__}.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="extensor")
def main() -> None:
    """ExTensor: neural networks on a CPU, with gradients you can read, call and verify."""
