"""What the tensors and nodes of a file become: names, weights that train, numbers that do not, tensors that are shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import extensor as et
from extensor import nn
from extensor.onnx import export, load
from extensor.onnx.runtime import run_in_runtime

FLOAT = TensorProto.FLOAT


def model_of(nodes: list[Any], tensors: dict[str, Any], producer: str = "pytorch") -> Any:
    values = [numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in tensors.items()]
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", FLOAT, None)], values,
    )  # fmt: skip
    return helper.make_model(graph, producer_name=producer, opset_imports=[helper.make_opsetid("", 20)])


def norm(x: str, scale: str, bias: str, y: str, name: str = "") -> Any:
    return helper.make_node("LayerNormalization", [x, scale, bias], [y], name=name)


def named(net: nn.Module) -> dict[str, int]:
    return {name: p.size for name, p in net.named_parameters()}


class TestNames:
    def names(self, *nodes: tuple[str, str]) -> list[str]:
        values = ["x", *(f"t{i}" for i in range(len(nodes) - 1)), "y"]
        protos = [
            helper.make_node(kind, [values[i]], [values[i + 1]], name=name)
            for i, (kind, name) in enumerate(nodes)
        ]
        return [name for name, _ in load(model_of(protos, {})).named_children()]

    def test_a_module_of_one_node_gives_its_name(self) -> None:
        found = self.names(
            ("Relu", "/layer1/layer1.0/layer1.0.act/Relu"), ("Abs", "/layer1/layer1.1/Abs_1"), ("Exp", "/Exp")
        )
        assert found == ["layer1.0.act", "layer1.1", "exp"]

    def test_nodes_of_one_module_add_their_operators(self) -> None:
        found = self.names(("Relu", "/block/inner/Relu"), ("Abs", "/block/Abs"), ("Abs", "/block/Abs_1"))
        assert found == ["block.inner", "block.abs", "block.abs_2"]

    def test_names_without_modules_stay(self) -> None:
        assert self.names(("Relu", "first"), ("Abs", ""), ("Exp", "a b/c")) == ["first", "abs_1", "a_b.c"]

    def test_scopes_of_the_newer_exporter(self) -> None:
        node = helper.make_node("Relu", ["x"], ["y"], name="node_relu")
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'body', 'body.0', 'relu']")
        assert [name for name, _ in load(model_of([node], {})).named_children()] == ["body.0"]
        node.metadata_props[0].value = "nothing of the kind"
        assert [name for name, _ in load(model_of([node], {})).named_children()] == ["relu"]


class TestWeights:
    def test_a_bias_that_another_node_adds_keeps_its_name(self) -> None:
        nodes = [
            helper.make_node("MatMul", ["x", "fc.weight"], ["h"]),
            helper.make_node("Add", ["fc.bias", "h"], ["y"]),
        ]
        net = load(model_of(nodes, {"fc.weight": np.ones((3, 2)), "fc.bias": np.ones(2)}))
        assert named(net) == {"fc.weight": 6, "fc.bias": 2}

    @pytest.mark.parametrize("name", ["val_7", "onnx::Mul_12", "/attn/Constant_3_output_0"])
    def test_a_number_of_the_graph_is_not_trained(self, name: str) -> None:
        node = helper.make_node("Mul", ["x", name], ["y"])
        assert not named(load(model_of([node], {name: [0.125]})))

    def test_a_weight_of_no_axes_is_trained_where_names_tell(self) -> None:
        node = helper.make_node("Mul", ["x", "head.scale"], ["y"])
        tensors = {"head.scale": np.float32(2.0)}
        assert named(load(model_of([node], tensors))) == {"head.scale": 1}
        assert not named(load(model_of([node], tensors, producer="another")))

    def test_numbers_of_attributes_are_those_that_were_written(self) -> None:
        nodes = [norm("x", "scale", "shift", "y")]
        nodes[0].attribute.append(helper.make_attribute("epsilon", 1e-5))
        net = load(model_of(nodes, {"scale": np.ones(3), "shift": np.zeros(3)}))
        assert "1e-05)" in net.source()

    def test_buffers_of_an_export_are_not_trained_however_often_it_travels(self, tmp_path: Path) -> None:
        class Shifted(nn.Module):
            def __init__(self) -> None:
                self.weight = nn.Parameter(np.ones(3, np.float32))
                self.register_buffer("table", et.tensor([1.0, 2.0, 3.0]))

            def forward(self, x: et.ExTensor) -> et.ExTensor:
                return x * self.weight + self.table + et.tensor([[4.0, 5.0, 6.0]])

        net: nn.Module = Shifted()
        for i in range(3):
            export(net, tmp_path / f"{i}.onnx", et.ones((2, 3)))
            net = load(tmp_path / f"{i}.onnx")
            assert [p.tolist() for p in net.parameters()] == [[1.0] * 3]


class TestSharing:
    """PyTorch writes equal parameters once: by second names (Identity), or by one tensor of several nodes."""

    def two_norms(self, values: Any, producer: str, by_name: bool) -> dict[str, int]:
        nodes = [norm("x", "a.weight", "a.bias", "h", "/a/LayerNormalization")]
        second = "b.weight" if by_name else "a.weight"
        nodes += [helper.make_node("Identity", ["a.weight"], ["b.weight"])] if by_name else []
        nodes += [norm("h", second, "b.bias", "y", "/b/LayerNormalization")]
        tensors = {"a.weight": values, "a.bias": [0.0, 1.0, 2.0], "b.bias": [0.0, 1.0, 3.0]}
        return named(load(model_of(nodes, tensors, producer)))

    def test_second_names_of_pytorch_are_parameters_of_their_own(self) -> None:
        for values in ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]):
            found = self.two_norms(values, "pytorch", True)
            assert found == {"a.weight": 3, "a.bias": 3, "b.weight": 3, "b.bias": 3}

    def test_second_names_of_others_are_one_tensor(self) -> None:
        assert len(self.two_norms([1.0, 2.0, 3.0], "another", True)) == 3

    def test_fresh_scales_that_are_stored_once_are_told_apart(self) -> None:
        assert len(self.two_norms([1.0, 1.0, 1.0], "pytorch", False)) == 4

    def test_weights_that_are_shared_on_purpose_stay_so(self) -> None:
        assert len(self.two_norms([1.0, 2.0, 3.0], "pytorch", False)) == 3
        assert len(self.two_norms([1.0, 1.0, 1.0], "extensor", False)) == 3

    def test_those_told_apart_compute_and_train(self) -> None:
        nodes = [
            helper.make_node("Mul", ["x", "a"], ["h"]),
            helper.make_node("Identity", ["a"], ["b"]),
            helper.make_node("Mul", ["h", "b"], ["y"]),
        ]
        net = load(model_of(nodes, {"a": [2.0, 2.0, 2.0]}))
        y = net(et.ones((1, 3)))
        assert y.tolist() == [[4.0] * 3]
        y.sum().backward()
        assert [p.grad.tolist() for p in net.parameters() if p.grad is not None] == [[2.0] * 3] * 2

    def test_a_second_name_as_output_is_computed(self) -> None:
        nodes = [helper.make_node("Identity", ["w"], ["y"])]
        assert load(model_of(nodes, {"w": [1.0, 2.0, 3.0]}))(et.ones((1, 3))).tolist() == [1.0, 2.0, 3.0]

    def test_ten_thousand_second_names_take_no_memory(self) -> None:
        """A small file that would become 40 GB: beyond 64 copies the names mean one tensor."""
        nodes = [helper.make_node("Identity", ["w"], [f"w{i}"]) for i in range(10_000)]
        nodes.append(helper.make_node("Sum", ["x", *(f"w{i}" for i in range(10_000))], ["y"]))
        net = load(model_of(nodes, {"w": np.ones((1000, 3))}))
        assert sum(p.size for p in net.parameters()) == 3000 * 65


def test_source_shows_small_whole_numbers_and_names_what_is_used() -> None:
    indices = numpy_helper.from_array(np.array([2, 0]), "indices")
    nodes = [
        helper.make_node("Gather", ["x", "indices"], ["a"], axis=1),
        helper.make_node("Split", ["a"], ["b", "unused"], axis=1, num_outputs=2),
        helper.make_node("Abs", ["b"], ["y"]),
    ]
    model = model_of(nodes, {})
    model.graph.initializer.append(indices)
    net = load(model)
    source = net.source()
    assert 'take(x, tensor([2, 0], dtype="int64"), 1)' in source
    assert "split_1, _ = split(" in source
    space: dict[str, Any] = {}
    exec(source, space)
    x = et.random.normal(0, (2, 3))
    assert space["forward"](x).tolist() == net(x).tolist()


def test_names_that_are_no_text_are_refused() -> None:
    data = model_of([helper.make_node("Relu", ["x"], ["y"], name="QQQQ")], {}).SerializeToString()
    with pytest.raises(et.data.DamagedFileError, match=r"no text|no ONNX model"):
        load(data.replace(b"QQQQ", b"\xff\xfe\xfd\xfc"))
    assert onnx.ModelProto.FromString(data).graph.node[0].name == "QQQQ"


def test_numbers_computed_from_shapes_go_out_again(tmp_path: Path) -> None:
    """PyTorch computes 1 / sqrt(features) from the shape of a tensor whose batch is free."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["features"]),
        helper.make_node("Cast", ["features"], ["wide"], to=FLOAT),
        helper.make_node("Sqrt", ["wide"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["scaled"]),
        helper.make_node("Size", ["x"], ["count"]),
        helper.make_node("Cast", ["count"], ["counted"], to=FLOAT),
        helper.make_node("Add", ["scaled", "counted"], ["y"]),
    ]
    model = model_of(nodes, {})
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "last"))
    net = load(model)
    written = export(net, tmp_path / "again.onnx", et.ones((2, 3)))
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for found in (run_in_runtime(written.path, {"x": x})[0], load(written.path)(et.tensor(x)).numpy()):
        np.testing.assert_allclose(found, x / np.sqrt(3) + 15, rtol=1e-6)
    space: dict[str, Any] = {}
    exec(net.source(et.tensor(x)), space)
    np.testing.assert_allclose(space["forward"](et.tensor(x)).numpy(), x / np.sqrt(3) + 15, rtol=1e-6)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("Div", 2, {}), ("Pow", 2, {}), ("Mod", 2, {"fmod": 1}), ("BitwiseAnd", 2, {}), ("BitwiseOr", 2, {}),
        ("BitwiseXor", 2, {}), ("BitwiseNot", 1, {}), ("NonZero", 1, {}),
    ],
)  # fmt: skip
def test_operators_of_whole_numbers_go_out_again(
    operator: str, operands: int, attributes: dict[str, int], tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node(operator, ["shape", "two"][:operands], ["z"], **attributes),
        helper.make_node("Cast", ["z"], ["y"], to=FLOAT),
    ]
    model = model_of(nodes, {})
    model.graph.initializer.append(numpy_helper.from_array(np.array([2, 2]), "two"))
    net = load(model)
    written = export(net, tmp_path / "again.onnx", et.ones((2, 3)))
    x = np.ones((7, 3), np.float32)
    expected = net(et.tensor(x)).numpy()
    np.testing.assert_array_equal(run_in_runtime(written.path, {"x": x})[0], expected)
