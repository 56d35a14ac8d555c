"""Predicted quantities beside the wanted ones."""

from __future__ import annotations

import math

import numpy as np

from .._numerals import shown
from .chart import Axis, Chart, Series
from .evaluation import Regression

__all__ = ["prediction_chart"]


def prediction_chart(found: Regression, most: int = 1000) -> Chart | None:
    """Predicted over wanted numbers; right answers lie on the diagonal."""
    chosen = np.linspace(0, len(found.targets) - 1, min(most, len(found.targets))).round().astype(int)
    points = [(float(found.targets[i]), float(found.predicted[i])) for i in chosen]
    points = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return None
    ends = sorted([min(x for x, _ in points), max(x for x, _ in points)])
    explained = (
        "" if found.explained is None else f", {100 * found.explained:.1f} % of the variance explained"
    )
    note = f"Root mean squared error {shown(found.error)}{explained}; {len(found.targets):,} test samples."
    series = [
        Series("right answers", [(x, x) for x in ends], "third", "faint"),
        Series("predicted", points, "training", "dots"),
    ]
    return Chart("predictions", "Predicted and wanted", series, note, axis=Axis("wanted"))
