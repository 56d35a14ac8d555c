"""The public functions that have no gradient, each with the reason; the others are pairs of the registry."""

from __future__ import annotations

__all__ = ["NOT_DIFFERENTIABLE"]

_REASONS: dict[str, str] = {
    "makes a tensor from numbers or memory": "fft.fftfreq fft.rfftfreq tensor asarray from_dlpack zeros zeros_like ones ones_like empty empty_like "
    "full full_like arange linspace eye",
    "answers yes or no": "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not "
    "logical_xor isnan isinf isfinite any all isclose allclose isin",
    "counts steps of the number format": "nextafter",
    "works on bits": "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor",
    "returns positions or counts": "max_pool_indices adaptive_max_pool_indices bincount histogram nonzero searchsorted unique_all unique_counts unique_inverse unique_values argmax argmin argsort count_nonzero linalg.matrix_rank",
    "computes with shapes": "broadcast_shapes are_shapes_broadcastable",
    "differentiates other functions": "grad value_and_grad vjp jvp jacfwd jacobian jacrev linearize hessian hvp gnvp fvp vmap functional_call "
    "checkpoint checkpoint_sequential compile differentiable no_grad detect_anomaly",
    "explains what was recorded": "backward_source draw_graph explain profile",
    "works on gradients that are known": "sgd_step clip_grad_norm clip_grad_value",
    "concerns the machine": "show_config set_num_threads get_num_threads memory release_memory seed",
}

NOT_DIFFERENTIABLE: dict[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
