"""Blocks without recording: entered again, left in any order, in several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import extensor as et
from extensor.graph import is_recording, set_recording


def test_entered_again() -> None:
    block = et.no_grad()
    with block:
        with block:
            assert not is_recording()
        assert not is_recording()
    assert is_recording()


def test_left_in_another_order() -> None:
    def paused() -> Iterator[None]:
        with et.no_grad():
            yield

    first, second = paused(), paused()
    next(first), next(second)
    first.close()
    assert not is_recording()
    second.close()
    assert is_recording()


def test_on_within_off() -> None:
    with et.no_grad():
        with set_recording(True):
            assert is_recording()
        assert not is_recording()
    assert is_recording()


def test_one_block_in_two_threads() -> None:
    block, found = et.no_grad(), []

    def run() -> None:
        with block:
            found.append(is_recording())
        found.append(is_recording())

    with block:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert not is_recording()
    assert found == [False, True]
    assert is_recording()
