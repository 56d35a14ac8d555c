"""MkDocs calls these: they add the pages that are written from the code, from examples/ and from benchmarks/results."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from site_pages.cards import CARDS, card_index, card_page
from site_pages.catalogue import PAGES
from site_pages.command_line import command_line_page
from site_pages.links import to_pages
from site_pages.measurements import PICTURES, RESULTS, measured
from site_pages.reference import reference_index, reference_page

ROOT = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Add what is generated."""
    made = {f"cards/{card.name}.md": card_page(card) for card in CARDS}
    made |= {f"reference/{page.name}.md": reference_page(page) for page in PAGES}
    made |= {f"examples/{path.stem}.md": _example(path) for path in sorted((ROOT / "examples").glob("*.py"))}
    made["cards/index.md"] = card_index()
    made["reference/index.md"] = reference_index()
    made["reference/command_line.md"] = command_line_page()
    made["changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    made["contributing.md"] = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    for picture in sorted(path for path in RESULTS.glob("*") if path.suffix in PICTURES):
        files.append(File.generated(config, f"performance/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to sources become links to their pages; the performance page gets what was measured."""
    markdown = to_pages(markdown, page.file.src_uri)
    return re.sub(r"<!-- measured: (.+?) -->", lambda match: measured(match[1]), markdown)


def _example(path: Path) -> str:
    """An example with its docstring as the text above it."""
    source = path.read_text(encoding="utf-8")
    title = path.stem.replace("_", " ").capitalize()
    text = ast.get_docstring(ast.parse(source)) or ""
    first = text.split("\n")[0]
    return f'# {title}\n\n{first}\n\n```python title="examples/{path.name}"\n{source}```\n'
