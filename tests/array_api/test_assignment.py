"""``x[i] = v`` for arrays of the namespace: value semantics, and no way into what was recorded; other libraries on top of it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import array_api as xp


def test_nothing_else_sees_an_assignment() -> None:
    source = np.arange(6.0).reshape(2, 3)
    tensor = et.asarray(source)
    x = xp.asarray(tensor)
    part, same, turned, copied, other = x[0], x, x.T, copy.deepcopy(x), xp.asarray(x)
    x[0, 1:] = xp.asarray([8.0, 9.0])
    assert x.tolist() == [[0, 8, 9], [3, 4, 5]]
    assert same is x
    for unchanged in (tensor, turned.T, copied, other):
        assert unchanged.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert part.tolist() == [0, 1, 2]
    assert source.tolist() == [[0, 1, 2], [3, 4, 5]]
    part[0] = -1.0
    assert x[0, 0].item() == 0
    assert xp.asarray(x, copy=False) is x
    with pytest.raises(ValueError, match="copy=False forbids it"):
        xp.asarray(xp.ones(2, dtype=xp.float32), dtype=xp.float64, copy=False)
    assert xp.asarray(x, copy=True) is not x
    assert xp.astype(x, xp.int64, copy=False).dtype == np.int64


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (1, 7.0), (-1, 7), (slice(None, None, 2), 0.0), ((slice(None), 1), 5.0), (..., 1.0), ((None, 0), 2.0),
        (np.array([[True, False, True], [False, True, False]]), 4.0), (([0, 1], [1, 2]), [5.0, 6.0]), ((slice(None), slice(1, 3)), [[1.0, 2.0]]),
    ],
)  # fmt: skip
def test_as_numpy_assigns(key: Any, value: Any) -> None:
    expected = np.arange(6.0).reshape(2, 3)
    x = xp.asarray(expected.copy())
    expected[key] = value
    x[key] = value if isinstance(value, (int, float)) else xp.asarray(value)
    assert x.tolist() == expected.tolist()
    assert x.dtype == np.float64


def test_whatever_the_namespace_returns_can_be_assigned_to() -> None:
    plain = et.tensor([1.0, 2.0, 3.0])
    for x in (xp.zeros(3), xp.abs(plain), xp.asarray(plain) + 1, 2 * xp.asarray(plain), -xp.asarray(plain), xp.linalg.svdvals(xp.eye(3)),
              xp.fft.rfft(xp.zeros(4)), xp.sort(plain), xp.unique_all(plain).values, xp.meshgrid(plain, plain)[0][0]):  # fmt: skip
        assert isinstance(x, et.ExTensor)
        x[0] = 5.0
        assert x[0].item() == 5
    x = xp.asarray([1, 2, 3])
    x[x > 1] = 0
    assert x.tolist() == [1, 0, 0]
    x += 1
    assert x.tolist() == [2, 1, 1]
    assert plain.tolist() == [1, 2, 3]


def test_tensors_themselves_never_change() -> None:
    with pytest.raises(TypeError, match=r"x\.at\[key\]\.set"):
        et.tensor([1.0])[0] = 2.0


def test_what_is_recorded_refuses() -> None:
    w = et.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match="requires a gradient cannot be assigned to"):
        xp.asarray([0.0], dtype=xp.float32).__class__(np.zeros(2), True)[0] = 1.0
    recorded = xp.asarray(w) * 2
    with pytest.raises(TypeError, match=r"x\.at\[key\]\.set"):
        recorded[0] = 1.0
    kept = xp.asarray([3.0, 4.0])
    loss = (w * kept).sum()  # its node keeps the array
    with pytest.raises(TypeError, match="a call was recorded since this array was made"):
        kept[0] = 100.0
    loss.backward()
    assert w.grad.tolist() == [3.0, 4.0]
    fresh = xp.zeros(2)
    fresh[0] = 1.0
    assert fresh.tolist() == [1.0, 0.0]


def test_gradients_flow_through_the_namespace() -> None:
    found = et.grad(lambda t: xp.sum(xp.sin(xp.asarray(t)) * t))(et.tensor([0.5, 1.0]))
    x = np.array([0.5, 1.0])
    np.testing.assert_allclose(found.numpy(), np.cos(x) * x + np.sin(x), rtol=1e-6)


def test_errors_of_assignments() -> None:
    x = xp.asarray([1, 2, 3])
    with pytest.raises(TypeError, match="do not go into a tensor of int64"):
        x[0] = xp.asarray(1.5)
    with pytest.raises(IndexError, match="out of bounds"):
        x[3] = 1
    with pytest.raises(ValueError, match="do not broadcast"):
        x[:] = xp.asarray([1, 2])
    assert x.tolist() == [1, 2, 3]


def test_scipy_and_scikit_learn() -> None:
    """64 functions of theirs, in a process of its own."""
    pytest.importorskip("sklearn")
    script = Path(__file__).with_name("library_calls.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=600
    )
    found = json.loads(done.stdout)
    assert found["calls"] == 64
    assert found["problems"] == {}
