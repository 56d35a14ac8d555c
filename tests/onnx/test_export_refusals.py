"""What cannot be said in ONNX is refused with a reason, not exported wrongly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import extensor as et
from extensor.onnx import export
from extensor.onnx.runtime import run_in_runtime


def test_values_read_from_the_inputs(tmp_path: Path) -> None:
    def scaled(x: et.ExTensor) -> et.ExTensor:
        return x * np.abs(x.numpy())

    with pytest.raises(ValueError, match="computed from the inputs outside of recorded functions"):
        export(scaled, tmp_path / "f.onnx", et.tensor([[1.0, 2.0]]), dynamic_axes=False)


def test_numbers_read_from_the_inputs(tmp_path: Path) -> None:
    def shifted(x: et.ExTensor) -> et.ExTensor:
        return x + float(x[0, 0].item())

    with pytest.raises(ValueError, match="add depends on"):
        export(shifted, tmp_path / "f.onnx", et.tensor([[1.0, 2.0]]), dynamic_axes=False)


def test_branches_on_values(tmp_path: Path) -> None:
    def branched(x: et.ExTensor) -> et.ExTensor:
        return et.relu(x) if x[0, 0].item() < 1.5 else et.exp(x)

    with pytest.raises(ValueError, match="the functions that are called depend on the inputs"):
        export(branched, tmp_path / "f.onnx", et.tensor([[1.0, 2.0]]), dynamic_axes=False)


def test_a_model_of_one_size(tmp_path: Path) -> None:
    def fixed(x: et.ExTensor) -> et.ExTensor:
        return x.reshape((2, 3))

    with pytest.raises(ValueError, match="does not run with another length of 'batch' than 1"):
        export(fixed, tmp_path / "f.onnx", et.ones((1, 6)))
    assert export(fixed, tmp_path / "f.onnx", et.ones((1, 6)), dynamic_axes=False).outputs == ["output"]


def test_random_functions(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="dropout has no ONNX operator"):
        export(lambda x: et.dropout(x, 0.5, 0).output, tmp_path / "f.onnx", et.ones((2, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": 11}, "opset must lie between 17 and 23"),
        ({"dynamic_axes": {"y": {0: "n"}}}, "names the input 'y'"),
        ({"dynamic_axes": {0: {5: "n"}}}, "has no axis 5"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        export(et.relu, tmp_path / "f.onnx", et.ones((2, 3)), **options)  # type: ignore[arg-type]


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="must be a module or a function"):
        export(3, tmp_path / "f.onnx")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="opset must be an int"):
        export(et.relu, tmp_path / "f.onnx", et.ones(2), opset=20.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="path must be"):
        export(et.relu, 3, et.ones(2))


def test_comparisons_are_part_of_the_graph(tmp_path: Path) -> None:
    """Functions without gradients are recorded too; else a mask would be a constant of the sample."""

    def chosen(x: et.ExTensor) -> et.ExTensor:
        return et.where(et.greater(x, 0.5), x, -x) + et.astype(et.argmax(x, -1, True), "float32")

    written = export(chosen, tmp_path / "f.onnx", et.tensor([[1.0, 0.0]]))
    other = np.array([[0.2, 0.9], [3.0, -1.0]], np.float32)
    np.testing.assert_allclose(
        run_in_runtime(written.path, {"x": other})[0], chosen(et.tensor(other)).numpy()
    )


def test_names_follow_the_model(tmp_path: Path) -> None:
    net = et.nn.Sequential(et.nn.Linear(3, 2, rng=0), et.nn.ReLU())
    written = export(net, tmp_path / "f.onnx", et.ones((1, 3)), metadata={"task": "none"})
    model = onnx.load(written.path)
    assert [t.name for t in model.graph.initializer] == ["0.weight", "0.bias"]
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [
        "batch",
        3,
    ]
    assert {p.key: p.value for p in model.metadata_props} == {"task": "none"}
    assert model.opset_import[0].version == written.opset == 20


def test_several_free_lengths(tmp_path: Path) -> None:
    def joined(a: et.ExTensor, b: et.ExTensor) -> et.ExTensor:
        n, m = a.shape[0], b.shape[0]
        return (a.reshape((n, 1, 4)) * b.reshape((1, m, 4))).reshape((n * m, 4))

    axes = {"a": {0: "rows"}, "b": {0: "columns"}}
    written = export(joined, tmp_path / "f.onnx", et.ones((2, 4)), et.ones((3, 4)), dynamic_axes=axes)
    a, b = et.random.normal(0, (5, 4)), et.random.normal(1, (7, 4))
    found = run_in_runtime(written.path, {"a": a.numpy(), "b": b.numpy()})[0]
    np.testing.assert_allclose(found, joined(a, b).numpy(), rtol=1e-6)


def test_a_query_that_may_see_nothing_gives_0(tmp_path: Path) -> None:
    q, k, v = (et.random.normal(i, (1, 3, 4)) for i in range(3))
    seen = np.array([[True, False, True], [False, False, False], [True, True, True]])

    def attended(q: et.ExTensor, k: et.ExTensor, v: et.ExTensor) -> et.ExTensor:
        return et.scaled_dot_product_attention(q, k, v, et.tensor(seen))

    written = export(attended, tmp_path / "f.onnx", q, k, v)
    assert written.difference is not None
    assert written.difference < 1e-6
    assert not run_in_runtime(written.path, {"q": q.numpy(), "k": k.numpy(), "v": v.numpy()})[0][0, 1].any()
