"""Complex numbers: the gradient of z is dL/d(Re z) + i dL/d(Im z), through every function that takes them."""

from __future__ import annotations

import numpy as np
import pytest
from complex_checks import check_complex

import extensor as et
from extensor import linalg

RNG = np.random.default_rng(5)


def c(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def r(*shape):
    return RNG.normal(size=shape)


def reduced(x):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return (u * et.exp(s).unsqueeze(-2)) @ vh


UNARY = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "square",
    "reciprocal",
    "negate",
    "abs",
    "conj",
    "real",
    "imag",
    "angle",
    "sum",
    "mean",
    "prod",
    "cumsum",
    "copy",
]
BINARY = {
    "add": et.add, "subtract": et.subtract, "multiply": et.multiply, "divide": et.divide, "power": et.power,
    "matmul": et.matmul, "dot": et.dot, "inner": et.inner, "outer": et.outer, "tensordot": lambda a, b: et.tensordot(a, b, 1),
    "einsum": lambda a, b: et.einsum("i,i->", a, b), "where": lambda a, b: et.where(et.tensor([True, False, True]), a, b),
    "concatenate": lambda a, b: et.concatenate([a, b]), "cross": linalg.cross, "vecdot": linalg.vecdot, "kron": linalg.kron,
}  # fmt: skip
MATRIX = {
    "inv": linalg.inv, "det": linalg.det, "slogdet": linalg.slogdet, "pinv": linalg.pinv, "qr": linalg.qr,
    "svdvals": linalg.svdvals, "eigvalsh": linalg.eigvalsh, "eigvals": linalg.eigvals, "matrix_exp": linalg.matrix_exp,
    "matrix_power": lambda x: linalg.matrix_power(x, -3), "cond": linalg.cond, "trace": et.trace, "tril": et.tril,
    "cholesky": lambda x: linalg.cholesky(x @ et.conj(x.mT)),
    "svd": lambda x: [et.abs(linalg.svd(x).U), linalg.svd(x).S, et.abs(linalg.svd(x).Vh)],
    "svd phase": lambda x: reduced(x),
    "eigh": lambda x: [linalg.eigh(x).eigenvalues, et.abs(linalg.eigh(x).eigenvectors)],
    "eig": lambda x: [linalg.eig(x).eigenvalues, et.abs(linalg.eig(x).eigenvectors)],
    **{f"matrix_norm {ord}": lambda x, ord=ord: linalg.matrix_norm(x, ord) for ord in ("fro", "nuc", 1, 2, -2, np.inf)},
    **{f"vector_norm {ord}": lambda x, ord=ord: linalg.vector_norm(x, ord) for ord in (2, 1, 3, np.inf)},
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check_complex(getattr(et, name), c(5))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    check_complex(BINARY[name], c(3), c(3))
    check_complex(BINARY[name], np.abs(r(3)) + 0.5, c(3))  # a real operand has a real gradient
    check_complex(BINARY[name], c(3), np.abs(r(3)) + 0.5)


@pytest.mark.parametrize("name", MATRIX)
def test_matrix(name):
    check_complex(MATRIX[name], c(3, 3))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("name", ["pinv", "qr", "svdvals", "svd phase reduced"])
def test_rectangles(name, shape):
    check_complex(MATRIX.get(name, reduced), c(*shape))


def test_systems():
    check_complex(linalg.solve, c(3, 3), c(3, 2))
    check_complex(linalg.solve, r(3, 3), c(3))
    check_complex(linalg.triangular_solve, c(3, 3) + 3 * np.eye(3), c(3, 2))
    check_complex(linalg.lstsq, c(4, 2), c(4, 2))
    check_complex(lambda a, b, d: linalg.multi_dot([a, b, d]), c(2, 2), c(2, 3), c(3, 2))


@pytest.mark.parametrize("name", ["multiply", "divide", "matmul"])
def test_second_order(name):
    a, b = c(3), c(3)
    check_complex(lambda z: et.grad(lambda q: et.sum(et.real(BINARY[name](q, q) * et.asarray(b[0]))))(z), a)


def test_creation_and_dtypes():
    assert et.tensor([1 + 2j]).dtype == et.complex64
    assert et.tensor(np.array([1j])).dtype == et.complex128
    assert et.zeros(3, et.complex64).dtype == et.complex64
    assert (et.ones(2) * 1j).dtype == et.complex64
    assert (et.ones(2, et.float64) + 1j).dtype == et.complex128
    assert (et.ones(2, et.complex64) * et.ones(2, et.float64)).dtype == et.complex128
    assert (et.ones(2, et.complex64) * 2.0).tolist() == [2 + 0j, 2 + 0j]
    assert (
        (et.ones(2) * et.ones(2, et.complex64)).dtype
        == (et.ones(2, et.complex64) * et.ones(2)).dtype
        == et.complex64
    )
    assert complex(et.tensor(1 + 2j)) == 1 + 2j


@pytest.mark.parametrize(
    "function", [et.relu, et.softmax, et.maximum, et.sort, et.less, et.floor, et.layer_norm, et.sigmoid]
)
def test_functions_without_a_complex_meaning_refuse(function):
    x = et.ones((2, 3), et.complex64)
    name = function.__name__
    with pytest.raises(TypeError, match=rf"\[{name}\] .* complex"):
        function(x, x) if name in ("maximum", "less") else function(
            x, 3
        ) if name == "layer_norm" else function(x)
