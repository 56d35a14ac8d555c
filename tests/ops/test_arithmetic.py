"""Arithmetic: values against NumPy, gradients against HIPS autograd, the guard, ties, nan at every position, refusals."""

from __future__ import annotations

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

NAN, INF = float("nan"), float("inf")
FUNCTIONS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide,
    "floor_divide": np.floor_divide, "modulo": np.mod, "power": np.power, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip
SMOOTH = ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum"]
SHAPES = [((), ()), ((7,), (7,)), ((3, 1), (4,)), ((2, 1, 3), (5, 1)), ((0, 3), (3,)), ((1,), (2, 3))]


def values(seed, shape):
    return np.random.default_rng(seed).uniform(0.3, 3.0, shape)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_values_and_dtypes_are_numpys(name, dtype):
    for a_shape, b_shape in SHAPES:
        a, b = (values(0, a_shape) * 9 + 1).astype(dtype), (values(1, b_shape) * 2 + 1).astype(dtype)
        got, want = getattr(et, name)(et.tensor(a), et.tensor(b)), FUNCTIONS[name](a, b)
        quotient_of_integers = name == "divide" and np.dtype(dtype).kind in "iu"
        assert got.dtype == (np.float32 if quotient_of_integers else want.dtype)
        np.testing.assert_allclose(got.numpy(), want, rtol=0 if want.dtype.kind in "iu" else 1e-6)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_gradients_agree_with_hips_autograd(name, a_shape, b_shape):
    a, b = values(2, a_shape), values(3, b_shape)
    g = np.random.default_rng(4).normal(size=np.broadcast_shapes(a_shape, b_shape))
    got = getattr(et, f"{name}_backward")(et.tensor(g), et.tensor(a), et.tensor(b))
    for i, x in enumerate((a, b)):
        want = autograd.grad(lambda *ab: anp.sum(getattr(anp, name)(*ab) * g), i)(a, b)
        assert got[i].shape == x.shape
        np.testing.assert_allclose(got[i].numpy(), want, rtol=1e-12, atol=1e-14)


def gradients(name, a, b, g=1.0, dtype=et.float64, **options):
    tensors = [et.tensor(v, dtype=dtype) for v in (g, a, b)]
    return [x.item() for x in getattr(et, f"{name}_backward")(*tensors, **options)]


@pytest.mark.parametrize(
    ("name", "a", "b", "want"),
    [
        ("modulo", 7.0, 2.0, [1.0, -3.0]),
        ("modulo", -7.0, 2.0, [1.0, 4.0]),
        ("floor_divide", 7.0, 2.0, [0.0, 0.0]),
        ("maximum", 1.0, 1.0, [0.5, 0.5]),
        ("maximum", 0.0, -0.0, [0.5, 0.5]),
        ("minimum", 1.0, 1.0, [0.5, 0.5]),
        ("maximum", NAN, 1.0, [NAN, NAN]),
        ("maximum", 1.0, NAN, [NAN, NAN]),
        ("minimum", 1.0, NAN, [NAN, NAN]),
        ("maximum", INF, 1.0, [1.0, 0.0]),
        ("power", 0.0, 2.0, [0.0, 0.0]),
        ("power", 0.0, 1.0, [1.0, 0.0]),
        ("power", 0.0, 0.0, [0.0, 0.0]),
        ("power", 2.0, 0.0, [0.0, np.log(2.0)]),
        ("power", -2.0, 3.0, [12.0, NAN]),
        ("power", NAN, 0.0, [0.0, NAN]),
        ("power", 0.0, 0.5, [0.5 * 1e-10**-0.5, 0.0]),
        ("power", -0.0, 0.5, [0.5 * 1e-10**-0.5, 0.0]),
        ("power", 0.0, -1.0, [-1e20, 1e10 * np.log(1e-10)]),
        ("divide", 1.0, 0.0, [1e10, -1e20]),
        ("divide", 1.0, -0.0, [-1e10, -1e20]),
        ("divide", 1.0, 1e-12, [1e10, -1e20]),
        ("divide", 1.0, 1e-9, [1e9, -1e18]),
        ("divide", 1.0, NAN, [NAN, NAN]),
        ("divide", NAN, 2.0, [0.5, NAN]),
    ],
)
def test_edges(name, a, b, want):
    np.testing.assert_allclose(gradients(name, a, b), want, rtol=1e-12)


