"""What a cell of a table holds: a number as people write it, a date, or nothing."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["DATE_ORDERS", "EMPTY", "Cell", "parse_date", "parse_number", "read_cell"]

EMPTY = frozenset(["", "?", "na", "n/a", "nan", "none", "null"])  # what stands for no number, in any case
LARGEST = float(np.finfo(np.float32).max)
DATE_ORDERS = ("ymd", "dmy", "mdy")

_SIGNS = r"[$€£¥₹₽₩₺]|[A-Z]{3}(?= )"


def _number_pattern(decimal: str, group: str) -> re.Pattern[str]:
    whole = rf"\d{{1,3}}(?:[{group}'’ \u00a0\u202f\u2009]\d{{3}})+|\d+"
    return re.compile(
        rf"(?P<sign>[+\-−]?) ?(?:{_SIGNS})? ?(?P<inner>[+\-−]?)(?P<whole>{whole})?"
        rf"(?:{re.escape(decimal)}(?P<part>\d*))?(?P<exponent>[eE][+-]?\d+)?[ \u00a0\u202f]?(?:%|{_SIGNS}|[A-Z]{{3}})?"
    )


_NUMBERS = {".": _number_pattern(".", ","), ",": _number_pattern(",", ".")}
_TIME = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_number(cell: str, decimal: str = ".") -> float | None:
    """The number a cell holds, or None: ``3.5``, ``1,234.5``, ``$3.20``, ``12 %`` (as 12), ``(5)`` as -5.

    Args:
        cell: its text, without blanks around it.
        decimal: the decimal mark, ``"."`` or ``","``; the other one may separate thousands.
    """
    if decimal == "." or "." not in cell:
        try:
            value = float(cell)
        except ValueError:
            pass
        else:
            return value if abs(value) <= LARGEST and "_" not in cell else None
    text, negative = cell, False
    if cell[:1] == "(" and cell[-1:] == ")":  # as accountants write a loss
        text, negative = cell[1:-1], True
    found = _NUMBERS[decimal].fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        return None
    digits = re.sub(r"\D", "", found["whole"] or "0")
    value = float(f"{digits}.{found['part'] or '0'}{found['exponent'] or ''}")
    if not value <= LARGEST or (found["sign"] and found["inner"]):
        return None
    minus = (found["sign"] or found["inner"]) in ("-", "−")
    return -value if minus != negative else value


def parse_date(cell: str, order: str) -> float | None:
    """Days since 1970, or None. ``order`` says what stands where: ``"ymd"``, ``"dmy"`` or ``"mdy"``."""
    found = (_YEAR_FIRST if order == "ymd" else _YEAR_LAST).fullmatch(cell)
    if found is None:
        return None
    first, _, second, third, hour, minute, second_of_minute = found.groups()
    numbers = {"ymd": (first, second, third), "dmy": (third, second, first), "mdy": (third, first, second)}
    year, month, day = (int(text) for text in numbers[order])
    try:
        moment = datetime(year, month, day, tzinfo=UTC)
        moment += timedelta(
            hours=int(hour or 0), minutes=int(minute or 0), seconds=int(second_of_minute or 0)
        )
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) / timedelta(days=1)


class Cell(NamedTuple):
    """What one cell may be: the number it holds with either decimal mark, and the orders in which it is a date."""

    empty: bool
    dot: float | None
    comma: float | None
    dates: frozenset[str]
    has_time: bool


_NO_DATE: frozenset[str] = frozenset()


@lru_cache(maxsize=1 << 16)
def read_cell(text: str) -> Cell:
    """Everything a cell may be."""
    if text.lower() in EMPTY:
        return Cell(True, None, None, _NO_DATE, False)
    dot = parse_number(text, ".")
    comma = parse_number(text, ",")
    dates = _NO_DATE
    if dot is None and comma is None and len(text) >= 8 and text[0].isdigit():
        dates = frozenset(order for order in DATE_ORDERS if parse_date(text, order) is not None)
    return Cell(False, dot, comma, dates, bool(dates) and ":" in text)


def is_whole(value: float) -> bool:
    return math.isfinite(value) and value.is_integer()
