"""retain_grad: gradients of intermediate tensors."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.autograd.retained import retained


def leaf() -> Any:
    return et.tensor(np.array([1.0, 2.0]), requires_grad=True)


def test_the_gradient_stays_whether_asked_before_or_after_the_use() -> None:
    x = leaf()
    h = x * x
    h.retain_grad()
    g = h * 3.0
    out = (g * h).sum()
    g.retain_grad()
    out.retain_grad()
    out.backward()
    assert g.grad.tolist() == [1.0, 4.0]
    assert h.grad.tolist() == [6.0, 24.0]
    assert out.grad.item() == 1.0
    assert x.grad.tolist() == [12.0, 96.0]


def test_others_keep_nothing() -> None:
    x = leaf()
    h = x * x
    (h * 2.0).sum().backward()
    assert h.grad is None


def test_several_passes_add_up_and_asking_twice_counts_once() -> None:
    x = leaf()
    h = x * 2.0
    h.retain_grad()
    h.retain_grad()
    loss = (h * h).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert h.grad.tolist() == [8.0, 16.0]
    h.grad = None
    assert h.grad is None


def test_several_outputs() -> None:
    x = leaf()
    first, second = et.split(x, 2)
    first.retain_grad()
    (first * 5.0 + second).sum().backward()
    assert first.grad.tolist() == [5.0]
    assert second.grad is None


def test_recorded_gradients_can_be_differentiated() -> None:
    x = leaf()
    h = x * x
    h.retain_grad()
    (h**3).sum().backward(create_graph=True)
    x.grad = None
    h.grad.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.numpy() ** 2 * 2 * x.numpy())


def test_a_leaf_has_its_gradient_anyway() -> None:
    x = leaf()
    x.retain_grad()
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(et.GraphError, match=r"^\[retain_grad\] this tensor does not depend"):
        et.ones(2).retain_grad()


def test_transforms_leave_it_alone() -> None:
    kept = []

    def loss(x: Any) -> Any:
        h = x * x
        h.retain_grad()
        kept.append(h)
        return h.sum()

    et.grad(loss)(et.ones(2))
    assert kept[0].grad is None


def test_nothing_is_kept_alive() -> None:
    x = leaf()
    h = x * x
    h.retain_grad()
    node, tensor = weakref.ref(h._node), weakref.ref(h)
    assert h._node in retained
    del h
    gc.collect()
    assert node() is None
    assert tensor() is None
    assert not retained


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_adds_up_in_float32(dtype: str) -> None:
    x = et.tensor([1.0], dtype, requires_grad=True)
    h = x * 1.0
    h.retain_grad()
    out = h.sum()
    for _ in range(3000):
        out.backward(retain_graph=True)
    assert h.grad.dtype == x.dtype
    assert h.grad.tolist() == et.tensor([3000.0], dtype).tolist()
