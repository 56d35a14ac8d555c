"""Quick-reference cards: formula forward, formula backward, read from the docstrings."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from .catalogue import find, is_in, names
from .docstrings import parse
from .formulas import typeset
from .markdown import WIDE, code, prose, table
from .plots import plot


class Card(NamedTuple):
    """A card: its file, its title, and the modules of ``extensor.ops`` whose pairs it lists."""

    name: str
    title: str
    modules: tuple[str, ...]


CARDS = (
    Card("activation", "Activation gradients", ("activation", "shrinking", "softmax", "trigonometric.tanh")),
    Card("arithmetic", "Arithmetic gradients", ("arithmetic",)),
    Card("elementwise", "Elementwise gradients", ("elementwise", "exponential", "trigonometric", "selection", "special", "incomplete", "complex_numbers")),
    Card("loss", "Loss gradients", ("loss",)),
    Card("matrix", "Matrix gradients", ("matrix", "einsum", "diagonals", "distances")),
    Card("reduction", "Reduction gradients", ("reduction", "sorting", "scan", "statistics")),
    Card("layer", "Layer gradients",
         ("linear", "conv", "volumes", "pooling", "volume_pooling", "resampling", "response_norm", "normalization", "dropout", "embedding", "attention", "recurrent")),
    Card("shape", "Shape gradients", ("shape", "joining", "indexing", "broadcasting", "casting", "creation", "construction", "scattering")),
)  # fmt: skip

LEGEND = """\
`dy` is the gradient that arrives, `grad_output`; `dx`, `da`, … are the gradients that are returned, each with the shape
and dtype of its input. `[x > 0]` is 1 where the condition holds and 0 elsewhere. A function marked *y* saves its output:
its backward takes `output` instead of `x`. A gradient of a broadcast operand is summed to the operand's shape.
"""

LOSS_LEGEND = """\
`p` or `x` are predictions or logits, `t` targets, `w` weights. With `reduction="mean"`, `dl = dy / N`; with `"sum"`,
`dl = dy`; with `"none"` each element has its own `dy`.
"""

PLOT_LEGEND = """\
The plots show <span class="curve">the function</span> and <span class="slope">its derivative</span>, by what its backward gives
for `dy = 1`; dotted are the axes.
"""


def pairs() -> list[str]:
    """The differentiable functions of ``extensor``, in the order of ``__all__``."""
    listed = [name.short for name in names() if name.dotted.count(".") == 1]
    return [name for name in listed if f"{name}_backward" in listed]


def members(card: Card) -> list[str]:
    """The functions of a card; a second name of a function is not listed again."""
    found: list[str] = []
    for name in pairs():
        value = _value(name)
        module = value.__module__.removeprefix("extensor.ops.")
        if value.__name__ == name and (
            f"{module}.{name}" in card.modules or any(is_in(module, family) for family in card.modules)
        ):
            found.append(name)
    return found


def card_page(card: Card) -> str:
    """The card as Markdown."""
    header = ("function", "forward", "backward", "note")
    rows = [_row(name) for name in members(card)]
    pictures = [plot(name, _value(name)) for name in members(card)]
    legend = LEGEND + (f"\n{LOSS_LEGEND}" if card.name == "loss" else "")
    if any(pictures):
        header = (header[0], "plot", *header[1:])
        rows = [(row[0], picture, *row[1:]) for row, picture in zip(rows, pictures)]
        legend += f"\n{PLOT_LEGEND}"
    listed = table(header, rows)
    return f'{WIDE}# {card.title}\n\n{legend}\n<div class="card" markdown>\n\n{listed}\n\n</div>\n'


def card_index() -> str:
    """A page that links the cards."""
    rows = [
        (f"[{card.title}]({card.name}.md)", " ".join(code(name) for name in members(card))) for card in CARDS
    ]
    return (
        f"{WIDE}# Quick reference\n\nOne table per family: the formula forward, the formula backward, and what to know about "
        "its edges. The tables are written from the docstrings, so `help(extensor.relu_backward)` says the same.\n\n"
        + table(("card", "functions"), rows)
        + "\n"
    )


def _row(name: str) -> tuple[str, ...]:
    forward, backward = parse(_value(name)), parse(_value(f"{name}_backward"))
    entry = find(name)
    place = f"../reference/{entry.page}.md#extensor.{name}" if entry else ""
    note = _note(backward.summary, name)
    saves = " *y*" if "output" in inspect.signature(_value(f"{name}_backward")).parameters else ""
    return (
        f"[{code(name)}]({place}){saves}",
        _formula(forward.formula) or _words(forward.summary),
        _formula(backward.formula) or _words(note),
        _words(note) if backward.formula else "",
    )


def _note(summary: str, name: str) -> str:
    """What the first line of a backward says besides whose gradient it is."""
    for opening in (f"Gradient of :func:`{name}`", f"Gradients of :func:`{name}`"):
        summary = summary.removeprefix(opening)
    return summary.strip(" .,:;")


def _formula(text: str) -> str:
    """A formula typeset, one line per equation; as code where it has words in it, as words where it is no equation."""
    parts = [part.strip(" ,") for part in text.split(",  ")] if text else []
    return "<br>".join(typeset(part) or (code(part) if "=" in part else _words(part)) for part in parts)


def _words(text: str) -> str:
    return prose(text, lambda name: None)


def _value(name: str) -> Any:
    entry = find(f"extensor.{name}")
    if entry is None:
        raise LookupError(f"extensor has no public name {name}")
    return entry.value
