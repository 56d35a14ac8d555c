"""Linear algebra beside PyTorch, in one process.

    python benchmarks/linalg.py [function...] [--sizes 3,10,32,100,300,1000] [--threads 1] [--rounds 8]

Each function on one matrix of each size and on batches of small ones, float64 and float32; NumPy's LAPACK on as many threads as the
rest. Short rounds in turn, the minimum of each counts. Prints our time as a multiple of PyTorch's (less is better), then geometric
means. Needs torch.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import extensor as et
from extensor.bench.timing import best_times, table

Function = Callable[..., Any]

FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "inv": (lambda a, s, b: et.linalg.inv(a), lambda a, s, b: torch.linalg.inv(a)),
    "solve": (lambda a, s, b: et.linalg.solve(a, b), lambda a, s, b: torch.linalg.solve(a, b)),
    "det": (lambda a, s, b: et.linalg.det(a), lambda a, s, b: torch.linalg.det(a)),
    "slogdet": (lambda a, s, b: et.linalg.slogdet(a), lambda a, s, b: torch.linalg.slogdet(a)),
    "cholesky": (lambda a, s, b: et.linalg.cholesky(s), lambda a, s, b: torch.linalg.cholesky(s)),
    "qr": (lambda a, s, b: et.linalg.qr(a), lambda a, s, b: torch.linalg.qr(a)),
    "eigh": (lambda a, s, b: et.linalg.eigh(s), lambda a, s, b: torch.linalg.eigh(s)),
    "eigvalsh": (lambda a, s, b: et.linalg.eigvalsh(s), lambda a, s, b: torch.linalg.eigvalsh(s)),
    "svd": (lambda a, s, b: et.linalg.svd(a, False), lambda a, s, b: torch.linalg.svd(a, False)),
    "svdvals": (lambda a, s, b: et.linalg.svdvals(a), lambda a, s, b: torch.linalg.svdvals(a)),
    "pinv": (lambda a, s, b: et.linalg.pinv(a), lambda a, s, b: torch.linalg.pinv(a)),
    "matrix_exp": (lambda a, s, b: et.linalg.matrix_exp(a), lambda a, s, b: torch.linalg.matrix_exp(a)),
    "triangular_solve": (
        lambda a, s, b: et.linalg.triangular_solve(a, b),
        lambda a, s, b: torch.linalg.solve_triangular(a, b, upper=False),
    ),
}
BATCHES = ((1000, 3), (200, 10), (20, 50))


def matrices(shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """General ones that are well conditioned, symmetric positive ones, and right-hand sides."""
    rng = np.random.default_rng(0)
    n = shape[-1]
    a = rng.standard_normal(shape) / math.sqrt(n) + 2 * np.eye(n)
    return tuple(
        x.astype(dtype) for x in (a, a @ np.swapaxes(a, -1, -2), rng.standard_normal((*shape[:-1], 2)))
    )  # type: ignore[return-value]


def measure(name: str, shape: tuple[int, ...], dtype: Any, rounds: int) -> float:
    """Our time as a multiple of PyTorch's."""
    arrays = matrices(shape, dtype)
    ours, theirs = FUNCTIONS[name]
    tensors, theirs_given = [et.asarray(x) for x in arrays], [torch.from_numpy(x) for x in arrays]
    times = best_times({"ours": lambda: ours(*tensors), "torch": lambda: theirs(*theirs_given)}, rounds)
    return times["ours"] / times["torch"]


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--sizes", default="3,10,32,100,300,1000")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != str(options.threads):  # read when NumPy is loaded
        os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    et.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    shapes: list[tuple[int, ...]] = [(int(n), int(n)) for n in options.sizes.split(",")]
    shapes += [(count, n, n) for count, n in BATCHES]
    rows = [("function", "dtype", *("x".join(map(str, s)) for s in shapes), "mean")]
    every: list[list[float]] = []
    for name in options.functions:
        for dtype in (np.float64, np.float32):
            ratios = [measure(name, s, dtype, 3 if s[-1] >= 300 else options.rounds) for s in shapes]
            every.append(ratios)
            rows.append((name, np.dtype(dtype).name, *(f"{r:.2f}" for r in ratios), f"{mean(ratios):.2f}"))
    columns = [mean(list(column)) for column in zip(*every)]
    whole = mean([r for ratios in every for r in ratios])
    rows.append(("geometric mean", "", *(f"{r:.2f}" for r in columns), f"{whole:.2f}"))
    print(table(rows))


if __name__ == "__main__":
    main()
