"""ONNX Runtime beside us, where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..tensor import ExTensor

__all__ = ["largest_difference", "run_in_runtime"]


def largest_difference(path: Path, inputs: Mapping[str, Any], outputs: Sequence[Any]) -> float | None:
    """Between ONNX Runtime and us, relative to the largest output; None where it is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    found = run_in_runtime(path, {name: np.asarray(x) for name, x in inputs.items()})
    worst = 0.0
    for theirs, ours in zip(found, outputs):
        if not isinstance(ours, ExTensor):
            continue
        a, b = np.asarray(theirs).astype(np.float64), ours.numpy().astype(np.float64)
        if a.shape != b.shape:
            raise ValueError(f"[export] ONNX Runtime gives the shape {a.shape} instead of {b.shape}")
        if not a.size:
            continue
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        both = np.isfinite(b)
        scale = float(np.abs(b[both]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(a[both] - b[both]).max(initial=0.0)) / scale)
    return worst


def run_in_runtime(path: Path, inputs: dict[str, np.ndarray]) -> list[Any]:
    """The outputs that ONNX Runtime computes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    return list(session.run(None, {k: v for k, v in inputs.items() if k in known}))
