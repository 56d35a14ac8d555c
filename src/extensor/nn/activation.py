"""A layer for each activation function, under PyTorch's names.

``inplace`` is accepted where PyTorch has it; tensors never change, so it has no effect.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import float32
from ..init import constant
from ..ops import activation as functions
from ..ops.softmax import log_softmax, softmax
from ..ops.trigonometric import tanh
from ..tensor import ExTensor
from ._settings import positive
from .module import Module
from .parameter import Parameter

__all__ = [
    "ELU", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU6",
    "SELU", "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh",
]  # fmt: skip


class ReLU(Module):
    """max(x, 0), see :func:`extensor.relu`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReLU()(et.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.relu(x)


class LeakyReLU(Module):
    """x above 0, ``negative_slope * x`` below, see :func:`extensor.leaky_relu`.

    Example:
        >>> import extensor as et
        >>> et.nn.LeakyReLU(0.5)(et.tensor([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class PReLU(Module):
    """x above 0, a learned slope times x below, see :func:`extensor.prelu`.

    Args:
        num_parameters: 1, or a slope for each channel (axis 1).
        init: where the slopes start.
        dtype: of the slopes.

    Example:
        >>> import extensor as et
        >>> et.nn.PReLU(init=0.5)(et.tensor([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = float32) -> None:
        self.num_parameters = positive("PReLU", "num_parameters", num_parameters)
        self.weight = Parameter(constant((self.num_parameters,), init, dtype=dtype))

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.prelu(x, self.weight if self.num_parameters > 1 else self.weight.reshape(()))

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Sigmoid(Module):
    """1 / (1 + exp(-x)), see :func:`extensor.sigmoid`.

    Example:
        >>> import extensor as et
        >>> et.nn.Sigmoid()(et.tensor([0.0])).tolist()
        [0.5]
    """

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent, see :func:`extensor.tanh`.

    Example:
        >>> import extensor as et
        >>> et.nn.Tanh()(et.tensor([0.0])).tolist()
        [0.0]
    """

    def forward(self, x: ExTensor) -> ExTensor:
        return tanh(x)


class Softmax(Module):
    """Probabilities along ``dim``, see :func:`extensor.softmax`.

    Example:
        >>> import extensor as et
        >>> et.nn.Softmax(dim=-1)(et.tensor([0.0, 0.0])).tolist()
        [0.5, 0.5]
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: ExTensor) -> ExTensor:
        return softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """Logarithms of probabilities along ``dim``, see :func:`extensor.log_softmax`.

    Example:
        >>> import extensor as et
        >>> et.nn.LogSoftmax(dim=-1)(et.tensor([3.0])).tolist()
        [0.0]
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: ExTensor) -> ExTensor:
        return log_softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """x times the normal distribution function of x, see :func:`extensor.gelu`.

    Args:
        approximate: ``"none"``: exact, or ``"tanh"``.

    Example:
        >>> import extensor as et
        >>> et.nn.GELU()(et.tensor([0.0])).tolist()
        [0.0]
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"[GELU] approximate must be 'none' or 'tanh', got {approximate!r}")
        self.approximate = approximate

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.gelu(x, self.approximate == "tanh")

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """x * sigmoid(x), see :func:`extensor.silu`.

    Example:
        >>> import extensor as et
        >>> et.nn.SiLU()(et.tensor([0.0])).tolist()
        [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.silu(x)


class Mish(Module):
    """x * tanh(softplus(x)), see :func:`extensor.mish`.

    Example:
        >>> import extensor as et
        >>> et.nn.Mish()(et.tensor([0.0])).tolist()
        [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.mish(x)


class ELU(Module):
    """x above 0, ``alpha * (exp(x) - 1)`` below, see :func:`extensor.elu`.

    Example:
        >>> import extensor as et
        >>> et.nn.ELU()(et.tensor([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class SELU(Module):
    """The self-normalising unit, see :func:`extensor.selu`.

    Example:
        >>> import extensor as et
        >>> et.nn.SELU()(et.tensor([0.0])).tolist()
        [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.selu(x)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where ``beta * x`` is above ``threshold``. See :func:`extensor.softplus`.

    Example:
        >>> import extensor as et
        >>> et.nn.Softplus()(et.tensor([30.0])).tolist()
        [30.0]
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class ReLU6(Module):
    """min(max(x, 0), 6), see :func:`extensor.relu6`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReLU6()(et.tensor([-1.0, 8.0])).tolist()
        [0.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.relu6(x)


class Hardsigmoid(Module):
    """Three straight pieces instead of a sigmoid, see :func:`extensor.hard_sigmoid`.

    Example:
        >>> import extensor as et
        >>> et.nn.Hardsigmoid()(et.tensor([-3.0, 0.0, 3.0])).tolist()
        [0.0, 0.5, 1.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.hard_sigmoid(x)


class Hardswish(Module):
    """x * hard_sigmoid(x), see :func:`extensor.hard_swish`.

    Example:
        >>> import extensor as et
        >>> et.nn.Hardswish()(et.tensor([0.0, 3.0])).tolist()
        [0.0, 3.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.hard_swish(x)


class Hardtanh(Module):
    """x held between ``min_val`` and ``max_val``, see :func:`extensor.hard_tanh`.

    Example:
        >>> import extensor as et
        >>> et.nn.Hardtanh()(et.tensor([-3.0, 0.5])).tolist()
        [-1.0, 0.5]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: ExTensor) -> ExTensor:
        return functions.hard_tanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"
