"""Checkpoints and weights: what goes in comes out, whatever happens to the disk, and nothing else ever does."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import DAMAGES, flipped, memory_below

import extensor as et
from extensor import train
from extensor.data import DamagedFileError

STATE: dict[str, Any] = {
    "model": {"conv1.weight": et.random.normal(0, (4, 3, 3)), "scale": et.tensor(2.5), "empty": et.zeros((0, 3))},
    "optimizer": {"state": {0: {"exp_avg": et.ones(3), "step": 7}}, "param_groups": [{"betas": (0.9, 0.999)}]},
    "random": {"state": {"state": 2**127 + 1, "inc": 3}, "counter": np.arange(4, dtype=np.uint64)},
    "numbers": [1, 0.1, -0.0, float("inf"), True, None, "text with \"quotes\" and ∞", np.float32(0.5), np.int64(3)],
    "$odd": {"$tensor": "a plain text"},
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (et.ExTensor, np.ndarray)):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(np.asarray(a), np.asarray(b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


# What goes in comes out


def test_round_trip(tmp_path: Path) -> None:
    train.save_checkpoint(tmp_path / "c.safetensors", STATE)
    found = train.load_checkpoint(tmp_path / "c.safetensors")
    assert same(STATE, found)
    assert isinstance(found["optimizer"]["param_groups"][0]["betas"], tuple)
    assert np.signbit(found["numbers"][2])


def test_what_the_format_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"\[save_weights\] 'z' is complex128, which safetensors files cannot hold"
    ):
        train.save_weights(tmp_path / "w.safetensors", {"z": np.zeros(2, np.complex128)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", sorted(map(str, et.dtypes.SUPPORTED - {et.dtypes.complex128})))
def test_every_dtype(tmp_path: Path, dtype: str) -> None:
    value = et.tensor([[0, 1], [1, 0]]).astype(dtype)
    train.save_weights(tmp_path / "w.safetensors", {"x": value, "transposed": value.T}, {"note": "∞"})
    tensors, metadata = train.load_weights(tmp_path / "w.safetensors")
    assert same(tensors, {"x": value, "transposed": value.T})
    assert metadata == {"note": "∞"}


def test_other_programs_read_and_write_the_same_files(tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.numpy import save_file

    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.float64(3)[None],
    }
    train.save_weights(tmp_path / "ours.safetensors", arrays, {"note": "hello"})
    with safe_open(tmp_path / "ours.safetensors", "np") as file:
        assert file.metadata()["note"] == "hello"
        assert all(np.array_equal(file.get_tensor(name), array) for name, array in arrays.items())
    save_file(arrays, tmp_path / "theirs.safetensors", {"note": "hi"})
    tensors, metadata = train.load_weights(tmp_path / "theirs.safetensors")
    assert metadata == {"note": "hi"}
    assert all(np.array_equal(tensors[name].numpy(), array) for name, array in arrays.items())
    with pytest.raises(DamagedFileError, match="was not written by ExTensor"):
        train.load_checkpoint(tmp_path / "theirs.safetensors")


def test_weights_are_no_checkpoint_but_their_header_tells(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    train.save_weights(file, {"x": et.ones((2, 3))})
    with pytest.raises(DamagedFileError, match=r"^\[load_checkpoint\] .*w\.safetensors is no checkpoint"):
        train.load_checkpoint(file)
    info = train.read_header(file).tensors["x"]
    assert (info.shape, info.dtype) == ((2, 3), np.float32)


@pytest.mark.parametrize(
    "state", [{"a": object()}, {"a": {1.5: 2}}, {"a": np.array(["x"])}, {"a": {"b": {1, 2}}}, [1]]
)
def test_what_cannot_be_kept(tmp_path: Path, state: Any) -> None:
    with pytest.raises(TypeError, match=r"^\[save_checkpoint\]"):
        train.save_checkpoint(tmp_path / "c.safetensors", state)
    assert not list(tmp_path.iterdir())


# The folder


def test_last_ones_are_kept_and_damaged_ones_passed_over(tmp_path: Path) -> None:
    checkpoints = train.Checkpoints(tmp_path, keep=3)
    assert checkpoints.latest() is None
    for step in (5, 50, 500, 1_000_000_000):
        checkpoints.save(step, {"step": step})
    names = [path.name for path in checkpoints.files()]
    assert names == [
        "step-1000000000.safetensors",
        "step-000000500.safetensors",
        "step-000000050.safetensors",
    ]
    rng = random.Random(0)
    for path in checkpoints.files()[:2]:
        path.write_bytes(flipped(path.read_bytes(), rng))
    (tmp_path / "step-x.safetensors").write_bytes(b"")
    (tmp_path / "step-000000600.safetensors").mkdir()
    assert train.latest_whole(tmp_path) == tmp_path / "step-000000050.safetensors"


# The disk


def failing(number: int) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("call", "number", "kind", "text"),
    [
        ("fsync", errno.ENOSPC, OSError, "no space left"),
        ("fsync", errno.EDQUOT, OSError, "no space left"),
        ("fsync", errno.EIO, OSError, "Input/output error"),
        ("replace", errno.EROFS, OSError, "cannot be written to"),
        ("replace", errno.EACCES, PermissionError, "cannot be written to"),
    ],
)
def test_what_the_system_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, kind: type[OSError], text: str
) -> None:
    checkpoints = train.Checkpoints(tmp_path, keep=1)
    kept = checkpoints.save(1, {"step": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        with pytest.raises(
            kind, match=rf"\[save_checkpoint\] .*step-000000002\.safetensors was not written: .*{text}"
        ) as caught:
            checkpoints.save(2, {"step": 2})
    assert caught.value.errno == number
    assert list(tmp_path.iterdir()) == [kept]
    assert train.load_checkpoint(kept) == {"step": 1}


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 100 kB: the write itself fails, halfway."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_write_that_fails_halfway(tmp_path: Path, small_files: None) -> None:
    file = tmp_path / "w.safetensors"
    train.save_weights(file, {"x": et.ones(10)})
    with pytest.raises(OSError, match="no space left"):
        train.save_weights(file, {"x": et.ones(50_000)})
    assert train.load_weights(file)[0]["x"].shape == (10,)
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    with pytest.raises(OSError, match=r"\[save_weights\] .* was not written: something else is in the way"):
        train.save_weights(tmp_path / "runs" / "w.safetensors", {"x": et.ones(1)})


# What is damaged


def assert_refused(path: Path, load: Callable[[Path], Any]) -> None:
    with pytest.raises(ValueError, match=r"^\[load_") as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("load", [train.load_checkpoint, train.load_weights])
def test_damaged_files(tmp_path: Path, load: Callable[[Path], Any]) -> None:
    good = tmp_path / "good.safetensors"
    train.save_checkpoint(good, STATE)
    content, rng = good.read_bytes(), random.Random(1)
    bad = tmp_path / "bad.safetensors"
    with memory_below(100_000_000):
        for i in range(360):
            damaged = DAMAGES[i % len(DAMAGES)](content, rng)
            assert damaged != content
            bad.write_bytes(damaged)
            assert_refused(bad, load)
    assert "EXTENSOR_UNPICKLED" not in os.environ


def test_every_bit_of_a_small_file_is_guarded(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    train.save_weights(file, {"x": et.tensor([1.0, 2.0])}, {"note": "hi"})
    content = file.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        assert_refused(file, train.load_weights)


def with_header(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(shape: Any = (2,), offsets: Any = (0, 8), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


LIES = [
    b"", b"\0" * 7, struct.pack("<Q", 2**63), struct.pack("<Q", 2**40) + b"{}", struct.pack("<Q", 3) + b"{}",
    with_header(b"[]"), with_header(b"{}", b"x"), with_header(b'{"a":1}'), with_header(b"[" * 100_000),
    with_header(b'{"a":' * 50_000), with_header(b"\xff{}"), with_header(b'{"a":{},"a":{}}'),
    with_header({"x": entry((2**40,), (0, 2**42))}), with_header({"x": entry((2**62, 2**62), (0, 8))}, bytes(8)),
    with_header({"x": entry((-2, -1))}, bytes(8)), with_header({"x": entry((2.0,))}, bytes(8)),
    with_header({"x": entry((True, 2))}, bytes(8)), with_header({"x": entry("2")}, bytes(8)),
    with_header({"x": entry([1] * 65)}, bytes(8)), with_header({"x": entry((0, 2**60), (0, 0))}),
    with_header({"x": entry(offsets=(8, 0))}, bytes(8)), with_header({"x": entry(offsets=(0, 4))}, bytes(8)),
    with_header({"x": entry(offsets=(4, 12))}, bytes(12)), with_header({"x": entry(offsets=(0, 8, 9))}, bytes(8)),
    with_header({"x": entry(), "y": entry()}, bytes(8)), with_header({"x": entry(), "y": entry(offsets=(4, 12))}, bytes(12)),
    with_header({"x": entry(dtype="F99")}, bytes(8)), with_header({"x": entry(dtype=["F32"])}, bytes(8)),
    with_header({"x": entry(dtype="BOOL", offsets=(0, 2))}, b"\1\2"), with_header({"x": entry()}, bytes(9)),
    with_header({"x": {**entry(), "more": 1}}, bytes(8)), with_header({"__metadata__": {"a": 1}}),
    with_header({"__metadata__": [1]}), with_header({"__metadata__": {"sha256": "0" * 64}}),
    with_header({"__metadata__": {"extensor": "{}"}}), with_header({"__metadata__": {"extensor": "{}", "sha256": "é"}}),
]  # fmt: skip


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_lying_headers(tmp_path: Path, lie: int) -> None:
    file = tmp_path / "lie.safetensors"
    file.write_bytes(LIES[lie])
    with memory_below(20_000_000):
        assert_refused(file, train.load_weights)
        assert_refused(file, train.load_checkpoint)


def test_the_length_of_a_header_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train.weights.MAX_HEADER == 4 << 20
    monkeypatch.setattr(train.weights, "MAX_HEADER", 1 << 18)  # reading takes 20 times the length and more
    file = tmp_path / "long.safetensors"
    for length, memory in ((1 << 18, 10_000_000), ((1 << 18) + 10, 1_000_000)):
        file.write_bytes(with_header(b"[" + b"[]," * (length // 3 - 1) + b"0]"))
        with memory_below(memory):
            assert_refused(file, train.load_weights)
    with pytest.raises(ValueError, match=r"\[save_weights\] names and metadata take"):
        train.save_weights(file, {}, {"long": "x" * (1 << 18)})


@pytest.mark.parametrize(
    "content",
    [{"kind": "weights"}, {"kind": "checkpoint"}, {"kind": "checkpoint", "format": 2, "state": {}}, [],
     {"kind": "checkpoint", "format": 1, "state": {"x": {"$tensor": "missing"}}},
     {"kind": "checkpoint", "format": 1, "state": {"x": {"$tensor": 3}}},
     {"kind": "checkpoint", "format": 1, "state": {"x": {"$dict": [[1]]}}},
     {"kind": "checkpoint", "format": 1, "state": {"x": {"$eval": "exit()"}}},
     {"kind": "checkpoint", "format": 1, "state": {"x": {"$tuple": [], "y": 1}}}],
)  # fmt: skip
def test_well_signed_nonsense(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "c.safetensors"
    train.weights.save_tensors("test", file, {"t": et.ones(1)}, {"extensor": json.dumps(content)})
    assert_refused(file, train.load_checkpoint)


def test_missing_files(tmp_path: Path) -> None:
    for load in (train.load_weights, train.load_checkpoint, train.read_header):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            load(tmp_path / "nothing")
        with pytest.raises(IsADirectoryError, match="is a folder"):
            load(tmp_path)
        with pytest.raises(TypeError, match="path must be"):
            load(3)
    assert train.latest_whole(tmp_path / "nothing") is None
