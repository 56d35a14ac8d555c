"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import describe
from ..tensor import ExTensor
from .module import Module, flatten
from .parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


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


class ModuleDict(Module):
    """Modules by name, in the order in which they were put in.

    Example:
        >>> from extensor import nn
        >>> heads = nn.ModuleDict({"a": nn.Linear(2, 1, rng=0), "b": nn.ReLU()})
        >>> list(heads), [name for name, _ in heads.named_parameters()]
        (['a', 'b'], ['a.weight', 'a.bias'])
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        self._named: dict[str, Module] = {}
        self.update(modules or {})

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()
        yield from _other_members(self, "_named")

    def __getitem__(self, name: str) -> Module:
        return self._named[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(name, str):
            raise TypeError(f"[ModuleDict] names must be strings, got {describe(name)}")
        checked = _check_module("ModuleDict", module)
        if name in self._named and self._named[name] is not module:
            self._let_go(name, self._named[name])
        self._named[name] = checked

    def __delitem__(self, name: str) -> None:
        self._let_go(name, self._named[name])
        del self._named[name]

    def __len__(self) -> int:
        return len(self._named)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __contains__(self, name: object) -> bool:
        return name in self._named

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Put in several modules; those of the same names are replaced."""
        for name, module in dict(modules).items():
            self[name] = module

    def pop(self, name: str) -> Module:
        """Take a module out and return it."""
        module = self[name]
        del self[name]
        return module

    def clear(self) -> None:
        """Take all modules out."""
        for name in list(self):
            del self[name]

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._named.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._named.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._named.items()


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


class ParameterList(Module):
    """Parameters in a list; they are named by their positions. A tensor put in becomes a parameter.

    Example:
        >>> import extensor as et
        >>> held = et.nn.ParameterList([et.ones(2), et.zeros(3)])
        >>> len(held), [name for name, _ in held.named_parameters()]
        (2, ['0', '1'])
    """

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        self._items: list[Parameter] = []
        self.extend(parameters)

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from ((str(i), p) for i, p in enumerate(self._items))
        yield from _other_members(self, "_items")

    def append(self, parameter: Any) -> ParameterList:
        """Add a parameter at the end."""
        self._items.append(_as_parameter(parameter))
        return self

    def extend(self, parameters: Iterable[Any]) -> ParameterList:
        """Add several at the end."""
        if isinstance(parameters, ExTensor) or not isinstance(parameters, Iterable):
            raise TypeError(f"[ParameterList] takes a list of parameters, got {describe(parameters)}")
        for parameter in parameters:
            self.append(parameter)
        return self

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._items)

    def __getitem__(self, index: Any) -> Any:
        return ParameterList(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __setitem__(self, index: int, value: Any) -> None:
        """Set the value of a parameter; an ``nn.Parameter`` takes its place."""
        before = self._items[index]
        if not isinstance(value, Parameter):
            self._set_value(str(index), before, value)
            return
        if value is not before:
            self._let_go(str(index), before)
        self._items[index] = value


def _as_parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


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
        before = self._named.get(name)
        if before is not None and not isinstance(value, Parameter):
            self._set_value(name, before, value)
            return
        if before is not None and value is not before:
            self._let_go(name, before)
        self._named[name] = _as_parameter(value)

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
