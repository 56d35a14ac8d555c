"""Inference beside ONNX Runtime: ``et.compile(model)`` and the file that ``extensor.onnx.export`` writes of the same weights.

    python benchmarks/inference.py --threads 1
    python benchmarks/inference.py --only resnet --batch 1 --rounds 200

Both are called from Python with an array in memory and hand back an array, in turns in one process; printed are minima.
ONNX Runtime has all its graph optimisations on and its threads do not spin, which would slow whoever comes next; after each
turn both rest for 2 ms. Before anything is timed their outputs are compared.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import extensor as et
from extensor import models, nn
from extensor.bench import compare, table
from extensor.onnx import export

PAUSE = 0.002
AGREES = 1e-4  # of the largest output
Data = Callable[[int, np.random.Generator], np.ndarray]


def pictures(*shape: int) -> Data:
    return lambda batch, rng: rng.standard_normal((batch, *shape)).astype(np.float32)


def text(length: int) -> Data:
    return lambda batch, rng: rng.integers(0, 65, (batch, length))


# name: title, model, inputs of a batch
ROWS: dict[str, tuple[str, Callable[[], nn.Module], Data]] = {
    "mlp": ("MLP 784-128-10", lambda: models.MLP([784, 128, 10], rng=0), pictures(784)),
    "lenet": ("LeNet-5", lambda: models.LeNet5(rng=0), pictures(1, 28, 28)),
    "resnet": ("ResNet-20", lambda: models.ResNet20(rng=0), pictures(3, 32, 32)),
    "gpt": ("GPT 4 layers, 128 wide, 64 tokens", lambda: models.GPT(65, 64, rng=0), text(64)),
}


def trained(model: nn.Module, x: np.ndarray) -> nn.Module:
    """The model with statistics of batch norms as data leave them, for inference."""
    model.train()
    for _ in range(5):
        model(et.tensor(x))
    return model.eval()


def session_of(model: nn.Module, x: np.ndarray, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export(model, path, et.tensor(x))
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def contestants(name: str, batch: int, threads: int) -> tuple[dict[str, Callable[[], Any]], float]:
    """Both ways to call the network, and how far their outputs are apart, relative to the largest."""
    _, make, data = ROWS[name]
    x = data(batch, np.random.default_rng(0))
    model = trained(make(), data(32, np.random.default_rng(1)))
    session = session_of(model, x, threads)
    given = {session.get_inputs()[0].name: x}
    compiled, argument = et.compile(model), et.tensor(x)

    def ours() -> np.ndarray:
        with et.no_grad():
            return compiled(argument).numpy()

    def theirs() -> np.ndarray:
        return session.run(None, given)[0]

    ours()
    expected = theirs()
    apart = float(np.abs(ours() - expected).max() / np.abs(expected).max())
    if not apart < AGREES:
        raise SystemExit(f"{name}, batch {batch}: outputs differ by {apart:.1e} of the largest")
    return {"extensor": ours, "onnxruntime": theirs}, apart


def measure(names: list[str], batches: list[int], threads: int, rounds: int) -> list[tuple[str, ...]]:
    rows = [("network", "batch", "ExTensor µs", "ONNX Runtime µs", "ratio", "outputs differ by")]
    ratios = []
    for name in names:
        for batch in batches:
            runs, apart = contestants(name, batch, threads)
            times = compare(runs, rounds, 0.004, PAUSE)
            ours, theirs = times["extensor"].best, times["onnxruntime"].best
            ratios.append(ours / theirs)
            rows.append(
                (ROWS[name][0], str(batch), f"{ours * 1e6:.1f}", f"{theirs * 1e6:.1f}", f"{ours / theirs:.2f}", f"{apart:.0e}")
            )  # fmt: skip
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [*rows, ("geometric mean", "", "", "", f"{mean:.2f}", "")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--batch", nargs="*", type=int, default=[1, 32])
    parser.add_argument("--threads", type=int, default=1, help="of both libraries")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    et.set_num_threads(options.threads)
    print(f"{options.threads} threads, onnxruntime {onnxruntime.__version__}, minima of {options.rounds}")
    print(table(measure(options.only, options.batch, options.threads, options.rounds)))


if __name__ == "__main__":
    main()
