"""The readers: what they read, and what they say of files that are missing, damaged or lying."""

from __future__ import annotations

import gzip
import os
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import DAMAGES, memory_below

from extensor import data
from extensor.data import DamagedFileError


def idx(array: np.ndarray, code: int = 8) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (30, 9, 7), np.uint8)
LABELS = (np.arange(30) % 10).astype(np.uint8)


def write_mnist(
    folder: Path, images: bytes = idx(IMAGES), labels: bytes = idx(LABELS), ending: str = ""
) -> None:
    pack = gzip.compress if ending == ".gz" else bytes
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte{ending}").write_bytes(pack(images))
        (folder / f"{part}-labels-idx1-ubyte{ending}").write_bytes(pack(labels))


# What they read


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_mnist(tmp_path: Path, ending: str) -> None:
    write_mnist(tmp_path, ending=ending)
    train, test = data.mnist(tmp_path)
    x, y = test.batch(np.array([29]))
    assert x.shape == (1, 1, 9, 7)
    assert np.array_equal(x.numpy()[0, 0], IMAGES[29] * np.float32(1 / 255))
    assert y is not None
    assert y.tolist() == [9]
    assert (len(train), train.classes) == (30, tuple("0123456789"))


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(8, "u1"), (9, "i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")],
)
def test_every_idx_dtype(tmp_path: Path, code: int, dtype: str) -> None:
    array = RNG.integers(0, 100, (3, 4)).astype(dtype)
    (tmp_path / "a").write_bytes(idx(array, code))
    found = data.read_idx(tmp_path / "a")
    assert np.array_equal(found, array)
    assert found.dtype.isnative


def test_cifar(tmp_path: Path) -> None:
    records = RNG.integers(0, 10, (4, 3073)).astype(np.uint8)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (tmp_path / f"{name}.bin").write_bytes(records.tobytes())
    train, test = data.cifar10(tmp_path)
    assert (len(train), len(test)) == (20, 4)
    assert np.array_equal(test.inputs, records[:, 1:].reshape(4, 3, 32, 32))
    assert test.targets is not None
    assert test.targets.tolist() == records[:, 0].tolist()


