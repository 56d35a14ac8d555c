"""A loss of your own: a forward, its backward, the proof that they belong together, and a fit that uses them.

log-cosh is a squared error for small differences and an absolute error for large ones, without a kink:

    l = mean(log cosh(p - t)),    dl/dp = tanh(p - t) / N

    python examples/custom_loss_backward.py
    extensor verify examples/custom_loss_backward.py
"""

from __future__ import annotations

import numpy as np

import extensor as et
from extensor.testing import Case, check_gradient


@et.differentiable
def log_cosh(predictions: et.ExTensor, targets: et.ExTensor) -> et.ExTensor:
    """The mean of log cosh(p - t), written so that large differences do not overflow."""
    d = et.abs(predictions - targets)
    return et.mean(d + et.softplus(-2.0 * d) - float(np.log(2.0)))


def log_cosh_backward(
    grad_output: et.ExTensor, predictions: et.ExTensor, targets: et.ExTensor
) -> et.ExTensor:
    """Gradient of the predictions: tanh(p - t) / N."""
    return grad_output * et.tanh(predictions - targets) / predictions.size


# What `extensor verify` calls it with. The upstream gradients are random; all it needs are inputs.
SAMPLES = {
    "log_cosh": [
        Case(np.array([0.5, -1.0, 2.0]), np.array([0.0, 1.0, 2.5])),
        Case(np.linspace(-8.0, 8.0, 12).reshape(3, 4), np.full((3, 4), 0.3)),
    ],
}


def fit(steps: int = 300) -> tuple[float, float]:
    """Fit a line through points with a few wild outliers; the gradients are chained by the recorder."""
    x = et.linspace(-1.0, 1.0, 64)
    noise = et.random.normal(0, (64,), std=0.05)
    y = 2.0 * x + 1.0 + noise + et.where(et.arange(64) % 16 == 5, 20.0, 0.0)

    slope, offset = et.zeros(()), et.zeros(())
    gradients = et.grad(lambda slope, offset: log_cosh(slope * x + offset, y), argnums=(0, 1))
    for _ in range(steps):
        grad_slope, grad_offset = gradients(slope, offset)
        slope, offset = et.sgd_step(slope, grad_slope, 0.5), et.sgd_step(offset, grad_offset, 0.5)
    return slope.item(), offset.item()


def main() -> None:
    """Check the gradient at one point, then use it."""
    targets = et.tensor([0.0, 1.0, 2.5], dtype=et.float64)
    closeness = check_gradient(
        lambda p: log_cosh(p, targets),
        lambda grad_output, p: log_cosh_backward(grad_output, p, targets),
        et.tensor([0.5, -1.0, 2.0], dtype=et.float64),
    )
    print(f"log_cosh_backward agrees with central differences to {closeness.worst:.1e}")
    slope, offset = fit()
    print(f"fitted y = {slope:.2f} x + {offset:.2f}   (true: y = 2.00 x + 1.00, with outliers 20 above it)")


if __name__ == "__main__":
    main()
