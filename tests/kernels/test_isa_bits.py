"""One result on every processor: the sets of instructions that fuse multiply-adds give the same bits for every kernel.

Each set runs `tests/support/isa_bits.py` in a process of its own, and the hashes are compared by name.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("extensor._native", reason="bits are those of the native core")

SUPPORT = Path(__file__).parents[1] / "support"
FAMILIES = ("elementwise", "reductions", "layers", "images", "optimisers", "registry")


def run(isa: str, *command: str) -> str:
    """What a script of `tests/support` prints when it runs with a set of instructions."""
    environment = os.environ | {"EXTENSOR_ISA": isa, "EXTENSOR_BF16_UNIT": "0"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, cwd=SUPPORT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def fused_sets() -> list[str]:
    """The sets with fused multiply-adds that this build and this processor have."""
    code = "try:\n from extensor import _native\n print(_native.isa())\nexcept RuntimeError as e:\n print(e)"
    return [isa for isa in ("avx2", "avx512") if run(isa, "-c", code).strip() == isa]


@pytest.fixture
def sets() -> list[str]:
    if len(fused_sets()) < 2:
        pytest.skip("needs a build for avx2 and avx512 (EXTENSOR_ISAS=all) and a processor that has both")
    return fused_sets()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_set_gives_the_same_bits(sets: list[str], family: str) -> None:
    first, *others = (json.loads(run(isa, "isa_bits.py", family)) for isa in sets)
    assert len(first) > 20
    for other in others:
        assert other.keys() == first.keys()
        assert [name for name in first if other[name] != first[name]] == []


@pytest.mark.parametrize("model", ["lenet", "resnet20", "gpt", "lstm"])
def test_training_gives_the_same_weights(sets: list[str], model: str) -> None:
    assert len({run(isa, "isa_training.py", model, "3") for isa in sets}) == 1