def test_the_guard_is_never_a_bias_and_zero_is_ieee():
    assert gradients("divide", 1.0, 0.0, eps=0)[0] == INF
    assert gradients("divide", 1.0, 0.5, eps=0.7) == pytest.approx([1 / 0.7, -1 / 0.49])
    assert gradients("divide", 1.0, 0.0, dtype=et.float16)[0] == np.float16(1e4)
    assert gradients("divide", 3.0, 7.0) == [1 / 7.0, -3.0 / 7.0 / 7.0]


@pytest.mark.parametrize("base", [0.0, -0.0])
@pytest.mark.parametrize("exponent", [-20.0, -3.0, -0.5, 0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("dtype", [et.float32, et.float64])
def test_power_is_finite_at_zero(base, exponent, dtype):
    assert np.isfinite(gradients("power", base, exponent, dtype=dtype)).all()


EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 1e-12, -1e-12, 1e30, -1e30, INF, -INF, NAN]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("eps", [None, 0.0, 1e-3])
def test_a_recorded_backward_has_the_edges_of_the_plain_one(name, dtype, eps):
    """Where a gradient is itself differentiated a formula stands in for the kernel: it gives the same."""
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(EDGES, EDGES))
    options = {"eps": eps} if name in ("divide", "power") else {}
    backward = getattr(et, f"{name}_backward")
    g = np.full(a.shape, 0.7, dtype)
    plain = backward(et.tensor(g), et.tensor(a), et.tensor(b), **options)
    recorded = backward(
        grad_output=et.tensor(g, requires_grad=True),
        a=et.tensor(a, requires_grad=True),
        b=et.tensor(b, requires_grad=True),
        **options,
    )
    for got, want in zip(recorded, plain):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("name", ["maximum", "minimum", "multiply", "divide", "power"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_nan_at_every_position_stays_there(name, dtype):
    for length in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 65):
        for position in {0, length // 2, length - 1}:
            a, b = values(5, length).astype(dtype), values(6, length).astype(dtype)
            a[position] = NAN
            grads = getattr(et, f"{name}_backward")(
                et.tensor(np.ones(length, dtype)), et.tensor(a), et.tensor(b)
            )
            bad = np.isnan(grads.grad_b.numpy())
            assert bad[position]
            assert bad.sum() == 1


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_the_float32_result_rounded_once(name, dtype):
    a, b = (et.tensor(values(s, (5, 7)), dtype=dtype) for s in (7, 8))
    g = et.tensor(values(9, (5, 7)), dtype=dtype)
    wide = [x.astype(et.float32) for x in (g, a, b)]
    forward, backward = getattr(et, name), getattr(et, f"{name}_backward")
    pairs = [
        (forward(a, b), forward(*wide[1:])),
        *zip(backward(g, a, b), backward(*wide, **_same_guard(name, dtype))),
    ]
    for got, want in pairs:
        assert got.dtype == dtype
        assert np.array_equal(got.numpy(), want.astype(dtype).numpy(), equal_nan=True)


def _same_guard(name, dtype):
    return {"eps": 1e-4 if dtype == et.float16 else 1e-10} if name in ("divide", "power") else {}


def test_python_numbers_are_weak_and_need_no_gradient():
    for dtype in (et.float16, et.bfloat16, et.float32, et.int8):
        assert (et.ones(2, dtype=dtype) + 1).dtype == dtype
    assert (2.5 * et.ones(2)).dtype == et.float32
    assert et.multiply_backward(et.ones(2), et.ones(2), 3.0, needs=(True, False)).grad_b is None


INTEGERS = [et.tensor([3, 1], dtype=dtype) for dtype in (et.int8, et.uint16, et.int64, et.bool_)]


@pytest.mark.parametrize("x", INTEGERS, ids=lambda x: x.dtype.name)
@pytest.mark.parametrize(
    "name", ["add", "multiply", "divide", "floor_divide", "modulo", "power", "maximum", "minimum"]
)
def test_a_python_float_makes_integers_float32(name, x):
    for got, want in (
        (getattr(et, name)(x, 2.5), FUNCTIONS[name](x.numpy().astype(np.float32), np.float32(2.5))),
        (getattr(et, name)(2.5, x), FUNCTIONS[name](np.float32(2.5), x.numpy().astype(np.float32))),
        (getattr(et, name)(x.numpy(), 2.5), FUNCTIONS[name](x.numpy().astype(np.float32), np.float32(2.5))),
    ):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert getattr(et, name)(1, 2.5).dtype == getattr(et, name)(2.5, True).dtype == np.float32


@pytest.mark.parametrize("x", INTEGERS, ids=lambda x: x.dtype.name)
def test_a_quotient_of_integers_is_float32(x):
    for got in (
        x / 2,
        2 / x,
        x / x,
        x / np.array([2, 1]),
        np.array([2, 1]) / x,
        et.divide([1, 2], 4),
        et.divide(1, 4),
    ):
        assert got.dtype == np.float32
    assert (et.arange(8) / 8).tolist() == [i / 8 for i in range(8)]
    assert (x / et.ones(2)).dtype == np.result_type(x.dtype, np.float32)  # two tensors: NumPy's promotion


def test_a_python_complex_makes_integers_complex64():
    assert (et.arange(2) + 1j).dtype == (1j * et.arange(2)).dtype == (et.arange(2) / 2j).dtype == np.complex64


def test_comparisons_see_integers_exactly():
    large = et.tensor([2**24 + 1])
    assert (large > 2.0**24).tolist() == [True]
    assert (large == 2.0**24).tolist() == [False]


def test_an_integer_operand_has_no_gradient_but_does_not_stop_the_other():
    x = et.tensor([1.0, 2.0], requires_grad=True)
    (x * et.tensor([3, 4])).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match=r"\[multiply_backward\] b has dtype int64"):
        et.multiply_backward(et.ones(2), x, et.tensor([3, 4]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_refusals(name):
    function, backward = getattr(et, name), getattr(et, f"{name}_backward")
    x = et.ones(3)
    with pytest.raises(ValueError, match=rf"^\[{name}\] a and b do not broadcast \(a: \(3,\), b: \(4,\)\)"):
        function(x, et.ones(4))
    with pytest.raises(TypeError, match=rf"^\[{name}\] b must be a tensor"):
        function(x, "text")
    with pytest.raises(ValueError, match=rf"^\[{name}_backward\] grad_output has shape \(4,\)"):
        backward(et.ones(4), x, x)
    with pytest.raises(TypeError, match=rf"^\[{name}_backward\]"):
        backward(et.ones(3), et.ones(3, dtype=et.int32), x)
    if name != "divide":  # which leaves the integers
        with pytest.raises(ValueError, match=rf"^\[{name}\] Python integer 300 out of bounds for uint8"):
            function(et.ones(3, dtype=et.uint8), 300)


def test_negate_and_booleans():
    assert et.negate(et.tensor([1, -2])).tolist() == [-1, 2]
    assert et.negate_backward(et.tensor([2.0])).tolist() == [-2.0]
    for name, args in {"negate": 1, "subtract": 2}.items():
        with pytest.raises(TypeError, match=rf"^\[{name}\]"):
            getattr(et, name)(*[et.tensor([True])] * args)
    with pytest.raises(ValueError, match=r"\[power\] integers to negative powers"):
        et.tensor([2]) ** -1
