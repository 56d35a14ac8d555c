"""Batch norms of training programs, fused with the sum and relu behind them, give the bits of their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.kernels.dispatch import KERNELS

pytest.importorskip("extensor._native", reason="without the native core nothing is fused")


class Network(nn.Module):
    """``forward`` is given, with four norms and two convolutions to use."""

    def __init__(self, forward: Callable[[Any, et.ExTensor], Any], channels: int) -> None:
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels, affine=i != 3) for i in range(4)])
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(channels, channels, 3, padding=1, rng=i) for i in range(2)]
        )
        self.forward_of = forward

    def forward(self, x: et.ExTensor) -> Any:
        return self.forward_of(self, x)


def residual(net: Any, x: et.ExTensor) -> et.ExTensor:
    a = net.norms[0](net.convolutions[0](x)).relu()
    b = (net.norms[1](net.convolutions[1](a)) + a).relu()
    return (b + net.norms[2](b)).relu() * net.norms[3](b).relu()


def norm_alone(net: Any, x: et.ExTensor) -> et.ExTensor:
    return net.norms[0](x).relu()


def shown_before_relu(net: Any, x: et.ExTensor) -> tuple[et.ExTensor, et.ExTensor]:
    y = net.norms[0](net.convolutions[0](x))
    return y.relu(), y


def used_twice(net: Any, x: et.ExTensor) -> et.ExTensor:
    y = net.norms[0](net.convolutions[0](x))
    return y.relu() + y.tanh()


def twice_itself(net: Any, x: et.ExTensor) -> et.ExTensor:
    y = net.norms[0](net.convolutions[0](x))
    return (y + y).relu()


def number_added(net: Any, x: et.ExTensor) -> et.ExTensor:
    return (net.norms[0](net.convolutions[0](x)) + 0.25).relu()


def broadcast_added(net: Any, x: et.ExTensor) -> et.ExTensor:
    return (net.norms[0](net.convolutions[0](x)) + x[:1]).relu()


def made_larger(net: Any, x: et.ExTensor) -> et.ExTensor:
    y = net.norms[0](x[:1])
    return (y + x).relu()


def one_relu_of_two_norms(net: Any, x: et.ExTensor) -> et.ExTensor:
    return (net.norms[0](net.convolutions[0](x)) + net.norms[1](net.convolutions[1](x))).relu()


BACK = "relu_backward + batch_norm_backward"
# how it is built, and what must run as one
NETWORKS: dict[Callable[[Any, et.ExTensor], Any], list[str]] = {
    residual: [
        "batch_norm + relu", "batch_norm + add + relu", "batch_norm + add + relu", "batch_norm + relu", BACK, BACK,
        f"add + {BACK}", f"add + {BACK}",
    ],
    norm_alone: ["batch_norm + relu", BACK],
    shown_before_relu: [BACK],
    used_twice: [],
    twice_itself: [],
    number_added: [BACK],
    broadcast_added: [BACK],
    made_larger: [],
    one_relu_of_two_norms: ["batch_norm + add + relu"],
}  # fmt: skip


def digest(
    network: nn.Module, optimizer: Any, step: Callable[..., Any], batches: list[et.ExTensor]
) -> list[bytes]:
    found = []
    for x in batches:
        found += [t.numpy().tobytes() for t in step(x)]
    for value in network.state_dict().values():
        found.append(value.numpy().tobytes())
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("build", NETWORKS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (2, 16, 8, 8), (3, 2, 1, 6)], ids=str)
def test_a_training_has_the_bits_of_its_parts(
    build: Callable[[Any, et.ExTensor], Any], shape: tuple[int, ...], dtype: str
) -> None:
    batches = [et.random.normal(seed, shape).astype(dtype) for seed in range(4)]
    batches[2] = et.where(batches[2] > 1.5, et.full((), float("nan")).astype(dtype), batches[2])
    found = []
    for compiles in (False, True):
        net = Network(build, shape[1])
        net.load_state_dict({name: value.astype(dtype) for name, value in net.state_dict().items()})
        optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        def step(x: et.ExTensor, net: Any = net, optimizer: Any = optimizer) -> tuple[et.ExTensor, ...]:
            optimizer.zero_grad()
            out = net(x)
            out = out if isinstance(out, tuple) else (out,)
            (out[0] * x).sum().backward()
            optimizer.step()
            return out

        run = et.compile(step) if compiles else step
        found.append(digest(net, optimizer, run, batches))
        if compiles:
            assert len(run.programs) == 1
            names = [name for name in run.programs[0].kernels if "+" in name]
            assert sorted(names) == sorted(NETWORKS[build])
    assert found[0] == found[1]


def test_the_source_shows_the_parts_and_has_their_bits() -> None:
    net = Network(residual, 3)
    x = et.random.normal(1, (2, 3, 5, 5))
    step = et.compile(lambda x: (net(x) ** 2.0).sum().backward())
    step(x)
    text = step.source()
    assert "add + " not in text
    assert text.count("batch_norm_backward(") == 4
    net.zero_grad()
    before = net.state_dict()
    step(x)
    expected = [p.grad.numpy().tobytes() for p in net.parameters()]
    net.load_state_dict(before)
    net.zero_grad()
    names: dict[str, Any] = {}
    exec(text, names)
    names["step"](x, **step.objects())
    assert [p.grad.numpy().tobytes() for p in net.parameters()] == expected


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("needs", [(True, True, True), (False, True, False), (True, False, True)], ids=str)
def test_the_kernel_is_its_parts(
    threads: int, dtype: Any, added: bool, keeps: bool, needs: tuple[bool, ...]
) -> None:
    rng = np.random.default_rng(1)
    shape = (3, 5, 7, 3)
    g, other, x, relu = (rng.standard_normal(shape).astype(dtype) for _ in range(4))
    relu[relu < 0] = 0
    relu[0, 0, 0] = [np.nan, -0.0, np.inf]
    weight, mean, var = (rng.random(5).astype(dtype) for _ in range(3))
    rest = (x, weight, mean, var, True, 0.1, 1e-5, needs)
    zeros = np.zeros(5, dtype)
    before = et.get_num_threads()
    try:
        et.set_num_threads(threads)
        total = KERNELS["add"].native(g, other) if added else g
        arriving = KERNELS["relu_backward"].native(total, relu)
        expected = KERNELS["batch_norm_backward"].native(arriving, zeros, zeros, *rest)
        found = KERNELS["batch_norm_backward"].native(
            g, None, None, *rest, relu, other if added else None, keeps
        )
    finally:
        et.set_num_threads(before)
    assert len(found) == 4
    for a, b in zip(found, (*expected, arriving if keeps else None)):
        assert (a is None) == (b is None)
        assert a is None or a.tobytes() == b.tobytes()


def test_a_wrong_shape_is_not_covered() -> None:
    x = np.ones((2, 3, 4, 4), np.float32)
    vector, small = np.ones(3, np.float32), np.ones((2, 3, 4, 2), np.float32)
    forward = (x, vector, vector, vector, vector, True, 0.1, 1e-5)
    assert KERNELS["batch_norm"].native(*forward, small, True) is NotImplemented
    back = (x, None, None, x, vector, vector, vector, True, 0.1, 1e-5, (True, True, True))
    assert KERNELS["batch_norm_backward"].native(*back, small, None, False) is NotImplemented
    assert KERNELS["batch_norm_backward"].native(*back, None, None, False) is NotImplemented
    assert KERNELS["batch_norm_backward"].native(*back) is NotImplemented


def test_a_convolution_of_a_training_step_applies_relu() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3, rng=0), nn.ReLU(), nn.MaxPool2d(2))
    x = et.random.normal(0, (2, 3, 9, 9))
    found = []
    step = et.compile(lambda x: (net(x) ** 2.0).sum().backward())
    for run in (step, step, lambda x: (net(x) ** 2.0).sum().backward()):
        net.zero_grad()
        run(x)
        found.append([p.grad.numpy().tobytes() for p in net.parameters()])
    assert found[0] == found[1] == found[2]
