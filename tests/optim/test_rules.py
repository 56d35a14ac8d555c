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


def nadam(
    p, g, s, t, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3, decoupled_weight_decay=False, maximize=False
):  # fmt: skip
    g = -g if maximize else g
    p, g = (p * (1 - lr * weight_decay), g) if decoupled_weight_decay else (p, g + weight_decay * p)
    b1, b2 = betas
    mu, after = (b1 * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
    s["M"] = s.get("M", 1.0) * mu
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["s"] = b2 * s.get("s", 0) + (1 - b2) * g**2
    root = np.sqrt(s["s"] / (1 - b2**t)) + eps
    return p - lr * (1 - mu) / (1 - s["M"]) * g / root - lr * after / (1 - s["M"] * after) * s["m"] / root


def radam(
    p, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled_weight_decay=False, maximize=False
):  # fmt: skip
    g = -g if maximize else g
    p, g = (p * (1 - lr * weight_decay), g) if decoupled_weight_decay else (p, g + weight_decay * p)
    b1, b2 = betas
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["s"] = b2 * s.get("s", 0) + (1 - b2) * g**2
    n = 2 / (1 - b2) - 1
    k = n - 2 * t * b2**t / (1 - b2**t)
    m = s["m"] / (1 - b1**t)
    if k <= 5:
        return p - lr * m
    r = np.sqrt((k - 4) * (k - 2) * n / ((n - 4) * (n - 2) * k))
    return p - lr * m * r * np.sqrt(1 - b2**t) / (np.sqrt(s["s"]) + eps)


def adadelta(p, g, s, t, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    s["s"] = rho * s.get("s", 0) + (1 - rho) * g**2
    u = g * np.sqrt(s.get("a", 0) + eps) / np.sqrt(s["s"] + eps)
    s["a"] = rho * s.get("a", 0) + (1 - rho) * u**2
    return p - lr * u


def adafactor(
    p, g, s, t, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, maximize=False
):  # fmt: skip
    g = -g if maximize else g
    tiny = np.finfo(p.dtype).eps if eps[0] is None else eps[0]
    kept = 1 - t**beta2_decay
    length = max(eps[1], np.sqrt(np.mean(p**2))) * min(lr, 1 / np.sqrt(t))
    p = p - lr * weight_decay * p
    if p.ndim == 2:
        s["r"] = kept * s.get("r", 0) + (1 - kept) * (g**2).mean(1)
        s["c"] = kept * s.get("c", 0) + (1 - kept) * (g**2).mean(0)
        v = np.outer(s["r"], s["c"]) / max(s["r"].mean(), tiny)
    else:
        v = s["v"] = kept * s.get("v", 0) + (1 - kept) * g**2
    u = g / np.sqrt(np.maximum(v, tiny**2))
    return p - length * u / max(1, np.sqrt(np.mean(u**2)) / d)


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
    "NAdam": (nadam, functional.nadam, options(lr=[0.01], betas=[(0.9, 0.999), (0.5, 0.9)], weight_decay=[0.0, 0.1], momentum_decay=[4e-3, 0.1], decoupled_weight_decay=BOTH, maximize=BOTH)),
    "RAdam": (radam, functional.radam, options(lr=[0.01], betas=[(0.9, 0.999), (0.5, 0.9)], eps=[1e-8, 1e-3], weight_decay=[0.0, 0.1], decoupled_weight_decay=BOTH, maximize=BOTH)),
    "Adadelta": (adadelta, functional.adadelta, options(lr=[1.0, 0.1], rho=[0.9, 0.5], eps=[1e-6, 1e-3], weight_decay=[0.0, 0.1], maximize=BOTH)),
    "Adafactor": (adafactor, functional.adafactor, options(lr=[1e-2, 0.5], beta2_decay=[-0.8, -0.5], eps=[(None, 1e-3), (1e-8, 0.1)], d=[1.0, 2.0], weight_decay=[0.0, 0.1], maximize=BOTH)),
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


# Muon: matrices only, and a direction that is nearly orthogonal


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (1, 5), (5, 1)])
@pytest.mark.parametrize("nesterov", BOTH)
@pytest.mark.parametrize("adjust", [None, "original", "match_rms_adamw"])
def test_muon(shape: tuple[int, int], nesterov: bool, adjust: str | None) -> None:
    rng = np.random.default_rng(0)
    p = rng.normal(size=shape)
    w, state, average = et.tensor(p), None, np.zeros(shape)
    for _ in range(10):
        g = rng.normal(size=shape)
        average = 0.95 * average + 0.05 * g
        x = 0.05 * g + 0.95 * average if nesterov else average
        # the same polynomial on the singular values alone
        u, s, v = np.linalg.svd(x, full_matrices=False)
        s = s / np.sqrt(np.sum(x**2))
        for _ in range(5):
            s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
        rows, columns = shape
        scale = 0.2 * np.sqrt(max(shape)) if adjust == "match_rms_adamw" else np.sqrt(max(1, rows / columns))
        p = p * (1 - 0.02 * 0.1) - 0.02 * scale * (u * s) @ v
        w, state = functional.muon(w, et.tensor(g), state, lr=0.02, nesterov=nesterov, adjust_lr_fn=adjust)
    np.testing.assert_allclose(w.numpy(), p, rtol=1e-9, atol=1e-11)
    assert w.shape == shape


