"""What the layers and losses that load later refuse, and where their maxima are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et

X = et.ones((1, 2, 6))
IMAGE = et.ones((1, 2, 6, 6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: et.conv3d(IMAGE, et.ones((1, 2, 1, 1, 1))), r"\[conv3d\] x must have the 5 axes \(N, C, D, H, W\)"),
        (lambda: et.conv3d(et.ones((1, 2, 3, 3, 3)), et.ones((1, 3, 1, 1, 1))), "weight has 3 input channels but x has 2"),
        (lambda: et.conv_transpose1d(X, et.ones((3, 1, 2))), r"\[conv_transpose1d\] weight has 3 input channels"),
        (lambda: et.conv_transpose1d(X, et.ones((2, 1, 2)), output_padding=1), "output_padding"),
        (lambda: et.max_pool1d(X, 2, padding=2), r"\[max_pool1d\] padding \(2,\) must be at most half"),
        (lambda: et.max_pool1d(IMAGE, 2), r"\[max_pool1d\] x must have the 3 axes"),
        (lambda: et.max_pool2d(IMAGE, 2, dilation=0), r"\[max_pool2d\] dilation must be at least 1"),
        (lambda: et.max_pool2d(IMAGE, 3, dilation=3), "larger than the padded x"),
        (lambda: et.avg_pool3d(IMAGE, 2), r"\[avg_pool3d\] x must have the 5 axes"),
        (lambda: et.adaptive_max_pool2d(IMAGE, (1, 2, 3)), "output_size must be an int or a pair"),
        (lambda: et.adaptive_max_pool1d(X, 0), "output_size must be at least 1"),
        (lambda: et.max_pool_indices(et.ones((3, 3)), 2), r"\[max_pool_indices\] x must be"),
        (lambda: et.interpolate(X), "give either size or scale_factor"),
        (lambda: et.interpolate(X, 3, 2.0), "give either size or scale_factor"),
        (lambda: et.interpolate(X, 3, mode="bilinear"), "mode 'bilinear' is for 2 directions, but x has 1"),
        (lambda: et.interpolate(X, 3, mode="cubic"), "mode must be one of nearest"),
        (lambda: et.interpolate(X, 3, align_corners=True), "align_corners is for linear and cubic modes"),
        (lambda: et.interpolate(X, scale_factor=0.1), "the new size must be 1 positive lengths"),
        (lambda: et.grid_sample(IMAGE, et.zeros((2, 1, 1, 2))), r"grid must have the shape \(N, ..., 2\)"),
        (lambda: et.grid_sample(IMAGE, et.zeros((1, 1, 1, 2)), "cubic"), "mode must be 'bilinear' or 'nearest'"),
        (lambda: et.grid_sample(IMAGE, et.zeros((1, 1, 1, 2)), padding_mode="wrap"), "padding_mode must be"),
        (lambda: et.affine_grid(et.zeros((1, 2, 3)), (2, 1, 3, 3)), r"\[affine_grid\] size must be"),
        (lambda: et.pixel_shuffle(IMAGE, 2), r"the 2 channels of x must be a multiple of 2\*\*2"),
        (lambda: et.pixel_unshuffle(IMAGE, 4), "height and width of x must be multiples of 4"),
        (lambda: et.glu(et.ones(3)), "axis -1 of x must have an even length"),
        (lambda: et.celu(X, 0.0), "alpha must not be 0"),
        (lambda: et.hard_shrink(X, -1.0), "lambd must be zero or positive"),
        (lambda: et.local_response_norm(X, 0), "size must be at least 1"),
        (lambda: et.local_response_norm(X, 10**400), r"\[local_response_norm\] size is too large"),
        (lambda: et.rotary_embedding(et.ones((2, 3)), et.ones((2, 1)), et.ones((2, 1))), "must have an even length"),
        (lambda: et.rotary_embedding(et.ones((2, 4)), et.ones((3, 2)), et.ones((2, 2))), "cos of shape"),
        (lambda: et.soft_margin(et.ones(2), et.tensor([0, 1])), "targets must be -1 or 1"),
        (lambda: et.margin_ranking(et.ones(2), et.ones(3), et.tensor([1, 1])), "a loss does not broadcast"),
        (lambda: et.multi_margin(et.ones((1, 2)), et.tensor([2])), r"targets must lie in \[0, 2\), got 2"),
        (lambda: et.multi_margin(et.ones((1, 2)), et.tensor([1]), p=3), "p must be 1 or 2"),
        (lambda: et.multilabel_margin(et.ones((1, 2)), et.tensor([[2, -1]])), r"targets must lie in \[-1, 2\)"),
        (lambda: et.nll(et.ones((2, 3)), et.tensor([0, 3])), r"targets must lie in \[0, 3\), got 3"),
        (lambda: et.nll(et.ones((2, 3)), et.tensor([0])), r"targets has shape \(1,\) but must have \(2,\)"),
        (lambda: et.nll(et.ones((2, 3)), et.tensor([0, 1]), weight=et.ones(2)), "there are 3 classes"),
        (lambda: et.gaussian_nll(et.ones(1), et.ones(1), et.tensor([-1.0])), "variance must not be negative"),
        (lambda: et.ctc(et.ones((3, 1, 2)), et.tensor([[0]]), [3], [1]), "classes other than the blank 0"),
        (lambda: et.ctc(et.ones((3, 1, 2)), et.tensor([[1]]), [4], [1]), "input_lengths must be 1 lengths of at most 3"),
        (lambda: et.ctc(et.ones((3, 1, 2)), et.tensor([[1]]), [3], [1], blank=2), "blank must be one of the 2 classes"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: et.local_response_norm(x, 3),
        lambda x: et.glu(x),
        lambda x: et.soft_margin(x, et.tensor([1, -1])),
        lambda x: et.interpolate(x, 3),
    ],
)
def test_lists_of_tensors_that_want_gradients(call: Callable[..., Any], dtype: str) -> None:
    """They are refused by name whatever their dtype: the gradient of a list is not there."""
    with pytest.raises(TypeError, match=r"\] \w+ is a list of tensors; join them with stack first"):
        call([et.tensor(et.ones(2).astype(dtype), requires_grad=True)])


def test_a_window_over_all_channels() -> None:
    """Beyond the channels there are zeros: however wide the window, they cost neither time nor memory."""
    rng = np.random.default_rng(0)
    x, grad = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
    for shape in ((2, 3, 4), (2, 1, 4), (2, 0, 4), (0, 3, 4)):
        part = x[tuple(map(slice, shape))]
        for size in (7, 99, 10**15, 2**70):
            alpha = 0.5 * size
            s = 2.0 + 0.5 * np.square(part).sum(1, keepdims=True)
            y = et.local_response_norm(et.tensor(part), size, alpha=alpha, beta=0.6, k=2.0)
            np.testing.assert_allclose(y.numpy(), part * s**-0.6, rtol=1e-14)
            dy = grad[tuple(map(slice, shape))]
            dx = et.local_response_norm_backward(
                et.tensor(dy), et.tensor(part), size, alpha=alpha, beta=0.6, k=2.0
            )
            pulled = (dy * part * s**-1.6).sum(1, keepdims=True)
            np.testing.assert_allclose(dx.numpy(), dy * s**-0.6 - 0.6 * part * pulled, rtol=1e-13)


def test_places_of_maxima() -> None:
    """Whatever the window, x at the place is the maximum, and the first one."""
    rng = np.random.default_rng(0)
    for shape in ((2, 3, 9), (1, 2, 6, 7), (1, 2, 5, 4, 6)):
        x = et.tensor(rng.integers(0, 4, shape).astype(float))
        flat = x.numpy().reshape(*shape[:2], -1)
        pool = {3: et.max_pool1d, 4: et.max_pool2d, 5: et.max_pool3d}[len(shape)]
        cells = {3: et.adaptive_max_pool1d, 4: et.adaptive_max_pool2d, 5: et.adaptive_max_pool3d}[len(shape)]
        for options in (
            {"kernel_size": 3, "stride": 2, "padding": 1},
            {"kernel_size": 2, "stride": 1, "padding": 1, "dilation": 2, "ceil_mode": True},
        ):
            y, places = pool(x, **options), et.max_pool_indices(x, **options)
            assert places.shape == y.shape
            assert places.dtype == np.int64
            picked = np.take_along_axis(flat, places.numpy().reshape(*shape[:2], -1), 2)
            np.testing.assert_array_equal(picked.reshape(y.shape), y.numpy())
        y, places = cells(x, 3), et.adaptive_max_pool_indices(x, 3)
        picked = np.take_along_axis(flat, places.numpy().reshape(*shape[:2], -1), 2)
        np.testing.assert_array_equal(picked.reshape(y.shape), y.numpy())
    assert et.max_pool_indices(et.zeros((1, 1, 4, 4)), 2).tolist() == [[[[0, 2], [8, 10]]]]


def test_labels_that_cannot_be_spelt() -> None:
    """Two equal labels need a blank between them: 3 outputs, not 2."""
    x = et.log_softmax(et.tensor(np.cos(np.arange(6.0)).reshape(2, 1, 3)))
    arguments = (et.tensor([[1, 1]]), [2], [2])
    assert et.ctc(x, *arguments).item() == float("inf")
    lost = et.grad(lambda t: et.ctc(t, *arguments))(x).numpy()
    assert np.isnan(lost[..., :2]).all()  # of the classes that a path could use
    assert et.ctc(x, *arguments, zero_infinity=True).item() == 0
    assert not et.grad(lambda t: et.ctc(t, *arguments, zero_infinity=True))(x).numpy().any()


def test_ctc_by_enumeration() -> None:
    """All 3**4 paths of 4 outputs, and those that spell the labels."""
    x = et.log_softmax(et.tensor(np.sin(np.arange(12.0)).reshape(4, 1, 3)))
    probabilities = np.exp(x.numpy()[:, 0])

    def spelt(path: tuple[int, ...]) -> list[int]:
        merged = [c for i, c in enumerate(path) if not i or c != path[i - 1]]
        return [c for c in merged if c]

    for labels in ([1], [1, 2], [2, 2], []):
        whole = sum(
            np.prod([probabilities[t, c] for t, c in enumerate(path)])
            for path in np.ndindex(*(3,) * 4)
            if spelt(path) == labels
        )
        row = et.tensor(np.array([labels], np.int64).reshape(1, len(labels)))
        loss = et.ctc(x, row, [4], [len(labels)], reduction="sum")
        assert loss.item() == pytest.approx(-np.log(whole), rel=1e-12)
