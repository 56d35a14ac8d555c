"""Calls whose arguments no parameter takes: what PyTorch and NumPy call a parameter, and what it is called here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

from ._spelling import did_you_mean
from .errors import describe

__all__ = ["ALIASES", "NEVER", "explained", "misfit"]

F = TypeVar("F", bound=Callable[..., Any])

# What others call a parameter: the first of ours that the function has is meant.
ALIASES: dict[str, tuple[str, ...]] = {
    "a_max": ("max",), "a_min": ("min",), "arr": ("x",), "array": ("x", "data"), "arrays": ("tensors", "operands"), "ary": ("x",),
    "attn_mask": ("mask",), "axes": ("axis",), "axis": ("axes",), "correction": ("ddof",), "diagonal": ("k",), "dim": ("axis", "axes"),
    "dim0": ("axis1",), "dim1": ("axis2",), "dims": ("axes", "axis"), "end": ("stop",), "end_dim": ("end_axis",),
    "equation": ("subscripts",), "exponent": ("b",), "index": ("indices",), "input": ("x", "a", "logits", "predictions"),
    "input1": ("a",), "input2": ("b",), "is_causal": ("causal",), "keepdim": ("keepdims",), "key": ("k",), "mat2": ("b",),
    "max": ("high", "max_val"), "min": ("low", "min_val"), "negative_slope": ("alpha",), "newshape": ("shape",), "num_heads": ("heads",),
    "obj": ("data",), "object": ("data",), "offset": ("k",), "other": ("b",), "pad": ("pad_width",), "query": ("q",),
    "sections": ("indices_or_sections",), "seed": ("rng",), "self": ("x", "a"), "shifts": ("shift",), "size": ("shape",),
    "split_size_or_sections": ("indices_or_sections",), "start_dim": ("start_axis",), "steps": ("num",), "target": ("targets",),
    "tensor": ("x",), "tup": ("tensors",), "value": ("v", "constant_values", "fill_value"), "weights": ("weight",), "x1": ("a",),
    "x2": ("b",), "y": ("b",),
}  # fmt: skip
_STAYS = "tensors never change; leave it out and take what is returned"
NEVER = {
    "device": "leave it out: everything is on the CPU",
    "dtype": "use x.astype(dtype) before or after it",
    "generator": "pass rng=, a seed or a generator",
    "inplace": _STAYS,
    "layout": "leave it out: tensors are dense",
    "non_blocking": "leave it out: everything is on the CPU",
    "out": _STAYS,
    "reduce": "use reduction='mean', 'sum' or 'none'",
    "size_average": "use reduction='mean', 'sum' or 'none'",
    "unbiased": "use ddof=1 for it, ddof=0 without",
    "where": "use extensor.where before it",
}


def misfit(
    function: Callable[..., Any], error: Exception, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> TypeError | None:
    """What to say of a call whose arguments fit no parameters; None for an error that comes from inside the function."""
    trace = error.__traceback__
    if not isinstance(error, TypeError) or trace is None or trace.tb_next is not None:
        return None
    name, parameters = function.__name__, signature(function).parameters
    names = [
        p.name for p in parameters.values() if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    positional = [p.name for p in parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    for given in kwargs:
        if given not in names:
            return TypeError(f"[{name}] has no argument {given!r}; {_meant(given, names)}")
    if len(args) > len(positional) and Parameter.VAR_POSITIONAL not in {p.kind for p in parameters.values()}:
        return TypeError(f"[{name}] {_too_many(name, args, positional)}")
    twice = [given for given in kwargs if given in positional[: len(args)]]
    if twice:
        return TypeError(f"[{name}] was given {twice[0]!r} by its place and by its name")
    missing = [
        p.name
        for p in list(parameters.values())[len(args) :]
        if p.default is Parameter.empty and p.name in names and p.name not in kwargs
    ]
    return TypeError(f"[{name}] needs {' and '.join(missing)}") if missing else None


def _meant(given: str, names: list[str]) -> str:
    for ours in ALIASES.get(given, ()):
        if ours in names:
            return f"it is called {ours!r} here"
    if given in NEVER:
        return NEVER[given]
    near = did_you_mean(given, names)
    return near.removeprefix("; ") or f"it takes {', '.join(names)}"


def _too_many(name: str, args: tuple[Any, ...], positional: list[str]) -> str:
    first = len(positional) - 1
    while first and positional[first] not in ("shape", "axes", "axis", "reps", "tensors"):
        first -= 1
    rest = args[first:]
    if all(type(v) is int for v in rest) and positional[first] in ("shape", "axes", "axis", "reps"):
        before = "".join(f"{p}, " for p in positional[:first])
        if name == "transpose" and len(rest) == 2:
            return f"takes all axes as one tuple; swapaxes(x, {rest[0]}, {rest[1]}) exchanges two"
        return f"takes {positional[first]} as one argument: {name}({before}{tuple(rest)})"
    if positional[:1] == ["tensors"]:
        return f"takes its tensors as one list: {name}([a, b])"
    return f"takes at most {len(positional)} arguments, {', '.join(positional)}; got {len(args)}, the last {describe(args[-1])}"


def explained(function: F) -> F:
    """For a function that is no op: its calls have the errors of :func:`misfit`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            better = misfit(function, error, args, kwargs)
            if better is None:
                raise
            raise better from None

    return call  # type: ignore[return-value]
