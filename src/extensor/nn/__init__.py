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
from .cells import GRUCell, LSTMCell, RNNCell
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d
from .embedding import Embedding
from .gates import (
    CELU,
    GEGLU,
    GLU,
    Hardshrink,
    LogSigmoid,
    ReGLU,
    Softmax2d,
    Softmin,
    Softshrink,
    Softsign,
    SwiGLU,
    Tanhshrink,
    Threshold,
)
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
from .loss_margin import (
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PoissonNLLLoss,
    SoftMarginLoss,
)
from .module import Module
from .normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)
from .packing import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence
from .padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .parameter import Parameter
from .pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from .recurrent import GRU, LSTM, RNN
from .resampling import CosineSimilarity, LocalResponseNorm, PixelShuffle, PixelUnshuffle, Unflatten, Upsample
from .rotary import GroupedQueryAttention, KVCache, RotaryEmbedding
from .stateless import functional_call
from .summary import Summary
from .transformer import Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder

__all__ = [
    "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential", "Summary", "functional_call", "seed",
    # layers
    "Linear", "Flatten", "Identity", "Conv1d", "Conv2d", "ConvTranspose2d", "MaxPool2d", "AvgPool2d",
    "AdaptiveAvgPool2d", "BatchNorm1d", "BatchNorm2d", "LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm2d", "Dropout",
    "Embedding", "MultiheadAttention", "TransformerEncoderLayer", "RNN", "LSTM", "GRU",
    "Conv3d", "ConvTranspose1d", "ConvTranspose3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool3d", "MaxPool1d",
    "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "BatchNorm3d", "InstanceNorm1d",
    "InstanceNorm3d", "AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d", "CircularPad1d", "CircularPad2d",
    "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d",
    "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d", "CosineSimilarity", "LocalResponseNorm", "PixelShuffle", "PixelUnshuffle", "Unflatten",
    "Upsample", "GRUCell", "LSTMCell", "RNNCell", "GroupedQueryAttention", "KVCache", "RotaryEmbedding",
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    # activations
    "ReLU", "LeakyReLU", "PReLU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "GELU", "SiLU", "Mish", "ELU", "SELU",
    "Softplus", "ReLU6", "Hardsigmoid", "Hardswish", "Hardtanh",
    "CELU", "GEGLU", "GLU", "Hardshrink", "LogSigmoid", "ReGLU", "Softmax2d", "Softmin", "Softshrink",
    "Softsign", "SwiGLU", "Tanhshrink", "Threshold",
    # losses
    "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "FocalLoss",
    "HingeLoss", "KLDivLoss", "TripletMarginLoss", "CosineEmbeddingLoss",
    "CTCLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SoftMarginLoss",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _NN)
