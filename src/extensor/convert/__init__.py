"""Weights of other programs: PyTorch files read without executing anything, and checkpoints of GPT-2 and Llama kind."""

from .language_models import load_gpt, load_tokenizer
from .weights import load_weights

__all__ = ["load_gpt", "load_tokenizer", "load_weights"]
