"""A model as a table: layers, output shapes, parameters, memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._html import escaped, fragment, html_table
from ..autograd.figures import readable_bytes
from ..graph import no_grad
from ..tensor import ExTensor
from .parameter import Parameter

__all__ = ["Row", "Summary", "summarise"]


class Row(NamedTuple):
    """One layer: its path and type, the shapes it gave, its own parameters, and the bytes of parameters and outputs."""

    path: str
    layer: str
    shapes: tuple[tuple[int, ...], ...]
    parameters: int
    nbytes: int
    output_nbytes: int


class Summary(NamedTuple):
    """What :meth:`Module.summary` returns; ``print`` it.

    Attributes:
        rows: a :class:`Row` for each layer.
        parameters: how many numbers the model has to learn, those it shares counted once.
        frozen: how many more do not require a gradient.
        nbytes: the memory of parameters and buffers.
        output_nbytes: the memory of all outputs for the sample input; None without one.
    """

    rows: tuple[Row, ...]
    parameters: int
    frozen: int
    nbytes: int
    output_nbytes: int | None

    def _table(self) -> list[list[str]]:
        """A line of names, and one for each row."""
        with_shapes = self.output_nbytes is not None
        table = [["layer", "type", *(["output"] if with_shapes else []), "parameters", "memory"]]
        for row in self.rows:
            shapes = [" ".join(map(str, row.shapes)) or "-"] if with_shapes else []
            counted = f"{row.parameters:,}" if row.parameters else "-"
            memory = readable_bytes(row.nbytes + row.output_nbytes)
            table.append([row.path or "(model)", row.layer, *shapes, counted, memory])
        return table

    def __str__(self) -> str:
        table = self._table()
        widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
        left = len(table[0]) - 2
        lines = [
            "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
            for line in table
        ]  # fmt: skip
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, self._total()])

    def _total(self) -> str:
        total = f"{self.parameters:,} parameters"
        if self.frozen:
            total += f", {self.frozen:,} more are frozen"
        total += f"; {readable_bytes(self.nbytes)}"
        if self.output_nbytes is not None:
            total += f", outputs of the layers {readable_bytes(self.output_nbytes)}"
        return total

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        most = max((row.parameters for row in self.rows), default=0) or 1
        shares = [row.parameters / most for row in self.rows]
        table = html_table(head, rows, left=range(len(head) - 2), bars=shares)
        return fragment(table, f'<p class="et-total">{escaped(self._total())}</p>')


def _tensors(value: Any) -> list[ExTensor]:
    if isinstance(value, ExTensor):
        return [value]
    return [t for part in value for t in _tensors(part)] if isinstance(value, (tuple, list)) else []


@contextmanager
def _noting(modules: dict[str, Any]) -> Iterator[dict[str, list[ExTensor]]]:
    """Every module notes what its forward gives, and is in evaluation mode; afterwards all is as before."""
    noted: dict[str, list[ExTensor]] = {}
    modes = {path: module.training for path, module in modules.items()}

    def watch(path: str, module: Any) -> None:
        forward = module.forward

        def noting(*args: Any, **kwargs: Any) -> Any:
            result = forward(*args, **kwargs)
            noted[path] = _tensors(result)
            return result

        module.forward = noting
        module.training = False

    for path, module in modules.items():
        watch(path, module)
    try:
        yield noted
    finally:
        for path, module in modules.items():
            del module.forward
            module.training = modes[path]


def summarise(model: Any, inputs: tuple[Any, ...]) -> Summary:
    """The table of a model; with inputs, it is run on them once, in evaluation mode and without recording."""
    modules: dict[str, Any] = {}
    for path, module in model.named_modules():
        if all(module is not known for known in modules.values()):
            modules[path] = module
    noted: dict[str, list[ExTensor]] = {}
    if inputs:
        with no_grad(), _noting(modules) as noted:
            model(*inputs)
    rows = []
    for path, module in modules.items():
        parameters = [p for _, p in module._members() if isinstance(p, Parameter)]
        buffers = [getattr(module, name) for name in module._buffer_names]
        if not parameters and next(module.named_children(), None) is not None:
            continue  # a container: its layers have rows of their own
        outputs = noted.get(path, [])
        kept = [*parameters, *(b for b in buffers if b is not None)]
        rows.append(
            Row(
                path,
                type(module).__name__,
                tuple(t.shape for t in outputs),
                sum(p.size for p in parameters),
                sum(t.nbytes for t in kept),
                sum(t.nbytes for t in outputs),
            )
        )
    everything = list(model.parameters())
    return Summary(
        tuple(rows),
        sum(p.size for p in everything if p.requires_grad),
        sum(p.size for p in everything if not p.requires_grad),
        sum(p.nbytes for p in everything) + sum(b.nbytes for _, b in model.named_buffers()),
        sum(row.output_nbytes for row in rows) if inputs else None,
    )
