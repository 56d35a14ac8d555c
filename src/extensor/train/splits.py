"""Samples for training, validation and testing, chosen at random but always alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["TEST", "VALIDATION", "Rows", "Split", "hold_out", "split_rows"]

TEST, VALIDATION = 0.2, 0.1  # the parts that are not trained on


class Rows(NamedTuple):
    """The numbers of the samples of each part, ascending."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class Split(NamedTuple):
    """Which parts are split off.

    Attributes:
        validation, test: whether there is this part; without, it is empty.
        fold: (k, n): the test samples are the k-th of n parts of equal size, counted from 1; None for a fifth.
    """

    validation: bool = True
    test: bool = True
    fold: tuple[int, int] | None = None


def _shuffled(count: int, labels: np.ndarray | None, seed: int) -> np.ndarray:
    """Places in a random order; with labels, one class after the other."""
    order = np.random.default_rng(seed).permutation(count)
    return order if labels is None else order[np.argsort(labels[order], kind="stable")]


def hold_out(
    rows: np.ndarray, labels: np.ndarray | None, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """``rows`` without a random ``fraction`` of them, and that part; of every class alike where there are labels.

    The rows, shuffled, are ordered by class; one is taken whenever the fraction of those passed reaches another whole
    number. So each class gives its share to within one row, and the sum is exact.
    """
    count = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
    marks = (np.arange(len(rows) + 1) * count + len(rows) // 2) // len(
        rows
    )  # a single row of a class is trained on
    return _divided(rows, _shuffled(len(rows), labels, seed)[marks[1:] > marks[:-1]])


def _divided(rows: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mask = np.zeros(len(rows), bool)
    mask[taken] = True
    return rows[~mask], rows[mask]


def split_rows(count: int, labels: np.ndarray | None = None, split: Split | None = None) -> Rows:
    """Which of ``count`` samples are trained on, validated with and tested with.

    Args:
        count: the number of samples, one at least for each part.
        labels: class numbers, for parts with the same share of each class.
        split: which parts there are; all by default.
    """
    validation, test, fold = split or Split()
    if count < max(1 + validation + test, fold[1] if fold else 0):
        raise ValueError(
            f"[train] {count} samples are too few: one at least is needed each for training, validation and testing"
            + (f", and one for each of {fold[1]} folds" if fold else "")
        )
    rest, held_out, chosen = np.arange(count), np.arange(0), np.arange(0)
    if fold is not None:
        rest, held_out = _divided(rest, _shuffled(count, labels, 0)[fold[0] - 1 :: fold[1]])
    elif test:
        rest, held_out = hold_out(rest, labels, TEST, seed=0)
    if validation:
        rest_labels = None if labels is None else labels[rest]
        rest, chosen = hold_out(rest, rest_labels, VALIDATION / (1 - TEST * test), seed=1)
    return Rows(rest, chosen, held_out)
