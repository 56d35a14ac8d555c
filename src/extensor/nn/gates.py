"""Layers of the activations that are used now and then, and gated units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops import activation as common
from ..ops import shrinking as functions
from ..ops.joining import split
from ..ops.softmax import softmax
from ..tensor import ExTensor
from .module import Module

__all__ = [
    "CELU", "GEGLU", "GLU", "Hardshrink", "LogSigmoid", "ReGLU", "Softmax2d", "Softmin", "Softshrink", "Softsign", "SwiGLU",
    "Tanhshrink", "Threshold",
]  # fmt: skip


class CELU(Module):
    """alpha * (exp(x / alpha) - 1) below 0, x above, see :func:`extensor.celu`.

    Example:
        >>> import extensor as et
        >>> et.nn.CELU()(et.tensor([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.celu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class Hardshrink(Module):
    r"""x, or 0 where \|x\| <= lambd, see :func:`extensor.hard_shrink`.

    Example:
        >>> import extensor as et
        >>> et.nn.Hardshrink()(et.tensor([0.5, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.hard_shrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"lambd={self.lambd}"


class Softshrink(Module):
    """x, closer to 0 by lambd, see :func:`extensor.soft_shrink`.

    Example:
        >>> import extensor as et
        >>> et.nn.Softshrink()(et.tensor([0.25, 2.0])).tolist()
        [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.soft_shrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"lambd={self.lambd}"


class LogSigmoid(Module):
    """log(sigmoid(x)), see :func:`extensor.log_sigmoid`.

    Example:
        >>> import extensor as et
        >>> et.nn.LogSigmoid()(et.tensor([-1000.0])).tolist()
        [-1000.0]
    """

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.log_sigmoid(x)


class Softsign(Module):
    r"""x / (1 + \|x\|), see :func:`extensor.softsign`.

    Example:
        >>> import extensor as et
        >>> et.nn.Softsign()(et.tensor([1.0])).tolist()
        [0.5]
    """

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.softsign(x)


class Tanhshrink(Module):
    """x - tanh(x), see :func:`extensor.tanh_shrink`.

    Example:
        >>> import extensor as et
        >>> et.nn.Tanhshrink()(et.tensor([100.0])).tolist()
        [99.0]
    """

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.tanh_shrink(x)


class Threshold(Module):
    """x above a threshold, a constant below, see :func:`extensor.threshold`.

    Example:
        >>> import extensor as et
        >>> et.nn.Threshold(1.0, 7.0)(et.tensor([0.5, 2.0])).tolist()
        [7.0, 2.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold, self.value = threshold, value

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.threshold(x, self.threshold, self.value)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"


class GLU(Module):
    """The first half of an axis, gated by the second, see :func:`extensor.glu`.

    Example:
        >>> import extensor as et
        >>> et.nn.GLU()(et.tensor([2.0, 0.0])).tolist()
        [1.0]
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.glu(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Module):
    """softmax(-x).

    Example:
        >>> import extensor as et
        >>> et.nn.Softmin(0)(et.tensor([0.0, 0.0])).tolist()
        [0.5, 0.5]
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: ExTensor) -> ExTensor:
        return softmax(-x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """softmax over the channels of images (N, C, H, W) or (C, H, W).

    Example:
        >>> import extensor as et
        >>> et.nn.Softmax2d()(et.zeros((1, 2, 1, 1))).tolist()
        [[[[0.5]], [[0.5]]]]
    """

    def forward(self, x: ExTensor) -> ExTensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"[Softmax2d] x must have 3 or 4 axes, got shape {x.shape}")
        return softmax(x, -3)


class _Gated(Module):
    """Half of an axis times an activation of the other."""

    _gate: Callable[..., ExTensor]

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: ExTensor) -> ExTensor:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] % 2:
            raise ValueError(
                f"[{type(self).__name__}] axis {self.dim} of x must have an even length, got shape {x.shape}"
            )
        a, b = split(x, 2, self.dim)
        gate: Any = type(self)._gate
        return a * gate(b)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class SwiGLU(_Gated):
    """a * silu(b), a and b the halves of an axis (Shazeer, 2020).

    Example:
        >>> import extensor as et
        >>> et.nn.SwiGLU()(et.tensor([2.0, 0.0])).tolist()
        [0.0]
    """

    _gate = staticmethod(common.silu)


class GEGLU(_Gated):
    """a * gelu(b), a and b the halves of an axis (Shazeer, 2020).

    Example:
        >>> import extensor as et
        >>> et.nn.GEGLU()(et.tensor([2.0, 0.0])).tolist()
        [0.0]
    """

    _gate = staticmethod(common.gelu)


class ReGLU(_Gated):
    """a * relu(b), a and b the halves of an axis (Shazeer, 2020).

    Example:
        >>> import extensor as et
        >>> et.nn.ReGLU()(et.tensor([2.0, 0.0])).tolist()
        [0.0]
    """

    _gate = staticmethod(common.relu)
