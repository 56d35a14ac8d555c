"""Indexing, take and functional updates against NumPy and HIPS autograd; repeats, dtypes and errors.

Random keys are the business of tests/properties/test_indexing.py.
"""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import make_vjp
from movement_checks import check_adjoint, check_moves, whole

import extensor as et

MASK = np.array([[True, False, True], [False, False, True]])
KEYS = [
    ((), ()), ((), ...), ((), None), ((2, 3), 1), ((2, 3), -1), ((2, 3), (0, 2)), ((2, 3), np.int8(1)), ((2, 3), True), ((2, 3), False),
    ((7,), slice(None, None, -2)), ((7,), slice(5, 1)), ((2, 3, 4), (..., 1)), ((2, 3, 4), (slice(None), None, [1, 1], ..., 0)),
    ((7,), [0, 2, 2]), ((7,), []), ((7,), [[1, 2], [-1, 1]]), ((7,), range(3)), ((7,), (range(3),)), ((2, 3), ([1, 0], [2, 2])), ((2, 3), ([[1], [0]], [2, 0])),
    ((2, 3), MASK), ((2, 3), MASK.tolist()), ((2, 3), (slice(None), MASK[0])), ((2, 3), (np.array(1), MASK[0])), ((2, 3, 4), (MASK, 1)),
    ((2, 3, 4), ([0, 1], slice(None), [3, 3])), ((2, 3, 4), (slice(1), [0, 0, 2], slice(None, None, 2))), ((0, 3), slice(None)),
]  # fmt: skip


def tensors(key):
    """The key with tensors in the places of its arrays."""
    if isinstance(key, tuple):
        return tuple(map(tensors, key))
    return et.asarray(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize(("shape", "key"), KEYS, ids=[f"{s}{k}" for s, k in KEYS])
def test_index(shape, key):
    for form in (key, tensors(key)):
        check_moves(lambda x, form=form: x[form], lambda x: x[key], shape)
        check_adjoint(lambda g, x, form=form: et.index_backward(g, x, form), lambda x: x[key], shape)


@pytest.mark.parametrize(("shape", "key"), KEYS, ids=[f"{s}{k}" for s, k in KEYS])
def test_updates(shape, key):
    x, values = whole(shape), whole(np.shape(whole(shape)[key]), seed=3)
    written, added = x.copy(), x.copy()
    written[key] = values
    np.add.at(added, key, values)
    t = et.tensor(x)
    np.testing.assert_array_equal(t.at[key].set(et.tensor(values)).numpy(), written)
    np.testing.assert_array_equal(t.at[key].add(et.tensor(values)).numpy(), added)
    np.testing.assert_array_equal(t.numpy(), x)


@pytest.mark.parametrize(("shape", "key"), KEYS, ids=[f"{s}{k}" for s, k in KEYS])
def test_gradients_of_updates(shape, key):
    """An update is linear in x and in the values: compare with unit vectors put through NumPy."""
    selected = np.shape(whole(shape)[key])

    def written(x, v):
        y = x.copy()
        y[key] = v
        return y

    def added(x, v):
        y = x.copy()
        np.add.at(y, key, v)
        return y

    grad = et.tensor(whole(shape, seed=4))
    for backward, update in ((et.index_set_backward, written), (et.index_add_backward, added)):
        for values in (selected, (1,) * len(selected)):
            check_adjoint(
                lambda g, x, b=backward, v=values: b(g, key, v).grad_x, lambda x, u=update: u(x, 0.0), shape
            )
            size = int(np.prod(values))
            units = np.eye(size).reshape(size, *values)
            expected = [(update(np.zeros(shape), unit) * grad.numpy()).sum() for unit in units]
            ours = backward(grad, key, values).grad_values
            np.testing.assert_array_equal(ours.numpy(), np.array(expected).reshape(values))


def test_the_last_of_repeated_writes_has_the_gradient():
    x, values = (
        et.zeros(3, dtype=et.float64),
        et.tensor([1.0, 2.0, 3.0], dtype=et.float64, requires_grad=True),
    )
    y = x.at[[1, 1, 0]].set(values)
    assert y.tolist() == [3.0, 2.0, 0.0]
    y.backward(et.tensor([10.0, 20.0, 30.0], dtype=et.float64))
    assert values.grad.tolist() == [0.0, 20.0, 10.0]


@pytest.mark.parametrize("key", [1, (slice(None), [2, 0, 0]), MASK, ([1, 1], [0, 0])])
def test_gradient_agrees_with_autograd(key):
    x = whole((2, 3))
    vjp, value = make_vjp(lambda x: anp.sin(x[key]))(x)
    grad = np.random.default_rng(0).normal(size=value.shape)
    leaf = et.tensor(x, requires_grad=True)
    leaf[key].sin().backward(et.tensor(grad))
    np.testing.assert_allclose(leaf.grad.numpy(), vjp(grad), rtol=1e-14)


def test_basic_keys_give_views():
    x = np.zeros((3, 4))
    for key in (1, (0, 2), slice(None, None, -1), (..., None), np.s_[1:, ::2]):
        assert np.shares_memory(et.asarray(x)[key].numpy(), x)


TAKES = [
    ((7,), [3, 3, -1], None), ((7,), 2, 0), ((2, 3), [[0, 5], [5, -1]], None), ((2, 3), [1, 1, 0], 0), ((2, 3), [[2], [2]], -1), ((2, 3), [], 1), ((2, 0), [1], 0),
]  # fmt: skip
ALONG = [
    ((7,), [3, 3, -1], 0), ((2, 3), [[2], [0]], 1), ((2, 3), [[1, 1, 0]], 0), ((2, 3), [[2, 2, 0, -1]], -1), ((1, 3), [[1, 1], [0, 2]], 1), ((2, 3), [5, 0, 0], None),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "indices", "axis"), TAKES)
