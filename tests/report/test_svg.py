"""What is drawn is what was measured."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from html_checks import Page
from png_reader import read_png

from extensor.report.chart import Axis, Chart, Heat, Series
from extensor.report.palette import HEAT, blended
from extensor.report.svg import chart_data, chart_html, heat_data, heat_html, script_json


def drawn_points(page: Page, series: str) -> list[tuple[float, float]]:
    """The points of a path, as fractions of the plot from its lower left corner."""
    (path,) = page.of("path", **{"data-series": series})
    numbers = [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", path["d"].replace("h0", ""))]
    return [(x / 1000, 1 - y / 1000) for x, y in zip(numbers[::2], numbers[1::2])]


@pytest.mark.parametrize("logarithmic", [False, True])
def test_lines_run_through_the_values(logarithmic: bool) -> None:
    points = [(10.0, 2.0), (20.0, 0.5), (25.0, None), (40.0, 0.004)]
    chart = Chart("k", "K", [Series("s", points, "training")], logarithmic=logarithmic, until=50.0)
    page = Page(chart_html(chart))
    assert not page.problems
    x, y = chart.x_scale(), chart.y_scale()
    wanted = [(x.place(a), y.place(b)) for a, b in points if b is not None]
    assert drawn_points(page, "s") == [pytest.approx(point, abs=1e-4) for point in wanted]
    assert [a for a, _ in drawn_points(page, "s")] == pytest.approx([0.2, 0.4, 0.8])


def test_a_gap_ends_a_line_and_a_lonely_point_is_a_dot() -> None:
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 1.5)]
    page = Page(chart_html(Chart("k", "K", [Series("s", points, "training")])))
    (path,) = page.of("path", **{"data-series": "s"})
    assert path["d"].count("M") == 2
    assert path["d"].endswith("h0")


def test_words_around_the_lines() -> None:
    series = [Series("one", [(0.0, 0.25), (46.0, 0.75)], "training"), Series("two", [(46.0, 0.5)], "#123456")]
    marks = [(23.0, "resumed at step 23"), (30.0, "resumed at step 30")]
    best = ("one", (46.0, 0.75))
    axis = Axis("epoch", 23.0)
    chart = Chart(
        "acc", "Accuracy", series, "a note", "percent", axis=axis, marks=marks, best=best, until=46.0
    )
    page = Page(chart_html(chart))
    assert not page.problems
    for text in ("Accuracy", "a note", "one 75.00 %", "best 75.00 % at epoch 2", "60 %", "epoch"):
        assert text in page.text, text
    assert "resumed at step 23 and 1 more" in page.text
    assert "two ends at 50.00 %" in page.of("svg")[0]["aria-label"]


def test_names_cannot_become_markup() -> None:
    bad = '</script><img src=x onerror="boom()">'
    chart = Chart(
        "k", bad, [Series(bad, [(0.0, 1.0), (1.0, 2.0)], "training"), Series("t", [(0.0, 1.0)], "third")], bad
    )
    heat = Heat("h", bad, [bad], [1.0, 2.0], [[1.0, 2.0]], bad)
    for html in (chart_html(chart), heat_html(heat)):
        page = Page(html)
        assert not page.problems
        assert not page.of("img", src="x")
        assert bad in page.text
    assert "<" not in script_json([chart_data(chart), heat_data(heat)])


def test_colours_stand_for_the_values() -> None:
    heat = Heat("h", "H", ["first", "second"], [1.0, 2.0, 3.0], [[1e-3, 1.0, None], [0.0, 1e-2, 1e-1]])
    page = Page(heat_html(heat))
    assert not page.problems
    pixels = read_png(base64.b64decode(page.of("img")[0]["src"].partition(",")[2]))
    assert pixels.shape == (2, 3, 3)
    wanted = blended(HEAT, np.array([0.0, 1.0, 1 / 3, 2 / 3]))
    assert pixels[[0, 0, 1, 1], [0, 1, 1, 2]].tolist() == wanted.tolist()
    assert pixels[[0, 1], [2, 0]].tolist() == [[128, 128, 128]] * 2
    assert "firstsecond" in page.text
