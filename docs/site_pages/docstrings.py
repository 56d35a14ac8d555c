"""Docstrings taken apart: one line, its formula, paragraphs, and sections of arguments and examples."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")

# "y = ...", "dx_i = ...", "c' = ...", "y[n, o] = ...", "dc/dx1 = ..."; some come after a few words
_FORMULA = re.compile(r"[A-Za-z_'/\[\], 0-9]{1,24} \+?= \S")


@dataclass
class Docstring:
    """A docstring in parts. ``formula`` is "" where the docstring has words alone."""

    summary: str
    formula: str = ""
    paragraphs: list[str] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)


def parse(value: Any) -> Docstring:
    """The docstring of a function or class.

    The house form is ``One line.   formula``, three spaces between them; the formula may also be the paragraph below.
    """
    text = inspect.getdoc(value) or ""
    blocks = _blocks(text)
    first = _joined(blocks.pop(0)) if blocks else ""
    summary, _, formula = (part.strip() for part in first.partition("   "))
    result = Docstring(summary, _plain(formula))
    for block in blocks:
        head, _, rest = block.partition("\n")
        if head.rstrip(":") in SECTIONS and head.endswith(":"):
            result.sections[head.rstrip(":")] = inspect.cleandoc(rest) if rest.strip() else ""
            current = head.rstrip(":")
        elif result.sections and block.startswith(" "):
            result.sections[current] += "\n\n" + inspect.cleandoc(block)
        else:
            result.paragraphs.append(block)
    if not result.formula and result.paragraphs and is_formula(result.paragraphs[0]):
        result.formula = _plain(_joined(result.paragraphs.pop(0)))
    return result


def is_formula(paragraph: str) -> bool:
    """Whether a paragraph is mathematics rather than prose: it begins with an equation and has no sentence in it."""
    return bool(_FORMULA.match(paragraph)) and not re.search(r"\w\. [A-Z]|``", paragraph)


def entries(section: str) -> list[tuple[str, str]]:
    """``name: text`` entries of a section, continuation lines joined; text alone has the name ""."""
    found: list[tuple[str, str]] = []
    for line in section.split("\n"):
        match = re.match(r"([\w*][\w*, .]*): ?(.*)", line)
        if match:
            found.append((match[1], match[2].strip()))
        elif line.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
        elif line.strip():
            found.append(("", line.strip()))
    return found


def _joined(block: str) -> str:
    """The lines of a paragraph as one; equations, which two spaces part, stay apart at the end of a line."""
    return block.replace(",\n", ",  ").replace("\n", " ")


def _plain(formula: str) -> str:
    """A formula is shown as code as a whole, so it needs no marks of code inside."""
    return re.sub(r":\w+:`~?([^`]+)`", r"\1", formula).replace("``", "")


def _blocks(text: str) -> list[str]:
    """Paragraphs; a section that goes on after an empty line comes in several, indented ones."""
    return [block.rstrip() for block in re.split(r"\n\s*\n", text) if block.strip()]
