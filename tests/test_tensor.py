"""The tensor itself: what goes in and out of it, what it shares, and that nothing changes it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et

EVERY = [
    et.bool_, et.int8, et.int16, et.int32, et.int64, et.uint8, et.uint16, et.uint32, et.uint64,
    et.float16, et.bfloat16, et.float32, et.float64,
]  # fmt: skip
EXCHANGED = [d for d in EVERY if d != et.bfloat16]


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


class Foreign:
    """A tensor of another library: it speaks DLPack, and may refuse."""

    def __init__(self, array, refusal=None):
        self.array, self.refusal = array, refusal

    def __dlpack__(self, **options):
        if self.refusal:
            raise self.refusal
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        if self.refusal:
            raise self.refusal
        return self.array


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, et.float32), ([[1, 2.5]], et.float32), (3, et.int64), (True, et.bool_),
        (np.float64(1), et.float64), (np.ones(2, np.float16), et.float16), ([np.float64(1)], et.float64),
    ],
)  # fmt: skip
def test_python_floats_are_float32_and_arrays_keep_their_dtype(data, dtype):
    assert et.tensor(data).dtype == dtype
    assert et.asarray(data).dtype == dtype


@pytest.mark.parametrize("dtype", [*EVERY, et.complex64, et.complex128])
def test_lists_of_tensors_keep_their_dtype(dtype):
    one, two = et.tensor(1, dtype), et.tensor([0, 1], dtype)
    for data, shape in (
        ([one, one], (2,)),
        ((one, one), (2,)),
        ([[one], [one]], (2, 1)),
        ([two, two], (2, 2)),
    ):
        found = et.tensor(data)
        assert (found.dtype, found.shape) == (dtype, shape)
        assert np.count_nonzero(found.numpy()) == 2


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("wanted", EVERY)
def test_lists_of_tensors_become_another_dtype(dtype, wanted):
    found = et.tensor([et.tensor(1, dtype), et.tensor(0, dtype)], wanted)
    assert found.dtype == wanted
    assert found.tolist() == [1, 0]


@pytest.mark.parametrize("dtype", EVERY)
def test_in_and_out(dtype):
    x = et.tensor([[1, 0, 1]], dtype=dtype)
    assert (x.shape, x.dtype, x.ndim, x.size) == ((1, 3), dtype, 2, 3)
    assert x.tolist() == [[1, 0, 1]]
    assert type(x.tolist()[0][0]) is type(x[0, 0].item())
    assert type(x[0, 0].item()) is {"b": bool, "i": int, "u": int}.get(dtype.kind, float)
    assert np.array_equal(np.asarray(x), x.numpy())
    assert dtype.name in repr(x)
    assert "(1, 3)" in repr(x)
    assert dtype.name in x._repr_html_()
    assert "(1, 3)" in x._repr_html_()


def test_tensor_copies_and_asarray_shares():
    a = np.arange(6.0)
    assert address(et.tensor(a)) != address(a)
    x = et.asarray(a)
    assert address(x) == address(a)
    assert et.asarray(x) is x
    assert et.asarray(x, dtype=et.float32).dtype == et.float32


def test_numpy_is_a_read_only_view():
    x = et.ones((2, 3))
    view = x.numpy()
    assert address(view) == address(x.numpy())
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 5.0
    mine = np.array(x)
    mine[0, 0] = 5.0
    assert x[0, 0].item() == 1.0
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match=r"^\[__array__\]"):
        np.array(x, dtype=np.float64, copy=False)


def test_a_large_tensor_starts_at_a_cache_line():
    x = np.arange(120_000, dtype=np.float32).reshape(300, 400)
    for data in (x, x.T, x[:, ::2], et.asarray(x), x.astype(np.float64)):
        made = et.tensor(data)
        assert address(made) % 64 == 0
        assert made.numpy().flags.c_contiguous
        np.testing.assert_array_equal(made.numpy(), np.asarray(data))
        assert not np.shares_memory(made.numpy(), x)


def test_moves_are_views_and_copy_is_contiguous():
    x = et.tensor(np.arange(24.0).reshape(2, 3, 4))
    for moved in (x.T, x.mT, x[1:, ::-1], x.reshape(6, 4), et.permute(x, (1, 0, 2)), x.detach()):
        assert np.shares_memory(moved.numpy(), x.numpy())
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    copied = et.copy(x.T)
    assert not np.shares_memory(copied.numpy(), x.numpy())
    assert copied.numpy().flags.c_contiguous


@pytest.mark.parametrize("dtype", EXCHANGED)
def test_dlpack_both_ways(dtype):
    a = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    for source in (Foreign(a), Foreign(a.T), Foreign(a[:, ::2])):
        for made in (et.from_dlpack(source), et.asarray(source)):
            assert made.dtype == dtype
            assert np.array_equal(made.numpy(), source.array)
            assert address(made) == address(source.array)
    x = et.asarray(a)
    assert address(np.from_dlpack(x)) == address(a)
    assert np.array_equal(np.from_dlpack(x.T), a.T)
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_of_read_only_memory_is_a_copy():
    a = np.arange(3.0)
    a.flags.writeable = False
    assert np.from_dlpack(et.asarray(a)).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "refusal", [BufferError("no"), RuntimeError("Can't call it on a tensor that requires grad")]
)
def test_what_another_library_refuses_is_our_error(refusal):
    for name in ("from_dlpack", "asarray"):
        with pytest.raises(TypeError, match=rf"^\[{name}\]"):
            getattr(et, name)(Foreign(np.ones(2), refusal))
    with pytest.raises(TypeError, match=r"^\[tensor\] data must be numbers: Can't call it"):
        et.tensor(Foreign(np.ones(2), RuntimeError("Can't call it")))
    with pytest.raises(TypeError, match=r"^\[from_dlpack\]"):
        et.from_dlpack(3)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_of_bfloat16(version):
    """NumPy has no such dtype for DLPack: ours reads what ours writes, old capsules and new ones, without a copy."""
    x = et.tensor([[1.5, -2.0, 0.25], [3.0, np.inf, np.nan]], et.bfloat16)

    class Foreign:
        def __dlpack__(self, **options):
            return x.T.__dlpack__(**options | {"max_version": version})

        def __dlpack_device__(self):
            return (1, 0)

    for made in (et.from_dlpack(Foreign()), et.asarray(Foreign())):
        assert made.dtype == et.bfloat16
        assert made.numpy().tobytes() == x.T.numpy().tobytes()
        assert np.shares_memory(made.numpy(), x.numpy())
    with pytest.raises((BufferError, RuntimeError), match="dtype"):
        np.from_dlpack(x)


def test_nothing_changes_a_tensor():
    x = et.tensor([1.0, 2.0])
    with pytest.raises(TypeError):
        x[0] = 3.0
    for name in ("shape", "dtype", "ndim", "size", "T", "is_leaf", "colour"):
        with pytest.raises(AttributeError):
            setattr(x, name, 3)
    x += 1  # a new tensor under the old name
    assert x.tolist() == [2.0, 3.0]
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert copy.copy(x) is x
    assert address(copy.deepcopy(x)) != address(x)


def test_as_a_python_number():
    assert float(et.tensor([2.5])) == 2.5
    assert int(et.tensor(2.5)) == 2
    assert not et.tensor(0.0)
    assert ["a", "b"][et.tensor(1)] == "b"
    assert len(et.ones((3, 2))) == 3
    assert [row.tolist() for row in et.eye(2)] == [[1.0, 0.0], [0.0, 1.0]]
    for call, error, name in (
        (lambda: et.ones(2).item(), ValueError, "item"),
        (lambda: bool(et.ones(2)), ValueError, "bool"),
        (lambda: len(et.tensor(1.0)), TypeError, "len"),
        (lambda: iter(et.tensor(1.0)), TypeError, "iter"),
        (lambda: ["a"][et.tensor(0.0)], TypeError, "index"),
        (lambda: et.ones(3).mT, ValueError, "mT"),
    ):
        with pytest.raises(error, match=rf"^\[{name}\]"):
            call()


def test_at_returns_a_new_tensor():
    x = et.tensor(np.arange(5.0))
    assert x.at[1:3].set(9.0).tolist() == [0.0, 9.0, 9.0, 3.0, 4.0]
    assert x.at[[0, 0, 1]].add(1.0).tolist() == [2.0, 2.0, 2.0, 3.0, 4.0]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_requires_grad_is_a_switch_of_leaves():
    x = et.tensor([1.0, 2.0])
    assert x.requires_grad_() is x
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    x.requires_grad = False
    assert not (x * 3.0).requires_grad
    x.requires_grad = np.True_
    assert (x * 3.0).requires_grad
    et.tensor([1]).requires_grad = False
    for call, error, text in (
        (lambda: (x * 2.0).requires_grad_(False), et.GraphError, "computed from others"),
        (lambda: et.tensor([1]).requires_grad_(), TypeError, "floating dtype, got int64"),
        (lambda: x.requires_grad_(1), TypeError, "must be True or False, got int 1"),
    ):
        with pytest.raises(error, match=rf"^\[requires_grad\] .*{text}"):
            call()


def test_arrays_of_the_other_byte_order_are_converted() -> None:
    for dtype in (">f4", "<f4", ">i8", ">f8", ">u2"):
        x = et.tensor(np.arange(3).astype(dtype))
        assert x.dtype == np.dtype(dtype).newbyteorder("=")
        assert (x + 1).tolist() == [1, 2, 3]


def test_masks_are_not_dropped() -> None:
    with pytest.raises(TypeError, match=r"^\[tensor\] data has masked elements"):
        et.tensor(np.ma.masked_array([1.0, 2.0], mask=[True, False]))
    assert et.tensor(np.ma.masked_array([1.0, 2.0], mask=False)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("make", [et.tensor, et.asarray])
def test_complex_numbers_keep_their_imaginary_part(make: Callable[..., et.ExTensor]) -> None:
    data = np.array([1 + 2j, 0])
    for given in (data, data[0], et.tensor(data), [data, data]):
        for dtype in (et.float32, et.float64, et.bfloat16, et.int32):
            with pytest.raises(TypeError, match=f"does not become {dtype}"):
                make(given, dtype=dtype)
    assert make(data, dtype=et.complex64).tolist() == [1 + 2j, 0]
    assert make(data, dtype=bool).tolist() == [True, False]


def test_no_dtype_is_float32() -> None:
    for made in (
        et.zeros(2, None),
        et.ones(2, None),
        et.empty(2, None),
        et.linspace(0, 1, 2, dtype=None),
        et.eye(2, dtype=None),
    ):
        assert made.dtype == et.float32


@pytest.mark.parametrize("make", [et.tensor, et.asarray])
@pytest.mark.parametrize("dtype", [None, et.bool_])
def test_not_implemented_is_no_number(make: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match="data must be numbers: got NotImplemented"):
        make(NotImplemented, dtype=dtype)
    with pytest.raises(TypeError, match=r"data must be numbers|dtype object"):
        make([[True], (NotImplemented,)], dtype=dtype)


def test_a_cycle_through_the_array_is_collected() -> None:
    class Owned(np.ndarray):
        owner: et.ExTensor

    array = np.zeros(3).view(Owned)
    array.owner = et.ExTensor(array)
    gone = weakref.ref(array.owner)
    del array
    gc.collect()
    assert gone() is None
