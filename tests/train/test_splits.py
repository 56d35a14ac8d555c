"""The three parts of the samples."""

from __future__ import annotations

import numpy as np
import pytest

from extensor.train.splits import Split, split_rows


@pytest.mark.parametrize("count", [3, 4, 10, 37, 1000])
def test_every_sample_is_in_one_part(count: int) -> None:
    rows = split_rows(count)
    assert sorted(np.concatenate(rows).tolist()) == list(range(count))
    assert all(len(part) for part in rows)
    if count == 1000:
        assert [len(part) for part in rows] == [700, 100, 200]
    again = split_rows(count)
    assert all(np.array_equal(a, b) for a, b in zip(rows, again))


def test_each_class_has_its_share_of_each_part() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [500, 90, 10]))
    for part, fraction in zip(split_rows(600, labels), (0.7, 0.1, 0.2)):
        for label, count in ((0, 500), (1, 90), (2, 10)):
            assert abs((labels[part] == label).sum() - fraction * count) <= 2
    single = np.array([0] * 20 + [1])  # one sample of a class is trained on
    assert 20 in split_rows(21, single).train


def test_too_few() -> None:
    with pytest.raises(ValueError, match="2 samples are too few"):
        split_rows(2)


def test_folds_test_every_sample_once() -> None:
    labels = np.repeat([0, 1], [40, 13])
    folds = [split_rows(53, labels, Split(fold=(k, 5))) for k in range(1, 6)]
    assert sorted(np.concatenate([rows.test for rows in folds]).tolist()) == list(range(53))
    for rows in folds:
        assert sorted(np.concatenate(rows).tolist()) == list(range(53))
        assert abs((labels[rows.test] == 1).sum() - 13 / 5) < 1
    with pytest.raises(ValueError, match="one for each of 5 folds"):
        split_rows(4, None, Split(fold=(1, 5)))
