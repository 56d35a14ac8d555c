"""A linear map with what follows it, and with its weight packed beforehand, gives the bits of its parts."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn
from extensor.kernels.dispatch import KERNELS

pytest.importorskip("extensor._native", reason="without the native core nothing is fused")

from extensor._native import fused_linear

# rows, inputs, outputs: scalar products, panels, several blocks of inputs, slices of them, threads, and what is hardly there
SIZES = [
    (1, 784, 128), (9, 40, 33), (10, 40, 33), (32, 784, 128), (64, 128, 65), (50, 1000, 70), (64, 4000, 64), (300, 129, 512),
    (13, 1024, 400), (700, 100, 16), (12, 5, 3), (12, 1, 20), (12, 0, 5), (0, 4, 5), (12, 4, 0),
]  # fmt: skip


def native(name: str, *arguments: Any) -> Any:
    kernel = KERNELS[name].native
    assert kernel is not None
    return kernel(*arguments)


def after(y: np.ndarray, activation: str | None, added: np.ndarray | None) -> np.ndarray:
    if activation == "relu":
        y = native("relu", y)
    elif activation is not None:
        y = native("gelu", y, activation == "gelu_tanh")
    return y if added is None else native("add", y, added)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh"])
def test_the_bits_of_its_parts(size: tuple[int, int, int], activation: str | None) -> None:
    rows, inputs, outputs = size
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
    fused = fused_linear()
    for shape in ((rows,), (1, rows), (rows // 2, 2)):
        x = rng.standard_normal((*shape, inputs)).astype(np.float32)
        x.reshape(math.prod(shape), inputs)[1:2, :1] = np.nan
        for bias in (None, rng.standard_normal(outputs).astype(np.float32)):
            for added in (None, rng.standard_normal((*shape, outputs)).astype(np.float32)):
                expected = after(native("linear", x, weight, bias), activation, added)
                found = fused(x, weight, bias, activation, added, 0)
                assert found.shape == expected.shape
                assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_give_the_same_bits(threads: int) -> None:
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((700, 600), (333, 600)))
    added = rng.standard_normal((700, 333)).astype(np.float32)
    expected = after(native("linear", x, weight, None), "gelu", added).tobytes()
    before, fused = et.get_num_threads(), fused_linear()
    et.set_num_threads(threads)
    try:
        for _ in range(3):
            assert fused(x, weight, None, "gelu", added, 0).tobytes() == expected
    finally:
        et.set_num_threads(before)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"x": np.ones((12, 3), np.float32).T},
        {"x": np.ones((3, 12), np.float64)},
        {"weight": np.ones((12, 5), np.float32).T},
        {"bias": np.ones(6, np.float32)},
        {"added": np.ones((1, 5), np.float32)},
        {"activation": "tanh"},
    ],
    ids=lambda spoiled: next(iter(spoiled)),
)
def test_what_it_does_not_cover(spoiled: dict[str, Any]) -> None:
    given = {
        "x": np.ones((3, 12), np.float32), "weight": np.ones((5, 12), np.float32), "bias": None, "activation": None, "added": None,
    }  # fmt: skip
    assert fused_linear()(*given.values(), 0).shape == (3, 5)
    assert fused_linear()(*(given | spoiled).values(), 0) is NotImplemented


def test_a_packed_weight_is_shared_and_let_go() -> None:
    x, weight = np.ones((16, 8), np.float32), np.ones((6, 8), np.float32)
    before, fused = sys.getrefcount(weight), [fused_linear() for _ in range(3)]
    for kernel in fused:
        kernel(x, weight, None, None, None, 0)
    assert sys.getrefcount(weight) == before + 3  # each remembers it; it came only once
    for kernel in fused:
        kernel(x, weight, None, None, None, 0)
    assert sys.getrefcount(weight) == before + 4  # packed once for all
    for kernel in fused:
        kernel(x, weight.copy(), None, None, None, 0)
    assert sys.getrefcount(weight) == before


class Block(nn.Module):
    """Every chain there is: relu, both gelus, a sum on either side, a sum of something later, a sum that broadcasts, a norm."""

    def __init__(self, width: int) -> None:
        self.layers = nn.ModuleList([nn.Linear(width, width, bias=i % 2 == 0, rng=i) for i in range(8)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x: et.ExTensor) -> tuple[et.ExTensor, ...]:
        a = self.layers[0](x).relu()
        b = et.gelu(self.layers[1](a))
        c = et.gelu(self.layers[2](b), approximate=True)
        d = x + self.layers[3](c)
        e = self.layers[4](d) + d
        f = self.layers[5](e)
        g = f + e.tanh()
        h = self.layers[6](g) + self.norm.weight
        return self.layers[7](h).relu() + x, h


@pytest.mark.parametrize("rows", [1, 40])
def test_a_network(rows: int) -> None:
    x = et.random.normal(1, (rows, 2, 48))
    model = Block(48).eval()
    compiled = et.compile(model)
    with et.no_grad():
        for factor in (1.0, 1.0, 2.0):
            model.layers[1].weight.assign(model.layers[1].weight * factor)
            for _ in range(3):
                for found, expected in zip(compiled(x), model(x)):
                    assert found.numpy().tobytes() == expected.numpy().tobytes()
    assert compiled.programs[0].kernels == (
        "linear + relu", "linear + gelu", "linear + gelu", "linear + add", "linear + add", "linear", "tanh", "add", "linear", "add",
        "linear + relu", "add",
    )  # fmt: skip
    scope: dict[str, Any] = {}
    exec(compiled.source(), scope)
    with et.no_grad():
        for found, expected in zip(scope["block"](x, **compiled.objects()), model(x)):
            assert found.numpy().tobytes() == expected.numpy().tobytes()
