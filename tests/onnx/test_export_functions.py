"""Every function that can be exported at its sample inputs, in ONNX Runtime; the others are refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import extensor as et
from extensor.onnx import export, load
from extensor.onnx.emit import EXPORTERS
from extensor.onnx.exporters import DECOMPOSITIONS
from extensor.onnx.trace import tensors_in
from extensor.testing.registry import Case, Draw
from extensor.testing.samples import PAIRS

RTOL = 1e-5  # of the largest output

# No operator of ONNX, and no formula of operators that would be the same function.
WITHOUT = {
    "dropout": "random",
    "sum_to_shape": "part of gradients",
    "lstm_sequence": "ONNX gives no gates; nn.LSTM is exported",
}


def as_call(name: str, case: Case) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the floating arrays of a case, and those arrays; the rest is fixed."""
    arrays: list[Any] = []

    def slots(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype == np.float64:
            arrays.append(et.tensor(value.astype(np.float32)))
            return _Slot(len(arrays) - 1)
        if isinstance(value, (list, tuple)) and not isinstance(value, str):
            return type(value)(map(slots, value))
        return value

    args = tuple(map(slots, case.args))
    kwargs = {key: slots(value) for key, value in case.kwargs.items()}

    def filled(value: Any, inputs: Any) -> Any:
        if isinstance(value, _Slot):
            return inputs[value.number]
        if isinstance(value, (list, tuple)) and not isinstance(value, str):
            return type(value)(filled(v, inputs) for v in value)
        return value

    def call(*inputs: Any) -> Any:
        return attrgetter(name)(et)(
            *filled(args, inputs), **{k: filled(v, inputs) for k, v in kwargs.items()}
        )

    return call, arrays


class _Slot:
    def __init__(self, number: int) -> None:
        self.number = number


def cases(name: str) -> Iterator[Case]:
    """Few enough to be quick: every fourth, and the first."""
    for i, case in enumerate(PAIRS[name].cases(Draw([1, len(name)]))):
        if i % 4 == 0:
            yield case


KNOWN = EXPORTERS.keys() | DECOMPOSITIONS.keys()


@pytest.mark.parametrize(
    "name", [name for name in PAIRS if name.split(".")[-1] in KNOWN and name not in WITHOUT]
)
def test_agrees_with_the_runtime(name: str, tmp_path: Path) -> None:
    for number, case in enumerate(cases(name)):
        call, inputs = as_call(name, case)
        expected = [t.numpy() for t in tensors_in(call(*inputs))]
        if not inputs or any(not x.size for x in inputs) or any(not e.size for e in expected):
            continue  # runtimes differ about empty tensors
        path = tmp_path / f"{number}.onnx"
        written = export(call, path, *inputs, dynamic_axes=False)
        assert written.difference is not None
        assert written.difference < RTOL, f"{case}: {[n.op_type for n in onnx.load(path).graph.node]}"
        found = [t.numpy() for t in tensors_in(load(path)(*inputs))]
        for ours, theirs in zip(expected, found):
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", list(WITHOUT))
def test_what_has_no_operator_is_named(name: str, tmp_path: Path) -> None:
    call, inputs = as_call(name, next(iter(cases(name))))
    with pytest.raises(
        (NotImplementedError, ValueError), match=rf"\[export\].*{name.split('_', maxsplit=1)[0]}"
    ):
        export(call, tmp_path / "f.onnx", *inputs, dynamic_axes=False)


@pytest.mark.parametrize("function", [et.erfinv, et.median, et.linalg.inv])
def test_functions_of_no_exporter_are_named(function: Any, tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=rf"\[export\] {function.__name__} has no ONNX operator"):
        export(function, tmp_path / "f.onnx", et.eye(2) * 0.5, dynamic_axes=False)
