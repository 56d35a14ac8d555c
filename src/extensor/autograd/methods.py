"""``backward()`` and ``retain_grad()`` on tensors."""

from __future__ import annotations

from ..tensor import ExTensor
from .engine import backpropagate, check_grad_output
from .retained import retain_grad


def backward(
    self: ExTensor,
    grad_output: ExTensor | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> None:
    """Accumulate the gradient of this tensor into the ``.grad`` of every leaf it was computed from.

    Args:
        grad_output: the gradient that arrives here; 1 for a scalar.
        retain_graph: keep the graph for another ``backward``. Without it the graph is freed on the way.
        create_graph: record the backward pass, so that the gradients can be differentiated. Implies ``retain_graph``.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
    """
    start = check_grad_output("backward", self, grad_output)
    backpropagate([self], [start], retain_graph=retain_graph or create_graph, create_graph=create_graph)


ExTensor.retain_grad = retain_grad  # type: ignore[method-assign]
ExTensor.backward = backward  # type: ignore[method-assign]
