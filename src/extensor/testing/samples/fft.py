"""Sample inputs and edges of Fourier transforms and of the parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import NONZERO, REAL, Case, Domain, Draw, Pair, ties

NAN = float("nan")
Shapes = tuple[tuple[int, ...], ...]
LINES: Shapes = ((1,), (2,), (5,), (2, 4), (0, 3))
PLANES: Shapes = ((1, 1), (2, 3), (3, 2, 2))


def _complex(draw: Draw, shape: tuple[int, ...], domain: Domain = REAL) -> np.ndarray:
    return draw.values(shape, domain) + 1j * draw.values(shape, domain)


def _real(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return draw.values(shape)


def _cases(
    make: Callable[[Draw, tuple[int, ...]], np.ndarray], shapes: Shapes, *options: dict[str, Any]
) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape in shapes:
            yield Case(make(draw, shape))
        for other in options:
            yield Case(make(draw, (3, 4)), **other)

    return cases


def _parts(draw: Draw) -> Iterator[Case]:
    for shape in ((), (0,), (1,), (7,), (2, 3)):
        yield Case(_complex(draw, shape, NONZERO))


def _both(draw: Draw) -> Iterator[Case]:
    yield from _parts(draw)
    yield Case(draw.values((2, 3)))


_LINE = ({"n": 2}, {"n": 6, "axis": 0}, {"axis": 0, "norm": "ortho"}, {"norm": "forward"})
_HALF = ({"n": 3}, {"n": 7}, {"n": 4, "axis": 0}, {"norm": "ortho"}, {"norm": "forward"})
_PLANE = ({"s": (2, 5)}, {"axes": (1, 0)}, {"s": (3,), "axes": (0,)}, {"norm": "ortho"}, {"norm": "forward"})


def _eigen(draw: Draw) -> Iterator[Case]:
    for shape in ((1, 1), (2, 2), (2, 3, 3)):
        yield Case(draw.values(shape, Domain(-0.3, 0.3)) + np.diag(1.0 + 0.8 * np.arange(shape[-1])))


def _nan(*expect: Any, z: Any = (NAN, 1.0)) -> Any:
    return ties("nan", Case(np.array(z)), *expect)


_SPOILT = _nan([1.0 + 1.0, 0.0])  # the gradient of a linear function does not depend on its input
_PAIR = [[NAN, 1.0]]

PAIRS = [
    Pair("fft.fft", _cases(_complex, LINES, *_LINE), _SPOILT),
    Pair("fft.ifft", _cases(_complex, LINES, *_LINE), _nan([1.0, 0.0])),
    Pair("fft.rfft", _cases(_real, LINES, *_LINE), _SPOILT),
    Pair("fft.irfft", _cases(_complex, ((2,), (5,), (2, 4), (0, 3)), *_HALF), _nan([1.0, 0.0])),
    Pair("fft.hfft", _cases(_complex, ((2,), (5,), (2, 4), (0, 3)), *_HALF), _nan([2.0, 0.0])),
    Pair("fft.ihfft", _cases(_real, LINES, *_LINE), _nan([1.0, 0.0])),
    Pair("fft.fft2", _cases(_complex, PLANES, *_PLANE), _nan([[2.0, 0.0]], z=_PAIR)),
    Pair("fft.ifft2", _cases(_complex, PLANES, *_PLANE), _nan([[1.0, 0.0]], z=_PAIR)),
    Pair("fft.fftn", _cases(_complex, PLANES, *_PLANE), _nan([[2.0, 0.0]], z=_PAIR)),
    Pair("fft.ifftn", _cases(_complex, PLANES, *_PLANE), _nan([[1.0, 0.0]], z=_PAIR)),
    Pair("fft.rfftn", _cases(_real, PLANES, *_PLANE), _nan([[2.0, 0.0]], z=_PAIR)),
    Pair("fft.irfftn", _cases(_complex, ((1, 2), (2, 3), (3, 2, 3)), *_PLANE), _nan([[1.0, 0.0]], z=_PAIR)),
    Pair("fft.fftshift", _cases(_real, LINES, {"axes": 0}, {"axes": (0, 1)}), _nan([1.0, 1.0])),
    Pair("fft.ifftshift", _cases(_real, LINES, {"axes": 0}, {"axes": (0, 1)}), _nan([1.0, 1.0])),
    Pair("conj", _both, ties("nan", Case(np.array([NAN + 1j])), [1.0 + 0.0j])),
    Pair("real", _both, ties("nan", Case(np.array([NAN + 1j])), [1.0 + 0.0j])),
    Pair("imag", _parts, ties("nan", Case(np.array([NAN + 1j])), [1.0j])),
    Pair("angle", _both, ties("0", Case(np.array([0j])), [0j]) + ties("nan", Case(np.array([NAN + 1j])))),
    Pair("linalg.eig", _eigen, ties("nan", Case(np.full((1, 1), NAN)), [[NAN]])),
    Pair("linalg.eigvals", _eigen, ties("equal eigenvalues", Case(np.eye(2)), [[1.0, 0.0], [0.0, 1.0]]) + ties("nan", Case(np.full((1, 1), NAN)), [[NAN]])),
]  # fmt: skip
