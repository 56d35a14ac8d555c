"""What was measured: files that the benchmarks wrote to benchmarks/results, put into the performance page."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
PICTURES = (".png", ".svg")


def measured(wanted: str) -> str:
    """The Markdown files of a name or glob with their pictures, headings two levels down; a sentence if a name has none.

    ``"* but bench"`` are all files but one. A picture that no file shows stands above the text of the file of its name.
    """
    pattern, _, others = wanted.partition(" but ")
    parts = []
    for path in sorted(RESULTS.glob(f"{pattern}.md")):
        if path.stem in others.split():
            continue
        text = path.read_text(encoding="utf-8").strip()
        for suffix in PICTURES:
            picture = path.with_suffix(suffix)
            if picture.exists() and picture.name not in text:
                parts.append(f"![{path.stem}, as a chart]({picture.name})")
        parts.append(re.sub(r"^(#+) ", r"##\1 ", text, flags=re.MULTILINE))
    return "\n\n".join(parts) or ("" if "*" in pattern else "*Not measured yet for this version.*")
