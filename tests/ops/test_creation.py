"""Creation against NumPy: values, dtypes, shapes, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import extensor as et

DTYPES = ["bool", "int8", "uint64", "int64", "float16", ml_dtypes.bfloat16, "float32", "float64"]


def same(ours: et.ExTensor, theirs: np.ndarray) -> None:
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs, strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), 3, (2, 3), [2, 0], np.int64(4), np.array([2, 1])])
def test_filled_with_one_number(shape, dtype):
    shaped = np.empty(shape).shape
    same(et.zeros(shape, dtype), np.zeros(shape, dtype))
    same(et.ones(shape, dtype), np.ones(shape, dtype))
    same(et.full(shape, 1, dtype), np.ones(shape, dtype))
    assert (et.empty(shape, dtype).shape, et.empty(shape, dtype).dtype) == (shaped, np.dtype(dtype))
    like = et.zeros(shape, "float64")
    same(et.zeros_like(like, dtype), np.zeros(shape, dtype))
    same(et.ones_like(like, dtype), np.ones(shape, dtype))
    same(et.full_like(like, 1, dtype), np.ones(shape, dtype))
    assert et.empty_like(like, dtype).dtype == np.dtype(dtype)


def test_dtypes_left_open():
    for made in (
        et.zeros(2),
        et.ones(2),
        et.empty(2),
        et.eye(2),
        et.linspace(0, 1, 3),
        et.arange(0.0, 1.0),
        et.full(2, 0.5),
    ):
        assert made.dtype == et.float32
    assert et.arange(3).dtype == et.full(2, 3).dtype == et.int64
    assert et.full(2, True).dtype == et.bool_
    assert et.full(2, et.tensor(2.0, dtype=et.float16)).dtype == et.float16
    for like in (et.zeros_like, et.ones_like, et.empty_like):
        assert like(et.tensor([1, 2], dtype=et.int8)).dtype == et.int8
    assert et.full_like(et.tensor([1, 2], dtype=et.int8), 2.7).tolist() == [2, 2]


def test_like_makes_a_constant():
    x = et.ones(3, dtype=et.float64).at[0].set(2.0)
    x = et.tensor(x, requires_grad=True)
    for made in (et.zeros_like(x), et.ones_like(x), et.full_like(x, 2), et.empty_like(x)):
        assert not made.requires_grad


def test_full_takes_ints_beyond_int64_where_they_fit():
    assert et.full(1, 2**63, dtype=et.uint64).tolist() == [2**63]
    assert et.full(1, 2**63, dtype=et.bfloat16).tolist() == [2.0**63]


def test_full_keeps_the_sign_of_zero_and_nan():
    assert np.signbit(et.full(3, -0.0).numpy()).all()
    assert np.isnan(et.full(3, float("nan"), dtype=et.bfloat16).numpy()).all()


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 5), (5, 2, -1), (-3,), (0, 1, 0.1), (1.5,), (10, 0, -2.5), (2**62, 2**62 + 2)]
)
def test_arange(arguments):
    theirs = np.arange(*arguments)
    same(et.arange(*arguments), theirs.astype(np.float32) if theirs.dtype == np.float64 else theirs)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_arange_rounds_once(dtype):
    same(et.arange(0, 100, 7, dtype=dtype), np.arange(0, 100, 7).astype(dtype))
    same(et.arange(0, 3, 0.1, dtype=dtype), np.arange(0, 3, 0.1).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16, "int32"])
@pytest.mark.parametrize(
    "arguments", [(0, 1), (0, 1, 7), (-2.5, 3, 4, False), (1, 1, 3), (0, 1, 0), (0, 1, 1), (5, -5, 11)]
)
def test_linspace(arguments, dtype):
    same(et.linspace(*arguments, dtype=dtype), np.linspace(*arguments).astype(dtype))


@pytest.mark.parametrize(
    "arguments", [(3,), (3, 4), (0,), (2, 5, 1), (4, 2, -1), (3, 3, 10**20), (3, 3, -(10**20))]
)
def test_eye(arguments):
    k = min(max(arguments[2], -9), 9) if len(arguments) > 2 else 0
    for dtype in DTYPES:
        same(et.eye(*arguments, dtype=dtype), np.eye(*arguments[:2], k=k, dtype=dtype))


def test_copy_is_contiguous_and_differentiable():
    x = np.arange(6.0).reshape(2, 3).T
    y = et.copy(et.asarray(x))
    same(y, x)
    assert y.numpy().flags.c_contiguous
    assert not np.shares_memory(y.numpy(), x)
    leaf = et.tensor([1.0, 2.0], requires_grad=True)
    (et.copy(leaf) * et.tensor([3.0, 4.0])).sum().backward()
    assert leaf.grad.tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match=r"^\[copy_backward\] grad_output"):
        et.copy_backward(et.arange(3))


REFUSED = [
    ("zeros", (-1,), ValueError, "shape"),
    ("zeros", ("ab",), TypeError, "shape"),
    ("zeros", (1.5,), TypeError, "shape"),
    ("zeros", ((1,) * 65,), ValueError, "65 axes"),
    ("zeros", ((2**40, 2**40),), ValueError, "cannot be made"),
    ("ones", (2, "datetime64[s]"), TypeError, "dtype"),
    ("empty", (None,), TypeError, "shape"),
    ("full", (2, "a"), TypeError, "fill_value"),
    ("full", (2, float("nan"), "int32"), ValueError, "nan"),
    ("full", (2, 300, "int8"), ValueError, "fit"),
    ("full", (2, 10**400, "float64"), ValueError, "too large"),
    ("zeros_like", ("a",), TypeError, "x"),
    ("full_like", (np.zeros(2), None), TypeError, "fill_value"),
    ("arange", (0, 5, 0), ValueError, "step"),
    ("arange", (float("inf"),), ValueError, "finite"),
    ("arange", (2**64,), ValueError, "int64"),
    ("arange", ("a",), TypeError, "stop"),
    ("arange", (0, 10**15), MemoryError, "Unable to allocate"),
    ("linspace", (0, 1, -1), ValueError, "num"),
    ("linspace", (0, 1, 2.5), TypeError, "num"),
    ("linspace", ("a", 1), TypeError, "start"),
    ("linspace", (0, 1, 3, "yes"), TypeError, "endpoint"),
    ("eye", (-1,), ValueError, "negative"),
    ("eye", (2, 2, 0.5), TypeError, "k"),
    ("copy", ("a",), TypeError, "x"),
]


@pytest.mark.parametrize(("name", "arguments", "error", "text"), REFUSED)
def test_refused(name, arguments, error, text):
    with pytest.raises(error, match=rf"^\[{name}\].*{text}"):
        getattr(et, name)(*arguments)
