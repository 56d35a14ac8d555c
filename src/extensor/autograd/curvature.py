"""Products with matrices of curvature that are never formed: Gauss-Newton and Fisher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import describe
from ..tensor import ExTensor
from .forward_mode import jvp
from .inputs import check_callable
from .transforms import hvp, vjp

__all__ = ["fvp", "gnvp"]


def gnvp(fn: Callable[..., Any], loss: Callable[..., Any], x: Any, v: Any) -> Any:
    """The generalised Gauss-Newton matrix of ``loss(fn(x))`` at ``x``, times ``v``.   J^T H J v

    J is the Jacobian of ``fn``, H the Hessian of ``loss`` with respect to the outputs. For a loss that is convex in the outputs
    the matrix has no negative eigenvalue, unlike the Hessian of :func:`hvp`, which it equals where ``fn`` is linear.

    Args:
        fn: from parameters (a tensor, a structure of them or a module) to the outputs of a model.
        loss: from those outputs to a scalar.
        x: the parameters.
        v: a direction, structured like their gradients.

    Example:
        >>> import extensor as et
        >>> a = et.tensor([[1.0, 2.0], [0.0, 1.0]])
        >>> et.gnvp(lambda x: a @ x, lambda y: (y * y).sum(), et.tensor([1.0, 1.0]), et.tensor([1.0, 0.0])).tolist()
        [2.0, 4.0]
    """
    check_callable("gnvp", fn)
    check_callable("gnvp", loss)
    outputs, pushed = jvp(fn, (x,), (v,))
    curved = hvp(loss, outputs, pushed)
    return vjp(fn, x)[1](curved)[0]


def fvp(log_likelihood: Callable[..., Any], x: Any, v: Any) -> Any:
    """The Fisher matrix at ``x``, times ``v``: the mean of the outer products of the gradients of examples.   (1/n) sum_i g_i (g_i . v)

    With the labels of the data it is the empirical one; draw labels from the model for the Fisher matrix itself.

    Args:
        log_likelihood: from parameters (a tensor, a structure of them or a module) to the log-likelihood of each example, a
            tensor with one axis.
        x: the parameters.
        v: a direction, structured like their gradients.

    Example:
        >>> import extensor as et
        >>> data = et.tensor([[1.0, 0.0], [1.0, 2.0]])
        >>> et.fvp(lambda w: data @ w, et.zeros(2), et.tensor([1.0, 1.0])).tolist()
        [2.0, 3.0]
    """
    check_callable("fvp", log_likelihood)
    values, pushed = jvp(log_likelihood, (x,), (v,))
    if not isinstance(values, ExTensor) or values.ndim != 1 or not values.size:
        raise ValueError(
            f"[fvp] log_likelihood must return a tensor with one number per example, got {describe(values)}"
        )
    return vjp(log_likelihood, x)[1](pushed / values.size)[0]
