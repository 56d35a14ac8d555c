"""How gradients are checked, and how a check can be fooled.

python examples/numerical_validation.py
"""

from __future__ import annotations

import extensor as et
from extensor.testing import assert_gradients_close, check_gradient, compute_numerical_gradient


def one_function() -> float:
    """Central differences beside the public backward of softmax."""
    x = et.random.normal(0, (3, 5), dtype=et.float64)
    grad_output = et.random.normal(1, (3, 5), dtype=et.float64)

    analytic = et.softmax_backward(grad_output, et.softmax(x))
    numerical = compute_numerical_gradient(et.softmax, x, grad_output)

    return assert_gradients_close(analytic, numerical).worst


def why_upstream_gradients_are_random() -> str:
    """With ones upstream the gradient of softmax is 0, and a backward that returns zeros passes."""
    x = et.random.normal(0, (3, 5), dtype=et.float64)

    def zeros(grad_output: et.ExTensor, x: et.ExTensor) -> et.ExTensor:
        return et.zeros_like(x)

    check_gradient(et.softmax, zeros, x, grad_output=et.ones((3, 5), dtype=et.float64))  # no complaint
    try:
        check_gradient(et.softmax, zeros, x)  # random upstream gradients
    except AssertionError as error:
        return str(error)
    raise RuntimeError("zeros passed for the gradient of softmax")


def a_whole_network() -> dict[str, float]:
    """The gradient of every parameter of a small network, by hand and by differences."""
    x = et.random.normal(0, (4, 3), dtype=et.float64)
    labels = et.tensor([0, 2, 1, 2])
    w1 = et.random.normal(1, (5, 3), dtype=et.float64)
    w2 = et.random.normal(2, (3, 5), dtype=et.float64)

    def loss(w1: et.ExTensor, w2: et.ExTensor) -> et.ExTensor:
        return et.cross_entropy(et.matmul(et.gelu(et.matmul(x, w1.T)), w2.T), labels)

    h = et.matmul(x, w1.T)
    a = et.gelu(h)
    logits = et.matmul(a, w2.T)
    grad_logits = et.cross_entropy_backward(et.ones((), dtype=et.float64), logits, labels)
    grad_a, grad_w2_t = et.matmul_backward(grad_logits, a, w2.T)
    grad_h = et.gelu_backward(grad_a, h)
    _, grad_w1_t = et.matmul_backward(grad_h, x, w1.T)

    return {
        "w1": assert_gradients_close(
            grad_w1_t.T, compute_numerical_gradient(lambda w: loss(w, w2), w1)
        ).worst,
        "w2": assert_gradients_close(
            grad_w2_t.T, compute_numerical_gradient(lambda w: loss(w1, w), w2)
        ).worst,
    }


def main() -> None:
    """Run the three parts."""
    print(f"softmax_backward: worst relative error {one_function():.1e}")
    print(f"zeros instead of it, with random upstream gradients: {why_upstream_gradients_are_random()}")
    for name, error in a_whole_network().items():
        print(f"network, gradient of {name}: worst relative error {error:.1e}")


if __name__ == "__main__":
    main()
