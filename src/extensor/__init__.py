"""ExTensor: neural networks on a CPU, with gradients you can read, call and verify."""

# ruff: noqa: F403, F405  (__all__ is the list; mypy and tests/public_api hold it to what the modules offer)

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._habits import EXTENSOR as _EXTENSOR
from ._habits import missing_from as _missing_from
from ._loading import load as _load
from .autograd import HOME_OF as _AUTOGRAD
from .autograd import autocast, differentiable, no_grad
from .compile import compile
from .dtypes import *
from .errors import AnomalyError, CompileError, GraphError, OutOfBoundsError
from .ops._later import FAMILY_OF as _FAMILY_OF
from .ops.arithmetic import *
from .ops.broadcasting import *
from .ops.casting import *
from .ops.comparison import *
from .ops.complex_numbers import *
from .ops.creation import *
from .ops.elementwise import *
from .ops.indexing import *
from .ops.matrix import *
from .ops.reduction import *
from .ops.selection import *
from .ops.shape import *
from .tensor import ExTensor, asarray, from_dlpack, tensor
from .version import __version__

__all__ = [
    # the tensor
    "ExTensor", "tensor", "asarray", "from_dlpack",
    # dtypes
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128",
    # creation
    "arange", "copy", "copy_backward", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones",
    "ones_like", "zeros", "zeros_like",
    # casting
    "astype", "astype_backward",
    # arithmetic
    "add", "add_backward", "subtract", "subtract_backward", "multiply", "multiply_backward", "divide",
    "divide_backward", "floor_divide", "floor_divide_backward", "modulo", "modulo_backward", "power",
    "power_backward", "negate", "negate_backward", "maximum", "maximum_backward", "minimum",
    "minimum_backward",
    # comparison and selection
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_not", "logical_xor", "isnan", "isinf", "isfinite", "where", "where_backward",
    # elementwise
    "abs", "abs_backward", "sign", "sign_backward", "ceil", "ceil_backward", "floor", "floor_backward",
    "round", "round_backward", "trunc", "trunc_backward", "square", "square_backward", "reciprocal",
    "reciprocal_backward", "clip", "clip_backward", "exp", "exp_backward", "expm1", "expm1_backward", "log",
    "log_backward", "log1p", "log1p_backward", "log2", "log2_backward", "log10", "log10_backward", "sqrt",
    "sqrt_backward", "rsqrt", "rsqrt_backward", "sin", "sin_backward", "cos", "cos_backward", "tan",
    "tan_backward", "asin", "asin_backward", "acos", "acos_backward", "atan", "atan_backward", "sinh",
    "sinh_backward", "cosh", "cosh_backward", "tanh", "tanh_backward", "erf", "erf_backward",
    # complex numbers
    "angle", "angle_backward", "conj", "conj_backward", "imag", "imag_backward", "real", "real_backward",
    # matrix
    "matmul", "matmul_backward", "transpose", "transpose_backward", "dot", "dot_backward", "outer",
    "outer_backward", "inner", "inner_backward", "tensordot", "tensordot_backward", "einsum",
    "einsum_backward", "diag", "diag_backward", "diag_embed", "diag_embed_backward", "diagonal",
    "diagonal_backward", "trace", "trace_backward", "tril", "tril_backward", "triu", "triu_backward",
    # reduction and sorting
    "sum", "sum_backward", "mean", "mean_backward", "max_reduce", "max_reduce_backward", "max",
    "max_backward", "min_reduce", "min_reduce_backward", "min", "min_backward", "variance",
    "variance_backward", "var", "var_backward", "std", "std_backward", "prod", "prod_backward", "logsumexp",
    "logsumexp_backward", "cumsum", "cumsum_backward", "sort", "sort_backward", "top_k", "top_k_backward", "TopKResult",
    "argsort", "argmax", "argmin", "any", "all", "count_nonzero",
    # broadcasting
    "are_shapes_broadcastable", "broadcast_shapes", "broadcast_to", "broadcast_to_backward", "sum_to_shape",
    "sum_to_shape_backward",
    # shape
    "expand_dims", "expand_dims_backward", "flatten", "flatten_backward", "flip", "flip_backward", "moveaxis",
    "moveaxis_backward", "permute", "permute_backward", "ravel", "ravel_backward", "reshape",
    "reshape_backward", "roll", "roll_backward", "squeeze", "squeeze_backward", "swapaxes",
    "swapaxes_backward", "unsqueeze", "unsqueeze_backward", "concatenate", "concatenate_backward", "pad",
    "pad_backward", "repeat", "repeat_backward", "split", "split_backward", "stack", "stack_backward", "tile",
    "tile_backward", "index", "index_add", "index_add_backward", "index_backward", "index_set",
    "index_set_backward", "take", "take_along_axis", "take_along_axis_backward", "take_backward",
    # special functions
    "acosh", "acosh_backward", "asinh", "asinh_backward", "atan2", "atan2_backward", "atanh",
    "atanh_backward", "copysign", "copysign_backward", "digamma", "digamma_backward", "erfc",
    "erfc_backward", "erfinv", "erfinv_backward", "heaviside", "heaviside_backward", "hypot",
    "hypot_backward", "i0", "i0_backward", "i1", "i1_backward", "lgamma", "lgamma_backward", "logaddexp",
    "logaddexp_backward", "nextafter", "polygamma", "polygamma_backward", "sinc", "sinc_backward",
    # running products, extremes and differences
    "CumulativeResult", "cummax", "cummax_backward", "cummin", "cummin_backward", "cumprod",
    "cumprod_backward", "diff", "diff_backward", "logcumsumexp", "logcumsumexp_backward",
    # bits
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor",
    # grids and stacks
    "broadcast_arrays", "broadcast_arrays_backward", "column_stack", "column_stack_backward", "dstack",
    "dstack_backward", "hstack", "hstack_backward", "meshgrid", "meshgrid_backward", "unstack",
    "unstack_backward", "vstack", "vstack_backward",
    # positions, sets and counts
    "HistogramResult", "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "allclose",
    "bincount", "histogram", "isclose", "isin", "nonzero", "searchsorted", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
    # quantiles
    "InterpGradients", "interp", "interp_backward", "median", "median_backward", "quantile",
    "quantile_backward",
    # gathering and scattering
    "ScatterGradients", "gather", "gather_backward", "masked_fill", "masked_fill_backward", "scatter",
    "scatter_add", "scatter_add_backward", "scatter_backward",
    # rarer activations
    "celu", "celu_backward", "glu", "glu_backward", "hard_shrink", "hard_shrink_backward", "log_sigmoid",
    "log_sigmoid_backward", "soft_shrink", "soft_shrink_backward", "softsign", "softsign_backward",
    "tanh_shrink", "tanh_shrink_backward", "threshold", "threshold_backward",
    # volumes and transposed convolutions
    "conv3d", "conv3d_backward", "conv_transpose1d", "conv_transpose1d_backward", "conv_transpose3d",
    "conv_transpose3d_backward",
    # pooling of sequences and volumes
    "adaptive_avg_pool1d", "adaptive_avg_pool1d_backward", "adaptive_avg_pool3d",
    "adaptive_avg_pool3d_backward", "adaptive_max_pool1d", "adaptive_max_pool1d_backward",
    "adaptive_max_pool2d", "adaptive_max_pool2d_backward", "adaptive_max_pool3d",
    "adaptive_max_pool3d_backward", "adaptive_max_pool_indices", "avg_pool1d", "avg_pool1d_backward",
    "avg_pool3d", "avg_pool3d_backward", "max_pool1d", "max_pool1d_backward", "max_pool3d",
    "max_pool3d_backward", "max_pool_indices",
    # losses with margins
    "MarginRankingGradients", "hinge_embedding", "hinge_embedding_backward", "margin_ranking",
    "margin_ranking_backward", "multi_margin", "multi_margin_backward", "multilabel_margin",
    "multilabel_margin_backward", "multilabel_soft_margin", "multilabel_soft_margin_backward",
    "soft_margin", "soft_margin_backward",
    # likelihoods
    "GaussianNLLGradients", "gaussian_nll", "gaussian_nll_backward", "nll", "nll_backward", "poisson_nll",
    "poisson_nll_backward",
    # images at other sizes
    "GridSampleGradients", "affine_grid", "affine_grid_backward", "grid_sample", "grid_sample_backward",
    "interpolate", "interpolate_backward", "pixel_shuffle", "pixel_shuffle_backward", "pixel_unshuffle",
    "pixel_unshuffle_backward",
    # sequences without alignment
    "ctc", "ctc_backward",
    # response norm and rotary positions
    "local_response_norm", "local_response_norm_backward", "rotary_embedding",
    "rotary_embedding_backward",
    # incomplete functions, sums of shifted products
    "ConvolveGradients", "betainc", "betainc_backward", "convolve", "convolve_backward", "correlate",
    "correlate_backward", "gammainc", "gammainc_backward", "gammaincc", "gammaincc_backward",
    # distances
    "cdist", "cdist_backward", "cosine_similarity", "cosine_similarity_backward",
    # activation
    "relu", "relu_backward", "leaky_relu", "leaky_relu_backward", "prelu", "prelu_backward", "PreluGradients",
    "sigmoid", "sigmoid_backward", "gelu", "gelu_backward", "silu", "silu_backward", "mish", "mish_backward",
    "elu", "elu_backward", "selu", "selu_backward", "softplus", "softplus_backward", "relu6",
    "relu6_backward", "hard_sigmoid", "hard_sigmoid_backward", "hard_swish", "hard_swish_backward",
    "hard_tanh", "hard_tanh_backward", "log_softmax", "log_softmax_backward", "softmax", "softmax_backward",
    # layers as functions
    "LinearGradients", "linear", "linear_backward",
    # convolution and pooling
    "ConvGradients", "conv1d", "conv1d_backward", "conv2d", "conv2d_backward", "conv_transpose2d",
    "conv_transpose2d_backward", "max_pool2d", "max_pool2d_backward", "avg_pool2d", "avg_pool2d_backward",
    "global_avg_pool2d", "global_avg_pool2d_backward", "adaptive_avg_pool2d", "adaptive_avg_pool2d_backward",
    # normalisation, dropout, embedding, attention, recurrent cells
    "BatchNormResult", "NormGradients", "RMSNormGradients", "batch_norm", "batch_norm_backward", "group_norm",
    "group_norm_backward", "instance_norm", "instance_norm_backward", "layer_norm", "layer_norm_backward",
    "rms_norm", "rms_norm_backward", "DropoutResult", "dropout", "dropout_backward", "embedding",
    "embedding_backward", "AttentionGradients", "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward", "self_attention", "self_attention_backward", "LSTMCellResult",
    "LSTMGradients", "LSTMSequenceResult",
    "RecurrentGradients", "gru_cell", "gru_cell_backward", "gru_sequence", "gru_sequence_backward",
    "lstm_cell", "lstm_cell_backward", "lstm_sequence", "lstm_sequence_backward", "rnn_cell",
    "rnn_cell_backward", "rnn_sequence", "rnn_sequence_backward",
    # loss
    "mean_squared_error", "mean_squared_error_backward", "mean_absolute_error",
    "mean_absolute_error_backward", "smooth_l1", "smooth_l1_backward", "huber", "huber_backward",
    "binary_cross_entropy", "binary_cross_entropy_backward", "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_backward", "cross_entropy", "cross_entropy_backward", "focal",
    "focal_backward", "hinge", "hinge_backward", "kl_divergence", "kl_divergence_backward", "triplet_margin",
    "triplet_margin_backward", "cosine_embedding", "cosine_embedding_backward", "CosineEmbeddingGradients",
    "KLDivergenceGradients", "TripletMarginGradients",
    # optimiser steps
    "sgd_step", "clip_grad_norm", "clip_grad_value",
    # autograd
    "autocast", "backward_source", "checkpoint", "checkpoint_sequential", "compile", "detect_anomaly", "differentiable",
    "draw_graph", "explain", "functional_call", "fvp", "gnvp", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "no_grad", "profile", "value_and_grad", "vjp", "vmap",
    "AnomalyError", "CompileError", "GraphError",
    # the library
    "OutOfBoundsError", "get_num_threads", "memory", "release_memory", "seed", "set_num_threads", "show_config",
    "__version__",
    # modules
    "fft", "init", "linalg", "nn", "optim", "random",
]  # fmt: skip

