"""What you read is what runs: every call gives what the body of its function gives, whatever was called before.

Each op is driven with good and garbage arguments (numbers, wrong shapes, ``()`` and extra leading axes upstream, mixed dtypes,
odd options). A call is made by the body alone and then three times by the usual way: by its body, making a plan, repeating it;
and repeating it with other elements, another layout or other numbers in the same kind of call. The outcomes must be the same:
bits, shapes, dtypes, what is recorded, and the type and text of exceptions.

``EXTENSOR_FUZZ_CALLS`` is the number of calls for each function, ``EXTENSOR_FUZZ_SEED`` where they start.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz_calls import Arguments, from_scratch, samples, spoiled, told
from public_functions import public_functions

import extensor as et
from extensor.graph import Backward, Op, Undifferentiated, clear_plans, no_grad, run_bodies
from extensor.nn import Parameter

pytest.importorskip("extensor._native", reason="without the native core there are no plans")

CALLS = int(os.environ.get("EXTENSOR_FUZZ_CALLS", "60"))
SEED = int(os.environ.get("EXTENSOR_FUZZ_SEED", "0"))
OPS = {name: f for name, f in public_functions().items() if isinstance(f, (Op, Backward, Undifferentiated))}


class Description:
    """Everything that tells two outcomes apart: elements, and what the results remember of their calls."""

    def __init__(self) -> None:
        self.nodes: dict[int, int] = {}
        self.calls: list[Any] = []

    def of(self, value: Any) -> Any:
        if isinstance(value, et.ExTensor):
            array = value.numpy()
            history = id(value) if value.is_leaf and value.requires_grad else self.node(value._node)
            return ("tensor", array.shape, str(array.dtype), array.tobytes(), value.requires_grad, history)
        if isinstance(value, (tuple, list)):
            return (type(value).__name__, [self.of(v) for v in value])
        return value if value is None else (type(value).__name__, repr(value))

    def node(self, node: Any) -> Any:
        """The number of a node, or of a leaf; a node is described when it is first met."""
        if node is None or isinstance(node, et.ExTensor):
            return id(node)
        if not hasattr(node, "saved"):  # one of several results
            return (node.output, self.node(node.node))
        if id(node) not in self.nodes:
            self.nodes[id(node)] = len(self.nodes)
            options = sorted((node.options or {}).items(), key=lambda item: item[0])
            outputs = node.outputs and [d and (d[0], str(d[1])) for d in node.outputs]
            edges = [self.node(edge) for edge in node.edges]
            saved = [self.of(v) for v in node.saved]
            self.calls.append(
                (node.op.__name__, edges, saved, repr(options), str(node.casts), node.shape, outputs)
            )
        return self.nodes[id(node)]


def generators(value: Any) -> list[np.random.Generator]:
    """The generators among the arguments: every call must find them where they were."""
    if isinstance(value, np.random.Generator):
        return [value]
    values = list(value.values()) if type(value) is dict else value if type(value) in (list, tuple) else []
    return [generator for v in values for generator in generators(v)]


def outcome(function: Callable[..., Any], call: Arguments) -> Any:
    args, kwargs = call
    try:
        result = function(*args, **kwargs)
        description = Description()
        return description.of(result), description.calls
    except Exception as error:
        return (type(error).__name__, str(error))


def upstream(call: Arguments, rng: random.Random) -> Arguments:
    """A call of a backward with another gradient arriving: a number, a scalar, more axes, another dtype."""
    (grad, *rest), kwargs = call
    if not isinstance(grad, et.ExTensor):
        return call
    other = [
        lambda: 1.0,
        lambda: 2,
        lambda: et.tensor(0.5),
        lambda: et.tensor(np.ones((4, *grad.shape), grad.dtype)),
        lambda: et.tensor(np.ones(grad.shape[1:], grad.dtype)),
        lambda: grad.detach().astype(rng.choice(["float16", "float32", "float64", "int32"])),
        lambda: grad.numpy(),
        lambda: et.tensor(grad, requires_grad=grad.dtype.kind not in "biu"),
    ]
    return [rng.choice(other)(), *rest], kwargs


def recast(call: Arguments, rng: random.Random) -> Arguments:
    """The same call with a tensor of another dtype or rank, a parameter, or one that wants a gradient."""

    def changed(value: Any) -> Any:
        if not isinstance(value, et.ExTensor) or rng.random() < 0.5:
            return value
        floating = value.dtype.kind not in "biu"
        made = [
            lambda: value.detach().astype(rng.choice(["float16", "float32", "float64", "int64", "bool"])),
            lambda: et.tensor(value, requires_grad=floating),
            lambda: Parameter(value) if floating and value.dtype.kind != "c" else value,
            lambda: value[None],
            lambda: value.numpy(),
            lambda: value.tolist(),
        ]
        with np.errstate(all="ignore"):
            return rng.choice(made)()

    args, kwargs = call
    return [changed(v) for v in args], {k: changed(v) for k, v in kwargs.items()}


def alike(value: Any, rng: random.Random) -> Any:
    """Another argument of the same kind: other elements, another layout, another number."""
    if isinstance(value, et.ExTensor):
        with np.errstate(all="ignore"):
            array = (
                np.random.default_rng(rng.getrandbits(32))
                .normal(scale=2, size=value.shape)
                .astype(value.dtype)
            )
        if rng.random() < 0.3:
            array = value.numpy()
        if rng.random() < 0.3 and array.ndim > 1:
            array = np.asfortranarray(array)
        return et.tensor(array, requires_grad=value.requires_grad)
    if type(value) is float and rng.random() < 0.5:
        return rng.choice([0.0, 1.5, -2.0, 1e300, float("nan"), float("inf")])
    if type(value) in (list, tuple):
        return type(value)(alike(v, rng) for v in value)
    return value


def difference(function: Any, call: Arguments) -> str | None:
    """What the usual way of a call does otherwise than its body; None if nothing."""
    states = [(generator, generator.bit_generator.state) for generator in generators(call)]
    with run_bodies():
        expected = outcome(function, call)
    for _ in range(3):  # the body, the making of a plan, its repetition
        for generator, state in states:
            generator.bit_generator.state = state
        found = outcome(function, call)
        if found != expected:
            return f"gives {found}\n    but its body {expected}"
    return None


def calls(name: str, function: Any, count: int) -> Any:
    """Random calls, each followed by others of its kind."""
    rng = random.Random(zlib.crc32(f"road {name} {SEED}".encode()))
    good = samples(name.rpartition(".")[2], SEED)
    for i in range(count):
        call = from_scratch(function, rng)
        if good and i % 4:
            call = rng.choice(good)
            if i % 4 == 1:
                call = spoiled(call, rng)
            elif i % 4 == 2:
                call = recast(call, rng)
            if name.endswith("_backward") and rng.random() < 0.3:
                call = upstream(call, rng)
        yield call
        args, kwargs = call
        for _ in range(2):
            yield [alike(v, rng) for v in args], {k: alike(v, rng) for k, v in kwargs.items()}


@pytest.mark.parametrize(("name", "op"), OPS.items(), ids=OPS)
def test_calls_do_what_the_body_says(name: str, op: Any) -> None:
    drive(name, op, CALLS)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("name", "op"), OPS.items(), ids=OPS)
def test_calls_do_what_the_body_says_under_autocast(name: str, op: Any, dtype: str) -> None:
    with et.autocast(dtype):
        drive(name, op, CALLS // 6)


def drive(name: str, op: Any, count: int) -> None:
    rng = random.Random(SEED)
    found: dict[str, str] = {}
    with np.errstate(all="ignore"):
        for call in calls(name, op, count):
            if rng.random() < 0.01:
                clear_plans()
            if rng.random() < 0.2:
                with no_grad():
                    problem = difference(op, call)
            else:
                problem = difference(op, call)
            if problem:
                found.setdefault(problem, told(name, call))
    if found:
        pytest.fail(
            "\n".join(f"{call}\n    {problem}" for problem, call in list(found.items())[:5]), pytrace=False
        )
