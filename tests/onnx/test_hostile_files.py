"""Files are hostile input: a clear error, no large allocation, nothing outside the folder is read."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import extensor as et
from extensor.data import DamagedFileError
from extensor.onnx import load

FLOAT = TensorProto.FLOAT
X = helper.make_tensor_value_info("x", FLOAT, [2])
Y = helper.make_tensor_value_info("y", FLOAT, None)


def model(nodes: list[Any], tensors: list[Any] = (), functions: list[Any] = (), outputs: Any = (Y,)) -> Any:  # type: ignore[assignment]
    graph = helper.make_graph(nodes, "g", [X], list(outputs), list(tensors))
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, functions=list(functions), opset_imports=imports)


def raw(name: str, shape: list[int], data: bytes = b"", kind: int = FLOAT) -> Any:
    return onnx.TensorProto(name=name, dims=shape, data_type=kind, raw_data=data)


def external(location: str, **entries: str) -> Any:
    found = onnx.TensorProto(name="w", dims=[2], data_type=FLOAT, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        found.external_data.add(key=key, value=value)
    return found


ADD = helper.make_node("Add", ["x", "w"], ["y"])

DAMAGED = {
    "huge tensor": model([ADD], [raw("w", [1 << 40, 1 << 20])]),
    "overflowing tensor": model([ADD], [raw("w", [1 << 62, 1 << 62])]),
    "negative shape": model([ADD], [raw("w", [-2])]),
    "many axes": model([ADD], [raw("w", [1] * 100, b"0000")]),
    "short data": model([ADD], [raw("w", [4], b"12345678")]),
    "unknown type": model([ADD], [raw("w", [2], b"12345678", 77)]),
    "undefined type": model([ADD], [raw("w", [2], b"12345678", 0)]),
    "few numbers": model([ADD], [onnx.TensorProto(name="w", dims=[2], data_type=FLOAT, float_data=[1.0])]),
    "missing tensor": model([ADD]),
    "two tensors of a name": model([ADD], [raw("w", [2], bytes(8)), raw("w", [2], bytes(8))]),
    "circle": model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Add", ["a", "x"], ["b"]),
                     helper.make_node("Relu", ["b"], ["y"])]),
    "itself": model([helper.make_node("Add", ["x", "y"], ["y"])]),
    "computed twice": model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]),
    "no output": model([helper.make_node("Relu", ["x"], ["z"])]),
    "no operator set": helper.make_model(helper.make_graph([], "g", [X], [])),
    "no graph": onnx.ModelProto(opset_import=[helper.make_opsetid("", 20)]),
    "other domain": model([helper.make_node("Relu", ["x"], ["y"], domain="elsewhere")]),
}  # fmt: skip
DAMAGED["no operator set"].ClearField("opset_import")


@pytest.mark.parametrize("name", list(DAMAGED))
def test_damaged(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DamagedFileError, match=r"\[load\]"):
            load(DAMAGED[name].SerializeToString())
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_function_that_calls_itself() -> None:
    again = helper.make_function(
        "mine",
        "F",
        ["v"],
        ["w"],
        [helper.make_node("F", ["v"], ["w"], domain="mine")],
        [helper.make_opsetid("mine", 1)],
    )
    with pytest.raises(DamagedFileError, match="calls itself"):
        load(model([helper.make_node("F", ["x"], ["y"], domain="mine")], functions=[again]))


def test_functions_that_double() -> None:
    """40 functions of two calls each would be 2^40 nodes."""
    imports = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 20)]
    functions = [
        helper.make_function("mine", "F0", ["v"], ["w"], [helper.make_node("Relu", ["v"], ["w"])], imports)
    ]
    for i in range(1, 40):
        calls = [helper.make_node(f"F{i - 1}", [a], [b], domain="mine") for a, b in (("v", "t"), ("t", "w"))]
        functions.append(helper.make_function("mine", f"F{i}", ["v"], ["w"], calls, imports))
    with pytest.raises(DamagedFileError, match="more than"):
        load(model([helper.make_node("F39", ["x"], ["y"], domain="mine")], functions=functions))


def looping(times: list[Any], depth: int) -> list[Any]:
    """A node that repeats itself as often as ``times`` says, without an end of its own, inside as many others."""
    inner = looping(times, depth - 1) if depth else [helper.make_node("Identity", ["s"], ["t"])]
    if depth:
        inner = [
            helper.make_node("Identity", ["s"], ["x"]),
            *inner,
            helper.make_node("Identity", ["y"], ["t"]),
        ]
    body = helper.make_graph(
        [*inner, helper.make_node("Identity", ["c"], ["d"])], "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("s", FLOAT, None),
        ],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("t", FLOAT, None)],
    )  # fmt: skip
    return [helper.make_node("Loop", [*times, "x"], ["y"], body=body)]


@pytest.mark.parametrize(
    ("times", "depth"), [(["", ""], 0), (["many", ""], 0), (["many", ""], 2), (["few", ""], 4)]
)
def test_a_loop_ends(times: list[str], depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a count and a condition, 2^62 times, and a few times inside a few times inside ..."""
    monkeypatch.setattr("extensor.onnx.operators.control.MOST_TURNS", 300)
    counts = [
        helper.make_tensor(name, TensorProto.INT64, [], [value])
        for name, value in (("many", 1 << 62), ("few", 4), ("all", 300))
    ]
    network = load(model(looping(times, depth), counts))
    with pytest.raises(ValueError, match=r"\[Loop\] takes more than 300 turns"):
        network(et.ones(2))
    whole = load(model(looping(["all", ""], 0), counts))
    for _ in range(2):  # each call counts its own
        assert whole(et.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "location",
    [
        "/etc/hostname",
        "../secret.bin",
        "a/../../secret.bin",
        "..\\secret.bin",
        "",
        "link.bin",
        "folder",
        "pipe",
    ],
)
def test_external_data_stays_in_its_folder(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    os.mkfifo(folder / "pipe")
    (folder / "m.onnx").write_bytes(model([ADD], [external(location)]).SerializeToString())
    with pytest.raises(DamagedFileError, match="tensor 'w'"):
        load(folder / "m.onnx")


@pytest.mark.parametrize("entries", [{"offset": "60"}, {"offset": "-8"}, {"length": "400"}, {"offset": "x"}])
def test_external_data_lies_in_its_file(entries: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    (tmp_path / "m.onnx").write_bytes(model([ADD], [external("w.bin", **entries)]).SerializeToString())
    with pytest.raises(DamagedFileError, match="tensor 'w'"):
        load(tmp_path / "m.onnx")


def test_external_data_needs_a_path() -> None:
    with pytest.raises(DamagedFileError, match="load it by its path"):
        load(model([ADD], [external("w.bin")]).SerializeToString())


BOMBS = {
    "ConstantOfShape": (helper.make_node("ConstantOfShape", ["n"], ["y"]), np.array([1 << 20, 1 << 20])),
    "Expand": (helper.make_node("Expand", ["x", "n"], ["y"]), np.array([1 << 40, 2])),
    "Tile": (helper.make_node("Tile", ["x", "n"], ["y"]), np.array([1 << 50])),
    "Pad": (helper.make_node("Pad", ["x", "n"], ["y"]), np.array([0, 1 << 50])),
    "Range": (helper.make_node("Range", ["zero", "n", "one"], ["y"]), np.array(1 << 60)),
    "Resize": (helper.make_node("Resize", ["x", "", "", "n"], ["y"]), np.array([1 << 50])),
    "HannWindow": (helper.make_node("HannWindow", ["n"], ["y"]), np.array(1 << 50)),
}


@pytest.mark.parametrize("name", list(BOMBS))
def test_sizes_that_are_only_claimed(name: str) -> None:
    node, size = BOMBS[name]
    tensors = [
        onnx.numpy_helper.from_array(np.asarray(v, np.int64), n)
        for n, v in (("n", size), ("zero", 0), ("one", 1))
    ]
    net = load(model([node], tensors))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"{name}.* would make a tensor"):
            net(et.ones(2))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_counts_that_are_only_claimed() -> None:
    node = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=1 << 60)
    with pytest.raises(ValueError, match=r"\[Split\] num_outputs is .* the node has 2 outputs"):
        load(model([node]))(et.ones(2))
    body = helper.make_graph(
        [helper.make_node("Identity", ["a"], ["b"])],
        "body",
        [helper.make_tensor_value_info("a", FLOAT, None)],
        [helper.make_tensor_value_info("b", FLOAT, None)],
    )
    node = helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1 << 60)
    with pytest.raises(ValueError, match=r"\[Scan\] num_scan_inputs is .* the node has 1 inputs"):
        load(model([node]))(et.ones(2))


