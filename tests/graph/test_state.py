"""Blocks without recording: entered again, left in any order, in several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.autograd import engine
from extensor.graph import observe, ops, set_recording, this_thread


def test_entered_again() -> None:
    block = et.no_grad()
    with block:
        with block:
            assert not this_thread.recording
        assert not this_thread.recording
    assert this_thread.recording


def test_left_in_another_order() -> None:
    def paused() -> Iterator[None]:
        with et.no_grad():
            yield

    first, second = paused(), paused()
    next(first), next(second)
    first.close()
    assert not this_thread.recording
    second.close()
    assert this_thread.recording


def test_on_within_off() -> None:
    with et.no_grad():
        with set_recording(True):
            assert this_thread.recording
        assert not this_thread.recording
    assert this_thread.recording


def test_one_block_in_two_threads() -> None:
    block, found = et.no_grad(), []

    def run() -> None:
        with block:
            found.append(this_thread.recording)
        found.append(this_thread.recording)

    with block:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert not this_thread.recording
    assert found == [False, True]
    assert this_thread.recording


def test_left_without_being_entered() -> None:
    with pytest.raises(RuntimeError, match=r"\[recording\] the block is left but was not entered"):
        et.no_grad().__exit__(None, None, None)


class Interrupted:
    """The state of the thread, with an interrupt right after an attribute of it was set, the first time."""

    def __init__(self, attribute: str) -> None:
        self.__dict__["left"] = [attribute]

    def __getattr__(self, name: str) -> Any:
        return getattr(this_thread, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(this_thread, name, value)
        if name in self.left:
            self.left.clear()
            raise KeyboardInterrupt


def call_forward(x: et.ExTensor) -> Any:
    return et.exp.call(x)  # type: ignore[attr-defined]


def call_backward(x: et.ExTensor) -> Any:
    return et.exp_backward.call(et.ones(3), et.ones(3))  # type: ignore[attr-defined]


def call_without_gradient(x: et.ExTensor) -> Any:
    return et.isfinite.call(x)  # type: ignore[attr-defined]


@pytest.mark.parametrize("call", [call_forward, call_backward, call_without_gradient])
def test_an_interrupt_right_after_recording_was_paused(
    call: Callable[[et.ExTensor], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = et.tensor(np.ones(3), requires_grad=True)
    monkeypatch.setattr(ops, "this_thread", Interrupted("recording"))
    with pytest.raises(KeyboardInterrupt):
        call(x)
    assert this_thread.recording


def test_an_interrupt_at_the_start_of_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = (et.tensor(np.ones(3), requires_grad=True) ** 2).sum()
    monkeypatch.setattr(engine, "this_thread", Interrupted("recording"))
    with pytest.raises(KeyboardInterrupt):
        loss.backward()
    assert this_thread.recording


def test_blocks_of_several_attributes_left_in_another_order() -> None:
    def watch(op: Any, args: Any, kwargs: Any) -> Any:
        return None

    outer, middle, inner = et.no_grad(), observe(watch), set_recording(True)
    for block in (outer, middle, inner):
        block.__enter__()
    outer.__exit__()
    assert (this_thread.recording, this_thread.observer) == (True, watch)
    middle.__exit__()
    assert (this_thread.recording, this_thread.observer) == (True, None)
    inner.__exit__()
    assert (this_thread.recording, this_thread.observer) == (True, None)


def test_blocks_of_something_else() -> None:
    native = pytest.importorskip("extensor._native")
    with pytest.raises(AttributeError, match=r"\[StateBlock\] a thread has no colour"):
        native.StateBlock("colour", 1)
    with pytest.raises(RuntimeError, match=r"\[StateBlock\] says nothing"):
        native.StateBlock.__new__(native.StateBlock).__enter__()
    with pytest.raises(TypeError), native.StateBlock("mode", "bfloat16"):
        pass
    assert this_thread.mode == 0


def test_interrupts_at_any_moment_leave_the_state_as_it_was() -> None:
    """Signals while blocks are entered and left, in bodies and in walks; each is handled where Python looks for it."""
    signal = pytest.importorskip("signal")
    native = pytest.importorskip("extensor._native", reason="only the native blocks are safe at every moment")
    assert isinstance(set_recording(True), native.StateBlock)
    x = et.tensor(np.ones(3), requires_grad=True)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    found = 0
    try:
        for _ in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                while True:
                    with et.no_grad(), observe(None):
                        et.exp(x)
                    et.exp.call(x).sum().backward()  # type: ignore[attr-defined]
            except KeyboardInterrupt:
                found += 1
            assert (this_thread.recording, this_thread.observer, this_thread.mode) == (True, None, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found == 60
