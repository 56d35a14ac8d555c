"""The pairs chained automatically, to any order. The rules are the public ``_backward`` functions."""

from ..graph import differentiable, no_grad
from . import methods as _methods  # noqa: F401  (attaches ExTensor.backward)
from .transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp

__all__ = ["differentiable", "grad", "hessian", "hvp", "jacobian", "jvp", "no_grad", "value_and_grad", "vjp"]
