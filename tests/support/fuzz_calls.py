"""Random calls of public functions: garbage throughout, sample calls of the registry, and samples with a part spoiled."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from garbage import anything, extreme
from sample_calls import as_tensors, ones_like

from extensor.testing.registry import Draw
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import find_op

Arguments = tuple[list[Any], dict[str, Any]]


def from_scratch(function: Callable[..., Any], rng: random.Random) -> Arguments:
    """As many arguments as the function takes (their number is Python's business), all garbage."""
    args, kwargs = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            args += [anything(rng) for _ in range(rng.randrange(4))]
        elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY:
            args.append(anything(rng))
        elif p.default is p.empty or rng.random() < 0.4:
            kwargs[p.name] = anything(rng)
    return args, kwargs


def samples(name: str, seed: int) -> list[Arguments]:
    """The sample calls of a function of the registry, or of its backward."""
    forward = name.removesuffix("_backward")
    if forward not in PAIRS:
        return []
    op = find_op(forward)
    found = []
    for case in list(PAIRS[forward].cases(Draw(seed)))[:12]:
        args = [as_tensors(a) for a in case.args]
        kwargs = {key: as_tensors(value) for key, value in case.kwargs.items()}
        if forward != name:
            output = op(*args, **kwargs)
            positional, keywords = op.rule.arguments(op.rule.bind(tuple(args), kwargs), output)
            args, kwargs = [ones_like(output), *positional], dict(keywords)
        found.append((args, kwargs))
    return found


def spoiled(sample: Arguments, rng: random.Random) -> Arguments:
    """A sample call with one or two of its arguments replaced."""
    args, kwargs = list(sample[0]), dict(sample[1])
    for _ in range(rng.choice([1, 1, 2])):
        place = rng.randrange(len(args) + len(kwargs))
        if place < len(args):
            args[place] = anything(rng)
        else:
            kwargs[list(kwargs)[place - len(args)]] = anything(rng)
    return args, kwargs


def stretched(function: Callable[..., Any], sample: Arguments, rng: random.Random) -> Arguments:
    """A sample call with one to three arguments at a limit, among them options that the sample leaves out."""
    args, kwargs = list(sample[0]), dict(sample[1])
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    parameters = [p.name for p in inspect.signature(function).parameters.values() if p.kind in named]
    left_out = [name for name in parameters[len(args) :] if name not in kwargs]
    places: list[int | str] = [*range(len(args)), *kwargs, *left_out]
    for place in rng.sample(places, min(len(places), rng.choice([1, 1, 2, 3]))):
        if isinstance(place, int):
            args[place] = extreme(rng)
        else:
            kwargs[place] = extreme(rng)
    return args, kwargs


def brief(value: Any) -> str:
    """A value in one line."""
    try:
        return " ".join(repr(value).split())
    except RuntimeError:
        return f"<{type(value).__name__}>"


def told(name: str, call: Arguments) -> str:
    """A call as one would write it."""
    args, kwargs = call
    return f"{name}({', '.join([*map(brief, args), *(f'{key}={brief(value)}' for key, value in kwargs.items())])})"
