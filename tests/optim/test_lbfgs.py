"""L-BFGS against SciPy's minima and against its recursion written down once more; states; what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import extensor as et
from extensor import nn, optim
from extensor.optim._line_search import Point, strong_wolfe


def closure_of(optimizer: optim.Optimizer, loss: Any) -> Any:
    def closure() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    return closure


def rosenbrock(w: Any) -> Any:
    return (100.0 * (w[1:] - w[:-1] ** 2) ** 2 + (1.0 - w[:-1]) ** 2).sum()


@pytest.mark.parametrize("size", [2, 5, 10])
def test_rosenbrock(size: int) -> None:
    w = nn.Parameter(np.linspace(-1, 1, size))
    optimizer = optim.LBFGS(
        [w], line_search_fn="strong_wolfe", max_iter=100, tolerance_grad=1e-10, tolerance_change=1e-14
    )
    first = optimizer.step(closure_of(optimizer, lambda: rosenbrock(w)))
    assert first.item() == pytest.approx(rosenbrock(et.tensor(np.linspace(-1, 1, size))).item())
    optimizer.step(closure_of(optimizer, lambda: rosenbrock(w)))
    found = scipy.optimize.minimize(
        scipy.optimize.rosen, np.linspace(-1, 1, size), jac=scipy.optimize.rosen_der, method="BFGS", options={"gtol": 1e-10}
    )  # fmt: skip
    np.testing.assert_allclose(w.numpy(), found.x, atol=1e-6)


def by_hand(gradient: Any, x: np.ndarray, lr: float, iterations: int, memory: int) -> np.ndarray:
    """Steps of a fixed length: H is built up as a matrix from the remembered pairs."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    g, t = gradient(x), lr * min(1.0, 1 / np.abs(gradient(x)).sum())
    for _ in range(iterations):
        h = np.eye(x.size) * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1.0)
        for s, y in pairs:
            v = np.eye(x.size) - np.outer(y, s) / (s @ y)
            h = v.T @ h @ v + np.outer(s, s) / (s @ y)
        step = -t * h @ g
        x, before = x + step, g
        g, t = gradient(x), lr
        pairs = [*pairs, (step, g - before)][-memory:]
    return x


