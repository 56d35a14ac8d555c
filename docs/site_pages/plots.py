"""A small picture of a function of one number with its derivative, as SVG inside the page."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et

WIDTH, HEIGHT, POINTS = 120, 72, 241

# From where to where a function is drawn, if not from -4 to 4; elements outside its domain are nan and leave gaps.
DOMAINS = {
    "exp": (-3, 1.5), "expm1": (-3, 1.5), "sinh": (-2, 2), "cosh": (-2, 2), "log": (-0.5, 4), "log1p": (-1.5, 4),
    "log2": (-0.5, 4), "log10": (-0.5, 4), "sqrt": (-0.5, 4), "rsqrt": (-0.5, 4), "asin": (-1.2, 1.2), "acos": (-1.2, 1.2),
    "atanh": (-1.2, 1.2), "acosh": (0, 4), "erfinv": (-1.2, 1.2), "lgamma": (0, 5), "digamma": (0, 5),
    "hard_sigmoid": (-5, 5), "hard_swish": (-5, 5), "relu6": (-3, 9), "square": (-2, 2), "sinc": (-4, 4),
    "binary_cross_entropy": (0, 1), "tan": (-4, 4),
}  # fmt: skip

# Losses are drawn over the prediction, for this target.
TARGETS = {
    "mean_squared_error": 0.0, "mean_absolute_error": 0.0, "smooth_l1": 0.0, "huber": 0.0, "binary_cross_entropy": 1.0,
    "binary_cross_entropy_with_logits": 1.0, "focal": 1.0, "hinge": 1.0, "hinge_embedding": -1.0, "soft_margin": 1.0,
    "poisson_nll": 1.0,
}  # fmt: skip

# Functions of one number besides the activations and the elementwise functions of one argument.
OPTIONS: dict[str, dict[str, float]] = {
    "clip": {"min": -1.0, "max": 2.0},
    "threshold": {"threshold": 1.0, "value": -1.0},
}

FAMILIES = (
    "activation",
    "shrinking",
    "exponential",
    "trigonometric",
    "elementwise",
    "special",
    "arithmetic",
    "selection",
)
NOT_ELEMENTWISE = ("glu", "polygamma")


def plot(name: str, function: Any) -> str:
    """The picture of a function that takes one number to one number, "" for others."""
    drawn = _of_one_number(name, function)
    if drawn is None:
        return ""
    low, high = DOMAINS.get(name, (-4, 4))
    x = np.linspace(low, high, POINTS)
    with np.errstate(all="ignore"):
        y, pullback = et.vjp(drawn, et.tensor(x))
        (slope,) = pullback(et.ones_like(y))
    return _svg(f"{name} and its derivative", x, y.numpy(), slope.numpy())


def _of_one_number(name: str, function: Any) -> Callable[[Any], Any] | None:
    module = function.__module__.removeprefix("extensor.ops.")
    if name in TARGETS:
        return lambda x: function(x, et.full(x.shape, TARGETS[name], dtype=et.float64), reduction="none")
    if not module.startswith(FAMILIES) or name in NOT_ELEMENTWISE:
        return None
    if name in OPTIONS:
        return lambda x: function(x, **OPTIONS[name])
    required = [p for p in _parameters(function) if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return function if [p.name for p in required] == ["x"] else None


def _parameters(function: Any) -> list[Any]:
    return list(inspect.signature(function).parameters.values())


def _svg(title: str, x: np.ndarray, *curves: np.ndarray) -> str:
    """Curves over x; values far outside are left out of the picture."""
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    low, high = max(float(finite.min(initial=0)), -4.0), min(float(finite.max(initial=0)), 6.0)
    if high - low < 1:
        high = low + 1
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)

    def across(value: float) -> float:
        return (value - x[0]) / (x[-1] - x[0]) * WIDTH

    def down(value: float) -> float:
        return HEIGHT - (value - low) / (high - low) * HEIGHT

    axes = f'<path class="axis" d="M0 {down(0):.1f}H{WIDTH}'
    axes += f'M{across(0):.1f} 0V{HEIGHT}"></path>' if x[0] <= 0 <= x[-1] else '"></path>'
    paths = []
    for kind, curve in zip(("slope", "curve"), reversed(curves)):
        path, pen, last = "", False, math.nan
        for at, value in zip(x, curve):
            inside = math.isfinite(value) and low - 1 <= value <= high + 1
            jump = abs(value - last) > 0.45 * (high - low)  # a step, not a slope
            if inside:
                path += f"{'L' if pen and not jump else 'M'}{across(at):.1f} {down(value):.1f}"
            pen, last = inside, value
        paths.append(f'<path class="{kind}" d="{path}"></path>')
    return f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{axes}{"".join(paths)}</svg>'
