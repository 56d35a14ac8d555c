"""Activations and their gradients (tanh is in :mod:`.trigonometric`, softmax in :mod:`.softmax`).

At a kink the gradient is that of the flat or negative side; a nan in x is a nan in the gradient.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..checks import (
    Scalar,
    as_bool,
    as_floating,
    as_grad,
    as_number,
    as_tensor,
    check_needs,
    differentiable_input,
)
from ..dtypes import INTEGER
from ..graph import backward_of, differentiable
from ..kernels.reference import activation as kernels
from ..tensor import ExTensor, Shape
from ._pairs import BOTH, Needs
from ._unary import floating_unary, unary_backward, unary_backward_from_output
from .casting import cast_like
from .shape import reshape

__all__ = [
    "relu", "relu_backward", "leaky_relu", "leaky_relu_backward", "prelu", "prelu_backward", "PreluGradients",
    "sigmoid", "sigmoid_backward", "gelu", "gelu_backward", "silu", "silu_backward", "mish", "mish_backward",
    "elu", "elu_backward", "selu", "selu_backward", "softplus", "softplus_backward", "relu6", "relu6_backward",
    "hard_sigmoid", "hard_sigmoid_backward", "hard_swish", "hard_swish_backward", "hard_tanh", "hard_tanh_backward",
]  # fmt: skip


def _finite(function: str, name: str, value: Any) -> float:
    number = as_number(function, name, value)
    if not math.isfinite(number):
        raise ValueError(f"[{function}] {name} must be a finite number, got {number}")
    return number


@differentiable
def relu(x: ExTensor) -> ExTensor:
    """Rectified linear unit.   y = max(x, 0)

    Integers stay integers, and have no gradient.

    Example:
        >>> import extensor as et
        >>> et.relu(et.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    x = as_tensor("relu", "x", x)
    return kernels.relu(x if x.dtype in INTEGER else as_floating("relu", "x", x))


@backward_of(relu)
def relu_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`relu`; 0 at 0.   dx = dy * [x > 0]

    Example:
        >>> import extensor as et
        >>> et.relu_backward(et.ones(3), et.tensor([-1.0, 0.0, 2.0])).tolist()
        [0.0, 0.0, 1.0]
    """
    return unary_backward("relu_backward", kernels.relu_backward, grad_output, x)


@differentiable
def leaky_relu(x: ExTensor, alpha: float = 0.01) -> ExTensor:
    """Rectified linear unit with a slope below 0.   y = x where x > 0, else alpha * x

    Args:
        x: a floating tensor.
        alpha: the slope where x <= 0.

    Example:
        >>> import extensor as et
        >>> et.leaky_relu(et.tensor([-1.0, 2.0]), 0.5).tolist()
        [-0.5, 2.0]
    """
    return floating_unary("leaky_relu", kernels.leaky_relu, x, _finite("leaky_relu", "alpha", alpha))


@backward_of(leaky_relu)
def leaky_relu_backward(grad_output: ExTensor, x: ExTensor, alpha: float = 0.01) -> ExTensor:
    """Gradient of :func:`leaky_relu`; alpha at 0.   dx = dy where x > 0, else alpha * dy

    Args:
        grad_output: the gradient of the result.
        x: the input.
        alpha: the slope where x <= 0.

    Example:
        >>> import extensor as et
        >>> et.leaky_relu_backward(et.ones(3), et.tensor([-1.0, 0.0, 2.0]), 0.5).tolist()
        [0.5, 0.5, 1.0]
    """
    alpha = _finite("leaky_relu_backward", "alpha", alpha)
    return unary_backward("leaky_relu_backward", kernels.leaky_relu_backward, grad_output, x, alpha)


class PreluGradients(NamedTuple):
    """The gradients of :func:`prelu`; None where ``needs`` says that it is not wanted."""

    grad_x: ExTensor | None
    grad_alpha: ExTensor | None


def _slopes_shape(function: str, x: Shape, alpha: Shape) -> Shape:
    """The shape in which ``alpha`` broadcasts to x: a scalar, one number per channel (axis 1), or the shape of x."""
    if math.prod(alpha) == 1:
        return ()
    if alpha == x:
        return x
    if len(alpha) == 1 and len(x) >= 2 and alpha[0] == x[1]:
        return (1, alpha[0]) + (1,) * (len(x) - 2)
    raise ValueError(
        f"[{function}] alpha must be a scalar, have one element per channel (axis 1 of x) or the shape of x "
        f"(x: {x}, alpha: {alpha})"
    )


def _slopes(function: str, x: ExTensor, alpha: Any) -> ExTensor:
    """``alpha`` as a tensor that broadcasts to x."""
    if type(alpha) in Scalar:
        slope = np.asarray(_finite(function, "alpha", alpha))
        with np.errstate(over="ignore"):  # beyond the dtype is inf, as in any cast
            return ExTensor(slope.astype(x.dtype))
    found = as_floating(function, "alpha", alpha)
    return reshape(found, _slopes_shape(function, x.shape, found.shape))


@differentiable
def prelu(x: ExTensor, alpha: ExTensor) -> ExTensor:
    """Rectified linear unit with learned slopes below 0.   y = x where x > 0, else alpha * x

    Args:
        x: a floating tensor.
        alpha: the slopes: a scalar, one per channel (axis 1 of x), or a tensor of the shape of x.

    Example:
        >>> import extensor as et
        >>> et.prelu(et.tensor([[-1.0, -1.0]]), et.tensor([0.5, 0.25])).tolist()
        [[-0.5, -0.25]]
    """
    x = as_floating("prelu", "x", x)
    return kernels.prelu(x, _slopes("prelu", x, alpha))


@backward_of(prelu, wrt=("x", "alpha"))
def prelu_backward(
    grad_output: ExTensor, x: ExTensor, alpha: ExTensor, *, needs: Needs = BOTH
) -> PreluGradients:
    """Gradient of :func:`prelu`; the branch of x <= 0 at 0.   dx = dy * [x > 0] + alpha * dy * [x <= 0]

    ``dalpha = dy * x * [x <= 0]``, summed to the shape of ``alpha``.

    Args:
        grad_output: the gradient of the result.
        x: the input.
        alpha: the slopes: a scalar, one per channel (axis 1 of x), or a tensor of the shape of x.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> grad_x, grad_alpha = et.prelu_backward(et.ones(2), et.tensor([-3.0, 2.0]), et.tensor(0.5))
        >>> grad_x.tolist(), grad_alpha.item()
        ([0.5, 1.0], -3.0)
    """
    check_needs("prelu_backward", needs)
    x = differentiable_input("prelu_backward", "x", x)
    slopes = _slopes("prelu_backward", x, alpha)
    grad_x, grad_alpha = kernels.prelu_backward(
        as_grad("prelu_backward", grad_output, x.shape), x, slopes, needs
    )
    if grad_alpha is not None:
        grad_alpha = cast_like(reshape(grad_alpha, np.shape(alpha)), alpha)
    return PreluGradients(cast_like(grad_x, x), grad_alpha)


@differentiable
def sigmoid(x: ExTensor) -> ExTensor:
    """Logistic function, by the branch that cannot overflow.   y = 1 / (1 + exp(-x))

    Example:
        >>> import extensor as et
        >>> et.sigmoid(et.tensor([0.0, 1000.0, -1000.0])).tolist()
        [0.5, 1.0, 0.0]
    """
    return floating_unary("sigmoid", kernels.sigmoid, x)


@backward_of(sigmoid, from_output=True)
def sigmoid_backward(grad_output: ExTensor, output: ExTensor) -> ExTensor:
    """Gradient of :func:`sigmoid`, from its output.   dx = dy * y * (1 - y)

    Example:
        >>> import extensor as et
        >>> et.sigmoid_backward(et.ones(1), et.sigmoid(et.tensor([0.0]))).tolist()
        [0.25]
    """
    return unary_backward_from_output("sigmoid_backward", kernels.sigmoid_backward, grad_output, output)


@differentiable
def gelu(x: ExTensor, approximate: bool = False) -> ExTensor:
    """Gaussian error linear unit.   y = x * Phi(x) = x * (1 + erf(x / sqrt(2))) / 2

    Args:
        x: a floating tensor.
        approximate: the tanh form instead, x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x**3))) / 2.

    Example:
        >>> import extensor as et
        >>> et.gelu(et.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.    ,  0.8413], shape=(3,), dtype=float32)
    """
    return floating_unary("gelu", kernels.gelu, x, as_bool("gelu", "approximate", approximate))


@backward_of(gelu)
def gelu_backward(grad_output: ExTensor, x: ExTensor, approximate: bool = False) -> ExTensor:
    """Gradient of :func:`gelu`.   dx = dy * (Phi(x) + x * phi(x)),  phi(x) = exp(-x**2 / 2) / sqrt(2 pi)

    Args:
        grad_output: the gradient of the result.
        x: the input.
        approximate: the derivative of the tanh form instead.

    Example:
        >>> import extensor as et
        >>> et.gelu_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.5]
    """
    approximate = as_bool("gelu_backward", "approximate", approximate)
    return unary_backward("gelu_backward", kernels.gelu_backward, grad_output, x, approximate)


@differentiable
def silu(x: ExTensor) -> ExTensor:
    """Sigmoid linear unit, also called swish.   y = x * sigmoid(x)

    Example:
        >>> import extensor as et
        >>> et.silu(et.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2689,  0.    ,  0.7311], shape=(3,), dtype=float32)
    """
    return floating_unary("silu", kernels.silu, x)


@backward_of(silu)
def silu_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`silu`.   dx = dy * s * (1 + x * (1 - s)),  s = sigmoid(x)

    Example:
        >>> import extensor as et
        >>> et.silu_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.5]
    """
    return unary_backward("silu_backward", kernels.silu_backward, grad_output, x)


