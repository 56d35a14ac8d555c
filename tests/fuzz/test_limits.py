"""Calls at the limits of what an array, a list or a number can be: each is answered or refused by name, and at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.kernels import namespace
from extensor.kernels.namespace import joined_at

AXES = et.zeros((1,) * 64)
LONG = 2**40  # a length that no memory has, of an array that may still be empty


def nested(depth: int) -> Any:
    made: Any = [1.0]
    for _ in range(depth - 1):
        made = [made]
    return made


def endless() -> list[Any]:
    made: list[Any] = [1.0]
    made.extend([made, made])  # twice: a walk that goes both ways never ends
    return made


REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    ("expand_dims", lambda: et.expand_dims(AXES, 0), "64"),
    ("stack", lambda: et.stack([AXES, AXES]), "65"),
    ("zeros", lambda: et.zeros((1,) * 65), "at most 64"),
    ("zeros", lambda: et.zeros((10**400, 0)), "than any memory holds"),
    ("adaptive_avg_pool1d", lambda: et.adaptive_avg_pool1d(et.zeros((1, 0, LONG)), 2), "too big"),
    ("adaptive_avg_pool1d", lambda: et.adaptive_avg_pool1d(et.zeros((1, 1, 4)), 2**31 - 1), "output_size is .2147483647"),
    ("adaptive_max_pool2d", lambda: et.adaptive_max_pool2d(et.zeros((0, 1, 4, 4)), LONG), str(LONG)),
    ("adaptive_max_pool_indices", lambda: et.adaptive_max_pool_indices(et.zeros((0, 1, 4)), LONG), str(LONG)),
    ("max_pool1d", lambda: et.max_pool1d(et.zeros((0, 1, LONG)), 2, dilation=2), "the windows of x are"),
    ("max_pool3d", lambda: et.max_pool3d(et.zeros((0, 1, LONG, 2, 2)), 2), "the windows of x are"),
    ("avg_pool3d", lambda: et.avg_pool3d(et.zeros((0, 1, LONG, 2, 2)), 2), "the windows of x are"),
    ("max_pool_indices", lambda: et.max_pool_indices(et.zeros((0, 1, LONG)), 2), "the windows of x are"),
    ("tensor", lambda: et.tensor(endless()), "nested more than 64 deep"),
    ("tensor", lambda: et.tensor(nested(65)), "nested more than 64 deep"),
    ("relu", lambda: et.relu(endless()), "nested more than 64 deep"),  # type: ignore[arg-type]
    ("reshape", lambda: et.reshape(et.zeros(2), bytearray(b"\2")), "bytearray"),
    ("reshape", lambda: et.reshape(et.zeros(2), memoryview(b"\2")), "memoryview"),
    ("broadcast_shapes", lambda: et.broadcast_shapes(range(10**30)), "more than 1048576 ints"),  # type: ignore[arg-type]
    ("atan2", lambda: et.atan2(10**400, et.tensor(1.0)), "a is too large for a float"),
    ("hypot", lambda: et.hypot(1.0, 10**400), "b is too large for a float"),
    ("svdvals", lambda: et.linalg.svdvals(et.zeros((0, LONG))), "than LAPACK goes through"),
    ("solve", lambda: et.linalg.solve(et.zeros((0, 0)), et.zeros((0, LONG))), "than LAPACK goes through"),
    ("svdvals", lambda: et.linalg.svdvals(et.zeros((2**20, 2**20, 0, 3))), "x of shape"),
    ("pinv", lambda: et.linalg.pinv(et.zeros((LONG, 0, 3))), "than LAPACK goes through"),
    ("eig", lambda: et.linalg.eig(AXES), "too many dimensions"),
    ("unstack", lambda: et.unstack(et.zeros((0, LONG)), axis=-1), "too many slices"),
    ("pad_packed_sequence", lambda: et.nn.pad_packed_sequence(et.nn.pack_sequence([et.ones(2)]), total_length=2**62), "total_length"),
    ("bernoulli", lambda: et.random.bernoulli(0, 10**400, 3), "p is too large for a float"),
    ("pad", lambda: et.pad(et.ones(2), [np.ma.masked]), "pad_width must be numbers, got a masked one"),
    ("sort", lambda: et.sort(et.zeros((2, *(1,) * 33)), axis=0), "32 dimensions"),
    ("top_k", lambda: et.top_k(AXES, 0, axis=0), "63"),
    ("index_add_backward", lambda: et.index_add_backward(et.tensor([1.0], requires_grad=True), range(10**30), ()), "too large"),
    ("index_add_backward", lambda: et.index_add_backward(et.tensor([1.0], requires_grad=True)), "needs key and values"),
    ("kaiming_normal", lambda: et.init.kaiming_normal((10**400, 2), rng=0), "than any memory holds"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "text"), REFUSED)
def test_refused(name: str, call: Callable[[], Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"^\[{name}\].*{text}"):
        call()


def test_lists_as_deep_as_arrays() -> None:
    assert et.tensor(nested(64)).shape == (1,) * 64
    assert et.relu(nested(64)).shape == (1,) * 64  # type: ignore[arg-type]


def test_masked_elements_in_lists() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for data in ([masked, masked], [[np.ma.masked]], (1.0, np.ma.masked)):
        with pytest.raises(TypeError, match=r"^\[tensor\] data has masked elements"):
            et.tensor(data)


def test_broadcasting_of_arrays_with_many_axes() -> None:
    shape = (1,) * 40
    x, y = et.ones((*shape, 3)), et.ones((2, *shape))
    assert et.add(x, y).shape == (2, *shape[1:], 3)
    assert et.broadcast_shapes((1,) * 64, (2,)) == (*(1,) * 63, 2)
    assert et.gammainc(x, y).shape == et.betainc(x, y, 0.5).shape == (2, *shape[1:], 3)
    assert et.where(x > 0, x, y).shape == et.broadcast_to(x, (2, *shape[1:], 3)).shape


def test_empty_sequences_of_any_length_are_pooled() -> None:
    assert et.max_pool1d(et.zeros((0, 1, LONG)), 2).shape == (0, 1, LONG // 2)


def test_adding_at_places_of_many_axes() -> None:
    twice = (slice(None), np.array([0, 0]))
    assert et.index_add(AXES, twice, 1.0).sum().item() == 2  # NumPy's add.at crashes the process
    wide = (np.zeros((1,) * 33, int),)
    assert et.index_add(et.zeros(3), wide, 1.0).tolist() == [1, 0, 0]
    assert et.index_add(et.zeros((1,) * 20), (np.zeros((1,) * 20, int),), 1.0).sum().item() == 1
    assert et.index_backward(et.ones((1, 2, *(1,) * 38)), (1,) * 40, twice).sum().item() == 2


@pytest.mark.parametrize("join", [np.add, np.multiply, np.maximum])
def test_joined_at_by_flat_places(join: np.ufunc, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    start = np.asfortranarray(rng.normal(size=(3, 2, 4)))
    keys = ((slice(None), rng.integers(0, 2, 5)), (rng.integers(0, 3, 4),), (start > 0,))
    for key in (*keys, (rng.integers(0, 3, (2, 2)), slice(None), rng.integers(0, 4, 2))):
        for values in (0.5, rng.normal(size=start[key].shape)):
            expected = joined_at(join, start.copy("K"), key, values)
            with monkeypatch.context() as patch:
                patch.setattr(namespace, "_MOST_AXES_OF_AT", -1)
                np.testing.assert_array_equal(joined_at(join, start.copy("K"), key, values), expected)


@pytest.mark.parametrize("dtype", [et.complex64, et.float32])
def test_no_indices_at_all(dtype: Any) -> None:
    nothing = [et.zeros((3, 0), dtype)]
    assert et.gather_backward(et.ones((1, 3, 0)), (4, 4, 4), 0, nothing).shape == (4, 4, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [et.bfloat16, et.float16])
def test_half_singular_values_beside_others(dtype: Any) -> None:
    x = et.tensor(np.diag([3.0, 2.0]))
    u, s, vh = et.linalg.svd(x)
    found = et.linalg.svd_backward((None, et.ones(2), et.zeros((2, 2))), x, u, s.astype(dtype), vh)
    np.testing.assert_array_equal(np.abs(found.numpy()), np.eye(2))


def test_options_of_any_depth() -> None:
    @et.differentiable(backward=lambda grad, x, chain: grad)
    def passed(x: et.ExTensor, chain: Any) -> et.ExTensor:
        return x

    assert passed(et.ones(2), nested(70)).shape == (2,)


def test_what_needs_no_regions_or_decomposition_has_no_limit_of_them() -> None:
    assert et.linalg.matrix_norm(et.zeros((0, 2**32))).item() == 0
    x = et.ones((1, 1, 2**24 + 2), dtype=et.float16)
    assert et.adaptive_avg_pool1d(x, 2**24 + 2).shape == x.shape
    assert et.broadcast_shapes((2**59, 1), (1, 2)) == (2**59, 2)


def test_the_norm_of_any_order() -> None:
    for order in (1e-300, 5e-324):
        clipped, norm = et.clip_grad_norm([et.tensor([1.0, 2.0])], 1.0, order)
        assert norm.item() == float("inf")
        assert clipped[0].tolist() == [0.0, 0.0]


def test_nothing_warns() -> None:
    assert et.logaddexp(1e308, 99).item() == float("inf")
    assert et.index_set(et.zeros(2), 0, 1e308).tolist() == [float("inf"), 0]
    u, v = et.linalg.eig(et.tensor([[1.0, 2.0], [3.0, 4.0]]))
    grads = (et.ones(2, et.complex64), et.ones((2, 2), et.complex64))
    assert np.isnan(et.linalg.eig_backward(grads, et.eye(2), u * float("inf"), v).numpy()).all()
    with pytest.raises(ValueError, match=r"^\[rfftfreq\] d must not be 0 nor next to it"):
        et.fft.rfftfreq(4, 5e-324)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda n: et.zeros(n), r"\[zeros\] shape"),
        (lambda n: et.linspace(0, 1, n), r"\[linspace\] num"),
        (lambda n: et.eye(n), r"\[eye\] n"),
        (lambda n: et.eye(1, n), r"\[eye\] m"),
        (lambda n: et.fft.fftfreq(n), r"\[fftfreq\] n"),
        (lambda n: et.fft.rfftfreq(n), r"\[rfftfreq\] n"),
        (lambda n: et.random.permutation(0, n), r"\[permutation\] n"),
    ],
)
@pytest.mark.parametrize("n", [2**63, 10**400], ids=["2**63", "10**400"])
def test_lengths_no_array_has(call: Callable[[int], object], names: str, n: int) -> None:
    with pytest.raises(ValueError, match=f"^{names} means more elements than any memory holds"):
        call(n)


def test_a_grid_of_negative_lengths() -> None:
    for call in (
        et.affine_grid,
        lambda theta, size: et.affine_grid_backward(et.ones((1, 0, 4, 3)), theta, size),
    ):
        with pytest.raises(
            ValueError, match=r"^\[affine_grid(_backward)?\] size must not have negative lengths"
        ):
            call(et.ones((1, 3, 4)), (1, 0, -3, 1, 0))