@pytest.mark.parametrize("memory", [1, 3, 100])
@pytest.mark.parametrize("calls", [1, 4])
def test_fixed_steps_are_the_recursion(memory: int, calls: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 4))
    q, b = a.T @ a / 6 + np.eye(4), rng.normal(size=4)
    start = rng.normal(size=4)
    first, second = nn.Parameter(start[:1].reshape(1, 1)), nn.Parameter(start[1:])
    optimizer = optim.LBFGS([first, second], lr=0.3, max_iter=12 // calls, max_eval=100, history_size=memory)

    def loss() -> Any:
        x = et.concatenate([first.reshape(-1), second])
        return 0.5 * (x @ et.tensor(q) @ x) - (et.tensor(b) * x).sum()

    for _ in range(calls):
        optimizer.step(closure_of(optimizer, loss))
    want = by_hand(lambda x: q @ x - b, start, 0.3, 12, memory)
    np.testing.assert_allclose(np.r_[first.numpy().ravel(), second.numpy()], want, rtol=1e-9)


def test_saved_and_loaded_goes_on_with_the_same_bits() -> None:
    def make(start: Any) -> tuple[Any, Any]:
        w = nn.Parameter(start)
        return w, optim.LBFGS([w], max_iter=4, line_search_fn="strong_wolfe")

    w, optimizer = make(np.linspace(-1, 1, 4))
    optimizer.step(closure_of(optimizer, lambda: rosenbrock(w)))
    saved = optimizer.state_dict()
    v, again = make(w.numpy())
    again.load_state_dict(saved)
    for _ in range(3):
        optimizer.step(closure_of(optimizer, lambda: rosenbrock(w)))
        again.step(closure_of(again, lambda: rosenbrock(v)))
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    state = again.state_dict()["state"][0]
    assert state["func_evals"] == optimizer.state_dict()["state"][0]["func_evals"]
    json.dumps({k: x for k, x in state.items() if isinstance(x, (int, float))})
    fresh = make(np.zeros(4))[1]
    again.load_state_dict(fresh.state_dict())
    assert again.state_dict()["state"] == {}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_other_dtypes_and_parameters_without_gradient(dtype: str) -> None:
    w, unused = nn.Parameter(et.tensor([4.0, -3.0], dtype)), nn.Parameter([1.0])
    optimizer = optim.LBFGS([w, unused], line_search_fn="strong_wolfe")
    optimizer.step(closure_of(optimizer, lambda: ((w - 1.0) ** 2).sum()))
    np.testing.assert_allclose(w.numpy().astype(np.float64), [1.0, 1.0], atol=0.02)
    assert w.dtype == et.dtypes.as_dtype("test", dtype)
    assert unused.tolist() == [1.0]


def test_at_the_minimum_nothing_moves() -> None:
    w = nn.Parameter([1.0, 1.0])
    optimizer = optim.LBFGS([w])
    optimizer.step(closure_of(optimizer, lambda: ((w - 1.0) ** 2).sum()))
    assert w.tolist() == [1.0, 1.0]


def test_a_step_into_nan_is_taken_back() -> None:
    """Beyond 2 there is no value; the line search stays before it."""
    w = nn.Parameter(np.array([0.0]))
    optimizer = optim.LBFGS([w], lr=50.0, line_search_fn="strong_wolfe")
    loss = optimizer.step(closure_of(optimizer, lambda: (-(2.0 - w).log() - 3.0 * w).sum()))
    assert math.isfinite(loss.item())
    assert w.item() == pytest.approx(5 / 3, abs=1e-4)


@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    ("value", "slope"),
    [
        (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
        (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
        (lambda t: math.cosh(t - 0.2), lambda t: math.sinh(t - 0.2)),
        (lambda t: math.hypot(t - 1, 1e-2), lambda t: (t - 1) / math.hypot(t - 1, 1e-2)),
        (lambda t: 3 * math.hypot(t - 1, 1e-2) + 2 * t, lambda t: 3 * (t - 1) / math.hypot(t - 1, 1e-2) + 2),
        (lambda t: 3 * math.hypot(t - 1, 1e-2) - 2 * t, lambda t: 3 * (t - 1) / math.hypot(t - 1, 1e-2) - 2),
    ],
)
def test_the_line_search_meets_both_conditions(value: Any, slope: Any, first: float) -> None:
    found, tries = strong_wolfe(
        lambda t: Point(t, value(t), None, slope(t)), Point(0, value(0), None, slope(0)), first, 1e-9
    )
    assert found.value <= value(0) + 1e-4 * found.length * slope(0)
    assert abs(found.slope) <= 0.9 * abs(slope(0))
    assert 1 <= tries <= 25


def test_a_first_try_that_will_do_is_taken() -> None:
    found, tries = strong_wolfe(
        lambda t: Point(t, (t - 3) ** 2, None, 2 * (t - 3)), Point(0, 9, None, -6), 2.0, 1e-9
    )
    assert (found.length, tries) == (2.0, 1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: optim.LBFGS([nn.Parameter([1.0])]).step(), TypeError, "step needs a closure"),
        (lambda: optim.LBFGS([{"params": [nn.Parameter([1.0])]}, {"params": [nn.Parameter([1.0])]}]), ValueError, "one group"),
        (lambda: optim.LBFGS([nn.Parameter([1.0])], line_search_fn="x"), ValueError, "line_search_fn"),
        (lambda: optim.LBFGS([nn.Parameter([1.0])], max_iter=0), ValueError, "max_iter"),
        (lambda: optim.LBFGS([nn.Parameter([1.0])]).load_state_dict(3), TypeError, "state_dict must be"),
        (lambda: optim.LBFGS([nn.Parameter([1.0])]).load_state_dict(optim.SGD([nn.Parameter([1.0])]).state_dict()), ValueError, "is of SGD"),
        (lambda: optim.LBFGS([nn.Parameter([1.0])]).load_state_dict({"state": {0: {"n_iter": 1}}, "param_groups": []}), ValueError, "it has no H_diag"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"^\[LBFGS(.load_state_dict)?\] .*{text}"):
        call()
