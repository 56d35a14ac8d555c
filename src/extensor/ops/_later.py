"""The families of operations that load when one of their names is first used, and their names.

The operators and methods of a tensor load with the package; the layers, losses and rarer functions would double the time of
``import extensor``.
"""

from __future__ import annotations

__all__ = ["FAMILY_OF"]

_NAMES = {
    "exponential": """
        exp exp_backward expm1 expm1_backward log log10 log10_backward log1p log1p_backward log2
        log2_backward log_backward rsqrt rsqrt_backward sqrt sqrt_backward
    """,
    "joining": """
        concatenate concatenate_backward pad pad_backward repeat repeat_backward split split_backward stack
        stack_backward tile tile_backward
    """,
    "activation": """
        PreluGradients elu elu_backward gelu gelu_backward hard_sigmoid hard_sigmoid_backward hard_swish
        hard_swish_backward hard_tanh hard_tanh_backward leaky_relu leaky_relu_backward mish mish_backward
        prelu prelu_backward relu relu6 relu6_backward relu_backward selu selu_backward sigmoid
        sigmoid_backward silu silu_backward softplus softplus_backward
    """,
    "softmax": """
        log_softmax log_softmax_backward softmax softmax_backward
    """,
    "trigonometric": """
        acos acos_backward asin asin_backward atan atan_backward cos cos_backward cosh cosh_backward erf
        erf_backward sin sin_backward sinh sinh_backward tan tan_backward tanh tanh_backward
    """,
    "attention": """
        AttentionGradients scaled_dot_product_attention scaled_dot_product_attention_backward self_attention
        self_attention_backward
    """,
    "conv": """
        ConvGradients conv1d conv1d_backward conv2d conv2d_backward conv_transpose2d
        conv_transpose2d_backward
    """,
    "diagonals": """
        diag diag_backward diag_embed diag_embed_backward diagonal diagonal_backward trace trace_backward
        tril tril_backward triu triu_backward
    """,
    "dropout": """
        DropoutResult dropout dropout_backward
    """,
    "einsum": """
        einsum einsum_backward
    """,
    "embedding": """
        embedding embedding_backward
    """,
    "linear": """
        LinearGradients linear linear_backward
    """,
    "loss_classification": """
        binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
        binary_cross_entropy_with_logits_backward cross_entropy cross_entropy_backward focal focal_backward
        hinge hinge_backward
    """,
    "loss_metric": """
        CosineEmbeddingGradients KLDivergenceGradients TripletMarginGradients cosine_embedding
        cosine_embedding_backward kl_divergence kl_divergence_backward triplet_margin
        triplet_margin_backward
    """,
    "loss_regression": """
        huber huber_backward mean_absolute_error mean_absolute_error_backward mean_squared_error
        mean_squared_error_backward smooth_l1 smooth_l1_backward
    """,
    "normalization": """
        BatchNormResult NormGradients RMSNormGradients batch_norm batch_norm_backward group_norm
        group_norm_backward instance_norm instance_norm_backward layer_norm layer_norm_backward rms_norm
        rms_norm_backward
    """,
    "pooling": """
        adaptive_avg_pool2d adaptive_avg_pool2d_backward avg_pool2d avg_pool2d_backward global_avg_pool2d
        global_avg_pool2d_backward max_pool2d max_pool2d_backward
    """,
    "recurrent_gru": """
        gru_cell gru_cell_backward gru_sequence gru_sequence_backward
    """,
    "recurrent_lstm": """
        LSTMCellResult LSTMGradients LSTMSequenceResult lstm_cell lstm_cell_backward lstm_sequence
        lstm_sequence_backward
    """,
    "recurrent_rnn": """
        RecurrentGradients rnn_cell rnn_cell_backward rnn_sequence rnn_sequence_backward
    """,
    "sorting": """
        TopKResult all any argmax argmin argsort count_nonzero sort sort_backward top_k top_k_backward
    """,
    "special": """
        acosh acosh_backward asinh asinh_backward atan2 atan2_backward atanh atanh_backward copysign
        copysign_backward digamma digamma_backward erfc erfc_backward erfinv erfinv_backward heaviside
        heaviside_backward hypot hypot_backward i0 i0_backward i1 i1_backward lgamma lgamma_backward
        logaddexp logaddexp_backward nextafter polygamma polygamma_backward sinc sinc_backward
    """,
    "scan": """
        CumulativeResult cummax cummax_backward cummin cummin_backward cumprod cumprod_backward diff
        diff_backward logcumsumexp logcumsumexp_backward
    """,
    "bitwise": """
        bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    """,
    "construction": """
        broadcast_arrays broadcast_arrays_backward column_stack column_stack_backward dstack dstack_backward
        hstack hstack_backward meshgrid meshgrid_backward unstack unstack_backward vstack vstack_backward
    """,
    "searching": """
        HistogramResult UniqueAllResult UniqueCountsResult UniqueInverseResult allclose bincount histogram
        isclose isin nonzero searchsorted unique_all unique_counts unique_inverse unique_values
    """,
    "statistics": """
        InterpGradients interp interp_backward median median_backward quantile quantile_backward
    """,
    "scattering": """
        ScatterGradients gather gather_backward masked_fill masked_fill_backward scatter scatter_add
        scatter_add_backward scatter_backward
    """,
    "distances": """
        cdist cdist_backward cosine_similarity cosine_similarity_backward
    """,
    "shrinking": """
        celu celu_backward glu glu_backward hard_shrink hard_shrink_backward log_sigmoid
        log_sigmoid_backward soft_shrink soft_shrink_backward softsign softsign_backward tanh_shrink
        tanh_shrink_backward threshold threshold_backward
    """,
    "volumes": """
        conv3d conv3d_backward conv_transpose1d conv_transpose1d_backward conv_transpose3d
        conv_transpose3d_backward
    """,
    "volume_pooling": """
        adaptive_avg_pool1d adaptive_avg_pool1d_backward adaptive_avg_pool3d adaptive_avg_pool3d_backward
        adaptive_max_pool1d adaptive_max_pool1d_backward adaptive_max_pool2d adaptive_max_pool2d_backward
        adaptive_max_pool3d adaptive_max_pool3d_backward adaptive_max_pool_indices avg_pool1d
        avg_pool1d_backward avg_pool3d avg_pool3d_backward max_pool1d max_pool1d_backward max_pool3d
        max_pool3d_backward max_pool_indices
    """,
    "loss_margin": """
        MarginRankingGradients hinge_embedding hinge_embedding_backward margin_ranking
        margin_ranking_backward multi_margin multi_margin_backward multilabel_margin
        multilabel_margin_backward multilabel_soft_margin multilabel_soft_margin_backward soft_margin
        soft_margin_backward
    """,
    "loss_likelihood": """
        GaussianNLLGradients gaussian_nll gaussian_nll_backward nll nll_backward poisson_nll
        poisson_nll_backward
    """,
    "resampling": """
        GridSampleGradients affine_grid affine_grid_backward grid_sample grid_sample_backward interpolate
        interpolate_backward pixel_shuffle pixel_shuffle_backward pixel_unshuffle pixel_unshuffle_backward
    """,
    "loss_ctc": """
        ctc ctc_backward
    """,
    "response_norm": """
        local_response_norm local_response_norm_backward rotary_embedding rotary_embedding_backward
    """,
    "incomplete": """
        ConvolveGradients betainc betainc_backward convolve convolve_backward correlate correlate_backward
        gammainc gammainc_backward gammaincc gammaincc_backward
    """,
}

FAMILY_OF: dict[str, str] = {name: family for family, names in _NAMES.items() for name in names.split()}