def test_what_no_check_expects_names_its_node() -> None:
    node = helper.make_node("CumSum", ["x", "n"], ["y"], name="sums")
    net = load(model([node], [onnx.numpy_helper.from_array(np.array(0), "n")]))
    with pytest.raises(ValueError, match=r"\[onnx\] node 'sums' \(CumSum\) cannot be computed"):
        net.run([et.tensor(1.0)], check=False)
    with pytest.raises(ValueError, match=r"Conv|conv") as caught:
        load(model([helper.make_node("Conv", ["x", "x"], ["y"], name="c")]))(et.ones(2))
    assert caught.value.__notes__ == ["in node 'c' (Conv)"]


def test_damaged_bytes() -> None:
    """Bytes turned over and cut off: a model, or an error of ours, and never anything else."""
    whole = model([ADD], [raw("w", [2], bytes(8))]).SerializeToString()
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(1500):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.integers(0, 256)
        data = data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data
        try:
            load(bytes(data))
            outcomes.add("loaded")
        except (DamagedFileError, NotImplementedError) as error:
            outcomes.add(type(error).__name__ if str(error).startswith("[load]") else str(error))
    assert outcomes == {"loaded", "DamagedFileError", "NotImplementedError"}


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    unknown = model([helper.make_node("Puzzle", ["x"], ["y"])])
    for content, kind in ((DAMAGED["missing tensor"], DamagedFileError), (unknown, NotImplementedError)):
        path.write_bytes(content.SerializeToString())
        with pytest.raises(kind, match=r"^\[load\] .*bad\.onnx: "):
            load(path)


def test_names_that_are_no_text() -> None:
    """One byte of a name is changed; protobuf then hands over bytes."""
    good = model([helper.make_node("Relu", ["x"], ["y"], name="relu_one")]).SerializeToString()
    for name in (b"relu_one", b"Relu"):
        bad = good.replace(name, b"\xff" + name[1:])
        with pytest.raises(
            DamagedFileError, match=r"\[load\] a (name|op_type) of the model is no text: b'.xff"
        ):
            load(bad)
