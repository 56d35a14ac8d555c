"""How accurate float32 convolutions of 3 x 3 are, beside PyTorch's, as a Markdown table.

ExTensor computes them by Winograd's method, which multiplies a quarter as often and rounds a little more. Errors are
taken against the same convolution in float64 and measured by the standard deviation of the result. Inputs are rectified
normal numbers, as behind a relu. Needs PyTorch.

    python benchmarks/conv_accuracy.py
"""

from __future__ import annotations

import numpy as np
import torch

import extensor as et

SHAPES = [(64, 16, 32), (64, 32, 16), (64, 64, 8), (4, 256, 14)]  # images, channels, height and width


def main() -> None:
    rng = np.random.default_rng(0)
    print("| channels | result | rms error, ExTensor | PyTorch | largest error, ExTensor | PyTorch |")
    print("|---:|---|---:|---:|---:|---:|")
    for images, channels, size in SHAPES:
        g = rng.standard_normal((images, channels, size, size)).astype(np.float32)
        x = np.maximum(rng.standard_normal(g.shape), 0).astype(np.float32)
        weight = rng.standard_normal((channels, channels, 3, 3)).astype(np.float32)
        exact = results_of_torch(*(torch.tensor(a).double() for a in (g, x, weight)))
        theirs = results_of_torch(*map(torch.tensor, (g, x, weight)))
        for name, truth, ours, others in zip(
            ("output", "gradient of x", "gradient of weight"), exact, ours_of(g, x, weight), theirs
        ):
            errors = [np.abs(found - truth) / truth.std() for found in (ours, others)]
            rms = [f"{np.sqrt(np.mean(e**2)):.1e}" for e in errors]
            largest = [f"{e.max():.1e}" for e in errors]
            print(f"| {channels} | {name} | {' | '.join(rms)} | {' | '.join(largest)} |")
    print_outliers(rng)


def print_outliers(rng: np.random.Generator) -> None:
    """The error of outputs that do not see one large pixel, but lie close to it."""
    print("\n| one pixel of | largest error where it is not seen, ExTensor | PyTorch |")
    print("|---:|---:|---:|")
    for size in (1e1, 1e2, 1e3, 1e4):
        x = rng.standard_normal((16, 16, 32, 32)).astype(np.float32)
        x[:, 0, 17, 14] = size
        g, weight = np.ones_like(x), rng.standard_normal((16, 16, 3, 3)).astype(np.float32)
        truth = results_of_torch(*(torch.tensor(a).double() for a in (g, x, weight)))[0]
        found = ours_of(g, x, weight)[0], results_of_torch(*map(torch.tensor, (g, x, weight)))[0]
        unseen = np.ones(truth.shape, np.bool_)
        unseen[:, :, 16:19, 13:16] = False
        errors = [f"{(np.abs(y - truth)[unseen] / truth[unseen].std()).max():.1e}" for y in found]
        print(f"| {size:g} | {' | '.join(errors)} |")


def results_of_torch(g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> list[np.ndarray]:
    x.requires_grad_(), weight.requires_grad_()
    y = torch.conv2d(x, weight, padding=1)
    return [a.detach().numpy() for a in (y, *torch.autograd.grad(y, (x, weight), g))]


def ours_of(g: np.ndarray, x: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
    tensors = [et.asarray(a) for a in (g, x, weight)]
    grads = et.conv2d_backward(*tensors, padding=1)
    return [a.numpy() for a in (et.conv2d(*tensors[1:], padding=1), grads.grad_x, grads.grad_weight)]


if __name__ == "__main__":
    main()
