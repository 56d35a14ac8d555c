"""NumPy's functions called on tensors."""

from __future__ import annotations

import io

import numpy as np
import pytest

import extensor as et
from extensor import array_api as xp

X = np.array([[0.5, 0.25], [2.0, 4.0]], np.float32)


@pytest.mark.parametrize(
    "call",
    [
        np.sin, np.mean, np.sum, np.absolute, np.arctan, np.negative, np.square, np.std, np.median, np.sort, np.ravel, np.linalg.inv,
        np.linalg.svdvals, np.isnan, np.add.reduce, np.maximum.reduce, np.trace, np.argmax,
        lambda x: np.mean(x, axis=0), lambda x: np.max(x, 1, keepdims=True), lambda x: np.multiply(x, 2.0), lambda x: np.matmul(x, x),
        lambda x: np.concatenate([x, x], 1), lambda x: np.stack([x, x]), lambda x: np.where(x > 1, x, 0.0), lambda x: np.clip(x, 0.3, 3),
        lambda x: np.einsum("ij->j", x), lambda x: np.add.reduce(x, axis=1), lambda x: np.remainder(x, 0.3), lambda x: np.var(x, ddof=1),
    ],
)  # fmt: skip
def test_ours_of_the_same_name(call):
    found = call(et.tensor(X))
    assert type(found) is et.ExTensor
    np.testing.assert_allclose(found.numpy(), call(X), rtol=1e-6)


def test_gradients_flow():
    x = et.tensor(X, requires_grad=True)
    np.mean(np.exp(np.array([2.0, 3.0], np.float32) * x)).backward()
    scale = np.array([2.0, 3.0])
    np.testing.assert_allclose(x.grad.numpy(), scale * np.exp(scale * X) / 4, rtol=1e-6)


def test_what_has_no_counterpart_is_numpys_of_the_elements():
    x = et.tensor(X, requires_grad=True)
    assert np.percentile(x, 50) == np.percentile(X, 50)
    assert np.shape(x) == (2, 2)
    assert np.size([x, x]) == 8
    np.testing.assert_array_equal(np.spacing(x), np.spacing(X))
    np.testing.assert_array_equal(np.add.accumulate(x), np.add.accumulate(X))
    fresh = np.zeros_like(x)
    assert type(fresh) is np.ndarray
    fresh += x.detach()
    np.testing.assert_array_equal(fresh, X)
    np.savez(file := io.BytesIO(), x=x)
    file.seek(0)
    np.testing.assert_array_equal(np.load(file)["x"], X)
    assert [part.tolist() for part in np.where(et.tensor([False, True]))] == [[1]]


def test_what_ours_does_not_take_is_said():
    with pytest.raises(TypeError, match=r"\[mean\] has no argument 'dtype'; use x.astype"):
        np.mean(et.tensor(X), dtype=float)
    with pytest.raises(TypeError, match=r"\[sum\] has no argument 'out'"):
        np.sum(et.tensor(X), out=np.zeros(()))


def test_arrays_of_the_standard_stay_such():
    x = xp.asarray(X)
    for found in (np.sin(x), X + x, np.mean(x), np.sort(x)):
        assert type(found) is type(x)


def test_other_types_are_asked():
    class Other:
        def __array_function__(self, function, types, args, options):
            return "theirs"

    assert np.concatenate([et.tensor(X), Other()]) == "theirs"
