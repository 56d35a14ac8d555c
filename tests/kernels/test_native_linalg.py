"""Small matrices natively: as accurate as LAPACK, and LAPACK's where they cannot be handled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.kernels import KERNELS, NATIVE
from extensor.kernels.reference import linalg as _linalg  # noqa: F401  (loads later in the package)

pytestmark = pytest.mark.skipif("inv" not in NATIVE, reason="the native core is absent")
SHAPES = [(1, 1), (2, 2), (3, 3), (7, 7), (32, 32), (5, 3, 3), (2, 3, 4, 4), (700, 3, 3), (100, 9, 9)]


def _arguments(name: str, shape: tuple[int, ...], dtype: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(len(shape) + shape[-1])
    x = (rng.standard_normal(shape) + 2 * np.eye(shape[-1])).astype(dtype)
    sides = rng.standard_normal((*shape[:-1], 3)).astype(dtype)
    if name == "cholesky":
        return (x @ np.swapaxes(x, -1, -2),)
    return (x, sides) if "solve" in name else (x,)


OPTIONS: dict[str, list[tuple[Any, ...]]] = {
    "inv": [()], "det": [()], "solve": [()], "cholesky": [(False,), (True,)],
    "triangular_solve": [(False, False), (True, False), (False, True), (True, True)],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPTIONS)
def test_as_lapack(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        for options in OPTIONS[name]:
            arguments = _arguments(name, shape, dtype)
            found = NATIVE[name](*arguments, *options)
            assert found is not NotImplemented
            # in float64 by LAPACK: the native one must be as near to it as the dtype allows
            exact = KERNELS[name].reference(*(a.astype(np.float64) for a in arguments), *options)
            assert found.dtype == dtype
            assert found.shape == exact.shape
            condition = np.linalg.cond(arguments[0].astype(np.float64)).max()
            error = np.abs(found - exact).max() / max(np.abs(exact).max(), 1e-30)
            assert error < 20 * shape[-1] * condition * np.finfo(dtype).eps


def test_what_is_not_covered() -> None:
    eye = np.eye(3)
    for name, arguments in {
        "inv": (np.zeros((3, 3)),), "solve": (np.zeros((3, 3)), eye), "cholesky": (-eye, False),
        "triangular_solve": (np.zeros((3, 3)), eye, False, False),
    }.items():  # fmt: skip
        assert NATIVE[name](*arguments) is NotImplemented  # LAPACK says what is wrong
    assert NATIVE["det"](np.zeros((2, 3, 3))).tolist() == [0, 0]
    for x in (np.full((3, 3), np.nan), np.eye(33), np.eye(3, dtype=complex), np.eye(3, dtype=int), np.zeros((0, 3, 3)), np.zeros((2, 0, 0))):  # fmt: skip
        assert NATIVE["inv"](x) is NotImplemented
    assert NATIVE["inv"](eye[::-1]).tolist() == eye[::-1].tolist()  # any layout
    assert NATIVE["solve"](eye, np.ones((3, 2), np.float32)) is NotImplemented
    assert NATIVE["solve"](np.stack([eye] * 2), np.ones((3, 2))) is NotImplemented


def test_errors_stay() -> None:
    singular = et.tensor([[1.0, 2.0], [2.0, 4.0]])
    for call in (et.linalg.inv, lambda x: et.linalg.solve(x, et.ones(2)), lambda x: et.linalg.cholesky(-x)):
        for _ in range(3):
            with pytest.raises(et.linalg.LinAlgError):
                call(singular)
    assert et.linalg.det(singular).item() == 0
    assert np.isnan(et.linalg.cholesky(et.full((2, 2), float("nan"))).numpy()).all()


def test_one_bad_matrix_of_many() -> None:
    many = np.stack([np.eye(3)] * 500)
    many[321] = 0
    with pytest.raises(et.linalg.LinAlgError, match=r"\[inv\]"):
        et.linalg.inv(et.tensor(many))
    assert et.linalg.det(et.tensor(many)).numpy().sum() == 499
