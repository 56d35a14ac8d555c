"""``extensor onnx``: what an ONNX file holds, whether it runs here, and how it compares with ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ..graph import no_grad
from ..tensor import ExTensor, asarray
from ._onnx_gradients import RIGHT, check_operations
from ._onnx_training import fine_tune, read_examples

__all__ = ["command"]


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--size",
    default=2,
    show_default=True,
    metavar="N",
    type=click.IntRange(1),
    help="The length of free axes in the sample run.",
)
@click.option(
    "--source", is_flag=True, help="Print the network as Python over public functions, and nothing else."
)
@click.option(
    "--verify", is_flag=True, help="Check the gradient of every operation at the shapes it has in this file."
)
@click.option(
    "--train",
    "data",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Fine-tune on a table (.csv) or on arrays named like the inputs, with the targets under y (.npz).",
)
@click.option("--target", help="The column or array to predict; the last column, or y, without it.")
@click.option(
    "--epochs",
    default=5,
    show_default=True,
    metavar="N",
    type=click.IntRange(1),
    help="Passes over the data.",
)
@click.option(
    "--batch",
    default=32,
    show_default=True,
    metavar="N",
    type=click.IntRange(1),
    help="Examples of one step.",
)
@click.option(
    "--lr",
    default=1e-3,
    show_default=True,
    metavar="RATE",
    type=click.FloatRange(0),
    help="The learning rate of Adam.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Of the order of the examples, and of those held out."
)
@click.option(
    "--to",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Export the network again, to this file.",
)
def command(
    file: Path, size: int, source: bool, verify: bool, data: Path | None, target: str | None, epochs: int, batch: int,
    lr: float, seed: int, out: Path | None,
) -> None:  # fmt: skip
    """Show what an ONNX FILE holds, run it on random numbers, and check it.

    Shows inputs, outputs, layers and operators; compares the outputs with those of ONNX Runtime where that is installed;
    and checks the gradient of the outputs along a random direction of the parameters against differences, in float64.
    A file that is damaged or has unknown operators gets a message and the exit code 1.

    Whole numbers as targets are classes, learned by cross-entropy; others are quantities, learned by mean squares.

    \b
    Examples:
      extensor onnx model.onnx
      extensor onnx model.onnx --source
      extensor onnx model.onnx --verify
      extensor onnx model.onnx --train mine.npz --epochs 3 --to tuned.onnx
    """
    try:
        from ..onnx.load import load
    except ModuleNotFoundError as error:
        raise click.ClickException(str(error)) from None
    try:
        net = load(file)
        inputs = _sample(net, size)
        if source:
            click.echo(net.source(*inputs), nl=False)
            return
        _show(net, inputs)
        _compare(net, file, inputs)
        _check_gradient(load(file), inputs)
        if verify:
            _check_operations(load(file), inputs)
        if data is not None:
            fine_tune(net, read_examples(net, data, target), epochs, batch, lr, seed)
        if out is not None:
            _export(net, inputs, out)
    except (ValueError, TypeError, IndexError, NotImplementedError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _sample(net: Any, size: int) -> list[Any]:
    """Random inputs of the declared shapes; whole numbers are 0 and 1."""
    from ..onnx.proto import dtype_of

    rng = np.random.default_rng(0)
    found = []
    for about in net.inputs:
        declared = about.type.tensor_type
        if not declared.elem_type:
            raise ValueError(f"input {about.name!r} is no tensor; load the file with extensor.onnx.load")
        dtype = dtype_of(declared.elem_type)
        shape = [d.dim_value if d.HasField("dim_value") else size for d in declared.shape.dim]
        drawn = rng.integers(0, 2, shape) if dtype.kind in "biu" else rng.normal(size=shape)
        found.append(asarray(drawn.astype(dtype)))
    return found


def _show(net: Any, inputs: list[Any]) -> None:
    console = Console()
    with no_grad():
        outputs = net.run(inputs)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "name", "dtype", "shape in this run"):
        table.add_column(title)
    for kind, names, values in (("input", net.input_names, inputs), ("output", net.output_names, outputs)):
        for name, value in zip(names, values):
            table.add_row(
                kind, name, str(getattr(value, "dtype", "list")), str(getattr(value, "shape", len(value)))
            )
    console.print(table)
    counts = Counter(type(module).__name__ for _, module in net.named_children())
    shown = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    trained = sum(p.size for p in net.parameters())
    console.print(f"\n{sum(counts.values())} nodes: {shown}\n{trained:,} parameters", highlight=False)
    for key, value in net.metadata.items():
        console.print(
            f"{key}: {value if len(value) <= 200 else value[:197] + '...'}", highlight=False, markup=False
        )


def _compare(net: Any, file: Path, inputs: list[Any]) -> None:
    from ..onnx.runtime import largest_difference

    found = largest_difference(file, dict(zip(net.input_names, inputs)), net.run(inputs))
    if found is None:
        click.echo("install onnxruntime to compare the outputs")
    else:
        click.echo(f"largest difference to ONNX Runtime {found:.2g}, relative to the largest output")
        if not found < 1e-3:
            raise ValueError("the outputs differ from those of ONNX Runtime")


def _check_gradient(net: Any, inputs: list[Any]) -> None:
    """The derivative along one random direction of all parameters, against a central difference."""
    parameters = list(net.parameters())
    if not parameters:
        click.echo("no parameters, no gradients to check")
        return
    wide = _widened(net, inputs)
    rng = np.random.default_rng(1)
    before = [p.numpy() for p in parameters]
    steps = [
        rng.normal(size=p.shape) * max(float(np.abs(a).mean()), 1e-3) for p, a in zip(parameters, before)
    ]
    weights: list[np.ndarray] = []

    def loss() -> ExTensor | None:
        total = None
        floating = [o for o in net.run(wide, check=False) if isinstance(o, ExTensor) and o.requires_grad]
        for i, output in enumerate(floating):
            if len(weights) <= i:
                weights.append(rng.normal(size=output.shape))
            part = (output * weights[i]).sum()
            total = part if total is None else total + part
        return total

    found = loss()
    if found is None:
        click.echo("no output depends on a parameter, no gradients to check")
        return
    found.backward()
    slope = sum(float((p.grad.numpy() * s).sum()) for p, s in zip(parameters, steps) if p.grad is not None)
    ends = []
    width = 1e-6
    for sign in (1, -1):
        for parameter, start, step in zip(parameters, before, steps):
            parameter.assign(start + sign * width * step)
        end = loss()
        ends.append(0.0 if end is None else float(end.item()))
    difference = (ends[0] - ends[1]) / (2 * width)
    off = abs(slope - difference) / max(abs(slope), abs(difference), 1e-12)
    click.echo(
        f"gradient along a random direction: {slope:.6g}, by differences {difference:.6g} ({off:.1g} apart)"
    )
    if off > 1e-3:
        raise ValueError("the gradient of the network is wrong, or it is not smooth here")


def _widened(net: Any, inputs: list[Any]) -> list[Any]:
    """The inputs in float64, for the network, which is made so as well."""
    net.astype("float64")
    return [asarray(x.numpy().astype(np.float64)) if x.dtype.kind == "f" else x for x in inputs]


def _check_operations(net: Any, inputs: list[Any]) -> None:
    """A table of the operations that the network uses, and how far the gradient of each is from a difference."""
    wide = [x.requires_grad_() if x.dtype.kind == "f" else x for x in _widened(net, inputs)]
    rows: dict[str, list[Any]] = {}
    for found in check_operations(lambda: net.run(wide, check=False)):
        rows.setdefault(found.name, []).append(found)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("operation", "calls", "kinds", "largest shapes", "gradient apart"):
        table.add_column(title)
    wrong = []
    for name, kinds in rows.items():
        apart = [kind.apart for kind in kinds if kind.apart is not None]
        largest = max(kinds, key=lambda kind: sum(int(np.prod(s)) for s in kind.shapes))
        shown = f"{max(apart):.1g}" if apart else "no gradient"
        shapes = " ".join(map(str, largest.shapes))
        table.add_row(name, str(sum(kind.calls for kind in kinds)), str(len(kinds)), shapes, shown)
        if apart and not max(apart) < RIGHT:
            wrong.append(name)
    console = Console()
    console.print(table)
    if wrong:
        raise ValueError(
            f"the gradient of {', '.join(wrong)} is wrong at the shapes of this file, or it is not smooth there"
        )


def _export(net: Any, inputs: list[Any], out: Path) -> None:
    from ..onnx.export import export

    free = all(
        not about.type.tensor_type.shape.dim[0].dim_value
        for about in net.inputs
        if about.type.tensor_type.shape.dim
    )
    written = export(net, out, *inputs, dynamic_axes=free, metadata=net.metadata)
    apart = (
        "" if written.difference is None else f", largest difference to ONNX Runtime {written.difference:.2g}"
    )
    click.echo(f"{out}: operator set {written.opset}{apart}")
