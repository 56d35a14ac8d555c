"""The table of precisions: what each function does under autocast.

``python -m extensor.testing.autocast_page docs/autocast.md`` writes the page from :mod:`extensor.autocast_table`.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from ..autocast_table import FLOAT32_FUNCTIONS, HALF_FUNCTIONS, policy_of
from .verifier import library_subjects

__all__ = ["autocast_page"]

_HEAD = """\
# Functions under autocast

<!-- Written by `python -m extensor.testing.autocast_page docs/autocast.md`; a test keeps it equal to the code. -->

What `et.autocast(dtype)` does to each function, where `dtype` is bfloat16 or float16. [Mixed precision](guide/mixed_precision.md)
explains why. A call under autocast is nothing but casts and then the same call without it: `et.backward_source` shows them.

- A call with a float64, complex or integer operand is left as it is.
- Gradients are computed in the dtypes of the forward pass; each has the dtype of its input. No `_backward` function casts.
- Optimisers work in float32 on parameters that stay float32. The half copy of a parameter is made once, and kept until the
  outermost block is left or the parameter changes.
- A pair of your own (`@differentiable`) computes in the dtypes it is given.
"""


def _section(title: str, text: str, table: dict[str, tuple[str, ...]]) -> str:
    public = {subject.op.__name__: subject.name for subject in library_subjects()}  # linalg.norm
    rows = [
        f"| {group} | {', '.join(f'`{public.get(name, name)}`' for name in names)} |"
        for group, names in table.items()
    ]
    return "\n".join([f"## {title}\n", f"{text}\n", "| | functions |", "|---|---|", *rows])


def _followers() -> dict[str, tuple[str, ...]]:
    """The functions that no list names, by family."""
    found = {}
    for family, subjects in groupby(library_subjects(), key=lambda subject: subject.family):
        names = tuple(s.name for s in subjects if policy_of(s.op.__name__) is None)
        if names:
            found[family.replace("_", " ")] = names
    return found


def autocast_page() -> str:
    """The whole page, as Markdown."""
    parts = [
        _HEAD,
        _section(
            "In the half type",
            "Operands are cast to `dtype`, products are summed in float32, the result is `dtype`.",
            HALF_FUNCTIONS,
        ),
        _section(
            "In float32",
            "Inputs of half precision are widened; the function computes and returns float32.",
            FLOAT32_FUNCTIONS,
        ),
        _section(
            "As their inputs are",
            "The result has the widest dtype among the inputs: bfloat16 with bfloat16 is bfloat16, with float32 it is float32, "
            "and bfloat16 with float16 is float32. Each computes in float32 and rounds once.",
            _followers(),
        ),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(autocast_page(), encoding="utf-8")
