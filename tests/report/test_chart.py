"""Charts apart from how they are drawn: thinning, and the scales they choose."""

from __future__ import annotations

import math

from extensor.report.chart import Chart, Heat, Point, Series, thinned


def test_thinning_keeps_peaks_ends_and_order() -> None:
    points: list[Point] = [(float(x), math.sin(x / 50)) for x in range(10_000)]
    points[4321] = (4321.0, 99.0)
    points[777] = (777.0, -99.0)
    points[5000] = (5000.0, None)
    kept = thinned(points, 400)
    assert len(kept) <= 402
    assert {(4321.0, 99.0), (777.0, -99.0), points[-1]} <= set(kept)
    assert kept == sorted(kept, key=lambda point: point[0])
    assert thinned(points[:300], 400) == points[:300]


def test_thinning_nothing_but_gaps() -> None:
    assert all(y is None for _, y in thinned([(float(x), None) for x in range(5000)]))


def test_scales() -> None:
    series = [Series("s", [(10.0, 0.95), (20.0, None), (30.0, 1.0)], "training")]
    run = Chart("k", "K", series, kind="percent", until=40.0)
    assert (run.x_scale().low, run.x_scale().high, run.y_scale().high) == (0.0, 40.0, 1.0)
    assert Chart("k", "K", series, with_zero=True).y_scale().low == 0.0
    assert Chart("k", "K", series).y_scale().low > 0.4
    assert Chart("k", "K", series, logarithmic=True).y_scale().logarithmic


def test_one_value_has_a_scale_of_colours() -> None:
    scale = Heat("k", "K", ["a"], [1.0, 2.0], [[0.5, 0.5]]).scale()
    assert scale.low < scale.high
