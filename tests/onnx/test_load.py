"""Networks of other programs: what they compute, how they train, how they read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import extensor as et
from extensor import nn, optim
from extensor.onnx import export, load

FLOAT = TensorProto.FLOAT


def tensor(name: str, values: Any, dtype: Any = np.float32) -> Any:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def model_of(
    nodes: list[Any], inputs: dict[str, Any], outputs: list[str], tensors: list[Any], **options: Any
) -> Any:
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, FLOAT, None) for n in outputs], tensors,
    )  # fmt: skip
    opset = options.pop("opset", 20)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **options)


def perceptron() -> Any:
    nodes = [
        helper.make_node("Gemm", ["x", "hidden.weight", "hidden.bias"], ["h"], name="/hidden/Gemm", transB=1),
        helper.make_node("Relu", ["h"], ["a"], name="/act/Relu"),
        helper.make_node("Gemm", ["a", "out.weight", "out.bias"], ["y"], name="/out/Gemm", transB=1),
    ]
    draw = np.random.default_rng(0).normal
    tensors = [
        tensor("hidden.weight", draw(size=(8, 3))), tensor("hidden.bias", draw(size=8)),
        tensor("out.weight", draw(size=(2, 8))), tensor("out.bias", draw(size=2)),
    ]  # fmt: skip
    return model_of(nodes, {"x": ["batch", 3]}, ["y"], tensors)


def test_names_follow_the_file() -> None:
    net = load(perceptron())
    assert [n for n, _ in net.named_parameters()] == [
        "hidden.weight",
        "hidden.bias",
        "out.weight",
        "out.bias",
    ]
    assert net.input_names == ["x"]
    assert net.output_names == ["y"]
    assert not net.training


def test_summary_reads_like_a_network_of_ours() -> None:
    text = str(load(perceptron()).summary(et.ones((5, 3))))
    assert [line.split()[:2] for line in text.splitlines()[2:5]] == [
        ["hidden", "Gemm"],
        ["act", "Relu"],
        ["out", "Gemm"],
    ]
    assert "(5, 8)" in text
    assert "50 parameters" in text


def test_source_gives_the_same_bits() -> None:
    net, x = load(perceptron()), et.random.normal(1, (4, 3))
    source = net.source(x)
    assert source.startswith("from extensor import linear, relu\n")
    space: dict[str, Any] = {}
    exec(source, space)
    found = space["forward"](x, net.state_dict())
    assert found.numpy().tobytes() == net(x).numpy().tobytes()


def test_source_needs_no_sample() -> None:
    assert "# (2, 8)" in load(perceptron()).source()


class TestTraining:
    def test_one_step_is_the_same_bits_as_the_original(self, tmp_path: Path) -> None:
        ours = nn.Sequential(nn.Conv2d(1, 4, 3, rng=0), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3, rng=1))
        x, labels = et.random.normal(0, (6, 1, 8, 8)), et.random.integers(1, 0, 3, (6,))
        export(ours, tmp_path / "net.onnx", x)
        theirs = load(tmp_path / "net.onnx").train()
        for net in (ours, theirs):
            optimizer = optim.AdamW(net.parameters(), lr=1e-2)
            et.cross_entropy(net(x), labels).backward()
            optimizer.step()
        mine = {n: p.numpy().tobytes() for n, p in ours.named_parameters()}
        assert {n: p.numpy().tobytes() for n, p in theirs.named_parameters()} == mine

    def test_batch_norm_follows_the_batches(self, tmp_path: Path) -> None:
        ours = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False, rng=0), nn.BatchNorm2d(4))
        x = et.random.normal(0, (6, 1, 8, 8))
        export(ours, tmp_path / "net.onnx", x)
        theirs = load(tmp_path / "net.onnx").train()
        ours.train()
        assert ours(x).numpy().tobytes() == theirs(x).numpy().tobytes()
        before = dict(ours.named_buffers())
        for name in ("1.running_mean", "1.running_var"):
            after = dict(theirs.named_buffers())[name].numpy()
            np.testing.assert_allclose(after, before[name].numpy(), rtol=1e-6)

    def test_constants_of_an_export_are_not_trained(self, tmp_path: Path) -> None:
        def scaled(x: et.ExTensor) -> et.ExTensor:
            return x * et.tensor([1.0, 2.0, 3.0])

        export(scaled, tmp_path / "fn.onnx", et.ones((2, 3)))
        assert not list(load(tmp_path / "fn.onnx").parameters())


class TestRefusals:
    def test_every_unknown_operator_is_named_with_its_node(self) -> None:
        nodes = [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("Mystery", ["a"], ["b"], name="first"),
            helper.make_node("Puzzle", ["b"], ["y"], name="second"),
        ]
        with pytest.raises(NotImplementedError, match=r"'first' \(Mystery\).*'second' \(Puzzle\)"):
            load(model_of(nodes, {"x": [2]}, ["y"], []))

    def test_an_unknown_attribute(self) -> None:
        node = helper.make_node("Relu", ["x"], ["y"], name="r", sharpness=2)
        with pytest.raises(NotImplementedError, match=r"'r' \(Relu\) has the attribute 'sharpness'"):
            load(model_of([node], {"x": [2]}, ["y"], []))

    def test_a_newer_operator_set(self) -> None:
        with pytest.raises(NotImplementedError, match="operator set 99"):
            load(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"], [], opset=99))

    def test_wrong_inputs(self) -> None:
        net = load(perceptron())
        with pytest.raises(ValueError, match=r"input 'x' must have shape \('\?', 3\), got \(2, 4\)"):
            net(et.ones((2, 4)))
        with pytest.raises(TypeError, match="input 'x' must have dtype float32, got float64"):
            net(et.ones((2, 3), et.float64))
        with pytest.raises(ValueError, match=r"takes 1 inputs \(x\), got 2"):
            net(et.ones((2, 3)), et.ones((2, 3)))

    def test_neither_path_nor_bytes(self) -> None:
        with pytest.raises(TypeError, match="path_or_bytes must be a path or bytes"):
            load(3)
        with pytest.raises(FileNotFoundError, match="there is no file nowhere"):
            load("nowhere.onnx")
        with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
            load(".")


def test_functions_of_the_model_are_called() -> None:
    double = helper.make_function(
        "mine",
        "Double",
        ["v"],
        ["w"],
        [helper.make_node("Add", ["v", "v"], ["w"])],
        [helper.make_opsetid("", 20)],
    )
    node = helper.make_node("Double", ["x"], ["y"], domain="mine")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2])],
        [helper.make_tensor_value_info("y", FLOAT, [2])],
    )
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, functions=[double], opset_imports=imports)
    assert load(model)(et.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_gradients_flow_through_a_loop() -> None:
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "w"], ["t"]), helper.make_node("Identity", ["c"], ["d"])], "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("s", FLOAT, None),
        ],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("t", FLOAT, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Add", ["w", "zero"], ["v"]),
        helper.make_node("Loop", ["times", "", "x"], ["y"], body=body),
    ]
    tensors = [tensor("w", [2.0]), tensor("times", 3, np.int64), tensor("zero", 0.0)]
    net = load(model_of(nodes, {"x": [1]}, ["y"], tensors))
    result = net(et.tensor([5.0]))
    assert result.tolist() == [40.0]
    result.sum().backward()
    assert next(net.parameters()).grad.tolist() == [3 * 5.0 * 4.0]


def test_weights_in_another_file(tmp_path: Path) -> None:
    model = perceptron()
    onnx.save_model(
        model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    x = et.random.normal(0, (2, 3))
    assert load(tmp_path / "m.onnx")(x).tolist() == load(perceptron())(x).tolist()


def test_the_package_loads_without_onnx() -> None:
    """Importing extensor must not import the standard's package, which is an extra."""
    code = "import sys, extensor; assert not [m for m in sys.modules if m.split('.')[0] == 'onnx' or m == 'extensor.onnx']"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_onnx_the_extra_is_named() -> None:
    code = "import sys; sys.modules['onnx'] = None; import extensor.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install onnx (the extra 'onnx' of ExTensor)" in done.stderr
