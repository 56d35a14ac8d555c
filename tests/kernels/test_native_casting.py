"""Native changes of the dtype against NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.dtypes import FLOATING, bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("astype" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(20240611)
WHOLE = [
    np.dtype(name)
    for name in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
]
FLOATS = [np.dtype(np.float16), bfloat16, np.dtype(np.float32), np.dtype(np.float64)]
# what a floating number too large for them becomes is up to the compiler
LEFT_TO_NUMPY = {np.dtype(name) for name in ["int8", "int16", "uint8", "uint16", "uint32", "uint64"]}
PAIRS = [
    (a, b)
    for a, b in itertools.permutations([*WHOLE, *FLOATS], 2)
    if not (a in FLOATING and b in LEFT_TO_NUMPY)
]


def samples(dtype: np.dtype[Any]) -> np.ndarray:
    """Any bits, and for floating types numbers near the ties of smaller ones."""
    if dtype == np.bool_:
        return RNG.integers(0, 2, 777).astype(dtype)
    any_bits = RNG.integers(0, 256, 2000 * dtype.itemsize, dtype=np.uint8).view(dtype)
    if dtype not in FLOATING:
        return any_bits
    digits = RNG.choice([2.0**-8, 2.0**-9, 2.0**-11, 2.0**-12], 2000)
    ties = (1 + digits * RNG.integers(0, 2000, 2000)) * (1 + RNG.choice([0, 1e-15, -1e-15, 1e-7], 2000))
    scaled = ties * 2.0 ** RNG.choice([-140, -134, -126, -25, -15, 0, 15, 127], 2000)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, 2.0**-25, 2.0**-134, 1e300, -1e-310]
    with np.errstate(all="ignore"):
        return np.concatenate([any_bits, scaled.astype(dtype), np.array(edges).astype(dtype)])


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_astype(source: Any, target: Any) -> None:
    x = samples(source)
    with np.errstate(all="ignore"):
        for part in (x, x[:0], x[:1], x[3:20], x[1::2]):
            got, expected = NATIVE["astype"](part, target), part.astype(target)
            assert got.dtype == target
            if target in FLOATING:
                nan = np.isnan(expected)
                np.testing.assert_array_equal(np.isnan(got), nan)
                got, expected = got[~nan], expected[~nan]
            np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


def test_layouts_and_what_is_not_covered() -> None:
    x = RNG.standard_normal((5, 6, 7)).astype(np.float32)
    for layout in (x, x.T, x[:, ::2], x[::-1], x.transpose(1, 0, 2), x[:1, :1, :1].reshape(())):
        got = NATIVE["astype"](layout, np.dtype(np.float16))
        np.testing.assert_array_equal(got, layout.astype(np.float16))
        assert got.flags.c_contiguous or got.strides == layout.astype(np.float16).strides
    astype = NATIVE["astype"]
    assert astype(x, np.dtype(np.float32)) is NotImplemented
    assert astype(x, np.dtype(">f2")) is NotImplemented
    assert astype(x.astype(">f4"), np.dtype(np.float16)) is NotImplemented
    assert astype(x, np.dtype(np.uint8)) is NotImplemented
    assert astype(x, np.float16) is NotImplemented
    assert KERNELS["astype"].reference(x, np.uint8).dtype == np.uint8


@pytest.mark.parametrize("target", [et.float16, et.bfloat16, et.float64])
def test_the_backward_of_a_plain_call(target: Any) -> None:
    x = et.tensor([1.0, 2.5, -3.0], requires_grad=True)
    for call in (et.astype, et.ExTensor.astype):
        y = call(x, target)
        assert (y.dtype, y.requires_grad) == (target, True)
        y.backward(et.tensor([1.0, 2.0, 3.0]).astype(target))
        assert x.grad is not None
        assert (x.grad.dtype, x.grad.tolist()) == (et.float32, [1.0, 2.0, 3.0])
        x.grad = None
    assert not x.astype(et.int32).requires_grad
    constant = x.detach()
    assert constant.astype(et.float32) is constant
