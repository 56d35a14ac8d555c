"""extensor.__all__ lists what the modules of ops offer, and nothing that is not there."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import extensor as et
import extensor.ops

MODULES = [m.name for m in pkgutil.iter_modules(extensor.ops.__path__) if not m.name.startswith("_")]


@pytest.mark.parametrize("name", [m for m in MODULES if m != "methods"])
def test_every_public_operation_is_exported(name):
    offered = importlib.import_module(f"extensor.ops.{name}").__all__
    assert not set(offered) - set(et.__all__)
    assert all(getattr(et, function) is getattr(extensor.ops, function) for function in offered)


def test_the_list_is_true():
    assert len(set(et.__all__)) == len(et.__all__)
    assert not [name for name in et.__all__ if not hasattr(et, name)]
