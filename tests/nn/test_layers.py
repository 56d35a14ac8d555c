"""Layers: names and shapes of a state dict, starting values, and that each is the function it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn

RNG = np.random.default_rng(0)


def t(*shape: int) -> et.ExTensor:
    return et.tensor(RNG.normal(size=shape), et.float32)


# What a state dict of each layer holds, as PyTorch has it (names in order, shapes).
STATES: list[tuple[Callable[[], nn.Module], dict[str, tuple[int, ...]]]] = [
    (lambda: nn.Linear(3, 4), {"weight": (4, 3), "bias": (4,)}),
    (lambda: nn.Linear(3, 4, bias=False), {"weight": (4, 3)}),
    (lambda: nn.Conv1d(4, 6, 3, groups=2), {"weight": (6, 2, 3), "bias": (6,)}),
    (lambda: nn.Conv2d(4, 6, (3, 5), groups=2), {"weight": (6, 2, 3, 5), "bias": (6,)}),
    (lambda: nn.Conv2d(4, 6, 3, bias=False), {"weight": (6, 4, 3, 3)}),
    (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2), {"weight": (4, 3, 3, 3), "bias": (6,)}),
    (lambda: nn.BatchNorm1d(3), {"weight": (3,), "bias": (3,), "running_mean": (3,), "running_var": (3,), "num_batches_tracked": ()}),
    (lambda: nn.BatchNorm2d(3, affine=False), {"running_mean": (3,), "running_var": (3,), "num_batches_tracked": ()}),
    (lambda: nn.BatchNorm2d(3, track_running_stats=False), {"weight": (3,), "bias": (3,)}),
    (lambda: nn.LayerNorm((3, 4)), {"weight": (3, 4), "bias": (3, 4)}),
    (lambda: nn.LayerNorm(4, bias=False), {"weight": (4,)}),
    (lambda: nn.LayerNorm(4, elementwise_affine=False), {}),
    (lambda: nn.RMSNorm(4), {"weight": (4,)}),
    (lambda: nn.GroupNorm(2, 4), {"weight": (4,), "bias": (4,)}),
    (lambda: nn.InstanceNorm2d(4), {}),
    (lambda: nn.InstanceNorm2d(4, affine=True), {"weight": (4,), "bias": (4,)}),
    (lambda: nn.Embedding(7, 3), {"weight": (7, 3)}),
    (lambda: nn.PReLU(3), {"weight": (3,)}),
    (lambda: nn.MultiheadAttention(8, 2), {"in_proj_weight": (24, 8), "in_proj_bias": (24,), "out_proj.weight": (8, 8), "out_proj.bias": (8,)}),
    (lambda: nn.MultiheadAttention(8, 2, bias=False, kdim=5, vdim=6), {"q_proj_weight": (8, 8), "k_proj_weight": (8, 5), "v_proj_weight": (8, 6), "out_proj.weight": (8, 8)}),
    (
        lambda: nn.TransformerEncoderLayer(8, 2, 16),
        {
            "self_attn.in_proj_weight": (24, 8), "self_attn.in_proj_bias": (24,), "self_attn.out_proj.weight": (8, 8), "self_attn.out_proj.bias": (8,),
            "linear1.weight": (16, 8), "linear1.bias": (16,), "linear2.weight": (8, 16), "linear2.bias": (8,),
            "norm1.weight": (8,), "norm1.bias": (8,), "norm2.weight": (8,), "norm2.bias": (8,),
        },
    ),
    (lambda: nn.RNN(3, 4), {"weight_ih_l0": (4, 3), "weight_hh_l0": (4, 4), "bias_ih_l0": (4,), "bias_hh_l0": (4,)}),
    (
        lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True, bias=False),
        {
            "weight_ih_l0": (16, 3), "weight_hh_l0": (16, 4), "weight_ih_l0_reverse": (16, 3), "weight_hh_l0_reverse": (16, 4),
            "weight_ih_l1": (16, 8), "weight_hh_l1": (16, 4), "weight_ih_l1_reverse": (16, 8), "weight_hh_l1_reverse": (16, 4),
        },
    ),
    (lambda: nn.GRU(3, 4), {"weight_ih_l0": (12, 3), "weight_hh_l0": (12, 4), "bias_ih_l0": (12,), "bias_hh_l0": (12,)}),
    (lambda: nn.CrossEntropyLoss(weight=et.ones(3)), {"weight": (3,)}),
    (lambda: nn.BCEWithLogitsLoss(pos_weight=et.ones(3)), {"pos_weight": (3,)}),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), STATES, ids=lambda v: "" if isinstance(v, dict) else None)
def test_state_dict(make: Callable[[], nn.Module], expected: dict[str, tuple[int, ...]]) -> None:
    layer = make()
    state = layer.state_dict()
    assert {name: value.shape for name, value in state.items()} == expected
    assert list(state) == list(expected)
    new = {name: np.full(shape, i + 0.5) for i, (name, shape) in enumerate(expected.items())}
    layer.load_state_dict(new)
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), new[name].astype(value.dtype))
        assert value.dtype == state[name].dtype


@pytest.mark.parametrize(
    ("make", "bounds"),
    [
        (lambda: nn.Linear(50, 400), {"weight": 1 / math.sqrt(50), "bias": 1 / math.sqrt(50)}),
        (lambda: nn.Conv1d(10, 400, 5), {"weight": 1 / math.sqrt(50), "bias": 1 / math.sqrt(50)}),
        (lambda: nn.Conv2d(20, 400, (3, 5), groups=2), {"weight": 1 / math.sqrt(150), "bias": 1 / math.sqrt(150)}),
        (lambda: nn.ConvTranspose2d(20, 400, 3, groups=2), {"weight": 1 / math.sqrt(200 * 9), "bias": 1 / math.sqrt(200 * 9)}),
        (lambda: nn.LSTM(30, 100), {"weight_ih_l0": 0.1, "weight_hh_l0": 0.1, "bias_ih_l0": 0.1, "bias_hh_l0": 0.1}),
        (lambda: nn.MultiheadAttention(64, 2), {"in_proj_weight": math.sqrt(6 / 256), "out_proj.weight": 1 / 8}),
    ],
)  # fmt: skip
def test_uniform_start(make: Callable[[], nn.Module], bounds: dict[str, float]) -> None:
    state = make().state_dict()
    for name, bound in bounds.items():
        values = state[name].numpy()
        assert 0.98 * bound < np.abs(values).max() <= bound * (1 + 1e-6)
        assert abs(values.std() / (bound / math.sqrt(3)) - 1) < 0.06
        assert abs(values.mean()) < 0.15 * bound


def test_other_starts() -> None:
    et.seed(0)
    weight = nn.Embedding(200, 100, padding_idx=-1).weight.numpy()
    assert abs(weight.std() - 1) < 0.02
    assert not weight[-1].any()
    assert weight[:-1].all()
    layer = nn.BatchNorm1d(3)
    assert [v.tolist() for v in layer.state_dict().values()] == [
        [1.0] * 3,
        [0.0] * 3,
        [0.0] * 3,
        [1.0] * 3,
        0,
    ]
    attention = nn.MultiheadAttention(8, 2)
    assert not attention.in_proj_bias.numpy().any()
    assert not attention.out_proj.bias.numpy().any()
    assert nn.PReLU().weight.tolist() == [0.25]


def test_seeds() -> None:
    """rng= decides alone; without it the default generator does, and it moves on."""
    makes: list[Callable[..., nn.Module]] = [
        lambda **k: nn.Linear(3, 4, **k), lambda **k: nn.Conv2d(3, 4, 3, **k), lambda **k: nn.Embedding(3, 4, **k),
        lambda **k: nn.LSTM(3, 4, **k), lambda **k: nn.TransformerEncoderLayer(8, 2, 16, **k),
    ]  # fmt: skip

    def values(module: nn.Module) -> list[Any]:
        return [v.tolist() for v in module.state_dict().values()]

    for make in makes:
        assert values(make(rng=5)) == values(make(rng=5)) != values(make(rng=6))
        et.seed(3)
        first, second = values(make()), values(make())
        et.seed(3)
        assert values(make()) == first != second
        assert make(rng=np.random.default_rng(0)).state_dict()
        with pytest.raises(TypeError, match="rng"):
            make(rng="x")


def same(layer: nn.Module, inputs: tuple[Any, ...], expected: et.ExTensor) -> None:
    np.testing.assert_array_equal(layer(*inputs).numpy(), expected.numpy())


def test_layers_are_their_functions() -> None:
    x, image, row = t(5, 4), t(2, 4, 9, 8), t(2, 4, 11)
    linear, conv, conv1 = nn.Linear(4, 3), nn.Conv2d(4, 6, 3, 2, 1, 1, 2), nn.Conv1d(4, 6, 3, 2, 1, 2, 2)
    same(linear, (x,), et.linear(x, linear.weight, linear.bias))
    same(conv, (image,), et.conv2d(image, conv.weight, conv.bias, stride=2, padding=1, groups=2))
    same(conv1, (row,), et.conv1d(row, conv1.weight, conv1.bias, stride=2, padding=1, dilation=2, groups=2))
    back = nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2)
    same(back, (image,), et.conv_transpose2d(image, back.weight, back.bias, 2, 1, 1, 2, 1))
    same(nn.MaxPool2d(3, 2, 1), (image,), et.max_pool2d(image, 3, 2, 1))
    same(nn.MaxPool2d(3, ceil_mode=True), (image,), et.max_pool2d(image, 3, ceil_mode=True))
    same(
        nn.AvgPool2d(3, 2, 1, False, False), (image,), et.avg_pool2d(image, 3, 2, 1, count_include_pad=False)
    )
    same(nn.AdaptiveAvgPool2d((3, 2)), (image,), et.adaptive_avg_pool2d(image, (3, 2)))
    norm, rms, group, instance = (
        nn.LayerNorm(8),
        nn.RMSNorm(8, 1e-3),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4, affine=True),
    )
    for layer in (norm, rms, group, instance):
        for p in layer.parameters():
            p.assign(RNG.normal(size=p.shape))
    same(norm, (image,), et.layer_norm(image, 8, norm.weight, norm.bias))
    same(rms, (image,), et.rms_norm(image, 8, rms.weight, 1e-3))
    same(group, (image,), et.group_norm(image, 2, group.weight, group.bias))
    same(instance, (image,), et.instance_norm(image, instance.weight, instance.bias))
    table = nn.Embedding(7, 3)
    same(table, (np.array([[1, 6]]),), et.embedding(et.tensor([[1, 6]]), table.weight))
    same(nn.Flatten(), (image,), image.reshape((2, 4 * 9 * 8)))
    same(nn.Flatten(0, 1), (image,), image.reshape((8, 9, 8)))
    same(nn.Identity(1, a=2), (x,), x)


ACTIVATIONS: list[tuple[nn.Module, Callable[[Any], Any]]] = [
    (nn.ReLU(inplace=True), et.relu), (nn.LeakyReLU(0.2), lambda x: et.leaky_relu(x, 0.2)), (nn.PReLU(), lambda x: et.prelu(x, et.tensor(0.25))),
    (nn.PReLU(3), lambda x: et.prelu(x, et.full(3, 0.25))), (nn.Sigmoid(), et.sigmoid), (nn.Tanh(), et.tanh), (nn.Softmax(1), lambda x: et.softmax(x, 1)),
    (nn.LogSoftmax(1), lambda x: et.log_softmax(x, 1)), (nn.GELU(), et.gelu), (nn.GELU("tanh"), lambda x: et.gelu(x, True)), (nn.SiLU(), et.silu), (nn.Mish(), et.mish),
    (nn.ELU(0.7), lambda x: et.elu(x, 0.7)), (nn.SELU(), et.selu), (nn.Softplus(2.0, 3.0), lambda x: et.softplus(x, 2.0, 3.0)), (nn.ReLU6(), et.relu6),
    (nn.Hardsigmoid(), et.hard_sigmoid), (nn.Hardswish(), et.hard_swish), (nn.Hardtanh(-0.5, 0.7), lambda x: et.hard_tanh(x, -0.5, 0.7)),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "function"), ACTIVATIONS, ids=[repr(layer) for layer, _ in ACTIVATIONS])
def test_activations(layer: nn.Module, function: Callable[[Any], Any]) -> None:
    x = t(4, 3, 5) * 4
    same(layer, (x,), function(x))


P, Q = (et.tensor(RNG.uniform(0.1, 0.9, (4, 3)), et.float32) for _ in range(2))
SIGNS = et.tensor([1.0, -1.0, 1.0, -1.0])
LOSSES: list[tuple[type[nn.Module], dict[str, Any], tuple[Any, ...], Callable[..., Any]]] = [
    (nn.MSELoss, {}, (P, Q), et.mean_squared_error), (nn.L1Loss, {}, (P, Q), et.mean_absolute_error), (nn.SmoothL1Loss, {"beta": 0.3}, (P, Q), et.smooth_l1),
    (nn.HuberLoss, {"delta": 0.3}, (P, Q), et.huber), (nn.BCELoss, {"weight": Q}, (P, Q), et.binary_cross_entropy), (nn.BCEWithLogitsLoss, {"pos_weight": et.full(3, 2.0)}, (P, Q), et.binary_cross_entropy_with_logits),
    (nn.FocalLoss, {"alpha": 0.4, "gamma": 1.5}, (P, Q), et.focal), (nn.HingeLoss, {}, (SIGNS * 0.3, SIGNS), et.hinge), (nn.TripletMarginLoss, {"margin": 0.5, "p": 1.0}, (P, Q, P * 2), et.triplet_margin),
    (nn.CosineEmbeddingLoss, {"margin": 0.2}, (P, Q, SIGNS), et.cosine_embedding), (nn.CrossEntropyLoss, {"weight": et.tensor([1.0, 2.0, 3.0]), "label_smoothing": 0.1}, (P, et.tensor([0, 1, 2, 1])), et.cross_entropy),
]  # fmt: skip


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("loss", "options", "inputs", "function"), LOSSES, ids=lambda v: getattr(v, "__name__", "")
)
def test_losses(loss: Any, options: dict[str, Any], inputs: Any, function: Any, reduction: str) -> None:
    same(loss(reduction=reduction, **options), inputs, function(*inputs, reduction=reduction, **options))


@pytest.mark.parametrize("loss", [row[0] for row in LOSSES] + [nn.KLDivLoss])
def test_a_loss_knows_its_reductions(loss: type[nn.Module]) -> None:
    with pytest.raises(ValueError, match=rf"^\[{loss.__name__}\] reduction"):
        loss(reduction="median")


def test_cross_entropy_has_its_classes_on_axis_1() -> None:
    logits, labels = t(2, 3, 4, 5), np.random.default_rng(1).integers(0, 3, (2, 4, 5))
    labels[0, 0, 0] = -100  # PyTorch's label for "does not count"
    loss = nn.CrossEntropyLoss()
    same(loss, (logits, labels), et.cross_entropy(logits, et.tensor(labels), axis=1, ignore_index=-100))
    same(
        loss,
        (logits[0, :, 0, 1], labels[0, 0, 1]),
        et.cross_entropy(logits[0, :, 0, 1], et.tensor(labels[0, 0, 1]), axis=0),
    )
    soft = et.softmax(t(2, 3), 1)
    same(loss, (logits[:, :, 0, 0], soft), et.cross_entropy(logits[:, :, 0, 0], soft, axis=1))


def test_kl_divergence_of_logarithms() -> None:
    p, q = et.softmax(t(4, 3)), et.softmax(t(4, 3))
    per_row = et.kl_divergence(p, q, reduction="none").numpy()
    for log_target, target in ((False, p), (True, p.log())):
        made = {
            r: nn.KLDivLoss(r, log_target)(q.log(), target).numpy()
            for r in ("mean", "batchmean", "sum", "none")
        }
        np.testing.assert_allclose(made["none"].sum(-1), per_row, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(
            [made["sum"], made["batchmean"] * 4, made["mean"] * 12], [per_row.sum()] * 3, rtol=1e-4
        )
    zero = et.tensor([[0.0, 1.0]])
    logits = et.tensor([[-np.inf, 0.0]], requires_grad=True)
    loss = nn.KLDivLoss(reduction="sum")(logits, zero)
    loss.backward()
    assert (loss.item(), logits.grad.tolist()) == (0.0, [[0.0, -1.0]])
    with pytest.raises(ValueError, match=r"\[KLDivLoss\] input has shape"):
        nn.KLDivLoss()(et.zeros((2, 3)), et.zeros(3))
