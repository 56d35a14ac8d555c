"""Gradients of functions with a complex derivative, from those of real numbers."""

from __future__ import annotations

import functools

from ..namespace import xp

__all__ = ["holomorphic"]


def holomorphic(backward):
    """A backward ``g * f'(x)`` of real numbers; of complex ones it is ``g * conj(f'(x)) = conj(conj(g) * f'(x))``."""

    @functools.wraps(backward)
    def conjugated(g, *rest):
        if g.dtype.kind != "c" and not any(getattr(v, "dtype", g.dtype).kind == "c" for v in rest):
            return backward(g, *rest)
        found = backward(g.conj(), *rest)
        return (
            tuple(None if v is None else xp.conj(v) for v in found)
            if isinstance(found, tuple)
            else xp.conj(found)
        )

    return conjugated
