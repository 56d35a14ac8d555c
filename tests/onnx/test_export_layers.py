"""Every layer in ONNX Runtime: the same numbers, at the size of the example and at another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn
from extensor.onnx import export, load
from extensor.onnx.runtime import run_in_runtime
from extensor.onnx.trace import tensors_in

RTOL = 1e-5  # of the largest output


def normal(*shape: int, seed: int = 0) -> et.ExTensor:
    return et.random.normal(seed, shape)


def labels(high: int, *shape: int, seed: int = 0) -> et.ExTensor:
    return et.random.integers(seed, 0, high, shape)


def probabilities(*shape: int, seed: int = 0) -> et.ExTensor:
    return et.softmax(normal(*shape, seed=seed))


def checked_norm(layer: Any) -> Any:
    """Running statistics that are not 0 and 1."""
    for module in layer.modules():
        if getattr(module, "running_mean", None) is not None:
            module.running_mean = normal(*module.running_mean.shape, seed=3)
            module.running_var = et.exp(normal(*module.running_var.shape, seed=4))
    return layer


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A layer in evaluation mode whose parameters are no zeros and ones, and its inputs."""
    make, inputs = LAYERS[name]
    layer = make().eval()
    for i, parameter in enumerate(layer.parameters()):
        parameter.assign(normal(*parameter.shape, seed=100 + i) * 0.5)
    return layer, inputs


IMAGES = normal(2, 4, 9, 8)
ROWS = normal(3, 6)
SEQUENCE = normal(5, 2, 6)

LAYERS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "linear": (lambda: nn.Linear(6, 3, rng=0), (ROWS,)),
    "linear_3d": (lambda: nn.Linear(6, 3, rng=0), (normal(2, 5, 6),)),
    "linear_without_bias": (lambda: nn.Linear(6, 3, bias=False, rng=0), (normal(2, 5, 6),)),
    "conv1d": (
        lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, rng=0),
        (normal(2, 4, 12),),
    ),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2, rng=0), (IMAGES,)),
    "conv2d_same": (lambda: nn.Conv2d(4, 6, 4, padding="same", bias=False, rng=0), (IMAGES,)),
    "conv2d_dilated": (lambda: nn.Conv2d(4, 6, 3, dilation=2, rng=0), (IMAGES,)),
    "conv_transpose2d": (
        lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, rng=0),
        (IMAGES,),
    ),
    "max_pool2d": (lambda: nn.MaxPool2d(3, stride=2, padding=1), (IMAGES,)),
    "max_pool2d_ceil": (lambda: nn.MaxPool2d(2, ceil_mode=True), (IMAGES,)),
    "avg_pool2d": (lambda: nn.AvgPool2d(3, stride=2, padding=1), (IMAGES,)),
    "avg_pool2d_inside": (lambda: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), (IMAGES,)),
    "adaptive_1": (lambda: nn.AdaptiveAvgPool2d(1), (IMAGES,)),
    "adaptive_even": (lambda: nn.AdaptiveAvgPool2d((3, 4)), (IMAGES,)),
    "adaptive_odd": (lambda: nn.AdaptiveAvgPool2d((4, 5)), (IMAGES,)),
    "batch_norm1d": (lambda: checked_norm(nn.BatchNorm1d(6)), (ROWS,)),
    "batch_norm2d": (lambda: checked_norm(nn.BatchNorm2d(4)), (IMAGES,)),
    "batch_norm2d_plain": (lambda: checked_norm(nn.BatchNorm2d(4, affine=False)), (IMAGES,)),
    "layer_norm": (lambda: nn.LayerNorm((9, 8)), (IMAGES,)),
    "layer_norm_plain": (lambda: nn.LayerNorm(8, elementwise_affine=False), (IMAGES,)),
    "rms_norm": (lambda: nn.RMSNorm(8), (IMAGES,)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (IMAGES,)),
    "instance_norm2d": (lambda: nn.InstanceNorm2d(4), (IMAGES,)),
    "instance_norm2d_affine": (lambda: nn.InstanceNorm2d(4, affine=True), (IMAGES,)),
    "dropout": (lambda: nn.Dropout(0.5), (ROWS,)),
    "flatten": (lambda: nn.Flatten(), (IMAGES,)),
    "identity": (lambda: nn.Identity(), (ROWS,)),
    "embedding": (lambda: nn.Embedding(11, 4, rng=0), (labels(11, 3, 5),)),
    "attention": (lambda: Attention(), (normal(2, 5, 8),)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(8, 2, dim_feedforward=12, batch_first=True, rng=0),
        (normal(2, 5, 8),),
    ),
    "encoder_first": (
        lambda: nn.TransformerEncoderLayer(
            8, 2, dim_feedforward=12, activation="gelu", norm_first=True, batch_first=True, rng=0
        ),
        (normal(2, 5, 8),),
    ),
}
LAYERS |= {
    f"{kind.__name__.lower()}_{name}": (
        lambda kind=kind, options=options: kind(6, 4, rng=0, **options),  # type: ignore[misc]
        (normal(2, 5, 6) if options.get("batch_first") else SEQUENCE,),
    )
    for kind in (nn.RNN, nn.GRU, nn.LSTM)
    for name, options in {
        "plain": {},
        "batch_first": {"batch_first": True},
        "deep": {"num_layers": 2, "bidirectional": True},
        "no_bias": {"bias": False},
    }.items()
}
ACTIVATIONS = [
    nn.ReLU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Softmax, nn.LogSoftmax, nn.GELU, nn.SiLU, nn.Mish, nn.ELU, nn.SELU,
    nn.Softplus, nn.ReLU6, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh,
]  # fmt: skip
LAYERS |= {
    kind.__name__: (lambda kind=kind: kind(-1) if "Softmax" in kind.__name__ else kind(), (IMAGES * 3,))  # type: ignore[misc]
    for kind in ACTIVATIONS
}
LAYERS |= {
    "prelu": (lambda: nn.PReLU(4), (IMAGES,)),
    "gelu_tanh": (lambda: nn.GELU(approximate="tanh"), (IMAGES,)),
    "softplus_2": (lambda: nn.Softplus(beta=2.0), (IMAGES,)),
    "mse": (lambda: nn.MSELoss(), (ROWS, normal(3, 6, seed=1))),
    "l1": (lambda: nn.L1Loss(reduction="sum"), (ROWS, normal(3, 6, seed=1))),
    "smooth_l1": (lambda: nn.SmoothL1Loss(beta=0.5, reduction="none"), (ROWS, normal(3, 6, seed=1))),
    "huber": (lambda: nn.HuberLoss(delta=0.7), (ROWS, normal(3, 6, seed=1))),
    "bce": (lambda: nn.BCELoss(), (et.sigmoid(ROWS), et.sigmoid(normal(3, 6, seed=1)))),
    "bce_logits": (lambda: nn.BCEWithLogitsLoss(), (ROWS, et.sigmoid(normal(3, 6, seed=1)))),
    "cross_entropy": (lambda: nn.CrossEntropyLoss(), (ROWS, labels(6, 3))),
    "cross_entropy_smooth": (
        lambda: nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum"),
        (ROWS, labels(6, 3)),
    ),
    "cross_entropy_soft": (lambda: nn.CrossEntropyLoss(), (ROWS, probabilities(3, 6))),
}


