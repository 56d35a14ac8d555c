"""The models: shapes, sizes, names, and that a few steps of training make the loss fall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import models, nn, optim
from extensor.kernels import NATIVE

RNG = np.random.default_rng(0)
TOKENS = et.tensor(RNG.integers(0, 20, (4, 9)))


def images(channels: int, size: int, count: int = 4) -> et.ExTensor:
    return et.tensor(RNG.normal(size=(count, channels, size, size)), et.float32)


CASES: dict[str, tuple[Callable[[], nn.Module], et.ExTensor, et.ExTensor, int]] = {
    "MLP": (lambda: models.MLP([5, 16, 8, 3], rng=0), et.tensor(RNG.normal(size=(8, 5)), et.float32), et.tensor(RNG.integers(0, 3, 8)), 259),
    "LeNet5": (lambda: models.LeNet5(rng=0), images(1, 28), et.tensor(RNG.integers(0, 10, 4)), 61706),
    "ResNet20": (lambda: models.ResNet20(rng=0), images(3, 8), et.tensor(RNG.integers(0, 10, 4)), 269722),
    "GPT": (lambda: models.GPT(20, 8, 2, 2, 16, rng=0), TOKENS[:, :-1], TOKENS[:, 1:], 20 * 16 + 8 * 16 + 2 * (12 * 256 + 13 * 16) + 32),
    "GPT without biases": (lambda: models.GPT(20, 8, 2, 2, 16, bias=False, rng=0), TOKENS[:, :-1], TOKENS[:, 1:], 20 * 16 + 8 * 16 + 2 * (12 * 256 + 2 * 16) + 16),
    "LSTM": (lambda: models.LSTMLanguageModel(20, 8, 16, 2, rng=0), TOKENS[:, :-1], TOKENS[:, 1:], 20 * 8 + 64 * (8 + 16 + 2) + 64 * (16 + 16 + 2) + 20 * 17),
}  # fmt: skip


def loss_of(model: nn.Module, x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
    out = model(x)
    logits = out[0] if isinstance(out, tuple) else out
    return et.cross_entropy(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,)))


@pytest.mark.parametrize("name", CASES)
def test_sizes_and_training(name: str) -> None:
    make, x, y, parameters = CASES[name]
    model = make()
    assert sum(p.size for p in model.parameters()) == parameters
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    classes = 3 if name == "MLP" else 10 if y.ndim == 1 else 20
    assert abs(losses[0] - np.log(classes)) < 1.5  # at first it knows nothing
    assert losses[-1] < 0.97 * losses[0]
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("name", CASES)
def test_state_dicts_and_seeds(name: str) -> None:
    make, x, y, _ = CASES[name]
    model, twin, other = make(), make(), make()
    states = [m.state_dict() for m in (model, twin)]
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(*(s.values() for s in states)))
    for p in other.parameters():
        p.assign(et.zeros(p.shape))
    other.load_state_dict(states[0])
    assert loss_of(other.eval(), x, y).item() == loss_of(model.eval(), x, y).item()


def test_names() -> None:
    assert list(models.MLP([2, 3, 1]).state_dict()) == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.2.weight",
        "layers.2.bias",
    ]
    assert [n for n, _ in models.LeNet5().named_children()] == ["conv1", "conv2", "pool", "fc1", "fc2", "fc3"]
    resnet = list(models.ResNet20().state_dict())
    assert resnet[:2] == ["conv1.weight", "bn1.weight"]
    assert "layer3.2.bn2.running_var" in resnet
    gpt = models.GPT(20, 8, 2, 2, 16)
    assert gpt.lm_head.weight is gpt.wte.weight
    assert "h.1.attn.c_attn.weight" in gpt.state_dict()
    assert "lstm.weight_ih_l1" in models.LSTMLanguageModel(20, num_layers=2).state_dict()


def test_gpt_sees_the_past_only() -> None:
    model = models.GPT(20, 8, 2, 2, 16, rng=0).eval()
    tokens = TOKENS[:, :8].numpy().copy()
    before = model(et.tensor(tokens)).numpy()
    tokens[:, 5:] = (tokens[:, 5:] + 1) % 20
    after = model(et.tensor(tokens)).numpy()
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert not np.allclose(before[:, 5:], after[:, 5:])


def test_gpt_starts_small_and_its_residual_projections_smaller() -> None:
    model = models.GPT(500, 8, 8, 2, 64, rng=0)
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    assert abs(state["wte.weight"].std() / 0.02 - 1) < 0.05
    assert abs(state["h.3.mlp.c_fc.weight"].std() / 0.02 - 1) < 0.05
    assert abs(state["h.3.mlp.c_proj.weight"].std() / (0.02 / 4) - 1) < 0.05
    assert not state["h.3.mlp.c_fc.bias"].any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.GPT(20, 12, n_layer=2, n_head=2, n_embd=16, rng=0),
        lambda: models.Llama(20, 12, n_layer=2, n_head=4, n_embd=16, n_kv_head=2, rng=0),
    ],
)
def test_caches_give_the_logits_of_the_whole_text(make: Callable[[], models.GPT]) -> None:
    model = make().eval()
    tokens = et.random.integers(1, 0, 20, (2, 11))
    with et.no_grad():
        whole = model(tokens).numpy()
        caches = [nn.KVCache() for _ in model.h]
        parts = [
            model(tokens[:, a:b], caches).numpy() for a, b in ((0, 4), (4, 5), (5, 9), (9, 10), (10, 11))
        ]
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"block_size 12, got \(2, 2\) after 11 others"):
        model(tokens[:, :2], caches)


@pytest.mark.parametrize("seed", range(3))
def test_generation_with_caches_draws_the_same_tokens(seed: int) -> None:
    model = models.GPT(20, 12, n_layer=2, n_head=2, n_embd=16, rng=seed).eval()
    start, rng = et.tensor([[3, 1], [4, 1]]), np.random.default_rng(seed)
    found = start
    with et.no_grad():
        for _ in range(16):  # without caches, beyond block_size too
            logits = model(found[:, -12:])[:, -1].numpy().astype(np.float64)
            rows = [[rng.choice(20, p=et.softmax(et.asarray(row)).numpy())] for row in logits]
            found = et.concatenate([found, et.asarray(rows, found.dtype)], 1)
    assert model.generate(start, 16, rng=seed).tolist() == found.tolist()


def test_gpt_generates() -> None:
    model = models.GPT(20, 8, 1, 2, 16, dropout=0.5, rng=0)
    start = [[1, 2, 3]]
    made = model.generate(start, 12, rng=1)  # longer than block_size
    assert made.shape == (1, 15)
    assert made[0, :3].tolist() == [1, 2, 3]
    assert model.training
    assert (
        made.tolist()
        == model.generate(start, 12, rng=1).tolist()
        != model.generate(start, 12, rng=2).tolist()
    )
    likeliest = model.eval()(et.tensor(start)).numpy()[0, -1].argmax()
    assert model.generate(start, 1, top_k=1, rng=0)[0, -1].item() == likeliest
    assert model.generate(start, 1, temperature=1e-3, rng=5)[0, -1].item() == likeliest


def test_lstm_goes_on_from_a_state() -> None:
    model = models.LSTMLanguageModel(20, 8, 16, 2, rng=0)
    whole, _ = model(TOKENS)
    first, state = model(TOKENS[:, :4])
    second, _ = model(TOKENS[:, 4:], state)
    np.testing.assert_allclose(
        et.concatenate([first, second], 1).numpy(), whole.numpy(), rtol=1e-5, atol=1e-6
    )


def test_lstm_in_training_gives_what_its_layers_give() -> None:
    """With more tokens than there are, each token meets the first matrix once. The native product gives the same bits for a
    row whatever its neighbours are; NumPy's does not promise it."""
    rtol, atol = (0, 0) if "lstm_sequence" in NATIVE else (1e-5, 1e-7)

    def assert_same(ours: Any, theirs: Any) -> None:
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=rtol, atol=atol)

    model = models.LSTMLanguageModel(20, 8, 16, 2, rng=0)
    logits, (h, c) = model(TOKENS)
    right, states = model.lstm(model.embedding(TOKENS))
    assert_same(logits, model.decoder(right))
    assert_same(logits, model.eval()(TOKENS)[0])
    assert_same(h, states[0])
    assert_same(c, states[1])
    one, _ = model.train()(TOKENS.reshape((-1,)))  # one long sequence
    assert_same(one, model(TOKENS.reshape((1, -1)))[0][0])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: models.MLP([3]), r"^\[MLP\] sizes"),
        (lambda: models.GPT(20, 8, 1, 3, 16), r"^\[GPT\] n_embd"),
        (lambda: models.GPT(20, 8, 1, 2, 16)(TOKENS), r"\[GPT\] tokens"),
        (lambda: models.GPT(20, 8, 1, 2, 16)(TOKENS[:, :8] + 20), r"in GPT\.wte: \[embedding\]"),
        (lambda: models.GPT(20, 8, 1, 2, 16).generate([[1]], 1, temperature=0.0, rng=0), r"^\[generate\] temperature"),
        (lambda: models.LeNet5()(images(3, 28)), r"in LeNet5\.conv1: \[conv2d\]"),
        (lambda: models.LeNet5()(images(1, 32)), r"in LeNet5\.fc1: \[linear\]"),
        (lambda: models.ResNet20()(images(1, 8)), r"in ResNet20\.conv1: \[conv2d\]"),
    ],
)  # fmt: skip
def test_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
