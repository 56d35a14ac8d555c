"""The pairs chained automatically, to any order. The rules are the public ``_backward`` functions.

``backward()`` loads with the package; each transform loads when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..graph import autocast, differentiable, no_grad
from . import methods as _methods  # noqa: F401  (attaches ExTensor.backward)

__all__ = [
    "autocast", "backward_source", "checkpoint", "checkpoint_sequential", "detect_anomaly", "differentiable", "draw_graph",
    "explain", "fvp", "gnvp", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "no_grad", "profile", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip

# Where each of these is, below this package.
HOME_OF = {
    "backward_source": "source",
    "checkpoint": "checkpointing",
    "checkpoint_sequential": "checkpointing",
    "detect_anomaly": "anomaly",
    "draw_graph": "drawing",
    "explain": "explaining",
    "fvp": "curvature",
    "gnvp": "curvature",
    "grad": "transforms",
    "hessian": "jacobians",
    "hvp": "transforms",
    "jacfwd": "jacobians",
    "jacobian": "jacobians",
    "jacrev": "jacobians",
    "jvp": "forward_mode",
    "linearize": "forward_mode",
    "profile": "profiler",
    "value_and_grad": "transforms",
    "vjp": "transforms",
    "vmap": "batching.transform",
}

if _TYPE_CHECKING:
    from .anomaly import detect_anomaly
    from .batching.transform import vmap
    from .checkpointing import checkpoint, checkpoint_sequential
    from .curvature import fvp, gnvp
    from .drawing import draw_graph
    from .explaining import explain
    from .forward_mode import jvp, linearize
    from .jacobians import hessian, jacfwd, jacobian, jacrev
    from .profiler import profile
    from .source import backward_source
    from .transforms import grad, hvp, value_and_grad, vjp
else:

    def __getattr__(name: str) -> object:
        if name not in HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(_import_module(f"{__name__}.{HOME_OF[name]}"), name)
