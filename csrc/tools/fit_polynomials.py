"""Fit the polynomials of the vector mathematics; prints the numbers of kernels/elementwise/vecmath/coefficients.hpp.

Each row below is a function that is smooth on an interval, a weight that turns the error of the polynomial
into the relative error of the final result, and a degree for float32 and for float64. The Remez exchange
finds the polynomial whose largest weighted error is smallest. Needs mpmath and scipy.

    python csrc/tools/fit_polynomials.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mpmath as mp
import numpy as np
from scipy import special

mp.mp.prec = 160
Function = Callable[[mp.mpf], mp.mpf]


class Fit(NamedTuple):
    name: str
    meaning: str
    function: Function
    low: float
    high: dict[type, float]
    weight: Function
    degree: dict[type, int]


def remez(
    function: Function, low: float, high: float, degree: int, weight: Function
) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients, lowest first, and the largest weighted error."""
    low, high, grid_size = mp.mpf(low), mp.mpf(high), 600
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * (degree + 2))) for i in range(degree + 2)]
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf(0.5)) / grid_size) for i in range(grid_size)]
    values, weights = [function(x) for x in grid], [weight(x) for x in grid]
    for _ in range(12):
        system, right = mp.matrix(degree + 2), mp.matrix(degree + 2, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = function(x)
        coefficients = list(mp.lu_solve(system, right))[: degree + 1]
        errors = [
            (v - mp.polyval(coefficients[::-1], x)) * w for x, v, w in zip(grid, values, weights, strict=True)
        ]
        extrema: list[int] = []
        for i, e in enumerate(errors):
            if extrema and (e > 0) == (errors[extrema[-1]] > 0):
                extrema[-1] = max(extrema[-1], i, key=lambda k: abs(errors[k]))
            else:
                extrema.append(i)
        while len(extrema) > degree + 2:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        worst = max(map(abs, errors))
        if len(extrema) < degree + 2 or worst < 1.02 * min(abs(errors[i]) for i in extrema):
            break
        nodes = [grid[i] for i in extrema]
    return coefficients, worst


def series_or(function: Function, series: Callable[[mp.mpf, int], mp.mpf]) -> Function:
    """The function, by its first terms where its formula would cancel."""
    return lambda z: sum(series(z, k) for k in range(10)) if abs(z) < 1e-6 else function(z)


def odd(function: Function, series: Callable[[mp.mpf, int], mp.mpf]) -> Function:
    """p(z) where function(x) = x + x z p(z), z = x^2."""
    return series_or(lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, series)


def erfcx(x: mp.mpf) -> mp.mpf:
    return mp.exp(x * x) * mp.erfc(x)


def asin_term(z: mp.mpf, k: int) -> mp.mpf:
    n = k + 1
    return mp.factorial(2 * n) / (4**n * mp.factorial(n) ** 2 * (2 * n + 1)) * z**k


def tan_term(z: mp.mpf, k: int) -> mp.mpf:
    n = k + 2
    return (
        (-1) ** (n - 1)
        * mp.mpf(4) ** n
        * (mp.mpf(4) ** n - 1)
        * mp.bernoulli(2 * n)
        / mp.factorial(2 * n)
        * z**k
    )


def normal_tail(v: mp.mpf, c: float) -> mp.mpf:
    a = c * (0.5 + v) / (0.5 - v)
    return erfcx(a / mp.sqrt(2)) / 2 * (a + c)


class Pieces(NamedTuple):
    """A function of a >= 0 in 16 pieces around i/scale: c[1] + d (plus + c[2] + c[3] d + ...), d = a - c[0]. c[0] is a
    float32 next to the middle or the end of the piece (0 for the first) whose value is nearly a float32, so that c[1] has
    more precision than its own. From the end, a function that falls is a sum of terms of one sign."""

    name: str
    meaning: str
    function: Function
    scale: float
    top: float
    degree: int
    plus: int
    from_end: bool
    floor: float  # below this the error counts as if the function were so large
    root: float | None = (
        None  # the piece around it starts there, and its error is relative however small the function is
    )

    def fit(self, i: int) -> tuple[list[float], mp.mpf]:
        start = np.float32((i + (0.5 if self.from_end else 0)) / self.scale)
        candidates = [float(start + k * np.spacing(start)) for k in range(400)] if i else [0.0]
        around_root = self.root is not None and round(self.root * self.scale) == i
        if around_root:
            candidates = [float(np.float32(self.root))]

        def distance_from_single(candidate: float) -> mp.mpf:
            value = self.function(mp.mpf(candidate))
            return abs(value - mp.mpf(float(np.float32(float(value)))))

        origin = min(candidates, key=distance_from_single)
        value, terms = self.function(mp.mpf(origin)), mp.taylor(self.function, origin, 11)
        slope = series_or(
            lambda d: (self.function(origin + d) - value) / d - self.plus,
            lambda d, k: terms[k + 1] * d**k - (self.plus if k == 0 else 0),
        )
        low, high = max(0.0, (i - 0.502) / self.scale), min((i + 0.502) / self.scale, self.top)

        def weight(d: mp.mpf) -> mp.mpf:
            if around_root:
                return mp.mpf(1)
            d = d if abs(d) > near**2 else near**2
            return abs(d) / max(abs(self.function(origin + d)), self.floor)

        coefficients, error = remez(slope, low - origin, high - origin, self.degree - 1, weight)
        return [origin, value, *coefficients], error

    def print(self) -> None:
        pieces, errors = zip(*(self.fit(i) for i in range(16)), strict=True)
        print(f"  // {self.meaning}; error 2^{float(mp.log(max(errors), 2)):.0f}")
        print(f"  static constexpr float {self.name}[][16] = {{")
        for column in zip(*pieces, strict=True):
            numbers = [f"{np.float32(float(c)):.9g}" for c in column]
            marked = [f"{n}{'' if set(n) & set('.e') else '.'}f" for n in numbers]
            print("      {" + ", ".join(marked[:8]) + ",\n       " + ", ".join(marked[8:]) + "},")
        print("  };")


def single_normal_tail(top_degree: int, bottom_degree: int) -> tuple[np.ndarray, np.ndarray, float]:
    """erfc(a/sqrt(2))/2 / exp(-a^2/2) as a quotient of polynomials: least squares whose weights grow where the error
    is largest, then the common factor with which rounding the coefficients to float32 harms least."""
    a = TAIL_TOP[np.float32] * ((1 + np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)) / 2) ** 1.5
    values = special.erfcx(a / np.sqrt(2)) / 2
    weights, bottom, best = np.ones_like(a), np.ones_like(a), (1.0, np.empty(0))
    powers = np.vander(a, bottom_degree + 1, increasing=True)
    for _ in range(60):
        matrix = np.hstack([powers[:, : top_degree + 1] / values[:, None], -powers[:, 1:]]) / bottom[:, None]
        sizes, root = np.abs(matrix).max(0), np.sqrt(weights)
        found = np.linalg.lstsq(matrix / sizes * root[:, None], root / bottom, rcond=None)[0] / sizes
        bottom = 1 + powers[:, 1:] @ found[top_degree + 1 :]
        errors = np.abs(powers[:, : top_degree + 1] @ found[: top_degree + 1] / bottom / values - 1)
        best = min(best, (errors.max(), found), key=lambda pair: pair[0])
        weights *= errors / errors.max() + 1e-3
        weights /= weights.mean()
    top, bottom = best[1][: top_degree + 1], np.r_[1, best[1][top_degree + 1 :]]

    def error(factor: float) -> float:
        quotient = (
            powers[:, : top_degree + 1] @ np.float32(top * factor) / (powers @ np.float32(bottom * factor))
        )
        return np.abs(quotient / values - 1).max()

    factor = min(np.random.default_rng(0).uniform(1, 2, 20_000), key=error)
    return np.float32(top * factor), np.float32(bottom * factor), error(factor)


HALF_LN2 = mp.log(2) / 2 * 1.001
QUARTER_PI_SQUARED = (mp.pi / 4) ** 2 * 1.005
LOG_LOW, LOG_HIGH = mp.sqrt(0.5) - 1.001, mp.sqrt(2) - 0.999
LOG_LIMIT = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * 1.01
TAIL = 5.0
TAIL_TOP = {np.float32: 14.5, np.float64: 39.0}


def both(value: float) -> dict[type, float]:
    return {np.float32: value, np.float64: value}


def degrees(single: int, double: int) -> dict[type, int]:
    return {np.float32: single, np.float64: double}


exp_rest = series_or(lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r, k: r**k / mp.factorial(k + 2))
log_rest = series_or(lambda f: (mp.log(1 + f) - f) / f**2, lambda f, k: (-1) ** (k + 1) * f**k / (k + 2))
erf_rest = series_or(
    lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
    lambda z, k: 2 / mp.sqrt(mp.pi) * (-z) ** k / (mp.factorial(k) * (2 * k + 1)) - (k == 0),
)
near = mp.mpf(10) ** -4


def relative(f: mp.mpf) -> mp.mpf:
    """f/log(1 + f)"""
    return f / mp.log(1 + f) if f else mp.mpf(1)


FITS = [
    Fit("exp", "exp(r) = 1 + r + r^2 p(r), |r| <= log(2)/2", exp_rest, -HALF_LN2, both(HALF_LN2),
        lambda r: r * r + near, degrees(4, 10)),
    Fit("expm1", "expm1(r) = r + r^2 p(r), |r| <= log(2)/2", exp_rest, -HALF_LN2, both(HALF_LN2),
        lambda r: abs(r) + 10 * near, degrees(5, 11)),
    Fit("sinh", "sinh(r) = r + r z p(z), z = r^2, |r| <= log(2)/2", odd(mp.sinh, lambda z, k: z**k / mp.factorial(2 * k + 3)),
        0, both(HALF_LN2**2), lambda z: z + near, degrees(1, 4)),
    Fit("cosh", "cosh(r) = 1 + z p(z), z = r^2, |r| <= log(2)/2",
        series_or(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, lambda z, k: z**k / mp.factorial(2 * k + 2)),
        0, both(HALF_LN2**2), lambda z: z + near, degrees(2, 5)),
    Fit("sin", "sin(r) = r + r z p(z), z = r^2, |r| <= pi/4",
        odd(mp.sin, lambda z, k: (-1) ** (k + 1) * z**k / mp.factorial(2 * k + 3)),
        0, both(QUARTER_PI_SQUARED), lambda z: z + near, degrees(2, 6)),
    Fit("cos", "cos(r) = 1 - z/2 + z^2 p(z), z = r^2, |r| <= pi/4",
        series_or(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z, k: (-1) ** k * z**k / mp.factorial(2 * k + 4)),
        0, both(QUARTER_PI_SQUARED), lambda z: (z * z + near) / mp.cos(mp.sqrt(z)), degrees(2, 5)),
    Fit("tan", "tan(r) = r + r z p(z), z = r^2, |r| <= pi/4", odd(mp.tan, tan_term),
        0, both(QUARTER_PI_SQUARED), lambda z: z + near, degrees(6, 14)),
    Fit("asin", "asin(x) = x + x z p(z), z = x^2, |x| <= 1/2", odd(mp.asin, asin_term),
        0, both(0.2505), lambda z: z + near, degrees(5, 12)),
    Fit("atan", "atan(x) = x + x z p(z), z = x^2, |x| <= 0.66",
        odd(mp.atan, lambda z, k: (-1) ** (k + 1) * z**k / (2 * k + 3)),
        0, both(0.44), lambda z: z + near, degrees(6, 14)),
]  # fmt: skip
SINGLE_FITS = [
    Fit("log", "log(1 + f) = f + f^2 p(f), 1/sqrt(2) <= 1 + f <= sqrt(2)", log_rest, LOG_LOW, {np.float32: LOG_HIGH},
        lambda f: abs(f * relative(f)) + near, degrees(8, 0)),
    Fit("log2", "log2(1 + f) = f + f p(f), 1/sqrt(2) <= 1 + f <= sqrt(2)", lambda f: 1 / relative(f) / mp.log(2) - 1,
        LOG_LOW, {np.float32: LOG_HIGH}, relative, degrees(8, 0)),
    Fit("log10", "log10(1 + f) = f/2 + f p(f), 1/sqrt(2) <= 1 + f <= sqrt(2)",
        lambda f: 1 / relative(f) / mp.log(10) - mp.mpf(1) / 2, LOG_LOW, {np.float32: LOG_HIGH}, relative, degrees(8, 0)),
    Fit("log1p", "log(1 + e) = e + e^2 p(e - 1/2), 0 <= e <= 1", lambda v: log_rest(v + mp.mpf(1) / 2), -0.5,
        {np.float32: 0.5005}, lambda v: abs((v + mp.mpf(1) / 2) * relative(v + mp.mpf(1) / 2)) + near, degrees(8, 0)),
    Fit("far_tail", "a P(X > a) = density(a) (1 + z p(z)), z = 1/a^2, 5.5 <= a <= 14.5",
        lambda z: (mp.sqrt(mp.pi / (2 * z)) * erfcx(1 / mp.sqrt(2 * z)) - 1) / z, 1 / 14.6**2, {np.float32: 1 / 5.49**2},
        lambda z: z, degrees(4, 0)),
]  # fmt: skip
LOG = Fit(
    "log",
    "log((1+s)/(1-s)) = 2s + s z p(z), z = s^2, 1/sqrt(2) <= (1+s)/(1-s) <= sqrt(2)",
    series_or(lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z, k: 2 * z**k / (2 * k + 3)),
    0,
    both(LOG_LIMIT),
    lambda z: z / 2 + near / 10,
    degrees(3, 7),
)
DOUBLE_FITS = [
    LOG,
    Fit("erf", "erf(x) = x + x p(z), z = x^2, |x| <= 1", erf_rest, 0, both(1.001), lambda z: mp.mpf(1), degrees(0, 12)),
    Fit("erfcx", "erf(x) = 1 - exp(-x^2) p((x - 3)/(x + 3)), x >= 1", lambda t: erfcx(3 * (1 + t) / (1 - t)), -0.504,
        {np.float64: 0.345}, lambda t: mp.exp(-((3 * (1 + t) / (1 - t)) ** 2)) + near, degrees(0, 14)),
    Fit("precise_log", "log((1+s)/(1-s)) = 2s + s z (2/3 + z p(z)), z = s^2, 1/sqrt(2) <= (1+s)/(1-s) <= sqrt(2)",
        series_or(lambda z: (2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mp.mpf(2) / 3) / z,
                  lambda z, k: 2 * z**k / (2 * k + 5)),
        0, both(LOG_LIMIT), lambda z: z * z / 2 + near / 100, degrees(0, 7)),
    Fit("normal_tail", f"erfc(a/sqrt(2))/2 = exp(-a^2/2) p(a/(a + c) - 1/2)/(a + c), c = {TAIL:g}, a >= 0",
        lambda v: normal_tail(v, TAIL), -0.5, {np.float64: TAIL_TOP[np.float64] / (TAIL_TOP[np.float64] + TAIL) - 0.5},
        lambda v: 1 / normal_tail(v, TAIL), degrees(0, 22)),
    Fit("power_log", "log as above, for float32 computed in float64", LOG.function, 0, both(LOG_LIMIT), LOG.weight,
        degrees(0, 4)),
]  # fmt: skip
PIECES = [
    Pieces("erf", "erf(a) = c[1] + d + d (c[2] + c[3] d + ...), d = a - c[0], in piece round(3.75 a)",
           mp.erf, 3.75, 4.14, 6, 1, False, 0.0),
    Pieces("gelu_rest", "a P(X > a) = c[1] + d (c[2] + c[3] d + ...), d = a - c[0], in piece round(2.8 a)",
           lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2, 2.8, 5.501, 7, 0, True, 0.0),
    Pieces("gelu_slope_rest", "P(X > a) - a density(a), in the same way",
           lambda a: mp.erfc(a / mp.sqrt(2)) / 2 - a * mp.npdf(a), 2.8, 5.501, 7, 0, True, 0.01,
           0.7517915246935645),
]  # fmt: skip


