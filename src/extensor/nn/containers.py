"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import describe
from .module import Module, flatten
from .parameter import Parameter

__all__ = ["ModuleList", "ParameterDict", "Sequential"]


def _check_module(function: str, value: Any) -> Module:
    if not isinstance(value, Module):
        raise TypeError(f"[{function}] takes modules, got {describe(value)}")
    return value


def _other_members(container: Module, held: str) -> Iterator[tuple[str, Any]]:
    """What a subclass of a container has as attributes of its own."""
    for name, value in vars(container).items():
        if name != held:
            yield from flatten(name, value)


class ModuleList(Module):
    """Modules in a list; they are named by their positions.

    Example:
        >>> from extensor import nn
        >>> blocks = nn.ModuleList([nn.Linear(2, 2, rng=0), nn.Linear(2, 2, rng=1)])
        >>> len(blocks), [name for name, _ in blocks.named_parameters()]
        (2, ['0.weight', '0.bias', '1.weight', '1.bias'])
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._items = [_check_module(type(self).__name__, m) for m in modules]

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from ((str(i), module) for i, module in enumerate(self._items))
        yield from _other_members(self, "_items")

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self._items.append(_check_module(type(self).__name__, module))
        return self

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items)

    def __getitem__(self, index: Any) -> Any:
        return type(self)(self._items[index]) if isinstance(index, slice) else self._items[index]


class Sequential(Module):
    """Modules one after another: each gets what the one before it gave.

    Takes modules, or one dict of named modules.

    Example:
        >>> import extensor as et
        >>> from extensor import nn
        >>> net = nn.Sequential(nn.Linear(2, 8, rng=0), nn.ReLU(), nn.Linear(8, 1, rng=1))
        >>> net(et.ones((3, 2))).shape
        (3, 1)
    """

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named = dict(modules[0])
        else:
            named = {str(i): module for i, module in enumerate(modules)}
        self._named = {str(name): _check_module("Sequential", module) for name, module in named.items()}

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()
        yield from _other_members(self, "_named")

    def forward(self, x: Any) -> Any:
        for module in self._named.values():
            x = module(x)
        return x

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self._named[str(len(self._named))] = _check_module("Sequential", module)
        return self

    def __len__(self) -> int:
        return len(self._named)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._named.values())

    def __getitem__(self, index: Any) -> Any:
        modules = list(self._named.values())
        return Sequential(*modules[index]) if isinstance(index, slice) else modules[index]


class ParameterDict(Module):
    """Parameters by name.

    Example:
        >>> from extensor import nn
        >>> p = nn.ParameterDict({"w": nn.Parameter([1.0])})
        >>> p["w"].tolist(), list(p)
        ([1.0], ['w'])
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self._named: dict[str, Parameter] = {}
        for name, value in (parameters or {}).items():
            self[name] = value

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()
        yield from _other_members(self, "_named")

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"[ParameterDict] names must be strings, got {describe(name)}")
        if name in self._named and not isinstance(value, Parameter):
            self._set_value(name, self._named[name], value)
        else:
            self._named[name] = value if isinstance(value, Parameter) else Parameter(value)

    def __getitem__(self, name: str) -> Parameter:
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __contains__(self, name: object) -> bool:
        return name in self._named

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._named.keys()

    def values(self) -> Iterable[Parameter]:
        """The parameters."""
        return self._named.values()

    def items(self) -> Iterable[tuple[str, Parameter]]:
        """Names and parameters."""
        return self._named.items()
