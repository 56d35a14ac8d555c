"""One network, three ways to its gradient: by hand, with ``loss.backward()``, and with ``value_and_grad(fn)``.

The three run the same kernels in the same order, so they give the same numbers to the last bit.

    python examples/three_ways.py
"""

from __future__ import annotations

import extensor as et
from extensor import nn

Params = dict[str, et.ExTensor]
LEARNING_RATE = 0.1


def make_data() -> tuple[et.ExTensor, et.ExTensor]:
    """Points of a square and the height of a hill there."""
    x = et.random.uniform(0, (256, 2), low=-1.5, high=1.5)
    return x, et.exp(-et.sum(et.square(x), axis=1, keepdims=True))


def make_params() -> Params:
    """The first weights of the network, the same for all three."""
    return {
        "w1": et.init.kaiming_uniform((32, 2), nonlinearity="tanh", rng=1),
        "b1": et.init.uniform((32,), low=-1.0, high=1.0, rng=2),
        "w2": et.init.kaiming_uniform((1, 32), nonlinearity="linear", rng=3),
        "b2": et.zeros((1,)),
    }


def network_loss(p: Params, x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
    """The forward pass."""
    a = et.tanh(et.linear(x, p["w1"], p["b1"]))
    return et.mean_squared_error(et.linear(a, p["w2"], p["b2"]), y)


def by_hand(steps: int) -> Params:
    """Every backward function called by name, last line of the forward first."""
    x, y = make_data()
    p = make_params()
    for _ in range(steps):
        a = et.tanh(et.linear(x, p["w1"], p["b1"]))
        prediction = et.linear(a, p["w2"], p["b2"])

        grad_prediction = et.mean_squared_error_backward(et.ones(()), prediction, y)
        grad_a, grad_w2, grad_b2 = et.linear_backward(grad_prediction, a, p["w2"])
        grad_h = et.tanh_backward(grad_a, a)
        _, grad_w1, grad_b1 = et.linear_backward(grad_h, x, p["w1"])

        grads = {"w1": grad_w1, "b1": grad_b1, "w2": grad_w2, "b2": grad_b2}
        p = {name: et.sgd_step(p[name], grads[name], LEARNING_RATE) for name in p}
    return p


def with_backward(steps: int) -> Params:
    """Parameters collect their gradients when ``backward()`` walks the recorded graph."""
    x, y = make_data()
    p = nn.ParameterDict(make_params())
    for _ in range(steps):
        p.zero_grad()
        network_loss(p, x, y).backward()
        for parameter in p.values():
            parameter.assign(et.sgd_step(parameter.detach(), parameter.grad, LEARNING_RATE))
    return {name: parameter.detach() for name, parameter in p.items()}


def with_grad(steps: int) -> Params:
    """The gradient as a function of the parameters, made from the loss function."""
    x, y = make_data()
    p = make_params()
    step = et.value_and_grad(network_loss)
    for _ in range(steps):
        _, grads = step(p, x, y)
        p = {name: et.sgd_step(p[name], grads[name], LEARNING_RATE) for name in p}
    return p


def main() -> None:
    x, y = make_data()
    for way in (by_hand, with_backward, with_grad):
        print(f"{way.__name__:14} loss after 300 steps {network_loss(way(300), x, y).item():.9f}")


if __name__ == "__main__":
    main()
