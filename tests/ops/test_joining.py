"""Joining, splitting, repeating and padding against NumPy, their exact adjoints, HIPS autograd, and errors."""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import make_vjp
from movement_checks import check_adjoint, check_moves, whole

import extensor as et

TILES = [((), 3), ((3,), 0), ((3,), (2, 2)), ((2, 3), 2), ((2, 3), (3, 2, 1)), ((2, 0), (2, 3)), ((2, 3), ())]
REPEATS = [
    ((), 3, None), ((2, 3), 2, None), ((2, 3), [1, 0, 2, 3, 0, 1], None), ((2, 3), 0, 1), ((2, 3), [0, 1, 3], -1), ((2, 3), [2], 0), ((0,), 2, None),
]  # fmt: skip
WIDTHS = [
    ((), 1),
    ((5,), 3),
    ((5,), (0, 9)),
    ((1,), (3, 2)),
    ((2, 3), ((1, 0), (2, 7))),
    ((2, 3), ((1, 2),)),
    ((3, 2, 2), 1),
]
MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]


@pytest.mark.parametrize(("shape", "reps"), TILES)
def test_tile(shape, reps):
    check_moves(lambda x: et.tile(x, reps), lambda x: np.tile(x, reps), shape)
    check_adjoint(lambda g, x: et.tile_backward(g, x, reps), lambda x: np.tile(x, reps), shape)


@pytest.mark.parametrize(("shape", "repeats", "axis"), REPEATS)
def test_repeat(shape, repeats, axis):
    check_moves(lambda x: et.repeat(x, repeats, axis), lambda x: np.repeat(x, repeats, axis), shape)
    check_adjoint(
        lambda g, x: et.repeat_backward(g, x, repeats, axis), lambda x: np.repeat(x, repeats, axis), shape
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "width"), WIDTHS)
def test_pad(shape, width, mode):
    check_moves(lambda x: et.pad(x, width, mode), lambda x: np.pad(x, width, mode), shape)
    check_adjoint(lambda g, x: et.pad_backward(g, x, width, mode), lambda x: np.pad(x, width, mode), shape)


@pytest.mark.parametrize("values", [2.5, (1, 2), ((1.5, 2), (3, float("inf")))])
def test_pad_constants(values):
    x = whole((2, 3))
    width = ((1, 2), (2, 0))
    np.testing.assert_array_equal(
        et.pad(x, width, constant_values=values).numpy(), np.pad(x, width, constant_values=values)
    )


@pytest.mark.parametrize("dtype", [et.bfloat16, et.float16, et.float64])
def test_pad_constants_may_be_tensors(dtype):
    before, after = et.tensor(0.5, dtype), et.tensor(2, dtype)
    for mode in ("constant", "edge"):
        found = et.pad(et.ones(1), 1, mode, [before, after]).tolist()
        assert found == ([0.5, 1, 2] if mode == "constant" else [1, 1, 1])


def test_sums_in_half_precision_round_once():
    grad = np.random.default_rng(0).normal(size=(1001, 3)).astype(np.float16)
    exact = grad.astype(np.float64).sum(0).astype(np.float32).astype(np.float16)
    np.testing.assert_array_equal(et.tile_backward(et.asarray(grad), (3,), (1001, 1)).numpy(), exact)
    repeated = et.repeat_backward(et.asarray(grad), (1, 3), 1001, axis=0).numpy()
    np.testing.assert_array_equal(repeated[0], exact)


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(2, 3), (1, 3)], 0), ([(2, 1), (2, 0), (2, 4)], -1), ([(3,)], 0), ([(2, 3), (), (4,)], None)],
)
def test_concatenate(shapes, axis):
    arrays = [whole(shape, seed) for seed, shape in enumerate(shapes)]
    joined = et.concatenate([et.asarray(a) for a in arrays], axis)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(arrays, axis))
    for sources in (arrays, shapes):
        for ours, array in zip(et.concatenate_backward(joined, sources, axis), arrays, strict=True):
            np.testing.assert_array_equal(ours.numpy(), array)


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_stack(axis):
    arrays = [whole((2, 3), seed) for seed in range(4)]
    stacked = et.stack([et.asarray(a) for a in arrays], axis)
    np.testing.assert_array_equal(stacked.numpy(), np.stack(arrays, axis))
    for ours, array in zip(et.stack_backward(stacked, axis), arrays, strict=True):
        np.testing.assert_array_equal(ours.numpy(), array)


