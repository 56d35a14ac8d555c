"""A good call of every public function: from the registry for the pairs, from a table for the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et
from extensor.testing.registry import Draw
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import find_op

Arguments = dict[str, Any]

_X = et.tensor(np.arange(6.0).reshape(2, 3) - 2)
_COUNTS = et.tensor([0, 2, 1])
_BITS: Arguments = {"a": _COUNTS, "b": _COUNTS}
_SORTED = et.tensor([1.0, 2.0, 3.0])
_SQUARE = et.tensor([[1.0, 2.0], [0.5, 3.0]])
_ONE: Arguments = {"x": _X}
_TWO: Arguments = {"a": _X, "b": _X}
_SHAPE: Arguments = {"shape": (2, 3), "dtype": "float32"}
_WEIGHT: Arguments = {"shape": (4, 3), "rng": 0, "dtype": "float32"}

# Functions without a gradient, by their dotted names inside the package.
OTHERS: dict[str, Arguments] = {
    **dict.fromkeys(
        ["argmax", "argmin", "any", "all", "count_nonzero"], _ONE | {"axis": 1, "keepdims": False}
    ),
    "argsort": _ONE | {"axis": 1},
    "nn.pad_sequence": {"sequences": [_SORTED, _SORTED[:2]], "batch_first": True, "padding_value": 0.0},
    "nn.pack_sequence": {"sequences": [_SORTED, _SORTED[:2]], "enforce_sorted": True},
    "nn.pack_padded_sequence": {"x": _X, "lengths": [2, 2, 1], "batch_first": False, "enforce_sorted": True},
    "nn.pad_packed_sequence": {
        "sequence": et.nn.pack_sequence([_SORTED]),
        "batch_first": True,
        "padding_value": 0.0,
        "total_length": 4,
    },
    "max_pool_indices": {
        "x": et.ones((1, 1, 4, 4)),
        "kernel_size": 2,
        "stride": 2,
        "padding": 1,
        "ceil_mode": True,
        "dilation": 1,
    },
    "adaptive_max_pool_indices": {"x": et.ones((1, 1, 4, 4)), "output_size": 2},
    **dict.fromkeys(["isnan", "isinf", "isfinite", "logical_not"], _ONE),
    **dict.fromkeys(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"], _TWO),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], _TWO),
    **dict.fromkeys(["zeros", "ones", "empty"], _SHAPE),
    **dict.fromkeys(["zeros_like", "ones_like", "empty_like"], _ONE | {"dtype": "float32"}),
    "full": _SHAPE | {"fill_value": 1.5},
    "full_like": _ONE | {"fill_value": 1.5, "dtype": "float32"},
    "arange": {"start": 0, "stop": 5, "step": 2, "dtype": "float32"},
    "linspace": {"start": 0, "stop": 5, "num": 3, "dtype": "float32"},
    "eye": {"n": 2, "m": 3, "dtype": "float32"},
    "tensor": {"data": [1.0, 2.0], "dtype": "float32"},
    "asarray": {"data": [1.0, 2.0], "dtype": "float32"},
    "from_dlpack": {"source": np.ones(3)},
    "broadcast_shapes": {"shapes": [(2, 3), (3,)]},
    "are_shapes_broadcastable": {"shapes": [(2, 3), (3,)]},
    **dict.fromkeys(["nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"], _ONE),
    "nextafter": _TWO,
    **dict.fromkeys(
        ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"], _BITS
    ),
    "bitwise_invert": {"x": _COUNTS},
    "searchsorted": {"a": _SORTED, "values": _X, "side": "left", "sorter": _COUNTS},
    "isin": {"x": _X, "values": _X, "invert": False},
    **dict.fromkeys(["isclose", "allclose"], _TWO | {"rtol": 0.1, "atol": 0.1, "equal_nan": False}),
    "bincount": {"x": _COUNTS, "weights": _SORTED, "minlength": 2},
    "histogram": {"x": _X, "bins": 3, "range": (0.0, 1.0)},
    "random.exponential": {"rng": 0, "shape": (2, 3), "scale": 1.0, "dtype": "float32"},
    "random.laplace": {"rng": 0, "shape": (2, 3), "mean": 0.0, "scale": 1.0, "dtype": "float32"},
    "random.gumbel": {"rng": 0, "shape": (2, 3), "dtype": "float32"},
    "random.gamma": {"rng": 0, "concentration": 1.0, "shape": (2, 3), "scale": 1.0, "dtype": "float32"},
    "random.beta": {"rng": 0, "a": 1.0, "b": 1.0, "shape": (2, 3), "dtype": "float32"},
    "random.poisson": {"rng": 0, "rate": 1.0, "shape": (2, 3), "dtype": "int64"},
    "random.categorical": {"rng": 0, "logits": _X, "shape": (2,), "axis": 1},
    "random.choice": {"rng": 0, "x": _SORTED, "shape": (2,), "replace": True, "p": _SORTED},
    "random.shuffle": {"rng": 0, "x": _X, "axis": 1},
    "random.multivariate_normal": {
        "rng": 0,
        "mean": et.zeros(2),
        "covariance": et.eye(2),
        "shape": (2,),
        "dtype": "float32",
    },
    "fft.fftfreq": {"n": 4, "d": 0.5, "dtype": "float32"},
    "fft.rfftfreq": {"n": 4, "d": 0.5, "dtype": "float32"},
    "linalg.matrix_rank": {"x": _SQUARE, "rtol": 0.1},
    "random.generator": {"seed": 0},
    "random.normal": {"rng": 0, "shape": (2, 3), "mean": 0.0, "std": 1.0, "dtype": "float32"},
    "random.uniform": {"rng": 0, "shape": (2, 3), "low": 0.0, "high": 1.0, "dtype": "float32"},
    "random.integers": {"rng": 0, "low": 0, "high": 9, "shape": (2, 3), "dtype": "int64"},
    "random.bernoulli": {"rng": 0, "p": 0.5, "shape": (2, 3)},
    "random.permutation": {"rng": 0, "n": 5},
    "init.calculate_gain": {"nonlinearity": "leaky_relu", "a": 0.1},
    **dict.fromkeys(["init.zeros", "init.ones"], _SHAPE),
    "init.constant": _SHAPE | {"value": 0.5},
    "init.normal": _WEIGHT | {"mean": 0.0, "std": 1.0},
    "init.uniform": _WEIGHT | {"low": -1.0, "high": 1.0},
    "init.truncated_normal": _WEIGHT | {"mean": 0.0, "std": 1.0},
    **dict.fromkeys(
        ["init.xavier_uniform", "init.xavier_normal", "init.orthogonal"], _WEIGHT | {"gain": 1.0}
    ),
    "init.lecun_normal": _WEIGHT,
    **dict.fromkeys(
        ["init.kaiming_uniform", "init.kaiming_normal"], _WEIGHT | {"mode": "fan_in", "nonlinearity": "relu"}
    ),
    "sgd_step": {"param": _X, "grad": _X, "lr": 0.1},
    "clip_grad_norm": {"grads": [_X, _X], "max_norm": 1.0, "norm_type": 2.0, "error_if_nonfinite": False},
    "clip_grad_value": {"grads": [_X, _X], "limit": 0.5},
    "set_num_threads": {"n": 2},
    "seed": {"n": 0},
}


# Functions of functions, and those that write files: their errors have tests beside them.
OF_FUNCTIONS = {
    "backward_source", "checkpoint", "checkpoint_sequential", "compile", "detect_anomaly", "differentiable", "draw_graph", "explain",
    "functional_call", "fvp", "gnvp", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "no_grad", "profile", "value_and_grad", "vjp", "vmap",
}  # fmt: skip
WITHOUT_ARGUMENTS = {"show_config", "get_num_threads", "memory", "release_memory"}


def pair_call(name: str) -> Arguments:
    """A call of a function of the registry or of its backward: of the sample with most axes, none empty."""
    forward = name.removesuffix("_backward")
    op = find_op(forward)
    cases = [case for case in PAIRS[forward].cases(Draw(0)) if all(a.size for a in _arrays(case.args))]
    case = max(cases, key=lambda c: sum(a.ndim for a in _arrays(c.args)))
    args = tuple(map(as_tensors, case.args))
    kwargs = {key: as_tensors(value) for key, value in case.kwargs.items()}
    rule = op.rule
    if forward == name:
        return rule.bind(args, kwargs)
    output = op(*args, **kwargs)
    positional, keywords = rule.arguments(rule.bind(args, kwargs), output)
    backward = inspect.signature(op.backward)
    return dict(backward.bind(ones_like(output), *positional, **keywords).arguments)


def call(function: Callable[..., Any], arguments: Arguments) -> Any:
    """The function with arguments by name; ``*values`` spread out."""
    args, kwargs = arranged(function, arguments)
    return function(*args, **kwargs)


def arranged(function: Callable[..., Any], arguments: Arguments) -> tuple[list[Any], Arguments]:
    """Arguments by name as a call passes them: by place as far as that goes, ``*values`` spread out."""
    args: list[Any] = []
    kwargs: Arguments = {}
    for p in inspect.signature(function).parameters.values():
        if p.name in arguments:
            value = arguments[p.name]
            if p.kind is p.VAR_POSITIONAL:
                args.extend(value)
            elif p.kind is p.KEYWORD_ONLY or len(args) < list(inspect.signature(function).parameters).index(
                p.name
            ):
                kwargs[p.name] = value
            else:
                args.append(value)
    return args, kwargs


def as_tensors(value: Any) -> Any:
    """The arrays in a sample's argument as tensors."""
    if isinstance(value, np.ndarray):
        return et.tensor(value)
    return type(value)(map(as_tensors, value)) if type(value) in (list, tuple) else value


def ones_like(output: Any) -> Any:
    """An upstream gradient of ones for a result, or for each of several."""
    if output is None:  # a result that was not asked for
        return None
    if not isinstance(output, et.ExTensor):
        return [ones_like(value) for value in output]
    return et.tensor(np.ones(output.shape, output.dtype if output.dtype.kind not in "biu" else np.float32))


def _arrays(values: Any) -> list[np.ndarray]:
    found = []
    for value in values:
        if isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(_arrays(value))
    return found
