"""What the model says about samples, against counts made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor import data, nn
from extensor.report.evaluation import Classification, Regression, evaluate
from extensor.report.filters import first_filters
from extensor.tensor import ExTensor


class Says(nn.Module):
    """Gives its input back, and remembers whether it was in evaluation mode."""

    def forward(self, x: Any) -> Any:
        self.was_training = self.training
        return x


def test_classes() -> None:
    scores = np.array([[5, 0, 0], [0, 2, 0], [3, 0, 0], [0, 0, 0.1], [0, 9, 0]], np.float32)
    targets = np.array([0, 1, 2, 2, 0])
    model = Says()
    found = evaluate(model, data.Dataset(scores, targets), ["a", "b"])
    assert isinstance(found, Classification)
    assert found.matrix.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    assert (found.total, found.wrong, found.classes) == (5, 2, ["a", "b", "2"])
    assert found.confusions() == [(0, 1, 1), (2, 0, 1)]
    assert [(e.index, e.target, e.predicted) for e in found.mistakes] == [(4, 0, 1), (2, 2, 0)]
    assert [e.index for e in found.doubts] == [3, 1, 0]
    wanted = np.exp(9) / (np.exp(9) + 2)
    assert found.mistakes[0].probability == pytest.approx(wanted, rel=1e-6)
    assert not found.has_images
    assert (model.was_training, model.training) == (False, True)


def test_quantities() -> None:
    wanted, said = (
        np.array([1.0, 2.0, 3.0, 6.0], np.float32),
        np.array([[1.0], [2.5], [3.0], [4.0]], np.float32),
    )
    found = evaluate(Says(), data.Dataset(said, wanted), None)
    assert isinstance(found, Regression)
    assert found.error == pytest.approx(np.sqrt((0.25 + 4) / 4))
    assert found.explained == pytest.approx(1 - 4.25 / 14)
    assert found.largest_errors(2) == [3, 1]
    assert evaluate(Says(), data.Dataset(said, np.ones(4, np.float32)), None).explained is None  # type: ignore[union-attr]


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="no classes"):
        evaluate(Says(), data.Dataset(np.ones((4, 2, 3), np.float32), np.ones((4, 2), np.int64)), None)
    with pytest.raises(ValueError, match="no targets"):
        evaluate(Says(), data.Dataset(np.ones((4, 2), np.float32)), None)


def weights(**shapes: tuple[int, ...]) -> dict[str, ExTensor]:
    return {f"{n}.weight": ExTensor(np.ones(shape, np.float32)) for n, shape in shapes.items()}


@pytest.mark.parametrize(
    ("tensors", "image", "text"),
    [
        (weights(conv1=(6, 1, 5, 5), fc=(10, 84)), (1, 28, 28), "6 filters, 5 × 5"),
        (weights(norm=(8,), conv1=(80, 3, 3, 3)), None, "80 filters, 3 × 3; the first 64"),
        (weights(conv1=(6, 4, 5, 5)), None, "6 filters, 5 × 5, the first of 4 channels"),
        (weights(fc=(128, 64), fc2=(10, 128)), (1, 8, 8), "128 units, 8 × 8; the first 64"),
    ],
)
def test_first_filters(tensors: dict[str, ExTensor], image: tuple[int, ...] | None, text: str) -> None:
    found = first_filters(tensors, image)
    assert found is not None
    assert found.text == text
    assert found.weight.shape[1] in (1, 3)
    assert len(found.weight) <= 64


@pytest.mark.parametrize(
    ("tensors", "image"),
    [
        (weights(fc=(128, 4)), (4,)),
        (weights(wte=(65, 128)), None),
        (weights(big=(3, 3, 100, 100)), None),
        ({}, None),
    ],
)
def test_nothing_to_look_at(tensors: dict[str, ExTensor], image: tuple[int, ...] | None) -> None:
    assert first_filters(tensors, image) is None
