"""Times, sizes and tables as people read them."""

from __future__ import annotations

__all__ = ["readable_bytes", "readable_time", "text_table"]


def readable_time(nanoseconds: int) -> str:
    """``2500`` as ``2.50 us``."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.2f} {unit}"
    return f"{nanoseconds} ns"


def readable_bytes(count: int) -> str:
    """``2048`` as ``2.0 KB``."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def text_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Columns under a head, the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(t.rjust(w) if i else t.ljust(w) for i, (t, w) in enumerate(zip(row, widths))).rstrip()
        for row in [head, tuple("-" * w for w in widths), *rows]
    ]
    return "\n".join(lines)
