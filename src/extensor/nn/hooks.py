"""Functions that run with a module: before its forward, after it, and when gradients have passed through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..autograd.trees import leaves, map_leaves
from ..errors import describe
from ..graph import Branch, Node, this_thread
from ..tensor import ExTensor

__all__ = ["Handle", "Hooks"]


class _Hook(NamedTuple):
    function: Callable[..., Any]
    with_kwargs: bool = False


class Handle:
    """What registering a hook returns: :meth:`remove` takes the hook away; so does the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, _Hook], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        """Take the hook away; it may be gone already."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one module."""

    def __init__(self) -> None:
        self.before: dict[int, _Hook] = {}
        self.after: dict[int, _Hook] = {}
        self.backward: dict[int, _Hook] = {}
        self._count = 0

    def add(self, function: str, hooks: dict[int, _Hook], hook: Any, with_kwargs: bool = False, prepend: bool = False) -> Handle:  # fmt: skip
        """Register a hook; the ones of a kind run in the order of registering."""
        if not callable(hook):
            raise TypeError(f"[{function}] hook must be a function, got {describe(hook)}")
        self._count += 1
        key, others = self._count, dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[key] = _Hook(hook, bool(with_kwargs))
        hooks.update(others)
        return Handle(hooks, key)

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward of a module between its hooks."""
        for hook in list(self.before.values()):
            args, kwargs = _prepared(hook, module, args, kwargs)
        watch = None
        if self.backward and this_thread.recording:
            watch = _Watch(module, list(self.backward.values()))
            args, kwargs = watch.inputs(args, kwargs)
        output = module.forward(*args, **kwargs)
        for hook in list(self.after.values()):
            given = (module, args, kwargs, output) if hook.with_kwargs else (module, args, output)
            changed = hook.function(*given)
            output = output if changed is None else changed
        return output if watch is None else watch.outputs(output)


def _prepared(
    hook: _Hook, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments after a hook has seen and perhaps changed them."""
    if not hook.with_kwargs:
        changed = hook.function(module, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs
    changed = hook.function(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2 and isinstance(changed[1], dict)):
        raise TypeError(
            f"[register_forward_pre_hook] a hook with_kwargs must return None or (args, kwargs), got {describe(changed)}"
        )
    return tuple(changed[0]), changed[1]


class _Watch:
    """One call of a module whose gradients are watched: inputs and outputs pass through gates of the recorded graph."""

    def __init__(self, module: Any, hooks: list[_Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.grad_output: tuple[Any, ...] = ()
        self.count = 0  # of the tensors among the inputs
        self.at_the_inputs = False

    def inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments behind a gate that ends the watch."""
        given = (args, kwargs)
        tensors = list(leaves(given))
        self.count = len(tensors)
        self.at_the_inputs = any(t.requires_grad for t in tensors)
        made: tuple[Any, Any] = _through_gate("module_inputs", given, self._leave)
        return made

    def outputs(self, output: Any) -> Any:
        """The outputs behind a gate that begins the watch."""
        return _through_gate("module_outputs", output, self._enter)

    def _enter(self, grads: list[Any]) -> list[Any]:
        self.grad_output = tuple(grads)
        if not self.at_the_inputs:  # nothing arrives there
            self._leave([None] * self.count)
        return grads

    def _leave(self, grads: list[Any]) -> list[Any]:
        for hook in self.hooks:
            changed = hook.function(self.module, tuple(grads), self.grad_output)
            if changed is not None:
                grads = _replaced_gradients(grads, changed)
        return grads


def _replaced_gradients(grads: list[Any], changed: Any) -> list[Any]:
    """The gradients that a hook returned in place of others, checked."""
    found = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    if len(found) != len(grads):
        raise ValueError(
            f"[register_full_backward_hook] a hook returned {len(found)} gradients for {len(grads)} inputs"
        )
    for i, (before, after) in enumerate(zip(grads, found)):
        if before is None or after is None:
            continue
        if not isinstance(after, ExTensor) or (after.shape, after.dtype) != (before.shape, before.dtype):
            raise ValueError(
                f"[register_full_backward_hook] gradient {i} that a hook returned must be a tensor of shape {before.shape} "
                f"and dtype {before.dtype}, got {describe(after)}"
            )
    return found


def _through_gate(name: str, tree: Any, seen: Callable[[list[Any]], list[Any]]) -> Any:
    """The same structure; gradients on their way back through it pass ``seen``, one for each tensor, or None.

    A tensor that stands in several places stays one object (layers look: attention of x, x, x); its gradient is shown at
    the first of them.
    """
    tensors = list(leaves(tree))
    if not any(t.requires_grad for t in tensors):
        return tree
    first: dict[int, int] = {}
    for i, t in enumerate(tensors):
        first.setdefault(id(t), i)
    wanted = [t.requires_grad and first[id(t)] == i for i, t in enumerate(tensors)]
    edges = tuple((t if t._node is None else t._node) if want else None for t, want in zip(tensors, wanted))
    node = Node(_Gate(name, seen), edges, ())
    node.outputs = [(t.shape, t.dtype) if want else None for t, want in zip(tensors, wanted)]
    behind = {id(t): ExTensor(t._data, True, Branch(node, i)) for i, t in enumerate(tensors) if wanted[i]}
    return map_leaves(lambda t: behind.get(id(t), t), tree)


class _Gate:
    """Stands in the place of an op: gradients that pass are shown to a function, which may replace them."""

    is_custom = False
    takes_none = True
    output_positions = ()

    def __init__(self, name: str, seen: Callable[[list[Any]], list[Any]]) -> None:
        self.__name__ = name
        self.rule = self.backward = self
        self.seen = seen

    def gradients(self, grad_output: Sequence[Any], saved: Any, options: Any, needs: Any = None) -> list[Any]:
        """One gradient per edge."""
        return self.seen(list(grad_output))
