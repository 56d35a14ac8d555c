"""The native recurrent kernels: equal to the reference, the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import extensor as et
from extensor.kernels import KERNELS

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
NAMES = [f"{kind}_{form}" for kind in GATES for form in ("cell", "sequence")]
pytestmark = pytest.mark.skipif(
    KERNELS["rnn_sequence"].native is None, reason="the native core is not installed"
)

TOLERANCE = {np.float64: (1e-11, 1e-12), np.float32: (2e-5, 2e-5)}
# steps, batch, inputs, hidden: below, at and above the width of vectors, tiles, blocks of the batch and of k
SIZES = [(1, 1, 1, 1), (3, 2, 3, 5), (6, 33, 20, 16), (4, 110, 9, 24), (2, 7, 300, 75), (2, 13, 5, 300)]
Arguments = tuple[Any, ...]


def options_of(kind: str) -> list[tuple[Any, ...]]:
    return [("tanh",), ("relu",)] if kind == "rnn" else [()]


def calls(name: str, dtype: Any) -> Iterator[tuple[str, Arguments]]:
    """Forward and backward: both directions, with all, one and no biases, batches and single steps without the axis."""
    kind, form = name.split("_")
    rng, gates, states = np.random.default_rng(29), GATES[kind], 2 if kind == "lstm" else 1

    def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(dtype)

    for steps, batch, inputs, hidden in SIZES:
        rows = gates * hidden
        leads = [(steps, batch)] if form == "sequence" else [(batch,), ()]
        for lead in leads:
            for options in options_of(kind):
                for variant in range(4):
                    ends = (*options, variant % 2 == 1) if form == "sequence" else options
                    x, given = draw(*lead, inputs), [draw(*lead[-1:], hidden) for _ in range(states)]
                    if form == "cell":
                        given = [draw(*lead, hidden) for _ in range(states)]
                    w_ih, w_hh = (
                        draw(rows, inputs, scale=inputs**-0.5),
                        draw(rows, hidden, scale=hidden**-0.5),
                    )
                    biases = [draw(rows) if variant < 3 else None, draw(rows) if variant < 2 else None]
                    forward = (x, *given, w_ih, w_hh, *biases, *ends)
                    yield name, forward
                    yield f"{name}_backward", backward_call(name, forward, draw, variant)
                    if name == "lstm_sequence":  # with x w_ih^T in place of x
                        forward = (draw(*lead, rows), *given, None, w_hh, *biases, *ends)
                        yield name, forward
                        yield f"{name}_backward", backward_call(name, forward, draw, variant)


def backward_call(name: str, forward: Arguments, draw: Any, variant: int) -> Arguments:
    kind, form = name.split("_")
    output = KERNELS[name].reference(*forward)
    count = 7 if kind == "lstm" else 6
    needs = tuple((variant != 2 or i % 2 == 0) and forward[i] is not None for i in range(count - 2))
    needs += tuple(variant != 2 or i == 0 for i in range(2))
    grads = [draw(*r.shape) for r in (output if isinstance(output, tuple) else [output])]
    inputs, biases, ends = forward[: count - 2], forward[count - 2 : count], forward[count:]
    if kind == "rnn":
        return (*grads, *inputs, output, *ends, needs)
    if kind == "gru":
        return (*grads, *inputs, *biases, *([output] if form == "sequence" else []), *ends, needs)
    if form == "cell":
        return (*grads, *inputs, *biases, needs)
    return (grads[0], grads[1] if variant == 0 else None, None, *inputs, *output, *ends, needs)


def several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def assert_equal(name: str, found: Any, reference: Any, dtype: Any) -> None:
    assert found is not NotImplemented, name
    for native, truth in zip(several(found), several(reference), strict=True):
        assert (native is None) == (truth is None)
        if native is not None:
            assert (native.shape, native.dtype) == (truth.shape, truth.dtype)
            rtol, atol = TOLERANCE[dtype]
            scale = max(1.0, float(np.abs(truth).max(initial=0.0)))
            np.testing.assert_allclose(native, truth, rtol=rtol, atol=atol * scale, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_the_reference(name: str, dtype: Any) -> None:
    for called, args in calls(name, dtype):
        kernel = KERNELS[called]
        assert_equal(called, kernel.native(*args), kernel.reference(*args), dtype)


@pytest.mark.parametrize("name", NAMES)
def test_any_strides(name: str) -> None:
    def strided(value: Any) -> Any:
        return np.repeat(value, 2, -1)[..., ::2] if isinstance(value, np.ndarray) else value

    for called, args in list(calls(name, np.float32))[:16]:
        dense, sparse = KERNELS[called].native(*args), KERNELS[called].native(*map(strided, args))
        for one, other in zip(several(dense), several(sparse), strict=True):
            assert one is other is None or one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_on_any_number_of_threads(name: str) -> None:
    before = et.get_num_threads()
    try:
        for called, args in calls(name, np.float32):
            results = []
            for threads in (1, 2, 3, 4):
                et.set_num_threads(threads)
                results.append([r.tobytes() for r in several(KERNELS[called].native(*args)) if r is not None])
            assert all(result == results[0] for result in results), called
    finally:
        et.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_half_is_float32_rounded_once(name: str, dtype: Any) -> None:
    def cast(value: Any, to: Any) -> Any:
        return value.astype(to) if isinstance(value, np.ndarray) else value

    for called, args in list(calls(name, np.float32))[8:16]:
        narrow = [cast(a, dtype) for a in args]
        found, right = (
            KERNELS[called].native(*narrow),
            KERNELS[called].native(*(cast(a, np.float32) for a in narrow)),
        )
        for half, single in zip(several(found), several(right), strict=True):
            assert half is single is None or half.tobytes() == single.astype(dtype).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_nan_reaches_what_the_reference_says(name: str) -> None:
    for called, args in list(calls(name, np.float32))[8:32]:
        for i, value in enumerate(args):
            if not isinstance(value, np.ndarray):
                continue
            poisoned = value.copy()
            poisoned.reshape(-1)[-1] = np.nan
            given = (*args[:i], poisoned, *args[i + 1 :])
            found, right = KERNELS[called].native(*given), KERNELS[called].reference(*given)
            for native, truth in zip(several(found), several(right), strict=True):
                assert native is truth is None or np.array_equal(np.isnan(native), np.isnan(truth)), (
                    called,
                    i,
                )


def test_the_gradient_of_gates_is_left_to_the_reference() -> None:
    called, args = list(calls("lstm_sequence", np.float32))[1]
    grads = np.ones_like(args[10])
    assert KERNELS[called].native(*args[:2], grads, *args[3:]) is NotImplemented
