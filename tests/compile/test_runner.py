"""The native run of a program takes the steps of the readable one."""

from __future__ import annotations

from typing import Any

import pytest

import extensor as et
from extensor import optim
from extensor.compile import program
from extensor.compile.runner import Runner

from .networks import NETWORKS, Training

pytest.importorskip("extensor._native", reason="without the native core there is only the readable run")


@pytest.mark.parametrize("network", NETWORKS)
def test_the_same_bits(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_optimizer(params: Any) -> Any:
        return optim.Adam(params, lr=1e-3)

    native = Training(network, make_optimizer, clip=True, schedule="cosine")
    expected = native.digest(5, et.compile(native.step))
    monkeypatch.setattr(program, "_Native", Runner)
    readable = Training(network, make_optimizer, clip=True, schedule="cosine")
    compiled = et.compile(readable.step)
    assert readable.digest(5, compiled) == expected
    assert compiled.programs[0].times()[1] == 4


@pytest.mark.parametrize(
    "description", [(), ((), (), ()), (1,) * 13, ((0, None, 0, False, None, ()),) * 13, None]
)
def test_a_description_that_is_none_is_refused(description: Any) -> None:
    from extensor._native import Program

    with pytest.raises((TypeError, ValueError)):
        Program(description)
