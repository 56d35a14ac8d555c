"""Checkpoints of GPT-2 and Llama kind, against the architectures written out in NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.convert import load_gpt, load_tokenizer

VOCABULARY, WIDTH, HEADS, SHARED, INNER, LAYERS, LENGTH = 17, 24, 4, 2, 40, 2, 16
SIZE = WIDTH // HEADS
TOKENS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def draw(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)


def save(folder: Path, config: dict[str, Any], weights: dict[str, np.ndarray]) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    et.train.save_weights(folder / "model.safetensors", weights)
    return folder


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    """To the rounding of float32, relative to the largest logit."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(N, heads, T, size) each; query i sees the keys up to i."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    seen = np.tril(np.ones(scores.shape[-2:], bool))
    return softmax(np.where(seen, scores, -np.inf)) @ v


def apart(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape((*x.shape[:2], heads, -1)).swapaxes(1, 2)


def together(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(1, 2).reshape((x.shape[0], x.shape[2], -1))


# GPT-2

GPT2 = {
    "model_type": "gpt2", "vocab_size": VOCABULARY, "n_positions": LENGTH, "n_embd": WIDTH, "n_layer": LAYERS,
    "n_head": HEADS, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
}  # fmt: skip


def gpt2_weights() -> dict[str, np.ndarray]:
    found = {"wte.weight": draw(VOCABULARY, WIDTH, seed=0), "wpe.weight": draw(LENGTH, WIDTH, seed=1)}
    shapes = {
        "ln_1.weight": (WIDTH,), "ln_1.bias": (WIDTH,), "attn.c_attn.weight": (WIDTH, 3 * WIDTH),
        "attn.c_attn.bias": (3 * WIDTH,), "attn.c_proj.weight": (WIDTH, WIDTH), "attn.c_proj.bias": (WIDTH,),
        "ln_2.weight": (WIDTH,), "ln_2.bias": (WIDTH,), "mlp.c_fc.weight": (WIDTH, 4 * WIDTH),
        "mlp.c_fc.bias": (4 * WIDTH,), "mlp.c_proj.weight": (4 * WIDTH, WIDTH), "mlp.c_proj.bias": (WIDTH,),
    }  # fmt: skip
    for layer in range(LAYERS):
        for i, (name, shape) in enumerate(shapes.items()):
            found[f"h.{layer}.{name}"] = draw(*shape, seed=10 + 20 * layer + i)
    found |= {"ln_f.weight": draw(WIDTH, seed=2), "ln_f.bias": draw(WIDTH, seed=3)}
    return found


def gpt2(w: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    def norm(x: np.ndarray, name: str) -> np.ndarray:
        off = x - x.mean(-1, keepdims=True)
        return (
            off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]
        )

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def gelu(x: np.ndarray) -> np.ndarray:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    w = {k: v.astype(np.float64) for k, v in w.items()}
    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        h = f"h.{layer}"
        parts = np.split(dense(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn"), 3, -1)
        x = x + dense(together(attend(*(apart(p, HEADS) for p in parts))), f"{h}.attn.c_proj")
        x = x + dense(gelu(dense(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc")), f"{h}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt2(prefix: str, tmp_path: Path) -> None:
    weights = gpt2_weights()
    stored = {prefix + name: array for name, array in weights.items()}
    stored |= {f"{prefix}h.0.attn.bias": np.ones((1, 1, 4, 4), np.float32)}  # a mask that old files have
    net = load_gpt(save(tmp_path, GPT2, stored))
    assert isinstance(net, et.models.GPT)
    assert not net.training
    assert_near(net(et.tensor(TOKENS)).numpy(), gpt2(weights, TOKENS))


# Llama

LLAMA = {
    "model_type": "llama", "vocab_size": VOCABULARY, "max_position_embeddings": LENGTH, "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": SHARED, "intermediate_size": INNER,
    "rms_norm_eps": 1e-5, "rope_theta": 500.0, "hidden_act": "silu",
}  # fmt: skip


def llama_weights() -> dict[str, np.ndarray]:
    found = {"model.embed_tokens.weight": draw(VOCABULARY, WIDTH, seed=0)}
    shapes = {
        "input_layernorm.weight": (WIDTH,), "self_attn.q_proj.weight": (WIDTH, WIDTH),
        "self_attn.k_proj.weight": (SHARED * SIZE, WIDTH), "self_attn.v_proj.weight": (SHARED * SIZE, WIDTH),
        "self_attn.o_proj.weight": (WIDTH, WIDTH), "post_attention_layernorm.weight": (WIDTH,),
        "mlp.gate_proj.weight": (INNER, WIDTH), "mlp.up_proj.weight": (INNER, WIDTH), "mlp.down_proj.weight": (WIDTH, INNER),
    }  # fmt: skip
    for layer in range(LAYERS):
        for i, (name, shape) in enumerate(shapes.items()):
            found[f"model.layers.{layer}.{name}"] = draw(*shape, seed=10 + 20 * layer + i)
    found |= {"model.norm.weight": draw(WIDTH, seed=2), "lm_head.weight": draw(VOCABULARY, WIDTH, seed=3)}
    return found


def llama(w: dict[str, np.ndarray], tokens: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"]

    def turned(x: np.ndarray) -> np.ndarray:
        angle = np.arange(x.shape[2])[:, None] * speeds
        points = (x[..., : SIZE // 2] + 1j * x[..., SIZE // 2 :]) * np.exp(1j * angle)
        return np.concatenate([points.real, points.imag], -1)

    w = {k: v.astype(np.float64) for k, v in w.items()}
    x = w["model.embed_tokens.weight"][tokens]
    for layer in range(LAYERS):
        h = f"model.layers.{layer}"
        y = norm(x, f"{h}.input_layernorm")
        q, k, v = (y @ w[f"{h}.self_attn.{n}_proj.weight"].T for n in "qkv")
        q, k, v = turned(apart(q, HEADS)), turned(apart(k, SHARED)), apart(v, SHARED)
        k, v = (np.repeat(t, HEADS // SHARED, 1) for t in (k, v))
        x = x + together(attend(q, k, v)) @ w[f"{h}.self_attn.o_proj.weight"].T
        y = norm(x, f"{h}.post_attention_layernorm")
        gate, up = (y @ w[f"{h}.mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{h}.mlp.down_proj.weight"].T
    return norm(x, "model.norm") @ w["lm_head.weight"].T


SPEEDS = 500.0 ** -(np.arange(0, SIZE, 2) / SIZE)


@pytest.mark.parametrize(
    ("options", "speeds"),
    [
        ({}, SPEEDS),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, SPEEDS / 4),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 10.0}},
            10.0 ** -(np.arange(0, SIZE, 2) / SIZE),
        ),
    ],
)
def test_llama(options: dict[str, Any], speeds: np.ndarray, tmp_path: Path) -> None:
    weights = llama_weights()
    net = load_gpt(save(tmp_path, LLAMA | options, weights))
    assert isinstance(net, et.models.Llama)
    assert_near(net(et.tensor(TOKENS)).numpy(), llama(weights, TOKENS, speeds))


def test_llama_trains_and_writes(tmp_path: Path) -> None:
    net = load_gpt(save(tmp_path, LLAMA, llama_weights()))
    tokens = et.tensor(TOKENS)
    et.cross_entropy(net(tokens), tokens).backward()
    assert all(p.grad is not None for p in net.parameters())
    assert net.generate(tokens, 3, rng=0).shape == (2, 8)


def test_shared_matrix(tmp_path: Path) -> None:
    weights = llama_weights()
    del weights["lm_head.weight"]
    net = load_gpt(save(tmp_path, LLAMA | {"tie_word_embeddings": True}, weights))
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    assert_near(net(et.tensor(TOKENS)).numpy(), llama(weights, TOKENS, SPEEDS))


def test_weights_in_pieces(tmp_path: Path) -> None:
    weights = llama_weights()
    place = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(weights)}
    for file in set(place.values()):
        et.train.save_weights(tmp_path / file, {n: a for n, a in weights.items() if place[n] == file})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    found = load_gpt(tmp_path)(et.tensor(TOKENS)).numpy()
    assert_near(found, llama(weights, TOKENS, SPEEDS))


class TestRefusals:
    @pytest.mark.parametrize(
        "change",
        [
            {"model_type": "bert"}, {"hidden_act": "gelu"}, {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
            {"model_type": "mistral", "sliding_window": 4},
        ],
    )  # fmt: skip
    def test_what_is_computed_differently(self, change: dict[str, Any], tmp_path: Path) -> None:
        with pytest.raises(NotImplementedError, match=r"not supported"):
            load_gpt(save(tmp_path, LLAMA | change, llama_weights()))

    @pytest.mark.parametrize(
        "change", [{"vocab_size": -3}, {"hidden_size": "24"}, {"num_hidden_layers": None}]
    )
    def test_damaged_configurations(self, change: dict[str, Any], tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="does not describe a model"):
            load_gpt(save(tmp_path, LLAMA | change, llama_weights()))

    def test_weights_that_do_not_fit(self, tmp_path: Path) -> None:
        weights = llama_weights()
        del weights["model.norm.weight"]
        with pytest.raises(ValueError, match=r"missing: ln_f\.weight"):
            load_gpt(save(tmp_path, LLAMA, weights))

    @pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/passwd", ".hidden"])
    def test_pieces_outside_of_the_folder(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(LLAMA))
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
        with pytest.raises(ValueError, match="names the file"):
            load_gpt(tmp_path)

    def test_no_tokenizer(self, tmp_path: Path) -> None:
        with pytest.raises((FileNotFoundError, ModuleNotFoundError), match="load_tokenizer"):
            load_tokenizer(tmp_path)
