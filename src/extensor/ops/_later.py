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
}

FAMILY_OF: dict[str, str] = {name: family for family, names in _NAMES.items() for name in names.split()}
