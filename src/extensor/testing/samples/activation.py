"""Sample inputs and edges of the activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..registry import NONZERO, SHAPES, Case, Domain, Draw, Pair, at, kinks, unary

INF, NAN = float("inf"), float("nan")

_BENDS = Domain(-5.0, 5.0, avoid=(-3.0, 3.0))
_SELU_AT_ZERO = 1.0507009873554805 * 1.6732632423543772


def _each(*samples: Callable[[Draw], Iterator[Case]]) -> Callable[[Draw], Iterator[Case]]:
    """The cases of several settings of the options, one after the other."""
    return lambda draw: (case for cases in samples for case in cases(draw))


def _prelu(draw: Draw) -> Iterator[Case]:
    """Slopes as a scalar, one element, per channel, and in full."""
    for shape in SHAPES:
        yield Case(draw.values(shape, NONZERO), draw.values(()))
        yield Case(draw.values(shape, NONZERO), draw.values(shape))
    for shape in ((4, 3), (2, 3, 5), (2, 3, 2, 2), (0, 3, 2)):
        yield Case(draw.values(shape, NONZERO), draw.values(3))
    yield Case(draw.strided((3, 5), NONZERO), draw.values(1))


PAIRS = [
    Pair("relu", unary(NONZERO), kinks({0.0: 0.0, INF: 1.0, -INF: 0.0, NAN: NAN}) + kinks({-0.0: 0.0})),
    Pair("leaky_relu", _each(unary(NONZERO), unary(NONZERO, alpha=-0.5)), kinks({0.0: 0.01, INF: 1.0, -INF: 0.01, NAN: NAN}) + kinks({-0.0: 0.01})),
    Pair("prelu", _prelu, kinks({(0.0, 0.25): (0.25, 0.0), (-INF, 0.25): (0.25, -INF), (INF, 0.25): (1.0, 0.0), (NAN, 0.25): (NAN, NAN), (2.0, NAN): (1.0, 0.0)})),
    Pair("sigmoid", _each(unary(), unary(Domain(-30.0, 30.0))), kinks({0.0: 0.25, 1000.0: 0.0, -1000.0: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN})),
    Pair("gelu", _each(unary(), unary(approximate=True)), kinks({0.0: 0.5, 1000.0: 1.0, -1000.0: 0.0, NAN: NAN}) + kinks({0.0: 0.5, 1000.0: 1.0, -1000.0: 0.0, NAN: NAN}, approximate=True) + at(INF, -INF)),
    Pair("silu", unary(), kinks({0.0: 0.5, 1000.0: 1.0, -1000.0: 0.0, NAN: NAN}) + at(INF, -INF)),
    Pair("mish", unary(), kinks({0.0: 0.6, 1000.0: 1.0, -1000.0: 0.0, NAN: NAN}) + at(INF, -INF)),
    Pair("elu", _each(unary(NONZERO), unary(NONZERO, alpha=0.5)), kinks({0.0: 0.5, 1000.0: 1.0, -1000.0: 0.0, INF: 1.0, -INF: 0.0, NAN: NAN}, alpha=0.5) + kinks({-0.0: 0.5}, alpha=0.5)),
    Pair("selu", unary(NONZERO), kinks({0.0: _SELU_AT_ZERO, -INF: 0.0, NAN: NAN}) + kinks({-0.0: _SELU_AT_ZERO}) + at(INF)),
    Pair("softplus", _each(unary(), unary(beta=2.0), unary(beta=-2.0, threshold=50.0)), kinks({0.0: 0.5, 20.5: 1.0, 1000.0: 1.0, -1000.0: 0.0, INF: 1.0, -INF: 0.0, NAN: NAN})),
    Pair("relu6", unary(Domain(-2.0, 8.0, avoid=(0.0, 6.0))), kinks({0.0: 0.0, 6.0: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN}) + kinks({-0.0: 0.0})),
    Pair("hard_sigmoid", unary(_BENDS), kinks({-3.0: 0.0, 3.0: 0.0, 0.0: 1 / 6, INF: 0.0, -INF: 0.0, NAN: NAN})),
    Pair("hard_swish", unary(_BENDS), kinks({-3.0: 0.0, 3.0: 1.0, 0.0: 0.5, INF: 1.0, -INF: 0.0, NAN: NAN})),
    Pair("hard_tanh", _each(unary(Domain(avoid=(-1.0, 1.0))), unary(Domain(avoid=(-2.0, 0.5)), min_val=-2.0, max_val=0.5)), kinks({-1.0: 0.0, 1.0: 0.0, 0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN})),
]  # fmt: skip