@differentiable
def mish(x: ExTensor) -> ExTensor:
    """Mish.   y = x * tanh(softplus(x))

    Example:
        >>> import extensor as et
        >>> et.mish(et.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.3034,  0.    ,  0.8651], shape=(3,), dtype=float32)
    """
    return floating_unary("mish", kernels.mish, x)


@backward_of(mish)
def mish_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`mish`.   dx = dy * (t + x * (1 - t**2) * sigmoid(x)),  t = tanh(softplus(x))

    Example:
        >>> import extensor as et
        >>> et.mish_backward(et.ones(1), et.tensor([0.0]))
        tensor([0.6], shape=(1,), dtype=float32)
    """
    return unary_backward("mish_backward", kernels.mish_backward, grad_output, x)


@differentiable
def elu(x: ExTensor, alpha: float = 1.0) -> ExTensor:
    """Exponential linear unit.   y = x where x > 0, else alpha * (e**x - 1)

    Args:
        x: a floating tensor.
        alpha: minus the value far below 0.

    Example:
        >>> import extensor as et
        >>> et.elu(et.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.    ], shape=(2,), dtype=float32)
    """
    return floating_unary("elu", kernels.elu, x, _finite("elu", "alpha", alpha))


@backward_of(elu)
def elu_backward(grad_output: ExTensor, x: ExTensor, alpha: float = 1.0) -> ExTensor:
    """Gradient of :func:`elu`; alpha at 0.   dx = dy where x > 0, else alpha * dy * e**x

    Args:
        grad_output: the gradient of the result.
        x: the input.
        alpha: minus the value far below 0.

    Example:
        >>> import extensor as et
        >>> et.elu_backward(et.ones(3), et.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3679, 1.    , 1.    ], shape=(3,), dtype=float32)
    """
    alpha = _finite("elu_backward", "alpha", alpha)
    return unary_backward("elu_backward", kernels.elu_backward, grad_output, x, alpha)


@differentiable
def selu(x: ExTensor) -> ExTensor:
    """Self-normalising exponential linear unit.   y = 1.0507... * elu(x, alpha=1.6732...)

    Example:
        >>> import extensor as et
        >>> et.selu(et.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014], shape=(2,), dtype=float32)
    """
    return floating_unary("selu", kernels.selu, x)


@backward_of(selu)
def selu_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`selu`; the branch of x <= 0 at 0.   dx = 1.0507... * elu_backward(dy, x, alpha=1.6732...)

    Example:
        >>> import extensor as et
        >>> et.selu_backward(et.ones(3), et.tensor([-1.0, 0.0, 2.0]))
        tensor([0.6468, 1.7581, 1.0507], shape=(3,), dtype=float32)
    """
    return unary_backward("selu_backward", kernels.selu_backward, grad_output, x)


