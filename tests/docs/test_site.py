"""The generated pages are complete: every pair is on a card with both formulas, every public name in the reference."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

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
            "formulas",
            "links",
            "markdown",
            "measurements",
            "plots",
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
        # between the name and these there may be a plot, behind them is a note
        assert [row[0] for row in rows if not row[-3].strip() or not row[-2].strip()] == []


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
    name, plot, *rest = row.split(" | ")
    assert name == "| [`sigmoid`](../reference/activation.md#extensor.sigmoid) *y*"
    assert plot.startswith("<svg ")
    typeset = pages["formulas"].typeset
    assert rest == [typeset("y = 1 / (1 + exp(-x))"), typeset("dx = dy * y * (1 - y)"), "from its output |"]


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


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("dx = dy / (1 + x**2)", ("<mfrac>", "<msup><mi>x</mi><mn>2</mn></msup>")),
        ("y = sqrt(sum_i (x_i - mean(x))**2 / (n - ddof))", ("<msqrt>", "<munder><mo>∑</mo>", "<msub>")),
        ("y = x where x > 0, else alpha * x", ("<mtable", "<mo>&gt;</mo>", "<mi>α</mi>")),
        ("dx = dy * [min_val < x < max_val]", ("min&#95;val", "<mo>&#91;</mo>", "<mo>&lt;</mo>")),
        ("y = log |gamma(x)|", ("<mo>&#124;</mo>", "<mi>γ</mi>")),
        ("da = dy @ b.mT", ('<msup><mi>b</mi><mi mathvariant="normal">T</mi></msup>',)),
        ("h' = (1 - z) n + z h", ("<mo>′</mo>", "<mspace")),
    ],
)
def test_formulas_are_typeset(pages: dict[str, ModuleType], formula: str, parts: tuple[str, ...]) -> None:
    made = pages["formulas"].typeset(formula)
    ElementTree.fromstring(made.replace("&nbsp;", " "))  # well-formed
    assert [part for part in parts if part not in made] == []
    assert not re.search(r"[|_*\[\]]", made)  # nothing that Markdown would take for its own


def test_outer_parentheses_go_where_a_bar_or_an_exponent_groups(pages: dict[str, ModuleType]) -> None:
    typeset = pages["formulas"].typeset
    assert "(" not in typeset("y = (a + b) / (c + d)")
    assert typeset("y = (a + b) (c + d) / 2").count("(") == 2


@pytest.mark.parametrize(
    "formula",
    ["dx = sum of dy over all", "y = ", "each summed to its operand's shape", "dx = dy; x is a shape"],
)
def test_formulas_with_words_are_not_typeset(pages: dict[str, ModuleType], formula: str) -> None:
    assert pages["formulas"].typeset(formula) is None


def test_functions_of_one_number_have_plots(pages: dict[str, ModuleType]) -> None:
    plot = pages["plots"].plot
    drawn = ElementTree.fromstring(plot("relu", et.relu))
    slope = drawn.find("path[@class='slope']")
    assert slope is not None
    heights = {float(point.split()[1]) for point in re.split("[ML]", slope.attrib["d"])[1:]}
    assert len(heights) == 2  # 0 on the left, 1 on the right
    assert plot("matmul", et.matmul) == ""
    assert all(
        plot(name, getattr(et, name))
        for name in ("log", "tan", "erf", "clip", "huber", "lgamma", "threshold")
    )