@pytest.mark.parametrize(
    ("where", "axis"),
    [(3, 0), (2, 1), ([1, 3], 0), ([0, 2, 2, 9], 1), ([-1], 0), ([], 0), (np.array([2]), -1)],
)
def test_split(where, axis):
    x = whole((6, 4))
    parts = et.split(et.asarray(x), where, axis)
    for ours, theirs in zip(parts, np.split(x, where, axis), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
        assert not ours.size or np.shares_memory(ours.numpy(), x)
    np.testing.assert_array_equal(et.split_backward(parts, axis).numpy(), x)


def autograd_of(function, *arrays):
    vjp, value = make_vjp(lambda t: function(*t))(arrays)
    grad = whole(value.shape, seed=9)
    return grad, vjp(grad)


@pytest.mark.parametrize(
    ("ours", "theirs", "shapes"),
    [
        (lambda a, b: et.concatenate([a, b], 1), lambda a, b: anp.concatenate([a, b], 1), [(2, 3), (2, 1)]),
        (lambda a, b: et.stack([a, b, a], 1), lambda a, b: anp.stack([a, b, a], 1), [(2, 3), (2, 3)]),
        (lambda a: et.tile(a, (2, 3)), lambda a: anp.tile(a, (2, 3)), [(2, 3)]),
        (lambda a: et.repeat(a, 3, 1), lambda a: anp.repeat(a, 3, 1), [(2, 3)]),
        (lambda a: et.pad(a, ((1, 2), (0, 3))), lambda a: anp.pad(a, ((1, 2), (0, 3)), "constant"), [(2, 3)]),
        (lambda a: et.split(a, [1], 1)[1] * et.split(a, 3, 1)[0], lambda a: anp.split(a, [1], 1)[1] * anp.split(a, 3, 1)[0], [(2, 3)]),
    ],
)  # fmt: skip
def test_gradients_agree_with_autograd(ours, theirs, shapes):
    arrays = [whole(shape, seed) for seed, shape in enumerate(shapes)]
    grad, expected = autograd_of(theirs, *arrays)
    leaves = [et.tensor(a, requires_grad=True) for a in arrays]
    ours(*leaves).backward(et.tensor(grad))
    for leaf, right in zip(leaves, expected, strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), right)


def test_dtypes_meet_and_gradients_return_to_their_own():
    narrow, wide = et.ones(2, dtype=et.bfloat16), et.ones(3, dtype=et.float64)
    assert et.concatenate([narrow, wide]).dtype == et.float64
    assert et.concatenate([narrow, et.ones(2, dtype=et.float16)]).dtype == et.float32
    assert et.stack([narrow, et.ones(2, dtype=et.int8)]).dtype == et.bfloat16
    grads = et.concatenate_backward(et.ones(5, dtype=et.float64), [narrow, wide])
    assert [g.dtype for g in grads] == [et.bfloat16, et.float64]


X = np.zeros((2, 3))
REFUSED = [
    ("concatenate", (X,), TypeError, "list of tensors"),
    ("concatenate", ([],), ValueError, "empty"),
    ("concatenate", ([X, np.zeros(3)],), ValueError, "must agree"),
    ("concatenate", ([X, np.zeros((2, 4))],), ValueError, "must agree in every axis but 0"),
    ("concatenate", ([X, X], 2), ValueError, "out of range"),
    ("concatenate", ([X, "a"],), TypeError, "tensors"),
    ("stack", ([X, np.zeros(3)],), ValueError, "one shape"),
    ("stack", ([X], 3), ValueError, "out of range"),
    ("split", (X, 2, 1), ValueError, "does not divide"),
    ("split", (X, 0), ValueError, "does not divide"),
    ("split", (X, [2, 1]), ValueError, "must not decrease"),
    ("split", (X, 1.5), TypeError, "indices_or_sections"),
    ("tile", (X, -1), ValueError, "negative"),
    ("tile", (X, 2**40), MemoryError, ""),
    ("repeat", (X, -1), ValueError, "negative"),
    ("repeat", (X, [1, 2], 1), ValueError, "must be one number, or 3"),
    ("repeat", (X, [2**62, 2**62, 2**62], 1), ValueError, "fit in memory"),
    ("repeat", (X, 2**37), MemoryError, "Unable to allocate"),
    ("repeat", (X, 0.5), TypeError, "repeats"),
    ("pad", (X, -1), ValueError, "negative"),
    ("pad", (X, (1, 2, 3)), ValueError, "pad_width"),
    ("pad", (X, 1.5), TypeError, "pad_width"),
    ("pad", (X, 1, "mirror"), ValueError, "mode"),
    ("pad", (np.zeros((0, 2)), 1, "edge"), ValueError, "empty axis"),
    ("pad", (X, 1, "constant", "a"), TypeError, "constant_values"),
    ("concatenate_backward", (np.zeros(5), [(2,), (2,)]), ValueError, "grad_output"),
    ("concatenate_backward", (np.zeros(2), [np.zeros(2, np.int64)]), TypeError, "int64"),
    ("stack_backward", (X, 2), ValueError, "out of range"),
    ("split_backward", ([np.zeros((2, 2)), np.zeros((3, 3))],), ValueError, "must agree"),
    ("tile_backward", (np.zeros(5), (2,), 2), ValueError, "grad_output"),
    ("repeat_backward", (np.zeros(5), (2,), 2), ValueError, "grad_output"),
    ("pad_backward", (np.zeros(5), (2,), 2), ValueError, "grad_output"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "error", "text"), REFUSED)
def test_refused(name, arguments, error, text):
    with pytest.raises(error, match=rf"^\[{name}\].*{text}"):
        getattr(et, name)(*arguments)


def test_unstack_of_an_empty_axis_is_recorded_as_nothing() -> None:
    x = et.tensor(np.zeros((2, 0)), requires_grad=True)
    assert et.unstack(x, axis=1) == []


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_a_margin_that_cannot_exist_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match=r"\[pad\] pad_width .* is more than fits in memory"):
        et.pad(et.ones(3), 2**70, mode=mode)