def _softplus_options(function: str, beta: Any, threshold: Any) -> tuple[float, float]:
    beta = _finite(function, "beta", beta)
    if beta == 0:
        raise ValueError(f"[{function}] beta must not be 0")
    threshold = as_number(function, "threshold", threshold)
    if math.isnan(threshold):
        raise ValueError(f"[{function}] threshold must be a number, got nan")
    return beta, threshold


@differentiable
def softplus(x: ExTensor, beta: float = 1.0, threshold: float = 20.0) -> ExTensor:
    """Smooth rectified linear unit.   y = log(1 + exp(beta * x)) / beta

    Args:
        x: a floating tensor.
        beta: the sharpness of the bend.
        threshold: above ``beta * x > threshold`` the function is x itself.

    Example:
        >>> import extensor as et
        >>> et.softplus(et.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.    ], shape=(2,), dtype=float32)
    """
    return floating_unary("softplus", kernels.softplus, x, *_softplus_options("softplus", beta, threshold))


@backward_of(softplus)
def softplus_backward(
    grad_output: ExTensor, x: ExTensor, beta: float = 1.0, threshold: float = 20.0
) -> ExTensor:
    """Gradient of :func:`softplus`.   dx = dy * sigmoid(beta * x)

    Args:
        grad_output: the gradient of the result.
        x: the input.
        beta: the sharpness of the bend.
        threshold: above ``beta * x > threshold`` the gradient is ``dy`` itself.

    Example:
        >>> import extensor as et
        >>> et.softplus_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.5]
    """
    options = _softplus_options("softplus_backward", beta, threshold)
    return unary_backward("softplus_backward", kernels.softplus_backward, grad_output, x, *options)


