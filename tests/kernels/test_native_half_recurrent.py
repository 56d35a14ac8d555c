"""Recurrent layers of bfloat16 on the processor's dot product of pairs: bit by bit, near float32, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.config import has_bf16_unit
from extensor.dtypes import bfloat16
from extensor.kernels import NATIVE
from extensor.kernels.reference.half_products import half_product

pytestmark = pytest.mark.skipif(not has_bf16_unit(), reason="no dot product of bfloat16 pairs")

RNG = np.random.default_rng(17)
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
STEPS, BATCH, INPUTS, HIDDEN = 9, 13, 21, 35


def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * RNG.standard_normal(shape)).astype(bfloat16)


def operands(kind: str) -> list[np.ndarray]:
    """x, h, c of an LSTM, weights, biases."""
    wide = GATES[kind] * HIDDEN
    states = [draw(BATCH, HIDDEN) for _ in range(2 if kind == "lstm" else 1)]
    return [
        draw(STEPS, BATCH, INPUTS), *states, draw(wide, INPUTS, scale=0.2), draw(wide, HIDDEN, scale=0.2),
        draw(wide, scale=0.2), draw(wide, scale=0.2),
    ]  # fmt: skip


def run(
    kind: str, args: list[np.ndarray], g: np.ndarray, reverse: bool, saved: Any = None
) -> tuple[Any, ...]:
    """The results of a sequence and all gradients; from ``saved`` results if they are given."""
    options = ("tanh",) if kind == "rnn" else ()
    found = NATIVE[f"{kind}_sequence"](*args, *options, reverse)
    results = found if isinstance(found, tuple) else (found,)
    kept = results if saved is None else tuple(r.astype(g.dtype) for r in saved)
    if kind == "lstm":
        grads = NATIVE["lstm_sequence_backward"](g, None, None, *args[:5], *kept, reverse, (True,) * 7)
    elif kind == "gru":
        grads = NATIVE["gru_sequence_backward"](g, *args, *kept, reverse, (True,) * 6)
    else:
        grads = NATIVE["rnn_sequence_backward"](g, *args[:4], *kept, *options, reverse, (True,) * 6)
    assert found is not NotImplemented
    assert grads is not NotImplemented
    return (*results, *grads)


@pytest.mark.parametrize("reverse", [False, True])
def test_bits_of_a_plain_network(reverse: bool) -> None:
    x, h, w_ih, w_hh, b_ih, b_hh = operands("rnn")
    found = NATIVE["rnn_sequence"](x, h, w_ih, w_hh, b_ih, b_hh, "relu", reverse)
    bias = b_ih.astype(np.float32) + b_hh.astype(np.float32)
    sums = half_product(x.reshape(-1, INPUTS), w_ih.T, flush=True).reshape(STEPS, BATCH, HIDDEN) + bias
    state = h
    for t in range(STEPS)[:: -1 if reverse else 1]:
        step = np.maximum(half_product(state, w_hh.T, flush=True) + sums[t], 0)
        state = step.astype(bfloat16)
        np.testing.assert_array_equal(found[t].view(np.uint16), state.view(np.uint16))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_near_float32(kind: str, reverse: bool) -> None:
    args, g = operands(kind), draw(STEPS, BATCH, HIDDEN)
    found = run(kind, args, g, reverse)
    saved = found[: 3 if kind == "lstm" else 1]
    wide = run(kind, [a.astype(np.float32) for a in args], g.astype(np.float32), reverse, saved)
    for ours, single in zip(found, wide, strict=True):
        assert ours.dtype == bfloat16
        exact = single.astype(np.float64)
        # operands of 8 digits: their roundings average out in the sums
        np.testing.assert_allclose(
            ours.astype(np.float64), exact, rtol=2.0**-7, atol=2.0**-6 * np.abs(exact).max()
        )


@pytest.mark.parametrize("kind", GATES)
def test_threads_give_the_same_bits(kind: str) -> None:
    args, g = operands(kind), draw(STEPS, BATCH, HIDDEN)
    before = get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            found.append(run(kind, args, g, False))
    finally:
        set_num_threads(before)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))
