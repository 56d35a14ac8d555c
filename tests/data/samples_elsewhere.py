"""Datasets that worker processes can import."""

from __future__ import annotations

from typing import Any

import numpy as np


class Squares:
    """Dicts of arrays, numbers and text."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> dict[str, Any]:
        if i >= self.count:
            raise IndexError(i)
        return {"x": np.full((2, 3), i, np.float64), "targets": i * i, "name": f"sample {i}", "nothing": None}


class Broken(Squares):
    def __getitem__(self, i: int) -> dict[str, Any]:
        if i == 5:
            raise ValueError("sample 5 is broken")
        return super().__getitem__(i)
