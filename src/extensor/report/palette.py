"""The colours of the report, for light and for dark surroundings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["DIVERGING", "HEAT", "PALETTE", "RUNS", "between", "blended", "css_colour", "layer_colours"]

# name -> on a light page, on a dark page
PALETTE = {
    "training": ("#3566c8", "#7ea6f4"),
    "validation": ("#d9662b", "#f29a5e"),
    "third": ("#2c8a74", "#5fc3aa"),
}

_DEPTH = (
    "#7166d6",
    "#2f7fd0",
    "#1f9d92",
    "#7aa52c",
    "#d99a1e",
    "#d65a3a",
)  # from the first layer to the last
RUNS = (
    "#3566c8",
    "#d9662b",
    "#2c8a74",
    "#a347ba",
    "#b08900",
    "#c2344d",
    "#4d7c0f",
    "#0e7490",
)  # to be told apart
HEAT = ("#2d2a63", "#3a5ca8", "#2f93a8", "#5dba8b", "#c9d565", "#fdf3a6")  # from little to much
DIVERGING = ("#1c4f9c", "#7fa8d9", "#f6f3ee", "#eda36f", "#b4431b")  # from below 0 to above


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def blended(anchors: Sequence[str], places: np.ndarray) -> np.ndarray:
    """Colours, uint8 (..., 3), at places from 0 to 1 along some anchors.

    Example:
        >>> import numpy as np
        >>> from extensor.report.palette import blended
        >>> blended(["#000000", "#ffffff"], np.array([0.0, 0.5, 1.0])).tolist()
        [[0, 0, 0], [128, 128, 128], [255, 255, 255]]
    """
    known = np.array([_rgb(anchor) for anchor in anchors], np.float64)
    at = np.clip(places, 0.0, 1.0) * (len(anchors) - 1)
    channels = [np.interp(at, np.arange(len(anchors)), known[:, channel]) for channel in range(3)]
    return np.round(np.stack(channels, -1)).astype(np.uint8)


def between(anchors: Sequence[str], place: float) -> str:
    """One colour along some anchors, as #rrggbb."""
    return "#" + "".join(f"{channel:02x}" for channel in blended(anchors, np.array(place)))


def layer_colours(count: int) -> list[str]:
    """A colour for each layer; neighbours are alike, so that depth can be seen."""
    return [between(_DEPTH, i / max(count - 1, 1)) for i in range(count)]


def css_colour(colour: str) -> str:
    """A colour of a series in a style sheet."""
    return f"var(--{colour})" if colour in PALETTE else colour
