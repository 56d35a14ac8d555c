"""Links to sources, which a reader of the repository can follow, as links to the pages that show them on the site."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from .catalogue import PAGES, is_in

LINK = re.compile(r"\]\(((?:\.\./)+)([\w./]+)(#[^)]*)?\)")

# What has a page or place of its own besides the examples and the modules of the reference.
OTHERS = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/results/bench.png": "performance/bench.png",
    "benchmarks/results/compiled.md": "performance/index.md",
    "benchmarks/results/half.md": "performance/index.md",
    "benchmarks/results/inference.md": "performance/index.md",
    "src/extensor/cli/__init__.py": "reference/command_line.md",
    "src/extensor/ops": "cards/index.md",
}


def to_pages(markdown: str, page: str) -> str:
    """The text of ``page``, a path inside of docs/, with links to sources led to their pages."""
    up = "../" * page.count("/")

    def led(link: re.Match[str]) -> str:
        target = _page_of(link[2]) if link[1] == f"{up}../" else None
        return link[0] if target is None else f"]({up}{target}{link[3] or ''})"

    return LINK.sub(led, markdown)


def _page_of(source: str) -> str | None:
    """The page of a file of the repository; None if it has none."""
    path = PurePosixPath(source)
    if source in OTHERS:
        return OTHERS[source]
    if path.parts[0] == "examples":
        return f"examples/{path.stem}.md"
    module = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
    names = (page.name for page in PAGES if any(is_in(module, family) for family in page.sources))
    return next((f"reference/{name}.md" for name in names), None)
