"""Well-known networks, built from :mod:`extensor.nn`: short files to read, copy and change."""

from .gpt import GPT
from .lenet import LeNet5
from .llama import Llama
from .lstm_lm import LSTMLanguageModel
from .mlp import MLP
from .resnet import ResNet20

__all__ = ["GPT", "LSTMLanguageModel", "LeNet5", "Llama", "MLP", "ResNet20"]
