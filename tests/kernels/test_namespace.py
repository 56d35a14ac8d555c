"""References over an array namespace: the same numbers from JAX's arrays, and every primitive known to tensors."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.devices import jax, wide_types
from extensor.kernels import KERNELS, namespace, reference
from extensor.kernels.dispatch import Kernel
from extensor.kernels.elsewhere import compute
from extensor.testing.calls import Call, floating_arrays, floating_outputs
from extensor.testing.registry import Draw
from extensor.testing.verifier import library_subjects


def collected(monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> dict[str, list[tuple[Any, ...]]]:
    """The kernels by name, each with arguments that ``run`` calls it with."""
    seen: dict[str, list[tuple[Any, ...]]] = {}

    def watch(self: Kernel, *args: Any) -> Any:
        calls = seen.setdefault(self.name, [])
        if len(calls) < 4:
            calls.append(args)
        return on_arrays(self, *args)

    on_arrays = Kernel.on_arrays
    monkeypatch.setattr(Kernel, "on_arrays", watch)
    with et.graph.run_bodies():
        run()
    monkeypatch.undo()
    return seen


def samples() -> None:
    """The functions and their gradients at the samples of ``verify``, in float32."""
    for subject in library_subjects():
        for case in list(subject.pair.cases(Draw([1])))[:4]:
            arrays = [
                a.astype(np.complex64 if a.dtype.kind == "c" else np.float32) for a in floating_arrays(case)
            ]
            call = Call(subject.op, case, arrays)
            output = call.forward()
            call.gradients(output, [np.ones(y.shape) for y in floating_outputs(output)])


def others() -> None:
    """What has no gradient, and the rules of optimisers."""
    x, y = et.random.normal(0, (3, 4)), et.random.normal(1, (3, 4))
    for reduce in (et.all, et.any):
        reduce(x > 0, 1)
    for question in (et.isfinite, et.isinf, et.isnan, et.count_nonzero, et.argsort):
        question(x)
    et.argmax(x, 0)
    et.argmin(x, 0)
    et.logical_not(x > 0)
    et.logical_or(x > 0, y > 0)
    et.logical_xor(x > 0, y > 0)
    et.nextafter(x, y)
    et.isclose(x, y)
    et.searchsorted(et.sort(x.reshape(-1)), y)
    et.histogram(x, 4)
    whole = et.asarray([2, 0, 5])
    et.isin(whole, whole[:2])
    et.bitwise_invert(whole)
    for bits in (
        et.bitwise_and,
        et.bitwise_or,
        et.bitwise_xor,
        et.bitwise_left_shift,
        et.bitwise_right_shift,
    ):
        bits(whole, 1)
    et.clip_grad_norm([x, y], 1.0)
    et.clip_grad_value([x, y], 0.5)
    for make in OPTIMIZERS:
        parameter = et.nn.Parameter(x.numpy())
        optimizer = make([parameter], lr=0.1)
        for _ in range(2):
            parameter.grad = y
            optimizer.step()


OPTIMIZERS: list[Any] = [
    et.optim.SGD, et.optim.Adam, et.optim.RMSprop, et.optim.Adagrad, et.optim.Lion, et.optim.LAMB, et.optim.NAdam,
    et.optim.RAdam, et.optim.Adadelta, et.optim.Adafactor, et.optim.Muon,
]  # fmt: skip


def by_hand() -> dict[str, list[tuple[Any, ...]]]:
    """Kernels that the calls above do not reach, with arguments."""
    draw = np.random.default_rng(0).normal
    a, b, image = (draw(size=shape).astype(np.float32) for shape in ((3, 4), (3, 4), (1, 2, 4, 6)))
    return {
        "ema_step": [([a], [b], 0.9)],
        "imag_backward": [(a,)],
        "index_last": [((3, 4), (np.array([2, 0, 2]),))],
        "region_max_indices": [(image, (((0, 1), (2, 4), 1), ((0, 3), (6, 6), 2)))],
    }


# Questions about elements whose answers are Python values: a device asks them by flags of its own (compile/device_program.py).
QUESTIONS = {"first_nan", "first_outside", "first_unlike", "unscale_gradients"}
# What takes no arrays is made here, and what draws random numbers draws them here.
# What has as many elements as it happens to find cannot be traced; a program refuses it by name.
UNKNOWN_SHAPES = {"bincount", "nonzero", "unique"}
MADE_HERE = {"arange", "empty", "full", "linspace", "pcg64_at_least", "round_stochastically"}


def arrays_of(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    return [array for part in value for array in arrays_of(part)] if type(value) in (list, tuple) else []


def filled(value: Any, arrays: Iterator[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return next(arrays)
    return type(value)(filled(v, arrays) for v in value) if type(value) in (list, tuple) else value


def assert_alike(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            assert_alike(one, other)
    elif wanted is None:
        assert found is None
    else:
        wanted = np.asarray(wanted)
        assert (found.shape, np.dtype(found.dtype)) == (wanted.shape, wanted.dtype)
        scale = max(1.0, float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-5, atol=2e-6 * scale)


def check(kernel: Kernel, args: tuple[Any, ...]) -> None:
    """Traced by JAX, the kernel computes what its reference computes on NumPy's arrays, in the same dtypes."""
    with np.errstate(all="ignore"):
        expected = kernel.reference(*args)
    with wide_types():
        found = jax().jit(lambda arrays: compute(kernel, filled(list(args), iter(arrays))))(
            arrays_of(list(args))
        )
    assert_alike(found, expected)


