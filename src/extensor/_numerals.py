"""Numbers as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["duration", "is_share", "plain", "shown", "ticks"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def is_share(name: str) -> bool:
    """Whether a metric of this name is written in percent."""
    return "accuracy" in name or "top" in name


def shown(value: float, kind: str = "number") -> str:
    """A value in a sentence or a legend.

    Example:
        >>> from extensor._numerals import shown
        >>> shown(0.99164, "percent"), shown(0.032712), shown(8075.3), shown(0.00002)
        ('99.16 %', '0.03271', '8,075', '2·10⁻⁵')
    """
    if value < 0:
        return f"−{shown(-value, kind)}"
    if kind == "percent":
        return f"{100 * value:.2f} %"
    if value and (value < 1e-3 or value >= 1e7):
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g}·10{str(int(power)).translate(_RAISED)}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def ticks(values: Sequence[float], kind: str = "number") -> list[str]:
    """The numbers along an axis: short, and written alike; as powers of ten if any needs it.

    Example:
        >>> from extensor._numerals import ticks
        >>> ticks([0.8, 1.0], "percent"), ticks([0.0, 0.0005, 0.001]), ticks([1e-5, 0.0003, 0.01]), ticks([500.0, 2500.0])
        (['80 %', '100 %'], ['0', '0.0005', '0.001'], ['10⁻⁵', '3·10⁻⁴', '10⁻²'], ['500', '2,500'])
    """
    if kind == "percent":
        return [f"{100 * value:.4g} %" for value in values]
    sizes = [abs(value) for value in values if value]
    if sizes and (min(sizes) < 1e-4 or max(sizes) >= 1e6):
        return [_power(value) if value else "0" for value in values]
    texts = (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}" for value in values)
    return [text.replace("-", "−") for text in texts]


def _power(value: float) -> str:
    power = math.floor(math.log10(abs(value)) + 1e-9)
    lead = round(value / 10.0**power, 6)
    sign, lead = "−" if lead < 0 else "", abs(lead)
    return sign + ("" if lead == 1 else f"{lead:g}·") + f"10{str(power).translate(_RAISED)}"


def plain(value: float) -> str:
    """A number for a program to read, as short as it may be."""
    return f"{value:.6g}"


def duration(seconds: float) -> str:
    """A time in words.

    Example:
        >>> from extensor._numerals import duration
        >>> duration(0.0123), duration(7.24), duration(75), duration(7322)
        ('12 ms', '7.2 s', '1 min 15 s', '2 h 2 min')
    """
    if 0 < seconds < 0.0995:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
