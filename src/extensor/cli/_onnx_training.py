"""Fine-tuning the network of an ONNX file on a user's data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from ..data import read_csv, read_npz
from ..graph import no_grad
from ..ops.arithmetic import maximum
from ..ops.exponential import log
from ..ops.loss_classification import cross_entropy
from ..ops.loss_regression import mean_squared_error
from ..optim import Adam
from ..tensor import ExTensor, asarray

__all__ = ["fine_tune", "read_examples"]

HELD_OUT = 0.2


class Examples(NamedTuple):
    """The inputs of a network in its order, and the targets; all have the same number of rows."""

    inputs: list[np.ndarray]
    targets: np.ndarray

    def rows(self, which: np.ndarray) -> tuple[list[ExTensor], ExTensor]:
        return [asarray(x[which]) for x in self.inputs], asarray(self.targets[which])


def read_examples(net: Any, file: Path, target: str | None) -> Examples:
    """Examples for a network: a table (.csv), or arrays under the names of its inputs and ``y`` (.npz)."""
    if file.suffix == ".npz":
        arrays = read_npz(file)
        targets = arrays.pop(target or "y", None)
        if targets is None:
            raise ValueError(
                f"{file.name} has no array {target or 'y'!r} of targets; it has {', '.join(arrays) or 'nothing'}"
            )
    else:
        table = read_csv(file, -1 if target is None else target)
        arrays, targets = {net.input_names[0]: np.asarray(table.inputs)}, np.asarray(table.targets)
    if len(net.input_names) == 1 and len(arrays) == 1:
        arrays = dict(zip(net.input_names, arrays.values()))
    missing = [name for name in net.input_names if name not in arrays]
    if missing:
        raise ValueError(
            f"{file.name} has no array for the input {missing[0]!r}; it has {', '.join(arrays) or 'nothing'}"
        )
    inputs = [_fitting(arrays[about.name], about) for about in net.inputs]
    for name, x in zip(net.input_names, inputs):
        if not x.ndim or len(x) != len(targets):
            raise ValueError(f"{file.name} has {len(targets)} targets, but {name!r} has the shape {x.shape}")
    if len(targets) < 2:
        raise ValueError(
            f"{file.name} has {len(targets)} examples; at least 2 are needed, one of them to measure with"
        )
    if targets.dtype.kind in "iub" and (targets < 0).any():
        raise ValueError("targets that are whole numbers are classes from 0; make quantities floating")
    return Examples(inputs, targets.astype(np.int64 if targets.dtype.kind in "iub" else np.float32))


def _fitting(array: np.ndarray, about: Any) -> np.ndarray:
    from ..onnx.proto import dtype_of

    declared = about.type.tensor_type
    lengths = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
    if array.ndim != len(lengths) or any(n not in (None, m) for n, m in list(zip(lengths, array.shape))[1:]):
        shown = ", ".join("?" if n is None else str(n) for n in lengths)
        raise ValueError(f"input {about.name!r} has the shape ({shown}), but the data have {array.shape}")
    return array.astype(dtype_of(declared.elem_type), copy=False)


def fine_tune(net: Any, examples: Examples, epochs: int, batch: int, lr: float, seed: int) -> None:
    """Train all parameters by Adam; a fifth of the examples is held out and measured before and after."""
    if not list(net.parameters()):
        raise ValueError("the network has no parameters to train")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(examples.targets))
    fixed = net.inputs[0].type.tensor_type.shape.dim[0].dim_value
    count = max(1, round(HELD_OUT * len(order)))
    held_out, rest = order[:count], order[count:]
    size = fixed or min(batch, len(rest))
    if fixed and min(len(held_out), len(rest)) < fixed:
        raise ValueError(
            f"the file takes {fixed} rows at a time, and {len(order)} examples are too few for that"
        )
    loss_of = _loss(net, examples.targets)
    click.echo(f"before: {_measured(net, examples, held_out, size, bool(fixed), loss_of)}")
    optimizer = Adam(net.parameters(), lr=lr)
    net.train()
    try:
        for epoch in range(1, epochs + 1):
            losses = []
            for rows in _batches(rng.permutation(rest), size, whole=True):
                inputs, targets = examples.rows(rows)
                optimizer.zero_grad()
                loss = loss_of(net.run(inputs, check=False)[0], targets)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                if not math.isfinite(losses[-1]):
                    raise ValueError(f"the loss became {losses[-1]}; try a smaller --lr")
            click.echo(f"epoch {epoch} of {epochs}: loss {np.mean(losses):.4g}")
    finally:
        net.eval()
    click.echo(f"after:  {_measured(net, examples, held_out, size, bool(fixed), loss_of)}")


def _batches(rows: np.ndarray, size: int, whole: bool) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), size):
        if not whole or start + size <= len(rows):
            yield rows[start : start + size]


def _loss(net: Any, targets: np.ndarray) -> Callable[[ExTensor, ExTensor], ExTensor]:
    if targets.dtype.kind == "f":
        return lambda y, t: mean_squared_error(y, t.reshape(y.shape))
    last = [type(module).__name__ for _, module in net.named_children()][-1]
    if last == "Softmax":  # probabilities already
        return lambda y, t: cross_entropy(log(maximum(y, 1e-30)), t)
    return cross_entropy


def _measured(net: Any, examples: Examples, rows: np.ndarray, size: int, whole: bool, loss_of: Any) -> str:
    total = right = count = 0.0
    with no_grad():
        for part in _batches(rows, size, whole):
            inputs, targets = examples.rows(part)
            y = net.run(inputs, check=False)[0]
            total += float(loss_of(y, targets).item()) * len(part)
            count += len(part)
            if examples.targets.dtype.kind == "i":
                right += float((y.numpy().argmax(1) == targets.numpy()).sum())
    shown = f"loss {total / count:.4g}"
    if examples.targets.dtype.kind == "i":
        shown += f", {right / count:.1%} right"
    return f"{shown} on {int(count)} examples held out"
