"""Every function that was promised exists, and each is either a verified pair or declared to have no gradient."""

from __future__ import annotations

import importlib
import inspect

import pytest
from public_functions import public_functions

import extensor as et
from extensor.graph import Op
from extensor.testing.declarations import NOT_DIFFERENTIABLE
from extensor.testing.samples import PAIRS

# Section 3 of the contract, word for word; D stands for "has a public backward".
CREATION = """tensor asarray zeros ones empty full arange eye linspace zeros_like ones_like empty_like full_like copy
    random.normal random.uniform random.integers random.bernoulli random.permutation"""
ARITHMETIC_D = "add subtract multiply divide floor_divide modulo power negate maximum minimum"
MATRIX_D = "matmul transpose dot outer inner tensordot einsum"
REDUCTION_D = """sum mean max_reduce min_reduce variance std prod logsumexp cumsum max min var sort top_k"""
REDUCTION = "argmax argmin argsort any all count_nonzero"
ELEMENTWISE_D = """abs exp expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh
    tanh erf clip where sign ceil floor round trunc"""
ELEMENTWISE = """isnan isinf isfinite equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_not logical_xor"""
SHAPE_D = """reshape squeeze unsqueeze expand_dims flatten ravel concatenate stack split tile repeat broadcast_to permute
    flip roll pad take take_along_axis index moveaxis swapaxes"""
BROADCASTING = "broadcast_shapes are_shapes_broadcastable sum_to_shape"
ACTIVATIONS_D = """relu leaky_relu prelu sigmoid tanh softmax log_softmax gelu silu mish elu selu softplus relu6
    hard_sigmoid hard_swish hard_tanh"""
LOSSES_D = """mean_squared_error mean_absolute_error smooth_l1 huber binary_cross_entropy
    binary_cross_entropy_with_logits cross_entropy focal hinge kl_divergence triplet_margin cosine_embedding"""
CONVOLUTION_D = "conv1d conv2d conv_transpose2d max_pool2d avg_pool2d global_avg_pool2d adaptive_avg_pool2d"
LAYERS_D = """linear batch_norm layer_norm rms_norm group_norm instance_norm dropout embedding
    scaled_dot_product_attention rnn_cell gru_cell lstm_cell"""
INITIALISERS = """init.xavier_uniform init.xavier_normal init.kaiming_uniform init.kaiming_normal init.lecun_normal
    init.orthogonal init.truncated_normal init.uniform init.normal init.constant init.zeros init.ones"""
STEPS = """sgd_step clip_grad_norm clip_grad_value optim.functional.sgd optim.functional.adam optim.functional.adamw
    optim.functional.rmsprop optim.functional.adagrad optim.functional.lion optim.functional.lamb"""

WITH_GRADIENT = " ".join(
    [
        ARITHMETIC_D,
        MATRIX_D,
        REDUCTION_D,
        ELEMENTWISE_D,
        SHAPE_D,
        ACTIVATIONS_D,
        LOSSES_D,
        CONVOLUTION_D,
        LAYERS_D,
    ]
).split()
PROMISED = [
    *WITH_GRADIENT,
    *" ".join([CREATION, REDUCTION, ELEMENTWISE, BROADCASTING, INITIALISERS, STEPS]).split(),
]
ALIASES = {"max": "max_reduce", "min": "min_reduce", "var": "variance"}

FUNCTIONS = {
    name.removeprefix("extensor."): value
    for name, value in public_functions().items()
    if name.count(".") == 1 or name.startswith(("extensor.linalg.", "extensor.fft."))
}
# What linalg shows of the top level, where it has its row.
ALIASES_ABOVE = {f"linalg.{name}": name for name in ("matmul", "tensordot", "outer", "diagonal", "trace")}


def find(name: str) -> object:
    module, _, last = f"extensor.{name}".rpartition(".")
    return getattr(importlib.import_module(module), last, None)


@pytest.mark.parametrize("name", dict.fromkeys(PROMISED))
def test_promised_functions_exist(name: str) -> None:
    assert callable(find(name)), f"extensor.{name} is missing"


@pytest.mark.parametrize("name", dict.fromkeys(WITH_GRADIENT))
def test_promised_gradients_exist_and_are_verified(name: str) -> None:
    forward, backward = getattr(et, name), getattr(et, f"{name}_backward", None)
    assert isinstance(forward, Op)
    assert forward.backward is backward, f"extensor.{name}_backward is not the rule of the recorder"
    assert ALIASES.get(name, name) in PAIRS


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_arguments_of_the_backward(name: str) -> None:
    """grad_output comes first; the forward's options have the forward's names and defaults."""
    forward, backward = getattr(et, name), getattr(et, f"{name}_backward")
    first, *rest = inspect.signature(backward).parameters.values()
    assert first.name in ("grad_output", "grad_outputs")
    options = inspect.signature(forward.fn).parameters
    for p in rest:
        if p.name in options and p.default is not p.empty and options[p.name].default is not p.empty:
            assert p.default == options[p.name].default, p.name


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias: str) -> None:
    original = ALIASES[alias]
    assert getattr(et, alias).fn is getattr(et, original).fn
    assert getattr(et, f"{alias}_backward") is getattr(et, f"{original}_backward")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_pair_or_declared(name: str) -> None:
    if name.endswith("_backward"):
        forward = name.removesuffix("_backward")
        assert isinstance(FUNCTIONS.get(forward), Op), f"{name} has no differentiable forward"
    elif isinstance(FUNCTIONS[name], Op):
        row = (ALIASES | ALIASES_ABOVE).get(name, name)
        assert row in PAIRS, f"{name} has no row in extensor.testing.samples"
        assert name not in NOT_DIFFERENTIABLE
    else:
        assert name in NOT_DIFFERENTIABLE, (
            f"{name} is neither differentiable nor declared in extensor.testing.declarations"
        )


def test_nothing_is_declared_that_does_not_exist() -> None:
    assert not [name for name in NOT_DIFFERENTIABLE if not callable(find(name))]


def test_at_least_a_hundred_pairs() -> None:
    assert len(PAIRS) >= 100
