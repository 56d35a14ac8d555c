"""Pictures in files: decoded by Pillow (the extra ``images``) when a batch asks for them, and no sooner."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import as_int
from ..errors import describe
from ._files import DamagedFileError, as_folder
from .dataset import Dataset
from .lazy import LazyArray
from .transforms import ToFloat, Transform

__all__ = ["PICTURES", "PictureFiles", "flat_pictures", "has_pictures", "image_folder"]

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
_MOST_PIXELS = 100_000_000  # of one picture: a small file may claim any number


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError(
            "[image_folder] pictures need Pillow: pip install pillow (the extra 'images' of ExTensor)"
        ) from None


class PictureFiles(LazyArray):
    """Picture files as an array (pictures, channels, height, width) of bytes that is read from the disk as it is asked for.

    A picture is scaled until it covers the size, and what is over is cut off on both sides; colours become grey or grey
    colours as ``channels`` says, and a transparent background becomes white.
    """

    def __init__(self, files: Iterable[Any], size: tuple[int, int], channels: int = 3) -> None:
        self.files = [Path(file) for file in files]
        self.dtype = np.dtype(np.uint8)
        self.shape = (len(self.files), channels, *size)

    def take(self, places: np.ndarray) -> np.ndarray:
        """The pictures at some places, decoded."""
        _, channels, height, width = self.shape
        found = np.empty((len(places), channels, height, width), np.uint8)
        for row, place in enumerate(places.tolist()):
            found[row] = _decoded(self.files[place], (height, width), channels)
        return found

    def subset(self, places: np.ndarray) -> PictureFiles:
        """The same for some of the files."""
        return PictureFiles([self.files[i] for i in places.tolist()], self.shape[2:], self.shape[1])  # type: ignore[arg-type]


def _decoded(file: Path, size: tuple[int, int], channels: int) -> np.ndarray:
    image = _pillow()
    try:
        with image.open(file) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                raise ValueError(f"it has {picture.width} x {picture.height} pixels")
            picture.draft("RGB", (size[1] * 2, size[0] * 2))  # JPEG decodes smaller at once
            shown = _upright(picture)
            if shown.mode in ("RGBA", "LA", "PA") or "transparency" in shown.info:
                shown = shown.convert("RGBA")
                white = image.new("RGBA", shown.size, "white")
                shown = image.alpha_composite(white, shown)
            shown = _covering(shown.convert("L" if channels == 1 else "RGB"), size, image)
            pixels = np.asarray(shown, np.uint8)
    except FileNotFoundError:
        raise FileNotFoundError(f"[image_folder] there is no file {file}") from None
    except Exception as error:  # Pillow has many kinds of them
        raise DamagedFileError(f"[image_folder] {file} is no picture that can be read: {error}") from None
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def _upright(picture: Any) -> Any:
    """As the camera says it was held."""
    return importlib.import_module("PIL.ImageOps").exif_transpose(picture)


def _covering(picture: Any, size: tuple[int, int], image: Any) -> Any:
    """Scaled to cover the size, the middle of it."""
    height, width = size
    scale = max(height / picture.height, width / picture.width)
    wide, high = max(width, round(picture.width * scale)), max(height, round(picture.height * scale))
    picture = picture.resize((wide, high), image.Resampling.BILINEAR, reducing_gap=2.0)
    left, top = (wide - width) // 2, (high - height) // 2
    return picture.crop((left, top, left + width, top + height))


def has_pictures(folder: Path) -> bool:
    """Whether a folder has folders of pictures in it."""
    return folder.is_dir() and any(_pictures_in(part) for part in folder.iterdir() if part.is_dir())


def flat_pictures(folder: Path) -> list[Path]:
    """The picture files of a folder itself."""
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in PICTURES and file.is_file())


def _pictures_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in PICTURES and file.is_file())


def as_size(function: str, size: Any) -> tuple[int, int]:
    """Height and width; a single number is both."""
    pair = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if len(pair) != 2:
        raise ValueError(f"[{function}] size must be one number or (height, width), got {describe(size)}")
    height, width = (as_int(function, "size", n) for n in pair)
    if not (0 < height <= 4096 and 0 < width <= 4096):
        raise ValueError(f"[{function}] size must be from 1 to 4096, got {describe(size)}")
    return height, width


def image_folder(
    path: Any,
    size: int | tuple[int, int] = 32,
    channels: int = 3,
    transforms: Sequence[Transform] = (),
    classes: Sequence[str] | None = None,
) -> Dataset:
    """Pictures in folders, one for each class: ``flowers/rose/1.jpg``. They stay on the disk until a batch needs them.

    Args:
        path: the folder of the folders.
        size: height and width of what the network sees, or one number for both; pictures of any size are scaled and cut to it.
        channels: 3 for colours, 1 for grey.
        transforms: what happens to pixels, between 0 and 1, see :mod:`extensor.data.transforms`.
        classes: the names of the folders in the order of their numbers; sorted by name if None.

    Returns:
        A dataset of (channels, height, width) in float32, with the numbers of the classes.

    Example:
        >>> from extensor import data
        >>> flowers = data.image_folder("flowers", size=64)  # doctest: +SKIP
        >>> loader = data.DataLoader(flowers, 32, shuffle=True, num_workers=2)  # doctest: +SKIP
    """
    folder = as_folder("image_folder", path)
    if channels not in (1, 3):
        raise ValueError(f"[image_folder] channels must be 1 or 3, got {describe(channels)}")
    parts = sorted(part for part in folder.iterdir() if part.is_dir() and _pictures_in(part))
    names = [part.name for part in parts] if classes is None else [str(name) for name in classes]
    unknown = [part.name for part in parts if part.name not in names]
    if not parts or unknown:
        reason = (
            f"has the folder {unknown[0]!r}, which is none of the classes"
            if unknown
            else "has no folders of pictures in it"
        )
        raise ValueError(
            f"[image_folder] {folder} {reason}; each class is a folder of {', '.join(PICTURES[:3])} files"
        )
    files = [(file, names.index(part.name)) for part in parts for file in _pictures_in(part)]
    pictures = PictureFiles([file for file, _ in files], as_size("image_folder", size), channels)
    return Dataset(pictures, np.array([label for _, label in files]), [ToFloat(), *transforms], names)
