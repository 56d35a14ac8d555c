"""Event files that TensorBoard reads, with scalars alone.

A file is a row of records: the length (8 bytes), its checksum, the content, its checksum; little-endian, the checksums
are CRC-32C, rotated and shifted so that a checksum of data that holds checksums stays useful. The content is a protocol
buffer, of which few fields are needed.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from .whole_files import clear_errors

__all__ = ["EventWriter"]


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)  # the Castagnoli polynomial, reversed
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli) of ``data``."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, content: bytes) -> bytes:
    """A field with a length: text or a message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _event(step: int, content: bytes) -> bytes:
    """Event: wall_time = 1 (double), step = 2 (int64), and one of file_version = 3, summary = 5, session_log = 7."""
    event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + content
    length = struct.pack("<Q", len(event))
    return length + _masked(length) + event + _masked(event)


class EventWriter:
    """Writes scalars for TensorBoard into a new file of a folder.

    Args:
        folder: where TensorBoard is pointed to; it is made if it is not there.
        first_step: a run that goes on: points at this step and later, written by the run before, are hidden.

    Example:
        >>> import tempfile
        >>> from extensor.train import EventWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = EventWriter(folder)
        ...     writer.scalars(10, {"loss": 0.5, "accuracy": 0.9})
        ...     writer.close()
        ...     writer.path.name.startswith("events.out.tfevents.")
        True
    """

    def __init__(self, folder: object, first_step: int = 0) -> None:
        name = f"events.out.tfevents.{time.time_ns() // 10**9}.{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
        self.path = Path(str(folder), name)
        with clear_errors("EventWriter", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "xb")  # noqa: SIM115  (open as long as the run)
            self._file.write(_event(0, _field(3, b"brain.Event:2")))
            if first_step:
                self._file.write(_event(first_step, _field(7, b"\x08\x01")))  # SessionLog: status = 1 (START)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Add one point to each of the named curves."""
        # Summary: value = 1 (repeated), each with tag = 1 (text) and simple_value = 2 (float)
        summary = b"".join(
            _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
            for tag, value in values.items()
        )
        with clear_errors("EventWriter", self.path):
            self._file.write(_event(step, _field(5, summary)))

    def flush(self) -> None:
        """Let TensorBoard read what was written so far."""
        with clear_errors("EventWriter", self.path):
            self._file.flush()

    def close(self) -> None:
        """End the file."""
        with clear_errors("EventWriter", self.path):
            self._file.close()
