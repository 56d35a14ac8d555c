"""Kernels are defined once, or once more by the same lines: an import that was interrupted comes again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from extensor.kernels import KERNELS
from extensor.kernels.dispatch import kernel


@pytest.fixture
def exp() -> Iterator[Any]:
    before = KERNELS["exp"]
    yield before
    KERNELS["exp"] = before


def test_the_same_lines_again(exp: Any) -> None:
    assert kernel(exp.reference).name == "exp"


def test_other_lines_of_the_same_name(exp: Any) -> None:
    def other(x: Any) -> Any:
        return x

    other.__name__ = "exp"
    with pytest.raises(ValueError, match=r"\[kernel\] exp is defined twice"):
        kernel(other)
