"""The standard's own test suite: every case passes, or is refused by the name of its operator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner, _normalize_tensor

from extensor.onnx import Backend

REFUSED = {"ImageDecoder", "Gradient"}  # operators

# Cases no implementation can be held to: their numbers are random, or are themselves a rounding error.
NOT_HELD = {
    "test_attention_4d_causal_fp16": "expects float16 sums; ours are float32, rounded once",
    "test_attention_4d_causal_fp16_expanded": "expects float16 sums; ours are float32, rounded once",
    "test_bernoulli": "random",
    "test_bernoulli_expanded": "random",
    "test_bernoulli_double": "random",
    "test_bernoulli_double_expanded": "random",
    "test_bernoulli_seed": "random",
    "test_bernoulli_seed_expanded": "random",
    "test_dft_inverse": "expects 2e-7 where the answer is 0",
    "test_dft_inverse_opset19": "expects 2e-7 where the answer is 0",
    "test_loop16_seq_none": "the runner cannot compare a list that holds a number",
}


def cases(kind: str) -> Iterator[tuple[str, Any, list[tuple[list[Any], list[Any]]], float, float]]:
    """Name, model (or its path), inputs and outputs, and tolerances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind=kind)
    for case in found:
        if case.model_dir is None:
            data = [
                tuple([_normalize_tensor(v) for v in part] for part in pair) for pair in case.data_sets or []
            ]
            yield case.name, case.model, data, case.rtol, case.atol  # type: ignore[misc]
        else:
            yield (
                case.name,
                Path(case.model_dir, "model.onnx"),
                stored(Path(case.model_dir)),
                case.rtol,
                case.atol,
            )


def stored(folder: Path) -> list[tuple[list[Any], list[Any]]]:
    """The data of a case that comes as files."""
    graph = onnx.load(folder / "model.onnx").graph
    found = []
    for data in sorted(folder.glob("test_data_set_*")):
        count = len(list(data.glob("input_*.pb")))
        inputs = [value(data / f"input_{i}.pb", graph.input[i]) for i in range(count)]
        results = len(list(data.glob("output_*.pb")))
        found.append((inputs, [value(data / f"output_{i}.pb", graph.output[i]) for i in range(results)]))
    return found


def value(path: Path, about: Any) -> Any:
    if about.type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    if about.type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(path.read_bytes()))
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def outcome(model: Any, data: Any, rtol: float, atol: float) -> str | None:
    """None if the case passes, or why it does not; a refusal is the name of the operator."""
    try:
        prepared = Backend.prepare(model)
    except NotImplementedError as error:
        return next((f"refused {name}" for name in REFUSED if f"{name})" in str(error)), str(error))
    for inputs, expected in data:
        try:
            with np.errstate(all="ignore"):
                found = prepared.run(inputs)
            Runner.assert_similar_outputs(expected, found, rtol, atol)
        except (AssertionError, TypeError, ValueError, IndexError) as error:
            return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "passing"), [("node", 1864), ("simple", 21), ("pytorch-converted", 82), ("pytorch-operator", 35)]
)
def test_suite(kind: str, passing: int) -> None:
    """A newer suite may have more cases; what passed once must pass."""
    passed, wrong = 0, {}
    for name, model, data, rtol, atol in cases(kind):
        problem = outcome(model, data, rtol, atol)
        passed += problem is None
        if problem is not None and not problem.startswith("refused") and name not in NOT_HELD:
            wrong[name] = problem
    assert not wrong
    assert passed >= passing
