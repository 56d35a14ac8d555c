"""What nested lists hold, also where they hold each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.nested import MOST_AXES, is_plain, kinds_in, leaves, needs_grad, with_arrays


def doubled(leaf: Any, depth: int) -> Any:
    for _ in range(depth):
        leaf = [leaf, leaf]
    return leaf


def test_kinds_are_found_at_every_depth() -> None:
    found = kinds_in("f", "x", [1, [2.0, (np.float32(3), [None])]])
    assert set(found) == {int, float, np.float32, type(None)}
    assert kinds_in("f", "x", 1.0) == {float: 1.0}


@pytest.mark.parametrize("wanted", [False, True])
def test_a_list_that_others_share_is_looked_at_once(wanted: bool) -> None:
    """2**60 leaves, of one list for each depth."""
    many = doubled(et.tensor(1.0, requires_grad=wanted), 60)
    assert needs_grad(many) is wanted
    assert list(kinds_in("f", "x", many)) == [et.ExTensor]


def test_more_lists_than_axes() -> None:
    assert needs_grad(doubled(et.tensor(1.0, requires_grad=True), MOST_AXES + 1)) is False
    with pytest.raises(ValueError, match=r"^\[f\] x is a list nested more than 64 deep"):
        kinds_in("f", "x", doubled(1.0, MOST_AXES + 1))


def test_leaves_and_arrays() -> None:
    x = et.tensor(1.0)
    assert list(leaves([1, (2, [3])])) == [1, 2, 3]
    found = with_arrays([x, (2.0,)])
    assert type(found[0]) is np.ndarray
    assert found[1] == [2.0]


def test_plain_data_needs_no_search() -> None:
    assert all(map(is_plain, [1.0, 2, True, 1j, [1.0, 2], [], np.ones(2)]))
    assert not any(map(is_plain, [[[1.0]], [np.float32(1)], (1.0,), None, et.ones(2)]))
