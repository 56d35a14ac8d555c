"""Every optimiser over 50 steps against its rule, written down once more in NumPy; functions and classes agree."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import optim
from extensor.optim import functional

SHAPES = [(5, 3), (7,), ()]
STEPS = 50


def options(**choices: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def sgd(p, g, s, t, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        s["v"] = momentum * s["v"] + (1 - dampening) * g if t > 1 else g
        g = g + momentum * s["v"] if nesterov else s["v"]
    return p - lr * g


def adam(
    p, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, decoupled_weight_decay=False
):  # fmt: skip
    g = -g if maximize else g
    if decoupled_weight_decay:
        p = p - lr * weight_decay * p
    else:
        g = g + weight_decay * p
    b1, b2 = betas
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["s"] = b2 * s.get("s", 0) + (1 - b2) * g**2
    s["x"] = np.maximum(s.get("x", 0), s["s"])
    square = s["x"] if amsgrad else s["s"]
    return p - lr * (s["m"] / (1 - b1**t)) / (np.sqrt(square / (1 - b2**t)) + eps)


def adamw(p, g, s, t, weight_decay=1e-2, **rest):
    return adam(p, g, s, t, weight_decay=weight_decay, decoupled_weight_decay=True, **rest)


def rmsprop(
    p, g, s, t, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False
):
    g = (-g if maximize else g) + weight_decay * p
    s["s"] = alpha * s.get("s", 0) + (1 - alpha) * g**2
    s["g"] = alpha * s.get("g", 0) + (1 - alpha) * g
    step = g / (np.sqrt(s["s"] - s["g"] ** 2 if centered else s["s"]) + eps)
    if momentum:
        step = s["v"] = momentum * s.get("v", 0) + step
    return p - lr * step


def adagrad(
    p, g, s, t, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, maximize=False
):  # fmt: skip
    g = (-g if maximize else g) + weight_decay * p
    s["s"] = s.get("s", initial_accumulator_value) + g**2
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["s"]) + eps)


def lion(p, g, s, t, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    g = -g if maximize else g
    m = s.get("m", np.zeros_like(p))
    s["m"] = betas[1] * m + (1 - betas[1]) * g
    return p - lr * (np.sign(betas[0] * m + (1 - betas[0]) * g) + weight_decay * p)


def lamb(p, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=1e-2, maximize=False):
    g = -g if maximize else g
    b1, b2 = betas
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["s"] = b2 * s.get("s", 0) + (1 - b2) * g**2
    r = s["m"] / (1 - b1**t) / (np.sqrt(s["s"] / (1 - b2**t)) + eps) + weight_decay * p
    return p - lr * np.sqrt(np.sum(p**2)) / np.sqrt(np.sum(r**2)) * r


BOTH = [False, True]
TABLE = {
    "SGD": (sgd, functional.sgd, [
        o for o in options(lr=[0.1], momentum=[0.0, 0.9], dampening=[0.0, 0.3], weight_decay=[0.0, 0.01], nesterov=BOTH, maximize=BOTH)
        if not o["nesterov"] or (o["momentum"] and not o["dampening"])
    ]),
    "Adam": (adam, functional.adam, options(lr=[0.01], betas=[(0.9, 0.999), (0.5, 0.9)], eps=[1e-8, 1e-3], weight_decay=[0.0, 0.1], amsgrad=BOTH, maximize=BOTH)),
    "AdamW": (adamw, functional.adamw, options(lr=[0.01], weight_decay=[0.0, 0.01, 0.3], amsgrad=BOTH, maximize=BOTH)),
    "RMSprop": (rmsprop, functional.rmsprop, options(alpha=[0.99, 0.5], weight_decay=[0.0, 0.1], momentum=[0.0, 0.9], centered=BOTH, maximize=BOTH)),
    "Adagrad": (adagrad, functional.adagrad, options(lr=[0.1], lr_decay=[0.0, 0.1], weight_decay=[0.0, 0.1], initial_accumulator_value=[0.0, 0.5], maximize=BOTH)),
    "Lion": (lion, functional.lion, options(lr=[0.01], betas=[(0.9, 0.99), (0.5, 0.6)], weight_decay=[0.0, 0.1], maximize=BOTH)),
    "LAMB": (lamb, functional.lamb, options(lr=[0.01], weight_decay=[0.0, 0.1], maximize=BOTH)),
}  # fmt: skip
ROWS = [(name, chosen) for name, (_, _, table) in TABLE.items() for chosen in [{}, *table]]


def data(seed: int = 0) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    rng = np.random.default_rng(seed)
    start = [np.asarray(rng.normal(size=s)) for s in SHAPES]
    return start, [
        [np.asarray(rng.normal(size=s) * 10 ** rng.uniform(-3, 2)) for s in SHAPES] for _ in range(STEPS)
    ]


@pytest.mark.parametrize(("name", "chosen"), ROWS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(ROWS)])
def test_rule(name: str, chosen: dict[str, Any]) -> None:
    rule, function, _ = TABLE[name]
    start, gradients = data()
    params = [et.nn.Parameter(p) for p in start]
    optimizer = getattr(optim, name)(params, **chosen)
    single, state = et.tensor(start[0]), None
    states: list[dict[str, Any]] = [{} for _ in start]
    steps = [0] * len(start)
    expected = list(start)
    for step, grads in enumerate(gradients):
        for i, g in enumerate(grads):
            rests = i == 1 and step % 7 == 3  # no gradient: the parameter and its count of steps stay
            params[i].grad = None if rests else et.tensor(g)
            if not rests:
                steps[i] += 1
                expected[i] = rule(expected[i], g, states[i], steps[i], **chosen)
        optimizer.step()
        single, state = function(single, et.tensor(grads[0]), state, **chosen)
    for p, e in zip(params, expected):
        np.testing.assert_allclose(p.numpy(), e, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(single.numpy(), params[0].numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", TABLE)
def test_one_rounding_per_step(name: str, dtype: str) -> None:
    """A half-precision parameter moves as the float32 computation says, rounded once; its state is float32."""
    _, function, _ = TABLE[name]
    rng = np.random.default_rng(1)
    p, g = (et.tensor(rng.normal(size=33), dtype) for _ in range(2))
    state = None
    for _ in range(3):
        wide, _ = function(p.astype("float32"), g.astype("float32"), state, lr=0.01)
        p, state = function(p, g, state, lr=0.01)
        assert p.dtype == et.dtypes.as_dtype("test", dtype)
        np.testing.assert_array_equal(p.numpy(), wide.astype(dtype).numpy())
        assert {t.dtype for t in state.values() if isinstance(t, et.ExTensor)} <= {et.float32}
    assert not np.array_equal(p.numpy(), p.numpy() * 0)


@pytest.mark.parametrize("name", TABLE)
def test_pure(name: str) -> None:
    _, function, _ = TABLE[name]
    p, g = et.tensor([1.0, -2.0], requires_grad=True), et.tensor([0.5, 0.25])
    _, state = function(p, g, None, lr=0.1)
    before = {k: v.tolist() if isinstance(v, et.ExTensor) else v for k, v in state.items()}
    first, second = function(p, g, state, lr=0.1), function(p, g, state, lr=0.1)
    assert p.tolist() == [1.0, -2.0]
    assert g.tolist() == [0.5, 0.25]
    assert {k: v.tolist() if isinstance(v, et.ExTensor) else v for k, v in state.items()} == before
    assert first[0].tolist() == second[0].tolist() != [1.0, -2.0]
    assert first[0].requires_grad
    assert first[0].is_leaf


def test_lamb_where_a_norm_is_zero() -> None:
    """A parameter of zeros must be able to leave them: the trust ratio is 1."""
    new, _ = functional.lamb(et.zeros(2), et.tensor([1.0, -1.0]), None, lr=0.5)
    np.testing.assert_allclose(new.numpy(), [-0.5, 0.5], rtol=1e-5)
    still, _ = functional.lamb(et.ones(2), et.zeros(2), None, weight_decay=0.0)
    assert still.tolist() == [1.0, 1.0]


X = np.ones(3)
REFUSED = [
    ("sgd", {"lr": -1.0}, ValueError, "lr"), ("sgd", {"lr": float("nan")}, ValueError, "lr"), ("sgd", {"lr": float("inf")}, ValueError, "lr"),
    ("sgd", {"lr": "fast"}, TypeError, "lr"), ("sgd", {"momentum": -0.1}, ValueError, "momentum"), ("sgd", {"nesterov": True}, ValueError, "nesterov"),
    ("sgd", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, ValueError, "nesterov"), ("sgd", {"maximize": 1}, TypeError, "maximize"),
    ("adam", {"betas": (0.9, 1.0)}, ValueError, r"betas\[1\]"), ("adam", {"betas": (-0.1, 0.9)}, ValueError, r"betas\[0\]"), ("adam", {"betas": 0.9}, TypeError, "betas"),
    ("adam", {"eps": -1e-8}, ValueError, "eps"), ("adamw", {"weight_decay": float("nan")}, ValueError, "weight_decay"), ("rmsprop", {"alpha": -1}, ValueError, "alpha"),
    ("adagrad", {"lr_decay": -1}, ValueError, "lr_decay"), ("lion", {"betas": (0.9,)}, TypeError, "betas"), ("lamb", {"eps": "x"}, TypeError, "eps"),
    ("adam", {"grad": np.ones(2)}, ValueError, "grad has shape"), ("adam", {"grad": np.ones(3, int)}, TypeError, "grad"), ("adam", {"param": np.ones(3, int)}, TypeError, "param"),
    ("adam", {"state": 3}, TypeError, "state"), ("adam", {"state": {"step": 1}}, ValueError, "exp_avg"), ("adam", {"state": {"step": 1, "exp_avg": np.ones(2)}}, ValueError, "exp_avg"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spoiled", "error", "text"), REFUSED)
def test_refused(name: str, spoiled: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"^\[{name}\].*{text}"):
        getattr(functional, name)(**({"param": X, "grad": X, "state": None} | spoiled))
