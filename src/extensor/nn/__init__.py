"""Layers and models: they own parameters and call the functions of :mod:`extensor.ops`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._habits import NN as _NN
from .._habits import missing_from as _missing_from
from ._random import seed
from .activation import (
    ELU,
    GELU,
    SELU,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from .attention import MultiheadAttention, TransformerEncoderLayer
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .convolution import Conv1d, Conv2d, ConvTranspose2d
from .dropout import Dropout
from .embedding import Embedding
from .linear import Flatten, Identity, Linear
from .loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    FocalLoss,
    HingeLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    SmoothL1Loss,
    TripletMarginLoss,
)
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, GroupNorm, InstanceNorm2d, LayerNorm, RMSNorm
from .parameter import Parameter
from .pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from .recurrent import GRU, LSTM, RNN
from .stateless import functional_call
from .summary import Summary

__all__ = [
    "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential", "Summary", "functional_call", "seed",
    # layers
    "Linear", "Flatten", "Identity", "Conv1d", "Conv2d", "ConvTranspose2d", "MaxPool2d", "AvgPool2d",
    "AdaptiveAvgPool2d", "BatchNorm1d", "BatchNorm2d", "LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm2d", "Dropout",
    "Embedding", "MultiheadAttention", "TransformerEncoderLayer", "RNN", "LSTM", "GRU",
    # activations
    "ReLU", "LeakyReLU", "PReLU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "GELU", "SiLU", "Mish", "ELU", "SELU",
    "Softplus", "ReLU6", "Hardsigmoid", "Hardswish", "Hardtanh",
    # losses
    "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "FocalLoss",
    "HingeLoss", "KLDivLoss", "TripletMarginLoss", "CosineEmbeddingLoss",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _NN)