if _TYPE_CHECKING:
    from . import fft, init, linalg, nn, optim, random
    from .autograd import *
    from .config import *
    from .nn import functional_call, seed
    from .ops.activation import *
    from .ops.attention import *
    from .ops.bitwise import *
    from .ops.construction import *
    from .ops.conv import *
    from .ops.diagonals import *
    from .ops.distances import *
    from .ops.dropout import *
    from .ops.einsum import *
    from .ops.embedding import *
    from .ops.exponential import *
    from .ops.incomplete import *
    from .ops.joining import *
    from .ops.linear import *
    from .ops.loss_classification import *
    from .ops.loss_ctc import *
    from .ops.loss_likelihood import *
    from .ops.loss_margin import *
    from .ops.loss_metric import *
    from .ops.loss_regression import *
    from .ops.normalization import *
    from .ops.pooling import *
    from .ops.recurrent_gru import *
    from .ops.recurrent_lstm import *
    from .ops.recurrent_rnn import *
    from .ops.resampling import *
    from .ops.response_norm import *
    from .ops.scan import *
    from .ops.scattering import *
    from .ops.searching import *
    from .ops.shrinking import *
    from .ops.softmax import *
    from .ops.sorting import *
    from .ops.special import *
    from .ops.statistics import *
    from .ops.trigonometric import *
    from .ops.volume_pooling import *
    from .ops.volumes import *
    from .optim import clip_grad_norm, clip_grad_value, sgd_step
else:
    # The upper floors load when they are first used; what they define at the top, with them.
    _missing = _missing_from(__name__, _EXTENSOR)
    _LATER = dict.fromkeys(
        (
            "array_api",
            "bench",
            "config",
            "convert",
            "data",
            "distributed",
            "fft",
            "init",
            "linalg",
            "models",
            "nn",
            "onnx",
            "optim",
            "random",
            "report",
            "sklearn",
            "testing",
            "train",
        )
    )
    _LATER |= {name: f"ops.{family}" for name, family in _FAMILY_OF.items()}
    _LATER |= {name: f"autograd.{home}" for name, home in _AUTOGRAD.items()}
    _LATER |= {
        "get_num_threads": "config",
        "memory": "config",
        "release_memory": "config",
        "set_num_threads": "config",
        "show_config": "config",
        "functional_call": "nn",
        "seed": "nn",
        "clip_grad_norm": "optim",
        "clip_grad_value": "optim",
        "sgd_step": "optim",
    }

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            _missing(name)
        home = _LATER[name]
        module = _load(f"{__name__}.{home or name}")
        if not home:
            return module  # the import has put it here
        globals()[name] = found = getattr(module, name)  # the next look finds it at once
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
