"""Linear algebra beside PyTorch, in one process.

    python benchmarks/linalg.py [function...] [--sizes 3,10,100] [--threads 1] [--rounds 20]

Each function on one matrix of each size and on a batch of small ones, float64 and float32. Short rounds in turn, the minimum of each
counts. Prints our time as a multiple of PyTorch's (less is better), then geometric means. Needs torch.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import extensor as et
from extensor.bench.timing import best_times

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--sizes", default="3,10,100")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    et.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    shapes: list[tuple[int, ...]] = [(int(n), int(n)) for n in options.sizes.split(",")]
    shapes += [(count, n, n) for count, n in BATCHES]
    print(f"{'':18}" + "".join(f"{'x'.join(map(str, s)):>13}" for s in shapes))
    every: list[float] = []
    for name in options.functions:
        for dtype in (np.float64, np.float32):
            ratios = [measure(name, shape, dtype, options.rounds) for shape in shapes]
            every += ratios
            print(
                f"{name:13}{np.dtype(dtype).name[-2:]:>5}" + "".join(f"{r:13.2f}" for r in ratios), flush=True
            )
    print(f"geometric mean {math.exp(sum(map(math.log, every)) / len(every)):.2f}")


if __name__ == "__main__":
    main()
