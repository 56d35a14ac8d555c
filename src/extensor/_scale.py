"""From numbers to places on an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Scale", "linear_scale", "log_scale", "share_scale"]

# numbers to write beside an axis of shares; the second where too few of the first lie on it
_SHARES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999)
_MORE_SHARES = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995)


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``, divided evenly, by powers of ten, or by powers of ten of what is missing to 1.

    Example:
        >>> from extensor._scale import Scale
        >>> Scale(0.001, 10, logarithmic=True).place(0.1)
        0.5
    """

    low: float
    high: float
    logarithmic: bool = False
    toward_one: bool = False  # 90, 99 and 99.9 % are equally far apart; ``high`` is below 1

    def place(self, value: float) -> float:
        """Where a value lies: 0 at ``low``, 1 at ``high``."""
        if self.toward_one:
            return math.log((1 - self.low) / (1 - min(value, self.high))) / math.log(
                (1 - self.low) / (1 - self.high)
            )
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, count: int = 5) -> list[float]:
        """About ``count`` round numbers on the axis."""
        if self.toward_one:
            coarse, fine = (
                [v for v in found if self.low <= v <= self.high] for found in (_SHARES, _MORE_SHARES)
            )
            return coarse if len(coarse) >= count else fine
        return self._powers(count) if self.logarithmic else self._multiples(count)

    def _multiples(self, count: int) -> list[float]:
        step = _round_step((self.high - self.low) / count)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{i * step:.12g}") for i in range(first, last + 1)]

    def _powers(self, count: int) -> list[float]:
        lowest, highest = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [d * 10.0**e for e in range(lowest, highest + 1) for d in digits]
            found = [v for v in found if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
            if len(found) < 2:
                return self._multiples(count)  # less than a power of ten
            if len(found) <= count + 2:
                return found
        return found[:: math.ceil(len(found) / count)]


def _round_step(width: float) -> float:
    power = 10.0 ** math.floor(math.log10(width))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))


def linear_scale(values: Iterable[float], lowest: float | None = None, highest: float | None = None) -> Scale:
    """A scale with a little room around the values, but none beyond ``lowest`` and ``highest``."""
    found = list(values)
    smallest, largest = min(found), max(found)
    room = 0.06 * (largest - smallest) or 0.1 * abs(largest) or 0.5
    low, high = smallest - room, largest + room
    low = low if lowest is None else max(low, min(lowest, smallest))
    high = high if highest is None else min(high, max(highest, largest))
    return Scale(low, high)


def log_scale(values: Iterable[float]) -> Scale:
    """A scale by powers of ten with a little room around the values, which are above 0."""
    found = list(values)
    room = max((max(found) / min(found)) ** 0.06, 1.25)
    return Scale(min(found) / room, max(found) * room, logarithmic=True)


def share_scale(values: Iterable[float]) -> Scale:
    """A scale for shares of 1, as accuracies are. One that begins low and ends high is stretched towards 1, so that 97 and
    99 % can be told apart; shares that all lie close together have an even axis.

    Example:
        >>> from extensor._scale import share_scale
        >>> scale = share_scale([0.3, 0.9, 0.97, 0.99])
        >>> scale.ticks(), round(scale.place(0.99) - scale.place(0.97), 2)
        ([0.5, 0.8, 0.9, 0.95, 0.98, 0.99], 0.24)
    """
    found = list(values)
    smallest, largest = min(found), max(found)
    if not smallest >= 0 or not 0.9 < largest <= 1 or largest - smallest < 0.12:
        return linear_scale(found, lowest=0.0, highest=1.0)
    missing = min((1 - v for v in found if v < 1), default=1.0)
    high = 1 - (0.8 * missing if largest < 1 else min(0.4 * missing, 0.005))  # 100 % itself lies at the top
    return Scale(max(0.0, smallest - 0.06 * (1 - smallest)), high, toward_one=True)
