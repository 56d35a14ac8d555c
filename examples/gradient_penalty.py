"""A gradient penalty: the loss contains the gradient of the network, so training needs second derivatives.

The network learns a noisy line's height while its slope with respect to the input is held near 1: the penalty is
(|d output / d input| - 1)^2, as in Wasserstein GANs. Nothing special is needed: the gradient of a function is a
recorded computation like any other.

    python examples/gradient_penalty.py
"""

from __future__ import annotations

import extensor as et
from extensor import nn

WEIGHT = 1.0


def make_params() -> nn.ParameterDict:
    """The weights of a network with one hidden layer."""
    return nn.ParameterDict(
        {
            "w1": et.init.kaiming_uniform((32, 1), nonlinearity="tanh", rng=1),
            "b1": et.init.uniform((32,), low=-1.0, high=1.0, rng=2),
            "w2": et.init.kaiming_uniform((1, 32), nonlinearity="linear", rng=3),
        }
    )


def network(p: nn.ParameterDict, x: et.ExTensor) -> et.ExTensor:
    """The height at each x."""
    return et.linear(et.tanh(et.linear(x, p["w1"], p["b1"])), p["w2"])


def penalty(p: nn.ParameterDict, x: et.ExTensor) -> et.ExTensor:
    """How far the slope of the network is from 1, squared."""
    slope = et.grad(lambda x: network(p, x).sum())(x)
    return et.mean(et.square(et.abs(slope) - 1.0))


def train(weight: float = WEIGHT, steps: int = 300) -> float:
    """Train, and return the penalty at the end."""
    x = et.random.uniform(0, (64, 1), low=-1.0, high=1.0)
    y = x + et.random.normal(1, (64, 1), std=0.3)
    p = make_params()
    for step in range(steps + 1):
        p.zero_grad()
        fit = et.mean_squared_error(network(p, x), y)
        hold = penalty(p, x)
        (fit + weight * hold).backward()
        for parameter in p.values():
            parameter.assign(et.sgd_step(parameter.detach(), parameter.grad, 0.05))
        if step % 100 == 0:
            print(f"step {step:4d}   fit {fit.item():.4f}   penalty {hold.item():.4f}")
    return penalty(p, x).item()


if __name__ == "__main__":
    train()
