"""What each function does under ``autocast``; the published table is written from this one, and tests hold it to the functions.

A function that stands in neither list follows its inputs, the widest first.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["FLOAT32_FUNCTIONS", "HALF_FUNCTIONS", "Policy", "policy_of"]

Policy = Literal["half", "float32"]

# Operands in the half type, sums of products in float32, results in the half type.
HALF_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "products": ("matmul", "linear", "einsum", "tensordot", "dot", "outer", "inner"),
    "convolutions": (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolve", "correlate",
    ),
    "attention": ("scaled_dot_product_attention", "self_attention"),
    "recurrent layers": (
        "rnn_cell", "rnn_sequence", "gru_cell", "gru_sequence", "lstm_cell", "lstm_sequence",
    ),
}  # fmt: skip

# Half-precision inputs are widened, the result is float32: a sum, a small difference or a large power needs it.
FLOAT32_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "reductions": (
        "sum", "mean", "max_reduce", "min_reduce", "variance", "std", "prod", "logsumexp", "cumsum", "cumprod",
        "logcumsumexp", "trace", "median", "quantile",
    ),
    "softmax": ("softmax", "log_softmax"),
    "norms": (
        "batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm", "local_response_norm", "norm", "vector_norm",
        "matrix_norm", "cond", "cdist", "cosine_similarity",
    ),
    "losses": (
        "mean_squared_error", "mean_absolute_error", "smooth_l1", "huber", "binary_cross_entropy",
        "binary_cross_entropy_with_logits", "cross_entropy", "focal", "hinge", "kl_divergence", "triplet_margin",
        "cosine_embedding", "soft_margin", "hinge_embedding", "margin_ranking", "multi_margin", "multilabel_margin",
        "multilabel_soft_margin", "nll", "gaussian_nll", "poisson_nll", "ctc",
    ),
    "exponentials": (
        "exp", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "power", "rsqrt", "reciprocal", "sinh", "cosh",
        "softplus", "log_sigmoid",
    ),
}  # fmt: skip

_POLICIES: dict[str, Policy] = {
    **{name: "half" for names in HALF_FUNCTIONS.values() for name in names},
    **{name: "float32" for names in FLOAT32_FUNCTIONS.values() for name in names},
}


def policy_of(function: str) -> Policy | None:
    """What a function of this package does under autocast; None if it follows its inputs."""
    return _POLICIES.get(function)
