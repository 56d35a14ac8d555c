"""Modules: what belongs to them, state dicts that fit and that do not, paths in errors, the summary."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv1(x)).relu()


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = [Block(3), Block(3), Block(3)]
        self.heads = {"a": nn.Linear(3, 2), "b": nn.Linear(3, 2, bias=False)}
        self.scale = nn.Parameter([1.0])
        self.settings = {"depth": 3, "names": ["x", "y"]}
        self.register_buffer("seen", et.zeros((), dtype=et.int64))

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x.mean((2, 3))) * self.scale


def test_what_belongs_to_a_module() -> None:
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    per_block = ["conv1.weight", "conv1.bias", "norm.weight", "norm.bias"]
    assert names == [
        "scale", *(f"blocks.{i}.{n}" for i in range(3) for n in per_block), "heads.a.weight", "heads.a.bias", "heads.b.weight",
    ]  # fmt: skip
    assert [n for n, _ in net.named_buffers()][:2] == ["seen", "blocks.0.norm.running_mean"]
    assert set(net.state_dict()) == {*names, *(n for n, _ in net.named_buffers())}
    assert len(list(net.modules())) == 1 + 3 * 3 + 2


def test_subclasses_of_containers_keep_what_they_add() -> None:
    class Stack(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(2, 2))
            self.head = nn.Linear(2, 1)

    class Heads(nn.ModuleList):
        def __init__(self) -> None:
            super().__init__([nn.Linear(2, 2)])
            self.gain = nn.Parameter([1.0])

    assert list(Stack().state_dict()) == ["0.weight", "0.bias", "head.weight", "head.bias"]
    assert list(Heads().state_dict()) == ["gain", "0.weight", "0.bias"]


def test_shared_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert net.summary().parameters == 8
    net(et.ones((1, 2))).sum().backward()
    assert net[0].weight.grad is net[1].weight.grad


def test_round_trip() -> None:
    net, other = Net(), Net()
    net(et.tensor(np.random.default_rng(0).normal(size=(2, 3, 4, 4)), et.float32))
    state = net.state_dict()
    arrays = {name: value.numpy().astype(np.float64) for name, value in state.items()}
    other.load_state_dict(arrays)
    for name, value in other.state_dict().items():
        assert value.dtype == state[name].dtype
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())
    x = et.ones((1, 3, 4, 4))
    np.testing.assert_array_equal(net.eval()(x).numpy(), other.eval()(x).numpy())


def test_a_saved_state_does_not_move_on() -> None:
    net = Net()
    saved = net.state_dict()
    before = {name: value.tolist() for name, value in saved.items()}
    net.scale.assign([5.0])
    net(et.ones((2, 3, 4, 4)))
    assert {name: value.tolist() for name, value in saved.items()} == before


def without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {n: v for n, v in state.items() if n != name}


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        (lambda s: without(s, "blocks.2.conv1.weight"), ["missing: blocks.2.conv1.weight (3, 3, 3, 3)"]),
        (lambda s: without(s, "blocks.0.norm.running_var"), ["missing: blocks.0.norm.running_var (3,)"]),
        (lambda s: s | {"ghost": np.ones(2)}, ["unexpected: ghost"]),
        (lambda s: s | {"heads.a.weight": np.ones((2, 4))}, ["heads.a.weight has shape (2, 4) but the model has (2, 3)"]),
        (lambda s: without(s, "scale") | {"scales": np.ones(1), "heads.a.bias": np.ones(9)}, ["missing: scale", "unexpected: scales", "heads.a.bias has shape (9,)"]),
        (lambda s: {}, ["missing: scale", "more"]),
    ],
)  # fmt: skip
def test_misfits_are_named_and_change_nothing(change: Callable[[Any], Any], texts: list[str]) -> None:
    net = Net()
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    given = change({name: np.full(value.shape, 7.0) for name, value in net.state_dict().items()})
    with pytest.raises(ValueError, match=r"^\[load_state_dict\] state does not fit Net") as caught:
        net.load_state_dict(given)
    assert all(text in str(caught.value) for text in texts)
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before


def test_astype_and_deepcopy() -> None:
    net = Net().astype("float16")
    kinds = {name: value.dtype for name, value in net.state_dict().items()}
    assert kinds.pop("seen") == et.int64
    assert {k for n, k in kinds.items() if not n.endswith("num_batches_tracked")} == {et.float16}
    twin = copy.deepcopy(net)
    twin.scale.assign([3.0])
    assert net.scale.tolist() == [1.0]
    with pytest.raises(TypeError, match=r"^\[astype\]"):
        net.astype("int32")


def test_freezing() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[0].requires_grad_(False)
    net(et.ones((1, 2))).sum().backward()
    assert net[0].weight.grad is None
    assert net[1].weight.grad is not None
    summary = net.summary()
    assert (summary.parameters, summary.frozen) == (6, 6)
    assert "6 more are frozen" in str(summary)


# Errors: the path of the layer, the function, and what to change.

IMAGE = (2, 3, 4, 4)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Net()(et.ones((2, 4, 4, 4))), ValueError, r"^in Net\.blocks\[0\]\.conv1: \[conv2d\] .*3.*4"),
    (lambda: nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 2))(et.ones((1, 2))), ValueError, r"^in Sequential\[1\]: \[linear\] x has 3 features but weight takes 4"),
    (lambda: nn.Conv2d(3, 4, 9)(et.ones(IMAGE)), ValueError, r"^in Conv2d: \[conv2d\]"),
    (lambda: nn.BatchNorm2d(5)(et.ones(IMAGE)), ValueError, r"^in BatchNorm2d: \[BatchNorm2d\] x has 3 channels but the layer has 5"),
    (lambda: nn.BatchNorm1d(3)(et.ones(IMAGE)), ValueError, r"^in BatchNorm1d: \[BatchNorm1d\] x must have 2 or 3 axes"),
    (lambda: nn.InstanceNorm2d(5)(et.ones(IMAGE)), ValueError, r"\[InstanceNorm2d\] x must have shape \(N, 5, H, W\)"),
    (lambda: nn.LayerNorm(5)(et.ones((2, 4))), ValueError, r"^in LayerNorm: \[layer_norm\]"),
    (lambda: nn.Embedding(5, 2)(et.tensor([5])), ValueError, r"^in Embedding: \[embedding\]"),
    (lambda: nn.Embedding(5, 2)(et.tensor([0.5])), TypeError, r"^in Embedding: \[embedding\]"),
    (lambda: nn.CrossEntropyLoss()(et.zeros((2, 3)), et.tensor([0, 3])), ValueError, r"^in CrossEntropyLoss: \[cross_entropy\]"),
    (lambda: nn.MSELoss()(et.zeros((2, 3)), et.zeros((3,))), ValueError, r"^in MSELoss: \[mean_squared_error\]"),
    (lambda: nn.LSTM(3, 4)(et.ones((5, 2, 4))), ValueError, r"\[LSTM\] x must have 2 or 3 axes, the last of length 3"),
    (lambda: nn.LSTM(3, 4)(et.ones((5, 2, 3)), et.ones((1, 2, 4))), TypeError, r"\[LSTM\] hx must be a pair"),
    (lambda: nn.LSTM(3, 4).of_rows(et.tensor([[0]]), et.ones((2, 5))), ValueError, r"\[LSTM\] of_rows needs indices with 2 axes and a table of shape \(rows, 3\)"),
    (lambda: nn.GRU(3, 4)(et.ones((5, 2, 3)), et.ones((1, 3, 4))), ValueError, r"\[GRU\] a state has shape"),
    (lambda: nn.GRU(3, 4)(et.ones((5, 2, 3)), 7), TypeError, r"\[GRU\] hx must be a tensor"),
    (lambda: nn.MultiheadAttention(8, 2)(et.ones((5, 8)), et.ones((1, 5, 8)), et.ones((1, 5, 8))), ValueError, r"\[MultiheadAttention\] query, key and value"),
    (lambda: nn.MultiheadAttention(8, 2)(*[et.ones((5, 1, 8))] * 3, key_padding_mask=np.zeros((5, 1), bool)), ValueError, r"key_padding_mask has shape"),
    (lambda: nn.MultiheadAttention(8, 2)(*[et.ones((5, 1, 8))] * 3, attn_mask=np.zeros((5, 5), int)), TypeError, r"attn_mask must be boolean or floating"),
    (lambda: nn.Linear(0, 4), ValueError, r"^\[Linear\] in_features"), (lambda: nn.Linear(2.5, 4), TypeError, r"^\[Linear\] in_features"), (lambda: nn.Linear(2, 4, "yes"), TypeError, r"^\[Linear\] bias"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, r"^\[Conv2d\] in_channels \(3\) must be divisible by groups \(2\)"), (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, r"^\[Conv2d\] out_channels"),
    (lambda: nn.Conv2d(3, 4, (1, 2, 3)), ValueError, r"^\[Conv2d\] kernel_size"), (lambda: nn.Conv1d(3, 4, 0), ValueError, r"^\[Conv1d\] kernel_size"), (lambda: nn.ConvTranspose2d(3, 4, 3, stride=0), ValueError, r"^\[ConvTranspose2d\] stride"),
    (lambda: nn.Conv1d(3, 4, 3, padding=-1), ValueError, r"^\[Conv1d\] padding must be at least 0, got int -1"), (lambda: nn.Conv2d(3, 4, 3, padding="sam"), ValueError, r"^\[Conv2d\] padding must be ints, 'same' or 'valid', got 'sam'"),
    (lambda: nn.Conv2d(3, 4, 3, 2, "same"), ValueError, r"^\[Conv2d\] padding='same' needs stride 1, got stride \(2, 2\)"), (lambda: nn.Conv2d(3, 4, 3, padding=(1, 1, 1)), ValueError, r"^\[Conv2d\] padding must be an int or 2 of them"),
    (lambda: nn.Conv2d(3, 4, 3, padding=0.5), TypeError, r"^\[Conv2d\] padding must be an int"), (lambda: nn.Conv2d(3, 4, 3, dilation=0), ValueError, r"^\[Conv2d\] dilation must be at least 1, got 0"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding=-1), ValueError, r"^\[ConvTranspose2d\] padding must be at least 0, got int -1"), (lambda: nn.ConvTranspose2d(3, 4, 3, padding="same"), ValueError, r"^\[ConvTranspose2d\] padding must be ints for a transposed convolution, got 'same'"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, output_padding=-1), ValueError, r"^\[ConvTranspose2d\] output_padding must be at least 0"), (lambda: nn.ConvTranspose2d(3, 4, 3, 2, output_padding=2), ValueError, r"^\[ConvTranspose2d\] output_padding \(2, 2\) must be smaller than stride \(2, 2\)"),
    (lambda: nn.MaxPool2d(0), ValueError, r"^\[MaxPool2d\] kernel_size must be at least 1, got int 0"), (lambda: nn.MaxPool2d("2"), TypeError, r"^\[MaxPool2d\] kernel_size"), (lambda: nn.MaxPool2d(2, stride=0), ValueError, r"^\[MaxPool2d\] stride must be at least 1, got int 0"),
    (lambda: nn.MaxPool2d(2, padding=-1), ValueError, r"^\[MaxPool2d\] padding must be at least 0"), (lambda: nn.MaxPool2d(2, padding=2), ValueError, r"^\[MaxPool2d\] padding \(2, 2\) must be at most half of kernel_size \(2, 2\)"), (lambda: nn.MaxPool2d(2, ceil_mode="no"), TypeError, r"^\[MaxPool2d\] ceil_mode"),
    (lambda: nn.AvgPool2d((2, 2, 2)), ValueError, r"^\[AvgPool2d\] kernel_size must be an int or 2 of them"), (lambda: nn.AvgPool2d(2, (1, 0)), ValueError, r"^\[AvgPool2d\] stride"), (lambda: nn.AvgPool2d(2, padding="same"), TypeError, r"^\[AvgPool2d\] padding"),
    (lambda: nn.AvgPool2d(2, ceil_mode=2), TypeError, r"^\[AvgPool2d\] ceil_mode"), (lambda: nn.AvgPool2d(2, count_include_pad=2), TypeError, r"^\[AvgPool2d\] count_include_pad"),
    (lambda: nn.AdaptiveAvgPool2d(0), ValueError, r"^\[AdaptiveAvgPool2d\] output_size must be at least 1"), (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), ValueError, r"^\[AdaptiveAvgPool2d\] output_size must be an int or a pair"), (lambda: nn.AdaptiveAvgPool2d((None, 0)), ValueError, r"^\[AdaptiveAvgPool2d\] output_size"),
    (lambda: nn.Linear(2, 4, dtype="int32"), TypeError, "dtype"), (lambda: nn.Dropout(1.5), ValueError, r"^\[Dropout\] p"), (lambda: nn.Dropout(float("nan")), ValueError, r"^\[Dropout\] p"),
    (lambda: nn.GroupNorm(3, 4), ValueError, r"^\[GroupNorm\] num_channels"), (lambda: nn.Embedding(5, 2, padding_idx=5), ValueError, r"^\[Embedding\] padding_idx"),
    (lambda: nn.MultiheadAttention(8, 3), ValueError, r"^\[MultiheadAttention\] embed_dim"), (lambda: nn.TransformerEncoderLayer(8, 2, activation="x"), ValueError, r"^\[TransformerEncoderLayer\] activation"),
    (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, r"^\[RNN\] nonlinearity"), (lambda: nn.GRU(3, 4, dropout=2), ValueError, r"^\[GRU\] dropout"), (lambda: nn.GELU("x"), ValueError, r"^\[GELU\] approximate"),
    (lambda: nn.Sequential(3), TypeError, r"^\[Sequential\]"), (lambda: nn.Module()(3), NotImplementedError, "defines no forward"), (lambda: nn.Parameter([1, 2]), TypeError, r"^\[Parameter\]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_settings_show_themselves() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, groups=3, bias=False),
        nn.BatchNorm2d(6),
        nn.MaxPool2d(2),
        nn.Dropout(0.1),
        nn.LSTM(3, 4, 2),
    )
    shown = repr(net)
    for part in ("Conv2d(3, 6, kernel_size=(3, 3), stride=(1, 1), padding=1, groups=3, bias=False)", "BatchNorm2d(6, eps=1e-05", "MaxPool2d(kernel_size=2", "Dropout(p=0.1)", "LSTM(3, 4, num_layers=2)"):  # fmt: skip
        assert part in shown
    assert "&lt;" in nn.Sequential({"<b>": nn.Identity()})._repr_html_()


# The summary


def test_summary() -> None:
    net = Net()
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    net.blocks[0].norm.eval()
    modes = [m.training for m in net.modules()]
    summary = net.summary(et.ones((2, 3, 4, 4)))
    assert [m.training for m in net.modules()] == modes
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before
    assert net.forward.__func__ is Net.forward  # nothing was left behind
    rows = {row.path: row for row in summary.rows}
    assert "blocks.0" not in rows
    assert rows["blocks.1.conv1"][1:] == ("Conv2d", ((2, 3, 4, 4),), 84, 84 * 4, 2 * 3 * 16 * 4)
    assert rows["blocks.1.norm"].parameters == 6
    assert rows["blocks.1.norm"].nbytes == 4 * 3 * 4 + 8
    assert rows["heads.b"].shapes == ()  # it was not called
    assert rows[""].parameters == 1
    assert summary.parameters == 1 + 3 * (84 + 6) + 8 + 6
    assert summary.nbytes == summary.parameters * 4 + 3 * (2 * 3 * 4 + 8) + 8
    assert summary.output_nbytes == sum(row.output_nbytes for row in summary.rows)
    text = str(summary)
    assert "blocks.1.conv1" in text
    assert "(2, 3, 4, 4)" in text
    assert f"{summary.parameters} parameters" in text
    assert "<table" in summary._repr_html_()


def test_summary_without_inputs_and_of_several_outputs() -> None:
    assert "output" not in str(nn.Linear(2, 3).summary()).splitlines()[0]
    summary = nn.LSTM(3, 4).summary(et.ones((5, 2, 3)))
    assert summary.rows[0].shapes == ((5, 2, 4), (1, 2, 4), (1, 2, 4))


def test_summary_of_a_failing_model_leaves_nothing_behind() -> None:
    net = Net()
    with pytest.raises(ValueError, match="conv1"):
        net.summary(et.ones((2, 5, 4, 4)))
    assert all("forward" not in vars(m) and m.training for m in net.modules())


# Nothing a caller does to an array changes a parameter


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "give",
    [
        lambda p, a: p.assign(a),
        lambda p, a: nn.ParameterDict({"w": p}).load_state_dict({"w": a}),
    ],
)
def test_values_are_copied_out_of_arrays(give: Any, order: Any, dtype: Any) -> None:
    array = np.ones((2, 3), dtype, order=order)
    parameter = nn.Parameter(np.zeros((2, 3), np.float32))
    give(parameter, array)
    array[:] = 7.0
    assert parameter.tolist() == [[1.0] * 3] * 2
    assert parameter.numpy().flags.c_contiguous


@pytest.mark.parametrize(
    "wrap", [lambda a: a, et.asarray, lambda a: et.from_dlpack(a), lambda a: et.asarray(a).T.T]
)
def test_a_new_parameter_owns_its_value(wrap: Any) -> None:
    array = np.ones((2, 3), np.float32)
    parameter = nn.Parameter(wrap(array))
    array[:] = 7.0
    assert parameter.tolist() == [[1.0] * 3] * 2


def test_buffers_are_copied_out_of_arrays() -> None:
    array = np.ones(2, np.float32)
    net = nn.Module()
    net.register_buffer("seen", array)
    array[:] = 7.0
    assert isinstance(net.seen, et.ExTensor)
    assert net.seen.tolist() == [1.0, 1.0]
    loaded = np.full(2, 3.0, np.float32)
    net.load_state_dict({"seen": loaded})
    loaded[:] = 7.0
    assert net.seen.tolist() == [3.0, 3.0]


# Assigning to attributes that are parameters


def test_a_tensor_assigned_to_a_parameter_becomes_its_value() -> None:
    layer = nn.Linear(2, 3, rng=0)
    weight, optimizer = layer.weight, et.optim.SGD(layer.parameters(), lr=1.0)
    layer.weight = et.init.xavier_uniform((3, 2), rng=1)
    assert layer.weight is weight
    np.testing.assert_array_equal(weight.numpy(), et.init.xavier_uniform((3, 2), rng=1).numpy())
    array = np.ones((3, 2))
    layer.weight = array
    array[:] = 7.0
    assert weight.dtype == et.float32
    assert weight.tolist() == [[1.0, 1.0]] * 3
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    layer(et.ones((1, 2))).sum().backward()
    optimizer.step()
    assert weight.tolist() == [[0.0, 0.0]] * 3
    other = nn.Parameter(et.zeros((5, 2)))
    layer.weight = other  # a parameter takes the place, of any shape
    assert layer.weight is other


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, TypeError, "assign a tensor of that shape"),
        ([[1.0, 2.0]], TypeError, "got list"),
        (3.0, TypeError, "got float 3.0"),
        ("x", TypeError, "an nn.Parameter to replace it"),
        (lambda: et.ones((2, 2)), TypeError, "del"),
        (et.ones((2, 2)), ValueError, r"has shape \(3, 2\) but the tensor has \(2, 2\)"),
        (et.ones((3, 2)).requires_grad_() * 2.0, TypeError, r"lose its history; assign value.detach\(\)"),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(value: Any, error: Any, text: str) -> None:
    layer = nn.Linear(2, 3, rng=0)
    before = layer.weight.tolist()
    with pytest.raises(error, match=rf"^\[Linear\] weight .*{text}"):
        layer.weight = value
    assert layer.weight.tolist() == before
    assert len(list(layer.parameters())) == 2


def test_a_parameter_can_be_taken_out() -> None:
    layer = nn.Linear(2, 3, rng=0)
    del layer.bias
    layer.bias = None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert layer(et.ones((1, 2))).shape == (1, 3)


def test_parameter_dicts_set_values_too() -> None:
    held = nn.ParameterDict({"w": [1.0, 2.0]})
    w = held["w"]
    held["w"] = et.tensor([3.0, 4.0])
    assert held["w"] is w
    assert w.tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match=r"^\[ParameterDict\] w has shape"):
        held["w"] = et.ones(3)
    held["w"] = nn.Parameter([5.0])
    assert held["w"].tolist() == [5.0]


def test_buffers_are_tensors() -> None:
    layer = nn.BatchNorm1d(2)
    layer.running_mean = np.array([1.0, 2.0], np.float32)
    assert layer.state_dict()["running_mean"].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"^\[BatchNorm1d\] running_mean is a buffer"):
        layer.running_mean = [1.0, 2.0]


# An optimiser that holds what is no longer there


def replace_parameter(net: Any) -> None:
    net[0].weight = nn.Parameter(et.ones((2, 2)))


def replace_layer(net: Any) -> None:
    net.head = nn.Linear(2, 1)


def take_out(net: Any) -> None:
    del net.head


class WithHead(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(2, 2, rng=0))
        self.head = nn.Linear(2, 1, rng=1)

    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        return self.head(x) if hasattr(self, "head") else x


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (replace_parameter, "Linear.weight"),
        (replace_layer, r"WithHead.head.weight"),
        (take_out, "WithHead.head.weight"),
    ],
)
@pytest.mark.parametrize("with_gradients", [False, True])
def test_an_optimiser_notices_a_parameter_that_left(change: Any, place: str, with_gradients: bool) -> None:
    net = WithHead()
    optimizer = et.optim.SGD(net.parameters(), lr=0.1)
    if with_gradients:  # stale ones, from before
        net(et.ones((1, 2))).sum().backward()
    change(net)
    net(et.ones((1, 2))).sum().backward()
    with pytest.raises(
        RuntimeError, match=rf"^\[SGD.step\] the parameter .* that was {place} is no longer part"
    ):
        optimizer.step()
    fresh = et.optim.SGD(net.parameters(), lr=0.1)
    fresh.step()


def test_a_shared_parameter_is_still_live() -> None:
    net = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Linear(2, 2, rng=1))
    net[1].weight = net[0].weight
    for model in (net, copy.deepcopy(net)):
        optimizer = et.optim.SGD(model.parameters(), lr=0.1)
        model[1].weight = nn.Parameter(et.ones((2, 2)))
        model(et.ones((1, 2))).sum().backward()
        optimizer.step()
    again = nn.Linear(2, 2)
    weight, optimizer = again.weight, et.optim.SGD(again.parameters(), lr=0.1)
    again.weight = nn.Parameter(et.ones((2, 2)))
    again.weight = weight  # back in its place
    optimizer.step()


# Loading a part


def test_loading_what_fits() -> None:
    net, other = (
        nn.Sequential(nn.Linear(2, 3, rng=0), nn.BatchNorm1d(3)),
        nn.Sequential(nn.Linear(2, 3, rng=1)),
    )
    before = net[1].running_var.tolist()
    found = net.load_state_dict({**other.state_dict(), "ghost": et.ones(1)}, strict=False)
    assert found.unexpected_keys == ["ghost"]
    assert found.missing_keys == [n for n in net.state_dict() if n.startswith("1.")]
    np.testing.assert_array_equal(net[0].weight.numpy(), other[0].weight.numpy())
    assert net[1].running_var.tolist() == before
    with pytest.raises(ValueError, match=r"0.weight has shape \(1,\)"):
        net.load_state_dict({"0.weight": et.ones(1)}, strict=False)
    assert net.load_state_dict(net.state_dict()) == ([], [])


def test_freezing_one_parameter() -> None:
    layer = nn.Linear(2, 2, rng=0)
    layer.bias.requires_grad = False
    layer(et.ones((1, 2))).sum().backward()
    assert layer.bias.grad is None
    assert layer.weight.grad is not None
