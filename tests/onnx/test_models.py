"""Every model out, in again and out once more: the same numbers, the same file, and a step of training like the original's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import extensor as et
from extensor import models
from extensor.kernels import NATIVE
from extensor.onnx import export, load
from extensor.onnx.runtime import run_in_runtime

RTOL = 1e-5  # of the largest output
TOKENS = et.random.integers(0, 0, 17, (2, 6))
FREE = {"tokens": {0: "batch", 1: "time"}}

MODELS: dict[str, tuple[Callable[[], Any], et.ExTensor, Any]] = {
    "MLP": (lambda: models.MLP((6, 8, 8, 3), rng=0), et.random.normal(0, (4, 6)), True),
    "LeNet5": (lambda: models.LeNet5(rng=0), et.random.normal(0, (2, 1, 28, 28)), True),
    "ResNet20": (lambda: models.ResNet20(rng=0), et.random.normal(0, (2, 3, 16, 16)), True),
    "GPT": (lambda: models.GPT(17, 12, n_layer=2, n_head=2, n_embd=8, rng=0), TOKENS, FREE),
    "Llama": (
        lambda: models.Llama(17, 12, n_layer=2, n_head=4, n_embd=16, n_kv_head=2, rng=0),
        TOKENS,
        FREE,
    ),
    "LSTMLanguageModel": (lambda: models.LSTMLanguageModel(17, 6, 5, 2, rng=0), TOKENS, FREE),
}
# Those whose layers are one operator each there; the others are spelt in other operators, and rounded in other places.
SAME_OPERATIONS = ("MLP", "LeNet5", "ResNet20", "GPT")


def test_every_model_is_here() -> None:
    assert set(MODELS) == set(models.__all__)


def first_of(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def as_written(path: Path) -> tuple[list[str], dict[str, bytes]]:
    """The operators in order, and the tensors by name."""
    graph = onnx.load(path).graph
    return [node.op_type for node in graph.node], {t.name: t.raw_data for t in graph.initializer}


@pytest.mark.parametrize("name", list(MODELS))
def test_out_in_and_out_again(name: str, tmp_path: Path) -> None:
    make, x, free = MODELS[name]
    model = make().eval()
    written = [export(model, tmp_path / "0.onnx", x, dynamic_axes=free)]
    for i in (1, 2):
        again = load(written[-1].path)
        written.append(export(again, tmp_path / f"{i}.onnx", x, dynamic_axes=free))
    for each in written:
        assert each.difference is not None
        assert each.difference < RTOL
    assert as_written(written[2].path) == as_written(written[1].path)
    if name == "MLP":
        assert as_written(written[1].path) == as_written(written[0].path)


@pytest.mark.parametrize("name", list(MODELS))
def test_other_lengths(name: str, tmp_path: Path) -> None:
    """Axes that were said to be free are so in every file: batches of 3, and sequences of 11 and of 1."""
    make, x, free = MODELS[name]
    model = make().eval()
    first = export(model, tmp_path / "first.onnx", x, dynamic_axes=free)
    second = export(load(first.path), tmp_path / "second.onnx", x, dynamic_axes=free)
    for length in (11, 1) if free is FREE else (None,):
        shape = (3, *x.shape[1:]) if length is None else (3, length)
        other = np.resize(x.numpy(), shape)
        expected = first_of(model(et.asarray(other))).numpy()
        for file in (first, second):
            found = run_in_runtime(file.path, {file.inputs[0]: other})[0]
            np.testing.assert_allclose(found, expected, rtol=0, atol=RTOL * np.abs(expected).max())


@pytest.mark.parametrize("name", list(MODELS))
def test_a_step_of_training_is_that_of_the_original(name: str, tmp_path: Path) -> None:
    make, x, free = MODELS[name]
    ours = make()
    export(ours, tmp_path / "net.onnx", x, dynamic_axes=free)
    theirs = load(tmp_path / "net.onnx")
    outputs = []
    for net in (ours, theirs):
        net.train()
        optimizer = et.optim.SGD(net.parameters(), lr=0.1)
        (first_of(net(x)) ** 2).mean().backward()
        optimizer.step()
        outputs.append(first_of(net.eval()(x)).numpy())
    mine, other = (dict(net.named_parameters()) for net in (ours, theirs))
    if name != "LSTMLanguageModel":  # ONNX stacks the weights of an LSTM
        assert set(mine) == set(other)
    for parameter in set(mine) & set(other):
        a, b = mine[parameter].numpy(), other[parameter].numpy()
        if (
            name in SAME_OPERATIONS and "matmul" in NATIVE
        ):  # NumPy's products round by the layout of their operands
            assert a.tobytes() == b.tobytes()
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-6 * np.abs(a).max())
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=0, atol=RTOL * np.abs(outputs[0]).max())
