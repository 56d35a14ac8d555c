"""PNG files and what is drawn into them."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from png_reader import read_png

from extensor.report.images import filter_pixels, sample_pixels, sheet
from extensor.report.palette import DIVERGING, blended
from extensor.report.png import data_address, png


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 300), (4, 6, 3)])
def test_pixels_come_back(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert np.array_equal(read_png(png(pixels)), pixels)
    assert np.array_equal(read_png(png(pixels[::-1])), pixels[::-1])  # any layout in memory
    address = data_address(pixels)
    assert np.array_equal(read_png(base64.b64decode(address.removeprefix("data:image/png;base64,"))), pixels)


def test_samples_go_from_black_to_white() -> None:
    grey, colour = np.array([[[[0, 4], [8, 16]]]]), np.zeros((2, 3, 4, 5))
    assert sample_pixels(grey)[0].tolist() == [[0, 64], [128, 255]]
    assert [one.shape for one in sample_pixels(colour)] == [(4, 5, 3)] * 2


def test_filters_are_scaled_each_by_itself() -> None:
    weight = np.array([[[[-2.0, 0.0, 2.0]]], [[[-1e-3, 0.0, 1e-3]]], [[[0.0, 0.0, 0.0]]]])
    below, zero, above = blended(DIVERGING, np.array([0.0, 0.5, 1.0])).tolist()
    first, second, empty = (pixels.tolist() for pixels in filter_pixels(weight))
    assert first == second == [[below, zero, above]]
    assert empty == [[zero, zero, zero]]
    coloured = filter_pixels(np.array([1.0, 0.0, -1.0]).reshape(1, 3, 1, 1))[0]
    assert coloured.tolist() == [[[255, 128, 0]]]


def test_a_sheet_holds_every_tile_enlarged() -> None:
    tiles = [np.full((2, 2), shade, np.uint8) for shade in (10, 20, 30)]
    page = sheet(tiles, width=4, gap=1)
    assert page.shape == (6, 16, 3)
    assert sheet(tiles * 8, width=4, gap=1).shape == (21, 31, 3)  # 24 tiles, none missing in the last row
    assert page[1:5, 1:5].min() == page[1:5, 1:5].max() == 10
    assert page[1:5, 11:15].min() == page[1:5, 11:15].max() == 30
    assert (page[0] == 255).all()
