"""Memory for compute: forget a part's activations, and compute them again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import describe
from ..graph import Branch, Node, autocast, get_autocast, next_sequence, set_recording, this_thread
from ..ops._generators import Tape, replayed, taped
from ..tensor import ExTensor
from .engine import backpropagate, outside
from .trees import leaves, map_leaves

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` with its activations recomputed in the backward pass instead of kept.

    The results have the same bits, and so have the gradients, unless a tensor is used both inside and outside of ``fn``: its
    gradients are then added up in another order. Random draws of ``fn`` are repeated exactly, also where several
    threads share a generator, and the buffers of modules (running statistics) are updated once. ``fn`` must compute the
    same thing when it is called again: it must not depend on anything else that changes in between.

    Args:
        fn: a function of tensors (or structures of them) that returns tensors; it may use other tensors that require
            a gradient (the parameters of a layer), which get theirs.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0, 2.0], requires_grad=True)
        >>> et.checkpoint(lambda x: x.exp().sin())(x).sum().backward()
        >>> [round(g, 2) for g in x.grad.tolist()]
        [-2.48, 3.31]
    """
    if not callable(fn):
        raise TypeError(f"[checkpoint] fn must be a function, got {describe(fn)}")

    def forgetful(*args: Any, **kwargs: Any) -> Any:
        if not this_thread.recording:
            return fn(*args, **kwargs)
        since = next_sequence()
        with taped() as tape:
            result = fn(*args, **kwargs)
        outputs = [t for t in leaves(result) if t.requires_grad]
        if not outputs:
            return result
        part = _Part(fn, args, kwargs, tape, outside(outputs, since))
        node = Node(part, tuple(part.edges), ())
        node.outputs = [(t.shape, t.dtype) for t in outputs]
        branches = iter(Branch(node, i) for i in range(len(outputs)))
        return map_leaves(lambda t: ExTensor(t._data, True, next(branches)) if t.requires_grad else t, result)

    return forgetful


class _Part:
    """A checkpointed call, in the place of an op: its gradient runs the call again and walks back through it."""

    __name__ = "checkpoint"
    is_custom = False
    takes_none = False
    output_positions = ()

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any, tape: Tape, edges: list[Any]) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.tape = tape
        self.edges = edges
        self.precision = autocast(get_autocast())
        self.rule = self.backward = self

    def gradients(
        self, grad_output: Sequence[ExTensor], saved: Any, options: Any, needs: Any = None
    ) -> list[Any]:
        """One gradient per edge; recorded if the walk that asks is."""
        create = this_thread.recording
        with set_recording(True), self.precision, replayed(self.tape):
            result = self.fn(*self.args, **self.kwargs)
        outputs = [t for t in leaves(result) if t.requires_grad]
        if [(t.shape, t.dtype) for t in outputs] != [(g.shape, g.dtype) for g in grad_output]:
            raise RuntimeError(
                "[checkpoint] the function computed something else when it was run again; "
                "it must depend on its arguments and its random draws alone"
            )
        return backpropagate(outputs, grad_output, self.edges, retain_graph=create, create_graph=create)


def checkpoint_sequential(layers: Sequence[Callable[[Any], Any]], segments: int) -> Callable[[Any], Any]:
    """The layers one after another, in ``segments`` checkpointed parts of (nearly) equal length.

    With about ``sqrt(len(layers))`` segments, the activation memory grows like the square root of the depth.

    Args:
        layers: functions of one argument.
        segments: how many parts, from 1 to ``len(layers)``.

    Example:
        >>> import extensor as et
        >>> layers = [et.tanh] * 16
        >>> et.checkpoint_sequential(layers, 4)(et.tensor([0.5])).shape
        (1,)
    """
    chain = list(layers)
    if not chain or not all(map(callable, chain)):
        raise TypeError(
            f"[checkpoint_sequential] layers must be a non-empty list of functions, got {describe(layers)}"
        )
    if not isinstance(segments, int) or isinstance(segments, bool):
        raise TypeError(f"[checkpoint_sequential] segments must be an int, got {describe(segments)}")
    if not 1 <= segments <= len(chain):
        raise ValueError(f"[checkpoint_sequential] segments must be from 1 to {len(chain)}, got {segments}")
    bounds = [round(i * len(chain) / segments) for i in range(segments + 1)]
    parts = [checkpoint(_chained(chain[start:stop])) for start, stop in zip(bounds, bounds[1:])]
    return _chained(parts)


def _chained(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run
