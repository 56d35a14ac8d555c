"""Checkpoints of language models in the layout of Hugging Face: a folder with config.json and weights."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..data import DamagedFileError
from ..errors import describe
from ..models import GPT, Llama
from ..nn import GELU, LayerNorm
from .weights import load_weights

__all__ = ["load_gpt", "load_tokenizer"]


def load_gpt(folder: Any) -> GPT:
    """A language model from a folder with ``config.json`` and weights, of GPT-2 or Llama kind; in evaluation mode.

    Known kinds (``model_type``): ``gpt2``; ``llama``, and ``mistral`` and ``qwen2``, which are computed alike. An option that
    changes the computation and is not known here is an error that names it.

    Args:
        folder: holds ``config.json`` and ``model.safetensors`` (in one piece or several), or ``pytorch_model.bin``.

    Returns:
        A :class:`extensor.models.GPT`; for the Llama kinds a :class:`extensor.models.Llama`, which is one.

    Example:
        >>> import extensor as et
        >>> et.convert.load_gpt("nowhere")
        Traceback (most recent call last):
        FileNotFoundError: [load_gpt] nowhere has no config.json
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"[load_gpt] folder must be a str or a pathlib.Path, got {describe(folder)}")
    place = Path(folder)
    config = _json(place / "config.json")
    kind = config.get("model_type")
    if kind not in _KINDS:
        raise NotImplementedError(
            f"[load_gpt] the model_type {kind!r} is not supported; known are {', '.join(_KINDS)}"
        )
    weights = _weights(place)
    try:
        model, state = _KINDS[kind](_Config(config), weights)
    except (KeyError, TypeError) as error:
        raise DamagedFileError(
            f"[load_gpt] {place / 'config.json'} does not describe a model: {error}"
        ) from None
    model.load_state_dict(state)
    return model.eval()


def load_tokenizer(folder: Any) -> Any:
    """The tokenizer of a folder: a ``tokenizers.Tokenizer`` from its ``tokenizer.json``.

    Needs ``pip install tokenizers``, the extra ``tokenizers``.

    Example:
        >>> import extensor as et
        >>> tokenizer = et.convert.load_tokenizer("gpt2")  # doctest: +SKIP
        >>> tokenizer.encode("Hello world").ids  # doctest: +SKIP
        [15496, 995]
    """
    try:
        import tokenizers
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "[load_tokenizer] needs the tokenizers package: pip install tokenizers (the extra 'tokenizers' of ExTensor)"
        ) from None
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"[load_tokenizer] {folder} has no tokenizer.json")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise DamagedFileError(f"[load_tokenizer] {path} is no tokenizer: {error}") from None


# Files


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"[load_gpt] {path.parent} has no {path.name}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"[load_gpt] {path} is damaged: {error}") from None
    if not isinstance(found, dict):
        raise DamagedFileError(f"[load_gpt] {path} is no JSON object")
    return found


def _weights(folder: Path) -> dict[str, np.ndarray]:
    """All tensors of the folder; pieces are files beside the index, and nowhere else."""
    for whole, index in (
        ("model.safetensors", "model.safetensors.index.json"), ("pytorch_model.bin", "pytorch_model.bin.index.json"),
    ):  # fmt: skip
        if (folder / whole).is_file():
            return load_weights(folder / whole)
        if (folder / index).is_file():
            table = _json(folder / index).get("weight_map")
            if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
                raise DamagedFileError(f"[load_gpt] {folder / index} has no weight_map")
            found: dict[str, np.ndarray] = {}
            for name in sorted(set(table.values())):
                if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
                    raise DamagedFileError(f"[load_gpt] {folder / index} names the file {name!r}")
                found.update(load_weights(folder / name))
            return found
    raise FileNotFoundError(f"[load_gpt] {folder} has neither model.safetensors nor pytorch_model.bin")


