"""A two-layer network trained by hand: every forward, backward and update is one call that you can read.

The data is a hill on a square, y = exp(-|x|^2). Nothing is recorded and nothing happens behind the scenes: each
line of the backward pass undoes one line of the forward pass, last line first.

    python examples/mlp_by_hand.py
"""

from __future__ import annotations

import extensor as et

STEPS = 1000
LEARNING_RATE = 0.1


def make_data(rng: int, n: int = 256) -> tuple[et.ExTensor, et.ExTensor]:
    """Points of the square [-1.5, 1.5]^2 and the height of the hill there."""
    x = et.random.uniform(rng, (n, 2), low=-1.5, high=1.5)
    y = et.exp(-et.sum(et.square(x), axis=1, keepdims=True))
    return x, y


def train(steps: int = STEPS) -> float:
    """Train the network and return its last loss."""
    x, y = make_data(rng=0)

    w1 = et.init.kaiming_uniform((32, 2), nonlinearity="tanh", rng=1)
    b1 = et.init.uniform((32,), low=-1.0, high=1.0, rng=2)
    w2 = et.init.kaiming_uniform((1, 32), nonlinearity="linear", rng=3)
    b2 = et.zeros((1,))

    for step in range(steps + 1):
        # forward
        h = et.linear(x, w1, b1)  # (256, 32)
        a = et.tanh(h)
        prediction = et.linear(a, w2, b2)  # (256, 1)
        loss = et.mean_squared_error(prediction, y)  # ()

        if step % 250 == 0:
            print(f"step {step:5d}   loss {loss.item():.6f}")

        # backward, in the opposite order
        grad_loss = et.ones(())
        grad_prediction = et.mean_squared_error_backward(grad_loss, prediction, y)
        grad_a, grad_w2, grad_b2 = et.linear_backward(grad_prediction, a, w2)
        grad_h = et.tanh_backward(grad_a, a)  # tanh' = 1 - tanh^2: its backward takes the output
        _, grad_w1, grad_b1 = et.linear_backward(grad_h, x, w1)

        # update
        w1 = et.sgd_step(w1, grad_w1, LEARNING_RATE)
        b1 = et.sgd_step(b1, grad_b1, LEARNING_RATE)
        w2 = et.sgd_step(w2, grad_w2, LEARNING_RATE)
        b2 = et.sgd_step(b2, grad_b2, LEARNING_RATE)

    return loss.item()


if __name__ == "__main__":
    print(f"final loss {train():.6f}")
