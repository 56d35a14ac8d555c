"""Reading a backward pass: as source, as a table, as a picture; and finding where a nan began."""

from __future__ import annotations

import re
import xml.etree.ElementTree

import numpy as np
import pytest

import extensor as et

from .programs import random_program


def executed(source):
    namespace = {}
    exec(source, namespace)
    return namespace["backward"]


def mlp(x, w1, b1, w2, targets):
    h = et.relu(x @ w1 + b1)
    logits = h @ w2
    return et.cross_entropy(logits, targets)


def arguments():
    rng = np.random.default_rng(0)
    return [et.tensor(rng.normal(size=s)) for s in [(4, 3), (3, 5), (5,), (5, 2)]]


def test_the_source_of_a_network_is_what_one_would_write():
    args = arguments()
    labels = np.array([0, 1, 1, 0])
    source = et.backward_source(lambda *a: mlp(*a, labels), *args)
    lines = [line.split("  # ")[0].strip() for line in source.splitlines()]
    assert "h = relu(add_1)" in lines
    assert "logits = matmul(h, a_3)" in lines
    assert "grad_h, grad_a_3 = matmul_backward(grad_logits, h, a_3)" in lines
    got = executed(source)(*args)
    want = et.grad(lambda *a: mlp(*a, labels), argnums=(0, 1, 2, 3))(*args)
    for g, w in zip(got, want):
        assert np.array_equal(g.numpy(), w.numpy())


@pytest.mark.parametrize("seed", range(30))
def test_the_source_of_any_program_gives_the_same_bits(seed):
    inputs, program = random_program(seed)
    args = [et.tensor(x) for x in inputs]

    def function(*xs):
        return program(et, xs)

    got = executed(et.backward_source(function, *args))(*args)
    want = et.grad(function, argnums=tuple(range(len(args))))(*args)
    for g, w in zip(got, want):
        assert np.array_equal(g.numpy(), w.numpy())


def test_source_of_structures_losses_splits_and_mixed_dtypes():
    def loss(p, scale):
        first, second = et.split(p["x"], 2)
        joined = et.concatenate([second, first * scale.astype(et.float64)])
        return et.mean_squared_error(joined, p["rest"][0], reduction="sum")

    args = [{"x": et.tensor(np.arange(4.0)), "rest": [et.tensor(np.ones(4))]}, et.tensor(2.0)]
    source = et.backward_source(loss, *args)
    got = executed(source)(*args)
    want = et.grad(loss, argnums=(0, 1))(*args)
    assert np.array_equal(got[0]["x"].numpy(), want[0]["x"].numpy())
    assert np.array_equal(got[0]["rest"][0].numpy(), want[0]["rest"][0].numpy())
    assert got[1].dtype == et.float32
    assert got[1].item() == want[1].item()
    assert "for " not in source


def test_source_takes_a_grad_output_and_leaves_out_what_is_not_needed():
    def function(x):
        unused = x.exp()  # noqa: F841
        return x.tanh()

    x = et.tensor([0.1, 0.2])
    source = et.backward_source(function, x)
    assert "exp" not in source
    g = et.tensor([2.0, 3.0])
    assert np.array_equal(executed(source)(x, grad_output=g)[0].numpy(), et.vjp(function, x)[1](g)[0].numpy())


def test_a_gradient_that_two_inputs_share_has_two_names():
    """add_backward returns one tensor for both; only the gradient of x grows before that of y is used."""

    def function(x):
        y = x.tanh()
        z = x.silu()
        return (y + x).square().sum() + z.sum()

    x = et.tensor(np.array([0.3, -1.2]))
    got = executed(et.backward_source(function, x))(x)
    assert np.array_equal(got[0].numpy(), et.grad(function)(x).numpy())


def test_source_refuses_a_large_constant():
    big = et.ones(1000)
    with pytest.raises(ValueError, match=r"\[backward_source\] fn uses a tensor of shape \(1000,\)"):
        et.backward_source(lambda x: (x * big).sum(), et.ones(1000))


def test_explain_prints_a_line_per_call(capsys):
    x = et.tensor([3.0, 4.0], requires_grad=True)
    et.explain((x * x).sum())
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split()[0] == "sum"
    assert re.search(r"multiply +\(2,\) +test_reading.py:\d+ +multiply_backward +1.414$", rows[3])
    assert rows[4].split() == ["leaf", "(2,)", "10"]


def test_the_drawing_is_an_svg_with_a_box_per_call(tmp_path):
    x = et.tensor(np.ones((3, 3)), requires_grad=True)
    first, second = et.split(x, [1])
    path = tmp_path / "graph.svg"
    et.draw_graph((first.exp() * second).sum(), path)
    root = xml.etree.ElementTree.fromstring(path.read_text())
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[::2] == ["tensor", "split", "exp", "multiply", "sum"]
    assert "(1, 3) (2, 3)" in texts
    with pytest.raises(ValueError, match=r"\[draw_graph\] nothing was recorded"):
        et.draw_graph(et.ones(2))


@pytest.mark.parametrize(
    ("run", "name", "advice"),
    [
        (lambda x: (x - 10.0).log(), "log", "zero or negative"),
        (lambda x: (x * 1000.0).exp(), "exp", "too large"),
        (lambda x: x / (x - x), "divide", "divisor was zero"),
    ],
)
def test_anomalies_of_the_forward(run, name, advice):
    x = et.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(et.AnomalyError, match=rf"(?s)^\[{name}\] made .*test_reading.py, line .*{advice}"):
        with et.detect_anomaly():
            run(x)
    run(x)  # and nothing outside


def test_anomaly_of_the_backward_names_the_backward_and_the_line():
    x = et.tensor([1e-37, 1.0], requires_grad=True)
    with pytest.raises(
        et.AnomalyError, match=r"(?s)^\[multiply_backward\] made .*of the multiply computed in .*test_reading"
    ):
        with et.detect_anomaly():
            loss = (x[:1] * 1e20 * 1e20).sum()
            loss.backward()


def test_a_nan_that_was_there_before_is_not_an_anomaly():
    x = et.tensor([float("nan"), 1.0], requires_grad=True)
    with et.detect_anomaly():
        (x * 2.0).sum().backward()
    assert isinstance(et.AnomalyError("x"), FloatingPointError)
