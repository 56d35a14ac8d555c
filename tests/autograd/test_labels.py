"""Labels and indices among the arguments of the transforms: they pass through and have the gradient None."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn


def executed(source: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["backward"]


def same_bits(got: Any, want: Any) -> None:
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key in want:
            same_bits(got[key], want[key])
    elif want is None:
        assert got is None
    else:
        assert got.dtype == want.dtype
        assert not got.requires_grad
        np.testing.assert_array_equal(got.numpy(), want.numpy(), strict=True)


def classifier(x: Any, w1: Any, b1: Any, w2: Any, labels: Any) -> Any:
    h = et.relu(x @ w1 + b1)
    logits = h @ w2
    return et.cross_entropy(logits, labels)


def arguments() -> list[Any]:
    rng = np.random.default_rng(0)
    made: list[Any] = [et.tensor(rng.normal(size=s)) for s in [(4, 3), (3, 5), (5,), (5, 2)]]
    return [*made, np.array([0, 1, 1, 0])]


@pytest.mark.parametrize("kind", [np.asarray, et.tensor], ids=["array", "tensor"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_source_of_a_classifier(kind: Any, dtype: Any) -> None:
    *tensors, labels = arguments()
    args = [*tensors, kind(labels.astype(dtype))]
    source = et.backward_source(classifier, *args)
    lines = [line.split("  # ")[0].strip() for line in source.splitlines()]
    assert "output = cross_entropy(logits, labels)" in lines
    assert "grad_logits = cross_entropy_backward(grad_output, logits, labels)" in lines
    assert lines[-1] == "return grad_x, grad_w1, grad_b1, grad_w2, None"
    got = executed(source)(*args)
    want = et.grad(classifier, argnums=(0, 1, 2, 3))(*args)
    same_bits(dict(enumerate(got)), dict(enumerate((*want, None))))
    others = kind((1 - labels).astype(dtype))  # the text computes with the labels it is given
    again = executed(source)(*tensors, others)
    same_bits(
        dict(enumerate(again[:4])), dict(enumerate(et.grad(classifier, (0, 1, 2, 3))(*tensors, others)))
    )


def test_source_of_comparisons_and_masks_follows_the_labels() -> None:
    def loss(x: Any, labels: Any) -> Any:
        mine = labels == 1
        return et.where(mine, x * x, x.detach() * x).sum() + x[labels].sum()

    x, labels = et.tensor([1.0, 2.0, 3.0]), et.tensor([0, 1, 2])
    backward = executed(et.backward_source(loss, x, labels))
    for given in ([0, 1, 2], [1, 1, 0]):
        got, none = backward(x + given[0], et.tensor(given))
        same_bits(got, et.grad(loss)(x + given[0], et.tensor(given)))
        assert none is None


def lenet() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(1)
    return et.models.LeNet5(rng=0), [
        et.tensor(rng.normal(size=(2, 1, 28, 28)), et.float32),
        et.tensor([3, 7]),
    ]


def gpt() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(2)
    net = et.models.GPT(17, 16, n_layer=2, n_head=2, n_embd=8, rng=0)
    return net, [et.tensor(rng.integers(0, 17, (2, 7))) for _ in range(2)]


def lstm() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(3)

    class Net(nn.Module):
        def __init__(self) -> None:
            self.table = nn.Embedding(11, 6, rng=0)
            self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True, rng=1)
            self.head = nn.Linear(10, 11, rng=2)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.table(tokens))[0])

    return Net(), [et.tensor(rng.integers(0, 11, (3, 4))) for _ in range(2)]


def normalised() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(4)
    net = nn.Sequential(nn.Linear(4, 6, rng=0), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3, rng=1))
    return net, [et.tensor(rng.normal(size=(5, 4)), et.float32), et.tensor([0, 1, 2, 1, 0])]


@pytest.mark.parametrize("make", [lenet, gpt, lstm, normalised])
def test_models_in_every_transform(make: Any) -> None:
    net, (x, labels) = make()
    state = {name: value.tolist() for name, value in net.state_dict().items()}

    def loss(net: Any, x: Any, labels: Any) -> Any:
        return et.cross_entropy(net(x), labels)

    written = executed(et.backward_source(loss, net, x, labels))(net, x, labels)
    assert {name: value.tolist() for name, value in net.state_dict().items()} == state
    assert written[2] is None
    net.zero_grad()
    loss(net, x, labels).backward()
    want = {name: p.grad for name, p in net.named_parameters()}
    same_bits(written[0], want)
    value, gradient = et.value_and_grad(loss)(net, x, labels)
    same_bits(gradient, want)
    out, pullback = et.vjp(loss, net, x, labels)
    assert out.item() == value.item()
    pulled = pullback(et.ones(()))
    same_bits(pulled[0], want)
    assert pulled[2] is None
    assert (pulled[1] is None) == (x.dtype == et.int64)
    directions = {name: p.grad for name, p in net.named_parameters()}
    along_x = None if x.dtype == et.int64 else et.zeros_like(x)
    _, tangent = et.jvp(loss, (net, x, labels), (directions, along_x, None))
    expected = sum(float((g.numpy().astype(np.float64) ** 2).sum()) for g in want.values())
    assert tangent.item() == pytest.approx(expected, rel=1e-4)


def test_whole_numbers_inside_structures() -> None:
    batch = {
        "x": et.tensor([1.0, 2.0]),
        "labels": [et.tensor([1, 0]), np.array([True, False])],
        "depth": 3,
        "name": "b",
    }

    def loss(b: Any) -> Any:
        return (b["x"][b["labels"][0]] * b["depth"]).sum()

    got = et.grad(loss)(batch)
    assert got["x"].tolist() == [3.0, 3.0]
    assert got["labels"] == [None, None]
    assert got["depth"] is None
    assert got["name"] == "b"
    jacobian = et.jacobian(lambda b: b["x"] * 2)(batch)
    assert jacobian["x"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert jacobian["labels"] == [None, None]
    direction = {"x": et.ones(2), "labels": [None, None], "depth": None, "name": None}
    product = et.hvp(lambda b: (b["x"] ** 3).sum(), batch, direction)
    assert product["x"].tolist() == [6.0, 12.0]
    assert product["labels"] == [None, None]


def test_whole_numbers_among_the_outputs() -> None:
    def function(x: Any) -> Any:
        return {"best": x.argmax(), "value": x * x}

    x = et.tensor([1.0, 2.0])
    out, pullback = et.vjp(function, x)
    assert out["best"].item() == 1
    for none in (None, et.tensor(0)):
        assert pullback({"best": none, "value": et.ones(2)})[0].tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match=r"\[vjp\] the gradient of the output of dtype int64 must be None"):
        pullback({"best": et.tensor(1), "value": et.ones(2)})
    _, tangent = et.jvp(function, (x,), (et.ones(2),))
    assert tangent["best"] is None
    assert tangent["value"].tolist() == [2.0, 4.0]
    assert et.jacobian(function)(x)["best"] is None


def test_a_python_number_is_written_down_and_another_one_refused() -> None:
    def function(x: Any, n: int, mode: str, flag: bool, nothing: None) -> Any:
        return (x[n] * 2.0 if flag else x.sum()) if mode == "pick" else x.mean()

    x = et.tensor([1.0, 2.0, 3.0])
    backward = executed(et.backward_source(function, x, 1, "pick", True, None))
    assert backward(x, 1, "pick", True, None)[0].tolist() == [0.0, 2.0, 0.0]
    assert backward(x, 1, "pick", True, None)[1] is None
    for wrong in [
        (2, "pick", True, None),
        (1, "rest", True, None),
        (1, "pick", 1, None),
        (1, "pick", True, 0),
    ]:
        with pytest.raises(ValueError, match="this backward was written for"):
            backward(x, *wrong)


def test_source_of_floats_arrays_and_tensors_that_require_a_gradient() -> None:
    def function(x: Any, scale: Any, p: Any) -> Any:
        return (x + scale).tanh().sum() * p["w"][0].sum()

    args = [et.tensor([0.3, 0.4], requires_grad=True), 2.0, {"w": [np.ones(2, np.float32)]}]
    got = executed(et.backward_source(function, *args))(*args)
    want = et.grad(function, argnums=(0, 1, 2))(*args)
    same_bits(
        {"x": got[0], "s": got[1], "w": got[2]["w"][0]},
        {"x": want[0].detach(), "s": want[1].detach(), "w": want[2]["w"][0].detach()},
    )


def test_source_names_come_from_the_function_that_was_given() -> None:
    net = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Tanh(), nn.Linear(2, 2, rng=1))

    def helper(x: Any) -> Any:
        return x.exp() + 1.0

    def function(x: Any) -> Any:
        h = net(x)
        return helper(h).sum()

    source = et.backward_source(function, et.ones((1, 2)))
    lines = [line.split(" = ")[0].strip() for line in source.splitlines() if " = " in line]
    assert lines[:6] == ["linear_1", "tanh_1", "h", "exp_1", "add_1", "output"]


def test_source_refuses_a_generator() -> None:
    rng = et.random.generator(0)
    with pytest.raises(ValueError, match=r"\[backward_source\] fn draws from a random generator.*eval"):
        et.backward_source(lambda x: et.dropout(x, 0.5, rng).output.sum(), et.ones(3))
    seeded = et.backward_source(lambda x: et.dropout(x, 0.5, 7).output.sum(), et.ones(3))
    assert "dropout(x, 0.5, 7)" in seeded


def test_a_pullback_does_not_follow_the_array_of_the_caller() -> None:
    x = np.array([1.0, 2.0])
    _, pullback = et.vjp(lambda x: x * x, x)
    x[:] = 0
    assert pullback(et.ones(2, dtype=et.float64))[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x, n: et.vjp(lambda n: n * 1.0, n), TypeError, r"\[vjp\] a tensor of dtype int64 has no gradient"),
        (lambda x, n: et.grad(lambda x, n: x.sum(), argnums=1)(x, n), TypeError, r"\[grad\] .*int64 has no gradient"),
        (lambda x, n: et.backward_source(lambda n: n * 1.0, n), TypeError, r"\[backward_source\] .*int64"),
        (lambda x, n: et.jvp(lambda x, n: x[n], (x, n), (x, et.ones(2))), ValueError, r"dtype int64 must be None"),
        (lambda x, n: et.jvp(lambda x, n: x[n], (x, n), (None, None)), ValueError, r"\[jvp\] a tangent must be a tensor"),
        (lambda x, n: et.jvp(lambda x, n: x[n], (x, n), (x,)), ValueError, r"\[jvp\] tangents must be structured"),
        (lambda x, n: et.vjp(lambda x: x.argmax(), x), TypeError, r"\[vjp\] fn must return tensors of a floating dtype"),
    ],
)  # fmt: skip
def test_refusals(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        call(et.ones(2), et.tensor([0, 1]))


def test_source_refuses_what_is_no_public_function() -> None:
    with pytest.raises(ValueError, match=r"\[backward_source\] the gradient of checkpoint is no call"):
        et.backward_source(lambda x: et.checkpoint(et.tanh)(x).sum(), et.ones(2))
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.raises(ValueError, match=r"\[backward_source\] .*hooks"):
        et.backward_source(lambda x: layer(x).sum(), et.ones(2))