class _Config:
    """The options of a model; what is asked for and not there is an error, what must be so is checked."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def number(self, *names: str, otherwise: int | None = None) -> int:
        """A whole number above 0, under the first of the names that is there."""
        value = next((self.values[n] for n in names if self.values.get(n) is not None), otherwise)
        if type(value) is not int or not 0 < value < 1 << 31:
            raise TypeError(f"{names[0]} is {value!r}")
        return value

    def real(self, name: str, otherwise: float) -> float:
        """A number."""
        value = self.values.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is {value!r}")
        return float(value)

    def must_be(self, name: str, *allowed: Any) -> Any:
        """An option that is only known with these values; the first is what it is when it is absent."""
        value = self.values.get(name, allowed[0])
        if value not in allowed:
            raise NotImplementedError(f"[load_gpt] the option {name} = {value!r} is not supported")
        return value


# Kinds


def _gpt2(config: _Config, weights: dict[str, np.ndarray]) -> tuple[GPT, dict[str, np.ndarray]]:
    """GPT-2; its linear layers are stored transposed."""
    width = config.number("n_embd")
    config.must_be("scale_attn_weights", True)
    config.must_be("scale_attn_by_inverse_layer_idx", False)
    config.must_be("tie_word_embeddings", True)
    config.must_be("n_inner", None, 4 * width)
    activation = config.must_be("activation_function", "gelu_new", "gelu", "gelu_pytorch_tanh")
    model = GPT(
        config.number("vocab_size"), config.number("n_positions", "n_ctx"), config.number("n_layer"),
        config.number("n_head"), width, rng=0,
    )  # fmt: skip
    eps = config.real("layer_norm_epsilon", 1e-5)
    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.eps = eps
    if activation != "gelu":
        for block in model.h:
            block.mlp.gelu = GELU("tanh")  # type: ignore[attr-defined]
    state: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        name = name.removeprefix("transformer.")
        if re.search(r"\.attn\.(masked_)?bias$", name) or name == "lm_head.weight":
            continue  # masks, and the matrix that is the token embedding
        state[name] = array.T if re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", name) else array
    state["lm_head.weight"] = state["wte.weight"]
    return model, state


_LLAMA_NAMES = {
    "model.embed_tokens.weight": "wte.weight",
    "model.norm.weight": "ln_f.weight",
    "lm_head.weight": "lm_head.weight",
}
_LLAMA_LAYER = {
    "input_layernorm": "ln_1",
    "post_attention_layernorm": "ln_2",
    "self_attn": "attn",
    "mlp": "mlp",
}


def _llama(config: _Config, weights: dict[str, np.ndarray]) -> tuple[GPT, dict[str, np.ndarray]]:
    """Llama, Mistral and Qwen2."""
    kind = config.values["model_type"]
    positions = config.number("max_position_embeddings", otherwise=2048)
    config.must_be("hidden_act", "silu")
    window = config.values.get("sliding_window")
    if (
        window is not None
        and window < positions
        and config.values.get("use_sliding_window", kind == "mistral")
    ):
        raise NotImplementedError(f"[load_gpt] the option sliding_window = {window!r} is not supported")
    rope = config.values.get("rope_parameters") or config.values.get("rope_scaling") or {}
    theta = rope.get("rope_theta", config.values.get("rope_theta", 10000.0))
    heads = config.number("num_attention_heads")
    bias = kind == "qwen2" or bool(config.values.get("attention_bias", False))
    tied = bool(config.values.get("tie_word_embeddings", False))
    model = Llama(
        config.number("vocab_size"), positions, config.number("num_hidden_layers"), heads, config.number("hidden_size"),
        n_kv_head=config.number("num_key_value_heads", otherwise=heads), n_inner=config.number("intermediate_size"),
        head_dim=config.values.get("head_dim"), rope_theta=float(theta), rope_scaling=rope or None,
        eps=config.real("rms_norm_eps", 1e-6), attention_bias=bias, output_bias=bias and kind != "qwen2",
        mlp_bias=bool(config.values.get("mlp_bias", False)), tied=tied, rng=0,
    )  # fmt: skip
    state: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        layer = re.fullmatch(r"model\.layers\.(\d+)\.(\w+)\.(.+)", name)
        if layer and layer[2] in _LLAMA_LAYER:
            if not layer[3].endswith("inv_freq"):
                state[f"h.{layer[1]}.{_LLAMA_LAYER[layer[2]]}.{layer[3]}"] = array
        else:
            state[_LLAMA_NAMES.get(name, name)] = array
    if tied:
        state["lm_head.weight"] = state["wte.weight"]
    return model, state


_KINDS = {"gpt2": _gpt2, "llama": _llama, "mistral": _llama, "qwen2": _llama}
