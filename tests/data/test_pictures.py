"""Folders of pictures: read as they are asked for, of any size and mode; augmentations; a run and a prediction."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from extensor.cli import main
from extensor.data import (
    ColorJitter,
    DamagedFileError,
    DataLoader,
    RandomErase,
    RandomRotate,
    SampleRandom,
    ToFloat,
    image_folder,
)
from extensor.data.pictures import PictureFiles

Image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)


def folder_of(root: Path, count: int = 40) -> Path:
    """Red and blue pictures of mixed sizes, JPEG and PNG."""
    for i in range(count):
        kind, colour = ("red", (220, 30, 30)) if i % 2 else ("blue", (30, 30, 220))
        height, width = RNG.integers(20, 60, 2)
        pixels = (np.array(colour) + RNG.integers(-20, 20, (height, width, 3))).clip(0, 255).astype(np.uint8)
        (root / kind).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(root / kind / f"{i}.{'jpg' if i % 3 else 'png'}")
    return root


def test_pictures_of_mixed_sizes(tmp_path: Path) -> None:
    samples = image_folder(folder_of(tmp_path), size=(16, 24))
    assert samples.classes == ("blue", "red")
    assert samples.inputs.shape == (40, 3, 16, 24)
    x, y = samples.batch(np.array([0, 39]))
    assert (x.shape, x.dtype.name, y.tolist()) == ((2, 3, 16, 24), "float32", [0, 1])  # type: ignore[union-attr]
    assert x.numpy()[0, 2].mean() > 0.8 > x.numpy()[0, 0].mean()
    left, right = samples.split(0.5, rng=0)
    assert isinstance(left.inputs, PictureFiles)  # nothing was read
    assert len(left) + len(right) == 40
    grey = image_folder(tmp_path, size=8, channels=1)
    assert grey[0][0].shape == (1, 8, 8)
    assert pickle.loads(pickle.dumps(samples))[3][0].tolist() == samples[3][0].tolist()


def test_worker_processes_decode_the_same(tmp_path: Path) -> None:
    samples = image_folder(folder_of(tmp_path, 12), size=8).with_transforms(
        RandomRotate(20), ColorJitter(), RandomErase()
    )
    here = [x.numpy().tobytes() for x, _ in DataLoader(samples, 4, shuffle=True, rng=1)]
    loader = DataLoader(samples, 4, shuffle=True, rng=1, num_workers=2)
    assert [x.numpy().tobytes() for x, _ in loader] == here
    loader.close()


def decoded(picture: Any, tmp_path: Path, name: str = "a.png", **options: Any) -> np.ndarray:
    picture.save(tmp_path / name, **options)
    return PictureFiles([tmp_path / name], (4, 4))[0]


def test_modes_and_orientation(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (8, 8), (255, 0, 0, 0))
    assert (decoded(clear, tmp_path) == 255).all()  # a transparent background is white
    assert decoded(Image.new("L", (8, 8), 100), tmp_path)[:, 0, 0].tolist() == [100, 100, 100]
    assert decoded(Image.new("1", (8, 8), 1), tmp_path)[0, 0, 0] == 255
    assert decoded(Image.new("P", (8, 8), 0), tmp_path).shape == (3, 4, 4)
    half = Image.new("RGB", (8, 8))
    half.paste((255, 255, 255), (0, 0, 8, 4))  # white above
    exif = Image.Exif()
    exif[0x0112] = 3  # taken upside down
    turned = decoded(half, tmp_path, "a.jpg", exif=exif, quality=95)
    assert turned[:, 3].mean() > 200 > 60 > turned[:, 0].mean()


def test_what_is_no_picture(tmp_path: Path) -> None:
    folder_of(tmp_path / "good", 2)
    (tmp_path / "good" / "red" / "bad.jpg").write_bytes(b"no picture")
    samples = image_folder(tmp_path / "good")
    with pytest.raises(DamagedFileError, match=r"bad\.jpg is no picture that can be read"):
        list(samples)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"\[image_folder\] .*empty has no folders of pictures in it"):
        image_folder(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"\[image_folder\] size must be from 1 to 4096"):
        image_folder(tmp_path / "good", size=0)
    with pytest.raises(ValueError, match=r"has the folder 'red', which is none of the classes"):
        image_folder(tmp_path / "good", classes=["blue"])


def test_augmentations() -> None:
    random = SampleRandom(0, 0, np.arange(3))
    batch = ToFloat()(RNG.integers(0, 255, (3, 3, 9, 9), dtype=np.uint8), random)
    np.testing.assert_array_equal(RandomRotate(0)(batch, random), batch)
    np.testing.assert_allclose(ColorJitter(0, 0, 0)(batch, random), batch, atol=1e-6)
    np.testing.assert_array_equal(RandomErase(p=0.0)(batch, random), batch)
    erased = RandomErase(p=1.0, side=1.0)(batch, random)
    assert ((erased == 0) | (erased == batch)).all()
    assert (erased == 0).any((1, 2, 3)).all()

    class Quarter(SampleRandom):
        def uniform(self) -> np.ndarray:
            return np.ones(3)  # the largest angle

    np.testing.assert_array_equal(
        RandomRotate(90)(batch, Quarter(0, 0, np.arange(3))), np.rot90(batch, -1, (2, 3))
    )
    with pytest.raises(ValueError, match=r"\[RandomRotate\] degrees must be from 0 to 180"):
        RandomRotate(-1)


@pytest.mark.parametrize("recipe", ["lenet", "resnet20"])
def test_a_run_and_one_picture(tmp_path: Path, recipe: str) -> None:
    folder_of(tmp_path / "data", 60)
    run, photo = tmp_path / "run", tmp_path / "data" / "red" / "1.jpg"
    outcome = CliRunner().invoke(
        main,
        [
            "train",
            recipe,
            "--data",
            str(tmp_path / "data"),
            "--out",
            str(run),
            "--epochs",
            "12",
            "--set",
            "image_size=20",
        ],
    )
    assert outcome.exit_code == 0, outcome.output
    assert "60 pictures of 2 classes, shown as 20 x 20 pixels" in outcome.output
    outcome = CliRunner().invoke(main, ["predict", str(run), "--data", str(photo)])
    assert outcome.exit_code == 0, outcome.output
    assert "0,red," in outcome.output
    outcome = CliRunner().invoke(main, ["predict", str(run), "--data", str(tmp_path / "data")])
    assert "accuracy" in outcome.output
