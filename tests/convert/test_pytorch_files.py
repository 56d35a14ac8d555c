"""Files of ``torch.save``, read without executing anything. The files are written here, opcode by opcode."""

from __future__ import annotations

import collections
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytorch_files import Tensor, torch_names, write

import extensor as et
from extensor.convert import load_weights
from extensor.data import DamagedFileError


@pytest.fixture(name="torch_names")
def modules_of_pytorch() -> Iterator[None]:
    """Modules of PyTorch's names, so that a pickle can refer to them."""
    with torch_names():
        yield


def arrays() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0).normal
    return {
        "conv.weight": draw(size=(2, 3, 2)).astype(np.float32), "turned": draw(size=(3, 4)).astype(np.float32).T,
        "count": np.array(7), "empty": np.zeros((0, 3), np.float32),
    }  # fmt: skip


@pytest.mark.usefixtures("torch_names")
class TestReading:
    @pytest.mark.parametrize("protocol", [2, 3, 4])
    def test_a_state_dict(self, protocol: int, tmp_path: Path) -> None:
        expected = arrays()
        state = collections.OrderedDict({name: Tensor(a) for name, a in expected.items()})
        found = load_weights(write(tmp_path / "m.pt", state, protocol))
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)

    def test_a_checkpoint_with_more_in_it(self, tmp_path: Path) -> None:
        tree = {
            "model": {"w": Tensor(np.ones(3, np.float32))}, "epoch": 3, "lr": 0.1, "done": True, "name": "x", "none": None,
            "steps": [Tensor(np.arange(2)), (1, 2)],
        }  # fmt: skip
        found = load_weights(write(tmp_path / "m.pt", tree))
        assert {k: v.tolist() for k, v in found.items()} == {"model.w": [1.0, 1.0, 1.0], "steps.0": [0, 1]}

    def test_loads_into_a_module(self, tmp_path: Path) -> None:
        net = et.nn.Linear(3, 2, rng=0)
        state = {name: Tensor(np.ascontiguousarray(t.numpy() + 1)) for name, t in net.state_dict().items()}
        before = net.weight.numpy().copy()
        net.load_state_dict(load_weights(write(tmp_path / "m.pt", state)))
        np.testing.assert_array_equal(net.weight.numpy(), before + 1)


class Evil:
    """What makes pickle dangerous: a call of anything."""

    def __init__(self, *call: Any) -> None:
        self.call_ = call

    def __reduce__(self) -> Any:
        return self.call_[0], tuple(self.call_[1:])


@pytest.mark.usefixtures("torch_names")
class TestRefusals:
    @pytest.mark.parametrize(
        ("call", "name"),
        [
            ((os.system, "touch {}"), "posix.system"),
            ((eval, "open('{}', 'w')"), "builtin(s|__).eval"),
            ((exec, "open('{}', 'w')"), "builtin(s|__).exec"),
            ((open, "{}", "w"), "io.open"),
            ((getattr, "{}", "upper"), "builtin(s|__).getattr"),
        ],
    )
    @pytest.mark.parametrize("protocol", [0, 2, 4])
    def test_nothing_is_executed(self, call: Any, name: str, protocol: int, tmp_path: Path) -> None:
        marker = tmp_path / "executed"
        function, *arguments = call
        evil = Evil(function, *(a.format(marker) if isinstance(a, str) else a for a in arguments))
        path = write(tmp_path / "m.pt", {"w": Tensor(np.ones(2, np.float32)), "x": evil}, max(protocol, 2))
        if protocol == 0:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("archive/data.pkl", pickle.dumps({"x": evil}, 0))
        with pytest.raises(DamagedFileError, match=name if protocol else "opcode|wants"):
            load_weights(path)
        assert not marker.exists()

    @pytest.mark.parametrize(
        "changes",
        [
            {"shape": (1 << 40, 1 << 20), "strides": (0, 0)}, {"shape": (9,), "strides": (1,)}, {"offset": 4},
            {"offset": -1}, {"shape": (2, 2), "strides": (1,)}, {"shape": (2,), "strides": (-1,)}, {"shape": (2.0,)},
            {"storage": "w"},
        ],
    )  # fmt: skip
    def test_tensors_outside_of_their_storage(self, changes: Any, tmp_path: Path) -> None:
        tensor = Tensor(np.ones(4, np.float32), **changes)
        tracemalloc.start()
        try:
            with pytest.raises(DamagedFileError, match=r"\[load_weights\]"):
                load_weights(write(tmp_path / "m.pt", {"w": tensor}))
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()

    def test_a_bomb(self, tmp_path: Path) -> None:
        state = {"w": Tensor(np.zeros(1 << 20, np.float32))}
        with pytest.raises(DamagedFileError, match="compressed"):
            load_weights(write(tmp_path / "m.pt", state, compression=zipfile.ZIP_DEFLATED))

    def test_other_archives(self, tmp_path: Path) -> None:
        state = {"w": Tensor(np.ones(2, np.float32))}
        with pytest.raises(DamagedFileError, match="TorchScript"):
            load_weights(write(tmp_path / "m.pt", state, **{"constants.pkl": b""}))
        with zipfile.ZipFile(tmp_path / "z.pt", "w") as archive:
            archive.writestr("readme.txt", "hello")
        with pytest.raises(DamagedFileError, match=r"no data\.pkl"):
            load_weights(tmp_path / "z.pt")
        (tmp_path / "p.pt").write_bytes(pickle.dumps({"w": 1}))
        with pytest.raises(DamagedFileError, match="bare pickle"):
            load_weights(tmp_path / "p.pt")

    def test_no_tensors(self, tmp_path: Path) -> None:
        with pytest.raises(DamagedFileError, match="holds no tensors"):
            load_weights(write(tmp_path / "m.pt", {"epoch": 3}))

    def test_damaged_bytes(self, tmp_path: Path) -> None:
        """1,500 files with wrong bytes: the weights, or an error of ours."""
        whole = write(tmp_path / "m.pt", {"w": Tensor(np.ones((2, 3), np.float32))}).read_bytes()
        rng = np.random.default_rng(0)
        path, outcomes = tmp_path / "d.pt", set()
        for _ in range(1500):
            data = bytearray(whole)
            for place in rng.integers(0, len(data), rng.integers(1, 4)):
                data[place] = rng.integers(0, 256)
            path.write_bytes(bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data))
            try:
                outcomes.add("loaded" if load_weights(path) else "")
            except DamagedFileError as error:
                outcomes.add("refused" if str(error).startswith("[load_weights]") else str(error))
        assert outcomes == {"loaded", "refused"}


def test_safetensors(tmp_path: Path) -> None:
    et.train.save_weights(tmp_path / "m.safetensors", {"w": et.ones((2, 2))})
    assert {k: v.tolist() for k, v in load_weights(tmp_path / "m.safetensors").items()} == {
        "w": [[1.0, 1.0], [1.0, 1.0]]
    }


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="path must be a str"):
        load_weights(3)
    with pytest.raises(FileNotFoundError, match="there is no file nowhere"):
        load_weights("nowhere.pt")


def test_the_other_loader_says_who_reads_such_files(tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model/data.pkl", b"")
    for read in (et.train.load_weights, et.train.read_header):
        with pytest.raises(
            ValueError, match=r"as torch.save writes it; extensor.convert.load_weights\(path\) reads that"
        ):
            read(file)
