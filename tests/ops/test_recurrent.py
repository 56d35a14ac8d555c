"""Recurrent cells and sequences: against loops in HIPS autograd, both directions, dtypes, edges, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

RNG = np.random.default_rng(17)
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + anp.exp(-x))


def rnn(x: Any, h: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
    return (anp.tanh(anp.dot(x, w.T) + b + anp.dot(h, u.T) + d),)


def gru(x: Any, h: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
    (a_r, a_z, a_n), (u_r, u_z, u_n) = (
        anp.split(v, 3, -1) for v in (anp.dot(x, w.T) + b, anp.dot(h, u.T) + d)
    )
    r, z = sigmoid(a_r + u_r), sigmoid(a_z + u_z)
    return ((1 - z) * anp.tanh(a_n + r * u_n) + z * h,)


def lstm(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
    i, f, g, o = anp.split(anp.dot(x, w.T) + b + anp.dot(h, u.T) + d, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * anp.tanh(g)
    return sigmoid(o) * anp.tanh(c), c


CELLS = {"rnn": rnn, "gru": gru, "lstm": lstm}


def arguments(kind: str, batch: tuple[int, ...], steps: tuple[int, ...] = ()) -> list[np.ndarray]:
    rows = GATES[kind] * 4
    shapes = [
        (*steps, *batch, 3),
        *[(*batch, 4)] * (2 if kind == "lstm" else 1),
        (rows, 3),
        (rows, 4),
        (rows,),
        (rows,),
    ]
    return [0.7 * RNG.standard_normal(s) for s in shapes]


def gates_of(x: Any, h: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
    i, f, g, o = anp.split(anp.dot(x, w.T) + b + anp.dot(h, u.T) + d, 4, -1)
    return anp.concatenate([sigmoid(i), sigmoid(f), anp.tanh(g), sigmoid(o)], -1)


def walk(kind: str, p: Any, reverse: bool) -> Any:
    """Hidden states of all steps; of the LSTM the cell states and the gates too."""
    count = 2 if kind == "lstm" else 1
    x, states, weights = p[0], list(p[1 : 1 + count]), p[1 + count :]
    found = {}
    for t in range(len(x))[:: -1 if reverse else 1]:
        gates = [gates_of(x[t], states[0], *weights)] if kind == "lstm" else []
        states = list(CELLS[kind](x[t], *states, *weights))
        found[t] = [*states, *gates]
    return tuple(anp.stack([found[t][i] for t in range(len(x))]) for i in range(len(found[0])))


def results(value: Any) -> list[et.ExTensor]:
    return [value] if isinstance(value, et.ExTensor) else list(value)


def backward(name: str, g: list[Any], args: list[Any], output: Any, **options: Any) -> Any:
    """The public backward, called as its signature says."""
    kind = name.split("_", maxsplit=1)[0]
    fixed, biases = args[:-2], args[-2:]
    grad = g if kind == "lstm" else g[0]
    saved = {"rnn_cell": [output], "rnn_sequence": [output], "gru_sequence": [output]}.get(name, [])
    if name == "lstm_sequence":
        saved = list(output)
    function = getattr(et, f"{name}_backward")
    return function(grad, *fixed, *saved, *([] if kind == "rnn" else biases), **options)


def check(name: str, args: list[np.ndarray], oracle: Any, **options: Any) -> None:
    tensors = [et.asarray(a) for a in args]
    output = getattr(et, name)(*tensors, **options)
    right = oracle(args)
    for found, expected in zip(results(output), right):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-13)
    g = [RNG.standard_normal(r.shape) for r in right]
    grads = backward(name, [et.asarray(v) for v in g], tensors, output, **options)
    expected = autograd.grad(lambda p: sum(anp.sum(r * v) for r, v in zip(oracle(p), g)))(args)
    assert len(grads) == len(expected)
    for found, truth in zip(grads, expected):
        np.testing.assert_allclose(found.numpy(), truth, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("batch", [(5,), (1,), (), (0,)])
@pytest.mark.parametrize("kind", GATES)
def test_cells(kind: str, batch: tuple[int, ...]) -> None:
    check(f"{kind}_cell", arguments(kind, batch), lambda p: CELLS[kind](*p))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("kind", GATES)
def test_sequences(kind: str, steps: int, reverse: bool) -> None:
    check(
        f"{kind}_sequence", arguments(kind, (2,), (steps,)), lambda p: walk(kind, p, reverse), reverse=reverse
    )


@pytest.mark.parametrize("kind", GATES)
def test_a_sequence_is_its_steps(kind: str) -> None:
    x, *rest = map(et.asarray, arguments(kind, (2,), (4,)))
    count = 2 if kind == "lstm" else 1
    states, weights = rest[:count], rest[count:]
    hidden = results(getattr(et, f"{kind}_sequence")(x, *states, *weights))
    for t in range(4):
        states = results(getattr(et, f"{kind}_cell")(x[t], *states, *weights))
        for found, state in zip(hidden, states):
            np.testing.assert_allclose(found[t].numpy(), state.numpy(), rtol=1e-13)


@pytest.mark.parametrize(
    "name", ["rnn_cell", "gru_cell", "lstm_cell", "rnn_sequence", "gru_sequence", "lstm_sequence"]
)
def test_without_biases_and_only_what_is_needed(name: str) -> None:
    kind, form = name.split("_")
    args = [et.asarray(a) for a in arguments(kind, (2,), (3,) if form == "sequence" else ())]
    zero = [*args[:-2], et.zeros_like(args[-1]), et.zeros_like(args[-1])]
    bare = [*args[:-2], None, None]
    output, same = getattr(et, name)(*bare), getattr(et, name)(*zero)
    assert [t.tolist() for t in results(output)] == [t.tolist() for t in results(same)]
    g = [et.ones_like(t) for t in results(output)]
    grads, right = backward(name, g, bare, output), backward(name, g, zero, output)
    assert [t.tolist() for t in grads[:-2]] == [t.tolist() for t in right[:-2]]
    assert [t is None for t in grads[-2:]] == [kind != "rnn"] * 2
    for i in range(len(grads)):
        some = backward(name, g, zero, output, needs=tuple(j == i for j in range(len(grads))))
        assert [t is None for t in some] == [j != i for j in range(len(grads))]
        assert some[i].tolist() == right[i].tolist()


@pytest.mark.parametrize("reverse", [False, True])
def test_an_lstm_goes_on_from_the_product_of_its_inputs(reverse: bool) -> None:
    x, h, c, w_ih, w_hh, b, d = [et.asarray(a) for a in arguments("lstm", (2,), (3,))]
    whole = et.lstm_sequence(x, h, c, w_ih, w_hh, b, d, reverse)
    product = x @ w_ih.T
    results = et.lstm_sequence(product, h, c, None, w_hh, b, d, reverse)
    for found, right in zip(results, whole):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-13)
    g = [et.asarray(RNG.standard_normal(r.shape)) for r in results]
    right = et.lstm_sequence_backward(g, x, h, c, w_ih, w_hh, *whole, b, d, reverse)
    found = et.lstm_sequence_backward(g, product, h, c, None, w_hh, *results, b, d, reverse)
    assert found.grad_w_ih is None
    np.testing.assert_allclose((found.grad_x @ w_ih).numpy(), right.grad_x.numpy(), rtol=1e-11)
    for i in (1, 2, 4, 5, 6):
        np.testing.assert_allclose(found[i].numpy(), right[i].numpy(), rtol=1e-11)


def test_unused_results_of_the_lstm() -> None:
    args = [et.asarray(a) for a in arguments("lstm", (2,))]
    g, zero = et.ones((2, 4)), et.zeros((2, 4))
    for short, long in (((g, None), (g, zero)), ((None, g), [zero, g])):
        found, right = et.lstm_cell_backward(short, *args), et.lstm_cell_backward(long, *args)
        assert [t.tolist() for t in found] == [t.tolist() for t in right]


def test_unused_results_of_a_sequence_of_the_lstm() -> None:
    *args, b, d = [et.asarray(a) for a in arguments("lstm", (2,), (3,))]
    results = et.lstm_sequence(*args, b, d)
    ones, zeros = [et.ones_like(r) for r in results], [et.zeros_like(r) for r in results]
    for used in range(3):
        short = tuple(one if i == used else None for i, one in enumerate(ones))
        long = tuple(one if i == used else zero for i, (one, zero) in enumerate(zip(ones, zeros)))
        found, right = (et.lstm_sequence_backward(g, *args, *results, b, d) for g in (short, long))
        for a, c in zip(found, right):
            np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-12)
    w_ih = et.tensor(args[3], requires_grad=True)
    et.lstm_sequence(*args[:3], w_ih, args[4], b, d).cells.sum().backward()
    right = et.lstm_sequence_backward((None, ones[1], None), *args, *results, b, d).grad_w_ih
    np.testing.assert_allclose(w_ih.grad.numpy(), right.numpy(), rtol=1e-12)


def test_relu() -> None:
    x, h, w, u = et.tensor([[1.0]]), et.tensor([[2.0, 0.5]]), et.tensor([[1.0], [-1.0]]), et.eye(2)
    y = et.rnn_cell(x, h, w, u, nonlinearity="relu")
    assert y.tolist() == [[3.0, 0.0]]
    grads = et.rnn_cell_backward(et.ones((1, 2)), x, h, w, u, y, nonlinearity="relu")
    assert (grads.grad_x.tolist(), grads.grad_h.tolist(), grads.grad_b_ih.tolist()) == (
        [[1.0]],
        [[1.0, 0.0]],
        [1.0, 0.0],
    )


@pytest.mark.parametrize(
    "name", ["rnn_cell", "gru_cell", "lstm_cell", "rnn_sequence", "gru_sequence", "lstm_sequence"]
)
@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_float32_rounded_once(name: str, dtype: Any) -> None:
    kind, form = name.split("_")
    narrow = [et.asarray(a).astype(dtype) for a in arguments(kind, (2,), (3,) if form == "sequence" else ())]
    wide = [t.astype(et.float32) for t in narrow]
    output, right = getattr(et, name)(*narrow), getattr(et, name)(*wide)
    saved = (
        right
        if isinstance(right, et.ExTensor)
        else type(right)(*(t.astype(dtype).astype(et.float32) for t in right))
    )
    saved = saved.astype(dtype).astype(et.float32) if isinstance(saved, et.ExTensor) else saved
    g = [et.ones_like(t) for t in results(output)]
    pairs = list(zip(results(output), results(right)))
    pairs += zip(
        backward(name, g, narrow, output), backward(name, [t.astype(et.float32) for t in g], wide, saved)
    )
    for found, expected in pairs:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


@pytest.mark.parametrize("kind", GATES)
def test_large_inputs_saturate(kind: str) -> None:
    args = [et.asarray(1e4 * a) for a in arguments(kind, (3,))]
    output = getattr(et, f"{kind}_cell")(*args)
    grads = backward(f"{kind}_cell", [et.ones_like(t) for t in results(output)], args, output)
    assert all(np.isfinite(t.numpy()).all() for t in [*results(output), *grads])


X, H, W, U = et.ones((2, 3)), et.ones((2, 4)), et.ones((4, 3)), et.ones((4, 4))
ERRORS = [
    (lambda: et.rnn_cell(et.ones((1, 2, 3)), H, W, U), ValueError, r"\[rnn_cell\] x must have the axes \(N, I\) or \(I,\)"),
    (lambda: et.rnn_cell(X, et.ones((3, 4)), W, U), ValueError, r"\[rnn_cell\] h has shape \(3, 4\) but must have shape \(2, 4\)"),
    (lambda: et.rnn_cell(X, H, et.ones((4, 2)), U), ValueError, r"\[rnn_cell\] w_ih has shape \(4, 2\) but must have shape \(4, 3\)"),
    (lambda: et.rnn_cell(X, H, W, et.ones((4, 3))), ValueError, r"\[rnn_cell\] w_hh must have shape \(H, H\)"),
    (lambda: et.rnn_cell(X, H, W, U, et.ones(3)), ValueError, r"\[rnn_cell\] b_ih has shape \(3,\) but must have shape \(4,\)"),
    (lambda: et.rnn_cell(X, H, W, U, nonlinearity="gelu"), ValueError, r"\[rnn_cell\] nonlinearity must be 'tanh' or 'relu'"),
    (lambda: et.rnn_cell(et.ones((2, 3), et.int64), H, W, U), TypeError, r"\[rnn_cell\] x must have a floating dtype"),
    (lambda: et.gru_cell(X, H, W, U), ValueError, r"\[gru_cell\] w_hh must have shape \(3\*H, H\), got \(4, 4\)"),
    (lambda: et.lstm_cell(X, H, H, W, U), ValueError, r"\[lstm_cell\] w_hh must have shape \(4\*H, H\), got \(4, 4\)"),
    (lambda: et.lstm_cell(X, et.ones((2, 1)), H, W, et.ones((4, 1))), ValueError, r"\[lstm_cell\] c has shape \(2, 4\)"),
    (lambda: et.rnn_sequence(X, H, W, U), ValueError, r"\[rnn_sequence\] x must have the axes \(T, N, I\)"),
    (lambda: et.rnn_sequence(et.ones((0, 2, 3)), H, W, U), ValueError, r"\[rnn_sequence\] x of shape \(0, 2, 3\) has no steps"),
    (lambda: et.rnn_cell_backward(X, X, H, W, U, H), ValueError, r"\[rnn_cell_backward\] grad_output has shape \(2, 3\)"),
    (lambda: et.rnn_cell_backward(H, X, H, W, U, X), ValueError, r"\[rnn_cell_backward\] output has shape \(2, 3\)"),
    (lambda: et.lstm_sequence(et.ones((1, 2, 3)), et.ones((2, 1)), et.ones((2, 1)), None, et.ones((4, 1))), ValueError, r"\[lstm_sequence\] without w_ih, x must have the axes \(T, N, 4\*H\), got shape \(1, 2, 3\)"),
    (lambda: et.lstm_sequence_backward((None, None, None), et.ones((1, 2, 3)), et.ones((2, 1)), et.ones((2, 1)), W, et.ones((4, 1)), et.ones((1, 2, 1)), et.ones((1, 2, 1)), et.ones((1, 2, 3))), ValueError, r"\[lstm_sequence_backward\] gates has shape \(1, 2, 3\) but the forward's result has shape \(1, 2, 4\)"),
    (lambda: et.lstm_cell_backward((H,), X, et.ones((2, 1)), et.ones((2, 1)), W, et.ones((4, 1))), ValueError, r"\[lstm_cell_backward\] grad_output has 1 elements but the forward has 2 results"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
