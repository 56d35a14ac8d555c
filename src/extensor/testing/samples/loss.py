"""Sample inputs and edges of the losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np

from ..registry import NONZERO, REAL, SHAPES, Case, Domain, Draw, Edge, Pair, kinks, ties

INF, NAN = float("inf"), float("nan")
PROBABILITY = Domain(0.1, 0.9)
Cases = Callable[[Draw], Iterator[Case]]


def _reductions(count: int) -> tuple[str, ...]:
    """The reductions that are finite for ``count`` losses: there is no mean of nothing."""
    return ("mean", "sum", "none") if count else ("sum", "none")


def _elementwise(pair: Callable[[Draw, Any], tuple[np.ndarray, ...]], *options: dict[str, Any]) -> Cases:
    """Every shape and reduction; the options take turns."""

    def cases(draw: Draw) -> Iterator[Case]:
        turns = cycle(options or ({},))
        for shape in SHAPES:
            for reduction in _reductions(math.prod(shape)):
                yield Case(*pair(draw, shape), reduction=reduction, **next(turns))

    return cases


def _apart(domain: Domain) -> Callable[[Draw, Any], tuple[np.ndarray, ...]]:
    """Targets, and predictions whose differences from them come from ``domain``."""

    def pair(draw: Draw, shape: Any) -> tuple[np.ndarray, ...]:
        targets = draw.values(shape)
        return targets + draw.values(shape, domain), targets

    return pair


def _scores(draw: Draw, shape: Any) -> tuple[np.ndarray, ...]:
    return draw.values(shape), draw.values(shape, Domain(0, 1))


def _chances(draw: Draw, shape: Any) -> tuple[np.ndarray, ...]:
    return draw.values(shape, PROBABILITY), draw.values(shape, Domain(0, 1))


def _signs(draw: Draw, shape: Any) -> np.ndarray:
    return draw.rng.choice([-1.0, 1.0], shape)


def _margins(draw: Draw, shape: Any) -> tuple[np.ndarray, ...]:
    """Scores that fall short of the margin 1, or exceed it, but do not lie on it."""
    targets = np.asarray(_signs(draw, shape))
    return targets * (1 - draw.values(shape, NONZERO)), targets


def _with_weights(pair: Callable[[Draw, Any], tuple[np.ndarray, ...]], *names: str) -> Cases:
    """The plain loss, then with weights of several shapes."""

    def cases(draw: Draw) -> Iterator[Case]:
        yield from _elementwise(pair)(draw)
        for shape in ((3,), (1, 3), (2, 3)):
            for reduction in _reductions(1):
                weights = {name: draw.values(shape, Domain(0.5, 2)) for name in names}
                yield Case(*pair(draw, (2, 3)), reduction=reduction, **weights)

    return cases


# shape of the logits, axis of the classes
CLASSES = (
    ((5,), -1),
    ((3, 5), -1),
    ((4, 1), 1),
    ((0, 5), 1),
    ((3, 4), 0),
    ((2, 5, 3), 1),
    ((2, 3, 2, 4), -1),
)


def _classes(draw: Draw) -> Iterator[Case]:
    turn = 0
    for shape, axis in CLASSES:
        classes, rows = shape[axis], np.delete(shape, axis)
        for reduction in _reductions(math.prod(rows)):
            for soft in (False, True):
                weight = draw.values(classes, Domain(0.5, 2)) if (turn // 2) % 2 else None
                smoothing = (0.0, 0.1, 0.3)[turn % 3]
                options: dict[str, Any] = {"axis": axis, "label_smoothing": smoothing, "weight": weight}
                if soft:
                    targets = draw.values(shape, Domain(0, 1))
                else:
                    targets = draw.integers(0, classes, rows)
                    options["ignore_index"] = 7 if targets.ndim and targets.size > 1 else None
                    targets = np.where(np.arange(targets.size).reshape(targets.shape) == 1, 7, targets)
                yield Case(draw.values(shape), targets, reduction=reduction, **options)
                turn += 1


def _distributions(draw: Draw) -> Iterator[Case]:
    for shape, axis in CLASSES:
        for reduction in _reductions(math.prod(np.delete(shape, axis))):
            yield Case(*(draw.values(shape, PROBABILITY) for _ in "pq"), axis=axis, reduction=reduction)


EMBEDDINGS = ((4,), (3, 5), (0, 3), (2, 3, 4))


def _far_from(level: Callable[..., np.ndarray], make: Callable[[], Any]) -> Any:
    """Inputs drawn until no row is near its margin, where ``level`` is 0."""
    while True:
        inputs = make()
        if not (np.abs(level(*inputs)) < 0.05).any():
            return inputs


def _triplets(draw: Draw) -> Iterator[Case]:
    def gap(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
        return np.linalg.norm(a - b, p, axis=-1)

    turn = 0
    for shape in EMBEDDINGS:
        for p in (2.0, 1.0, 1.5, 3.0, INF):
            swap = p == 2 and bool(turn % 2)
            reductions = _reductions(math.prod(shape[:-1]))

            def short(a: Any, b: Any, c: Any, p: float = p, swap: bool = swap) -> np.ndarray:
                to_far, swapped = gap(a, c, p), gap(b, c, p)
                near_tie = np.abs(to_far - swapped) < 0.05 if swap else False
                return np.where(
                    near_tie, 0, 1 + gap(a, b, p) - (np.minimum(to_far, swapped) if swap else to_far)
                )

            def make(shape: Any = shape) -> tuple[np.ndarray, ...]:
                anchor = draw.values(shape)
                size = 0.3 + np.abs(draw.distinct(shape))  # of the differences: neither 0 nor equal
                return anchor, anchor + size * _signs(draw, shape), anchor + 1.7 * size * _signs(draw, shape)

            inputs = _far_from(short, make)
            yield Case(*inputs, p=p, swap=swap, reduction=reductions[turn % len(reductions)])
            turn += 1
    yield Case(*inputs, margin=20.0, eps=1e-3, swap=False, reduction="none")


def _embeddings(draw: Draw) -> Iterator[Case]:
    def level(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
        return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1)) - 0.1

    for shape in EMBEDDINGS:
        for reduction in _reductions(math.prod(shape[:-1])):

            def make(shape: Any = shape) -> tuple[np.ndarray, ...]:
                return draw.values(shape), draw.values(shape), np.asarray(_signs(draw, shape[:-1]))

            yield Case(*_far_from(level, make), margin=0.1, reduction=reduction)


def _mirrored(gradients: dict[tuple[float, float], float], **options: Any) -> tuple[Edge, ...]:
    """Edges of a loss of the difference: the gradient of the targets is minus that of the predictions."""
    return kinks({point: (grad, -grad) for point, grad in gradients.items()}, reduction="none", **options)


def _row(label: str, values: list[Any], targets: Any, *expect: list[Any], **options: Any) -> tuple[Edge, ...]:
    """An edge of a loss over rows of numbers, reduced to their sum."""
    arrays = [np.asarray(v, np.float64) for v in values]
    return ties(label, Case(*arrays, *targets, reduction=options.pop("reduction", "sum"), **options), *expect)


_PLAIN: dict[tuple[float, float], float] = {(NAN, 1.0): NAN, (1.0, NAN): NAN, (INF, INF): NAN}

PAIRS = [
    Pair("mean_squared_error", _elementwise(_apart(REAL)), _mirrored({(1.0, 1.0): 0, (INF, 1.0): INF, **_PLAIN})),
    Pair("mean_absolute_error", _elementwise(_apart(NONZERO)), _mirrored({(1.0, 1.0): 0, (INF, 1.0): 1, **_PLAIN})),
    Pair(
        "smooth_l1",
        _elementwise(_apart(Domain(avoid=(0.0, 1.0, -1.0, 0.5, -0.5))), {}, {"beta": 0.5}, {"beta": 0.0}),
        _mirrored({(0.0, 0.0): 0, (1.0, 0.0): 1, (-1.0, 0.0): -1, (INF, 1.0): 1, **_PLAIN})
        + _mirrored({(1.0, 1.0): 0, (2.0, 1.0): 1, (NAN, 1.0): NAN}, beta=0.0),
    ),
    Pair(
        "huber",
        _elementwise(_apart(Domain(avoid=(1.0, -1.0, 0.5, -0.5))), {}, {"delta": 0.5}),
        _mirrored({(0.0, 0.0): 0, (1.0, 0.0): 1, (-1.0, 0.0): -1, (INF, 1.0): 1, **_PLAIN})
        + _mirrored({(0.0, 2.0): -0.5, (0.5, 0.0): 0.5}, delta=0.5),
    ),
    Pair(
        "binary_cross_entropy",
        _with_weights(_chances, "weight"),
        kinks({(0.0, 0.0): 0, (1.0, 1.0): 0, (0.0, 1.0): -1e12, (1.0, 0.0): 1e12, (NAN, 1.0): NAN, (0.5, NAN): NAN},
              reduction="none"),
    ),
    Pair(
        "binary_cross_entropy_with_logits",
        _with_weights(_scores, "weight", "pos_weight"),
        kinks({(0.0, 1.0): -0.5, (1000.0, 0.0): 1, (-1000.0, 1.0): -1, (1000.0, 1.0): 0, (-1000.0, 0.0): 0,
               (INF, 0.0): 1, (-INF, 1.0): -1, (INF, 1.0): 0, (NAN, 1.0): NAN, (1.0, NAN): NAN}, reduction="none"),
    ),
    Pair(
        "cross_entropy",
        _classes,
        _row("logits of 1000", [[0.0, 1000.0]], [np.array(0)], [-1.0, 1.0])
        + _row("a class that is ruled out", [[0.0, -INF, 0.0]], [np.array(0)], [-0.5, 0.0, 0.5])
        + _row("the label's class is ruled out", [[0.0, -INF]], [np.array(1)], [1.0, -1.0])
        + _row("an infinite logit", [[0.0, INF]], [np.array(1)], [NAN, NAN])
        + _row("a nan", [[0.0, NAN, 0.0]], [np.array(0)], [NAN, NAN, NAN])
        + _row("a nan in another row", [[[0.0, NAN], [0.0, 0.0]]], [np.array([0, 0])], [[NAN, NAN], [-0.5, 0.5]])
        + _row("all ignored: the mean is nan", [[[0.0, 1.0]]], [np.array([7])], [[0.0, 0.0]], ignore_index=7,
               reduction="mean")
        + _row("a distribution of sum 3", [[0.0, 0.0]], [np.array([1.0, 2.0])], [0.5, -0.5]),
    ),
    Pair(
        "focal",
        _elementwise(_scores, {}, {"alpha": -1}, {"alpha": 0.6, "gamma": 0.5}, {"gamma": 0}, {"gamma": 3.0}),
        kinks({(1000.0, 1.0): 0, (-1000.0, 0.0): 0, (1000.0, 0.0): 0.75, (-1000.0, 1.0): -0.25, (NAN, 1.0): NAN,
               (1.0, NAN): NAN}, reduction="none")
        + kinks({(1000.0, 1.0): 0, (0.0, 1.0): -0.5}, alpha=-1, gamma=0, reduction="none"),
    ),
    Pair(
        "hinge",
        _elementwise(_margins),
        kinks({(1.0, 1.0): 0, (-1.0, -1.0): 0, (0.0, 1.0): -1, (0.0, -1.0): 1, (INF, 1.0): 0, (-INF, 1.0): -1,
               (NAN, 1.0): NAN, (NAN, -1.0): NAN}, reduction="none"),
    ),
    Pair(
        "kl_divergence",
        _distributions,
        _row("p is 0", [[0.0, 1.0], [0.5, 0.5]], [], [0.0, 1 + math.log(2)], [0.0, -2.0])
        + _row("q is 0, p is not", [[0.5, 0.5], [0.0, 1.0]], [], [INF, 1 - math.log(2)], [-INF, -0.5])
        + _row("both are 0", [[0.0, 1.0], [0.0, 1.0]], [], [0.0, 1.0], [0.0, -1.0])
        + _row("a nan in p", [[NAN, 1.0], [0.5, 0.5]], [], [NAN, 1 + math.log(2)], [NAN, -2.0])
        + _row("a nan in q where p is 0", [[0.0, 1.0], [NAN, 0.5]], [], [NAN, 1 + math.log(2)], [NAN, -2.0]),
    ),
    Pair(
        "triplet_margin",
        _triplets,
        _row("the anchor is the positive", [[0.0, 0.0], [0.0, 0.0], [0.0, 0.5]], [], [0.0, 1.0], [0.0, 0.0],
             [0.0, -1.0], eps=0.0)
        + _row("on the margin", [[0.0], [1.0], [2.0]], [], [0.0], [1.0], [-1.0], eps=0.0)
        + _row("beyond the margin", [[0.0], [1.0], [3.0]], [], [0.0], [0.0], [0.0], eps=0.0)
        + _row("swap: equal distances", [[0.0], [2.0], [1.0]], [], [-0.5], [0.5], [0.0], eps=0.0, swap=True)
        + _row("p = inf: a tie", [[0.0, 0.0], [1.0, 1.0], [0.0, 0.5]], [], [-0.5, 0.5], [0.5, 0.5], [0.0, -1.0],
               eps=0.0, p=INF)
        + _row("a nan", [[0.0, NAN], [1.0, 1.0], [0.0, 0.5]], [], [NAN] * 2, [NAN] * 2, [NAN] * 2),
    ),
    Pair(
        "cosine_embedding",
        _embeddings,
        _row("zeros", [[0.0, 0.0], [0.0, 0.0]], [np.array(1)], [0.0, 0.0], [0.0, 0.0])
        + _row("on the margin", [[1.0, 0.0], [0.0, 1.0]], [np.array(-1)], [0.0, 1.0], [1.0, 0.0])
        + _row("below the margin", [[1.0, 0.0], [-1.0, 1.0]], [np.array(-1)], [0.0, 0.0], [0.0, 0.0])
        + _row("a nan, label -1", [[1.0, NAN], [0.0, 1.0]], [np.array(-1)], [NAN, NAN], [NAN, NAN])
        + _row("a nan, label 1", [[1.0, NAN], [0.0, 1.0]], [np.array(1)], [NAN, NAN], [NAN, NAN]),
    ),
]  # fmt: skip
