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


@pytest.mark.parametrize("name", [n for n, p in PAIRS.items() if any(e.elementwise for e in p.edges)])
def test_elementwise_pairs_have_zeros_and_infinities(name: str) -> None:
    values = np.concatenate(
        [np.ravel(a) for e in PAIRS[name].edges if e.elementwise for a in floating_arrays(e.case)]
    )
    assert (values == 0).any(), f"{name}: what happens at 0?"
    assert np.isinf(values).any(), f"{name}: what happens at inf?"


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