@pytest.mark.parametrize(
    "array",
    [np.arange(6).reshape(2, 3), np.asfortranarray(RNG.random((3, 4))), np.float32(3), np.zeros((0, 2))],
)
def test_npy_and_npz(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez_compressed(tmp_path / "a.npz", x=array, y=np.arange(3))
    for found in (data.read_npy(tmp_path / "a.npy"), data.read_npz(tmp_path / "a.npz")["x"]):
        assert np.array_equal(found, array)
        assert found.dtype == array.dtype


def test_arrays_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", pictures=IMAGES, labels=LABELS)
    assert len(data.read_arrays(tmp_path / "a.npz", inputs="pictures", targets="labels")) == 30
    assert data.read_arrays(tmp_path / "a.npz", inputs="pictures", targets=None).targets is None
    with pytest.raises(
        ValueError, match=r"\[read_arrays\] inputs: .*a\.npz has no array .*it has pictures, labels"
    ):
        data.read_arrays(tmp_path / "a.npz")


def csv(folder: Path, text: str) -> Path:
    (folder / "table.csv").write_text(text)
    return folder / "table.csv"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_with_names_and_words(tmp_path: Path, delimiter: str) -> None:
    text = 'length,width,kind\n5.1,3.5,"setosa"\r\n7, 3.2,versicolor\n\n6.3,3.3,setosa\n'.replace(
        ",", delimiter
    )
    table = data.read_csv(csv(tmp_path, text))
    assert table.columns == ("length", "width")
    assert (table.target, table.classes) == ("kind", ("setosa", "versicolor"))
    assert table.targets is not None
    assert table.targets.tolist() == [0, 1, 0]
    assert np.array_equal(table.inputs, np.array([[5.1, 3.5], [7, 3.2], [6.3, 3.3]], np.float32))


def test_csv_without_a_header(tmp_path: Path) -> None:
    table = data.read_csv(csv(tmp_path, "10,1,2\n9,3,4\n10,5,6\n"), target=0)
    assert table.classes == ("9", "10")
    assert table.targets is not None
    assert table.targets.tolist() == [1, 0, 1]
    assert table.inputs.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_csv_of_quantities(tmp_path: Path) -> None:
    file = csv(tmp_path, "a,b,y\n1,2,0.5\n3,4,2\n")
    table = data.read_csv(file, target="y", columns=["b"])
    assert table.classes is None
    assert table.targets is not None
    assert table.targets.dtype == np.float32
    assert table.targets.tolist() == [0.5, 2]
    assert (table.columns, table.inputs.tolist()) == (("b",), [[2], [4]])
    assert data.read_csv(file, classes=True).classes == ("0.5", "2")
    assert data.read_csv(file, target=None).inputs.shape == (2, 3)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("a,b\n", {"header": True}, "no rows"),
        ("a,b\n1,2\n3\n", {}, "line 3: 1 cells"),
        ("a,b\n1,2\n,4\n", {}, "line 3, 'a': the cell is empty"),
        ("a,b\n1,2\nx,4\n", {}, "line 3, 'a': 'x' is no finite number"),
        ("a,b\n1,2\ninf,4\n", {}, "'inf' is no finite number"),
        ("a,b\n1,2\n1e39,4\n", {}, "'1e39' is no finite number"),
        ("a,b\n1,\n3,\n", {"header": True}, "no rows with a target"),
        ("a,b\n1,2\n", {"target": "c"}, "target: .* has no column 'c'; it has a, b"),
        ("a,b\n1,2\n", {"target": 2}, "no column 2"),
        ("a,b\n1,2\n", {"columns": []}, "no column left"),
        ("a,b\n1,x\n", {"classes": False}, "'x', which is no finite number"),
        ("a,b\n1,\0\n", {}, "zero byte"),
    ],
)
def test_csv_says_what_is_wrong(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^\[read_csv\] .*{message}"):
        data.read_csv(csv(tmp_path, text), **options)


def test_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("eins\r\nzwei\rdrei\n".encode("utf-8-sig"))
    text = data.Text.read(tmp_path / "a.txt")
    assert text.decode(text.ids) == "eins\nzwei\ndrei\n"
    (tmp_path / "b.txt").write_bytes(b"abc\xff")
    with pytest.raises(DamagedFileError, match=r"b\.txt is not UTF-8 text: byte 3 is 0xff"):
        data.Text.read(tmp_path / "b.txt")


# What is not there

READERS = [
    data.read_idx,
    data.read_cifar,
    data.read_npy,
    data.read_npz,
    data.read_arrays,
    data.read_csv,
    data.Text.read,
]


@pytest.mark.parametrize("reader", READERS)
def test_missing_files(tmp_path: Path, reader: Callable[[Any], Any]) -> None:
    with pytest.raises(FileNotFoundError, match=r"^\[[\w.]+\] there is no file .*nothing"):
        reader(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        reader(tmp_path)
    with pytest.raises(TypeError, match="path must be"):
        reader(7)


def test_missing_parts(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte"):
        data.mnist(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"data_batch_1\.bin"):
        data.cifar10(tmp_path)
    with pytest.raises(NotADirectoryError, match="is a file"):
        data.mnist(tmp_path / "t10k-images-idx3-ubyte")


def test_mnist_files_that_do_not_belong_together(tmp_path: Path) -> None:
    write_mnist(tmp_path, labels=idx(LABELS[:-1]))
    with pytest.raises(DamagedFileError, match="30 train images but 29 labels"):
        data.mnist(tmp_path)
    write_mnist(tmp_path, images=idx(LABELS))
    with pytest.raises(DamagedFileError, match="expected bytes with 3 axes"):
        data.mnist(tmp_path)
    write_mnist(tmp_path)
    with pytest.raises(DamagedFileError, match="label 9 but only 3 classes"):
        data.mnist(tmp_path, classes="abc")


# What lies


def test_lying_headers_allocate_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lie"
    huge = bytes([0, 0, 8, 3]) + struct.pack(">3I", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    wide = bytes([0, 0, 0x0E, 255]) + b"\xff" * 2000
    for content in (huge, wide, gzip.compress(huge + bytes(1000)), gzip.compress(idx(IMAGES)[:-1])):
        file.write_bytes(content)
        with memory_below(5_000_000), pytest.raises(DamagedFileError, match="lie"):
            data.read_idx(file)
    good = tmp_path / "good.npy"
    np.save(good, np.zeros(10))
    for shape in (b"(9999999999,)", b"(-10,)", b"(11,)", b"10", b"(10, 10**9)"):
        before, after = b"(10,), }" + b" " * 20, shape + b", }"
        assert before in good.read_bytes()
        file.write_bytes(good.read_bytes().replace(before, after.ljust(len(before))))
        with memory_below(5_000_000), pytest.raises(DamagedFileError, match="lie"):
            data.read_npy(file)


def test_bombs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (data._files, data.arrays):
        monkeypatch.setattr(module, "ALWAYS_ALLOWED", 1 << 20)
    packed = gzip.compress(bytes(8_000_000))
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(packed)
    with memory_below(6_000_000):
        for reader in (data.read_cifar, data.read_csv, data.Text.read):
            with pytest.raises(DamagedFileError, match=r"bomb\.gz unpacks to more than"):
                reader(bomb)
    bomb.write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + struct.pack(">I", 8_000_000)) + packed)
    with memory_below(3_000_000), pytest.raises(DamagedFileError, match="bomb"):
        data.read_idx(bomb)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_bytes(tmp_path))
        archive.writestr("y.npy", bytes(8_000_000))
    with memory_below(3_000_000), pytest.raises(DamagedFileError, match="promises"):
        data.read_npz(tmp_path / "bomb.npz")


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    from damage import _Hostile

    np.save(tmp_path / "a.npy", np.array([_Hostile()], object))
    np.savez(tmp_path / "a.npz", x=np.array([_Hostile()], object))
    for reader, name in ((data.read_npy, "a.npy"), (data.read_npz, "a.npz")):
        with pytest.raises(DamagedFileError, match="a pickle; it is not opened"):
            reader(tmp_path / name)


# What is damaged

CSV_TEXT = "a,b,kind\n" + "".join(f"{i},{i * 0.5},{'xyz'[i % 3]}\n" for i in range(40))


def npy_bytes(folder: Path) -> bytes:
    np.save(folder / "good.npy", RNG.random((5, 6)))
    return (folder / "good.npy").read_bytes()


def npz_bytes(folder: Path) -> bytes:
    np.savez_compressed(folder / "good.npz", x=IMAGES[:3], y=LABELS[:3])
    return (folder / "good.npz").read_bytes()


SUBJECTS: dict[str, tuple[Callable[[Path], bytes], Callable[[Path], Any], bool]] = {
    # what writes a good file, what reads it, and whether a checksum guards the content
    "idx": (lambda folder: idx(IMAGES[:4]), data.read_idx, False),
    "idx.gz": (lambda folder: gzip.compress(idx(IMAGES[:4])), data.read_idx, True),
    "cifar": (lambda folder: bytes(2 * 3073), data.read_cifar, False),
    "npy": (npy_bytes, data.read_npy, False),
    "npz": (npz_bytes, data.read_npz, True),
    "csv": (lambda folder: CSV_TEXT.encode(), data.read_csv, False),
    "text": (lambda folder: "ein Text, äöü".encode() * 20, data.Text.read, False),
}


def content(found: Any) -> Any:
    """What was read, in a form that compares."""
    if isinstance(found, np.ndarray):
        return found.dtype, found.shape, found.tobytes()
    if isinstance(found, dict):
        return {name: content(array) for name, array in found.items()}
    return repr(found)


def outcome(read: Callable[[Path], Any], file: Path) -> tuple[Any, str | None]:
    """What was read, or what the ValueError said; anything else is a failure of the test."""
    try:
        return read(file), None
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_damaged_files(tmp_path: Path, subject: str) -> None:
    write, read, guarded = SUBJECTS[subject]
    good = write(tmp_path)
    file = tmp_path / "subject"
    file.write_bytes(good)
    original = content(read(file))
    rng = random.Random(subject)
    refused = 0
    with memory_below(100_000_000):
        for i in range(120):
            damage = DAMAGES[i % len(DAMAGES)]
            bad = damage(good, rng)
            file.write_bytes(bad)
            found, refusal = outcome(read, file)
            if refusal is None:
                assert not guarded or content(found) == original, damage.__name__
            else:
                refused += 1
                assert refusal.startswith("["), (damage.__name__, refusal)
                assert str(file) in refusal, (damage.__name__, refusal)
    assert refused > (80 if guarded else 40)
    assert "EXTENSOR_UNPICKLED" not in os.environ
