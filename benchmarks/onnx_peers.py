"""Networks that PyTorch exported, imported here: how far their outputs and gradients are from PyTorch's, and how they train on.

    python benchmarks/onnx_peers.py [resnet18] [vit] ... [--steps 10]

Each network of ``onnx_architectures.py`` has random weights, and statistics of batch normalisation from random images. It is
exported by ``torch.onnx.export`` in both of its ways (the newer where ``onnxscript`` is installed), imported by ``extensor.onnx.load``, and

* its logits, and the gradient of a weighted sum of them with respect to the images, are compared with PyTorch's in float64,
  relative to the largest element; beside it stands how far PyTorch's own float32 is from that;
* it is fine-tuned on 8 random images with random labels, batch normalisation following the batches;
* it is exported again, and ONNX Runtime must agree.

Ends with the exit code 1 if one is further from float64 than 10 times PyTorch's float32, or does not learn. Needs torch, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx_architectures import ARCHITECTURES, CLASSES

import extensor as et
import extensor.onnx

SIZE = 64  # pixels
WAYS = {"traced": False, **({"dynamo": True} if importlib.util.find_spec("onnxscript") else {})}


def made(name: str) -> torch.nn.Module:
    """A network in evaluation mode whose statistics are those of random images."""
    torch.manual_seed(0)
    net = ARCHITECTURES[name]()
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(8, 3, SIZE, SIZE))
    return net.eval()


def exported(net: torch.nn.Module, path: Path, dynamo: bool) -> Path:
    """The file that PyTorch writes, with a free number of images."""
    example = torch.randn(2, 3, SIZE, SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            free = ({0: torch.export.Dim("batch")},)
            torch.onnx.export(net, (example,), str(path), dynamo=True, dynamic_shapes=free, verbose=False)
        else:
            # Batch normalisation stays a node of its own, so that it follows the batches when training goes on.
            torch.onnx.export(
                net, (example,), str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}},
                training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
            )  # fmt: skip
    return path


def theirs(net: torch.nn.Module, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits of PyTorch, and the gradient with respect to the images."""
    images = torch.from_numpy(x).requires_grad_()
    logits = net(images)
    (logits * torch.from_numpy(weights)).sum().backward()
    assert images.grad is not None
    return logits.detach().numpy(), images.grad.numpy()


def ours(net: Any, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of the imported network."""
    images = et.tensor(x, requires_grad=True)
    logits = net(images)
    (logits * et.tensor(weights)).sum().backward()
    return logits.numpy(), images.grad.numpy()


def apart(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def tuned(net: Any, steps: int) -> list[float]:
    """The losses of some steps on a few images."""
    x, y = et.random.normal(0, (8, 3, SIZE, SIZE)), et.random.integers(1, 0, CLASSES, (8,))
    optimizer = et.optim.AdamW(net.parameters(), lr=3e-4)
    net.train()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = et.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ARCHITECTURES)}; all without it")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--way", choices=WAYS, help="one of PyTorch's exporters; each in turn without it")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 3, SIZE, SIZE)).astype(np.float32)
    weights = rng.normal(size=(3, CLASSES)).astype(np.float32)
    print(
        "| network | way | parameters | nodes | logits: ours / PyTorch's | gradient: ours / PyTorch's | loss, first and last | again |"
    )
    print("| --- | --- | --: | --: | --- | --- | --- | --- |")
    wrong = []
    for name in options.names or ARCHITECTURES:
        peer = made(name)
        narrow = theirs(peer, x, weights)
        exact = theirs(peer.double(), x.astype(np.float64), weights.astype(np.float64))
        peer.float()
        limits = [apart(found, wanted) for found, wanted in zip(narrow, exact)]
        for way in [options.way] if options.way else WAYS:
            with tempfile.TemporaryDirectory() as folder:
                net = et.onnx.load(exported(peer, Path(folder, "net.onnx"), WAYS[way]))
                found = [apart(a, b) for a, b in zip(ours(net, x, weights), exact)]
                losses = tuned(net, options.steps)
                again = et.onnx.export(net, Path(folder, "again.onnx"), et.tensor(x))
            count, nodes = sum(p.size for p in net.parameters()), len(list(net.named_children()))
            shown = " | ".join(f"{a:.1e} / {b:.1e}" for a, b in zip(found, limits))
            trained = f"{losses[0]:.3f}, {losses[-1]:.3f}"
            print(
                f"| {name} | {way} | {count:,} | {nodes} | {shown} | {trained} | {again.difference:.1e} |",
                flush=True,
            )
            if not all(a <= 10 * b for a, b in zip(found, limits)) or not losses[-1] < losses[0]:
                wrong.append(f"{name} ({way})")
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
