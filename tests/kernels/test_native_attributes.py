"""Native kernels take checked attributes only: what the reference does not document is NotImplemented, never a guess."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernel_calls import arguments

from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif(not NATIVE, reason="the native module is not built")

NAMES = sorted(NATIVE)
NUMBERS = {"ddof"}  # an int or a float
ANY_SIGN = {"shifts", "low", "high", "a", "b", "values"}  # ints that may be negative, or large
ANY_DTYPE = {"flip", "permute", "reshape", "swapaxes", "transpose"}  # views


class Nothing:
    """Of no use to any kernel."""


def wrong_values(name: str, value: Any) -> Iterator[Any]:
    """Values that are not of the kind that ``value`` is."""
    yield from (Nothing(), "nothing like it", b"mean", 2.5j, {}, Ellipsis, np.datetime64("2020-01-01"))
    if value is None:
        yield from (1.5, True)
    elif isinstance(value, bool):
        yield from (0, 1, None, np.True_, 1.0, (True,))
    elif isinstance(value, float) or name in NUMBERS:
        yield from (True, np.float64(0.5), np.float32(0.5), np.int64(1), (), (0.5,), [0.5])
    elif isinstance(value, int):
        yield from (2**70, -(2**70), True, 1.0, np.int64(value), (value,), [value])
        if name not in ANY_SIGN:
            yield from (-1, -2, 2**40)
    elif isinstance(value, tuple) and isinstance(value[0], bool):
        yield from (
            None,
            True,
            list(value),
            value[1:],
            (*value, True),
            tuple(map(int, value)),
            (None,) * len(value),
        )
    elif isinstance(value, tuple) and isinstance(value[0], int):
        yield from (
            None,
            value[0],
            list(value),
            tuple(map(float, value)),
            tuple(map(np.int64, value)),
            (2**70,) * len(value),
        )
        yield from ((None,) * len(value), tuple(map(str, value)), (True,) * len(value), ((1,),) * len(value))
        if name not in ANY_SIGN:
            yield from ((-1,) * len(value), (-(2**70),) * len(value))
    elif isinstance(value, tuple) and isinstance(value[0], tuple):
        yield from (
            None,
            1,
            (1, 1),
            value[0],
            list(value),
            tuple(map(list, value)),
            (*value, (0, 0)),
            value[1:],
        )
        if name not in ANY_SIGN:
            yield ((-1, -1),) * len(value)
    elif isinstance(value, tuple):
        yield from (None, 0, value[0], list(value))
    elif isinstance(value, str):
        yield from (None, "", value.upper(), 0)
    elif isinstance(value, np.dtype):
        yield from (None, value.name, value.type, value.newbyteorder())
    elif isinstance(value, list):
        yield from (
            None,
            0,
            0.0,
            value[0],
            tuple(value),
            [[0, 1], [0, 0]],
            [[0, 0]],
            [["a", "a"]] * 2,
            [None, None],
        )


def attributes(name: str) -> Iterator[tuple[int, str, Any]]:
    for i, (parameter, value) in enumerate(
        zip(inspect.signature(KERNELS[name].reference).parameters, arguments(name))
    ):
        if not isinstance(value, np.ndarray) and not (type(value) is list and not isinstance(value[0], list)):
            yield i, parameter, value


def test_every_native_kernel_has_a_reference() -> None:
    assert set(NATIVE) <= set(KERNELS.complete())


@pytest.mark.parametrize("name", NAMES)
def test_wrong_attributes_are_not_covered(name: str) -> None:
    args = arguments(name)
    for i, parameter, value in attributes(name):
        for wrong in wrong_values(parameter, value):
            found = NATIVE[name](*args[:i], wrong, *args[i + 1 :])
            assert found is NotImplemented, (parameter, wrong)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arrays_are_not_covered(name: str) -> None:
    args = arguments(name)
    for i, value in enumerate(args):
        if isinstance(value, np.ndarray):
            others = () if name in ANY_DTYPE else (value.astype(object), value.astype("c16"))
            for wrong in (Nothing(), "nothing like it", [value], (value, value), *others):
                found = NATIVE[name](*args[:i], wrong, *args[i + 1 :])
                assert found is NotImplemented, (i, type(wrong))


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_number_of_arguments_is_not_covered(name: str) -> None:
    args = arguments(name)
    for given in ([], args[:-1], args[:1], [*args, None], [*args, *args], [None] * 40):
        if len(given) != len(args):
            assert NATIVE[name](*given) is NotImplemented


@pytest.mark.parametrize("name", NAMES)
def test_the_calls_are_those_of_the_reference(name: str) -> None:
    """The calls of these tests mean the same to both."""
    args = arguments(name)
    found, expected = NATIVE[name](*args), KERNELS[name].reference(*args)
    for a, b in zip(flat(found), flat(expected), strict=True):
        assert (a is None) == (b is None)
        if isinstance(b, (bool, float)):
            assert a == pytest.approx(b, rel=1e-13)  # a norm, summed in another order in float64
        elif a is not None:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if name in ("eigh", "svd"):  # vectors up to their sign
                a, b = np.abs(a), np.abs(b)
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def flat(value: Any) -> list[Any]:
    return [w for v in value for w in flat(v)] if isinstance(value, (list, tuple)) else [value]
