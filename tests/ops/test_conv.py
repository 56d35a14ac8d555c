"""Convolutions: against the definition and HIPS autograd, every option, dtypes, orders, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

Options = dict[str, Any]

# x, weight, options: every option alone and together, kernels of all proportions, empty batches
ROWS: list[tuple[tuple[int, ...], tuple[int, ...], Options]] = [
    ((2, 3, 6, 7), (4, 3, 3, 3), {}),
    ((2, 3, 6, 7), (4, 3, 3, 3), {"padding": 1}),
    ((2, 3, 6, 7), (4, 3, 5, 1), {"padding": (2, 0)}),
    ((1, 2, 9, 8), (3, 2, 1, 4), {"stride": (2, 3), "padding": (0, 2)}),
    ((2, 2, 9, 9), (2, 2, 3, 3), {"dilation": (3, 2), "stride": 2, "padding": 3}),
    ((2, 4, 5, 5), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    ((2, 3, 5, 5), (6, 1, 3, 3), {"groups": 3, "stride": 2}),
    ((1, 2, 5, 6), (3, 2, 2, 4), {"padding": "same"}),
    ((1, 2, 7, 6), (3, 2, 2, 3), {"padding": "same", "dilation": (3, 2)}),
    ((1, 2, 5, 6), (3, 2, 2, 4), {"padding": "valid"}),
    ((3, 5, 4, 4), (7, 5, 1, 1), {"stride": 3}),
    ((1, 1, 3, 3), (1, 1, 3, 3), {}),
    ((0, 2, 4, 4), (3, 2, 3, 3), {"padding": 1}),
]


def pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def margins(options: Options, size: tuple[int, ...]) -> list[tuple[int, int]]:
    padding, dilation = options.get("padding", 0), pair(options.get("dilation", 1))
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, size)]
        return [(t // 2, t - t // 2) for t in totals]
    return [(p, p) for p in pair(0 if padding == "valid" else padding)]


def defined(x: Any, weight: Any, bias: Any, options: Options) -> Any:
    """The convolution as it is defined: for every element of the kernel, a product over the channels."""
    stride, dilation = pair(options.get("stride", 1)), pair(options.get("dilation", 1))
    groups = options.get("groups", 1)
    x = anp.pad(x, ((0, 0), (0, 0), *margins(options, weight.shape[2:])), "constant")
    kh, kw = weight.shape[2:]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, (kh, kw))]
    oh, ow = ((n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride))
    parts = []
    for group in range(groups):
        inner, outer = weight.shape[1], weight.shape[0] // groups
        image = x[:, group * inner : (group + 1) * inner]
        kernel = weight[group * outer : (group + 1) * outer]
        total: Any = 0.0
        for i in range(kh):
            for j in range(kw):
                top, left = i * dilation[0], j * dilation[1]
                seen = image[:, :, top : top + (oh - 1) * stride[0] + 1 : stride[0]]
                seen = seen[:, :, :, left : left + (ow - 1) * stride[1] + 1 : stride[1]]
                total = total + anp.einsum("nchw,oc->nohw", seen, kernel[:, :, i, j])
        parts.append(total)
    return anp.concatenate(parts, axis=1) + bias[:, None, None]


def draw(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(17)
    return [rng.standard_normal(shape) for shape in shapes]


def assert_close(found: Any, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("x_shape", "w_shape", "options"), ROWS)
def test_conv2d(x_shape: tuple[int, ...], w_shape: tuple[int, ...], options: Options) -> None:
    x, weight, bias = draw(x_shape, w_shape, w_shape[:1])
    expected = defined(x, weight, bias, options)
    assert_close(et.conv2d(et.asarray(x), et.asarray(weight), et.asarray(bias), **options), expected)
    assert_close(
        et.conv2d(et.asarray(x), et.asarray(weight), **options), defined(x, weight, 0 * bias, options)
    )
    (g,) = draw(expected.shape)
    oracle = autograd.grad(lambda p: anp.sum(defined(*p, options) * g))((x, weight, bias))
    found = et.conv2d_backward(et.asarray(g), et.asarray(x), et.asarray(weight), **options)
    for grad, wanted in zip(found, oracle):
        assert_close(grad, wanted)
    assert found._fields == ("grad_x", "grad_weight", "grad_bias")


@pytest.mark.parametrize(("x_shape", "w_shape", "options"), ROWS)
def test_conv1d_is_conv2d_of_one_row(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], options: Options
) -> None:
    x, weight, bias = map(
        et.asarray, draw((*x_shape[:2], x_shape[3]), (*w_shape[:2], w_shape[3]), w_shape[:1])
    )
    one = {k: v if isinstance(v, (int, str)) else v[1] for k, v in options.items()}
    two = {k: (int(k != "padding"), v) if isinstance(v, int) and k != "groups" else v for k, v in one.items()}
    image, kernel = et.expand_dims(x, 2), et.expand_dims(weight, 2)
    y, expected = et.conv1d(x, weight, bias, **one), et.conv2d(image, kernel, bias, **two)
    assert y.shape == (*expected.shape[:2], expected.shape[3])
    assert y.tolist() == expected[:, :, 0].tolist()
    (g,) = map(et.asarray, draw(y.shape))
    grads = et.conv1d_backward(g, x, weight, **one)
    for found, wanted in zip(grads, et.conv2d_backward(g.reshape(expected.shape), image, kernel, **two)):
        assert found.tolist() == wanted.reshape(found.shape).tolist()
    assert [grad.shape for grad in grads] == [x.shape, weight.shape, bias.shape]


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], Options]] = [
    ((2, 3, 4, 5), (3, 4, 3, 3), {}),
    ((2, 3, 4, 5), (3, 4, 3, 2), {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2)}),
    ((1, 4, 3, 4), (4, 3, 3, 3), {"groups": 2, "padding": 2}),
    ((1, 2, 3, 4), (2, 1, 2, 3), {"groups": 2, "dilation": (2, 3), "stride": 2}),
    ((2, 2, 2, 3), (2, 3, 2, 2), {"dilation": 3, "output_padding": (2, 1)}),
    ((0, 2, 3, 3), (2, 3, 2, 2), {"stride": 2}),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "options"), TRANSPOSED)
def test_conv_transpose2d_is_the_adjoint(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], options: Options
) -> None:
    """sum(transposed(x) * g) = sum(x * conv(g)), for the output and for the gradients."""
    out = w_shape[1] * options.get("groups", 1)
    x, weight, bias = draw(x_shape, w_shape, (out,))
    y = et.conv_transpose2d(et.asarray(x), et.asarray(weight), et.asarray(bias), **options)
    strides, pads = pair(options.get("stride", 1)), pair(options.get("padding", 0))
    dilations, more = pair(options.get("dilation", 1)), pair(options.get("output_padding", 0))
    rows = zip(x_shape[2:], w_shape[2:], strides, pads, dilations, more)
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, d, m in rows)
    assert y.shape == (x_shape[0], out, *size)
    (g,) = draw(y.shape)
    plain = {k: v for k, v in options.items() if k != "output_padding"}

    def value(g: Any, weight: Any, x: Any) -> Any:
        seen = defined(g, weight, anp.zeros(w_shape[0]), plain)[:, :, : x_shape[2], : x_shape[3]]
        return anp.sum(seen * x)

    expected = autograd.grad(value, 0)(g, weight, x) + bias[:, None, None]
    assert_close(y, expected)
    found = et.conv_transpose2d_backward(et.asarray(g), et.asarray(x), et.asarray(weight), **options)
    assert_close(found.grad_x, autograd.grad(value, 2)(g, weight, x))
    assert_close(found.grad_weight, autograd.grad(value, 1)(g, weight, x))
    assert_close(found.grad_bias, g.sum((0, 2, 3)))


def test_a_kernel_is_not_flipped() -> None:
    x, weight = et.tensor([[[[0.0, 1.0, 0.0]]]]), et.tensor([[[[1.0, 2.0, 3.0]]]])
    assert et.conv2d(x, weight, padding=(0, 1)).tolist() == [[[[3.0, 2.0, 1.0]]]]
    assert et.conv_transpose2d(x, weight, padding=(0, 1)).tolist() == [[[[1.0, 2.0, 3.0]]]]


def test_same_puts_the_odd_zero_at_the_end() -> None:
    x, weight = et.tensor([[[1.0, 2.0, 3.0]]]), et.tensor([[[1.0, 10.0]]])
    assert et.conv1d(x, weight, padding="same").tolist() == [[[21.0, 32.0, 3.0]]]


FUNCTIONS = {
    "conv1d": ((2, 4, 7), (6, 2, 3), {"groups": 2, "stride": 2, "padding": 1}),
    "conv2d": ((2, 4, 5, 6), (6, 2, 3, 2), {"groups": 2, "stride": 2, "padding": 1}),
    "conv_transpose2d": ((2, 4, 3, 4), (4, 3, 3, 2), {"groups": 2, "stride": 2, "padding": 1}),
}


def tensors(name: str, dtype: Any = et.float64) -> tuple[list[Any], Any, Options]:
    """x, weight and bias; an upstream gradient; the options."""
    x_shape, w_shape, options = FUNCTIONS[name]
    values = [et.asarray(v).astype(dtype) for v in draw(x_shape, w_shape, (6,))]
    y = getattr(et, name)(*values, **options)
    return values, et.asarray(draw(y.shape)[0]).astype(dtype), options


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_what_is_needed(name: str) -> None:
    (x, weight, _), g, options = tensors(name)
    backward = getattr(et, f"{name}_backward")
    every = backward(g, x, weight, **options)
    for i in range(3):
        some = backward(g, x, weight, **options, needs=tuple(j == i for j in range(3)))
        assert [grad is None for grad in some] == [j != i for j in range(3)]
        assert some[i].tolist() == every[i].tolist()


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_is_float32_rounded_once(name: str, dtype: Any) -> None:
    narrow, g, options = tensors(name, dtype)
    wide = [v.astype(et.float32) for v in narrow]
    function, backward = getattr(et, name), getattr(et, f"{name}_backward")
    pairs = [(function(*narrow, **options), function(*wide, **options))]
    pairs += zip(backward(g, *narrow[:2], **options), backward(g.astype(et.float32), *wide[:2], **options))
    for found, expected in pairs:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_have_the_dtypes_of_their_inputs(name: str) -> None:
    (x, weight, bias), g, options = tensors(name)
    x, bias = x.astype(et.float32), bias.astype(et.float16)
    assert getattr(et, name)(x, weight, bias, **options).dtype == et.float64
    grads = getattr(et, f"{name}_backward")(g, x, weight, **options)
    assert [grad.dtype for grad in grads] == [et.float32, et.float64, et.float64]
    leaves = [et.tensor(v, requires_grad=True) for v in (x, weight, bias)]
    getattr(et, name)(*leaves, **options).sum().backward()
    assert [leaf.grad.dtype for leaf in leaves] == [et.float32, et.float64, et.float16]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_adds_up_accurately(name: str) -> None:
    """Thousands of terms: one long chain of float32 additions would be wrong by more than a millionth."""
    rng = np.random.default_rng(3)
    axes = 1 if name == "conv1d" else 2
    shape = (512, 1) if name == "conv_transpose2d" else (1, 512)
    x = rng.uniform(0, 1, (1, 512, *(9,) * axes)).astype(np.float32)
    weight = rng.uniform(0, 1, (*shape, *(5,) * axes)).astype(np.float32)
    function = getattr(et, name)
    found = function(et.asarray(x), et.asarray(weight)).numpy()
    exact = function(et.asarray(x.astype(float)), et.asarray(weight.astype(float))).numpy()
    assert np.abs(found / exact - 1).max() < 8e-7


@pytest.mark.parametrize("name", FUNCTIONS)
def test_third_derivatives(name: str) -> None:
    """Along a line in x and weight the sum of squares is a polynomial of degree 4, whose differences are exact."""
    (x, weight, _), _, options = tensors(name)
    u, v = map(et.asarray, draw(weight.shape, x.shape)[::-1])
    function = getattr(et, name)

    def along(t: Any) -> Any:
        return (function(x + t * u, weight + t * v, **options) ** 2).sum()

    third = et.grad(et.grad(et.grad(along)))(et.tensor(0.3, dtype=et.float64)).item()
    values = [along(0.3 + h).item() for h in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    expected = (values[4] - 2 * values[3] + 2 * values[1] - values[0]) / 2
    np.testing.assert_allclose(third, expected, rtol=1e-10)


ERRORS = [
    (lambda: et.conv2d(et.ones((8, 4, 32, 32)), et.ones((16, 3, 5, 5))), ValueError, r"\[conv2d\] weight has 3 input channels but x has 4 \(x: \(8, 4, 32, 32\), weight: \(16, 3, 5, 5\)\)"),
    (lambda: et.conv2d(et.ones((8, 4, 9, 9)), et.ones((16, 4, 5, 5)), groups=2), ValueError, r"\[conv2d\] weight has 4 input channels in each of 2 groups but x has 4"),
    (lambda: et.conv2d(et.ones((1, 4, 9, 9)), et.ones((3, 2, 5, 5)), groups=2), ValueError, r"\[conv2d\] groups=2 does not divide the 3 output channels of weight"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), groups=0), ValueError, r"\[conv2d\] groups must be at least 1, got 0"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), groups=1.0), TypeError, r"\[conv2d\] groups must be an int"),
    (lambda: et.conv2d(et.ones((1, 2, 4, 9)), et.ones((3, 2, 5, 5))), ValueError, r"\[conv2d\] the kernel is larger than the padded x: it covers 5 x 5 of 4 x 9; use more padding"),
    (lambda: et.conv2d(et.ones((1, 2, 6, 9)), et.ones((3, 2, 3, 3)), dilation=4, padding=1), ValueError, r"\[conv2d\] the kernel is larger .* 9 x 9 of 8 x 11"),
    (lambda: et.conv2d(et.ones((2, 9, 9)), et.ones((3, 2, 5, 5))), ValueError, r"\[conv2d\] x must have the 4 axes \(N, C, H, W\), got shape \(2, 9, 9\)"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5))), ValueError, r"\[conv2d\] weight must have the 4 axes \(out, in/groups, kh, kw\)"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 0, 5))), ValueError, r"\[conv2d\] weight has an empty kernel"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), et.ones(2)), ValueError, r"\[conv2d\] bias has shape \(2,\) but must have the shape \(3,\)"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), stride=0), ValueError, r"\[conv2d\] stride must be at least 1, got int 0"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), stride=(1, 2, 3)), ValueError, r"\[conv2d\] stride must be an int or 2 of them"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), padding=-1), ValueError, r"\[conv2d\] padding must be at least 0"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), padding="full"), ValueError, r"\[conv2d\] padding must be ints, 'same' or 'valid', got 'full'"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), padding="same", stride=2), ValueError, r"\[conv2d\] padding='same' needs stride 1"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5)), dilation=0.5), TypeError, r"\[conv2d\] dilation must be an int"),
    (lambda: et.conv2d(et.ones((1, 2, 9, 9), et.int64), et.ones((3, 2, 5, 5))), TypeError, r"\[conv2d\] x must have a floating dtype, got int64"),
    (lambda: et.conv2d_backward(et.ones((1, 3, 4, 5)), et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5))), ValueError, r"\[conv2d_backward\] grad_output has shape \(1, 3, 4, 5\) but .* \(1, 3, 5, 5\)"),
    (lambda: et.conv2d_backward(et.ones((1, 3, 5, 5)), et.ones((1, 4, 9, 9)), et.ones((3, 2, 5, 5))), ValueError, r"\[conv2d_backward\] weight has 2 input channels but x has 4"),
    (lambda: et.conv2d_backward(et.ones((1, 3, 5, 5)), et.ones((1, 2, 9, 9)), et.ones((3, 2, 5, 5), et.int32)), TypeError, r"\[conv2d_backward\] weight has dtype int32"),
    (lambda: et.conv1d(et.ones((1, 2, 9, 9)), et.ones((3, 2, 5))), ValueError, r"\[conv1d\] x must have the 3 axes \(N, C, L\)"),
    (lambda: et.conv1d(et.ones((1, 2, 4)), et.ones((3, 2, 5))), ValueError, r"\[conv1d\] the kernel is larger than the padded x: it covers 5 of 4"),
    (lambda: et.conv1d(et.ones((1, 2, 9)), et.ones((3, 2, 5)), stride=(1, 1)), ValueError, r"\[conv1d\] stride must be an int, got"),
    (lambda: et.conv1d_backward(et.ones((1, 3, 4)), et.ones((1, 2, 9)), et.ones((3, 2, 5))), ValueError, r"\[conv1d_backward\] grad_output has shape"),
    (lambda: et.conv_transpose2d(et.ones((1, 4, 3, 3)), et.ones((3, 2, 5, 5))), ValueError, r"\[conv_transpose2d\] weight has 3 input channels but x has 4"),
    (lambda: et.conv_transpose2d(et.ones((1, 3, 3, 3)), et.ones((3, 2, 5, 5)), groups=2), ValueError, r"\[conv_transpose2d\] groups=2 does not divide the 3 input channels"),
    (lambda: et.conv_transpose2d(et.ones((1, 3, 3, 3)), et.ones((3, 2, 1, 1)), padding=2), ValueError, r"\[conv_transpose2d\] the output would have the size -1 x -1; use less padding"),
    (lambda: et.conv_transpose2d(et.ones((1, 3, 3, 3)), et.ones((3, 2, 5, 5)), padding="same"), ValueError, r"\[conv_transpose2d\] padding must be ints"),
    (lambda: et.conv_transpose2d(et.ones((1, 3, 3, 3)), et.ones((3, 2, 5, 5)), output_padding=1), ValueError, r"\[conv_transpose2d\] output_padding \(1, 1\) must be smaller than stride \(1, 1\)"),
    (lambda: et.conv_transpose2d(et.ones((1, 3, 3, 3)), et.ones((3, 2, 5, 5)), et.ones(3)), ValueError, r"\[conv_transpose2d\] bias has shape \(3,\)"),
    (lambda: et.conv_transpose2d_backward(et.ones((1, 2, 7, 6)), et.ones((1, 3, 3, 3)), et.ones((3, 2, 5, 5))), ValueError, r"\[conv_transpose2d_backward\] grad_output has shape \(1, 2, 7, 6\) but .* \(1, 2, 7, 7\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_what_equals_a_known_option_is_still_checked() -> None:
    x, weight = et.ones((1, 1, 4, 4)), et.ones((1, 1, 3, 3))
    et.conv2d(x, weight, stride=1, padding=(1, 1))
    et.max_pool2d(x, 2, ceil_mode=False)
    for call in (
        lambda: et.conv2d(x, weight, stride=1.0, padding=(1, 1)),
        lambda: et.conv2d(x, weight, stride=True, padding=(1, 1)),
        lambda: et.conv2d(x, weight, stride=1, padding=(1.0, 1.0)),
        lambda: et.max_pool2d(x, 2, ceil_mode=0),
    ):
        with pytest.raises(TypeError, match="must be"):
            call()
