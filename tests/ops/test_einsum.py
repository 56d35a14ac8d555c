"""einsum: against NumPy and HIPS autograd, diagonals, broadcasting, dtypes, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

Shapes = list[tuple[int, ...]]
PLAIN: list[tuple[str, Shapes]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), (" i j , jk -> ki", [(2, 3), (3, 4)]), ("ba", [(2, 3)]), ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("i,j,k->kij", [(2,), (3,), (4,)]), ("ij,ij->i", [(2, 3), (2, 3)]),
    ("ij,k->i", [(2, 3), (4,)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("ijk,jil->kl", [(2, 3, 4), (3, 2, 5)]), ("Ab,bC", [(2, 3), (3, 4)]),
    ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]), ("i...,i", [(3, 2), (3,)]), ("...,...", [(3, 2), (2,)]), ("...ij,jk->i...k", [(5, 2, 3), (3, 4)]),
    ("ij,ij->ij", [(1, 3), (2, 3)]), ("aij,ajk->aik", [(1, 2, 3), (4, 3, 5)]),
]  # fmt: skip
# autograd takes no diagonals, no 0-d operands, no empty ones, and no sum over a broadcast axis
MORE: list[tuple[str, Shapes]] = [
    ("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("iij->j", [(3, 3, 2)]), ("iii->i", [(2, 2, 2)]), ("ii,jj->ij", [(2, 2), (3, 3)]), ("iij,jk->ik", [(2, 2, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]), ("ij,jk->ik", [(2, 3), (1, 4)]), (",->", [(), ()]), ("i,->i", [(3,), ()]), ("ij,jk->ik", [(2, 0), (0, 3)]), ("ij,jk->ik", [(0, 2), (2, 3)]),
]  # fmt: skip


def draw(shapes: Shapes, seed: int = 21) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(s)) for s in shapes]


@pytest.mark.parametrize(("subscripts", "shapes"), PLAIN + MORE)
class TestEveryForm:
    def test_value(self, subscripts: str, shapes: Shapes) -> None:
        operands = draw(shapes)
        expected = np.einsum(subscripts, *operands)
        found = et.einsum(subscripts, *map(et.asarray, operands))
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)

    def test_gradient_by_linearity(self, subscripts: str, shapes: Shapes) -> None:
        """einsum is linear in each operand: <dx, v> = <g, einsum(.., v, ..)> for every v."""
        operands = draw(shapes)
        g = np.asarray(np.random.default_rng(22).standard_normal(np.shape(np.einsum(subscripts, *operands))))
        grads = et.einsum_backward(et.asarray(g), subscripts, *map(et.asarray, operands))
        assert [grad.shape for grad in grads] == shapes
        for i, v in enumerate(draw(shapes, seed=23)):
            expected = np.sum(g * np.einsum(subscripts, *operands[:i], v, *operands[i + 1 :]))
            np.testing.assert_allclose(np.sum(grads[i].numpy() * v), expected, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
    def test_half_is_float32_rounded_once(self, subscripts: str, shapes: Shapes, dtype: Any) -> None:
        narrow = [et.asarray(x).astype(dtype) for x in draw(shapes)]
        wide = [x.astype(et.float32) for x in narrow]
        found, expected = et.einsum(subscripts, *narrow), et.einsum(subscripts, *wide)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())
        grads = et.einsum_backward(found, subscripts, *narrow)
        for grad, twin in zip(grads, et.einsum_backward(found.astype(et.float32), subscripts, *wide)):
            assert grad.dtype == dtype
            np.testing.assert_array_equal(grad.numpy(), twin.astype(dtype).numpy())


@pytest.mark.parametrize(("subscripts", "shapes"), PLAIN)
def test_gradients_agree_with_autograd(subscripts: str, shapes: Shapes) -> None:
    operands = draw(shapes)
    subscripts = subscripts.replace(" ", "")
    g = np.asarray(np.random.default_rng(22).standard_normal(np.shape(np.einsum(subscripts, *operands))))
    expected = autograd.grad(lambda xs: anp.sum(anp.einsum(subscripts, *xs) * g))(tuple(operands))
    found = et.einsum_backward(et.asarray(g), subscripts, *map(et.asarray, operands))
    for grad, oracle in zip(found, expected):
        np.testing.assert_allclose(grad.numpy(), oracle, rtol=1e-11, atol=1e-13)


def test_only_what_is_needed() -> None:
    a, b = et.ones((2, 3)), et.ones((3, 4), et.int32)
    grads = et.einsum_backward(et.ones((2, 4)), "ij,jk->ik", a, b, needs=(True, False))
    assert grads[1] is None
    assert grads[0].tolist() == [[4.0] * 3] * 2
    assert grads[0].dtype == et.float32


def test_off_the_diagonal_the_gradient_is_zero_whatever_stands_there() -> None:
    x = et.tensor([[1.0, float("nan")], [float("inf"), 2.0]])
    assert et.einsum("ii", x).item() == 3.0
    assert et.einsum_backward(et.tensor(1.0), "ii", x)[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]


ERRORS = [
    (lambda: et.einsum("ij,jk->ik", et.ones((2, 3))), ValueError, r"\[einsum\] subscripts 'ij,jk->ik' name 2 operands but 1 were given"),
    (lambda: et.einsum("ij"), ValueError, r"\[einsum\] needs at least one operand"),
    (lambda: et.einsum(et.ones(2), et.ones(2)), TypeError, r"\[einsum\] subscripts must be a string"),
    (lambda: et.einsum("i1", et.ones((2, 3))), ValueError, r"\[einsum\] subscripts 'i1': 'i1' may hold letters"),
    (lambda: et.einsum("......", et.ones((2, 3))), ValueError, r"\[einsum\] subscripts '......'"),
    (lambda: et.einsum("i->j->k", et.ones(2)), ValueError, r"\[einsum\] subscripts"),
    (lambda: et.einsum("ijk", et.ones((2, 3))), ValueError, r"\[einsum\] 'ijk' of 'ijk' names 3 axes but the operand has shape \(2, 3\)"),
    (lambda: et.einsum("i", et.ones((2, 3))), ValueError, r"\[einsum\] 'i' of 'i' names 1 axes but the operand has shape \(2, 3\)"),
    (lambda: et.einsum("ij,jk", et.ones((2, 3)), et.ones((4, 5))), ValueError, r"\[einsum\] subscripts 'ij,jk': 'j' has length 3 in one operand and 4 in another"),
    (lambda: et.einsum("ii", et.ones((1, 3))), ValueError, r"\[einsum\] subscripts 'ii': a diagonal needs equal lengths"),
    (lambda: et.einsum("i->ii", et.ones(2)), ValueError, r"\[einsum\] subscripts 'i->ii': output 'i' must be in an input, and once"),
    (lambda: et.einsum("i->j", et.ones(2)), ValueError, r"\[einsum\] subscripts 'i->j': output 'j' must be in an input"),
    (lambda: et.einsum("...i->i", et.ones((2, 3))), ValueError, r"\[einsum\] subscripts '...i->i': the axes of '...' must be in the output"),
    (lambda: et.einsum("i", "x"), TypeError, r"\[einsum\] operands\[0\] must be a tensor"),
    (lambda: et.einsum_backward(et.ones(2), "ij->i", et.ones((3, 2))), ValueError, r"\[einsum_backward\] grad_output has shape \(2,\) but .* \(3,\)"),
    (lambda: et.einsum_backward(et.ones(2), "i", et.tensor([1, 2])), TypeError, r"\[einsum_backward\] operands\[0\] has dtype int64"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
