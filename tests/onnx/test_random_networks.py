"""Random small networks of random layers: ONNX Runtime and a second import agree with ours.

More of them: EXTENSOR_ONNX_NETWORKS=2000 pytest tests/onnx/test_random_networks.py
"""

from __future__ import annotations

import os
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

COUNT = int(os.environ.get("EXTENSOR_ONNX_NETWORKS", "60"))
RTOL = 1e-5

POINTWISE = [
    nn.ReLU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.GELU, nn.SiLU, nn.Mish, nn.ELU, nn.SELU, nn.Softplus, nn.ReLU6,
    nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.Identity, nn.Dropout,
]  # fmt: skip


class Residual(nn.Module):
    """x + f(x)"""

    def __init__(self, inner: nn.Module) -> None:
        self.inner = inner

    def forward(self, x: et.ExTensor) -> et.ExTensor:
        return x + self.inner(x)


class Last(nn.Module):
    """The outputs of a recurrent layer without its state."""

    def __init__(self, inner: nn.Module) -> None:
        self.inner = inner

    def forward(self, x: et.ExTensor) -> et.ExTensor:
        return self.inner(x)[0]


class Network:
    """Draws layers that fit each other; ``shape`` is that of a sample."""

    def __init__(self, seed: list[int]) -> None:
        self.rng = np.random.default_rng(seed)
        self.layers: list[nn.Module] = []

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def add(self, make: Callable[..., nn.Module], *args: Any, **options: Any) -> None:
        self.layers.append(make(*args, **options))

    def seed(self) -> int:
        return int(self.rng.integers(1 << 30))

    def pointwise(self) -> None:
        self.add(self.pick(*POINTWISE))

    def images(self) -> et.ExTensor:
        channels, height, width = (int(self.rng.integers(a, b)) for a, b in ((1, 5), (8, 14), (8, 14)))
        shape = (channels, height, width)
        for _ in range(self.rng.integers(1, 5)):
            kind = self.pick(
                "conv", "conv", "up", "norm", "group", "instance", "layer", "pool", "mean", "point", "rest"
            )
            if kind == "conv":
                groups = self.pick(1, channels)
                out = groups * int(self.rng.integers(1, 4))
                size, stride, dilation = self.pick(1, 2, 3), self.pick(1, 2), self.pick(1, 2)
                padding = self.pick(0, 1, "same") if stride == 1 else self.pick(0, 1)
                reach = (size - 1) * dilation + 1
                if padding != "same" and min(height, width) + 2 * padding < reach:
                    continue
                self.add(
                    nn.Conv2d,
                    channels,
                    out,
                    size,
                    stride,
                    padding,
                    dilation,
                    groups,
                    self.pick(True, False),
                    rng=self.seed(),
                )
                channels = out
            elif kind == "up":
                out = int(self.rng.integers(1, 4))
                self.add(
                    nn.ConvTranspose2d, channels, out, 3, stride=2, padding=self.pick(0, 1), output_padding=self.pick(0, 1),
                    rng=self.seed(),
                )  # fmt: skip
                channels = out
            elif kind == "norm":
                norm = nn.BatchNorm2d(channels, affine=self.pick(True, False))
                norm.running_mean = et.random.normal(self.seed(), (channels,))
                norm.running_var = et.random.uniform(self.seed(), (channels,), 0.5, 2.0)
                self.layers.append(norm)
            elif kind == "group":
                self.add(nn.GroupNorm, self.pick(1, channels), channels)
            elif kind == "instance":
                self.add(nn.InstanceNorm2d, channels, affine=self.pick(True, False))
            elif kind == "layer":
                self.add(nn.LayerNorm, width)
            elif kind == "pool" and min(height, width) >= 3:
                size, stride, ceil = self.pick(2, 3), self.pick(1, 2), self.pick(True, False)
                pool = self.pick(nn.MaxPool2d, nn.AvgPool2d)
                self.add(pool, size, stride, self.pick(0, 1), ceil_mode=ceil and pool is nn.MaxPool2d)
            elif kind == "mean":
                self.add(nn.AdaptiveAvgPool2d, self.pick((3, 4), (5, 5), 2))
            elif kind == "rest":
                self.add(Residual, nn.Conv2d(channels, channels, 3, padding=1, rng=self.seed()))
            self.pointwise()
            height, width = self.after(shape)[-2:]
        if self.pick(True, False):
            self.add(nn.Flatten)
            self.add(nn.Linear, int(np.prod(self.after(shape))), 3, rng=self.seed())
            self.add(self.pick(nn.Softmax, nn.LogSoftmax), -1)
        return et.random.normal(self.seed(), (2, *shape))

    def rows(self) -> et.ExTensor:
        width = first = int(self.rng.integers(2, 9))
        for _ in range(self.rng.integers(1, 5)):
            kind = self.pick("linear", "norm", "layer", "rms", "prelu")
            if kind == "linear":
                out = int(self.rng.integers(1, 9))
                self.add(nn.Linear, width, out, self.pick(True, False), rng=self.seed())
                width = out
            elif kind == "norm":
                self.add(nn.BatchNorm1d, width)
            elif kind == "prelu":
                self.add(nn.PReLU, self.pick(1, width))
            else:
                self.add(nn.LayerNorm if kind == "layer" else nn.RMSNorm, width)
            self.pointwise()
        return et.random.normal(self.seed(), (3, first))

    def sequences(self) -> et.ExTensor:
        width = first = 2 * int(self.rng.integers(1, 5))
        for _ in range(self.rng.integers(1, 4)):
            kind = self.pick("recurrent", "recurrent", "encoder", "linear", "norm", "conv")
            if kind == "recurrent":
                size, both = int(self.rng.integers(1, 5)), self.pick(True, False)
                layer = self.pick(nn.RNN, nn.GRU, nn.LSTM)
                inner = layer(
                    width, size, num_layers=self.pick(1, 2), bias=self.pick(True, False), batch_first=True, bidirectional=both,
                    rng=self.seed(),
                )  # fmt: skip
                self.add(Last, inner)
                width = size * (2 if both else 1)
            elif kind == "encoder":
                self.add(
                    nn.TransformerEncoderLayer, width, self.pick(1, 2) if width % 2 == 0 else 1, 8, batch_first=True,
                    activation=self.pick("relu", "gelu"), norm_first=self.pick(True, False), rng=self.seed(),
                )  # fmt: skip
            elif kind == "linear":
                out = int(self.rng.integers(1, 9))
                self.add(nn.Linear, width, out, rng=self.seed())
                width = out
            elif kind == "norm":
                self.add(self.pick(nn.LayerNorm, nn.RMSNorm), width)
            else:
                self.add(Residual, nn.Linear(width, width, rng=self.seed()))
            self.pointwise()
        return et.random.normal(self.seed(), (2, 5, first))

    def after(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a sample after the layers so far."""
        with et.no_grad():
            return nn.Sequential(*self.layers).eval()(et.zeros((1, *shape))).shape[1:]


def near(theirs: Any, ours: Any, tolerance: float) -> None:
    for a, b in zip(theirs, ours):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * (np.abs(b).max(initial=0.0) or 1))


def magnifies(net: nn.Sequential, x: et.ExTensor) -> bool:
    """Whether rounding, or noise like it between the layers, moves the outputs by as much as the tolerance."""
    rng, wide = np.random.default_rng(0), et.tensor(x.numpy().astype(np.float64))

    def output(noise: float) -> np.ndarray:
        found = wide
        for layer in net:
            found = layer(found + noise * np.abs(found.numpy()).max() * rng.normal(size=found.shape))
        return found.numpy()

    ours = net(x).numpy()
    net.astype("float64")
    exact = output(0.0)
    moved = max(np.abs(output(1e-7) - exact).max() for _ in range(3))
    net.astype("float32")
    scale = np.abs(exact).max() or 1
    return bool(moved > RTOL * scale or np.abs(ours - exact).max() > RTOL / 10 * scale)


def drawn(seed: int) -> tuple[nn.Sequential, et.ExTensor, et.ExTensor]:
    """A network, a sample and more samples, where two programs can agree at all."""
    for attempt in range(50):
        network = Network([seed, attempt])
        try:
            x = getattr(network, ["images", "rows", "sequences"][seed % 3])()
        except ValueError:
            continue  # an image became too small for a layer
        net, more = nn.Sequential(*network.layers).eval(), et.concatenate([x, x * 0.5, x + 1], 0)
        if not magnifies(net, x) and not magnifies(net, more):
            return net, x, more
    raise AssertionError(f"no network of seed {seed} is well conditioned")


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_network(seed: int, tmp_path: Path) -> None:
    net, x, more = drawn(seed)
    written = export(net, tmp_path / "net.onnx", x, opset=17 + seed % 7)
    assert written.difference is not None
    assert written.difference < RTOL, net
    ours = [t.numpy() for t in tensors_in(net(more))]
    near(run_in_runtime(written.path, {written.inputs[0]: more.numpy()}), ours, RTOL)
    near([t.numpy() for t in tensors_in(load(written.path)(more))], ours, RTOL)
