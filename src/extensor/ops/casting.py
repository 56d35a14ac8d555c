"""Changing the dtype."""

from __future__ import annotations

from typing import Any, overload

from .. import kernels
from ..checks import as_floating, as_tensor, dtype_of, takes_complex
from ..dtypes import FLOATING, as_dtype, promote
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, TensorOrDtype

__all__ = ["astype", "astype_backward"]


@differentiable
@takes_complex
def astype(x: ExTensor, dtype: Any) -> ExTensor:
    """``x`` in another dtype; ``x`` itself if it has that dtype.

    Example:
        >>> import extensor as et
        >>> et.astype(et.tensor([1.7]), et.int32).tolist()
        [1]
    """
    x, wanted = as_tensor("astype", "x", x), as_dtype("astype", dtype)
    return x if x.dtype == wanted else kernels.astype(x, wanted)


@backward_of(astype, keeps_dtype=("x",))
def astype_backward(grad_output: ExTensor, x: TensorOrDtype) -> ExTensor:
    """Gradient of :func:`astype`: the gradient in the dtype of the input.   dx = dy

    ``x`` is the input or just its dtype.

    Example:
        >>> import extensor as et
        >>> et.astype_backward(et.ones(1, dtype=et.float64), et.float32).dtype
        dtype('float32')
    """
    wanted = x.dtype if isinstance(x, ExTensor) else as_dtype("astype_backward", x)
    if wanted not in FLOATING:
        raise TypeError(f"[astype_backward] x has dtype {wanted}; only floating tensors have gradients")
    return astype(as_floating("astype_backward", "grad_output", grad_output), wanted)


@overload
def cast_like(grad: ExTensor, like: Any) -> ExTensor: ...
@overload
def cast_like(grad: ExTensor | None, like: Any) -> ExTensor | None: ...
def cast_like(grad: ExTensor | None, like: Any) -> ExTensor | None:
    """A gradient in the dtype of the input it belongs to (a shape or a number has none of its own)."""
    if grad is None or grad.dtype == dtype_of(like, grad.dtype):
        return grad
    return astype(grad, like.dtype)


def in_one_dtype(*tensors: Any) -> tuple[Any, ...]:
    """Tensors (or None) in the dtype that they promote to: products of mixed dtypes take the kernels of one."""
    dtypes = {t.dtype for t in tensors if t is not None}
    if len(dtypes) == 1:
        return tensors
    wanted = promote(*dtypes)
    return tuple(None if t is None else astype(t, wanted) for t in tensors)
