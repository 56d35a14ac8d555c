"""Sample inputs and edges of joining, splitting, repeating and padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..registry import Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
Shape = tuple[int, ...]

CONCATENATE: tuple[tuple[tuple[Shape, ...], int | None], ...] = (
    (((7,),), 0), (((3,), (0,), (2,)), 0), (((2, 3), (4, 3)), 0), (((2, 3), (2, 1), (2, 5)), -1), (((2, 0, 3), (2, 4, 3)), 1),
    (((2, 3), (), (4,)), None), (((17,), (16,)), 0),
)  # fmt: skip
STACK: tuple[tuple[int, Shape, int], ...] = (
    (1, (), 0),
    (3, (7,), 0),
    (2, (3, 4), -1),
    (2, (2, 3, 5), 1),
    (2, (0, 3), 1),
)
SPLIT: tuple[tuple[Shape, Any, int], ...] = (
    ((6,), 3, 0), ((7,), [2, 5], 0), ((7,), [0, 3, 3, 9], 0), ((3, 4), 2, 1), ((3, 4), [-1], -1), ((2, 0, 3), 2, 1), ((5,), [], 0), ((2, 3, 5), (1, 4), 2),
)  # fmt: skip
TILE: tuple[tuple[Shape, Any], ...] = (
    ((), 3), ((7,), 1), ((3,), (2, 2)), ((2, 3), 2), ((2, 3), (2, 1)), ((2, 3), (3, 2, 1)), ((2, 0), (2, 3)), ((3,), 0), ((17,), 3), ((2, 3), ()),
)  # fmt: skip
REPEAT: tuple[tuple[Shape, Any, int | None], ...] = (
    ((), 3, None), ((7,), 2, None), ((2, 3), 2, None), ((2, 3), 3, 0), ((2, 3), np.array([0, 1, 3]), 1), ((3, 4), 0, 1), ((0, 2), 2, 0),
    ((2, 3, 5), np.array([2, 1]), 0), ((17,), np.array([2]), 0),
)  # fmt: skip
PAD: tuple[tuple[Shape, Any], ...] = (
    ((7,), 2),
    ((3, 4), ((1, 2), (0, 3))),
    ((1,), (3, 1)),
    ((2, 3), (4, 5)),
    ((2, 3, 5), ((0, 0), (1, 1), (2, 0))),
    ((), 1),
)


def _concatenate(draw: Draw) -> Iterator[Case]:
    for shapes, axis in CONCATENATE:
        yield Case([draw.values(shape) for shape in shapes], axis=axis)
    yield Case([draw.strided((3, 5)), draw.strided((2, 5))])


def _stack(draw: Draw) -> Iterator[Case]:
    for count, shape, axis in STACK:
        yield Case([draw.values(shape) for _ in range(count)], axis=axis)
    yield Case([draw.strided((3, 5)), draw.strided((3, 5))], axis=1)


def _split(draw: Draw) -> Iterator[Case]:
    for shape, where, axis in SPLIT:
        yield Case(draw.values(shape), where, axis=axis)
    yield Case(draw.strided((4, 6)), 2)


def _tile(draw: Draw) -> Iterator[Case]:
    for shape, reps in TILE:
        yield Case(draw.values(shape), reps)
    yield Case(draw.strided((3, 5)), 2)


def _repeat(draw: Draw) -> Iterator[Case]:
    for shape, repeats, axis in REPEAT:
        yield Case(draw.values(shape), repeats, axis=axis)
    yield Case(draw.strided((3, 5)), 2, axis=1)


def _pad(draw: Draw) -> Iterator[Case]:
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        for shape, width in PAD:
            yield Case(draw.values(shape), width, mode=mode)
        yield Case(draw.strided((3, 5)), 2, mode=mode)
    yield Case(draw.values((0, 3)), 1)
    yield Case(draw.values((2, 3)), ((1, 0), (2, 2)), constant_values=((1.5, 0), (-2, 3)))


_KEPT = np.array([NAN, INF, -0.0])

PAIRS = [
    Pair("concatenate", _concatenate, ties("nan, inf, -0", Case([_KEPT, np.array([1.0])]), [1.0] * 3, [1.0])),
    Pair("stack", _stack, ties("nan, inf, -0", Case([_KEPT, _KEPT]), [1.0] * 3, [1.0] * 3)),
    Pair("split", _split, ties("nan, inf, -0", Case(_KEPT, 3), [1.0] * 3)),
    Pair("tile", _tile, ties("nan, inf, -0", Case(_KEPT, 2), [2.0] * 3)),
    Pair(
        "repeat", _repeat,
        ties("nan, inf, -0", Case(_KEPT, 2), [2.0] * 3) + ties("repeated 0 times", Case(np.ones(3), np.array([0, 1, 2])), [0.0, 1.0, 2.0]),
    ),
    Pair(
        "pad", _pad,
        ties("the margin is constant", Case(_KEPT, 2), [1.0] * 3)
        + ties("the margin repeats the edge", Case(_KEPT, (1, 2), mode="edge"), [2.0, 1.0, 3.0])
        + ties("the margin is a mirror", Case(_KEPT, 2, mode="reflect"), [2.0, 3.0, 2.0]),
    ),
]  # fmt: skip
