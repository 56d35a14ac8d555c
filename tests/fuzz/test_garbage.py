"""Every public function, driven with garbage: it answers, or it raises what the documents promise.

The promise: MemoryError, or ValueError, TypeError or NotImplementedError with a text that starts with ``[``, no warning, no
argument changed. Half of the calls are garbage throughout; the others are sample calls of the registry with
one or two arguments spoiled, which get past the first checks. A second search takes sample calls with arguments at the limits
of numbers, lists and arrays, among them options that the samples leave out.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fuzz_calls import Arguments, from_scratch, samples, spoiled, stretched, told
from public_functions import public_functions
from sample_calls import OF_FUNCTIONS, OTHERS, WITHOUT_ARGUMENTS, arranged

import extensor as et

CALLS = int(os.environ.get("EXTENSOR_FUZZ_CALLS", "300"))
SEED = int(os.environ.get("EXTENSOR_FUZZ_SEED", "0"))
PROMISED = (ValueError, TypeError, NotImplementedError)

FUNCTIONS = {
    name: function
    for name, function in public_functions().items()
    if name.rpartition(".")[2] not in OF_FUNCTIONS | WITHOUT_ARGUMENTS | {"set_num_threads"}
    and not name.startswith(
        (
            "extensor.convert.",
            "extensor.data.",
            "extensor.onnx.",
            "extensor.optim.",
            "extensor.report.",
            "extensor.testing.",
            "extensor.train.",
        )
    )
}


def calls(name: str, function: Callable[..., Any]) -> Iterator[Arguments]:
    rng = random.Random(zlib.crc32(f"{name} {SEED}".encode()))
    good = samples(name.removeprefix("extensor."), SEED)
    for i in range(CALLS):
        yield spoiled(rng.choice(good), rng) if good and i % 2 else from_scratch(function, rng)


def calls_at_limits(name: str, function: Callable[..., Any]) -> Iterator[Arguments]:
    rng = random.Random(zlib.crc32(f"{name} {SEED} at limits".encode()))
    short = name.removeprefix("extensor.")
    good = [arranged(function, OTHERS[short])] if short in OTHERS else samples(short, SEED)
    for _ in range(CALLS if good else 0):
        yield stretched(function, rng.choice(good), rng)


def contents(value: Any, depth: int = 0) -> Any:
    """The bytes of the arrays in an argument."""
    if isinstance(value, et.ExTensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject or isinstance(value, np.ma.MaskedArray) else value.tobytes()
    if isinstance(value, (list, tuple)) and depth < 9:  # a list may hold itself
        return [contents(v, depth + 1) for v in value]
    return None


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


@pytest.mark.parametrize("drawn", [calls, calls_at_limits])
@pytest.mark.parametrize(("name", "function"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_only_documented_exceptions(
    name: str, function: Callable[..., Any], drawn: Callable[..., Iterator[Arguments]]
) -> None:
    broken: dict[str, str] = {}
    for args, kwargs in drawn(name, function):
        problem = broken_promise(function, args, kwargs)
        if problem:
            broken.setdefault(problem, told(name, (args, kwargs)))
    if broken:
        pytest.fail("\n".join(f"{call}\n    {problem}" for problem, call in broken.items()), pytrace=False)