def test_every_reference_runs_on_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="needs the extra jax")
    for module in pkgutil.iter_modules(reference.__path__):  # some are only loaded when they are needed
        importlib.import_module(f"{reference.__name__}.{module.name}")
    calls = by_hand() | collected(monkeypatch, others) | collected(monkeypatch, samples)
    elsewhere = QUESTIONS | MADE_HERE | UNKNOWN_SHAPES
    assert set(KERNELS.complete()) == set(calls) | elsewhere
    unable = {}
    for name in sorted(set(calls) - elsewhere):
        try:
            for args in calls[name][:2]:
                check(KERNELS[name], args)
        except Exception as error:
            unable[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    assert not unable


@pytest.mark.parametrize("hidden", [np.nan, np.inf, -np.inf])
def test_attention_on_jax_hides_what_is_not_seen(hidden: float) -> None:
    """The usual product where all is finite, decided when the program runs; else the one in which a weight of 0 hides."""
    pytest.importorskip("jax", reason="needs the extra jax")
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 4, 3)).astype(np.float32) for _ in range(3))
    check(KERNELS["scaled_dot_product_attention"], (q, k, v, None, True, 0.5))
    v[:, 2] = hidden  # seen by the last two of four queries
    check(KERNELS["scaled_dot_product_attention"], (q, k, v, None, True, 0.5))


def test_tensors_have_every_primitive() -> None:
    provided = vars(namespace.namespace_of(et.ones(1)))
    assert namespace.PRIMITIVES
    assert not namespace.PRIMITIVES - set(provided)


@pytest.mark.parametrize("dtype", [et.float16, et.float32, et.float64])
def test_a_recorded_gradient_is_that_of_the_kernel(dtype: Any) -> None:
    x = et.tensor([-2.0, -0.5, 0.0, 0.5, 3.0], dtype)
    g = et.tensor([1.0, -2.0, 0.5, 3.0, 0.25], dtype)
    for name in ("relu", "elu", "gelu", "silu", "mish", "hard_swish", "square", "atan", "erf", "sinh"):
        backward = getattr(et, f"{name}_backward")
        recorded = backward(g, et.tensor(x.numpy(), dtype, requires_grad=True))
        assert recorded.dtype == dtype
        plain = backward(g, x).numpy().astype(np.float64)
        limit = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-12}[np.dtype(dtype).name]
        np.testing.assert_allclose(recorded.numpy().astype(np.float64), plain, rtol=limit, atol=limit)
