"""Panels from made-up results, whose texts are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from html_checks import Page

from extensor import data, nn
from extensor._numerals import duration, shown
from extensor.data.pictures import PictureFiles
from extensor.report.evaluation import Classification, Example, sample_names
from extensor.report.panels import configuration_html, confusion_html, examples_html, summary_html

IMAGES = data.Dataset(np.zeros((9, 1, 4, 4), np.uint8), np.zeros(9, np.int64))
ROWS = data.Dataset(np.zeros((9, 3), np.float32), np.zeros(9, np.int64))


def page(html: str) -> Page:
    found = Page(html)
    assert not found.problems
    return found


def classification(
    matrix: list[list[int]], samples: data.Dataset = IMAGES, classes: str = "ab"
) -> Classification:
    mistakes = [Example(2, 0, 1, 0.877), Example(3, 1, 0, 0.99999)]
    wrong = sum(map(sum, matrix)) - sum(row[i] for i, row in enumerate(matrix))
    return Classification(
        list(classes), np.array(matrix), mistakes[:wrong], [Example(1, 0, 0, 0.51)], samples
    )


@pytest.mark.parametrize(
    ("matrix", "about"),
    [
        ([[5, 1], [2, 7]], "Of 3 mistakes, the 2 the model was surest of."),
        ([[5, 1], [1, 7]], "Every mistake, the surest first."),
        ([[5, 1], [0, 7]], "The only mistake."),
        ([[5, 0], [0, 7]], "There is no mistake."),
    ],
)
def test_what_is_said_of_the_examples(matrix: list[list[int]], about: str) -> None:
    text = page(examples_html(classification(matrix))).text
    assert about in text
    assert "Right, but least certain." in text
    assert ("a→b87.7 %" in text) == (matrix[0][1] > 0)
    assert "51.0 %" in text


def test_examples_that_are_no_images_are_rows() -> None:
    found = page(examples_html(classification([[5, 1], [2, 7]], ROWS)))
    assert not found.of("img")
    assert "3baover 99.9 %" in found.text


def test_confusions_in_words() -> None:
    text = page(confusion_html(classification([[5, 1], [12, 7]]))).text
    assert "12 of 25 test samples right" in text
    assert "b taken for a 12 times" in text
    assert "a taken for b once" in text


def test_many_classes_are_a_list() -> None:
    matrix = np.eye(30, dtype=int)
    matrix[3, 4] = 2
    found = page(confusion_html(classification(matrix.tolist(), classes="abcdefghijklmnopqrstuvwxyzABCD")))
    assert not found.of("table")
    assert "d taken for e twice" in found.text


def test_settings_are_written_for_people() -> None:
    settings = {
        "batch_size": 64, "flag": True, "nothing": None, "rate": -0.00123456789, "text": "a\nb", "many": list(range(500)),
        "model": {"args": {"sizes": [4, 2]}}, "table": {"columns": [{"name": "x", "mean": 1.5}]}, "empty": {},
    }  # fmt: skip
    text = page(configuration_html(settings)).text
    for part in (
        "batch size64",
        "flagyes",
        "nothing–",
        "rate−0.00123457",
        "text'a\\nb'",
        "args · sizes4, 2",
        "columnsname x mean 1.5",
    ):
        assert part in text, part
    assert " …" in text  # a long one is folded
    assert "499" in text  # and whole
    assert "empty" not in text


def test_layers_and_their_parameters() -> None:
    net = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU())
    text = page(summary_html(net.summary())).text
    assert "16 parameters; 64 B." in text
    assert "0Linear16" in text
    assert "1ReLU–" in text


def test_numbers_in_words() -> None:
    assert [shown(v) for v in (-1234.5, 0.0, 12.3456, -0.00012)] == ["−1,234", "0", "12.35", "−1.2·10⁻⁴"]
    assert [duration(s) for s in (0, 0.00034, 0.04, 0.0994, 0.0996)] == [
        "0.0 s",
        "0.34 ms",
        "40 ms",
        "99 ms",
        "0.1 s",
    ]
    assert [duration(s) for s in (59.9, 60, 3600)] == ["60 s", "1 min 0 s", "1 h 0 min"]


def test_every_class_has_its_measures() -> None:
    text = page(confusion_html(classification([[9, 1], [2, 13]]))).text
    assert "a1081.8 %90.0 %85.7 %" in text
    assert "b1592.9 %86.7 %89.7 %" in text


def test_samples_are_called_what_people_can_find(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("x,y\n\n1.5,a\n2.5,\n3.5,b\n")  # an empty line, and a row without a target
    table = data.read_csv(file, target="y")
    assert sample_names(table, [0, 1]) == ("line of the file", ["3", "5"])
    assert sample_names(table.subset(np.array([1])), [0]) == ("line of the file", ["5"])
    pictures = data.Dataset(PictureFiles([tmp_path / "cats" / "1.jpg"], (4, 4)), None)
    assert sample_names(pictures, [0]) == ("file", ["cats/1.jpg"])
    assert sample_names(IMAGES, [1]) == ("test sample", ["1"])
