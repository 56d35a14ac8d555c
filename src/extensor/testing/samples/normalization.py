"""Sample inputs and edges of the normalisations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..registry import POSITIVE, Case, Draw, Pair, ties

NAN, INF = float("nan"), float("inf")


def _over_last(bias: bool) -> Callable[[Draw], Iterator[Case]]:
    """Cases of layer_norm (with a bias) and rms_norm."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape, normalized in (
            ((5,), (5,)), ((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((0, 4), (4,)), ((2, 0), (0,)), ((2, 1, 17), (17,)),
        ):  # fmt: skip
            affine = [draw.values(normalized), draw.values(normalized)][: 2 if bias else 1]
            yield Case(draw.values(shape), normalized, *affine)
        yield Case(draw.values((2, 5)), 5)
        yield Case(draw.values((2, 5)), 5, draw.values(5), eps=0.5)

    return cases


def _group(draw: Draw) -> Iterator[Case]:
    for shape, groups in (((2, 4), 2), ((1, 6, 3), 3), ((2, 4, 2, 2), 1), ((0, 4, 2), 2), ((2, 3, 3), 3)):
        yield Case(draw.values(shape), groups, draw.values(shape[1]), draw.values(shape[1]))
    yield Case(draw.values((2, 4, 3)), 2)
    yield Case(draw.values((2, 4, 3)), 2, draw.values(4), eps=0.5)


def _instance(draw: Draw) -> Iterator[Case]:
    for shape in ((2, 3, 4), (1, 2, 3, 2), (0, 2, 3)):
        yield Case(draw.values(shape), draw.values(shape[1]), draw.values(shape[1]))
    yield Case(draw.values((2, 2, 3)))
    yield Case(draw.values((2, 2, 3)), draw.values(2), eps=0.5)


def _batch(draw: Draw) -> Iterator[Case]:
    for shape in ((4, 3), (3, 2, 2), (2, 3, 2, 2)):
        n = shape[1]
        for training in (True, False):
            affine = draw.values(n), draw.values(n)
            yield Case(draw.values(shape), *affine, draw.values(n), draw.values(n, POSITIVE), training)
    yield Case(draw.values((5, 2)), None, None, None, None, True)
    yield Case(
        draw.values((5, 2)),
        draw.values(2),
        None,
        draw.values(2),
        draw.values(2, POSITIVE),
        True,
        momentum=0.7,
        eps=0.5,
    )
    yield Case(draw.values((0, 2)), None, None, draw.values(2), draw.values(2, POSITIVE), False)


_ROW = np.array([[1.0, 3.0]])
_FLAT = np.array([[2.0, 2.0]])

PAIRS = [
    Pair(
        "layer_norm", _over_last(True),
        ties("a constant row, eps=1", Case(_FLAT, 2, np.array([1.0, 2.0]), eps=1.0), [[-0.5, 0.5]], [0.0, 0.0], None)
        + ties("a nan makes its row nan", Case(np.array([[NAN, 1.0]]), 2), [[NAN, NAN]], None, None)
        + ties("so does an infinity", Case(np.array([[INF, 1.0]]), 2), [[NAN, NAN]], None, None),
    ),
    Pair(
        "rms_norm", _over_last(False),
        ties("a row of zeros, eps=1", Case(np.zeros((1, 2)), 2, np.array([1.0, 2.0]), eps=1.0), [[1.0, 2.0]], [0.0, 0.0])
        + ties("a nan makes its row nan", Case(np.array([[NAN, 1.0]]), 2), [[NAN, NAN]], None),
    ),
    Pair(
        "group_norm", _group,
        ties("groups of one element, eps=1", Case(_ROW, 2, eps=1.0), [[0.0, 0.0]], None, None)
        + ties("a nan stays in its group", Case(np.array([[NAN, 1.0, 2.0, 2.0]]), 2, eps=1.0), [[NAN, NAN, 0.0, 0.0]], None, None),
    ),
    Pair("instance_norm", _instance, ties("a constant channel, eps=1", Case(np.ones((1, 1, 3)), eps=1.0), np.zeros((1, 1, 3)), None, None) + ties("a nan stays in its channel", Case(np.array([[[NAN, 1.0], [2.0, 2.0]]]), eps=1.0), [[[NAN, NAN], [0.0, 0.0]]], None, None)),
    Pair(
        "batch_norm", _batch,
        ties("a constant channel, eps=1, no statistics kept", Case(_FLAT.T, None, None, None, None, True, eps=1.0), np.zeros((2, 1)), None, None)
        + ties("running variance 0, eps=1", Case(_ROW, None, None, np.zeros(2), np.zeros(2), False, eps=1.0), np.ones((1, 2)), None, None)
        + ties("a nan makes its channel nan", Case(np.array([[NAN, 1.0], [1.0, 1.0]]), None, None, None, None, True, eps=1.0), [[NAN, 0.0], [NAN, 0.0]], None, None),
    ),
]  # fmt: skip
