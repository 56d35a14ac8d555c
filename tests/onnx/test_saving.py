"""Weights beside the model: what lies beyond the limit of one message, tried with a small limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import extensor as et
from extensor.onnx import export, load, saving
from extensor.onnx.runtime import run_in_runtime

X = et.random.normal(0, (2, 1, 28, 28))


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "INSIDE", 1000)


def test_large_tensors_go_beside_the_model(tmp_path: Path) -> None:
    net = et.models.LeNet5(rng=0)
    written = export(net, tmp_path / "new folder" / "net.onnx", X)
    assert written.difference is not None
    assert written.difference < 1e-5
    tensors = onnx.load(written.path, load_external_data=False).graph.initializer
    outside = {t.name for t in tensors if t.data_location == onnx.TensorProto.EXTERNAL}
    assert "fc1.weight" in outside
    assert "conv1.bias" not in outside
    sizes = {name: p.size * 4 for name, p in net.named_parameters()}
    assert (written.path.parent / "net.onnx.data").stat().st_size == sum(sizes[name] for name in outside)
    again = load(written.path)
    assert again(X).numpy().tobytes() == net(X).numpy().tobytes()
    assert {n: p.tolist() for n, p in again.named_parameters()} == {
        n: p.tolist() for n, p in net.named_parameters()
    }


def test_a_second_export_takes_the_place_of_the_first(tmp_path: Path) -> None:
    for seed in (0, 1):
        net = et.models.LeNet5(rng=seed)
        written = export(net, tmp_path / "net.onnx", X)
        found = run_in_runtime(written.path, {"x": X.numpy()})[0]
        np.testing.assert_allclose(found, net(X).numpy(), rtol=0, atol=1e-6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    assert (tmp_path / "net.onnx.data").stat().st_size < 4 * 61_706


def test_a_folder_that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"\[export\] .*net\.onnx.* was not written"):
        export(et.models.LeNet5(rng=0), tmp_path / "file" / "net.onnx", X)
