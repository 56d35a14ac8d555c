"""Layers and losses as cases: a call alone, and a call with the gradients of all its floating inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import extensor as et

from .case import Case, Run

__all__ = ["both", "layer_cases", "loss_cases"]

Arrays = list[np.ndarray]
# name -> (size, arrays, ours(*tensors), theirs(torch, *tensors))
Layer = tuple[str, Callable[[], Arrays], Callable[..., Any], Callable[..., Any]]


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, count, shape)


def _recurrent(kind: str) -> Layer:
    ours = getattr(et.nn, kind)(64, 64, rng=0)
    twins: dict[str, Any] = {}  # PyTorch's layer, with our weights

    def theirs(torch: Any, x: Any) -> Any:
        if not twins:
            twins[kind] = getattr(torch.nn, kind)(64, 64)
            twins[kind].load_state_dict({n: torch.tensor(p.numpy()) for n, p in ours.state_dict().items()})
        return twins[kind](x)[0]

    return "16x16x64", lambda: [_normal(16, 16, 64)], lambda x: ours(x)[0], theirs


def _layers() -> dict[str, Layer]:
    def maps() -> Arrays:
        return [_normal(16, 16, 32, 32)]

    def kernel(*shape: int, of: tuple[int, ...] = (16, 16, 32, 32)) -> Callable[[], Arrays]:
        return lambda: [_normal(*of), _normal(*shape, seed=1)]

    def scaled(*shape: int, width: int) -> Callable[[], Arrays]:
        return lambda: [_normal(*shape), _normal(width, seed=1), _normal(width, seed=2)]

    def attention() -> Arrays:
        return [_normal(8, 4, 128, 32, seed=i) for i in range(3)]

    def batch_norm(x: Any, w: Any, b: Any) -> Any:
        return et.batch_norm(x, w, b, None, None, True).output

    return {
        "linear": ("64x512x512", lambda: [_normal(64, 512), _normal(512, 512), _normal(512)], et.linear,
                   lambda torch, *t: torch.nn.functional.linear(*t)),
        "conv2d 3x3": ("16x16x32x32", kernel(16, 16, 3, 3), lambda x, w: et.conv2d(x, w, padding=1),
                       lambda torch, x, w: torch.conv2d(x, w, padding=1)),
        "conv2d 3x3, stride 2": ("16x16x32x32", kernel(32, 16, 3, 3), lambda x, w: et.conv2d(x, w, stride=2, padding=1),
                                 lambda torch, x, w: torch.conv2d(x, w, stride=2, padding=1)),
        "conv2d depthwise": ("16x16x32x32", kernel(16, 1, 3, 3), lambda x, w: et.conv2d(x, w, padding=1, groups=16),
                             lambda torch, x, w: torch.conv2d(x, w, padding=1, groups=16)),
        "conv1d": ("16x16x512", kernel(16, 16, 5, of=(16, 16, 512)), lambda x, w: et.conv1d(x, w, padding=2),
                   lambda torch, x, w: torch.conv1d(x, w, padding=2)),
        "conv_transpose2d": ("16x16x16x16", kernel(16, 8, 2, 2, of=(16, 16, 16, 16)),
                             lambda x, w: et.conv_transpose2d(x, w, stride=2),
                             lambda torch, x, w: torch.conv_transpose2d(x, w, stride=2)),
        "max_pool2d": ("16x16x32x32", maps, lambda x: et.max_pool2d(x, 2), lambda torch, x: torch.max_pool2d(x, 2)),
        "avg_pool2d": ("16x16x32x32", maps, lambda x: et.avg_pool2d(x, 2),
                       lambda torch, x: torch.nn.functional.avg_pool2d(x, 2)),
        "global_avg_pool2d": ("16x16x32x32", maps, et.global_avg_pool2d, lambda torch, x: x.mean((2, 3), keepdim=True)),
        "batch_norm": ("16x16x32x32", scaled(16, 16, 32, 32, width=16), batch_norm,
                       lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True)),
        "layer_norm": ("256x512", scaled(256, 512, width=512), lambda x, w, b: et.layer_norm(x, (512,), w, b),
                       lambda torch, x, w, b: torch.layer_norm(x, (512,), w, b)),
        "rms_norm": ("256x512", lambda: scaled(256, 512, width=512)()[:2], lambda x, w: et.rms_norm(x, (512,), w),
                     lambda torch, x, w: torch.rms_norm(x, (512,), w, 1e-6)),
        "group_norm": ("16x32x16x16", scaled(16, 32, 16, 16, width=32), lambda x, w, b: et.group_norm(x, 8, w, b),
                       lambda torch, x, w, b: torch.group_norm(x, 8, w, b)),
        "instance_norm": ("16x16x32x32", scaled(16, 16, 32, 32, width=16), et.instance_norm,
                          lambda torch, x, w, b: torch.nn.functional.instance_norm(x, weight=w, bias=b)),
        "embedding": ("512 of 1000x64", lambda: [_labels(1000, 512), _normal(1000, 64)], et.embedding,
                      lambda torch, i, w: torch.nn.functional.embedding(i, w)),
        "attention, causal": ("8x4x128x32", attention, partial(et.scaled_dot_product_attention, causal=True),
                              lambda torch, *t: torch.nn.functional.scaled_dot_product_attention(*t, is_causal=True)),
        "RNN": _recurrent("RNN"), "GRU": _recurrent("GRU"), "LSTM": _recurrent("LSTM"),
    }  # fmt: skip


# our name -> PyTorch's in torch.nn.functional
_LOSSES = {
    "mean_squared_error": "mse_loss", "mean_absolute_error": "l1_loss", "smooth_l1": "smooth_l1_loss", "huber": "huber_loss",
    "binary_cross_entropy": "binary_cross_entropy",
    "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
}  # fmt: skip


def layer_cases(libraries: dict[str, ModuleType]) -> Iterator[Case]:
    """The layers of networks."""
    for name, layer in _layers().items():
        yield from both("layer", name, layer, libraries)


def loss_cases(libraries: dict[str, ModuleType], sizes: dict[str, int]) -> Iterator[Case]:
    """The losses of two tensors, and cross-entropy with labels."""

    def numbers(n: int) -> Arrays:
        return [np.random.default_rng(seed).uniform(0.05, 0.95, n).astype(np.float32) for seed in range(2)]

    def classes(n: int) -> Arrays:
        width = min(n, 64)
        return [_normal(n // width, width), _labels(width, n // width)]

    for size, n in sizes.items():
        for name, torch_name in _LOSSES.items():

            def theirs(torch: Any, a: Any, b: Any, f: str = torch_name) -> Any:
                return getattr(torch.nn.functional, f)(a, b.detach())

            def ours(a: Any, b: Any, f: str = name) -> Any:
                return getattr(et, f)(a, b.detach())

            yield from both("loss", name, (size, partial(numbers, n), ours, theirs), libraries)
        labelled: Layer = (
            size, partial(classes, n), et.cross_entropy, lambda torch, *t: torch.nn.functional.cross_entropy(*t),
        )  # fmt: skip
        yield from both("loss", "cross_entropy", labelled, libraries)


def both(group: str, name: str, layer: Layer, libraries: dict[str, ModuleType]) -> Iterator[Case]:
    """A layer called alone without recording, and called with the gradients of its float32 inputs."""
    size, arrays, ours, theirs = layer

    def forward() -> dict[str, Run]:
        given = arrays()
        tensors = [et.tensor(a) for a in given]
        runs: dict[str, Run] = {"extensor": partial(_without_recording, ours, tensors)}
        if "torch" in libraries:
            torch: Any = libraries["torch"]
            runs["torch"] = partial(
                _without_torch_recording, torch, theirs, [torch.from_numpy(a) for a in given]
            )
        return runs

    def gradients() -> dict[str, Run]:
        given = arrays()
        tensors = [et.tensor(a, requires_grad=a.dtype == np.float32) for a in given]
        upstream = et.ones(ours(*tensors).shape)
        runs: dict[str, Run] = {"extensor": lambda: ours(*tensors).backward(upstream)}
        if "torch" in libraries:
            torch: Any = libraries["torch"]
            twins = [torch.from_numpy(a).requires_grad_(a.dtype == np.float32) for a in given]
            ones = torch.ones(upstream.shape)
            runs["torch"] = lambda: theirs(torch, *twins).backward(ones)
        return runs

    yield Case(group, name, size, forward)
    yield Case(group, f"{name}, gradients", size, gradients)


def _without_recording(f: Callable[..., Any], tensors: list[Any]) -> Any:
    with et.no_grad():
        return f(*tensors)


def _without_torch_recording(torch: Any, f: Callable[..., Any], tensors: list[Any]) -> Any:
    with torch.no_grad():
        return f(torch, *tensors)
