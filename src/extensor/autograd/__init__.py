"""The pairs chained automatically, to any order. The rules are the public ``_backward`` functions."""

from ..graph import autocast, differentiable, no_grad
from . import methods as _methods  # noqa: F401  (attaches ExTensor.backward)
from .anomaly import detect_anomaly
from .batching.transform import vmap
from .checkpoint import checkpoint, checkpoint_sequential
from .curvature import fvp, gnvp
from .drawing import draw_graph
from .explain import explain
from .forward_mode import jvp, linearize
from .jacobians import hessian, jacfwd, jacobian, jacrev
from .profiler import profile
from .source import backward_source
from .transforms import grad, hvp, value_and_grad, vjp

__all__ = [
    "autocast", "backward_source", "checkpoint", "checkpoint_sequential", "detect_anomaly", "differentiable", "draw_graph",
    "explain", "fvp", "gnvp", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "no_grad", "profile", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip
