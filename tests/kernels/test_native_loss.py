"""Native losses of single elements against the reference in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import get_num_threads, set_num_threads
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("huber" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(20250311)
DTYPES = [np.float32, np.float64]
LENGTHS = [1, 3, 16, 37, 512, 513, 5001, 9000]
REDUCTIONS = ["mean", "sum", "none"]
# Loss, options, and where predictions and targets lie.
LOSSES = [
    ("mean_squared_error", (), "real", "real"),
    ("mean_absolute_error", (), "real", "real"),
    ("smooth_l1", (1.0,), "real", "real"),
    ("smooth_l1", (0.3,), "real", "real"),
    ("huber", (1.0,), "real", "real"),
    ("huber", (2.5,), "real", "real"),
    ("binary_cross_entropy", (None,), "probability", "probability"),
    ("binary_cross_entropy_with_logits", (None, None), "real", "probability"),
    ("focal", (0.25, 2.0), "real", "probability"),
    ("focal", (None, 2.0), "real", "probability"),
    ("focal", (0.6, 0.0), "real", "probability"),
    ("focal", (0.6, 1.3), "real", "probability"),
    ("hinge", (), "real", "sign"),
    ("kl_divergence", (0,), "probability", "probability"),
]
each_loss = pytest.mark.parametrize(("name", "options", "left", "right"), LOSSES, ids=str)
SPECIAL = {
    "real": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 200.0, -200.0, 1e-30],
    "probability": [np.nan, 0.0, -0.0, 1.0, 0.5, 1e-30],
    "sign": [1.0, -1.0],
}


def draw(kind: str, length: int, dtype: Any) -> np.ndarray:
    if kind == "sign":
        return RNG.choice([-1.0, 1.0], length).astype(dtype)
    if kind == "real":
        return (RNG.standard_normal(length) * 3).astype(dtype)
    some = RNG.uniform(0, 1, length)
    return np.where(RNG.uniform(size=length) < 0.2, np.round(some), some).astype(dtype)


def in_dtype(name: str, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return KERNELS[name].reference(*args)


def exact(name: str, *args: Any) -> Any:
    return in_dtype(name, *(a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in args))


def assert_close(got: Any, expected: Any, dtype: Any, size: Any = 0.0) -> None:
    """Within sixteen roundings of the number itself and of ``size``."""
    assert got is not NotImplemented
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    assert got.dtype == dtype
    with np.errstate(all="ignore"):
        bound = 16 * np.finfo(dtype).eps * (np.abs(expected) + size)
        near = np.abs(got.astype(np.float64) - expected) <= bound
        same = (got == expected.astype(dtype)) | (np.isnan(got) & np.isnan(expected))
    assert (near | same).all(), (got[~(near | same)], expected[~(near | same)])


def backward_options(name: str, options: Any, reduction: str) -> tuple[Any, ...]:
    """What the backward takes after the tensors."""
    return (*options, reduction, (True, True)) if name == "kl_divergence" else (*options, reduction)


def pairs(got: Any, wanted: Any) -> list[tuple[Any, Any]]:
    """The gradients beside those that are wanted, one or two of them."""
    return list(zip(got, wanted)) if isinstance(wanted, tuple) else [(got, wanted)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@each_loss
def test_forward_and_backward(
    name: str, options: Any, left: str, right: str, reduction: str, dtype: Any
) -> None:
    if name == "kl_divergence" and reduction == "none":
        reduction = "sum"  # one divergence per row is left to the reference
    for length in LENGTHS:
        p, t = draw(left, length, dtype), draw(right, length, dtype)
        g = np.asarray(RNG.standard_normal(length if reduction == "none" else ())).astype(dtype)
        expected = exact(name, p, t, *options, reduction)
        terms = 0.0  # what a divergence is the difference of
        if name == "kl_divergence":
            with np.errstate(all="ignore"):
                terms = float(np.nan_to_num(np.abs(p * np.log(p)) + np.abs(p * np.log(t)), posinf=0).sum())
        assert_close(NATIVE[name](p, t, *options, reduction), expected, dtype, terms)
        # Slopes are differences of numbers below 1 (logistic) or of logarithms (divergence).
        size = {"focal": np.abs(p), "kl_divergence": 1 + np.log(1e30)}.get(name, 1.0) * np.abs(g) + np.abs(g)
        if reduction == "mean" and name != "kl_divergence":
            size = size / length
        rest = backward_options(name, options, reduction)
        wanted = exact(f"{name}_backward", g, p, t, *rest)
        for x, y in pairs(NATIVE[f"{name}_backward"](g, p, t, *rest), wanted):
            assert_close(x, y, dtype, size)


@pytest.mark.parametrize("dtype", DTYPES)
@each_loss
def test_special_values_at_every_position(name: str, options: Any, left: str, right: str, dtype: Any) -> None:
    a, b = np.meshgrid(np.array(SPECIAL[left], dtype), np.array(SPECIAL[right], dtype))
    for shift in (0, 1, 5):
        p, t = np.roll(a.ravel(), shift), np.roll(b.ravel(), shift)
        if name == "kl_divergence":
            g, reduction = np.array(1, dtype), "sum"
            for x, y in zip(p, t):  # one at a time, because they are added up
                pair = np.array([x]), np.array([y])
                assert_close(NATIVE[name](*pair, 0, "sum"), exact(name, *pair, 0, "sum"), dtype, 1)
        else:
            g, reduction = np.ones(p.shape, dtype), "none"
            assert_close(NATIVE[name](p, t, *options, "none"), in_dtype(name, p, t, *options, "none"), dtype)
        rest = backward_options(name, options, reduction)
        wanted = in_dtype(f"{name}_backward", g, p, t, *rest)
        for x, y in pairs(NATIVE[f"{name}_backward"](g, p, t, *rest), wanted):
            assert_close(x, y, dtype, 1)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16], ids=str)
@each_loss
def test_half_precision_is_rounded_once(name: str, options: Any, left: str, right: str, dtype: Any) -> None:
    p, t = draw(left, 300, np.float32).astype(dtype), draw(right, 300, np.float32).astype(dtype)
    g = np.array(0.7, dtype)
    narrow = NATIVE[name](p, t, *options, "mean")
    wide = NATIVE[name](p.astype(np.float32), t.astype(np.float32), *options, "mean")
    assert narrow.dtype == dtype
    assert narrow == wide.astype(dtype)
    rest = backward_options(name, options, "mean")
    narrow = NATIVE[f"{name}_backward"](g, p, t, *rest)
    wide = NATIVE[f"{name}_backward"](*(x.astype(np.float32) for x in (g, p, t)), *rest)
    for x, y in pairs(narrow, wide):
        with np.errstate(over="ignore"):
            expected = y.astype(dtype)
        assert x.dtype == dtype
        assert np.array_equal(x, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@each_loss
def test_any_number_of_threads_gives_the_same_bits(
    name: str, options: Any, left: str, right: str, dtype: Any
) -> None:
    p, t = draw(left, 300_001, dtype), draw(right, 300_001, dtype)
    g = np.array(0.7, dtype)
    rest = backward_options(name, options, "mean")
    before = get_num_threads()
    seen = []
    try:
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            grads = NATIVE[f"{name}_backward"](g, p, t, *rest)
            grads = grads if isinstance(grads, tuple) else (grads,)
            seen.append([NATIVE[name](p, t, *options, "mean").tobytes(), *(x.tobytes() for x in grads)])
    finally:
        set_num_threads(before)
    assert all(one == seen[0] for one in seen)


def test_single_losses_are_added_up_in_double_precision() -> None:
    p = np.ones(500, np.float32)
    p[0] = 2**24  # the next float32 is two away
    assert NATIVE["mean_absolute_error"](p, np.zeros_like(p), "sum") == np.float32(2**24 + 499)


@each_loss
def test_no_elements(name: str, options: Any, left: str, right: str) -> None:
    p = t = np.zeros((0, 3), np.float32)
    if name == "kl_divergence":
        options = (1,)
    assert NATIVE[name](p, t, *options, "sum") == 0
    assert np.isnan(NATIVE[name](p, t, *options, "mean"))
    grads = NATIVE[f"{name}_backward"](np.array(1, np.float32), p, t, *backward_options(name, options, "sum"))
    for grad in grads if isinstance(grads, tuple) else (grads,):
        assert grad.shape == (0, 3)


def test_what_lies_outside_its_domain_is_left_to_the_reference() -> None:
    inside, outside = np.full(5000, 0.5, np.float32), np.full(5000, 0.5, np.float32)
    outside[4999] = 1.5
    g = np.array(1, np.float32)
    for name, options in (("binary_cross_entropy", (None,)), ("focal", (0.25, 2.0))):
        assert NATIVE[name](inside, inside, *options, "mean") is not NotImplemented
        assert NATIVE[name](inside, outside, *options, "mean") is NotImplemented
        assert NATIVE[f"{name}_backward"](g, inside, outside, *options, "mean") is NotImplemented
    assert NATIVE["binary_cross_entropy"](outside, inside, None, "none") is NotImplemented
    assert NATIVE["hinge"](inside, inside, "mean") is NotImplemented
    assert NATIVE["hinge"](inside, np.full(5000, np.nan, np.float32), "mean") is NotImplemented
    assert NATIVE["kl_divergence"](inside, -inside, 0, "mean") is NotImplemented
    assert NATIVE["kl_divergence_backward"](g, -inside, inside, 0, "mean", (True, True)) is NotImplemented


def test_layouts_dtypes_and_options_that_are_left_to_the_reference() -> None:
    p, t = RNG.uniform(0, 1, (2, 6, 4)).astype(np.float32)
    g = np.array(1, np.float32)
    for pair in ((p.T, t.T), (p, t[:3]), (p, t.astype(np.float64)), (p, 1)):
        assert NATIVE["huber"](*pair, 1.0, "mean") is NotImplemented
        assert NATIVE["huber_backward"](g, *pair, 1.0, "mean") is NotImplemented
    for gradient in (g.astype(np.float64), g.reshape(1), p):
        assert NATIVE["huber_backward"](gradient, p, t, 1.0, "mean") is NotImplemented
    assert NATIVE["huber_backward"](g, p, t, 1.0, "none") is NotImplemented
    assert NATIVE["huber"](p, t, 1.0, "median") is NotImplemented
    assert NATIVE["smooth_l1"](p, t, 0.0, "mean") is NotImplemented
    assert NATIVE["binary_cross_entropy"](p, t, p, "mean") is NotImplemented
    assert NATIVE["binary_cross_entropy_with_logits"](p, t, None, p, "mean") is NotImplemented
    assert NATIVE["kl_divergence"](p, t, 0, "mean") is NotImplemented
    assert NATIVE["kl_divergence"](p, t, 1, "none") is NotImplemented


RECORDED = {
    "mean_squared_error": (),
    "binary_cross_entropy_with_logits": (None, None),
    "focal": (0.25, 2.0),
    "kl_divergence": (1,),
}


@pytest.mark.parametrize("given", [{}, {"reduction": "mean"}, {"reduction": "sum"}], ids=str)
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_calls_are_those_of_the_reference(name: str, given: dict[str, str]) -> None:
    """Through the recorder: with targets that have a gradient, too, where there is one."""
    p, t = RNG.uniform(0.1, 0.9, (2, 3, 4))
    loss, options, reduction = getattr(et, name), RECORDED[name], given.get("reduction", "mean")
    loss(et.tensor(p, requires_grad=True), et.tensor(t))  # from now on calls go straight to the kernel
    for t_needs in (False, True) if name in ("mean_squared_error", "kl_divergence") else (False,):
        x, y = et.tensor(p, requires_grad=True), et.tensor(t, requires_grad=t_needs)
        value = loss(x, y, **given)
        value.backward()
        assert value.item() == pytest.approx(float(exact(name, p, t, *options, reduction)), rel=1e-12)
        wanted = exact(f"{name}_backward", np.array(1.0), p, t, *backward_options(name, options, reduction))
        wanted = wanted if isinstance(wanted, tuple) else (wanted, -wanted)
        np.testing.assert_allclose(x.grad.numpy(), wanted[0], rtol=1e-12)
        if t_needs:
            np.testing.assert_allclose(y.grad.numpy(), wanted[1], rtol=1e-12)
        else:
            assert y.grad is None


def test_a_plain_call_still_checks_its_values() -> None:
    half, two = et.tensor([0.5, 0.5]), et.tensor([0.5, 2.0])
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"\[binary_cross_entropy\] predictions must lie in \[0, 1\], got 2"
        ):
            et.binary_cross_entropy(two, half)
        with pytest.raises(ValueError, match=r"\[focal\] targets must lie"):
            et.focal(half, two)
        with pytest.raises(ValueError, match=r"\[hinge\] targets must be -1 or 1"):
            et.hinge(half, half)
        with pytest.raises(
            ValueError, match=r"\[mean_squared_error\] predictions and targets must have the same shape"
        ):
            et.mean_squared_error(half, et.tensor([0.5]))
