"""How the arguments of a forward call flow into its backward function.

The backward names what it needs, after ``grad_output``:

=============================  ======================================================================
parameter of the backward      what the recorder keeps for it
=============================  ======================================================================
a parameter of the forward     that argument; only its shape or its dtype, where ``@backward_of`` says
                               so by ``keeps_shape`` or ``keeps_dtype``
``output``                     the forward's result, where ``@backward_of`` says ``from_output=True``
a field in ``from_results``    that field of the NamedTuple the forward returns
``needs``                      nothing; the walk says which gradients are wanted, the others may be None
another one with a default     nothing
=============================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import CO_VARARGS, unwrap
from typing import Any, NamedTuple

import numpy as np

from ..tensor import ExTensor

__all__ = ["Parameter", "Rule", "Signature", "dtype_of"]


class Signature(NamedTuple):
    """The parameters of a function, read from its code: much quicker than ``inspect.signature``, for 300 functions."""

    names: tuple[str, ...]
    defaults: dict[str, Any]
    positional: int
    variadic: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        function = unwrap(function)
        code = function.__code__
        count = code.co_argcount
        plain, keyword = code.co_varnames[:count], code.co_varnames[count : count + code.co_kwonlyargcount]
        variadic = code.co_varnames[count + len(keyword)] if code.co_flags & CO_VARARGS else None
        values = function.__defaults__ or ()
        defaults = {**dict(zip(plain[count - len(values) :], values)), **(function.__kwdefaults__ or {})}
        return cls((*plain, *((variadic,) if variadic else ()), *keyword), defaults, count, variadic)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, defaults filled in."""
        bound = dict(self.defaults)
        bound.update(zip(self.names[: self.positional], args))
        if self.variadic is not None:
            bound[self.variadic] = args[self.positional :]
        bound.update(kwargs)
        return bound


class Parameter(NamedTuple):
    """How one parameter of a backward function is filled from a forward call."""

    name: str
    kept: str  # "argument", "shape", "dtype", "output" or "result"
    keyword: bool
    variadic: bool


class Rule:
    """How the arguments of a forward call flow into its backward function; complete when the backward is defined.

    Attributes:
        names: the forward's parameters; ``variadic``: the one that takes any number of arguments.
        bind: the forward's arguments by name, defaults filled in.
        targets: the parameters that the gradients belong to, in order.
        each: whether the one target is a list of tensors, with a list of gradients.
        mirrored: the target whose gradient is minus the first one, or None.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        backward: Callable[..., Any],
        *,
        wrt: str | tuple[str, ...] | None = None,
        each: str | None = None,
        mirrored: str | None = None,
        keeps_shape: tuple[str, ...] = (),
        keeps_dtype: tuple[str, ...] = (),
        from_output: bool = False,
        from_results: tuple[str, ...] = (),
        takes_none: bool = False,
        is_custom: bool = False,
    ) -> None:
        self.fn = fn
        self.backward = backward
        self.signature = Signature.of(fn)
        self.names, self.variadic = self.signature.names, self.signature.variadic
        self.bind = self.signature.bind
        self.each = each is not None
        self.mirrored = mirrored
        self.is_custom = is_custom
        self.takes_none = takes_none
        if each is not None:
            self.targets: tuple[str, ...] = (each,)
        elif wrt is None:
            self.targets = self.names if is_custom else self.names[:1]
        else:
            self.targets = (wrt,) if isinstance(wrt, str) else tuple(wrt)
        if mirrored is not None:
            self.targets += (mirrored,)
        back = Signature.of(backward)
        self.takes_needs = "needs" in back.names
        self.defaults = back.defaults
        kinds = {
            **dict.fromkeys(self.names, "argument"),
            **dict.fromkeys(keeps_shape, "shape"),
            **dict.fromkeys(keeps_dtype, "dtype"),
            **dict.fromkeys(from_results, "result"),
            **({"output": "output"} if from_output else {}),
        }
        self.parameters = []
        for place, name in enumerate(back.names[1:], 1):
            if name in kinds:
                keyword = kinds[name] != "output" and (
                    name in back.defaults or (place >= back.positional and name != back.variadic)
                )
                self.parameters.append(Parameter(name, kinds[name], keyword, name == back.variadic))
            elif name not in back.defaults:
                raise TypeError(
                    f"[backward_of] {backward.__name__} asks for {name!r}, which is neither an argument of {fn.__name__} "
                    f"{self.names} nor said to come from its result"
                )
        unknown = {*self.targets, *keeps_shape, *keeps_dtype} - {*self.names}
        if unknown:
            raise TypeError(
                f"[backward_of] {backward.__name__} speaks of {sorted(unknown)}, which {fn.__name__} {self.names} has not"
            )
        self.output_positions = [i for i, p in enumerate(self.parameters) if p.kept == "output"]

    def inputs(self, bound: dict[str, Any]) -> list[Any]:
        """The values the gradients belong to, in order; a list of tensors counts as its elements."""
        if self.each:
            return list(bound[self.targets[0]])
        return [bound.get(name) for name in self.targets]

    def arguments(self, bound: dict[str, Any], output: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the backward is called with, after ``grad_output``: positional and keyword arguments."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, kept, keyword, variadic in self.parameters:
            if kept == "output":
                value = output
            elif kept == "result":
                value = getattr(output, name)
            else:
                value = bound[name]
                if kept != "argument":
                    value = _shapes(value) if kept == "shape" else dtype_of(value)
            if keyword:
                if value is not self.defaults.get(name, keywords):  # `keywords`: no value at all
                    keywords[name] = value
            elif variadic:
                positional.extend(value)
            else:
                positional.append(value)
        return tuple(positional), keywords

    def gradients(
        self,
        grad_output: Any,
        saved: Sequence[Any],
        options: dict[str, Any] | None,
        needs: tuple[bool, ...] | None = None,
    ) -> Sequence[Any]:
        """Call the public backward; one gradient per input of :meth:`inputs`."""
        if needs is not None and self.takes_needs:
            options = {**(options or {}), "needs": needs}
        result = self.backward(grad_output, *saved, **(options or {}))
        flat = list(result) if isinstance(result, (tuple, list)) else [result]
        if self.mirrored is not None:
            flat.append(-flat[0] if needs is None or needs[-1] else None)
        if self.is_custom and not self.each:
            flat += [None] * (len(self.targets) - len(flat))
        return flat


def _shapes(value: Any) -> Any:
    if isinstance(value, (ExTensor, np.ndarray)):
        return value.shape
    if isinstance(value, (list, tuple)):
        return tuple(_shapes(v) for v in value)
    return np.shape(value)


def dtype_of(value: Any) -> Any:
    """The dtype of a tensor, an array or a number."""
    return getattr(value, "dtype", None) or np.result_type(value)