def test_take(shape, indices, axis):
    indices = np.array(indices, np.int64)

    def oracle(x):
        return np.take(x, indices, axis)

    check_moves(lambda x: et.take(x, indices, axis), oracle, shape)
    check_adjoint(lambda g, x: et.take_backward(g, x, et.asarray(indices), axis), oracle, shape)


@pytest.mark.parametrize(("shape", "indices", "axis"), ALONG)
def test_take_along_axis(shape, indices, axis):
    indices = np.array(indices)

    def oracle(x):
        return np.take_along_axis(x, indices, axis)

    check_moves(lambda x: et.take_along_axis(x, indices, axis), oracle, shape)
    check_adjoint(lambda g, x: et.take_along_axis_backward(g, x, et.asarray(indices), axis), oracle, shape)


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_accumulation_in_half_precision_rounds_once(dtype):
    grad = et.tensor(np.random.default_rng(0).normal(size=4001), dtype=dtype)
    exact = grad.numpy().astype(np.float64).sum().astype(np.float32).astype(dtype)
    zeros = np.zeros(4001, np.int64)
    for result in (
        et.index_backward(grad, (2,), zeros),
        et.take_backward(grad, (2,), zeros),
        et.take_along_axis_backward(grad, (2,), zeros),
        et.zeros(2, dtype=dtype).at[zeros].add(grad),
    ):
        assert result.dtype == dtype
        assert result.numpy()[0] == exact


