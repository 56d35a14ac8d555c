"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..autograd.batching.batched import Batched, nothing_like
from ..autograd.inputs import linked
from ..autograd.trees import Kind, register_kind
from ..errors import describe
from ..tensor import ExTensor, tensor
from .module import Module
from .parameter import Parameter

__all__ = ["functional_call"]


class BatchedParameter(Batched, Parameter):
    """A parameter inside ``vmap``, of one example."""

    __slots__ = ("batch", "level", "shared")


def functional_call(module: Module, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """``module(*args, **kwargs)`` with other tensors in place of its parameters; the module keeps its own.

    The result can be differentiated with respect to the tensors. Running statistics are updated as in an ordinary call.

    Args:
        module: any module.
        parameters: tensors by the names of :meth:`Module.named_parameters` (or of buffers), each of the shape it
            replaces. What is not named stays; a parameter that is shared is replaced wherever it is used.
        args, kwargs: what the module is called with.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.Linear(2, 1, rng=0)
        >>> et.functional_call(layer, {"weight": et.ones((1, 2)), "bias": et.zeros(1)}, et.ones((1, 2))).tolist()
        [[2.0]]
    """
    if not isinstance(module, Module):
        raise TypeError(f"[functional_call] module must be a module, got {describe(module)}")
    if not isinstance(parameters, Mapping):
        raise TypeError(f"[functional_call] parameters must be a dict of tensors, got {describe(parameters)}")
    state = module.state_dict()
    values = {}
    for name, value in parameters.items():
        if name not in state:
            raise ValueError(f"[functional_call] {type(module).__name__} has no parameter or buffer {name!r}")
        values[name] = value if isinstance(value, ExTensor) else tensor(value)
        if values[name].shape != state[name].shape:
            raise ValueError(
                f"[functional_call] parameters[{name!r}] has shape {values[name].shape} "
                f"but the module has {state[name].shape}"
            )
    made = _replaced(module, values)
    result = made(*args, **kwargs)
    _settle(module, made, values)
    return result


def _trainable(module: Module) -> dict[str, ExTensor]:
    """The parameters that are trained; outside of a transform without a link to the module's own."""
    return {
        name: p if p._node is not None or isinstance(p, Batched) else p.detach()
        for name, p in module.named_parameters()
        if p.requires_grad
    }


def _replaced(module: Module, values: Mapping[str, ExTensor]) -> Module:
    """A copy of a module around other parameters and buffers; what is not a module or holds none is shared."""
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    others: dict[int, Any] = {
        id(parameters[name]): _as_parameter(value) for name, value in values.items() if name in parameters
    }
    names = {id(p): name for name, p in parameters.items()}
    for path, owner in module.named_modules():  # a name under which a shared parameter is not listed
        for name, p in owner._members():
            full = f"{path}.{name}" if path else name
            if isinstance(p, Parameter) and full in values and full != names[id(p)]:
                others.setdefault(id(p), _as_parameter(values[full]))
    made = _copied(module, others)
    for name, value in values.items():
        if name in buffers:
            path, _, last = name.rpartition(".")
            dict(made.named_modules())[path].__dict__[last] = value
    return made


def _as_parameter(value: ExTensor) -> Parameter:
    """A tensor, with its history, where a parameter is expected."""
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Batched):
        made = BatchedParameter.around(nothing_like(value.shape), value._requires_grad)
        made.batch, made.level, made.shared = value.batch, value.level, value.shared
        return made
    if (
        value._requires_grad and value._node is None
    ):  # a leaf: its gradient must arrive there, not at the stand-in
        value = linked(value)
    return Parameter.around(value._data, value._requires_grad, value._node)


def _copied(value: Any, others: dict[int, Any]) -> Any:
    """The structure of modules again, each object once, with others in place of those named by their ids."""
    if id(value) in others:
        return others[id(value)]
    made = value
    if isinstance(value, Module):
        made = others[id(value)] = object.__new__(type(value))
        for name, attribute in vars(value).items():
            made.__dict__[name] = _copied(attribute, others)
    elif isinstance(value, dict) and any(map(_holds_parts, value.values())):
        made = type(value)((k, _copied(v, others)) for k, v in value.items())
    elif isinstance(value, (list, tuple)) and any(map(_holds_parts, value)):
        parts = [_copied(v, others) for v in value]
        made = type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return made


def _holds_parts(value: Any) -> bool:
    """Whether a value is a module or a parameter, or a container of them."""
    if isinstance(value, dict):
        return any(map(_holds_parts, value.values()))
    return isinstance(value, (Module, Parameter)) or (
        isinstance(value, (list, tuple)) and any(map(_holds_parts, value))
    )


def _settle(module: Module, made: Module, given: Mapping[str, ExTensor] | None = None) -> None:
    """The module takes over the buffers of its copy, but for those that were given."""
    for (path, owner), (_, copy) in zip(module.named_modules(), made.named_modules()):
        for name in owner._buffer_names:
            if (f"{path}.{name}" if path else name) not in (given or ()):
                setattr(owner, name, getattr(copy, name))


register_kind(Module, Kind(_trainable, Module.state_dict, _replaced, _settle))
