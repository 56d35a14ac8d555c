"""Layers against what PyTorch 2.13 computes, written down here, and against themselves: packed sequences, caches, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et

# The layer, its arguments and options, the shapes of its inputs, that of its output, and projections (sums of elements times
# fixed cosines) of the output and of the gradients of all parameters. Parameters and inputs are waves.
# fmt: off
ROWS: list[tuple[Any, ...]] = [
    ('TransformerDecoderLayer', (8, 2), {'dim_feedforward': 16, 'batch_first': True, 'dropout': 0.0}, [(2, 3, 8), (2, 5, 8)], (2, 3, 8), 0.8978347174490118, 0.22578626803150437),
    ('TransformerDecoderLayer', (8, 2), {'dim_feedforward': 16, 'dropout': 0.0, 'norm_first': True, 'activation': 'gelu'}, [(3, 2, 8), (5, 2, 8)], (3, 2, 8), 2.482713500597872, -1.4315602772521014),
    ('Transformer', (8, 2, 1, 2), {'dim_feedforward': 16, 'batch_first': True, 'dropout': 0.0}, [(2, 5, 8), (2, 3, 8)], (2, 3, 8), -0.5579438846581943, -0.3032713951217209),
    ('Conv2d', (4, 6, 3), {'padding': 2, 'padding_mode': 'reflect', 'stride': 2}, [(2, 4, 7, 8)], (2, 6, 5, 5), 0.02599877199722256, 4.325120621449869),
    ('Conv1d', (4, 6, 4), {'padding': 'same', 'padding_mode': 'circular'}, [(4, 9)], (6, 9), -1.685513681230292, 4.751010218729691),
    ('Conv3d', (2, 3, 2), {'padding': 1, 'padding_mode': 'replicate'}, [(1, 2, 3, 4, 5)], (1, 3, 4, 5, 6), 5.839180955659074, 30.33034786461196),
    ('Conv2d', (4, 6, 3), {}, [(4, 7, 8)], (6, 5, 6), 0.31828367834221205, -7.170057571365749),
    ('ConvTranspose1d', (4, 2, 3), {'stride': 2, 'output_padding': 1}, [(4, 5)], (2, 12), -1.081001224959973, -0.6717152640015339),
    ('ConvTranspose3d', (2, 4, 2), {'stride': 2, 'groups': 2}, [(1, 2, 2, 3, 2)], (1, 4, 4, 6, 4), 0.3460725377581505, -3.479154915892109),
    ('RNNCell', (3, 4), {}, [(2, 3), (2, 4)], (2, 4), 0.09908826563495343, 6.990416370578558),
    ('GRUCell', (3, 4), {}, [(2, 3), (2, 4)], (2, 4), 0.7326286963424932, 2.8148249716667038),
    ('GRUCell', (3, 4), {'bias': False}, [(3,), (4,)], (4,), 0.3105499645922808, -0.22361261139270375),
    ('ReflectionPad2d', ((1, 2, 0, 1),), {}, [(1, 2, 3, 4)], (1, 2, 4, 7), 6.927357382872934, None),
    ('ReplicationPad3d', ((1, 2, 0, 1, 2, 1),), {}, [(1, 2, 2, 3, 4)], (1, 2, 5, 4, 7), 9.556360837709509, None),
    ('CircularPad1d', (2,), {}, [(2, 3, 4)], (2, 3, 8), -3.2218042634303417, None),
    ('ZeroPad2d', ((-1, 2, 1, -1),), {}, [(2, 3, 4)], (2, 3, 5), -1.2851867841216016, None),
    ('ConstantPad1d', ((1, 2), 3.5), {}, [(2, 3)], (2, 6), -3.3128243727980236, None),
    ('Upsample', (), {'scale_factor': 2, 'mode': 'bilinear', 'align_corners': True}, [(1, 2, 3, 4)], (1, 2, 6, 8), -5.605752430316851, None),
    ('LocalResponseNorm', (3,), {'alpha': 0.5}, [(2, 5, 3)], (2, 5, 3), 0.7509959024330501, None),
    ('AdaptiveMaxPool2d', (2,), {}, [(3, 5, 7)], (3, 2, 2), -0.8442609208009779, None),
    ('MaxPool3d', (2,), {'dilation': 2, 'padding': 1}, [(2, 5, 6, 7)], (2, 3, 3, 4), 1.6584453851937382, None),
    ('AvgPool1d', (3,), {'padding': 1}, [(2, 7)], (2, 3), 0.33533012759569847, None),
    ('InstanceNorm1d', (3,), {}, [(2, 3, 5)], (2, 3, 5), 1.6821586135892868, None),
    ('BatchNorm3d', (3,), {}, [(2, 3, 2, 3, 2)], (2, 3, 2, 3, 2), 0.5571245557593797, 4.0522869168463265),
    ('Softmin', (), {'dim': 1}, [(2, 3)], (2, 3), -0.6452525235232921, None),
    ('GLU', (), {'dim': 1}, [(2, 4)], (2, 2), -0.2576429948986572, None),
    ('CELU', (0.5,), {}, [(5,)], (5,), 0.5189438204023593, None),
    ('TransformerEncoder', 'layer', {}, [(2, 5, 8)], (2, 5, 8), -0.8418334258530084, 3.2500180475811122),
]
# fmt: on


def _wave(shape: tuple[int, ...], phase: int = 0) -> np.ndarray:
    return np.sin(np.arange(int(np.prod(shape))) * 1.7 + phase).reshape(shape)


def _projected(t: et.ExTensor) -> float:
    array = t.numpy()
    return float((array * np.cos(np.arange(array.size) * 0.9 + 0.3).reshape(array.shape)).sum())


def _layer(name: str, arguments: Any, options: dict[str, Any]) -> Any:
    if name == "TransformerEncoder":
        inner = et.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True, dropout=0.0, rng=0)
        return et.nn.TransformerEncoder(inner, 2).astype(et.float64)
    return getattr(et.nn, name)(*arguments, **options).astype(et.float64)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "shapes", "shape", "result", "gradients"),
    ROWS,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(ROWS)],
)
def test_as_pytorch(
    name: str, arguments: Any, options: Any, shapes: Any, shape: Any, result: float, gradients: float | None
) -> None:
    layer = _layer(name, arguments, options)
    named = sorted(layer.named_parameters())
    for i, (_, parameter) in enumerate(named):
        parameter.assign(_wave(parameter.shape, i) * 0.4)
    y = layer(*(et.tensor(_wave(s, i)) for i, s in enumerate(shapes)))
    assert y.shape == shape
    assert _projected(y) == pytest.approx(result, rel=1e-8, abs=1e-9)
    if gradients is not None:
        y.backward(et.tensor(np.cos(np.arange(y.size) * 1.3 + 0.5).reshape(y.shape)))
        assert sum(_projected(p.grad) for _, p in named) == pytest.approx(gradients, rel=1e-7, abs=1e-8)


# Packed sequences

LENGTHS = [3, 6, 1, 4]


def test_packing_and_back() -> None:
    x = et.tensor(_wave((6, 4, 2)))
    packed = et.nn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [4, 3, 3, 2, 1, 1]
    assert packed.data.shape == (14, 2)
    y, lengths = et.nn.pad_packed_sequence(packed, padding_value=7.0, total_length=8)
    assert lengths.tolist() == LENGTHS
    for i, n in enumerate(LENGTHS):
        assert y[:n, i].tolist() == x[:n, i].tolist()
        assert (y[n:, i].numpy() == 7).all()
    again = et.nn.pack_sequence([x[:n, i] for i, n in enumerate(LENGTHS)], enforce_sorted=False)
    assert again.data.tolist() == packed.data.tolist()
    first = et.nn.pack_padded_sequence(x.swapaxes(0, 1), LENGTHS, batch_first=True, enforce_sorted=False)
    assert first.data.tolist() == packed.data.tolist()


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers_of_packed_sequences(kind: str, bidirectional: bool) -> None:
    """Each sequence comes out as it would alone, its gradients too."""
    layer = getattr(et.nn, kind)(2, 3, num_layers=2, bidirectional=bidirectional, rng=0).astype(et.float64)
    x = et.tensor(_wave((6, 4, 2)), requires_grad=True)
    rows = 4 if bidirectional else 2
    start = et.tensor(_wave((rows, 4, 3), 1))
    hx = (start, start * 0.5) if kind == "LSTM" else start
    output, last = layer(et.nn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False), hx)
    y, _ = et.nn.pad_packed_sequence(output)
    (y**2).sum().backward()
    packed_grad = x.grad
    assert packed_grad is not None
    x.grad = None
    total: Any = 0.0
    for i, n in enumerate(LENGTHS):
        alone = (hx[0][:, i : i + 1], hx[1][:, i : i + 1]) if kind == "LSTM" else hx[:, i : i + 1]
        single, state = layer(x[:n, i : i + 1], alone)
        np.testing.assert_allclose(y.numpy()[:n, i], single.numpy()[:, 0], rtol=1e-12)
        assert not y.numpy()[n:, i].any()
        for found, expected in zip(last if kind == "LSTM" else [last], state if kind == "LSTM" else [state]):
            np.testing.assert_allclose(found.numpy()[:, i], expected.numpy()[:, 0], rtol=1e-12)
        total = total + (single**2).sum()
    total.backward()
    np.testing.assert_allclose(packed_grad.numpy(), x.grad.numpy(), rtol=1e-11, atol=1e-13)


# Attention of language models


@pytest.mark.parametrize("options", [{}, {"rope_base": None}, {"head_dim": 6, "bias": True}])
def test_a_cache_gives_what_the_whole_sequence_gives(options: dict[str, Any]) -> None:
    attention = et.nn.GroupedQueryAttention(16, 4, 2, rng=0, **options).astype(et.float64)
    x = et.tensor(_wave((2, 7, 16)))
    whole = attention(x).numpy()
    for steps in ([1] * 7, [3, 1, 3], [7], [2, 5]):
        cache, parts, start = et.nn.KVCache(), [], 0
        for n in steps:
            parts.append(attention(x[:, start : start + n], cache=cache).numpy())
            start += n
        np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=1e-6, atol=1e-7)
        assert len(cache) == 7
        cache.reset()
        assert len(cache) == 0


def test_groups_share_keys() -> None:
    """With copies of the shared heads it is attention with as many heads of keys."""
    shared = et.nn.GroupedQueryAttention(8, 4, 2, rng=0)
    full = et.nn.GroupedQueryAttention(8, 4, 4, rng=1)
    for name in ("q_proj", "o_proj"):
        getattr(full, name).weight.assign(getattr(shared, name).weight)
    for name in ("k_proj", "v_proj"):
        heads = getattr(shared, name).weight.reshape((2, 2, 8))
        getattr(full, name).weight.assign(et.repeat(heads, 2, 0).reshape((8, 8)))
    x = et.tensor(_wave((1, 5, 8)).astype(np.float32))
    np.testing.assert_allclose(shared(x).numpy(), full(x).numpy(), rtol=1e-5, atol=1e-6)


def test_rotary_positions_are_relative() -> None:
    rotary = et.nn.RotaryEmbedding(8)
    q, k = (et.tensor(_wave((1, 8), i)) for i in range(2))
    scores = [float((rotary(q, offset=i) * rotary(k, offset=i + 3)).sum()) for i in (0, 5, 100)]
    np.testing.assert_allclose(scores, scores[0], rtol=1e-4)
    pairs = et.nn.RotaryEmbedding(8, interleaved=True)(q)
    np.testing.assert_allclose((pairs**2).sum().item(), (q**2).sum().item(), rtol=1e-6)


# Dropout of channels


@pytest.mark.parametrize(
    ("layer", "shape"),
    [("Dropout1d", (8, 50, 3)), ("Dropout2d", (8, 50, 2, 3)), ("Dropout3d", (8, 50, 2, 1, 3))],
)
def test_channels_are_dropped_whole(layer: str, shape: tuple[int, ...]) -> None:
    drop = getattr(et.nn, layer)(0.25, rng=0)
    y = drop(et.ones(shape)).numpy().reshape(*shape[:2], -1)
    assert (y == y[..., :1]).all()
    assert set(np.unique(y).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert 0.15 < (y[..., 0] == 0).mean() < 0.35
    assert (drop.eval()(et.ones(shape)).numpy() == 1).all()
    assert drop.train()(et.ones(shape[1:])).shape == shape[1:]


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = et.random.normal(0, (200_000,), dtype=et.float64)
    y = et.nn.AlphaDropout(0.3, rng=1)(x).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1) < 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: et.nn.Conv2d(1, 1, 2, padding_mode="mirror"), r"\[Conv2d\] padding_mode must be one of"),
        (lambda: et.nn.ConvTranspose2d(1, 1, 2, padding_mode="reflect"), "padding_mode must be 'zeros'"),
        (lambda: et.nn.MaxPool1d(2, padding=2), r"\[MaxPool1d\] padding \(2,\) must be at most half"),
        (lambda: et.nn.MaxPool3d(2, dilation=0), "dilation must be at least 1"),
        (lambda: et.nn.AdaptiveMaxPool3d((1, 2)), "output_size must be an int or 3 of them"),
        (lambda: et.nn.MaxUnpool2d(2)(et.ones((1, 1, 1, 1)), et.zeros((1, 1, 1, 2), et.int64)), "must have one shape"),
        (lambda: et.nn.ReflectionPad1d(-1), "padding must not be negative"),
        (lambda: et.nn.ReflectionPad1d(3)(et.ones((1, 1, 3))), r"is more than x of shape \(1, 1, 3\) can fill"),
        (lambda: et.nn.ZeroPad2d((1, 2, 3)), "padding must be an int or 4 of them"),
        (lambda: et.nn.ZeroPad1d(-2)(et.ones((1, 3))), "takes off more than x"),
        (lambda: et.nn.ZeroPad2d(1)(et.ones((3, 3))), r"\[ZeroPad2d\] x must have 3 or 4 axes"),
        (lambda: et.nn.Upsample(), r"\[Upsample\] give either size or scale_factor"),
        (lambda: et.nn.Dropout2d()(et.ones((2, 2))), r"\[Dropout2d\] x must have 3 or 4 axes"),
        (lambda: et.nn.RNNCell(2, 3, nonlinearity="sin"), "nonlinearity must be 'tanh' or 'relu'"),
        (lambda: et.nn.GRUCell(2, 3)(et.ones((1, 3))), r"\[GRUCell\] x must be \(N, 2\)"),
        (lambda: et.nn.LSTMCell(2, 3)(et.ones((1, 2)), (et.ones((1, 2)), et.ones((1, 3)))), "a state has shape"),
        (lambda: et.nn.SwiGLU()(et.ones(3)), r"\[SwiGLU\] axis -1 of x must have an even length"),
        (lambda: et.nn.TransformerDecoderLayer(4, 2, activation="sin"), "activation must be"),
        (lambda: et.nn.GroupedQueryAttention(8, 4, 3), r"num_heads \(4\) must be divisible by num_kv_heads \(3\)"),
        (lambda: et.nn.RotaryEmbedding(3), "dim must be even"),
        (lambda: et.nn.KVCache().update(et.ones((1, 2)), et.ones((2, 2))), "must have the same positions"),
        (lambda: et.nn.pack_padded_sequence(et.ones((3, 2)), [1, 2]), "pass enforce_sorted=False"),
        (lambda: et.nn.pack_padded_sequence(et.ones((3, 2)), [4, 2]), "numbers between 1 and 3"),
        (lambda: et.nn.pad_sequence([et.ones((2, 1)), et.ones((2, 2))]), "differ beyond their lengths"),
        (lambda: et.nn.pad_packed_sequence(et.nn.pack_sequence([et.ones(3)]), total_length=2), "less than the longest"),
        (lambda: et.nn.Softmax2d()(et.ones(3)), r"\[Softmax2d\] x must have 3 or 4 axes"),
        (lambda: et.nn.Unflatten(2, (1, 2))(et.ones((1, 2))), "dim 2 is out of range"),
    ],
)  # fmt: skip
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
