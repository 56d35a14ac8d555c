"""The Python blocks of every page run from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "```python" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)
