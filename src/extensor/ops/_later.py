"""The families of operations that load when one of their names is first used, and their names.

The common operations load with the package; these would add a fifth to the time of ``import extensor``.
"""

from __future__ import annotations

__all__ = ["FAMILY_OF"]

_NAMES = {
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