def test_values_take_the_dtype_of_the_tensor():
    assert et.zeros(2).at[0].set(et.tensor(1.5, dtype=et.float64)).dtype == et.float32
    exact = 16777217.0  # no float32
    for kind in (et.float64, et.complex128):
        assert et.zeros(2, dtype=kind).at[0].set(exact).tolist() == [exact, 0.0]
        assert et.zeros(2, dtype=kind).at[et.tensor([True, False])].add(exact).tolist() == [exact, 0.0]
    for kind in (et.float32, et.bfloat16, et.int32):
        with pytest.raises(
            TypeError, match=rf"\[index_set\] values of complex64 do not go into a tensor of {kind}"
        ):
            et.zeros(2, dtype=kind).at[0].set(1.5j)
    assert et.zeros(2, dtype=et.int8).at[0].add(3).tolist() == [3, 0]
    assert et.tensor([True, False]).at[1].set(True).tolist() == [True, True]
    values = et.ones(2, dtype=et.float64)
    assert et.index_add_backward(et.ones(2), [0, 1], values).grad_values.dtype == et.float64


X = np.zeros((2, 3))
REFUSED = [
    ("index", (X, 2), IndexError, "out of bounds"),
    ("index", (X, 2**63), IndexError, ""),
    ("index", (X, ([0, -3],)), IndexError, "out of bounds"),
    ("index", (X, (0, 0, 0)), IndexError, "too many"),
    ("index", (X, (..., ...)), IndexError, "ellipsis"),
    ("index", (X, np.zeros(3, np.bool_)), IndexError, "boolean"),
    ("index", (X, ([0, 1], [0, 1, 2])), IndexError, "broadcast"),
    ("index", (X, slice(None, None, 0)), ValueError, "zero"),
    ("index", (X, 1.0), TypeError, "key"),
    ("index", (X, "a"), TypeError, "key"),
    ("index", (X, [0.5]), TypeError, "key"),
    ("index", (X, slice(0.5)), TypeError, "slices"),
    ("index_backward", (X, (2, 3), 0), ValueError, "grad_output"),
    ("index_backward", (X[0], np.zeros((2, 3), np.int64), 0), TypeError, "int64"),
    ("index_backward", (X[0, 0], (1 << 70, 1 << 62), ()), ValueError, "than any memory"),
    ("index_set", (X, 0, np.zeros(2)), ValueError, r"values of shape \(2,\)"),
    ("index_set", (X, 0, np.zeros((1, 3))), ValueError, "values of shape"),
    ("index_set", (np.zeros(2, np.int64), 0, 0.5), TypeError, "float32"),
    ("index_set", (np.zeros(2, np.int8), 0, 300), ValueError, "300 does not fit int8"),
    ("index_add", (X, 5, 0.0), IndexError, "out of bounds"),
    ("index_set_backward", (X, 0, (2,)), ValueError, "values of shape"),
    ("index_add_backward", (X, 7, ()), IndexError, "out of bounds"),
    ("take", (X, 6), IndexError, "indices hold 6"),
    ("take", (X, [0, -3], 0), IndexError, "indices hold -3"),
    ("take", (X, [0.5]), TypeError, "indices"),
    ("take", (X, 0, 2), ValueError, "axis"),
    ("take_backward", (X, (2, 3), [0], 0), ValueError, "grad_output"),
    ("take_along_axis", (X, [0]), ValueError, "2 axes"),
    ("take_along_axis", (X, np.zeros((4, 1), np.int64), 1), ValueError, "broadcast"),
    ("take_along_axis", (X, [[3], [0]], 1), IndexError, "indices hold 3"),
    ("take_along_axis_backward", (X, (2, 3), [[0], [0]], 1), ValueError, "grad_output"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "error", "text"), REFUSED)
def test_refused(name, arguments, error, text):
    with pytest.raises(error, match=rf"^\[{name}\].*{text}") as caught:
        getattr(et, name)(*arguments)
    assert isinstance(caught.value, (ValueError, TypeError))


def test_iteration_ends():
    assert [row.tolist() for row in et.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match=r"^\[iter\]"):
        iter(et.tensor(1.0))


def test_a_number_is_a_gradient_of_one_element() -> None:
    x = et.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert et.index_backward(1.5, x, 2).tolist() == [0.0, 0.0, 1.5]  # recorded, by its formula
