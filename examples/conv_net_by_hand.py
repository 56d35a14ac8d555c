"""A convolutional network trained by hand: it learns to tell the direction of noisy stripes.

Every image is 12 x 12 pixels of horizontal, vertical or diagonal stripes, somewhere, under noise. As in
mlp_by_hand.py nothing is recorded: each line of the backward pass undoes one line of the forward pass, last line
first.

    python examples/conv_net_by_hand.py
"""

from __future__ import annotations

import numpy as np

import extensor as et

STEPS = 120
LEARNING_RATE = 0.3
DIRECTIONS = np.array([[0.0, 1.0], [1.0, 0.0], [0.7, 0.7]])  # of the waves: across the stripes
SIZE = 12


def make_data(seed: int, n: int = 128) -> tuple[et.ExTensor, et.ExTensor]:
    """Images of shape (n, 1, 12, 12) and the direction of their stripes, 0, 1 or 2."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(DIRECTIONS), n)
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    i, j = np.mgrid[:SIZE, :SIZE]
    down, right = DIRECTIONS[labels, :, None, None].transpose(1, 0, 2, 3)
    images = np.sin(1.6 * (down * i + right * j) + phase) + rng.normal(0, 0.5, (n, SIZE, SIZE))
    return et.tensor(images[:, None], dtype=et.float32), et.tensor(labels)


class Network:
    """conv - relu - max pool - conv - relu - mean over all pixels - linear."""

    def __init__(self) -> None:
        self.k1, self.c1 = et.init.kaiming_normal((8, 1, 3, 3), rng=1), et.zeros(8)
        self.k2, self.c2 = et.init.kaiming_normal((16, 8, 3, 3), rng=2), et.zeros(16)
        self.w, self.b = et.init.xavier_normal((3, 16), rng=3), et.zeros(3)

    def predict(self, x: et.ExTensor) -> et.ExTensor:
        """The most likely direction of each image."""
        a = et.max_pool2d(et.relu(et.conv2d(x, self.k1, self.c1, padding=1)), 2)
        a = et.relu(et.conv2d(a, self.k2, self.c2, padding=1))
        return et.argmax(et.linear(et.global_avg_pool2d(a).reshape((-1, 16)), self.w, self.b), axis=1)

    def step(self, x: et.ExTensor, y: et.ExTensor) -> float:
        """One step of gradient descent; returns the loss before it."""
        # forward
        h1 = et.conv2d(x, self.k1, self.c1, padding=1)  # (128, 8, 12, 12)
        a1 = et.relu(h1)
        p1 = et.max_pool2d(a1, 2)  # (128, 8, 6, 6)
        h2 = et.conv2d(p1, self.k2, self.c2, padding=1)  # (128, 16, 6, 6)
        a2 = et.relu(h2)
        p2 = et.global_avg_pool2d(a2)  # (128, 16, 1, 1)
        features = et.reshape(p2, (-1, 16))
        logits = et.linear(features, self.w, self.b)  # (128, 3)
        loss = et.cross_entropy(logits, y)  # ()

        # backward, in the opposite order
        grad_logits = et.cross_entropy_backward(et.ones(()), logits, y)
        grad_features, grad_w, grad_b = et.linear_backward(grad_logits, features, self.w)
        grad_p2 = et.reshape_backward(grad_features, p2)
        grad_a2 = et.global_avg_pool2d_backward(grad_p2, a2)
        grad_h2 = et.relu_backward(grad_a2, h2)
        grad_p1, grad_k2, grad_c2 = et.conv2d_backward(grad_h2, p1, self.k2, padding=1)
        grad_a1 = et.max_pool2d_backward(grad_p1, a1, 2)
        grad_h1 = et.relu_backward(grad_a1, h1)
        # nobody asks for the gradient of the images: needs says so, and it is not computed
        _, grad_k1, grad_c1 = et.conv2d_backward(grad_h1, x, self.k1, padding=1, needs=(False, True, True))

        # update
        self.k1 = et.sgd_step(self.k1, grad_k1, LEARNING_RATE)
        self.c1 = et.sgd_step(self.c1, grad_c1, LEARNING_RATE)
        self.k2 = et.sgd_step(self.k2, grad_k2, LEARNING_RATE)
        self.c2 = et.sgd_step(self.c2, grad_c2, LEARNING_RATE)
        self.w = et.sgd_step(self.w, grad_w, LEARNING_RATE)
        self.b = et.sgd_step(self.b, grad_b, LEARNING_RATE)
        return loss.item()


def train(steps: int = STEPS) -> float:
    """Train the network; returns the share of new images it gets right."""
    network = Network()
    for step in range(steps):
        loss = network.step(*make_data(seed=step))
        if step % 20 == 0:
            print(f"step {step:4d}   loss {loss:.4f}")
    x, y = make_data(seed=10_000, n=500)
    return et.mean((network.predict(x) == y).astype(et.float32)).item()


if __name__ == "__main__":
    print(f"right: {train():.1%}")
