"""Native questions about elements answer as their references do, for every dtype and wherever the element is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("first_unlike" not in NATIVE, reason="the native module is not built")
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64"]
LENGTHS = [0, 1, 7, 64, 2048, 2049, 70_001]  # a block has 2048, and more than a few are shared by threads
ASKED: list[tuple[str, tuple[Any, ...]]] = [
    ("first_outside", (0, 1, None)),
    ("first_outside", (None, 1, 3)),
    ("first_outside", (0, None, None)),
    ("first_unlike", (0, 1)),
    ("first_unlike", (-1, 1)),
    ("first_unlike", (1, 16777217)),  # which no float32 is
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("name", "bounds"), ASKED)
def test_first_of_its_kind(name: str, bounds: tuple[Any, ...], length: int, dtype: str) -> None:
    x = np.ones(length, dtype)
    values: list[Any] = [2, 3, np.nan if x.dtype.kind == "f" else 7]
    values += [-1] * (x.dtype.kind != "u") + [16777216] * (x.dtype.itemsize >= 4)
    places = sorted({0, length // 3, length - 2, length - 1} & set(range(length)))
    for place in [None, *places]:
        for value in values:
            marked = x.copy()
            if place is not None:
                marked[place:] = value  # the first counts
            found = NATIVE[name](marked, *bounds)
            assert found is not NotImplemented
            assert found == KERNELS[name].reference(marked, *bounds)
