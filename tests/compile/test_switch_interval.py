"""While a program with long kernels runs, other threads hand the interpreter lock over soon; afterwards all is as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et

pytest.importorskip("extensor._native", reason="without the native core no kernel gives the lock away")

seen: list[float] = []
wanted: list[float] = []


@et.differentiable
def watching(x: et.ExTensor) -> et.ExTensor:
    """x, as a step that runs in Python."""
    seen.append(sys.getswitchinterval())
    for interval in wanted:
        sys.setswitchinterval(interval)
    if np.isnan(x.numpy()).any():
        raise KeyboardInterrupt
    return et.tensor(x.numpy().copy())


def watching_backward(grad: et.ExTensor) -> et.ExTensor:
    return grad


@pytest.fixture(autouse=True)
def interval() -> Iterator[float]:
    before = sys.getswitchinterval()
    seen.clear()
    wanted.clear()
    yield before
    sys.setswitchinterval(before)


def compiled(size: int) -> tuple[et.ExTensor, Any]:
    run = et.compile(lambda x: watching(x * 2.0) + 1.0)
    x = et.ones(size)
    run(x)
    seen.clear()
    return x, run


def test_it_is_short_during_a_long_run_only(interval: float) -> None:
    for size, expected in ((100, interval), (100_000, 1e-4)):
        x, run = compiled(size)
        run(x), run(x)
        assert seen == pytest.approx([expected, expected])
        assert sys.getswitchinterval() == interval
        assert len(run.programs) == 1


def test_a_shorter_one_stays() -> None:
    x, run = compiled(100_000)
    sys.setswitchinterval(5e-5)
    run(x)
    assert seen == pytest.approx([5e-5])
    assert sys.getswitchinterval() == pytest.approx(5e-5)


def test_one_that_is_set_meanwhile_stays() -> None:
    x, run = compiled(100_000)
    wanted.append(0.25)
    run(x)
    assert sys.getswitchinterval() == 0.25


def test_an_exception_puts_it_back(interval: float) -> None:
    x, run = compiled(100_000)
    with pytest.raises(KeyboardInterrupt):
        run(x * float("nan"))
    assert seen == pytest.approx([1e-4])
    assert sys.getswitchinterval() == interval


def test_a_run_inside_a_run(interval: float) -> None:
    x, inner = compiled(100_000)
    during = []

    @et.differentiable
    def nested(x: et.ExTensor) -> et.ExTensor:
        made = inner(et.tensor(x.numpy().copy()))
        during.append(sys.getswitchinterval())  # the inner run has ended, the outer one has not
        return et.tensor(made.numpy().copy())

    run = et.compile(lambda x: nested(x * 2.0) + 1.0)
    run(x)
    during.clear()
    run(x)
    assert during == pytest.approx([1e-4])
    assert sys.getswitchinterval() == interval
