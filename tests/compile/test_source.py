"""The text of a program computes what the program computes."""

from __future__ import annotations

from typing import Any

import pytest

import extensor as et
from extensor import nn, optim

from .networks import NETWORKS, Training


@pytest.mark.parametrize("network", NETWORKS)
def test_executed_it_has_the_same_bits(network: str) -> None:
    def make_optimizer(params: Any) -> Any:
        return optim.Adam(params, lr=1e-3)

    eager = Training(network, make_optimizer, clip=True, schedule="cosine")
    other = Training(network, make_optimizer, clip=True, schedule="cosine")
    expected = eager.digest(5, eager.step)
    compiled = et.compile(other.step)
    written: list[Any] = []

    def step(x: et.ExTensor, y: et.ExTensor) -> Any:
        if not compiled.programs:
            return compiled(x, y)
        if not written:
            names: dict[str, Any] = {}
            exec(compiled.source(), names)
            written.append(names["step"])
        return written[0](x, y, **compiled.objects())

    assert other.digest(5, step) == expected


def test_it_reads_like_the_function() -> None:
    layer = nn.Linear(2, 1, rng=0)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)

    @et.compile
    def train(x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        optimizer.zero_grad()
        loss = et.mean_squared_error(layer(x), y)
        loss.backward()
        optimizer.step()
        return loss

    train(et.ones((3, 2)), et.ones((3, 1)))
    assert train.source() == (
        "from extensor import full, linear, linear_backward, mean_squared_error, mean_squared_error_backward, no_grad\n\n\n"
        "def train(x, y, *, optimizers, parameters):\n"
        "    with no_grad():\n"
        "        linear_1 = linear(x, parameters['weight'], parameters['bias'])  # (3, 1)\n"
        "        mean_squared_error_1 = mean_squared_error(linear_1, y)  # ()\n"
        "        mean_squared_error_backward_1 = mean_squared_error_backward(full((), 1.0, dtype='float32'), linear_1, y)"
        "  # (3, 1)\n"
        "        _, grad_weight_1, grad_bias_1 = linear_backward(mean_squared_error_backward_1, x, parameters['weight'], "
        "needs=(False, True, True))  # (1, 2), (1,)\n"
        "        parameters['weight'].grad = grad_weight_1\n"
        "        parameters['bias'].grad = grad_bias_1\n"
        "        optimizers[0].step()  # SGD\n"
        "        return mean_squared_error_1\n"
    )
