"""float64 is what NumPy makes where nothing is said; what datasets hand out is float32 unless they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.data import DataLoader, Dataset, Normalize

WIDE = np.random.default_rng(0).normal(size=(10, 3))


@pytest.mark.parametrize(
    "data", [WIDE, WIDE.astype(">f8"), WIDE.tolist(), et.tensor(WIDE)], ids=["array", "big", "list", "tensor"]
)
def test_float64_is_handed_out_as_float32(data: Any) -> None:
    made = Dataset(data, data)
    for x, y in DataLoader(made, batch_size=4):
        assert x.dtype == y.dtype == np.float32
    np.testing.assert_array_equal(made[3][0].numpy(), WIDE[3].astype(np.float32))
    assert "float32, targets (10, 3) float32" in repr(made)


@pytest.mark.parametrize("wanted", [et.float64, "float64", et.float16, et.bfloat16])
def test_dtype_is_kept_where_it_is_wanted(wanted: Any) -> None:
    made = Dataset(WIDE, WIDE.astype(np.float32), dtype=wanted)
    for part in (made, *made.split(0.5, rng=0), made.with_transforms()):
        x, y = part[0]
        assert x.dtype == y.dtype == np.dtype(wanted)


def test_transforms_see_what_is_handed_out() -> None:
    seen = []
    made = Dataset(
        WIDE, transforms=[lambda batch, random: seen.append(batch.dtype) or batch, Normalize(0.5, 2)]
    )  # type: ignore[func-returns-value]
    assert made[0][0].dtype == seen[0] == np.float32


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.bool_, np.float16, np.float32])
def test_other_dtypes_stay(dtype: Any) -> None:
    made = Dataset(WIDE.astype(dtype), np.arange(10), dtype=None)
    assert (made[0][0].dtype, made[0][1].dtype) == (dtype, np.int64)  # type: ignore[union-attr]
    assert Dataset(np.arange(10), dtype=et.float64)[0][0].dtype == np.int64


def test_the_array_itself_is_not_copied(tmp_path: Path) -> None:
    assert np.shares_memory(Dataset(WIDE).inputs, WIDE)
    np.save(tmp_path / "wide.npy", WIDE)
    mapped = np.load(tmp_path / "wide.npy", mmap_mode="r")
    made = Dataset(mapped)
    assert isinstance(made.inputs, np.memmap)
    np.testing.assert_array_equal(made.batch(np.array([9, 1]))[0].numpy(), WIDE[[9, 1]].astype(np.float32))


def test_a_dtype_must_be_floating() -> None:
    with pytest.raises(
        TypeError, match=r"\[Dataset\] dtype must be floating, got int32; integers keep theirs"
    ):
        Dataset(WIDE, dtype=et.int32)
