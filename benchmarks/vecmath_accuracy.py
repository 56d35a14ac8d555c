"""How accurate the native elementwise functions are, as a Markdown table.

The error of a result is its distance from the exact value in units of the last place (ulp) of the exact value;
a correctly rounded result is off by at most 0.5. float32 functions are tried on every one of the 2**32 inputs
(or on every ``--stride``-th) against float64; float64 functions on dense random grids against 80-bit numbers,
or, where the C library has none of these, against mpmath. Needs scipy and mpmath.

    python benchmarks/vecmath_accuracy.py --stride 251        # a minute
    python benchmarks/vecmath_accuracy.py                     # all float32 inputs, an hour
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
from scipy import special

from extensor.kernels import NATIVE

Array = np.ndarray[Any, np.dtype[Any]]
CHUNK = 1 << 20
GRID = 1 << 20
SLOW_GRID = 1 << 13


class Case(NamedTuple):
    """A function, what it is exactly in float64 and in more, and where float64 is tried."""

    name: str
    exact: Callable[[Array], Array]
    precise: Callable[[Array], Array]
    low: float
    high: float
    attributes: tuple[Any, ...] = ()


def by_mpmath(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        with mpmath.workprec(120):
            return np.array([np.longdouble(mpmath.nstr(function(mpmath.mpf(float(v))), 25)) for v in x])

    return evaluate


def sigmoid(x: Array) -> Array:
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def mish(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return x * np.where(x > 0, (1 + 2 * e) / (1 + 2 * e + 2 * e * e), e * (2 + e) / (e * (2 + e) + 2))


def same(name: str, function: Callable[[Array], Array], low: float, high: float, *attributes: Any) -> Case:
    return Case(name, function, function, low, high, attributes)


CASES = [
    same("exp", np.exp, -708, 709.7),
    same("expm1", np.expm1, -40, 709.7),
    same("log", np.log, 0, 1e6),
    same("log1p", np.log1p, -1, 1e6),
    same("log2", np.log2, 0, 1e6),
    same("log10", np.log10, 0, 1e6),
    same("sqrt", np.sqrt, 0, 1e6),
    same("rsqrt", lambda x: 1 / np.sqrt(x), 0, 1e6),
    same("sin", np.sin, -1e5, 1e5),
    same("cos", np.cos, -1e5, 1e5),
    same("tan", np.tan, -1e5, 1e5),
    same("asin", np.arcsin, -1, 1),
    same("acos", np.arccos, -1, 1),
    same("atan", np.arctan, -20, 20),
    same("sinh", np.sinh, -710, 710),
    same("cosh", np.cosh, -710, 710),
    same("tanh", np.tanh, -20, 20),
    Case("erf", special.erf, by_mpmath(mpmath.erf), -6, 6),
    same("sigmoid", sigmoid, -700, 40),
    same("softplus", softplus, -700, 100, 1.0, float("inf")),
    same("silu", lambda x: x * sigmoid(x), -700, 100),
    same("mish", mish, -700, 100),
    Case("gelu", lambda x: x * special.ndtr(x), by_mpmath(lambda x: x * mpmath.ncdf(x)), -37, 10, (False,)),
    same("elu", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -40, 10, 1.0),
]


def largest_error(got: Array, exact: Array, dtype: type) -> tuple[float, int]:
    """The largest distance in ulp among finite values, and where; infinite if a special value is wrong."""
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), limits.smallest_normal))
        error = np.abs(got.astype(exact.dtype) - exact) / unit
        error = np.where(
            np.isfinite(exact),
            error,
            np.where((got == rounded) | (np.isnan(got) & np.isnan(exact)), 0, np.inf),
        )
        # Beyond the largest number: infinity is right where rounding gives infinity, and one ulp off just below.
        error = np.where(np.isinf(rounded) & np.isinf(got), 0, error)
    error = np.where(np.isnan(error), np.inf, error)
    worst = int(np.argmax(error))
    return float(error[worst]), worst


def single_error(case: Case, stride: int) -> tuple[float, float]:
    worst, at = 0.0, 0.0
    for start in range(0, 1 << 32, CHUNK * stride):
        patterns = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, dtype=np.uint64).astype(
            np.uint32
        )
        x = patterns.view(np.float32)
        x = x[~np.isnan(x)]
        if not x.size:
            continue
        with np.errstate(all="ignore"):
            error, index = largest_error(
                NATIVE[case.name](x, *case.attributes), case.exact(x.astype(np.float64)), np.float32
            )
        if error > worst:
            worst, at = error, float(x[index])
    return worst, at


def double_error(case: Case, rng: np.random.Generator) -> tuple[float, float]:
    size = GRID if case.precise is case.exact else SLOW_GRID
    spread = np.exp(rng.uniform(-80, np.log(max(abs(case.low), case.high)), size // 2)) * rng.choice(
        [-1, 1], size // 2
    )
    around_one = 1 + np.exp(rng.uniform(-30, 0, size // 4)) * rng.choice([-1, 1], size // 4)
    x = np.concatenate([rng.uniform(case.low, case.high, size), spread, around_one])
    x = x[(x > case.low) & (x < case.high)]
    wide = x.astype(np.longdouble) if case.precise is case.exact else x
    error, index = largest_error(NATIVE[case.name](x, *case.attributes), case.precise(wide), np.float64)
    return error, float(x[index])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stride", type=int, default=1, help="try every n-th float32")
    parser.add_argument("--only", nargs="*", help="names of functions")
    options = parser.parse_args()
    print("| function | float32: largest error (ulp) | at x | float64: largest error (ulp) | at x |")
    print("|---|---:|---:|---:|---:|")
    for case in CASES:
        if options.only and case.name not in options.only:
            continue
        single, single_at = single_error(case, options.stride)
        double, double_at = double_error(case, np.random.default_rng(0))
        print(
            f"| `{case.name}` | {single:.2f} | {single_at:.6g} | {double:.2f} | {double_at:.6g} |", flush=True
        )


if __name__ == "__main__":
    main()
