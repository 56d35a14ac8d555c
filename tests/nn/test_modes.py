"""Training and evaluation: batch statistics, dropout; attention with masks; recurrent layers against their cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn

RNG = np.random.default_rng(0)


def t(*shape: int) -> et.ExTensor:
    return et.tensor(RNG.normal(size=shape))


@pytest.mark.parametrize("momentum", [0.1, 0.5, None])
def test_batch_norm_keeps_running_statistics(momentum: float | None) -> None:
    layer = nn.BatchNorm2d(3, momentum=momentum, dtype=et.float64)
    mean, var = np.zeros(3), np.ones(3)
    for batch in range(1, 5):
        x = t(4, 3, 5, 2) * 3 + 1
        out = layer(x).numpy()
        np.testing.assert_allclose(out.mean((0, 2, 3)), 0, atol=1e-12)
        np.testing.assert_allclose(out.var((0, 2, 3)), 1, rtol=1e-5)
        step = 1 / batch if momentum is None else momentum
        mean = (1 - step) * mean + step * x.numpy().mean((0, 2, 3))
        var = (1 - step) * var + step * x.numpy().var((0, 2, 3), ddof=1)
    assert layer.num_batches_tracked.item() == 4
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-12)
    assert not layer.running_mean.requires_grad  # or every step would hold on to all before it
    layer.eval()
    x = t(4, 3, 5, 2)
    expected = (x.numpy() - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-10)
    assert layer.num_batches_tracked.item() == 4


def test_batch_norm_without_statistics_uses_the_batch_always() -> None:
    layer = nn.BatchNorm1d(3, track_running_stats=False, affine=False)
    x = t(8, 3).astype("float32")
    np.testing.assert_array_equal(layer(x).numpy(), layer.eval()(x).numpy())
    assert not layer.state_dict()


def test_dropout() -> None:
    layer = nn.Dropout(0.25, rng=0)
    x = et.ones(10_000)
    out = layer(x).numpy()
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((out == 0).mean() - 0.25) < 0.02
    assert not np.array_equal(out, layer(x).numpy())
    np.testing.assert_array_equal(nn.Dropout(0.25, rng=0)(x).numpy(), out)
    assert layer.eval()(x) is x
    assert nn.Dropout(0.0)(x) is x
    assert not nn.Dropout(1.0)(x).numpy().any()
    et.seed(7)
    first = nn.Dropout()(x).tolist()
    et.seed(7)
    assert nn.Dropout()(x).tolist() == first


def test_modes_reach_everything_inside() -> None:
    net = nn.Sequential(nn.Dropout(), nn.ModuleList([nn.BatchNorm1d(2)]), nn.TransformerEncoderLayer(4, 2, 8))
    assert all(m.training for m in net.modules())
    net.eval()
    assert not any(m.training for m in net.modules())
    assert net.train() is net
    assert all(m.training for m in net.modules())


# Attention


def attention_by_hand(
    layer: nn.MultiheadAttention, x: np.ndarray, hidden: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """x (N, L, E); hidden is added to the scores."""
    n, length, width = x.shape
    projected = x @ layer.in_proj_weight.numpy().T + layer.in_proj_bias.numpy()
    q, k, v = (
        part.reshape(n, length, layer.num_heads, -1).transpose(0, 2, 1, 3)
        for part in np.split(projected, 3, -1)
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + hidden
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = (weights @ v).transpose(0, 2, 1, 3).reshape(n, length, width)
    return out @ layer.out_proj.weight.numpy().T + layer.out_proj.bias.numpy(), weights


BLOCKED = np.triu(np.ones((5, 5), bool), 1)
PADDED = np.array([[False] * 5, [False, False, False, True, True]])
MASKS: dict[str, tuple[dict[str, Any], Any]] = {
    "none": ({}, 0.0),
    "causal": ({"is_causal": True}, np.where(BLOCKED, -np.inf, 0)),
    "boolean": ({"attn_mask": BLOCKED}, np.where(BLOCKED, -np.inf, 0)),
    "floating": ({"attn_mask": np.where(BLOCKED, -1.5, 0.5)}, np.where(BLOCKED, -1.5, 0.5)),
    "padding": ({"key_padding_mask": PADDED}, np.where(PADDED, -np.inf, 0)[:, None, None]),
    "both": ({"key_padding_mask": PADDED, "attn_mask": BLOCKED}, np.where(PADDED[:, None, None] | BLOCKED, -np.inf, 0)),
    "mixed": (
        {"key_padding_mask": PADDED, "attn_mask": np.where(BLOCKED, -1.5, 0.5)},
        np.where(PADDED, -np.inf, 0)[:, None, None] + np.where(BLOCKED, -1.5, 0.5),
    ),
    "by head": ({"attn_mask": np.stack([BLOCKED, BLOCKED & False] * 2)}, np.where(np.stack([BLOCKED, BLOCKED & False]), -np.inf, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_attention(name: str, need_weights: bool, batch_first: bool) -> None:
    options, hidden = MASKS[name]
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first, dtype=et.float64, rng=0)
    x = t(2, 5, 8)
    given = x if batch_first else x.swapaxes(0, 1)
    out, weights = layer(
        given, given, given, need_weights=need_weights, average_attn_weights=False, **options
    )
    again, _ = layer(given, given + 0, given + 0, need_weights=need_weights, **options)
    expected, expected_weights = attention_by_hand(layer, x.numpy(), hidden)
    np.testing.assert_allclose(
        (out if batch_first else out.swapaxes(0, 1)).numpy(), expected, rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(again.numpy(), out.numpy(), rtol=1e-12, atol=1e-14)
    if need_weights:
        np.testing.assert_allclose(weights.numpy(), expected_weights, rtol=1e-10, atol=1e-15)
        mean = layer(given, given, given, **options)[1]
        np.testing.assert_allclose(mean.numpy(), expected_weights.mean(1), rtol=1e-10, atol=1e-15)
    else:
        assert weights is None


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_that_sees_nothing(need_weights: bool) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True, rng=0)
    x = et.tensor(RNG.normal(size=(1, 3, 8)), et.float32, requires_grad=True)
    mask = np.zeros((3, 3), bool)
    mask[1] = True
    out, _ = layer(x, x, x, attn_mask=mask, need_weights=need_weights)
    np.testing.assert_array_equal(out[0, 1].numpy(), layer.out_proj.bias.numpy())
    out.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert all(np.isfinite(p.grad.numpy()).all() for p in layer.parameters())


def test_attention_without_a_batch_and_with_dropout() -> None:
    layer = nn.MultiheadAttention(8, 2, dropout=0.5, dtype=et.float64, rng=0)
    x = t(5, 8)
    first, second = (layer(x, x, x, need_weights=False)[0].numpy() for _ in range(2))
    assert not np.allclose(first, second)
    out, weights = layer.eval()(x, x, x)
    expected, _ = attention_by_hand(layer, x.numpy()[None], 0.0)
    np.testing.assert_allclose(out.numpy(), expected[0], rtol=1e-10, atol=1e-12)
    assert weights.shape == (5, 5)


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layer(norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.3, "gelu", batch_first=True, norm_first=norm_first, rng=0)
    x = t(2, 5, 8).astype("float32")
    assert not np.array_equal(layer(x).numpy(), layer(x).numpy())
    layer.eval()

    def attend(y: et.ExTensor) -> et.ExTensor:
        return layer.self_attn(y, y, y, need_weights=False, is_causal=True)[0]

    def feed(y: et.ExTensor) -> et.ExTensor:
        return layer.linear2(et.gelu(layer.linear1(y)))

    if norm_first:
        expected = x + attend(layer.norm1(x))
        expected = expected + feed(layer.norm2(expected))
    else:
        expected = layer.norm1(x + attend(x))
        expected = layer.norm2(expected + feed(expected))
    np.testing.assert_array_equal(layer(x, is_causal=True).numpy(), expected.numpy())
    masked = layer(x, np.triu(np.ones((5, 5), bool), 1))
    np.testing.assert_allclose(masked.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


# Recurrent layers


def cell(layer: Any, x: et.ExTensor, states: list[et.ExTensor], ending: str) -> list[et.ExTensor]:
    weights = [
        getattr(layer, k + ending)
        for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        if hasattr(layer, k + ending)
    ]
    if isinstance(layer, nn.LSTM):
        return list(et.lstm_cell(x, *states, *weights))
    if isinstance(layer, nn.GRU):
        return [et.gru_cell(x, *states, *weights)]
    return [et.rnn_cell(x, *states, *weights, nonlinearity=layer.nonlinearity)]


def by_cells(layer: Any, x: et.ExTensor, start: list[et.ExTensor]) -> tuple[np.ndarray, list[np.ndarray]]:
    """x (T, N, I), start (layers * directions, N, H) each."""
    directions = 2 if layer.bidirectional else 1
    final = []
    for depth in range(layer.num_layers):
        walks = []
        for direction in range(directions):
            i = depth * directions + direction
            states, outputs = [s[i] for s in start], {}
            steps = range(len(x))
            for step in reversed(steps) if direction else steps:
                states = cell(layer, x[step], states, f"_l{depth}" + ("_reverse" if direction else ""))
                outputs[step] = states[0]
            walks.append(et.stack([outputs[step] for step in steps]))
            final.append(states)
        x = et.concatenate(walks, -1)
    return x.numpy(), [np.stack([s[k].numpy() for s in final]) for k in range(len(start))]


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}]
)
@pytest.mark.parametrize("given", [True, False])
def test_recurrent(kind: Any, options: dict[str, Any], given: bool) -> None:
    layer = kind(3, 4, dtype=et.float64, rng=0, **options)
    x = t(6, 2, 3)
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    count = 2 if kind is nn.LSTM else 1
    start = [t(rows, 2, 4) if given else et.zeros((rows, 2, 4), dtype=et.float64) for _ in range(count)]
    hx = (tuple(start) if count == 2 else start[0]) if given else None
    first = layer.batch_first
    out, last = layer(x.swapaxes(0, 1) if first else x, hx)
    expected, expected_last = by_cells(layer, x, start)
    np.testing.assert_allclose(
        (out.swapaxes(0, 1) if first else out).numpy(), expected, rtol=1e-10, atol=1e-12
    )
    for a, b in zip(last if count == 2 else [last], expected_last):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-10, atol=1e-12)
    one, one_last = layer(
        x[:, 0], None if hx is None else (tuple(s[:, 0] for s in start) if count == 2 else start[0][:, 0])
    )
    np.testing.assert_allclose(one.numpy(), expected[:, 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        (one_last[0] if count == 2 else one_last).numpy(), expected_last[0][:, 0], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}]
)
@pytest.mark.parametrize("given", [True, False])
def test_an_lstm_over_rows_of_a_table(options: dict[str, Any], given: bool) -> None:
    layer = nn.LSTM(3, 4, dtype=et.float64, rng=0, **options)
    indices = et.tensor(np.random.default_rng(1).integers(0, 5, (6, 2)))
    walks = layer.num_layers * (2 if layer.bidirectional else 1)
    hx = (t(walks, 2 + 4 * layer.batch_first, 4), t(walks, 2 + 4 * layer.batch_first, 4)) if given else None
    found = []
    for of in (layer.of_rows, lambda i, table, hx: layer(et.embedding(i, table), hx)):
        table = et.tensor(np.random.default_rng(2).normal(size=(5, 3)), requires_grad=True)
        out, (h, c) = of(indices, table, hx)
        layer.zero_grad()
        (out.sin().sum() + (h * c).sum()).backward()
        found.append([out, h, c, table.grad, *(p.grad for p in layer.parameters())])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-12)


def test_dropout_between_recurrent_layers() -> None:
    layer = nn.GRU(3, 4, num_layers=2, dropout=0.5, rng=0)
    x = t(6, 2, 3).astype("float32")
    assert not np.array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())
    single = nn.GRU(3, 4, dropout=0.5, rng=0)
    np.testing.assert_array_equal(single(x)[0].numpy(), single(x)[0].numpy())
