"""Every public function, driven with garbage: it answers, or it raises what the documents promise.

The promise: MemoryError, or ValueError, TypeError or NotImplementedError with a text that starts with ``[``, no warning, no
argument changed. Half of the calls are garbage throughout; the others are sample calls of the registry with
one or two arguments spoiled, which get past the first checks.
"""

from __future__ import annotations

import inspect
import os
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from garbage import anything
from public_functions import public_functions
from sample_calls import OF_FUNCTIONS, WITHOUT_ARGUMENTS, as_tensors, ones_like

import extensor as et
from extensor.graph import Op
from extensor.testing.registry import Draw
from extensor.testing.samples import PAIRS

CALLS = int(os.environ.get("EXTENSOR_FUZZ_CALLS", "300"))
SEED = int(os.environ.get("EXTENSOR_FUZZ_SEED", "0"))
PROMISED = (ValueError, TypeError, NotImplementedError)

FUNCTIONS = {
    name: function
    for name, function in public_functions().items()
    if name.rpartition(".")[2] not in OF_FUNCTIONS | WITHOUT_ARGUMENTS | {"set_num_threads"}
    and not name.startswith(
        ("extensor.data.", "extensor.optim.", "extensor.report.", "extensor.testing.", "extensor.train.")
    )
}

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


def samples(name: str) -> list[Arguments]:
    """The sample calls of a function of the registry, or of its backward."""
    forward = name.removesuffix("_backward")
    if forward not in PAIRS:
        return []
    op: Op = getattr(et, forward)
    found = []
    for case in list(PAIRS[forward].cases(Draw(SEED)))[:12]:
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


def calls(name: str, function: Callable[..., Any]) -> Iterator[Arguments]:
    rng = random.Random(zlib.crc32(f"{name} {SEED}".encode()))
    good = samples(name.rpartition(".")[2])
    for i in range(CALLS):
        yield spoiled(rng.choice(good), rng) if good and i % 2 else from_scratch(function, rng)


def contents(value: Any) -> Any:
    """The bytes of the arrays in an argument."""
    if isinstance(value, et.ExTensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else value.tobytes()
    return [contents(v) for v in value] if isinstance(value, (list, tuple)) else None


def brief(value: Any) -> str:
    try:
        return " ".join(repr(value).split())
    except RuntimeError:
        return f"<{type(value).__name__}>"


def broken_promise(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """What is wrong with the answer to a call; None if nothing is."""
    before = contents([*args, *kwargs.values()])
    try:
        function(*args, **kwargs)
    except MemoryError:
        return None  # sizes that no machine has
    except PROMISED as error:
        if not str(error).startswith("["):
            return f"raised {type(error).__name__}: {error}"
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    return None if contents([*args, *kwargs.values()]) == before else "changed an argument"


@pytest.mark.parametrize(("name", "function"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_only_documented_exceptions(name: str, function: Callable[..., Any]) -> None:
    broken: dict[str, str] = {}
    for args, kwargs in calls(name, function):
        problem = broken_promise(function, args, kwargs)
        if problem:
            told = [*map(brief, args), *(f"{key}={brief(value)}" for key, value in kwargs.items())]
            broken.setdefault(problem, f"{name}({', '.join(told)})")
    if broken:
        pytest.fail("\n".join(f"{call}\n    {problem}" for problem, call in broken.items()), pytrace=False)