def main() -> None:
    for dtype, name in ((np.float32, "float"), (np.float64, "double")):
        print(f"template <> struct Terms<{name}> {{")
        for fit in [*FITS, *(DOUBLE_FITS if dtype is np.float64 else SINGLE_FITS)]:
            coefficients, error = remez(fit.function, fit.low, fit.high[dtype], fit.degree[dtype], fit.weight)
            print(f"  // {fit.meaning}; error 2^{float(mp.log(error, 2)):.0f}")
            numbers = [
                repr(float(dtype(float(c)))) if dtype is np.float64 else f"{dtype(float(c)):.9g}"
                for c in coefficients
            ]
            lines = [", ".join(numbers[i : i + 5]) for i in range(0, len(numbers), 5)]
            print(f"  static constexpr double {fit.name}[] = {{" + ",\n      ".join(lines) + "};")
        if dtype is np.float32:
            for pieces in PIECES:
                pieces.print()
            top, bottom, error = single_normal_tail(4, 5)
            print(
                f"  // erfc(a/sqrt(2))/2 = exp(-a^2/2) top(a)/bottom(a), 0 <= a <= 14.5; error 2^{np.log2(error):.0f}"
            )
            for name, numbers in (("top", top), ("bottom", bottom)):
                print(
                    f"  static constexpr double normal_tail_{name}[] = {{"
                    + ", ".join(f"{c:.9g}" for c in numbers)
                    + "};"
                )
        print("};\n")


if __name__ == "__main__":
    main()
