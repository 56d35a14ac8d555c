"""The images of a report as PNG files: they need nothing but zlib."""

from __future__ import annotations

from .contents import Contents
from .evaluation import Classification
from .images import filter_pixels, sample_pixels, sheet
from .png import png

__all__ = ["image_files"]


def image_files(contents: Contents) -> dict[str, bytes]:
    """The most confused examples and the filters of the first layer, where a run has them."""
    files = {}
    found = contents.evaluation
    if isinstance(found, Classification) and found.has_images:
        pixels = sample_pixels(found.inputs([*found.mistakes, *found.doubts]))
        files["most_confused.png"] = png(sheet(pixels))
    if contents.filters is not None:
        files["filters.png"] = png(sheet(filter_pixels(contents.filters.weight)))
    return files
