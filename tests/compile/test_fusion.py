"""Steps of inference programs that run as one give the bits of their parts, whatever happens to the weights in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.kernels.dispatch import KERNELS

pytest.importorskip("extensor._native", reason="without the native core nothing is fused")

from extensor._native import fused_conv2d


class Block(nn.Module):
    """Every chain there is: norm and relu, norm with a shortcut, a shortcut that comes late, a norm alone, a convolution alone."""

    def __init__(self, channels: int) -> None:
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(channels, channels, 3, padding=1, bias=i % 2 == 0) for i in range(5)]
        )
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels, affine=i != 2) for i in range(4)])

    def forward(self, x: et.ExTensor) -> tuple[et.ExTensor, et.ExTensor]:
        a = self.norms[0](self.convolutions[0](x)).relu()
        b = (x + self.norms[1](self.convolutions[1](a))).relu()
        c = self.norms[2](self.convolutions[2](b))
        d = (c + b.tanh()).relu()  # what is added comes after the norm
        e = self.norms[3](self.convolutions[3](d))
        return self.convolutions[4](e), e


def trained(model: nn.Module, x: et.ExTensor) -> nn.Module:
    model.train()
    for _ in range(3):
        model(x)
    return model.eval()


def bits(result: Any) -> list[bytes]:
    return [t.numpy().tobytes() for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("batch", [1, 9])
def test_a_chain_has_the_bits_of_its_parts(batch: int) -> None:
    et.seed(0)
    x = et.random.normal(1, (batch, 16, 21, 17))
    model = trained(Block(16), x)
    compiled = et.compile(model)
    with et.no_grad():
        for _ in range(3):
            assert bits(compiled(x)) == bits(model(x))
    names = [name for name in compiled.programs[0].kernels if "conv2d" in name]
    assert names == [
        "conv2d + batch_norm + relu", "conv2d + batch_norm + add + relu", "conv2d + batch_norm",
        "conv2d + batch_norm", "conv2d",
    ]  # fmt: skip
    scope: dict[str, Any] = {}
    exec(compiled.source(), scope)
    with et.no_grad():
        assert bits(scope["block"](x, **compiled.objects())) == bits(model(x))


class ReluFirst(nn.Module):
    """A convolution and relu: before a norm, which stays behind it, before a sum, and alone."""

    def __init__(self, channels: int) -> None:
        self.convolutions = nn.ModuleList([nn.Conv2d(channels, channels, 3, padding=1) for _ in range(4)])
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: et.ExTensor) -> et.ExTensor:
        a = self.norm(self.convolutions[0](x).relu())
        b = self.convolutions[1](a).relu() + x
        c = (self.convolutions[2](b) + a).relu()  # a sum without a norm before it is not fused
        return self.convolutions[3](c).relu()


@pytest.mark.parametrize("side", [5, 24])  # directly, and by Winograd's method
def test_relu_is_fused_without_a_norm(side: int) -> None:
    et.seed(0)
    x = et.random.normal(1, (2, 16, side, side))
    model = trained(ReluFirst(16), x)
    compiled = et.compile(model)
    with et.no_grad():
        for _ in range(3):
            assert bits(compiled(x)) == bits(model(x))
    names = [name for name in compiled.programs[0].kernels if "conv2d" in name]
    assert names == ["conv2d + relu", "conv2d + relu", "conv2d", "conv2d + relu"]


def step_of(model: nn.Module, x: et.ExTensor) -> None:
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.train()
    (model(x)[0] ** 2.0).sum().backward()
    optimizer.step()
    model.eval()


CHANGES: dict[str, Callable[[Any, et.ExTensor], Any]] = {
    "a step of an optimiser": step_of,
    "a new weight": lambda model, x: model.convolutions[0].weight.assign(model.convolutions[0].weight * -2.0),
    "an infinite weight": lambda model, x: model.convolutions[0].weight.assign(
        model.convolutions[0].weight.at[0, 0, 0, 0].set(float("inf"))
    ),
    "a weight that dwarfs the others": lambda model, x: model.convolutions[0].weight.assign(
        model.convolutions[0].weight.at[0, 0, 0, 0].set(1e6)
    ),
    "other statistics": lambda model, x: setattr(
        model.norms[0], "running_mean", model.norms[0].running_mean + 1.0
    ),
    "loaded weights": lambda model, x: model.load_state_dict(
        {name: value * 0.5 for name, value in model.state_dict().items()}
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_weights_are_noticed(name: str) -> None:
    et.seed(0)
    x = et.random.normal(1, (2, 16, 20, 20))
    model = trained(Block(16), x)
    compiled = et.compile(model)
    with et.no_grad():
        compiled(x)
        before = bits(compiled(x))
    for _ in range(2):
        CHANGES[name](model, x)
        with et.no_grad():
            expected = bits(model(x))
            assert bits(compiled(x)) == expected
            assert bits(compiled(x)) == expected
    assert expected != before


def test_convolutions_of_a_training_step_are_not_fused() -> None:
    model = Block(4)
    compiled = et.compile(lambda x: (model(x)[0] ** 2.0).sum().backward())
    compiled(et.random.normal(1, (2, 4, 6, 6)))
    assert not any("conv2d" in name and "+" in name for name in compiled.programs[0].kernels)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_dtypes_run_part_by_part(dtype: str) -> None:
    et.seed(0)
    x = et.random.normal(1, (2, 4, 8, 8)).astype(dtype)
    model = trained(Block(4), x.astype("float32"))
    model.load_state_dict({name: value.astype(dtype) for name, value in model.state_dict().items()})
    compiled = et.compile(model)
    with et.no_grad():
        for _ in range(2):
            assert bits(compiled(x)) == bits(model(x))


# x, weight, stride, padding, dilation, groups: one for each way through the kernels
SHAPES = [
    ((1, 16, 32, 32), (16, 16, 3, 3), 1, 1, 1, 1),
    ((1, 64, 8, 8), (64, 64, 3, 3), 1, 1, 1, 1),
    ((8, 16, 32, 32), (24, 16, 3, 3), 1, 1, 1, 1),
    ((1, 16, 32, 32), (32, 16, 3, 3), 2, 1, 1, 1),
    ((2, 3, 9, 11), (5, 3, 3, 3), 1, 1, 1, 1),
    ((1, 6, 14, 14), (16, 6, 5, 5), 1, 0, 1, 1),
    ((1, 1, 28, 28), (6, 1, 5, 5), 1, 2, 1, 1),
    ((2, 8, 7, 7), (12, 8, 1, 1), 1, 0, 1, 1),
    ((2, 8, 9, 9), (12, 8, 1, 1), 2, 0, 1, 1),
    ((2, 6, 12, 12), (6, 1, 3, 3), 1, 1, 1, 6),
    ((2, 6, 12, 12), (9, 2, 3, 2), 1, 1, 2, 3),
    ((3, 4, 5, 5), (70, 4, 3, 3), 1, 1, 1, 1),
    ((0, 4, 5, 5), (7, 4, 3, 3), 1, 1, 1, 1),
]


@pytest.mark.parametrize("case", SHAPES, ids=str)
@pytest.mark.parametrize("spoil", [None, np.nan, 1e9])
@pytest.mark.parametrize("relu", [False, True])
def test_a_kept_weight_has_the_bits_of_a_new_one(case: Any, spoil: float | None, relu: bool) -> None:
    shape, kernel, stride, padding, dilation, groups = case
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(s).astype(np.float32) for s in (shape, kernel))
    if spoil is not None:
        weight[-1, 0, 0, -1] = spoil
    bias = rng.standard_normal(kernel[0]).astype(np.float32)
    options = ((stride,) * 2, (padding,) * 4, (dilation,) * 2, groups)
    plain, rectified, fused = KERNELS["conv2d"].native, KERNELS["relu"].native, fused_conv2d()
    assert plain is not None
    assert rectified is not None
    other = weight.copy()
    other[0] *= 2
    for values, kernel_weight in ((x, weight), (-x, weight), (x * 3, weight), (x, other)):
        expected = plain(values, kernel_weight, bias, *options)
        if relu:
            expected = rectified(expected)
        found = fused(values, kernel_weight, bias, *options, None, None, None, None, 0.0, None, relu, 0, 0)
        assert found.tobytes() == expected.tobytes()


def test_the_weight_that_is_kept_is_held_and_let_go() -> None:
    import sys

    weight = np.ones((4, 4, 3, 3), np.float32)
    fused, before = fused_conv2d(), sys.getrefcount(weight)
    options = ((1, 1), (1, 1, 1, 1), (1, 1), 1, None, None, None, None, 0.0, None, False, 0, 0)
    fused(np.ones((1, 4, 6, 6), np.float32), weight, None, *options)
    assert sys.getrefcount(weight) == before + 1
    del fused
    assert sys.getrefcount(weight) == before
