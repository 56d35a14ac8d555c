"""The published table of edges is what the code does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from extensor.testing.calls import floating_arrays
from extensor.testing.edges import edge_page
from extensor.testing.samples import PAIRS

PAGE = Path(__file__).parents[2] / "docs" / "edges.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == edge_page(), (
        "run: python -m extensor.testing.edges docs/edges.md"
    )


@pytest.mark.parametrize("name", PAIRS)
def test_every_pair_has_edges_with_a_nan(name: str) -> None:
    arrays = [array for edge in PAIRS[name].edges for array in floating_arrays(edge.case)]
    assert any(np.isnan(array).any() for array in arrays), f"{name}: what happens to a nan?"


def elementwise_points(name: str) -> list[list[float]]:
    return [[float(a) for a in floating_arrays(e.case)] for e in PAIRS[name].edges if e.elementwise]


@pytest.mark.parametrize(
    "name", [n for n in PAIRS if elementwise_points(n) and len(elementwise_points(n)[0]) == 1]
)
def test_elementwise_functions_of_one_tensor_have_every_special_point(name: str) -> None:
    points = {repr(point[0]) for point in elementwise_points(name)}
    assert {"0.0", "-0.0", "inf", "-inf", "nan"} <= points


def test_kinks_and_ties_are_promised_not_just_published() -> None:
    for name in (
        "relu",
        "abs",
        "clip",
        "maximum",
        "minimum",
        "max_reduce",
        "min_reduce",
        "divide",
        "log",
        "sqrt",
    ):
        assert any(edge.expect is not None for edge in PAIRS[name].edges), name
