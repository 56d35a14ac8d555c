"""The public names are frozen in names.txt, and each explains itself with an example that runs.

After adding a name on purpose: EXTENSOR_UPDATE_NAMES=1 pytest tests/public_api/test_public_names.py
"""

from __future__ import annotations

import dataclasses
import doctest
import functools
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from public_functions import documented_objects, public_objects

NAMES = Path(__file__).with_name("names.txt")


def test_public_names_are_frozen() -> None:
    now = list(public_objects())
    if os.environ.get("EXTENSOR_UPDATE_NAMES"):
        NAMES.write_text("\n".join(now) + "\n")
    frozen = NAMES.read_text().split()
    assert not set(frozen) - set(now), "public names were lost"
    assert not set(now) - set(frozen), "public names were added; see the top of this file"
    assert frozen == now


@functools.cache
def examples_by_module(module: str) -> dict[str, int]:
    """How many examples doctest finds under each name of a module: these are run with the tests."""
    found = doctest.DocTestFinder().find(sys.modules[module])
    return {test.name: len(test.examples) for test in found}


def shows_itself(value: Any) -> bool:
    """Whether an example would add nothing: exceptions, and classes that only hold fields."""
    return isinstance(value, type) and (
        issubclass(value, (BaseException, tuple)) or dataclasses.is_dataclass(value)
    )


@pytest.mark.parametrize(("name", "value"), documented_objects().items(), ids=documented_objects())
def test_documented_with_an_example(name: str, value: Any) -> None:
    doc = inspect.getdoc(value)
    assert doc, f"{name} has no docstring"
    assert doc.splitlines()[0].strip().rstrip(".") != value.__name__
    if shows_itself(value):
        return
    examples = examples_by_module(value.__module__)
    assert examples.get(f"{value.__module__}.{value.__qualname__}"), f"{name} has no example that runs"
