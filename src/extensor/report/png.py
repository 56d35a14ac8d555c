"""Small images as PNG files, with nothing but zlib."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

__all__ = ["data_address", "png"]


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 pixels: (height, width) in greys or (height, width, 3) in red, green and blue.

    Example:
        >>> import numpy as np
        >>> from extensor.report.png import png
        >>> png(np.zeros((2, 3), np.uint8))[:8]
        b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    unfiltered = np.concatenate(
        [np.zeros((height, 1), np.uint8), rows], 1
    )  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def data_address(pixels: np.ndarray) -> str:
    """The PNG as an address that carries it, for a page that must need no other file."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")
