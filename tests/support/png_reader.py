"""PNG files read back, by their specification: 8 bits, greys or colours, rows without a filter."""

from __future__ import annotations

import struct
import zlib

import numpy as np


def read_png(content: bytes) -> np.ndarray:
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(content):
        (length,) = struct.unpack_from(">I", content, place)
        name, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", content, place + 8 + length) == (zlib.crc32(name + body),)
        chunks[name] = body
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colours, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3}[colours]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape((height, width) if channels == 1 else (height, width, channels))
