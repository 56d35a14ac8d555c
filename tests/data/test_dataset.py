"""Datasets and transforms: each sample gets what belongs to it, whatever batch it is in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import extensor as et
from extensor import data


def test_digits() -> None:
    digits = data.digits()
    x, y = digits.batch(np.arange(len(digits)))
    assert x.shape == (1797, 1, 8, 8)
    assert x.dtype == np.float32
    assert y is not None
    assert y.dtype == np.int64
    assert float(x.min()) == 0.0
    assert float(x.max()) == 1.0
    assert np.bincount(y.numpy()).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (x.numpy()[0, 0] * 16).astype(int)[:2].tolist() == [
        [0, 0, 5, 13, 9, 1, 0, 0],
        [0, 0, 13, 15, 10, 15, 5, 0],
    ]
    assert digits.classes == tuple("0123456789")


def test_digits_file_is_small_and_says_where_it_comes_from() -> None:
    folder = Path(data.__file__).parent
    assert (folder / "digits.npz").stat().st_size < 60_000
    source = (folder / "digits-source.txt").read_text()
    assert "CC BY 4.0" in source
    assert "Alpaydin" in source


def test_split_is_a_partition_and_reproducible() -> None:
    whole = data.Dataset(np.arange(100), np.arange(100))
    first, second = whole.split(0.7, rng=3)
    assert (len(first), len(second)) == (70, 30)
    assert sorted([*first.inputs, *second.inputs]) == list(range(100))
    again, _ = whole.split(0.7, rng=3)
    other, _ = whole.split(0.7, rng=4)
    assert first.inputs.tolist() == again.inputs.tolist() != other.inputs.tolist()


@pytest.mark.parametrize("fraction", [0, 1, -1, 0.001, float("nan")])
def test_split_leaves_samples_on_both_sides(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"\[split\] fraction"):
        data.Dataset(np.arange(10)).split(fraction, rng=0)


@pytest.mark.parametrize(
    ("inputs", "targets", "error", "text"),
    [
        (np.zeros((3, 2)), np.zeros(4), ValueError, "inputs has 3 samples but targets has 4"),
        (np.zeros(()), None, ValueError, "at least one sample"),
        (np.zeros((0, 2)), None, ValueError, "at least one sample"),
        (np.array(["a"]), None, TypeError, "numbers"),
        ([[1.0], [1.0, 2.0]], None, ValueError, "ragged"),
    ],
)
def test_bad_datasets(inputs, targets, error, text) -> None:
    with pytest.raises(error, match=rf"^\[Dataset\].*{text}"):
        data.Dataset(inputs, targets)


def test_transforms_may_be_added_without_touching_the_first() -> None:
    plain = data.Dataset(np.ones((2, 3), np.float32))
    shifted = plain.with_transforms(data.Normalize(1.0, 2.0))
    assert shifted[0][0].tolist() == [0.0, 0.0, 0.0]
    assert plain[0][0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="callable"):
        plain.with_transforms("normalise")


def test_normalize_by_channel() -> None:
    batch = np.arange(2 * 3 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2)
    found = data.Normalize([1, 2, 3], [1, 2, 4])(batch, None)
    mean, std = np.array([1, 2, 3]).reshape(3, 1, 1), np.array([1, 2, 4]).reshape(3, 1, 1)
    assert found.dtype == np.float32
    assert np.array_equal(found, ((batch - mean) / std).astype(np.float32))
    with pytest.raises(ValueError, match=r"\[Normalize\] mean has 3 channels"):
        data.Normalize([1, 2, 3], 1)(batch[:, :2], None)
    with pytest.raises(TypeError, match="ToFloat"):
        data.Normalize(0, 1)(batch.astype(np.uint8), None)
    with pytest.raises(ValueError, match="std not 0"):
        data.Normalize(0, 0)


def random_for(indices, epoch: int = 0) -> data.SampleRandom:
    return data.SampleRandom(7, epoch, np.asarray(indices))


@pytest.mark.parametrize(
    "transform", [data.RandomFlip(), data.RandomCrop(6), data.RandomCrop((5, 8), padding=2)]
)
def test_random_transforms_belong_to_the_sample(transform) -> None:
    images = np.random.default_rng(0).random((40, 3, 8, 8), np.float32)
    together = transform(images, random_for(range(40)))
    for chosen in ([5], [3, 39, 0], list(range(39, -1, -1))):
        assert np.array_equal(transform(images[chosen], random_for(chosen)), together[chosen])
    assert not np.array_equal(transform(images, random_for(range(40), epoch=1)), together)


def test_random_flip_flips_about_half() -> None:
    images = np.arange(4.0)[None, :].repeat(2000, 0)
    flipped = data.RandomFlip()(images, random_for(range(2000)))
    assert set(map(tuple, flipped.tolist())) == {(0, 1, 2, 3), (3, 2, 1, 0)}
    assert 900 < (flipped[:, 0] == 3).sum() < 1100


def test_random_crop_reaches_every_place() -> None:
    image = np.arange(1, 10.0).reshape(1, 1, 3, 3)
    crops = data.RandomCrop(2, padding=1)(image.repeat(500, 0), random_for(range(500)))
    padded = np.pad(image[0, 0], 1)
    places = {tuple(padded[i : i + 2, j : j + 2].ravel()) for i in range(4) for j in range(4)}
    assert {tuple(crop.ravel()) for crop in crops} == places


@pytest.mark.parametrize("sizes", [(9, 8), (8, 9)])
def test_crop_larger_than_the_image(sizes) -> None:
    with pytest.raises(ValueError, match=r"\[RandomCrop\] size .* larger"):
        data.RandomCrop(sizes)(np.zeros((1, 1, 8, 8)), random_for([0]))


def test_sample_random_is_uniform_and_uncorrelated() -> None:
    random = random_for(range(20_000))
    a, b = random.uniform(), random.uniform()
    assert abs(a.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.03
    assert np.bincount(random.integers(4), minlength=4).min() > 4700


def test_text_round_trip_and_windows() -> None:
    text = data.Text("ein Gedicht für ∞ Leser")
    assert text.decode(text.ids) == "ein Gedicht für ∞ Leser"
    assert text.vocabulary == "".join(sorted(set("ein Gedicht für ∞ Leser")))
    first, rest = text.split(0.5)
    assert first.decode(first.ids) + rest.decode(rest.ids) == "ein Gedicht für ∞ Leser"
    assert first.vocabulary == rest.vocabulary
    windows = text.windows(5)
    assert len(windows) == len(text) - 5
    x, y = windows.batch(np.array([0, len(windows) - 1]))
    assert y is not None
    assert text.decode(x.numpy()[0]) == "ein G"
    assert text.decode(y.numpy()[1]) == "Leser"
    with pytest.raises(ValueError, match="overlap"):
        windows.split(0.5, rng=0)
    with pytest.raises(ValueError, match=r"'x' is not in the vocabulary"):
        text.encode("x")
    with pytest.raises(ValueError, match="no character 99"):
        text.decode([0, 99])


def test_a_tensor_is_a_dataset_too() -> None:
    x, y = data.Dataset(et.ones((2, 3)), et.tensor([1, 2]))[-1]
    assert x.tolist() == [1, 1, 1]
    assert y is not None
    assert y.item() == 2
