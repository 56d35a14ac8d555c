"""Arguments nobody should pass, drawn from a seed. Sizes stay small: nothing here can eat the machine."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

import extensor as et

DTYPES = [
    np.bool_, np.int8, np.int32, np.int64, np.uint8, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
]  # fmt: skip
SHAPES = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (5,),
    (1, 1),
    (2, 3),
    (3, 2),
    (0, 3),
    (2, 1),
    (2, 2, 3),
    (1, 0, 2),
    (2, 3, 1, 2),
]
# Nothing between: a length of a million is not an error, and a length of 2**62 cannot be met
INTEGERS = [0, 1, 2, 3, 5, -1, -2, -7, 99, 2**62, 2**63, -(2**63), 2**70, -(2**70)]
FLOATS = [0.0, -0.0, 0.5, 1.0, 1.5, -2.5, 1e-300, 1e300, float("nan"), float("inf"), float("-inf")]
WORDS = [
    "",
    "mean",
    "sum",
    "none",
    "nonsense",
    "ij,jk->ik",
    "i,i",
    "...",
    "float32",
    "fan_in",
    "relu",
    "same",
    "é",
]


class BrokenRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def array(rng: random.Random) -> np.ndarray:
    """An array of any supported dtype and layout, with special values in it."""
    shape, dtype = rng.choice(SHAPES), rng.choice(DTYPES)
    values = np.random.default_rng(rng.getrandbits(32)).uniform(-4, 4, shape)
    if values.size and rng.random() < 0.3:
        values.flat[rng.randrange(values.size)] = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf])
    with np.errstate(invalid="ignore"):
        made = values.astype(dtype)
    layout = rng.randrange(5)
    if layout == 0:
        return made.T
    if layout == 1 and made.ndim:
        return np.repeat(made, 2, axis=-1)[..., ::2]
    if layout == 2 and made.ndim:
        return made[::-1]
    return made


def strange_array(rng: random.Random) -> Any:
    """Arrays of dtypes that ExTensor does not have."""
    return rng.choice(
        [
            np.ones(3, np.complex64),
            np.array(["a", "b"]),
            np.array([None, 1], dtype=object),
            np.array(["2020-01-01"], dtype="datetime64[D]"),
            np.ones(2, dtype=[("x", "f4")]),
            np.ones(3, ">f4"),
            np.ones(3, np.longdouble),
            np.ma.masked_array([1.0, 2.0], mask=[True, False]),
            np.broadcast_to(np.float32(1), (2, 3)),
            np.float32(2.5),
            np.int16(3),
            np.str_("text"),
        ]
    )


def container(rng: random.Random) -> Any:
    """Lists, tuples and other things that hold things."""
    inner = [anything(rng, depth=1) for _ in range(rng.randrange(4))]
    made: list[Callable[[], Any]] = [
        lambda: inner, lambda: tuple(inner), list, lambda: (), dict, lambda: {"a": 1}, set, lambda: iter(inner),
        lambda: tuple(rng.choice(INTEGERS) for _ in range(rng.randrange(4))), lambda: [[1.0], [2.0, 3.0]], lambda: [[], []],
        lambda: (0, 1), lambda: (0, 0), lambda: (2, 3), lambda: range(3), lambda: [1] * 70,
    ]  # fmt: skip
    return rng.choice(made)()


def oddity(rng: random.Random) -> Any:
    """Everything else Python has."""
    return rng.choice(
        [
            None, ..., slice(None), slice(5, None, -2), slice("a", 2), object(), BrokenRepr(), len, int, float, bool,
            np.float32, np.dtype("float64"), "float16", et.bfloat16, b"bytes", 1j, np.random.default_rng(0),
            NotImplemented, ValueError("x"), lambda: None, True, False,
        ]
    )  # fmt: skip


def tensor(rng: random.Random) -> et.ExTensor:
    """A tensor, which may want a gradient."""
    made = array(rng)
    return et.tensor(
        made, requires_grad=made.dtype.name.endswith(("float16", "float32", "float64")) and rng.random() < 0.3
    )


def _nested(depth: int) -> list[Any]:
    made: list[Any] = [1.0]
    for _ in range(depth - 1):
        made = [made]
    return made


_ENDLESS: list[Any] = [1.0]
_ENDLESS.append(_ENDLESS)
_LONG = 2**40  # no memory has so many elements, but an array with none may have this length
EXTREMES = [
    10**400, -(10**400), 2**63 - 1, 2**64, 5e-324, 1e308, 1e39, 1 + 1j, "\0", "x" * 1000, "\ud800",
    range(10**30), range(0), iter([1]), memoryview(b"ab"), bytearray(b"ab"), frozenset({1}), Fraction(1, 3), Decimal("1.5"),
    _nested(64), _nested(65), _nested(900), _ENDLESS, (_ENDLESS, 1), [np.ma.masked], [[1.0], np.ma.masked], np.ma.masked,
    np.float64("nan"), np.complex64(1j), np.datetime64("2020"), np.void(b"ab"), np.dtype("O"), np.dtype("complex64"),
    np.zeros((1,) * 33, np.float32), np.zeros((1,) * 64), np.zeros((0, _LONG), np.float32), np.zeros((1, 0, _LONG)),
    np.zeros((0, 2**55), np.int8), np.ones((2, 2), np.complex128), np.array([np.iinfo(np.int64).min]), np.array(["1.5"]),
    [np.ones(2), np.ones((2, 3))], [np.ones(2), None], [[np.ones(2)]], (None, None), (_LONG, _LONG), (0, 2**63), (1,) * 65, ((0, 1),) * 4,
]  # fmt: skip


def extreme(rng: random.Random) -> Any:
    """A value at a limit: of a dtype, of a list, of what an array can be; or anything at all."""
    made = rng.choice(EXTREMES) if rng.random() < 0.5 else anything(rng)
    kind = rng.randrange(6)
    if kind == 0:
        return [made, made]
    if kind == 1 and type(made) is np.ndarray and made.dtype.kind in "biufc" and made.dtype != np.longdouble:
        return et.tensor(made)
    return made


def anything(rng: random.Random, depth: int = 0) -> Any:
    """Any argument at all; tensors most often, so that calls come past the first check."""
    kinds: list[tuple[int, Callable[[random.Random], Any]]] = [
        (8, tensor), (3, array), (1, strange_array), (3, oddity), (2, lambda r: r.choice(FLOATS)),
        (3, lambda r: r.choice(INTEGERS)), (2, lambda r: r.choice(WORDS)), (0 if depth else 3, container),
    ]  # fmt: skip
    return rng.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0](rng)