def test_muon_takes_matrices_only() -> None:
    with pytest.raises(ValueError, match=r"^\[Muon\] params\[1\] must be a matrix, got shape \(2,\)"):
        optim.Muon(et.nn.Linear(2, 2).parameters())
    with pytest.raises(ValueError, match=r"^\[Muon\] parameters must be matrices, got shape \(3,\)"):
        functional.muon(et.ones(3), et.ones(3))
    w = et.nn.Parameter(et.zeros((3, 2)))
    optimizer = optim.Muon([w])
    w.sum().backward()
    optimizer.step()
    again = optim.Muon([w])
    again.load_state_dict(optimizer.state_dict())
    assert again.state[w]["momentum_buffer"].tolist() == optimizer.state[w]["momentum_buffer"].tolist()


def test_adafactor_of_many_axes_and_nothing() -> None:
    """The last two axes are the matrix; the others count matrices."""
    rng = np.random.default_rng(0)
    p, g = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3))
    whole, state = functional.adafactor(et.tensor(p), et.tensor(g), None)
    assert state["row_var"].shape == (2, 4, 1)
    assert state["col_var"].shape == (2, 1, 3)
    spread = np.stack([np.outer((x**2).mean(1), (x**2).mean(0)) / (x**2).mean() for x in g])
    u = g / np.sqrt(spread)
    expected = p - np.sqrt(np.mean(p**2)) * 0.01 * u / max(1, np.sqrt(np.mean(u**2)))
    np.testing.assert_allclose(whole.numpy(), expected, rtol=1e-12)
    empty, state = functional.adafactor(et.zeros((0, 3)), et.zeros((0, 3)), None)
    assert empty.shape == (0, 3)
    assert state["col_var"].tolist() == [[0.0] * 3]


def test_adafactor_of_small_gradients() -> None:
    """Squares far below the resolution of the dtype still scale the step; only its square is the smallest divisor."""
    g = np.array([1e-12, -1e-12])
    small, _ = functional.adafactor(et.tensor([1.0, 1.0], et.float64), et.tensor(g), None)
    np.testing.assert_allclose(small.numpy(), [0.99, 1.01], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: functional.adafactor(X, X, eps=1e-3), TypeError, r"\[adafactor\] eps must be a pair"),
        (lambda: functional.adafactor(X, X, d=0.5), ValueError, r"\[adafactor\] d must be at least 1"),
        (lambda: functional.adafactor(X, X, beta2_decay=0.5), ValueError, r"\[adafactor\] beta2_decay must not be above 0"),
        (lambda: functional.adam(X, X, eps=(1e-3, 1e-3)), TypeError, r"\[adam\] eps"),
        (lambda: functional.adadelta(X, X, rho=1.0), ValueError, r"\[adadelta\] rho must lie in \[0, 1\)"),
        (lambda: functional.nadam(X, X, momentum_decay=-1), ValueError, r"\[nadam\] momentum_decay"),
        (lambda: functional.muon(et.ones((2, 2)), et.ones((2, 2)), ns_steps=0), ValueError, r"\[muon\] ns_steps"),
        (lambda: functional.muon(et.ones((2, 2)), et.ones((2, 2)), ns_coefficients=(1, 2)), TypeError, r"\[muon\] ns_coefficients"),
        (lambda: functional.muon(et.ones((2, 2)), et.ones((2, 2)), adjust_lr_fn="x"), ValueError, r"\[muon\] adjust_lr_fn"),
        (lambda: functional.adafactor(et.ones((2, 2)), et.ones((2, 2)), {"step": 1, "row_var": et.ones((2, 2)), "col_var": et.ones((1, 2))}), ValueError, r"\[adafactor\] state\['row_var'\] has shape \(2, 2\) but the parameter has \(2, 2\), which needs \(2, 1\)"),
    ],
)  # fmt: skip
def test_adaptive_rules_refuse(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"^{text}"):
        call()
