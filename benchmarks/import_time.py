"""The time of ``import extensor`` beside that of ``import numpy``: interleaved, minima, and their ratio.

    python benchmarks/import_time.py [rounds]

Exits with 1 if the ratio is above 1.5. Both are read from bytecode, as after any first import, even where the environment
says PYTHONDONTWRITEBYTECODE: it is kept in a folder of its own, so that nothing is written beside the sources of a checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

LIMIT = 1.5
TIMER = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def seconds(module: str, bytecode: str) -> float:
    """One import in a fresh interpreter."""
    run = [sys.executable, "-c", TIMER.format(module)]
    env = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    return float(subprocess.run(run, capture_output=True, text=True, check=True, env=env).stdout)


def measure(rounds: int) -> dict[str, float]:
    """The smallest time of each module over interleaved rounds, after one to fill the caches."""
    modules = ("numpy", "extensor")
    best = dict.fromkeys(modules, float("inf"))
    with tempfile.TemporaryDirectory() as bytecode:
        for _ in range(rounds + 1):
            for module in modules:
                best[module] = min(best[module], seconds(module, bytecode))
    return best


def main() -> int:
    best = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    ratio = best["extensor"] / best["numpy"]
    for module, time in best.items():
        print(f"import {module:10} {time * 1e3:6.1f} ms")
    print(f"ratio            {ratio:6.2f} (at most {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
