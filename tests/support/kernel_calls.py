"""One call of every native kernel, with the attributes its reference documents: what the bodies of ops pass after their checks.

Arrays are large enough for the buffer pool. An array argument takes the layout that is asked for; attributes never change.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from extensor.kernels import KERNELS
from extensor.kernels.reference import linalg as _linalg  # noqa: F401  (loads later in the package)
from extensor.kernels.reference import loss_ctc as _loss_ctc  # noqa: F401  (likewise)
from extensor.kernels.reference import shrinking as _shrinking  # noqa: F401  (likewise)

__all__ = ["LAYOUTS", "arguments"]

ROWS, COLUMNS = 128, 256
SHAPE = (ROWS, COLUMNS)

Make = Callable[..., Any]


def _every_other(x: np.ndarray) -> np.ndarray:
    wide = np.empty((*x.shape[:-1], 2 * x.shape[-1]) if x.ndim else (2,), x.dtype)
    wide[..., ::2] = x if x.ndim else x[..., None]
    return wide[..., ::2] if x.ndim else wide[0, ...]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda x: x,
    "gaps": lambda x: _every_other(x),
    "half": lambda x: x.astype(np.float16) if x.dtype == np.float32 else x,
}


def _squares() -> np.ndarray:
    """Symmetric, and far from singular."""
    x = _values(50, 6, 6)
    return (x + x.swapaxes(1, 2)) * np.float32(0.1) + 4 * np.eye(6, dtype=x.dtype)


def _values(*shape: int) -> np.ndarray:
    """Numbers between 0 and 1, without the ends: inside the domain of every function."""
    return np.random.default_rng(len(shape)).uniform(0.1, 0.9, shape).astype(np.float32)


def _positions(*shape: int, below: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, below, shape)


IMAGES, WEIGHT = (4, 8, 32, 32), (16, 8, 3, 3)
STEPS, BATCH, INPUTS, HIDDEN = 6, 64, 48, 64
LABELS = _positions(ROWS, below=COLUMNS)
INDICES = _positions(40, below=ROWS)
ALONG = _positions(20, COLUMNS, below=ROWS)

# What stands for a parameter of this name, if the kernel says nothing else.
USUAL: dict[str, Any] = {
    **dict.fromkeys(["a", "b", "g", "p", "q", "t", "x", "y"], lambda: _values(*SHAPE)),
    "alpha": 0.5, "approximate": True, "axes": (1,), "axis": 1, "beta": 1.5, "causal": True,
    "condition": lambda: _values(*SHAPE) > 0.5, "ddof": 1, "delta": 0.5, "eps": 1e-5, "gamma": 2.0,
    "high": 0.7, "ignore_index": None, "keepdims": False, "label_smoothing": 0.0, "lambd": 0.5, "limit": 0.5, "low": 0.3, "max_val": 0.7,
    "min_val": 0.3, "needs": (True, True), "normalized_shape": (COLUMNS,), "padding_idx": None, "pos_weight": None,
    "reduction": "none", "shape": SHAPE, "shape_a": SHAPE, "shape_b": SHAPE, "targets": lambda: LABELS,
    "threshold": 20.0, "value": 0.2, "weight": None,
}  # fmt: skip

REDUCED = {"g": lambda: _values(ROWS)}
ROW_NORM = {"weight": lambda: _values(COLUMNS), "bias": lambda: _values(COLUMNS)}
GROUP_NORM = {
    "x": lambda: _values(*IMAGES),
    "groups": 4,
    "weight": lambda: _values(8),
    "bias": lambda: _values(8),
}
BATCH_NORM = GROUP_NORM | {
    "running_mean": lambda: _values(8), "running_var": lambda: _values(8), "training": True, "momentum": 0.1,
}  # fmt: skip
CONV: dict[str, Any] = {
    "x": lambda: _values(*IMAGES), "weight": lambda: _values(*WEIGHT), "bias": lambda: _values(16), "stride": (1, 1),
    "padding": (1, 1, 1, 1), "dilation": (1, 1), "groups": 1, "needs": (True, True, True),
    "g": lambda: _values(4, 16, 32, 32), "output_padding": (0, 0),
}  # fmt: skip
TRANSPOSED = CONV | {"x": CONV["g"], "g": CONV["x"], "bias": lambda: _values(8)}
POOL = {
    "x": lambda: _values(*IMAGES), "g": lambda: _values(4, 8, 16, 16), "shape": IMAGES, "window": (2, 2), "stride": (2, 2),
    "padding": (0, 0), "size": (16, 16), "count_include_pad": True,
}  # fmt: skip
ATTENTION = {
    **dict.fromkeys(["q", "k", "v", "g"], lambda: _values(2, 4, 64, 32)), "mask": None, "scale": 0.25,
    "needs": (True, True, True, False),
}  # fmt: skip
SELF_ATTENTION = {"x": lambda: _values(2, 64, 96), "g": lambda: _values(2, 64, 32), "heads": 4}


def _recurrent(gates: int, cell: bool, gradients: int) -> dict[str, Any]:
    def states(wider: int = 1) -> Make:
        return lambda: _values(*(() if cell else (STEPS,)), BATCH, HIDDEN * wider)

    return {
        "x": lambda: _values(*(() if cell else (STEPS,)), BATCH, INPUTS),
        "h": lambda: _values(BATCH, HIDDEN), "c": lambda: _values(BATCH, HIDDEN),
        "w_ih": lambda: _values(gates * HIDDEN, INPUTS), "w_hh": lambda: _values(gates * HIDDEN, HIDDEN),
        "b_ih": lambda: _values(gates * HIDDEN), "b_hh": lambda: _values(gates * HIDDEN), "nonlinearity": "tanh",
        **dict.fromkeys(["g", "g_h", "g_c", "g_hidden", "g_cells", "hidden", "cells", "y"], states()),
        "g_gates": None, "gates": states(4), "reverse": False, "needs": (True,) * gradients,
    }  # fmt: skip


def _list_of(count: int) -> Make:
    return lambda: [_values(*SHAPE) for _ in range(count)]


STEP = {
    **dict.fromkeys(["params", "grads", "buffers", "exp_avgs", "exp_avg_sqs"], _list_of(3)), "max_exp_avg_sqs": None,
    "steps": [1, 2, 3], "lr": 0.1, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.01, "nesterov": True,
    "maximize": False, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "decoupled": True,
    **dict.fromkeys(["square_avgs", "sums", "acc_deltas"], _list_of(3)), "grad_avgs": None, "alpha": 0.99, "lr_decay": 0.1,
    "rho": 0.9, "momentum_decay": 0.004, "mu_products": [1.0, 0.9, 0.8],
}  # fmt: skip
OTHER_STEPS = [
    "adadelta_step",
    "adagrad_step",
    "lamb_step",
    "lion_step",
    "nadam_step",
    "radam_step",
    "rmsprop_step",
]
CELLS = ((0, 10, 21), (11, 22, 32), 1)
REGIONS = {
    "x": lambda: _values(*IMAGES), "g": lambda: _values(4, 8, 3, 3), "shape": IMAGES, "regions": (CELLS, CELLS),
    "sizes": ((11, 12, 11), (11, 12, 11)),
}  # fmt: skip
CTC = {
    "x": lambda: np.log(_values(30, 8, 12)), "rates": lambda: np.ones(8), "states": lambda: np.tile([0, 1, 0, 2, 0], (8, 1)),
    "jumps": lambda: np.tile([False, False, False, True, False], (8, 1)), "lengths": lambda: np.full(8, 30),
    "counts": lambda: np.full(8, 2),
}  # fmt: skip
TAPS = {
    "x": lambda: _values(*IMAGES), "g": lambda: _values(4, 8, 32, 64), "length": 32, "axis": 3,
    "positions": lambda: np.stack([np.arange(64) // 2, np.minimum(np.arange(64) // 2 + 1, 31)]),
    "weights": lambda: np.stack([np.full(64, 0.75), np.full(64, 0.25)]),
}  # fmt: skip
PLACES = {
    "image": lambda: _values(4, 8, 1024), "g": lambda: _values(4, 8, 300), "positions": lambda: _positions(4, 4, 300, below=1024) - 2,
    "weights": lambda: _values(4, 4, 300),
}  # fmt: skip
TRIPLETS = {
    **dict.fromkeys(["anchor", "positive", "negative"], lambda: _values(*SHAPE)), "g": lambda: _values(ROWS), "margin": 1.0, "p": 2.0,
    "swap": False, "needs": (True, True, True),
}  # fmt: skip
COSINES = {
    "g": lambda: _values(ROWS),
    "t": lambda: np.where(_values(ROWS) > 0.5, 1, -1).astype(np.float32),
    "margin": 0.25,
}
FACTORED = STEP | {
    "rows": lambda: [_values(ROWS, 1) for _ in range(3)], "columns": lambda: [_values(1, COLUMNS) for _ in range(3)],
    "variances": [None] * 3, "beta2_decay": -0.8, "eps1": 1e-3, "eps2": 1e-3, "d": 1.0,
}  # fmt: skip
ORTHOGONAL = STEP | {"coefficients": (3.4445, -4.775, 2.0315), "steps": 5, "match_adamw": True}
SORTED = {"axis": 1}
JOINED = {"tensors": _list_of(3), "axis": 0, "dtype": np.dtype(np.float32)}

OWN: dict[str, dict[str, Any]] = {
    "astype": {"dtype": np.dtype(np.float64)},
    **dict.fromkeys(["adam_step", "sgd_step", *OTHER_STEPS], STEP),
    **dict.fromkeys(["region_max", "region_max_backward", "region_max_indices", "region_mean", "region_mean_backward"], REGIONS),
    **{key: {"mask": lambda: _values(*SHAPE) > 0.5, "scale": 2.0} for key in ["dropout", "dropout_backward"]},
    "adafactor_step": FACTORED,
    "muon_step": ORTHOGONAL,
    "ema_step": {"averages": _list_of(3), "values": _list_of(3), "decay": 0.9},
    **dict.fromkeys(["sample", "sample_backward"], PLACES),
    **dict.fromkeys(["triplet_margin", "triplet_margin_backward"], TRIPLETS),
    **dict.fromkeys(["cosine_embedding", "cosine_embedding_backward"], COSINES),
    **dict.fromkeys(["ctc_losses", "ctc_shares"], CTC),
    **{key: {"x": lambda: _squares()} for key in ["eigh", "eigvalsh", "slogdet", "svdvals"]},
    "svd": {"x": lambda: _squares(), "full_matrices": False},
    "qr": {"x": lambda: _squares(), "mode": "reduced"},
    **dict.fromkeys(["resample", "resample_backward"], TAPS),
    **dict.fromkeys(["sort", "argsort", "sort_backward"], SORTED),
    **dict.fromkeys(["top_k", "top_k_backward"], SORTED | {"g": lambda: _values(ROWS, 5), "k": 5}),
    "pcg64_at_least": {"stream": lambda: np.array([1, 2, 3, 5], np.uint64), "p": 0.5},
    **dict.fromkeys(["concatenate", "stack"], JOINED),
    **dict.fromkeys(["conv2d", "conv2d_backward"], CONV),
    **dict.fromkeys(["conv_transpose2d", "conv_transpose2d_backward"], TRANSPOSED),
    **dict.fromkeys(["max_pool2d", "max_pool2d_backward", "avg_pool2d", "avg_pool2d_backward"], POOL),
    **dict.fromkeys(["layer_norm", "rms_norm"], ROW_NORM),
    "layer_norm_backward": ROW_NORM | {"needs": (True, True, True)},
    "rms_norm_backward": ROW_NORM,
    "group_norm": GROUP_NORM,
    "group_norm_backward": GROUP_NORM | {"g": GROUP_NORM["x"], "needs": (True, True, True)},
    "batch_norm": BATCH_NORM,
    "batch_norm_backward": BATCH_NORM
    | {"g": GROUP_NORM["x"], "g_mean": lambda: _values(8), "g_var": lambda: _values(8), "needs": (True, True, True)},
    **dict.fromkeys(["scaled_dot_product_attention", "scaled_dot_product_attention_backward"], ATTENTION),
    **dict.fromkeys(["self_attention", "self_attention_backward"], SELF_ATTENTION),
    **{f"rnn_{kind}": _recurrent(1, kind.startswith("cell"), 6) for kind in ("cell", "sequence", "cell_backward", "sequence_backward")},
    **{f"gru_{kind}": _recurrent(3, kind.startswith("cell"), 6) for kind in ("cell", "sequence", "cell_backward", "sequence_backward")},
    **{f"lstm_{kind}": _recurrent(4, kind.startswith("cell"), 7) for kind in ("cell", "sequence", "cell_backward", "sequence_backward")},
    "linear": {"weight": lambda: _values(64, COLUMNS), "bias": lambda: _values(64)},
    "linear_backward": {"g": lambda: _values(ROWS, 64), "weight": lambda: _values(64, COLUMNS), "needs": (True, True, True)},
    "matmul": {"b": lambda: _values(COLUMNS, ROWS)},
    "matmul_backward": {"g": lambda: _values(ROWS, ROWS), "b": lambda: _values(COLUMNS, ROWS)},
    "dot": {"b": lambda: _values(COLUMNS, ROWS)},
    "inner": {"b": lambda: _values(COLUMNS)},
    "add_backward": {"shape_b": (1, COLUMNS)},
    "subtract_backward": {"shape_b": (1, COLUMNS)},
    "multiply_backward": {"b": lambda: _values(COLUMNS)},
    "sum_to_shape": {"shape": (COLUMNS,)},
    **dict.fromkeys(
        [f"{name}_backward" for name in ["sum", "mean", "prod", "max_reduce", "min_reduce", "variance", "std", "logsumexp"]], REDUCED
    ),
    **{name: {"alpha": lambda: _values(COLUMNS)} for name in ("prelu", "prelu_backward")},
    "kl_divergence": {"reduction": "sum"},
    "kl_divergence_backward": {"g": lambda: _values(), "reduction": "sum"},
    "cross_entropy_backward": REDUCED,
    "hinge": {"t": lambda: np.where(_values(*SHAPE) > 0.5, 1, -1).astype(np.float32)},
    "hinge_backward": {"t": lambda: np.where(_values(*SHAPE) > 0.5, 1, -1).astype(np.float32)},
    "inv": {"x": lambda: _squares()},
    "det": {"x": lambda: _squares()},
    "cholesky": {"x": lambda: _squares(), "upper": False},
    "solve": {"a": lambda: _squares(), "b": lambda: _values(50, 6, 2)},
    "triangular_solve": {"a": lambda: _squares(), "b": lambda: _values(50, 6, 2), "upper": False, "unit_diagonal": False},
    "first_outside": {"x": lambda: LABELS, "low": 0, "high": COLUMNS, "allowed": None},
    "first_unlike": {"x": lambda: np.where(LABELS > 9, 1.0, -1.0), "a": -1, "b": 1},
    "index": {"key": (INDICES, ...)},
    "index_add": {"key": (INDICES, ...), "values": lambda: _values(40, COLUMNS)},
    "index_backward": {"g": lambda: _values(40, COLUMNS), "key": (INDICES, ...)},
    "take": {"indices": INDICES, "axis": 0},
    "take_backward": {"g": lambda: _values(40, COLUMNS), "indices": INDICES, "axis": 0},
    "take_along_axis": {"indices": ALONG, "axis": 0},
    "take_along_axis_backward": {"g": lambda: _values(20, COLUMNS), "indices": ALONG, "axis": 0},
    "embedding": {"indices": INDICES, "weight": lambda: _values(*SHAPE), "padding_idx": 2},
    "embedding_backward": {"g": lambda: _values(40, COLUMNS), "indices": INDICES, "padding_idx": 2},
    "clip_grad_norm": {"grads": _list_of(3), "max_norm": 1.0, "order": 2.0},
    "unscale_gradients": {"grads": _list_of(3), "scale": 1024.0},
    "pad": {"widths": ((1, 2), (0, 3)), "mode": "constant", "values": ((0, 0), (0, 0))},
    "roll": {"shifts": (3,), "axes": (1,)},
    "reshape": {"shape": (COLUMNS, ROWS)},
    "flip": {"axes": (0, 1)},
    "permute": {"axes": (1, 0)},
    "transpose": {"axes": (1, 0)},
    "swapaxes": {"axis1": 0, "axis2": 1},
}  # fmt: skip


def arguments(name: str, layout: str = "contiguous") -> list[Any]:
    """The arguments of a call of the kernel, new arrays."""
    known = USUAL | OWN.get(name, {})
    given = [known[p] for p in inspect.signature(KERNELS[name].reference).parameters]
    lay = LAYOUTS[layout]

    def made(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return lay(value)
        return [lay(v) for v in value] if type(value) is list and isinstance(value[0], np.ndarray) else value

    return [made(value() if callable(value) else value) for value in given]
