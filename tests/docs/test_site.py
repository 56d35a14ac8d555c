"""The generated pages are complete: every pair is on a card with both formulas, every public name in the reference."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
from public_functions import public_objects

import extensor as et
from extensor.cli import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def pages() -> dict[str, ModuleType]:
    """The modules that write the pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        names = (
            "cards",
            "catalogue",
            "command_line",
            "docstrings",
            "links",
            "markdown",
            "measurements",
            "reference",
        )
        return {name: importlib.import_module(f"site_pages.{name}") for name in names}


def test_every_pair_is_on_a_card(pages: dict[str, ModuleType]) -> None:
    cards = pages["cards"]
    text = "".join(cards.card_page(card) for card in cards.CARDS)
    shown = set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE))
    pairs = {name.removesuffix("_backward") for name in et.__all__ if name.endswith("_backward")}
    other_names = {name for name in pairs if getattr(et, name).__name__ != name}
    assert other_names == {"max", "min", "var"}
    assert shown == pairs - other_names


def test_cards_say_what_happens_in_both_directions(pages: dict[str, ModuleType]) -> None:
    cards = pages["cards"]
    for card in cards.CARDS:
        rows = [line.split(" | ") for line in cards.card_page(card).splitlines() if line.startswith("| [")]
        assert rows
        assert [row[0] for row in rows if not row[1].strip() or not row[2].strip()] == []


def test_elementwise_activations_losses_have_formulas(pages: dict[str, ModuleType]) -> None:
    cards, parse = pages["cards"], pages["docstrings"].parse
    for card in cards.CARDS:
        if card.name in ("activation", "arithmetic", "loss"):
            for name in cards.members(card):
                assert parse(getattr(et, name)).formula, name
                assert parse(getattr(et, f"{name}_backward")).formula, f"{name}_backward"


def test_a_card_is_the_docstring(pages: dict[str, ModuleType]) -> None:
    card = next(card for card in pages["cards"].CARDS if card.name == "activation")
    row = next(line for line in pages["cards"].card_page(card).splitlines() if "[`sigmoid`]" in line)
    assert row == (
        "| [`sigmoid`](../reference/activation.md#extensor.sigmoid) *y* | `y = 1 / (1 + exp(-x))` | "
        "`dx = dy * y * (1 - y)` | from its output |"
    )


def test_every_public_name_is_in_the_reference(pages: dict[str, ModuleType]) -> None:
    reference, catalogue = pages["reference"], pages["catalogue"]
    text = "\n".join(reference.reference_page(page) for page in catalogue.PAGES)
    anchors = re.findall(r'(?:\{ #|id=")([\w.]+)', text)
    assert len(set(anchors)) == len(anchors)
    assert sorted(anchors) == list(public_objects())


def test_every_command_explains_itself_on_a_page(pages: dict[str, ModuleType]) -> None:
    text = pages["command_line"].command_line_page()
    for command in COMMANDS:
        assert f"## extensor {command} {{ #{command} }}" in text
        assert f"Usage: extensor {command} " in text


def test_prose_keeps_the_signs_of_mathematics(pages: dict[str, ModuleType]) -> None:
    prose = pages["markdown"].prose
    assert (
        prose("0 < x**2 of :func:`relu`, ``a_b``", {"relu": "#r"}.get)
        == r"0 &lt; x\*\*2 of [`relu`](#r), `a_b`"
    )


@pytest.mark.parametrize(
    ("page", "source", "target"),
    [
        ("start.md", "../examples/three_ways.py", "examples/three_ways.md"),
        ("guide/index.md", "../../examples/three_ways.py", "../examples/three_ways.md"),
        ("adding.md", "../CONTRIBUTING.md#taste", "contributing.md#taste"),
        ("start.md", "../src/extensor/ops/loss_metric.py", "reference/loss.md"),
        ("start.md", "../src/extensor/train/callbacks.py#extensor.train.Callback", "reference/train.md#extensor.train.Callback"),
        ("start.md", "../src/extensor/sklearn/_classifier.py", "reference/sklearn.md"),
        ("start.md", "../src/extensor/cli/__init__.py", "reference/command_line.md"),
        ("start.md", "../src/extensor/ops", "cards/index.md"),
        ("start.md", "your_data.md", "your_data.md"),
        ("start.md", "../README.md", "../README.md"),  # no page of the site: mkdocs says so
    ],
)  # fmt: skip
def test_links_to_sources_lead_to_their_pages(
    pages: dict[str, ModuleType], page: str, source: str, target: str
) -> None:
    assert pages["links"].to_pages(f"see [this]({source}).", page) == f"see [this]({target})."


def test_measured_results_are_included(
    pages: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurements = pages["measurements"]
    monkeypatch.setattr(measurements, "RESULTS", tmp_path)
    assert "Not measured yet" in measurements.measured("bench")
    (tmp_path / "bench.md").write_text("# Ours\n\n| a |\n")
    (tmp_path / "bench.png").write_bytes(b"")
    (tmp_path / "other.md").write_text("else\n")
    assert measurements.measured("bench") == "![bench, as a chart](bench.png)\n\n### Ours\n\n| a |"
    assert measurements.measured("* but bench") == "else"


def test_the_navigation_lists_every_generated_page(pages: dict[str, ModuleType]) -> None:
    settings = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    for page in pages["catalogue"].PAGES:
        assert f"reference/{page.name}.md" in settings
    for card in pages["cards"].CARDS:
        assert f"cards/{card.name}.md" in settings
    for example in (DOCS.parent / "examples").glob("*.py"):
        assert f"examples/{example.stem}.md" in settings
