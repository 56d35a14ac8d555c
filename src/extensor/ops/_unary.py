"""Calling the kernels of functions of one tensor, forward and backward, with errors that name the function."""

from __future__ import annotations

from typing import Any

from ..checks import as_floating, as_grad, as_tensor, differentiable_input
from ..kernels import Kernel
from ..tensor import ExTensor
from .casting import cast_like


def unary(function: str, kernel: Kernel, x: Any) -> ExTensor:
    """``kernel(x)``; integers become floating numbers where NumPy makes them so."""
    x = as_tensor(function, "x", x)
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
