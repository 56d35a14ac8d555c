"""Axes: where numbers lie, and which are written beside them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensor._scale import Scale, linear_scale, log_scale, share_scale


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0, 10), [0, 2, 4, 6, 8, 10]),
        (Scale(0.41, 1.0), [0.6, 0.8, 1.0]),
        (Scale(-3, 3), [-2, 0, 2]),
        (Scale(0.001, 10, True), [0.001, 0.01, 0.1, 1, 10]),
        (Scale(0.04, 3, True), [0.05, 0.1, 0.2, 0.5, 1, 2]),
        (Scale(1e-40, 1e40, True), pytest.approx([1e-40, 1e-23, 1e-6, 1e11, 1e28])),
    ],
)
def test_ticks_are_round_numbers_on_the_axis(scale: Scale, ticks: list[float]) -> None:
    assert scale.ticks() == ticks


def test_places() -> None:
    assert [Scale(2, 4).place(v) for v in (2, 3, 4)] == [0, 0.5, 1]
    assert [Scale(0.01, 100, True).place(v) for v in (0.01, 1, 100)] == pytest.approx([0, 0.5, 1])


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5))
def test_a_linear_scale_holds_its_values(values: list[float]) -> None:
    scale = linear_scale(values)
    assert scale.low < scale.high
    assert all(0 <= scale.place(v) <= 1 for v in values)
    assert len(scale.ticks()) <= 8
    assert all(-1e-6 <= scale.place(v) <= 1 + 1e-6 for v in scale.ticks())


@given(st.lists(st.floats(1e-100, 1e100), min_size=1, max_size=5))
def test_a_logarithmic_scale_holds_its_values(values: list[float]) -> None:
    scale = log_scale(values)
    assert all(0 < scale.place(v) < 1 for v in values)
    assert 0 < len(scale.ticks()) <= 8
    assert all(math.isfinite(v) for v in scale.ticks())


def test_room_ends_at_the_bounds() -> None:
    assert (linear_scale([0.2, 1.0], 0.0, 1.0).high, linear_scale([0.0, 9.0], 0.0).low) == (1.0, 0.0)
    assert linear_scale([0.2, 1.2], 0.0, 1.0).high == 1.2  # never below a value


def test_shares_near_one_can_be_told_apart() -> None:
    scale = share_scale([0.1, 0.9, 0.97, 0.99])
    assert scale.place(0.99) - scale.place(0.97) > 0.2
    assert {0.5, 0.9, 0.95, 0.98, 0.99} <= set(scale.ticks())
    assert scale.place(scale.low) == 0
    perfect = share_scale([0.5, 0.9, 1.0])
    assert perfect.place(1.0) == 1
    assert perfect.high >= 0.995


@pytest.mark.parametrize("values", [[0.97, 0.98, 0.99], [0.1, 0.5], [-0.5, 0.99], [0.2, 3.0]])
def test_other_shares_have_an_even_axis(values: list[float]) -> None:
    assert not share_scale(values).toward_one
