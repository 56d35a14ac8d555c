"""What this namespace offers: dtypes, devices, capabilities."""

from __future__ import annotations

from typing import Any

from ..dtypes import SUPPORTED, complex64, float32, int64
from ._creation import isdtype
from ._shapes_of_calls import as_cpu

__all__ = ["Info"]


class Info:
    """The answers of ``__array_namespace_info__``."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on data is possible: everything is computed at once."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The one device."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """All devices."""
        return ("cpu",)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What Python numbers become."""
        as_cpu("default_dtypes", device)
        return {"real floating": float32, "complex floating": complex64, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes by name, all or of a kind; float16 and bfloat16 are there besides."""
        as_cpu("dtypes", device)
        found = {
            dtype.name: dtype
            for dtype in sorted(SUPPORTED, key=str)
            if dtype.itemsize > 2 or dtype.kind in "biu"
        }
        return {name: dtype for name, dtype in found.items() if kind is None or isdtype(dtype, kind)}