@differentiable
def relu6(x: ExTensor) -> ExTensor:
    """Rectified linear unit that ends at 6.   y = min(max(x, 0), 6)

    Example:
        >>> import extensor as et
        >>> et.relu6(et.tensor([-1.0, 2.0, 7.0])).tolist()
        [0.0, 2.0, 6.0]
    """
    return floating_unary("relu6", kernels.relu6, x)


@backward_of(relu6)
def relu6_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`relu6`; 0 at 0 and at 6.   dx = dy * [0 < x < 6]

    Example:
        >>> import extensor as et
        >>> et.relu6_backward(et.ones(3), et.tensor([0.0, 2.0, 6.0])).tolist()
        [0.0, 1.0, 0.0]
    """
    return unary_backward("relu6_backward", kernels.relu6_backward, grad_output, x)


@differentiable
def hard_sigmoid(x: ExTensor) -> ExTensor:
    """Sigmoid in three straight pieces.   y = min(max(x + 3, 0), 6) / 6

    Example:
        >>> import extensor as et
        >>> et.hard_sigmoid(et.tensor([-4.0, 0.0, 4.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    return floating_unary("hard_sigmoid", kernels.hard_sigmoid, x)


@backward_of(hard_sigmoid)
def hard_sigmoid_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`hard_sigmoid`; 0 at -3 and at 3.   dx = dy / 6 * [-3 < x < 3]

    Example:
        >>> import extensor as et
        >>> et.hard_sigmoid_backward(et.full(3, 6.0), et.tensor([-3.0, 0.0, 4.0])).tolist()
        [0.0, 1.0, 0.0]
    """
    return unary_backward("hard_sigmoid_backward", kernels.hard_sigmoid_backward, grad_output, x)


@differentiable
def hard_swish(x: ExTensor) -> ExTensor:
    """Silu with the sigmoid in three straight pieces.   y = x * min(max(x + 3, 0), 6) / 6

    Example:
        >>> import extensor as et
        >>> et.hard_swish(et.tensor([-4.0, 1.5, 4.0])).tolist()
        [-0.0, 1.125, 4.0]
    """
    return floating_unary("hard_swish", kernels.hard_swish, x)


@backward_of(hard_swish)
def hard_swish_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`hard_swish`; 0 at -3, that of the straight piece at 3.

    dx = 0 where x <= -3, dy * (x / 3 + 1/2) between, dy where x >= 3

    Example:
        >>> import extensor as et
        >>> et.hard_swish_backward(et.ones(3), et.tensor([-3.0, 0.0, 3.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    return unary_backward("hard_swish_backward", kernels.hard_swish_backward, grad_output, x)


def _limits(function: str, min_val: Any, max_val: Any) -> tuple[float, float]:
    low, high = as_number(function, "min_val", min_val), as_number(function, "max_val", max_val)
    if not low <= high:
        raise ValueError(
            f"[{function}] min_val must not be greater than max_val (min_val: {low}, max_val: {high})"
        )
    return low, high


@differentiable
def hard_tanh(x: ExTensor, min_val: float = -1.0, max_val: float = 1.0) -> ExTensor:
    """Tanh in three straight pieces.   y = min(max(x, min_val), max_val)

    Args:
        x: a floating tensor.
        min_val: the lower bound.
        max_val: the upper bound.

    Example:
        >>> import extensor as et
        >>> et.hard_tanh(et.tensor([-2.0, 0.5, 2.0])).tolist()
        [-1.0, 0.5, 1.0]
    """
    return floating_unary("hard_tanh", kernels.hard_tanh, x, *_limits("hard_tanh", min_val, max_val))


@backward_of(hard_tanh)
def hard_tanh_backward(
    grad_output: ExTensor, x: ExTensor, min_val: float = -1.0, max_val: float = 1.0
) -> ExTensor:
    """Gradient of :func:`hard_tanh`; 0 at both bounds.   dx = dy * [min_val < x < max_val]

    Args:
        grad_output: the gradient of the result.
        x: the input.
        min_val: the lower bound.
        max_val: the upper bound.

    Example:
        >>> import extensor as et
        >>> et.hard_tanh_backward(et.ones(3), et.tensor([-1.0, 0.5, 2.0])).tolist()
        [0.0, 1.0, 0.0]
    """
    limits = _limits("hard_tanh_backward", min_val, max_val)
    return unary_backward("hard_tanh_backward", kernels.hard_tanh_backward, grad_output, x, *limits)
