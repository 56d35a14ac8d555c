"""Sample inputs and edges of the losses with margins and of the likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..registry import POSITIVE, Case, Domain, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
REDUCTIONS = ("mean", "sum", "none")
_MARGIN = Domain(avoid=(1.0, 0.7), margin=0.1)


def _signs(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return draw.integers(0, 2, shape) * 2 - 1


def _sided(domain: Domain, **options: float) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for reduction in REDUCTIONS:
            for shape in ((4,), (2, 3), ()):
                yield Case(draw.values(shape, domain), _signs(draw, shape), **options, reduction=reduction)

    return cases


def _ranking(draw: Draw) -> Iterator[Case]:
    """Differences are away from the margin, where the slope jumps."""
    for reduction in REDUCTIONS:
        for shape in ((5,), (2, 3)):
            a, t = draw.values(shape), _signs(draw, shape)
            gap = draw.values(shape, Domain(avoid=(0.3, -0.3), margin=0.1))
            yield Case(a, a - gap, t, margin=0.3, reduction=reduction)


def _classes(draw: Draw) -> Iterator[Case]:
    """Scores on the multiples of 0.4 and a margin between them."""
    for reduction in REDUCTIONS:
        x = 0.4 * np.round(draw.values((4, 3)) / 0.4)
        yield Case(x, draw.integers(0, 3, (4,)), margin=1.0, reduction=reduction)
        yield Case(
            x,
            draw.integers(0, 3, (4,)),
            p=2,
            margin=0.6,
            weight=np.array([0.5, 1.0, 2.0], np.float32),
            reduction=reduction,
        )
    yield Case(0.4 * np.round(draw.values((3,)) / 0.4), np.array(1))


def _lists(draw: Draw) -> Iterator[Case]:
    lists = np.array([[2, 0, -1, 1], [-1, 1, 2, 3], [3, 2, 1, 0]])
    for reduction in REDUCTIONS:
        yield Case(0.4 * np.round(draw.values((3, 4)) / 0.4), lists, reduction=reduction)
    yield Case(0.4 * np.round(draw.values((4,)) / 0.4), lists[0])


def _multilabel(draw: Draw) -> Iterator[Case]:
    for reduction in REDUCTIONS:
        labels = draw.integers(0, 2, (3, 4)).astype(np.float32)
        yield Case(draw.values((3, 4)), labels, reduction=reduction)
        yield Case(
            draw.values((3, 4)), labels, np.array([0.5, 1.0, 2.0, 3.0], np.float32), reduction=reduction
        )


def _nll(draw: Draw) -> Iterator[Case]:
    for reduction in REDUCTIONS:
        yield Case(draw.values((4, 3)), draw.integers(0, 3, (4,)), reduction=reduction)
        yield Case(
            draw.values((2, 3, 2)),
            draw.integers(0, 3, (2, 2)),
            axis=1,
            weight=np.array([0.5, 1.0, 2.0], np.float32),
            reduction=reduction,
        )
        yield Case(draw.values((4, 3)), np.array([0, 2, 1, 1]), ignore_index=2, reduction=reduction)
    yield Case(draw.values((3,)), np.array(1))


def _gaussian(draw: Draw) -> Iterator[Case]:
    for reduction in REDUCTIONS:
        for shape in ((5,), (2, 3), ()):
            yield Case(
                draw.values(shape), draw.values(shape), draw.values(shape, POSITIVE), reduction=reduction
            )
    yield Case(draw.values((2, 3)), draw.values((2, 3)), draw.values((2, 3), POSITIVE), full=True)


def _poisson(draw: Draw) -> Iterator[Case]:
    for reduction in REDUCTIONS:
        counts = draw.integers(0, 5, (2, 3)).astype(np.float32)
        yield Case(draw.values((2, 3)), counts, reduction=reduction)
        yield Case(draw.values((2, 3), POSITIVE), counts, log_input=False, full=True, reduction=reduction)


def _ctc(draw: Draw) -> Iterator[Case]:
    labels = np.array([[1, 2, 2], [3, 1, 3]])
    for reduction in REDUCTIONS:
        yield Case(
            draw.values((6, 2, 4), Domain(-3.0, -0.1)),
            labels,
            np.array([6, 5]),
            np.array([3, 2]),
            reduction=reduction,
        )
    yield Case(
        draw.values((4, 2, 4), Domain(-3.0, -0.1)),
        np.array([1, 2, 3]),
        np.array([4, 3]),
        np.array([2, 1]),
        blank=0,
    )
    yield Case(
        draw.values((4, 3), Domain(-3.0, -0.1)), np.array([0, 1]), np.array([4]), np.array([2]), blank=2
    )


_LABEL = np.array([1])

PAIRS = [
    Pair("soft_margin", _sided(Domain()), ties("far on the right side, at 0, far on the wrong one", Case(np.array([1000.0, 0.0, -1000.0]), np.array([1, 1, 1]), reduction="none"), [0.0, -0.5, -1.0]) + ties("nan", Case(np.array([NAN]), _LABEL), [NAN])),
    Pair("hinge_embedding", _sided(_MARGIN, margin=0.7), ties("at the margin", Case(np.array([1.0, 1.0]), np.array([1, -1]), reduction="none"), [1.0, 0.0]) + ties("nan", Case(np.array([NAN]), np.array([-1]), reduction="none"), [NAN])),
    Pair("margin_ranking", _ranking, ties("at the margin", Case(np.array([1.0]), np.array([1.0]), _LABEL), [0.0], [0.0]) + ties("nan", Case(np.array([NAN]), np.array([1.0]), _LABEL), [NAN], [NAN])),
    Pair("multi_margin", _classes, ties("at the margin", Case(np.array([[1.0, 2.0]]), _LABEL), [[0.0, 0.0]]) + ties("nan", Case(np.array([[NAN, 2.0]]), _LABEL), [[NAN, NAN]])),
    Pair("multilabel_margin", _lists, ties("no label", Case(np.array([[1.0, 2.0]]), np.array([[-1, 0]])), [[0.0, 0.0]]) + ties("nan", Case(np.array([[NAN, 2.0]]), np.array([[1, -1]])), [[NAN, NAN]])),
    Pair("multilabel_soft_margin", _multilabel, ties("far on the right side and on the wrong one", Case(np.array([[1000.0, -1000.0]]), np.array([[1.0, 1.0]], np.float32)), [[0.0, -0.5]]) + ties("nan", Case(np.array([[NAN, 0.0]]), np.array([[1.0, 1.0]], np.float32)), [[NAN, -0.25]])),
    Pair("nll", _nll, ties("all are ignored", Case(np.array([[-1.0, -2.0]]), _LABEL, ignore_index=1, reduction="sum"), [[0.0, 0.0]]) + ties("-inf", Case(np.array([[-INF, -INF]]), _LABEL), [[0.0, -1.0]]) + ties("nan", Case(np.array([[NAN, NAN]]), _LABEL), [[0.0, -1.0]])),
    Pair("gaussian_nll", _gaussian, ties("no variance", Case(np.array([1.0]), np.array([1.0]), np.array([0.0])), [0.0], [-0.0], [0.0]) + ties("nan", Case(np.array([NAN]), np.array([1.0]), np.array([1.0])), [NAN], [NAN], [NAN])),
    Pair("poisson_nll", _poisson, ties("a count of 0", Case(np.array([0.0]), np.array([0.0], np.float32)), [1.0]) + ties("nan", Case(np.array([NAN]), np.array([1.0], np.float32)), [NAN])),
    Pair("ctc", _ctc, ties("one way alone", Case(np.array([[[-1.0, -2.0]]]), np.array([[1]]), np.array([1]), np.array([1])), [[[0.0, -1.0]]]) + ties("nan", Case(np.array([[[NAN, NAN]]]), np.array([[1]]), np.array([1]), np.array([1])), [[[NAN, NAN]]])),
]  # fmt: skip