class Attention(nn.Module):
    """Between a sequence and itself, with the weights that belong to it."""

    def __init__(self) -> None:
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True, rng=0)

    def forward(self, x: et.ExTensor) -> Any:
        return self.inner(x, x, x, need_weights=False)[0]


def outputs_of(result: Any) -> list[np.ndarray]:
    return [t.numpy() for t in tensors_in(result)]


def assert_near(theirs: Any, ours: Any) -> None:
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=RTOL * (np.abs(b).max(initial=0.0) or 1))


@pytest.mark.parametrize("opset", [17, 20, 23])
@pytest.mark.parametrize("name", list(LAYERS))
def test_agrees_with_the_runtime(name: str, opset: int, tmp_path: Path) -> None:
    layer, inputs = made(name)
    written = export(layer, tmp_path / "layer.onnx", *inputs, opset=opset)
    assert written.difference is not None
    assert written.difference < RTOL
    more = [et.concatenate([x, x, x], 0) for x in inputs]
    theirs = run_in_runtime(written.path, {n: x.numpy() for n, x in zip(written.inputs, more)})
    assert_near(theirs, outputs_of(layer(*more)))


@pytest.mark.parametrize("name", list(LAYERS))
def test_comes_back(name: str, tmp_path: Path) -> None:
    """Exported and imported it computes the same; exported again, the same operators are in the file."""
    layer, inputs = made(name)
    first = export(layer, tmp_path / "first.onnx", *inputs)
    again = load(first.path)
    assert_near(outputs_of(again(*inputs)), outputs_of(layer(*inputs)))
    second = export(again, tmp_path / "second.onnx", *inputs)
    assert second.difference is not None
    assert second.difference < RTOL
    third = export(load(second.path), tmp_path / "third.onnx", *inputs)
    kinds = [[n.op_type for n in load_model(w.path).graph.node] for w in (second, third)]
    assert kinds[0] == kinds[1]


def load_model(path: Path) -> Any:
    import onnx

    return onnx.load(path)
