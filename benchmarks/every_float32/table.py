"""Every float32 through every elementwise function and gradient, as a Markdown table.

    python3 dev.py accuracy                   all 2**32 inputs, 40 minutes of one core
    python3 dev.py accuracy --stride 251      some of them, in seconds; --only tan sin for some functions

The program beside this file does the work; see reference.cpp for what is exact. Exits with 1 if a function is off by more than
2 ulp, or a gradient by more than 4.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

LIMITS = {False: 2.0, True: 4.0}  # functions and gradients, in ulp


def rows(lines: list[str]) -> dict[str, dict[str, tuple[float, str, int, str]]]:
    """name -> instruction set -> (largest error, where, special values that are wrong, where)."""
    found: dict[str, dict[str, tuple[float, str, int, str]]] = {}
    for line in lines:
        name, isa, error, x, _got, _exact, wrong, wrong_x = line.split()
        found.setdefault(name, {})[isa] = (float(error), x, int(wrong), wrong_x)
    return found


TITLES = {"avx2": "AVX2", "avx512": "AVX-512"}
UNTRIED = "Measured on a processor without AVX-512, whose kernels give the bits of those of AVX2 (`tests/kernels/test_isa_bits.py`)."


def table(found: dict[str, dict[str, tuple[float, str, int, str]]], stride: int) -> str:
    tried = "every finite float32" if stride == 1 else f"one float32 in {stride}"
    sets = list(next(iter(found.values())))
    said = [f"Largest error on {tried}, in ulp of the exact value:"]
    if "avx512" not in sets:
        said.append(UNTRIED)
    lines = [
        " ".join(reversed(said)),
        "",
        f"| function | {' | '.join(f'{TITLES[isa]} | at x' for isa in sets)} |",
        f"|---|{'---:|---:|' * len(sets)}",
    ]
    for name, errors in found.items():
        cells = [f"{errors[isa][0]:.2f} | {errors[isa][1]}" for isa in sets]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def too_far(found: dict[str, dict[str, tuple[float, str, int, str]]]) -> list[str]:
    """What is beyond its limit, a sentence each."""
    said = []
    for name, sets in found.items():
        limit = LIMITS[name.endswith("_backward")]
        for isa, (error, x, wrong, wrong_x) in sets.items():
            if error > limit:
                said.append(f"{name} ({isa}) is off by {error:.2f} ulp at {x}, allowed are {limit:g}")
            if wrong:
                said.append(
                    f"{name} ({isa}) is infinite or nan, or not, at {wrong} places, first at {wrong_x}"
                )
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path, help="a Markdown file")
    options = parser.parse_args()
    command = [str(options.program), "--stride", str(options.stride), *options.only]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        name, isa, error, x, *_ = line.split()
        print(f"  {name:24} {isa:7} {error:>10} ulp at {x}", flush=True)
    if process.wait():
        return process.returncode
    found = rows(lines)
    if options.out is not None:
        options.out.write_text(table(found, options.stride), encoding="utf-8")
    complaints = too_far(found)
    print(
        "\n".join(complaints) or f"{len(found)} functions and gradients: none is off by more than it may be"
    )
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
