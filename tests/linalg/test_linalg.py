"""Linear algebra against NumPy, SciPy and HIPS autograd: values, batches, dtypes, and what degenerate matrices give."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
import scipy.linalg

import extensor as et
from extensor import linalg

RNG = np.random.default_rng(3)
NAN = float("nan")


def matrices(*shape: int) -> np.ndarray:
    """Matrices whose singular values lie well apart."""
    return RNG.uniform(-0.3, 0.3, shape) + np.eye(shape[-2], shape[-1]) * (1.0 + np.arange(shape[-1]))


def close(actual, expected, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=rtol)


VALUES = {
    "inv": np.linalg.inv, "det": np.linalg.det, "cholesky": lambda x: np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2),
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False), "eigvalsh": lambda x: np.linalg.eigvalsh((x + np.swapaxes(x, -1, -2)) / 2),
    "pinv": np.linalg.pinv, "matrix_rank": np.linalg.matrix_rank, "cond": np.linalg.cond, "matrix_exp": scipy.linalg.expm,
    "matrix_norm": lambda x: np.linalg.norm(x, axis=(-2, -1)), "vector_norm": lambda x: np.linalg.norm(x.reshape(-1)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 3, 3), (0, 2, 2)])
def test_values(name, shape):
    x = matrices(*shape)
    if name == "cond" and not x.size:
        assert linalg.cond(et.asarray(x)).shape == shape[:-2]
        return
    close(getattr(linalg, name)(et.asarray(x)), VALUES[name](x))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_decompositions_give_the_matrix_back(shape):
    x = matrices(*shape)
    for full in (False, True):
        u, s, vh = (t.numpy() for t in linalg.svd(et.asarray(x), full))
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
        assert u.shape[-1] == (shape[-2] if full else k)
        assert vh.shape[-2] == (shape[-1] if full else k)
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in linalg.qr(et.asarray(x), mode))
        close(q @ r, x)
        close(
            np.swapaxes(q, -1, -2) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2)),
        )


def test_solutions():
    a, b = matrices(2, 3, 3), RNG.normal(size=(3, 2))
    close(linalg.solve(et.asarray(a), et.asarray(b)), np.linalg.solve(a, b))
    close(linalg.solve(et.asarray(a[0]), et.asarray(b[:, 0])), np.linalg.solve(a[0], b[:, 0]))
    for upper in (False, True):
        for unit in (False, True):
            found = linalg.triangular_solve(et.asarray(a[0]), et.asarray(b), upper, unit)
            close(found, scipy.linalg.solve_triangular(a[0], b, lower=not upper, unit_diagonal=unit))


@pytest.mark.parametrize("upper", [False, True])
def test_large_triangles_are_solved_by_blocks(upper):
    a = RNG.normal(size=(150, 150)) / 20 + np.eye(150) * 3
    b = RNG.normal(size=(150, 4))
    close(
        linalg.triangular_solve(et.asarray(a), et.asarray(b), upper),
        scipy.linalg.solve_triangular(a, b, lower=not upper),
        1e-12,
    )


@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (3, 3)])
def test_least_squares(shape):
    a, b = RNG.normal(size=shape), RNG.normal(size=(shape[0], 2))
    solution, residuals, rank, values = linalg.lstsq(et.asarray(a), et.asarray(b))
    expected = np.linalg.lstsq(a, b)
    close(solution, expected[0], 1e-9)
    close(residuals, np.square(b - a @ expected[0]).sum(0), 1e-9)
    assert rank.item() == expected[2]
    close(values, expected[3])


def test_least_squares_of_a_deficient_matrix_is_the_shortest():
    a, b = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]), np.array([1.0, 0.0, 2.0])
    close(linalg.lstsq(et.asarray(a), et.asarray(b)).solution, np.linalg.lstsq(a, b)[0])


@pytest.mark.parametrize("ord", [2, 1, 0, 3, 0.5, -1, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
def test_vector_norm(ord, axis):
    x = RNG.normal(size=(2, 3, 4))
    moved = (
        x.reshape(-1)
        if axis is None
        else np.moveaxis(x, axis, tuple(range(np.size(axis)))).reshape(-1, *np.delete(x.shape, axis))
    )
    close(linalg.vector_norm(et.asarray(x), ord, axis), np.linalg.norm(moved, ord, axis=0))


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norm(ord):
    x = RNG.normal(size=(2, 3, 4))
    close(linalg.matrix_norm(et.asarray(x), ord), np.linalg.norm(x, ord, axis=(-2, -1)))
    assert linalg.matrix_norm(et.asarray(x), ord, keepdims=True).shape == (2, 1, 1)
    close(linalg.norm(et.asarray(x), ord, (2, 0), True), np.linalg.norm(x, ord, axis=(2, 0), keepdims=True))


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, "fro", "nuc"])
def test_condition_number(p):
    x = matrices(2, 3, 3)
    close(linalg.cond(et.asarray(x), p), np.linalg.cond(x, p))


def test_products():
    a, b = RNG.normal(size=(2, 1, 3)), RNG.normal(size=(4, 3))
    close(linalg.cross(et.asarray(a), et.asarray(b)), np.cross(a, b))
    close(linalg.vecdot(et.asarray(a), et.asarray(b)), np.linalg.vecdot(a, b))
    close(linalg.kron(et.asarray(a[0]), et.asarray(b)), np.kron(a[0], b))
    close(linalg.kron(et.asarray(b), et.asarray(a[0, 0])), np.kron(b, a[0, 0]))
    chain = [RNG.normal(size=s) for s in ((10, 2), (2, 30), (30, 3), (3,))]
    close(linalg.multi_dot([et.asarray(m) for m in chain]), np.linalg.multi_dot(chain))


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5, 10])
def test_matrix_power(n):
    x = matrices(2, 3, 3)
    close(linalg.matrix_power(et.asarray(x), n), np.linalg.matrix_power(x, n), 1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1000.0])
def test_matrix_exp_of_small_and_large_matrices(scale):
    x = RNG.normal(size=(4, 3, 3)) * scale / 10
    x[0] *= -1e-6
    np.testing.assert_allclose(linalg.matrix_exp(et.asarray(x)).numpy(), scipy.linalg.expm(x), rtol=1e-10)


GRADIENTS = {
    "inv": anp.linalg.inv, "det": anp.linalg.det, "pinv": anp.linalg.pinv,
    "svdvals": lambda x: anp.linalg.svd(x, full_matrices=False)[1],
    "eigvalsh": lambda x: anp.linalg.eigh((x + anp.swapaxes(x, -1, -2)) / 2)[0],
    "cholesky": lambda x: anp.linalg.cholesky((x + anp.swapaxes(x, -1, -2)) / 2),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_against_autograd(name):
    x = matrices(3, 3)
    y = GRADIENTS[name](x)
    weights = RNG.normal(size=np.shape(y))
    if name == "cholesky":
        weights = np.tril(weights)
    expected = autograd.grad(lambda z: anp.sum(GRADIENTS[name](z) * weights))(x)
    leaf = et.tensor(x, requires_grad=True)
    et.sum(getattr(linalg, name)(leaf) * et.asarray(weights)).backward()
    close(leaf.grad, expected, 1e-8)


# What has no answer says so


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linalg.inv(et.zeros((2, 2))), r"\[inv\] x is singular"),
        (lambda: linalg.solve(et.ones((2, 2)), et.ones(2)), r"\[solve\] a is singular"),
        (lambda: linalg.triangular_solve(et.zeros((2, 2)), et.ones((2, 1))), r"\[triangular_solve\] a has a zero"),
        (lambda: linalg.cholesky(-et.eye(2)), r"\[cholesky\] x is not positive definite"),
        (lambda: linalg.qr_backward((et.ones((2, 2)), None), et.zeros((2, 2)), *linalg.qr(et.zeros((2, 2)))), r"\[qr_backward\] .* full rank"),
        (lambda: linalg.slogdet_backward((None, et.tensor(1.0)), et.zeros((2, 2))), "singular"),
        (lambda: linalg.cond(et.zeros((2, 2)), 1), "singular"),
    ],
)  # fmt: skip
def test_linalg_errors(call, message):
    with pytest.raises(linalg.LinAlgError, match=message):
        call()


@pytest.mark.parametrize(
    "name", ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "cholesky", "inv", "det", "qr"]
)
def test_a_nan_spoils_its_own_matrix_alone(name):
    x = np.stack([np.eye(2), np.full((2, 2), NAN), 2 * np.eye(2)])
    found = getattr(linalg, name)(et.asarray(x))
    for y in found if isinstance(found, tuple) else [found]:
        assert np.isnan(y.numpy()[1]).any()
        assert np.isfinite(y.numpy()[[0, 2]]).all()


def test_nothing_has_no_rank():
    with pytest.raises(linalg.LinAlgError, match=r"\[matrix_rank\] x holds nan"):
        linalg.matrix_rank(et.full((2, 2), NAN))


def test_singular_values_of_what_is_degenerate():
    """Sums of all singular values and eigenvalues are smooth where they are equal."""
    for x in (np.eye(3), np.diag([2.0, 2.0, 1.0])):
        close(linalg.svdvals_backward(et.ones(3, et.float64), et.asarray(x)), np.eye(3))
        close(linalg.eigvalsh_backward(et.ones(3, et.float64), et.asarray(x)), np.eye(3))


def test_vectors_that_a_loss_does_not_use_do_no_harm():
    """Of diag(2, 2, 1) only the vector of the single eigenvalue is used: its gradient is finite."""
    for function, column in ((lambda x: linalg.eigh(x).eigenvectors, 0), (lambda x: linalg.svd(x).U, 2)):
        x = et.tensor(np.diag([2.0, 2.0, 1.0]), requires_grad=True)
        et.sum(et.square(function(x)[:, column]) * et.asarray(np.array([1.0, 2.0, 3.0]))).backward()
        assert np.isfinite(x.grad.numpy()).all()


def test_vectors_of_equal_values_have_no_gradient():
    for function in (lambda x: linalg.eigh(x).eigenvectors, lambda x: linalg.svd(x).U):
        x = et.tensor(np.eye(2), requires_grad=True)
        y = function(x)
        y.backward(et.asarray(np.array([[1.0, 5.0], [-2.0, 3.0]])))
        assert np.isnan(x.grad.numpy()).any()


def test_cofactors_of_singular_matrices():
    """det is a polynomial: its gradient exists everywhere, and is the matrix of minors."""
    for rank in (0, 1, 2):
        x = RNG.normal(size=(3, rank)) @ RNG.normal(size=(rank, 3))
        minors = [
            [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for j in range(3)]
            for i in range(3)
        ]
        close(linalg.det_backward(et.tensor(1.0, et.float64), et.asarray(x)), minors, 1e-9)


def test_added_columns_have_no_gradient():
    x = et.tensor(matrices(3, 2), requires_grad=True)
    u = linalg.svd(x, full_matrices=True).U
    with pytest.raises(NotImplementedError, match=r"\[svd_backward\] .* full_matrices"):
        u.sum().backward()
    with pytest.raises(NotImplementedError, match=r'\[qr_backward\] .*mode="complete"'):
        linalg.qr(x, "complete").Q.sum().backward()


def test_singular_values_alone_are_differentiable_with_full_matrices():
    x = et.tensor(matrices(3, 2), requires_grad=True)
    linalg.svd(x, full_matrices=True).S.sum().backward()
    close(x.grad, linalg.svdvals_backward(et.ones(2, et.float64), x.detach()), 1e-12)


@pytest.mark.parametrize(
    "dtype", [et.float16, et.bfloat16, et.float32, et.float64, et.complex64, et.complex128]
)
def test_dtypes_are_kept(dtype):
    x = et.asarray(matrices(3, 3)).astype(dtype)
    for name in ("inv", "det", "pinv", "cholesky", "matrix_exp"):
        assert getattr(linalg, name)(x).dtype == dtype, name
    real = np.dtype(x.numpy().real.dtype) if dtype != et.bfloat16 else dtype
    for name in ("svdvals", "eigvalsh", "vector_norm", "matrix_norm", "cond"):
        assert getattr(linalg, name)(x).dtype == real, name
    assert linalg.solve(x, x).dtype == dtype
    assert linalg.eigvals(x).dtype.kind == "c"


def test_integers_are_refused():
    for name in ("inv", "det", "svd", "eigh", "qr", "vector_norm"):
        with pytest.raises(TypeError, match=rf"\[{name}\] x must have a floating dtype"):
            getattr(linalg, name)(et.eye(2, dtype=et.int64))


@pytest.mark.parametrize("function", ["qr", "eigh", "svd"])
def test_gradients_of_results_that_are_no_tensors_are_refused(function: str) -> None:
    x = et.eye(2, dtype=et.float16)
    results = getattr(et.linalg, function)(x)
    with pytest.raises(TypeError, match=rf"\[{function}_backward\] grad_output must be"):
        getattr(et.linalg, f"{function}_backward")(slice(2), x, *results)


@pytest.mark.parametrize("function", [et.linalg.pinv, et.linalg.matrix_rank])
def test_a_tolerance_is_real(function: Any) -> None:
    with pytest.raises(TypeError, match="rtol must be real, got dtype complex64"):
        function(et.ones((3, 2, 2)), rtol=np.ones(3, np.complex64))
