"""Intermediate tensors that keep the gradient that passes through them."""

from __future__ import annotations

import weakref
from typing import Any

from ..errors import GraphError
from ..tensor import ExTensor

__all__ = ["retain_grad", "retained", "waiting_at"]

# Node (or branch) to the tensors that wait for its gradient. An entry goes with its tensor, which holds on to the node.
retained: dict[Any, dict[int, weakref.ref[ExTensor]]] = {}


def waiting_at(node: Any) -> list[ExTensor]:
    """The tensors that wait for the gradient of a node."""
    found = [reference() for reference in list(retained.get(node, {}).values())]
    return [waiting for waiting in found if waiting is not None]


def retain_grad(self: ExTensor) -> None:
    """Let ``backward()`` fill the ``.grad`` of this tensor too, though it was computed from others.

    A leaf has a ``.grad`` anyway. Gradients of several backward passes add up.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0, 2.0], requires_grad=True)
        >>> h = x * x
        >>> h.retain_grad()
        >>> (h * 3.0).sum().backward()
        >>> h.grad.tolist(), x.grad.tolist()
        ([3.0, 3.0], [6.0, 12.0])
    """
    node, key = self._node, id(self)
    if not self._requires_grad:
        raise GraphError(
            "[retain_grad] this tensor does not depend on anything that requires a gradient; "
            "make an input with tensor(..., requires_grad=True)"
        )
    if node is None:
        return

    def forget(_: object) -> None:
        waiting = retained.get(node)
        if waiting is not None:
            waiting.pop(key, None)
            if not waiting:
                retained.pop(node, None)

    retained.setdefault(node, {}).setdefault(key, weakref.ref(self, forget))
