"""jacfwd, jacrev, linearize: against each other, against numbers worked out by hand, for structures and in nests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et

from .programs import random_program


@pytest.mark.parametrize("seed", range(12))
def test_columns_and_rows_agree(seed: int) -> None:
    inputs, program = random_program(seed + 300)
    args = [et.tensor(x) for x in inputs]

    def function(*xs: Any) -> Any:
        total = program(et, xs)
        return {"all": xs[0] * total, "sum": total}

    numbers = tuple(range(len(args)))
    rows, columns = et.jacrev(function, numbers)(*args), et.jacfwd(function, numbers)(*args)
    for name in rows:
        for a, b, x in zip(rows[name], columns[name], inputs):
            assert a.shape == b.shape == (inputs[0].shape if name == "all" else ()) + x.shape
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)


def test_by_hand_with_structures_labels_and_empty_tensors() -> None:
    batch = {"x": et.tensor([1.0, 2.0], et.float64), "i": et.tensor([1]), "none": et.zeros((0,))}

    def function(b: Any) -> Any:
        return (b["x"][b["i"]] * b["x"], b["x"].argmax())

    first, second = et.jacfwd(function)(batch)
    assert first["x"].tolist() == [[2.0, 1.0], [0.0, 4.0]]
    assert first["i"] is None
    assert first["none"].shape == (2, 0)
    assert second is None
    assert et.jacfwd(lambda x: x[:0])(et.ones(3)).shape == (0, 3)
    assert et.jacfwd(lambda x, y: (x * y).sum(), argnums=(0, 1))(2.0, 3.0)[1].item() == 2.0


def test_linearize_runs_the_function_once() -> None:
    runs = []

    def function(x: Any, y: Any) -> Any:
        runs.append(1)
        return {"product": x * y, "which": x.argmax()}

    array = np.array([1.0, 2.0])
    out, along = et.linearize(function, array, et.tensor([3.0, 4.0], et.float64))
    assert out["product"].tolist() == [3.0, 8.0]
    assert not out["product"].requires_grad
    array[:] = 0  # the point stays where it was
    zero, one = et.zeros(2, et.float64), et.ones(2, et.float64)
    assert along(one, zero)["product"].tolist() == [3.0, 4.0]
    assert along(zero, one)["product"].tolist() == [1.0, 2.0]
    assert along(one, one)["which"] is None
    assert len(runs) == 1
    with pytest.raises(ValueError, match=r"^\[linearize\] a tangent has shape \(3,\)"):
        along(et.ones(3), zero)
    with pytest.raises(ValueError, match=r"^\[linearize\] tangents must be structured"):
        along(one)


def test_nests() -> None:
    x = et.tensor([0.5, 1.5], et.float64)
    want = et.hessian(lambda x: (x**4).sum())(x).numpy()
    got = et.jacfwd(et.grad(lambda x: (x**4).sum()))(x).numpy()
    other = et.jacrev(et.jacfwd(lambda x: (x**4).sum()))(x).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-13)
    np.testing.assert_allclose(other, want, rtol=1e-13)
    slope = et.grad(lambda x: et.linearize(lambda y: y**3, x)[1](et.ones(2, et.float64)).sum())(x)
    np.testing.assert_allclose(slope.numpy(), 6 * x.numpy(), rtol=1e-13)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "linearize"])
def test_refusals(name: str) -> None:
    function = getattr(et, name)
    with pytest.raises(TypeError, match=rf"^\[{name}\] fn must be a function"):
        function(3)
    with pytest.raises(TypeError, match=rf"^\[{name}\] fn must return tensors"):
        function(lambda x: 3, et.ones(2)) if name == "linearize" else function(lambda x: 3)(et.ones(2))
    if name != "linearize":
        with pytest.raises(ValueError, match=rf"^\[{name}\] argnums 2"):
            function(lambda x: x, 2)(et.ones(2))
