"""Normalisation: against formulas in HIPS autograd, running statistics, absent weights, dtypes, edges, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

RNG = np.random.default_rng(5)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def unit(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    centred = x - anp.mean(x, axes, keepdims=True)
    return centred / anp.sqrt(anp.mean(centred**2, axes, keepdims=True) + eps)


def channels(v: Any, x: Any) -> Any:
    return anp.reshape(v, (1, -1) + (1,) * (x.ndim - 2))


def layer(x: Any, w: Any, b: Any, shape: tuple[int, ...], eps: float) -> Any:
    return unit(x, tuple(range(-len(shape), 0)), eps) * w + b


def rms(x: Any, w: Any, shape: tuple[int, ...], eps: float) -> Any:
    return x / anp.sqrt(anp.mean(x**2, tuple(range(-len(shape), 0)), keepdims=True) + eps) * w


def group(x: Any, w: Any, b: Any, groups: int, eps: float) -> Any:
    rows = unit(anp.reshape(x, (x.shape[0], groups, -1)), (2,), eps)
    return anp.reshape(rows, x.shape) * channels(w, x) + channels(b, x)


def batch(x: Any, w: Any, b: Any, eps: float) -> Any:
    return unit(x, (0, *range(2, x.ndim)), eps) * channels(w, x) + channels(b, x)


def check(found: Any, output: Any, oracle: Any, inputs: list[np.ndarray], g: np.ndarray) -> None:
    np.testing.assert_allclose(output.numpy(), oracle(inputs), rtol=1e-11, atol=1e-13)
    expected = autograd.grad(lambda p: anp.sum(oracle(p) * g))(inputs)
    for grad, right in zip(found, expected):
        np.testing.assert_allclose(grad.numpy(), right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "last"), [((5,), (5,)), ((3, 7), (7,)), ((2, 3, 4), (3, 4)), ((2, 1, 70), (70,))]
)
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_over_the_last_axes(shape: tuple[int, ...], last: tuple[int, ...], eps: float) -> None:
    x, w, b, g = draw(*shape), draw(*last), draw(*last), draw(*shape)
    tx, tw, tb, tg = map(et.asarray, (x, w, b, g))
    check(
        et.layer_norm_backward(tg, tx, last, tw, eps), et.layer_norm(tx, last, tw, tb, eps),
        lambda p: layer(*p, last, eps), [x, w, b], g,
    )  # fmt: skip
    check(
        et.rms_norm_backward(tg, tx, last, tw, eps), et.rms_norm(tx, last, tw, eps),
        lambda p: rms(*p, last, eps), [x, w], g,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 6), 3), ((2, 4, 5), 2), ((1, 3, 2, 2), 1), ((3, 2, 2), 2)]
)
def test_group_norm(shape: tuple[int, ...], groups: int) -> None:
    x, w, b, g = draw(*shape), draw(shape[1]), draw(shape[1]), draw(*shape)
    tx, tw, tb, tg = map(et.asarray, (x, w, b, g))
    check(
        et.group_norm_backward(tg, tx, groups, tw), et.group_norm(tx, groups, tw, tb),
        lambda p: group(*p, groups, 1e-5), [x, w, b], g,
    )  # fmt: skip
    if groups == shape[1]:
        assert et.instance_norm(tx, tw, tb).tolist() == et.group_norm(tx, groups, tw, tb).tolist()
        one, other = et.instance_norm_backward(tg, tx, tw), et.group_norm_backward(tg, tx, groups, tw)
        assert [a.tolist() for a in one] == [a.tolist() for a in other]


@pytest.mark.parametrize("shape", [(4, 3), (3, 2, 5), (2, 3, 2, 2)])
def test_batch_norm_in_training(shape: tuple[int, ...]) -> None:
    x, w, b, g = draw(*shape), draw(shape[1]), draw(shape[1]), draw(*shape)
    mean, var = draw(shape[1]), 1 + draw(shape[1]) ** 2
    tx, tw, tb, tg, tm, tv = map(et.asarray, (x, w, b, g, mean, var))
    result = et.batch_norm(tx, tw, tb, tm, tv, True, momentum=0.3)
    grads = et.batch_norm_backward(tg, tx, tw, tm, tv, True, momentum=0.3)
    check(grads, result.output, lambda p: batch(*p, 1e-5), [x, w, b], g)
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(result.running_mean.numpy(), 0.7 * mean + 0.3 * x.mean(axes), rtol=1e-13)
    np.testing.assert_allclose(result.running_var.numpy(), 0.7 * var + 0.3 * x.var(axes, ddof=1), rtol=1e-13)
    assert tm.tolist() == mean.tolist()
    # of the three results only the first is used: a tuple says the same
    for form in ((tg, None, None), [tg, et.zeros_like(tm), et.zeros_like(tv)]):
        again = et.batch_norm_backward(form, tx, tw, tm, tv, True, momentum=0.3)
        assert [a.tolist() for a in again] == [a.tolist() for a in grads]


def test_gradients_through_the_new_statistics() -> None:
    x, (g_mean, g_var) = draw(5, 2), (draw(2), draw(2))
    found = et.batch_norm_backward(
        (None, et.asarray(g_mean), et.asarray(g_var)),
        et.asarray(x),
        None,
        et.zeros(2),
        et.ones(2),
        True,
        momentum=0.3,
    )
    right = 0.3 * (g_mean / 5 + g_var * 2 * (x - x.mean(0)) / 4)
    np.testing.assert_allclose(found.grad_x.numpy(), right, rtol=1e-12)
    assert found.grad_weight is None


def test_batch_norm_without_training() -> None:
    x, w, b, g, mean, var = draw(4, 3), draw(3), draw(3), draw(4, 3), draw(3), 1 + draw(3) ** 2
    tx, tw, tb, tg, tm, tv = map(et.asarray, (x, w, b, g, mean, var))
    result = et.batch_norm(tx, tw, tb, tm, tv, False)
    assert (result.running_mean.tolist(), result.running_var.tolist()) == (mean.tolist(), var.tolist())
    check(
        et.batch_norm_backward(tg, tx, tw, tm, tv, False), result.output,
        lambda p: (p[0] - mean) / anp.sqrt(var + 1e-5) * p[1] + p[2], [x, w, b], g,
    )  # fmt: skip


def test_a_recorded_step() -> None:
    x, w = et.tensor(draw(4, 3), requires_grad=True), et.tensor(draw(3), requires_grad=True)
    result = et.batch_norm(x, w, None, et.zeros(3, et.float64), et.ones(3, et.float64), True)
    (result.output * result.output).sum().backward()
    right = et.batch_norm_backward(2 * result.output.detach(), x.detach(), w.detach(), None, None, True)
    assert (x.grad.tolist(), w.grad.tolist()) == (right.grad_x.tolist(), right.grad_weight.tolist())


def test_a_bias_without_a_weight() -> None:
    """It has its gradient where it is asked for on its own; a plain call returns None for both."""
    x, b = et.tensor(draw(4, 3)), et.tensor(draw(3), requires_grad=True)
    for output in (et.layer_norm(x, 3, None, b), et.batch_norm(x, None, b, None, None, True).output):
        b.grad = None
        output.sum().backward()
        assert b.grad.tolist() == [4.0] * 3
    assert et.layer_norm_backward(x, x, 3)[1:] == (None, None)
    assert et.rms_norm_backward(x, x, 3).grad_weight is None


def test_only_what_is_needed() -> None:
    x, w = et.asarray(draw(4, 2)), et.asarray(draw(2))
    calls = [
        lambda **o: et.layer_norm_backward(x, x, 2, w, **o), lambda **o: et.group_norm_backward(x, x, 1, w, **o),
        lambda **o: et.batch_norm_backward(x, x, w, None, None, True, **o),
    ]  # fmt: skip
    for call in calls:
        for i in range(3):
            some = call(needs=tuple(j == i for j in range(3)))
            assert [grad is None for grad in some] == [j != i for j in range(3)]
            assert some[i].tolist() == call()[i].tolist()


NORMS = {
    "layer_norm": (
        lambda x, w, b: et.layer_norm(x, 6, w, b),
        lambda g, x, w: et.layer_norm_backward(g, x, 6, w),
    ),
    "rms_norm": (lambda x, w, b: et.rms_norm(x, 6, w), lambda g, x, w: et.rms_norm_backward(g, x, 6, w)),
    "group_norm": (
        lambda x, w, b: et.group_norm(x, 2, w, b),
        lambda g, x, w: et.group_norm_backward(g, x, 2, w),
    ),
    "batch_norm": (
        lambda x, w, b: et.batch_norm(x, w, b, None, None, True).output,
        lambda g, x, w: et.batch_norm_backward(g, x, w, None, None, True),
    ),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_float32_rounded_once(name: str, dtype: Any) -> None:
    forward, backward = NORMS[name]
    # numbers whose squares and sums do not fit float16: the statistics must be wider
    x, w, b, g = (et.asarray(100 * v).astype(dtype) for v in (draw(8, 6) + 5, draw(6), draw(6), draw(8, 6)))
    wide = [v.astype(et.float32) for v in (x, w, b, g)]
    pairs = [(forward(x, w, b), forward(*wide[:3])), *zip(backward(g, x, w), backward(wide[3], *wide[:2]))]
    for found, expected in pairs:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


def test_statistics_keep_their_dtype() -> None:
    x, w = et.asarray(draw(4, 3)).astype(et.float16), et.ones(3, et.float16)
    result = et.batch_norm(x, w, None, et.zeros(3), et.ones(3, et.float64), True)
    assert [t.dtype for t in result] == [et.float16, et.float32, et.float64]
    wide = et.batch_norm(x.astype(et.float32), w.astype(et.float32), None, et.zeros(3), et.ones(3), True)
    assert result.output.tolist() == wide.output.astype(et.float16).tolist()
    assert result.running_mean.tolist() == wide.running_mean.tolist()


def test_large_means_do_not_swallow_the_variance() -> None:
    x = (1e4 + draw(3, 64)).astype(np.float32)
    expected = unit(x.astype(np.float64), (1,), 1e-5)
    np.testing.assert_allclose(et.layer_norm(et.asarray(x), 64).numpy(), expected, rtol=2e-6, atol=2e-6)
    y = et.batch_norm(et.asarray(x.T.copy()), None, None, None, None, True).output
    np.testing.assert_allclose(y.numpy(), expected.T, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("length", [1, 2, 7, 33, 70])
def test_a_nan_at_every_position_stays_in_its_row(length: int) -> None:
    x = np.tile(np.arange(float(length)), (length, 1)).astype(np.float32)
    np.fill_diagonal(x, np.nan)
    rows = np.concatenate([x, np.arange(length, dtype=np.float32)[None]])
    for norm, back in ((et.layer_norm, et.layer_norm_backward), (et.rms_norm, et.rms_norm_backward)):
        y, grads = norm(et.asarray(rows), length), back(et.ones(rows.shape), et.asarray(rows), length)
        for found in (y, grads.grad_x):
            assert np.isnan(found.numpy()[:-1]).all()
            assert np.isfinite(found.numpy()[-1]).all()


X = et.ones((2, 4, 3))
ERRORS = [
    (lambda: et.layer_norm(X, (4,)), ValueError, r"\[layer_norm\] normalized_shape is \(4,\) but the last axes of x are \(3,\)"),
    (lambda: et.layer_norm(X, ()), ValueError, r"\[layer_norm\] normalized_shape must name one axis at least"),
    (lambda: et.layer_norm(X, 3, et.ones(4)), ValueError, r"\[layer_norm\] weight has shape \(4,\) but must have shape \(3,\)"),
    (lambda: et.layer_norm(X, 3, eps=-1.0), ValueError, r"\[layer_norm\] eps must be a finite number"),
    (lambda: et.layer_norm(et.tensor([1, 2]), 2), TypeError, r"\[layer_norm\] x must have a floating dtype"),
    (lambda: et.layer_norm_backward(et.ones((2, 4)), X, 3), ValueError, r"\[layer_norm_backward\] grad_output has shape \(2, 4\)"),
    (lambda: et.rms_norm(X, 3, et.ones((1, 3))), ValueError, r"\[rms_norm\] weight has shape \(1, 3\)"),
    (lambda: et.group_norm(X, 3), ValueError, r"\[group_norm\] num_groups is 3, which does not divide the 4 channels"),
    (lambda: et.group_norm(et.ones(3), 3), ValueError, r"\[group_norm\] x must have the axes \(N, C, ...\)"),
    (lambda: et.group_norm(X, 2, et.ones(3)), ValueError, r"\[group_norm\] weight has shape \(3,\) but must have shape \(4,\)"),
    (lambda: et.instance_norm(et.ones((2, 4, 1))), ValueError, r"\[instance_norm\] x of shape \(2, 4, 1\) has one position"),
    (lambda: et.batch_norm(et.ones((1, 4)), None, None, None, None, True), ValueError, r"\[batch_norm\] training needs more than one value"),
    (lambda: et.batch_norm(X, None, None, None, et.ones(4), False), ValueError, r"\[batch_norm\] running_mean and running_var must be given"),
    (lambda: et.batch_norm(X, None, None, et.ones(3), None, True), ValueError, r"\[batch_norm\] running_mean has shape \(3,\)"),
    (lambda: et.batch_norm(X, None, None, None, None, True, momentum=2.0), ValueError, r"\[batch_norm\] momentum must lie between"),
    (lambda: et.batch_norm(X, None, None, None, None, 1), TypeError, r"\[batch_norm\] training must be True or False"),
    (lambda: et.batch_norm_backward((X, None), X, None, None, None, True), ValueError, r"\[batch_norm_backward\] grad_output has 2 elements"),
    (lambda: et.batch_norm_backward((X, X, None), X, None, et.ones(4), None, True), ValueError, r"\[batch_norm_backward\] grad_output\[1\] has shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_no_channels_and_no_features() -> None:
    x = et.tensor(np.zeros((2, 0, 3, 3)), requires_grad=True)
    y = et.tensor(np.zeros((1, 2, 0)), requires_grad=True)
    et.instance_norm(x).sum().backward()
    et.self_attention(y).sum().backward()
    assert (x.grad.shape, y.grad.shape) == (x.shape, y.shape)


@pytest.mark.parametrize("groups", [1, 3, 2**63])
def test_no_channels_are_divided_into_any_number_of_groups(groups):
    x = et.zeros((2, 0, 1))
    assert et.group_norm(x, groups).shape == x.shape
    assert et.group_norm_backward(x, x, groups).grad_x.shape == x.shape
