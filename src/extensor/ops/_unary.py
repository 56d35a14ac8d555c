"""Calling the kernels of functions of one tensor, forward and backward, with errors that name the function."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..checks import as_floating, as_grad, as_tensor, differentiable_input
from ..dtypes import FLOATING, float32
from ..kernels import Kernel
from ..tensor import ExTensor
from .casting import cast_like


def unary(function: str, kernel: Kernel, x: Any) -> ExTensor:
    """``kernel(x)`` for a function whose results are floating; integers and booleans become float32."""
    x = as_tensor(function, "x", x)
    return kernel_of(function, kernel, x if x.dtype in FLOATING else kernels.astype(x, float32))


def kernel_of(function: str, kernel: Kernel, x: ExTensor) -> ExTensor:
    """``kernel(x)`` in the dtype of ``x``, with an error that names the function where there is none."""
    try:
        return kernel(x)
    except TypeError:
        raise TypeError(
            f"[{function}] is not defined for {x.dtype}; use x.astype(extensor.float32)"
        ) from None


def floating_unary(function: str, kernel: Kernel, x: Any, *attributes: Any) -> ExTensor:
    """``kernel(x, *attributes)`` for a function of floating tensors only."""
    return kernel(as_floating(function, "x", x), *attributes)


def unary_backward(function: str, kernel: Kernel, grad_output: Any, x: Any, *attributes: Any) -> ExTensor:
    """``kernel(grad_output, x, *attributes)`` for a backward that takes the forward's input."""
    return _backward(function, kernel, grad_output, differentiable_input(function, "x", x), attributes)


def unary_backward_from_output(
    function: str, kernel: Kernel, grad_output: Any, output: Any, *attributes: Any
) -> ExTensor:
    """``kernel(grad_output, output, *attributes)`` for a backward that takes the forward's output."""
    return _backward(
        function, kernel, grad_output, differentiable_input(function, "output", output), attributes
    )


def _backward(
    function: str, kernel: Kernel, grad_output: Any, saved: ExTensor, attributes: tuple[Any, ...]
) -> ExTensor:
    grad: ExTensor = kernel(as_grad(function, grad_output, saved.shape), saved, *attributes)
    return cast_like(grad, saved)
