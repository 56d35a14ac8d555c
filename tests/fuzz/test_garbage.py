"""Every public function, driven with garbage: it answers, or it raises what the documents promise.

The promise: MemoryError, or ValueError, TypeError or NotImplementedError with a text that starts with ``[``, no warning, no
argument changed. Half of the calls are garbage throughout; the others are sample calls of the registry with
one or two arguments spoiled, which get past the first checks.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fuzz_calls import Arguments, from_scratch, samples, spoiled, told
from public_functions import public_functions
from sample_calls import OF_FUNCTIONS, WITHOUT_ARGUMENTS

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


def contents(value: Any) -> Any:
    """The bytes of the arrays in an argument."""
    if isinstance(value, et.ExTensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else value.tobytes()
    return [contents(v) for v in value] if isinstance(value, (list, tuple)) else None


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
            broken.setdefault(problem, told(name, (args, kwargs)))
    if broken:
        pytest.fail("\n".join(f"{call}\n    {problem}" for problem, call in broken.items()), pytrace=False)
