"""The native elementwise kernels against the reference: values, special values, layouts, dtypes, threads."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE
from extensor.kernels.reference import shrinking as _shrinking  # noqa: F401  (loads later in the package)

pytestmark = pytest.mark.skipif("relu" not in NATIVE, reason="the native module is not built")

BOTH = (True, True)
EPS = 2.0**-30  # a guard that float32 holds exactly


class Row(NamedTuple):
    """A kernel, how many arrays it takes, its attributes, and how far it may be from the exact value.

    ``ulps`` counts units in the last place of the exact value; with ``of_first``, of the first argument: for slopes
    that pass through zero, and where a rounding error in the argument of an exponential grows.
    """

    name: str
    arrays: int
    attributes: tuple[Any, ...] = ()
    ulps: float = 0.5
    of_first: bool = False


ROWS = [
    Row("add", 2), Row("subtract", 2), Row("multiply", 2), Row("divide", 2), Row("negate", 1),
    Row("multiply_backward", 3, (BOTH,)), Row("divide_backward", 3, (EPS, BOTH), 2),
    Row("floor_divide", 2), Row("modulo", 2), Row("modulo_backward", 3, (BOTH,)),
    Row("power", 2, (), 1.5), Row("power_backward", 3, (EPS, BOTH), 4),
    Row("maximum", 2), Row("maximum_backward", 3, (BOTH,)), Row("minimum", 2), Row("minimum_backward", 3, (BOTH,)),
    Row("equal", 2), Row("not_equal", 2), Row("less", 2), Row("less_equal", 2), Row("greater", 2), Row("greater_equal", 2),
    Row("logical_and", 2), Row("logical_or", 2), Row("logical_xor", 2), Row("logical_not", 1),
    Row("isnan", 1), Row("isinf", 1), Row("isfinite", 1),
    Row("abs", 1), Row("abs_backward", 2), Row("sign", 1), Row("ceil", 1), Row("floor", 1), Row("round", 1), Row("trunc", 1),
    Row("square", 1), Row("square_backward", 2, (), 1), Row("reciprocal", 1), Row("reciprocal_backward", 2, (EPS,), 1.5),
    Row("clip", 1, (-1.0, 2.0)), Row("clip_backward", 2, (-1.0, 2.0)), Row("clip", 1, (-float("inf"), 2.0)),
    Row("exp", 1, (), 1), Row("exp_backward", 2), Row("expm1", 1, (), 2), Row("expm1_backward", 2, (), 2),
    Row("log", 1, (), 1), Row("log_backward", 2, (EPS,)), Row("log1p", 1, (), 1), Row("log1p_backward", 2, (), 1.5),
    Row("log2", 1, (), 1), Row("log2_backward", 2, (EPS,), 2), Row("log10", 1, (), 1), Row("log10_backward", 2, (EPS,), 2),
    Row("sqrt", 1), Row("sqrt_backward", 2, (EPS,)), Row("rsqrt", 1, (), 1.5), Row("rsqrt_backward", 2, (EPS,), 2.5),
    Row("sin", 1, (), 1), Row("sin_backward", 2, (), 2), Row("cos", 1, (), 1), Row("cos_backward", 2, (), 2),
    Row("tan", 1, (), 2), Row("tan_backward", 2, (), 4),
    Row("asin", 1, (), 2), Row("asin_backward", 2, (), 3), Row("acos", 1, (), 2), Row("acos_backward", 2, (), 3),
    Row("atan", 1, (), 1), Row("atan_backward", 2, (), 2),
    Row("sinh", 1, (), 2), Row("sinh_backward", 2, (), 2.5), Row("cosh", 1, (), 2), Row("cosh_backward", 2, (), 3),
    Row("tanh", 1, (), 2), Row("tanh_backward", 2, (), 2.5),
    Row("erf", 1, (), 2), Row("erf_backward", 2, (), 3),
    Row("relu", 1), Row("relu_backward", 2), Row("leaky_relu", 1, (0.125,)), Row("leaky_relu_backward", 2, (0.125,)),
    Row("prelu", 2), Row("prelu_backward", 3, (BOTH,)),
    Row("sigmoid", 1, (), 1.6), Row("sigmoid_backward", 2, (), 2.5),
    Row("gelu", 1, (False,), 6), Row("gelu_backward", 2, (False,), 4, True),
    Row("gelu", 1, (True,), 2, True), Row("gelu_backward", 2, (True,), 4, True),
    Row("silu", 1, (), 2), Row("silu_backward", 2, (), 4, True),
    Row("mish", 1, (), 4), Row("mish_backward", 2, (), 5, True),
    Row("elu", 1, (0.75,), 2), Row("elu_backward", 2, (0.75,), 2.5), Row("selu", 1, (), 4), Row("selu_backward", 2, (), 4),
    Row("softplus", 1, (1.0, 20.0), 2), Row("softplus", 1, (2.0, 5.0), 2), Row("softplus_backward", 2, (1.0, 20.0), 2.5),
    Row("relu6", 1), Row("relu6_backward", 2), Row("hard_sigmoid", 1, (), 1), Row("hard_sigmoid_backward", 2),
    Row("hard_swish", 1, (), 2), Row("hard_swish_backward", 2, (), 3),
    Row("hard_tanh", 1, (-1.0, 1.0)), Row("hard_tanh_backward", 2, (-1.0, 1.0)),
    Row("hard_shrink", 1, (0.5,)), Row("hard_shrink_backward", 2, (0.5,)), Row("soft_shrink", 1, (0.5,)),
    Row("soft_shrink_backward", 2, (0.5,)), Row("threshold", 1, (0.5, -2.0)), Row("threshold_backward", 2, (0.5,)),
    Row("log_sigmoid", 1, (), 2), Row("log_sigmoid_backward", 2, (), 2.5), Row("softsign", 1, (), 1), Row("softsign_backward", 2, (), 2),
    Row("tanh_shrink", 1, (), 2, True), Row("celu", 1, (0.75,), 3), Row("celu_backward", 2, (0.75,), 3),
]  # fmt: skip
IDS = [f"{row.name}{row.attributes if row.attributes else ''}".replace(" ", "") for row in ROWS]
each_row = pytest.mark.parametrize("row", ROWS, ids=IDS)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0, 0.5, -0.5, 0.66, 0.7071, 1.4142, 2.5, 1e-5, -1e-5, 1e-40, -1e-40,
    20.0, 20.5, 30.5, 88.0, -88.0, -104.0, 100.0, -100.0, 1000.0, -1000.0, 1e5, 1e30, -1e30, np.inf, -np.inf, np.nan,
]  # fmt: skip


def arguments(row: Row, dtype: Any) -> list[np.ndarray]:
    """Special values in all pairs, then random ones of all sizes; the upstream gradient is finite."""
    rng = np.random.default_rng(7)
    of_forward = row.arrays - (1 if row.name.endswith("_backward") else 0)
    grid = np.array(list(itertools.product(SPECIAL, repeat=of_forward)), dtype).T
    count = 3001
    near = rng.normal(0, 3, (of_forward, count)).astype(dtype)
    far = (
        np.exp(rng.uniform(-20, 8, (of_forward, count))) * rng.choice([-1, 1], (of_forward, count))
    ).astype(dtype)
    forward = np.concatenate([grid, near, far], axis=1)
    if of_forward == row.arrays:
        return list(np.ascontiguousarray(forward))
    return [rng.normal(0, 2, forward.shape[1]).astype(dtype), *np.ascontiguousarray(forward)]


def results(value: Any) -> tuple[np.ndarray, ...]:
    return value if isinstance(value, tuple) else (value,)


def reference(name: str, *args: Any) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        return results(KERNELS[name].reference(*args))


def distance(got: np.ndarray, want: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    """How far apart in units of the last place; 0 for equal special values, infinite for different ones."""
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        size = np.abs(rounded) if scale is None else np.maximum(np.abs(rounded), np.abs(scale))
        # Where the reference computes with subnormal numbers it has few digits itself.
        unit = np.spacing(np.clip(size, 1024 * limits.smallest_normal, limits.max))
        error = np.abs(got.astype(np.longdouble) - want.astype(np.longdouble)) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(same & ~np.isfinite(rounded), 0, np.where(np.isnan(error), np.inf, error)).astype(
            np.float64
        )


@each_dtype
@each_row
def test_values(row: Row, dtype: Any) -> None:
    args = arguments(row, dtype)
    got = results(NATIVE[row.name](*args, *row.attributes))
    plain = reference(row.name, *args, *row.attributes)
    exact = plain
    if dtype == np.float32 and row.ulps > 0.5:
        exact = reference(row.name, *[a.astype(np.float64) for a in args], *row.attributes)
    for g, p, e in zip(got, plain, exact, strict=True):
        assert g.dtype == p.dtype
        assert g.shape == p.shape
        if g.dtype == bool or row.ulps == 0.5:
            np.testing.assert_array_equal(g, p)
            continue
        # float32 formulas whose intermediate results overflow are right if they do what the reference does.
        scale = args[0] if row.of_first else None
        error = np.minimum(distance(g, e, scale), distance(g, p, scale))
        worst = int(np.argmax(error))
        # What it is compared with is rounded too, in float64 by a C library that may be off by one.
        assert error[worst] <= row.ulps + (0.5 if dtype == np.float32 else 1.0), (
            error[worst],
            [a[worst] for a in args],
            g[worst],
            e[worst],
        )


@each_dtype
@each_row
def test_a_value_gives_the_same_bits_at_every_position(row: Row, dtype: Any) -> None:
    args = [a[:: len(a) // 67][:67].copy() for a in arguments(row, dtype)]
    whole = results(NATIVE[row.name](*args, *row.attributes))
    for begin, end in [(0, 1), (1, 2), (0, 3), (5, 12), (3, 34), (40, 67), (66, 67)]:
        part = results(NATIVE[row.name](*[a[begin:end].copy() for a in args], *row.attributes))
        for w, p in zip(whole, part, strict=True):
            assert w[begin:end].tobytes() == p.tobytes()


@each_dtype
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.arrays == 1 and row.ulps > 0.5], ids=lambda row: row.name
)
def test_usual_values_keep_their_bits_beside_rare_ones(row: Row, dtype: Any) -> None:
    usual = np.abs(np.random.default_rng(8).normal(0.5, 0.2, len(SPECIAL))).astype(dtype)
    alone = NATIVE[row.name](usual, *row.attributes)
    mixed = NATIVE[row.name](np.stack([usual, np.array(SPECIAL, dtype)], axis=1), *row.attributes)
    assert alone.tobytes() == mixed[:, 0].tobytes()


def beside_right_angles() -> np.ndarray:
    """Multiples of a right angle as float32, and 20 floats to each side."""
    quarters = np.concatenate([np.arange(-3800, 0), np.arange(1, 3801)])
    nearest = (quarters * (np.pi / 2)).astype(np.float32)
    return (nearest.view(np.int32)[:, None] + np.arange(-20, 21, dtype=np.int32)).view(np.float32).reshape(-1)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_a_right_angle(name: str) -> None:
    x = beside_right_angles()
    error = distance(NATIVE[name](x), getattr(np, name)(x.astype(np.float64)), None)
    assert error.max() <= 2, (error.max(), x[np.argmax(error)])


def test_slopes_of_tan_beside_its_poles() -> None:
    x = beside_right_angles()
    error = distance(NATIVE["tan_backward"](np.ones_like(x), x), 1 / np.cos(x.astype(np.float64)) ** 2, None)
    assert error.max() <= 3, (error.max(), x[np.argmax(error)])


def test_every_formula_has_a_row() -> None:
    rows = {row.name for row in ROWS} | {"where", "where_backward"}
    signature = {"multiply", "exp", "relu", "less"}
    assert signature <= rows
    assert {name for name in rows if name not in NATIVE} == set()


NEEDS = [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize("needs", NEEDS, ids=str)
@pytest.mark.parametrize("row", [r for r in ROWS if BOTH in r.attributes], ids=lambda r: r.name)
def test_only_the_gradients_that_are_needed(row: Row, needs: tuple[bool, bool]) -> None:
    args = arguments(row, np.float32)
    attributes = (*row.attributes[:-1], needs)
    got = NATIVE[row.name](*args, *attributes)
    if got is NotImplemented:  # modulo passes its gradient on as it is
        assert (row.name, needs) == ("modulo_backward", (True, False))
        return
    both = NATIVE[row.name](*args, *row.attributes)
    for g, b, needed in zip(got, both, needs, strict=True):
        assert (g is None) is not needed
        if needed:
            np.testing.assert_array_equal(g, b)


BROADCAST = [
    ((4, 3), (3,)),
    ((3,), (4, 3)),
    ((5, 1), (5, 6)),
    ((5, 1), (1, 6)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((7,), ()),
    ((1, 1), (1,)),
]


@each_dtype
@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
@pytest.mark.parametrize(
    "name", ["multiply_backward", "divide_backward", "power_backward", "maximum_backward"]
)
def test_gradients_that_need_a_sum(name: str, shapes: Any, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 2, shape).astype(dtype) for shape in shapes)
    g = rng.normal(size=np.broadcast_shapes(*shapes)).astype(dtype)
    guard = () if name in ("multiply_backward", "maximum_backward") else (EPS,)
    for needs in (BOTH, *NEEDS):
        got = NATIVE[name](g, a, b, *guard, needs)
        want = reference(name, *(v.astype(np.float64) for v in (g, a, b)), *guard, needs)
        for x, y in zip(got, want, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                assert (x.dtype, x.shape) == (g.dtype, y.shape)
                np.testing.assert_allclose(x, y, 1e-5 if dtype == np.float32 else 1e-13, 1e-6)


def test_gradients_whose_shapes_do_not_fit_are_left_to_the_reference() -> None:
    def of(*shape: int) -> np.ndarray:
        return np.ones(shape, np.float32)

    backward = NATIVE["multiply_backward"]
    assert backward(of(4, 3), of(3), of(3), BOTH) is NotImplemented
    assert backward(of(3), of(4, 3), of(3), (False, True)) is NotImplemented
    assert backward(of(4, 3), of(4, 3), of(2), (True, False)) is NotImplemented
    assert backward(of(3), of(3), of(3).astype(np.float64), (True, False)) is NotImplemented
    assert backward(of(3), of(3), 2.0, BOTH) is NotImplemented  # a number has no gradient
    assert (
        backward(of(4, 3).astype(np.float16), of(4, 3).astype(np.float16), of(3).astype(np.float16), BOTH)
        is NotImplemented
    )
    for eps in (-1.0, np.inf, np.nan, None):
        assert NATIVE["divide_backward"](of(3), of(3), of(3), eps, BOTH) is NotImplemented
    assert NATIVE["add_backward"](of(3), (4, 3), (3,), BOTH) is NotImplemented
    assert NATIVE["add_backward"](np.ones(3, int), (3,), (3,), BOTH) is NotImplemented


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=["float32", "float64", "float16"])
@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
@pytest.mark.parametrize("name", ["add_backward", "subtract_backward"])
def test_gradients_of_sums_and_differences(name: str, shapes: Any, dtype: Any) -> None:
    g = np.random.default_rng(0).integers(-4, 5, np.broadcast_shapes(*shapes)).astype(dtype)
    for needs in (BOTH, *NEEDS):
        got, want = NATIVE[name](g, *shapes, needs), reference(name, g, *shapes, needs)
        for x, y in zip(got, want, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                assert (x.dtype, x.shape) == (g.dtype, y.shape)
                np.testing.assert_array_equal(x, y)


@each_dtype
def test_where(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, g = (rng.normal(size=(7, 13)).astype(dtype) for _ in range(3))
    a[0, 0] = np.nan
    for condition in (
        rng.random((7, 13)) < 0.5,
        rng.random(13) < 0.5,
        rng.random((7, 1)) < 0.5,
        (rng.random((13, 7)) < 0.5).T,
    ):
        np.testing.assert_array_equal(NATIVE["where"](condition, a, b), np.where(condition, a, b))
        np.testing.assert_array_equal(NATIVE["where"](condition, a, 2.5), np.where(condition, a, dtype(2.5)))
        for needs in [BOTH, *NEEDS]:
            got = NATIVE["where_backward"](g, condition, (7, 13), (7, 13), needs)
            want = reference("where_backward", g, condition, (7, 13), (7, 13), needs)
            for x, y in zip(got, want, strict=True):
                assert (x is None) == (y is None)
                if x is not None:
                    np.testing.assert_array_equal(x, y)


def layouts(dtype: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)

    def make(*shape: int) -> np.ndarray:
        return rng.normal(0, 2, shape).astype(dtype)

    big = make(70, 90)
    return [
        (make(5, 200), make(200)), (make(5, 200), make(5, 1)), (make(300, 10), make(10)), (make(300, 10), make(300, 1)),
        (make(7, 1), make(1, 9)), (make(4, 1, 6), make(5, 1)), (make(3, 1, 100), make(1, 4, 1)),
        (big, make(90, 70).T), (big.T, make(70, 90).T), (big.T, make(90, 70)), (big[::2, ::3], make(35, 30)),
        (big[::-1], big[:, ::-1]), (np.asfortranarray(big), np.asfortranarray(big[::-1])),
        (make(2, 3, 4, 5).transpose(0, 2, 3, 1), make(2, 3, 4, 5).transpose(0, 2, 3, 1)),
        (make(4, 130)[:, 1:], make(129)), (np.broadcast_to(make(6), (9, 6)), make(9, 6)),
        (np.array(3.5, dtype), make(11)), (np.array(3.5, dtype), np.array(-1.25, dtype)), (make(0, 4), make(4)), (make(3, 0), make(3, 1)),
        (make(1, 1, 8), make(8)), (make(2, 1, 2, 1, 2, 1, 33), make(2, 1, 2, 1, 1)),
        (make(45, 600), make(600, 45).T), (make(600, 45).T, make(600)), (make(3, 40, 70), make(70, 40, 3).T),
        (make(2, 5, 33, 34), make(2, 33, 34, 5).transpose(0, 3, 1, 2)), (make(50, 90), make(90, 100).T[::2]),
        (make(1300)[::2], make(650)), (make(40, 101)[:, ::2], make(51)), (make(40, 101)[:, 1::2], make(40, 1)),
        (make(7, 200)[:, ::-3], make(7, 67)), (make(900, 7), make(7)), (make(30, 3, 7), make(3, 1)), (make(5, 300, 3), make(1, 300, 1)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, bfloat16], ids=["float32", "float64", "float16", "bfloat16"]
)
@pytest.mark.parametrize("case", range(len(layouts(np.float32))))
def test_layouts(case: int, dtype: Any) -> None:
    a, b = layouts(dtype)[case]
    wide = np.float64 if dtype == np.float64 else np.float32
    for name, function in (("subtract", np.subtract), ("maximum", np.maximum), ("less", np.less)):
        got = NATIVE[name](a, b)
        want = function(a.astype(wide), b.astype(wide))
        assert got.shape == want.shape
        assert got.dtype == (bool if name == "less" else dtype)
        np.testing.assert_array_equal(got, want.astype(got.dtype))
    np.testing.assert_array_equal(
        NATIVE["prelu"](a, b), np.where(a > 0, a, a.astype(wide) * b.astype(wide)).astype(dtype)
    )


@each_dtype
def test_where_of_a_transposed_condition(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(50, 70)).astype(dtype) for _ in range(2))
    condition = (rng.random((70, 50)) < 0.5).T
    np.testing.assert_array_equal(NATIVE["where"](condition, a, b), np.where(condition, a, b))
    np.testing.assert_array_equal(NATIVE["where"](condition, a, b[0]), np.where(condition, a, b[0]))


def test_results_have_the_layout_of_their_inputs_where_these_agree() -> None:
    x = np.random.default_rng(0).normal(size=(3, 50, 70)).astype(np.float32).transpose(2, 0, 1)
    y = NATIVE["exp"](x)
    assert y.strides == x.strides
    np.testing.assert_array_equal(y, NATIVE["exp"](np.ascontiguousarray(x)))
    for size in (5, 300):
        square = np.asfortranarray(np.random.default_rng(0).normal(size=(size, size)))
        assert NATIVE["negate"](square).flags.f_contiguous
        np.testing.assert_array_equal(NATIVE["negate"](square), -square)


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "subtract"])
@pytest.mark.parametrize("number", [2, -1, 0.1, 1e10, float("inf")])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, bfloat16], ids=["float32", "float64", "float16", "bfloat16"]
)
def test_python_numbers_are_weak(name: str, number: float, dtype: Any) -> None:
    x = np.random.default_rng(3).uniform(0.5, 2, 37).astype(dtype)
    wide = x if x.itemsize > 2 else x.astype(np.float32)  # half precision computes in float32 and rounds once
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            NATIVE[name](x, number), KERNELS[name].reference(wide, number).astype(dtype)
        )
        np.testing.assert_array_equal(
            NATIVE[name](number, x), KERNELS[name].reference(number, wide).astype(dtype)
        )
    assert NATIVE[name](x, number).dtype == dtype


@each_dtype
def test_the_power_two_is_the_square(dtype: Any) -> None:
    x = np.array(SPECIAL, dtype)
    for two in (2, 2.0):
        np.testing.assert_array_equal(NATIVE["power"](x, two), NATIVE["square"](x))


EXPONENTS = [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, -3, 0.25]


@each_dtype
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_by_one_number(exponent: float, dtype: Any) -> None:
    row = Row("power", 1, (), 1.5)
    x = arguments(row, dtype)[0]
    got = NATIVE["power"](x, exponent)
    with np.errstate(all="ignore"):
        # as an array: NumPy knows shortcuts for numbers, which are not pow() at -inf
        exact = np.power(x.astype(np.longdouble), np.full(x.shape, exponent, np.longdouble))
        assert np.max(distance(got, exact.astype(np.float64), None)) <= row.ulps + 0.5
    special = np.array(SPECIAL, dtype)
    want = NATIVE["power"](special, np.full(special.shape, exponent, dtype))
    got = NATIVE["power"](special, exponent)
    edge = (special == 0) | ~np.isfinite(special) | np.isnan(want)
    np.testing.assert_array_equal(got[edge], want[edge])
    np.testing.assert_array_equal(
        np.signbit(got[edge & ~np.isnan(want)]), np.signbit(want[edge & ~np.isnan(want)])
    )


@each_dtype
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_gradients_of_powers_by_one_number(exponent: float, dtype: Any) -> None:
    row = Row("power_backward", 2, (EPS, (True, False)), 4)
    g, x = arguments(row, dtype)
    got, none = NATIVE["power_backward"](g, x, exponent, EPS, (True, False))
    assert none is None
    want, _ = NATIVE["power_backward"](g, x, np.full(x.shape, exponent, dtype), EPS, (True, False))
    assert np.max(distance(got, want, None)) <= row.ulps


HALF_VALUES = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["negate", "square", "exp", "tanh", "relu", "abs", "reciprocal"])
def test_every_half_number(name: str, dtype: Any) -> None:
    x = HALF_VALUES.view(dtype)
    with np.errstate(all="ignore"):
        want = results(NATIVE[name](x.astype(np.float32)))[0].astype(dtype)
    got = NATIVE[name](x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    kept = ~np.isnan(want)
    np.testing.assert_array_equal(got[kept].view(np.uint16), want[kept].view(np.uint16))


def test_what_is_not_covered_is_left_to_the_reference() -> None:
    x = np.ones(5, np.float32)
    add = NATIVE["add"]
    assert add(np.arange(5), np.arange(5)) is NotImplemented
    assert add(x, x.astype(np.float64)) is NotImplemented
    assert add(x, np.ones(4, np.float32)) is NotImplemented
    assert add(x.astype(">f4"), x.astype(">f4")) is NotImplemented
    assert add(np.frombuffer(b"\0" * 21, np.uint8)[1:].view(np.float32), x) is NotImplemented
    assert add(1.0, 2.0) is NotImplemented
    assert add(x) is NotImplemented
    assert add(x, "1") is NotImplemented
    assert add(x, True) is NotImplemented
    assert add(x, 10**400) is NotImplemented
    assert NATIVE["clip"](x, None, 1.0) is NotImplemented
    assert NATIVE["clip"](x, float("nan"), 1.0) is NotImplemented
    assert NATIVE["where"](x, x, x) is NotImplemented


@pytest.mark.parametrize(
    "row",
    [r for r in ROWS if r.name in {"add", "exp", "gelu_backward", "divide_backward", "less"}],
    ids=lambda r: r.name,
)
def test_the_same_bits_for_any_number_of_threads(row: Row) -> None:
    rng = np.random.default_rng(5)
    args = [rng.normal(size=1_200_001).astype(np.float32) for _ in range(row.arrays)]
    before = get_num_threads()
    try:
        seen = set()
        for count in (1, 2, 3, 4):
            set_num_threads(count)
            seen.add(tuple(r.tobytes() for r in results(NATIVE[row.name](*args, *row.attributes))))
    finally:
        set_num_threads(before)
    assert len(seen) == 1


def test_large_results_are_complete() -> None:
    x = np.random.default_rng(2).normal(size=(1 << 22) + 5).astype(np.float64)
    np.testing.assert_array_equal(NATIVE["multiply"](x, x), x * x)
    grad_a, grad_b = NATIVE["multiply_backward"](x, x, -x, BOTH)
    np.testing.assert_array_equal(grad_a, -(x * x))
    np.testing.assert_array_equal(grad_b, x * x)
