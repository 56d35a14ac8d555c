"""References over an array namespace: the same numbers from JAX's arrays, and every primitive known to tensors."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.kernels import KERNELS, namespace
from extensor.kernels.dispatch import Kernel
from extensor.testing.calls import Call, floating_arrays, floating_outputs
from extensor.testing.registry import Draw
from extensor.testing.verifier import library_subjects

FAMILY = ("activation", "arithmetic", "elementwise", "exponential", "trigonometric", "softmax", "selection",
          "loss_regression", "loss_classification", "loss_metric")  # fmt: skip


def reference_of(name: str) -> Any:
    return KERNELS[name].reference


def names_of(module: str) -> list[str]:
    return importlib.import_module(f"extensor.kernels.reference.{module}").__all__


def collected(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Any, ...]]]:
    """The kernels by name, each with arguments that the samples of the functions call it with, in float32."""
    seen: dict[str, list[tuple[Any, ...]]] = {}

    def watch(self: Kernel, *args: Any) -> Any:
        calls = seen.setdefault(self.name, [])
        if len(calls) < 4:
            calls.append(args)
        return on_arrays(self, *args)

    on_arrays = Kernel.on_arrays
    monkeypatch.setattr(Kernel, "on_arrays", watch)
    with et.graph.run_bodies():
        for subject in library_subjects():
            for case in list(subject.pair.cases(Draw([1])))[:4]:
                arrays = [
                    a.astype(np.complex64 if a.dtype.kind == "c" else np.float32)
                    for a in floating_arrays(case)
                ]
                call = Call(subject.op, case, arrays)
                output = call.forward()
                call.gradients(output, [np.ones(y.shape) for y in floating_outputs(output)])
    monkeypatch.undo()
    return seen


def converted(value: Any, convert: Any) -> Any:
    if isinstance(value, np.ndarray):
        return convert(value)
    return type(value)(converted(v, convert) for v in value) if type(value) in (list, tuple) else value


def check(name: str, args: tuple[Any, ...], jnp: Any) -> None:
    """The reference computes on JAX's arrays what it computes on NumPy's, and returns JAX's."""
    with np.errstate(all="ignore"):
        expected = reference_of(name)(*args)
    found = reference_of(name)(*converted(args, jnp.asarray))
    if not isinstance(expected, (tuple, list)):
        expected, found = (expected,), (found,)
    assert len(found) == len(expected)
    for actual, wanted in zip(found, expected):
        if wanted is None:
            assert actual is None
            continue
        assert isinstance(actual, jnp.ndarray), type(actual)
        assert actual.shape == np.shape(wanted)
        scale = max(1.0, float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))))
        np.testing.assert_allclose(np.asarray(actual), wanted, rtol=2e-5, atol=2e-6 * scale)


def test_the_elementwise_family_runs_on_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    jnp = pytest.importorskip("jax.numpy")
    calls = collected(monkeypatch)
    wanted = [name for module in FAMILY for name in names_of(module)]
    assert not set(wanted) - set(calls), "no sample calls these kernels"
    for name in wanted:
        for args in calls[name]:
            check(name, args, jnp)


def test_most_references_run_on_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    jnp = pytest.importorskip("jax.numpy")
    unable = {}
    calls = collected(monkeypatch)
    for name in calls:
        try:
            for args in calls[name]:
                check(name, args, jnp)
        except Exception as error:
            unable[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    print(f"{len(calls) - len(unable)} of {len(calls)} references run on JAX; not: {sorted(unable)}")
    assert len(calls) - len(unable) >= 174


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
