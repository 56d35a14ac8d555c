"""bfloat16 products, convolutions and attention beside float32 and beside PyTorch, in one process.

    python benchmarks/half.py [group...] [--threads 1] [--rounds 40]

Groups: products (squares, and the layers of a GPT 384 wide and of an MLP, forwards and both gradients), convolutions (ResNet-20),
attention. Short rounds in turn, the minimum of each counts. Prints for each case the rate, the time as a multiple of PyTorch's bfloat16
(less is better) and how many times as fast as our float32 it is; then geometric means. Needs torch.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from extensor import set_num_threads
from extensor.bench.timing import best_times
from extensor.dtypes import bfloat16
from extensor.kernels import NATIVE

RNG = np.random.default_rng(0)
F = torch.nn.functional


class Case(NamedTuple):
    """One computation three times, and how many multiplications and additions it has."""

    name: str
    work: float
    ours: Callable[[], Any]
    torch: Callable[[], Any]
    float32: Callable[[], Any]


def drawn(*shape: int) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    """Numbers as float32, as bfloat16 and as PyTorch's bfloat16."""
    x = RNG.standard_normal(shape).astype(np.float32)
    return x, x.astype(bfloat16), torch.from_numpy(x).bfloat16()


def products() -> Iterator[Case]:
    multiply, linear, back = NATIVE["matmul"], NATIVE["linear"], NATIVE["linear_backward"]
    for n in (512, 1024, 2048):
        (a, a16, ta), (b, b16, tb) = drawn(n, n), drawn(n, n)
        yield Case(
            f"matmul {n}", 2 * n**3, lambda: multiply(a16, b16), lambda: ta @ tb, lambda: multiply(a, b)
        )
    layers = [
        (2048, 384, 1152),
        (2048, 384, 384),
        (2048, 384, 1536),
        (2048, 1536, 384),
        (128, 784, 1024),
        (128, 1024, 1024),
    ]
    for m, k, n in layers:
        (x, x16, tx), (w, w16, tw), (b, b16, tb), (g, g16, tg) = (
            drawn(m, k),
            drawn(n, k),
            drawn(n),
            drawn(m, n),
        )
        name, work = f"linear {m} x {k} -> {n}", 2 * m * n * k
        yield Case(
            name, work, lambda: linear(x16, w16, b16), lambda: F.linear(tx, tw, tb), lambda: linear(x, w, b)
        )
        needs = (True, False, False)
        yield Case(
            f"{name}, grad x",
            work,
            lambda: back(g16, x16, w16, needs),
            lambda: tg @ tw,
            lambda: back(g, x, w, needs),
        )
        wants = (False, True, False)
        yield Case(
            f"{name}, grad w",
            work,
            lambda: back(g16, x16, w16, wants),
            lambda: tg.t() @ tx,
            lambda: back(g, x, w, wants),
        )


def convolutions() -> Iterator[Case]:
    forward, back = NATIVE["conv2d"], NATIVE["conv2d_backward"]
    images = 64
    # inputs, outputs, size, stride, kernel
    for c, o, size, stride, kernel in (
        (3, 16, 32, 1, 3), (16, 16, 32, 1, 3), (16, 32, 32, 2, 3), (32, 32, 16, 1, 3),
        (32, 64, 16, 2, 3), (64, 64, 8, 1, 3), (16, 32, 32, 2, 1), (32, 64, 16, 2, 1),
    ):  # fmt: skip
        pad = kernel // 2
        out = (size + 2 * pad - kernel) // stride + 1
        (x, x16, tx), (w, w16, tw), (g, g16, tg) = (
            drawn(images, c, size, size), drawn(o, c, kernel, kernel), drawn(images, o, out, out),
        )  # fmt: skip
        options = ((stride, stride), (pad,) * 4, (1, 1), 1)
        name, work = (
            f"conv {c} -> {o}, {size} x {size} / {stride}, {kernel} x {kernel}",
            2 * images * o * c * kernel**2 * out**2,
        )
        yield Case(
            name, work, lambda: forward(x16, w16, None, *options), lambda: F.conv2d(tx, tw, None, stride, pad),
            lambda: forward(x, w, None, *options),
        )  # fmt: skip
        for gradient, needs in (("x", (True, False, False)), ("w", (False, True, False))):
            if c == 3 and gradient == "x":
                continue
            yield Case(
                f"{name}, grad {gradient}", work, lambda: back(g16, x16, w16, *options, needs),
                lambda: torch.ops.aten.convolution_backward(
                    tg, tx, tw, None, (stride, stride), (pad, pad), (1, 1), False, (0, 0), 1, needs
                ),
                lambda: back(g, x, w, *options, needs),
            )  # fmt: skip


def attention() -> Iterator[Case]:
    forward, back = NATIVE["scaled_dot_product_attention"], NATIVE["scaled_dot_product_attention_backward"]
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    flash_back = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    for batch, heads, length, features, causal in (
        (8, 6, 256, 64, True), (8, 6, 256, 64, False), (2, 6, 1024, 64, True), (16, 4, 128, 32, True),
    ):  # fmt: skip
        drawings = [drawn(batch, heads, length, features) for _ in range(4)]
        q, k, v, g = (d[0] for d in drawings)
        q16, k16, v16, g16 = (d[1] for d in drawings)
        tq, tk, tv, tg = (d[2] for d in drawings)
        scale = features**-0.5
        name = f"attention {batch} x {heads}, {length} x {features}{', causal' if causal else ''}"
        work = 4 * batch * heads * length**2 * features * (0.5 if causal else 1)
        yield Case(
            name, work, lambda: forward(q16, k16, v16, None, causal, scale),
            lambda: F.scaled_dot_product_attention(tq, tk, tv, is_causal=causal), lambda: forward(q, k, v, None, causal, scale),
        )  # fmt: skip
        out, sums = flash(tq, tk, tv, 0.0, causal)
        needs = (True, True, True, False)
        yield Case(
            f"{name}, gradients", 2.5 * work, lambda: back(g16, q16, k16, v16, None, causal, scale, needs),
            lambda: flash_back(tg, tq, tk, tv, out, sums, 0.0, causal), lambda: back(g, q, k, v, None, causal, scale, needs),
        )  # fmt: skip


GROUPS = {"products": products, "convolutions": convolutions, "attention": attention}


def geometric_mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    for group in options.groups or GROUPS:
        against, faster = [], []
        print(f"{group}, {options.threads} threads{'':22} GFLOP/s   / torch   x float32")
        for case in GROUPS[group]():
            times = best_times(
                {"ours": case.ours, "torch": case.torch, "float32": case.float32},
                options.rounds,
                seconds=0.003,
            )
            against.append(times["ours"] / times["torch"])
            faster.append(times["float32"] / times["ours"])
            rate = case.work / times["ours"] / 1e9
            print(f"  {case.name:48} {rate:7.0f} {against[-1]:9.2f} {faster[-1]:9.2f}", flush=True)
        print(f"  {'geometric mean':48} {'':7} {geometric_mean(against):9.3f} {geometric_mean(faster):9.3f}")
        print(f"  {'worst':48} {'':7} {max(against):9.2f} {min(faster):9.2f}\n")


if __name__ == "__main__":
    main()
