"""The namespace of the array API standard: what the conformance suite does not ask."""

from __future__ import annotations

import numpy as np
import pytest

import extensor as et
from extensor import array_api as xp


def test_tensors_know_their_namespace():
    x = et.ones(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2025.12") is xp
    with pytest.raises(ValueError, match=r"\[__array_namespace__\] api_version"):
        x.__array_namespace__(api_version="1999.12")
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match=r'\[to_device\] device must be "cpu"'):
        x.to_device("cuda")
    with pytest.raises(ValueError, match=r'\[zeros\] device must be "cpu"'):
        xp.zeros(2, device="cuda")


def test_every_name_is_there():
    assert len(set(xp.__all__)) == len(xp.__all__)
    for module in (xp, xp.linalg, xp.fft):
        assert not [name for name in module.__all__ if not hasattr(module, name)]


def test_gradients_flow_through_the_namespace():
    x = et.tensor(np.array([[2.0, 1.0], [0.5, 3.0]]), requires_grad=True)
    y = (
        xp.sum(xp.linalg.inv(x))
        + xp.sum(xp.cumulative_prod(xp.clip(x, 0.6, 5.0), axis=0))
        + xp.sum(xp.sort(x, descending=True))
    )
    y.backward()
    expected = et.linalg.inv_backward(et.ones((2, 2), et.float64), et.linalg.inv(x.detach())).numpy() + 1
    expected += et.cumprod_backward(et.ones((2, 2), et.float64), et.clip(x.detach(), 0.6, 5.0), 0).numpy() * [
        [1, 1],
        [0, 1],
    ]
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_tensors_never_change():
    x = et.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"x\.at\[key\]\.set"):
        x[0] = 3.0
    assert x.at[0].set(3.0).tolist() == [3.0, 2.0]


def test_kinds_and_limits():
    assert xp.isdtype(et.float32, "real floating")
    assert xp.isdtype(et.complex64, ("integral", "complex floating"))
    assert not xp.isdtype(et.int8, "unsigned integer")
    assert xp.finfo(et.bfloat16).eps == 2.0**-7
    assert xp.finfo(et.complex128).dtype == et.float64
    assert xp.iinfo(et.uint8).max == 255
    with pytest.raises(TypeError, match=r"\[finfo\]"):
        xp.finfo(et.int32)
    with pytest.raises(ValueError, match=r"\[isdtype\] kind"):
        xp.isdtype(et.int8, "whole")
    assert xp.result_type(et.bfloat16, 1.0) == et.bfloat16
    assert not xp.can_cast(et.float64, et.float32)


def test_complex_numbers_do_not_become_real_by_accident():
    with pytest.raises(TypeError, match=r"\[astype\] complex64 does not become float32"):
        xp.astype(xp.asarray([1j]), et.float32)


def test_foreign_arrays_are_refused():
    with pytest.raises(TypeError, match=r"\[sin\] x must be an array of this library"):
        xp.sin(np.ones(2))


def test_bits_of_integers():
    a = xp.asarray([6, 5])
    assert (a & 3).tolist() == [2, 1]
    assert (a << 1).tolist() == [12, 10]
    assert (1 << a).tolist() == [64, 32]
    assert (~a).tolist() == [-7, -6]


def test_take_along_axis_broadcasts():
    x = xp.asarray(np.arange(6.0).reshape(2, 3))
    assert xp.take_along_axis(x, xp.asarray([[2, 0]]), axis=1).tolist() == [[2.0, 0.0], [5.0, 3.0]]


def test_descending_order_is_stable():
    assert xp.argsort(xp.asarray([1, 2, 1, 2]), descending=True).tolist() == [1, 3, 0, 2]


INF = float("inf")


@pytest.mark.parametrize(
    ("x1", "x2", "expected"),
    [
        (7.0, -2.0, -4.0), (INF, 2.0, INF), (INF, -2.0, -INF), (-INF, 2.0, -INF), (-INF, -2.0, INF), (3.0, INF, 0.0),
        (3.0, -INF, -0.0), (-3.0, INF, -0.0), (-3.0, -INF, 0.0), (0.0, -INF, -0.0), (INF, INF, np.nan), (np.nan, INF, np.nan),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [et.float32, et.float64, et.bfloat16])
def test_floor_division_at_infinities_is_the_standards(x1, x2, expected, dtype):
    a, b = xp.asarray([x1], dtype=dtype), xp.asarray([x2], dtype=dtype)
    for found in (a // b, xp.floor_divide(a, b), a // x2, x1 // b):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy().astype(float), [expected])
        assert np.isnan(expected) or bool(xp.signbit(found)) == bool(np.signbit(expected))


def test_floor_division_of_tensors_is_pythons_and_has_no_gradient():
    x = et.tensor([INF, 5.0], requires_grad=True)
    np.testing.assert_array_equal((x // 2.0).numpy(), [np.nan, 2.0])
    y = xp.floor_divide(x, 2.0)
    assert y.tolist() == [INF, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="unsupported operand"):
        xp.asarray([1.0]) // "two"


@pytest.mark.parametrize("dtype", [et.complex64, et.complex128])
def test_complex_tanh_at_infinite_real_parts_is_the_standards(dtype):
    x = xp.asarray(
        [complex(INF, 2.0), complex(INF, -2.0), complex(-INF, 2.0), complex(1.0, 2.0)], dtype=dtype
    )
    y = xp.tanh(x)
    assert y.dtype == dtype
    assert y.tolist()[:3] == [1, 1, -1]
    assert np.signbit(y.numpy().imag).tolist()[:3] == [False, True, False]
    np.testing.assert_allclose(y.numpy()[3], np.tanh(1 + 2j), rtol=1e-6)
    assert xp.tanh(xp.zeros((0, 2), dtype=dtype)).shape == (0, 2)
    assert xp.tanh(xp.asarray(1j, dtype=dtype)).shape == ()
