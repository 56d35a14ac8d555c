"""Connectionist temporal classification: the native sums over paths beside the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.kernels import KERNELS, NATIVE
from extensor.kernels.reference import loss_ctc as _loss_ctc  # noqa: F401  (loads later in the package)

pytestmark = pytest.mark.skipif("ctc_losses" not in NATIVE, reason="the native module is not built")


def paths(rng: np.random.Generator, dtype: Any, times: int, batch: int, most: int) -> tuple[Any, ...]:
    classes = 5
    counts = rng.integers(0, most + 1, batch)
    labels = np.where(np.arange(most) < counts[:, None], rng.integers(1, classes, (batch, most)), 0)
    states = np.zeros((batch, 2 * most + 1), np.int64)
    states[:, 1::2] = labels
    jumps = np.zeros(states.shape, bool)
    jumps[:, 3::2] = (states[:, 3::2] != states[:, 1:-2:2]) & (states[:, 3::2] != 0)
    logits = 3 * rng.standard_normal((times, batch, classes))
    x = (logits - np.log(np.exp(logits).sum(-1, keepdims=True))).astype(dtype)
    return x, states, jumps, rng.integers(0, times + 1, batch), counts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("times", "batch", "most"), [(1, 4, 1), (6, 5, 3), (20, 8, 6), (9, 1, 0), (200, 3, 20), (5, 0, 2)]
)
def test_as_the_reference(times: int, batch: int, most: int, dtype: Any) -> None:
    rng = np.random.default_rng(times)
    args = paths(rng, dtype, times, batch, most)
    found, expected = NATIVE["ctc_losses"](*args), KERNELS["ctc_losses"].reference(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-12, strict=True)
    given = (rng.standard_normal(batch), *args)
    found, expected = NATIVE["ctc_shares"](*given), KERNELS["ctc_shares"].reference(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, strict=True)


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_numbers_that_are_not_finite(value: float) -> None:
    rng = np.random.default_rng(0)
    x, *rest = paths(rng, np.float64, 8, 6, 2)
    for place in range(0, x.size, 7):
        changed = x.copy()
        changed.flat[place] = value
        with np.errstate(all="ignore"):
            found, expected = (
                NATIVE["ctc_losses"](changed, *rest),
                KERNELS["ctc_losses"].reference(changed, *rest),
            )
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_does_not_fit() -> None:
    x, states, jumps, lengths, counts = paths(np.random.default_rng(0), np.float64, 4, 2, 2)
    for wrong in ((x, states + 9, jumps, lengths, counts), (x, states, jumps, lengths + 9, counts), (x, states, jumps, lengths, counts + 9),
                  (x, states, jumps[:1], lengths, counts), (x, states.astype(np.int32), jumps, lengths, counts)):  # fmt: skip
        assert NATIVE["ctc_losses"](*wrong) is NotImplemented
