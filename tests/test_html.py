"""HTML for notebooks: escaped, in one style, and shown only where a notebook is."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn
from extensor._html import bar, displayer, html_table
from extensor._tensor_view import elements_html


def cells(page: str) -> list[str]:
    return [part.split("</td>")[0] for part in page.split("<td class=n>")[1:]]


def test_a_table_escapes_what_it_shows() -> None:
    page = html_table(["<a>", "n"], [["x & y", "<1>"]], bars=[0.5])
    assert "&lt;a&gt;" in page
    assert "<td>x &amp; y</td><td class=n>&lt;1&gt;</td>" in page
    assert "width:50.0%" in page
    assert "width:100.0%" in bar(7.0)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([1.0, -2.5]), ["1.0", "−2.5"]),
        (np.array([1, 20]), ["1", "20"]),
        (np.array([True, False]), ["True", "False"]),
        (np.array([1 / 3, 2.0]), ["0.3333", "2.0000"]),
        (np.array([1e-9, 2.0]), ["1e−09", "2"]),
        (np.array([np.nan, np.inf, 0.5]), ["nan", "inf", "0.5"]),
        (np.array([1 + 2j]), ["1+2j"]),
    ],
)
def test_elements_have_digits_alike(values: np.ndarray, texts: list[str]) -> None:
    assert cells(elements_html(values)) == texts


def test_the_middle_of_a_long_axis_is_left_out() -> None:
    page = elements_html(np.arange(30 * 12).reshape(30, 12))
    found = cells(page)
    assert len(found) == 9 * 9  # four rows and columns at each end, and dots between them
    assert found[:5] == ["0", "1", "2", "3", "⋯"]
    assert found[-1] == "359"
    assert page.count("⋮") == 1


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (2, 3, 4)])
def test_what_is_no_plane_is_text(shape: tuple[int, ...]) -> None:
    assert '<pre class="et-text">' in elements_html(np.zeros(shape))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "bool", "complex64"])
def test_tensors_of_every_kind(dtype: str) -> None:
    page = et.ones((2, 2), dtype=dtype)._repr_html_()
    assert dtype in page
    assert len(cells(page)) == 4


def test_a_model_is_a_tree() -> None:
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Sequential(nn.Linear(4, 2, rng=0)))
    page = model._repr_html_()
    assert "26 parameters" in page
    assert page.count("<tr>") == 5
    assert page.count("padding-left:2.8em") == 1
    many = nn.Sequential(*(nn.Identity() for _ in range(80)))
    assert "21 more" in many._repr_html_()


class Notebook:
    """What stands for a running kernel."""

    def __init__(self, kernel: Any = "one") -> None:
        self.shown: list[dict[str, str]] = []
        self.display = SimpleNamespace(display=self.show)
        self.get_ipython = lambda: SimpleNamespace(kernel=kernel)

    def show(self, data: dict[str, str], raw: bool, display_id: bool = False) -> Any:
        assert raw
        self.shown.append(data)
        return SimpleNamespace(update=lambda data, raw: self.shown.append(data)) if display_id else None


def test_only_a_kernel_is_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert displayer() is None
    monkeypatch.setitem(sys.modules, "IPython", Notebook(kernel=None))  # type: ignore[arg-type]
    assert displayer() is None
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)  # type: ignore[arg-type]
    assert displayer() == notebook.show


def test_explain_is_a_table_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)  # type: ignore[arg-type]
    x = et.tensor([3.0, 4.0], requires_grad=True)
    et.explain((x * x).sum())
    assert capsys.readouterr().out == ""
    assert "<td>multiply</td>" in notebook.shown[0]["text/html"]
    assert "multiply_backward" in notebook.shown[0]["text/plain"]
