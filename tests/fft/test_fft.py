"""Fourier transforms against NumPy and SciPy, in every length, axis and scale."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import extensor as et

RNG = np.random.default_rng(11)
NORMS = ("backward", "ortho", "forward")


def c(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 3, 6, 7])
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name, axis, n, norm):
    x = RNG.normal(size=(4, 5)) if name in ("rfft", "ihfft") else c(4, 5)
    expected = getattr(scipy.fft, name)(x, n, axis, norm)
    found = getattr(et.fft, name)(et.asarray(x), n, axis, norm)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "axes"), [(None, None), ((3, 6), None), (None, (0, 2)), ((4,), (1,)), ((2, 3, 4), (2, 0, 1))]
)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name, s, axes, norm):
    x = RNG.normal(size=(3, 4, 5)) if name == "rfftn" else c(3, 4, 5)
    expected = getattr(scipy.fft, name)(x, s, axes, norm)
    np.testing.assert_allclose(
        getattr(et.fft, name)(et.asarray(x), s, axes, norm).numpy(), expected, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("name", ["fft2", "ifft2"])
def test_two_axes(name):
    x = c(2, 3, 4)
    np.testing.assert_allclose(
        getattr(et.fft, name)(et.asarray(x)).numpy(), getattr(np.fft, name)(x), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("dtype", "wide"), [(et.float32, et.complex64), (et.float64, et.complex128), (et.float16, et.complex64)]
)
def test_dtypes(dtype, wide):
    x = et.ones(4, dtype)
    assert et.fft.fft(x).dtype == et.fft.rfft(x).dtype == wide
    y = et.fft.irfft(et.fft.rfft(x))
    assert y.dtype == (et.float32 if wide == et.complex64 else et.float64)
    leaf = et.tensor(x, requires_grad=True)
    et.sum(et.abs(et.fft.rfft(leaf))).backward()
    assert leaf.grad.dtype == dtype


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    np.testing.assert_allclose(et.fft.fftfreq(n, 0.1, et.float64).numpy(), np.fft.fftfreq(n, 0.1))
    np.testing.assert_allclose(et.fft.rfftfreq(n, 0.1, et.float64).numpy(), np.fft.rfftfreq(n, 0.1))
    x = RNG.normal(size=(n, 3))
    for axes in (None, 0, (0, 1)):
        for name in ("fftshift", "ifftshift"):
            assert np.array_equal(
                getattr(et.fft, name)(et.asarray(x), axes).numpy(), getattr(np.fft, name)(x, axes)
            )


def test_energy_is_kept():
    """Parseval: with norm="ortho" the gradient of the energy of the spectrum is that of the energy of the signal."""
    x = et.tensor(RNG.normal(size=9), requires_grad=True)
    et.sum(et.square(et.abs(et.fft.fft(x, norm="ortho")))).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: et.fft.rfft(et.ones(3, et.complex64)), TypeError, r"\[rfft\] x must be real"),
        (lambda: et.fft.fft(et.ones(3), 0), ValueError, r"\[fft\] n: a transform needs at least one point"),
        (lambda: et.fft.fft(et.ones(3), norm="half"), ValueError, r"\[fft\] norm must be"),
        (lambda: et.fft.fftn(et.ones((2, 2)), axes=(0, 0)), ValueError, r"\[fftn\] axes"),
        (lambda: et.fft.fftn(et.ones((2, 2)), (1, 2, 3)), ValueError, r"\[fftn\] s"),
        (lambda: et.fft.fft(et.ones(3, et.int64)), TypeError, r"\[fft\] x must have a floating dtype"),
        (lambda: et.fft.irfft(et.ones(1)), ValueError, r"\[irfft\] n"),
        (lambda: et.fft.fftfreq(0), ValueError, r"\[fftfreq\] n"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
