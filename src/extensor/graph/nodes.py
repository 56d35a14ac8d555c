"""Nodes: the recorded calls, and the tensors that remember them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import NodeBase
from ..dtypes import FLOATING
from ..nested import needs_grad
from ..tensor import ExTensor

__all__ = ["PACKAGE", "Branch", "Node", "attach", "caller", "is_our_file", "record", "refilled"]

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class Node(NodeBase):
    """One recorded call.

    Attributes:
        op: the function that was called.
        edges: per gradient the node, or the leaf tensor, it flows to; None where no gradient is wanted.
        saved: positional arguments of the backward after ``grad_output``; None once freed.
        options: its keyword arguments, or None. Calls of one kind share them.
        sequence: the number of the recording; a node's inputs always have smaller ones.
        casts: dtypes of the inputs, where they differ from the output's.
        shape: of the output; None where there are several.
        outputs: several outputs: (shape, dtype) of each.
        shapes: a user's pair: (shape, dtype) its gradients must have.
        code, instruction: where the user's code made the call.
    """

    __slots__ = ()

    @property
    def place(self) -> tuple[str, int, str] | None:
        """File, line and function of the user's code that made the call."""
        if self.code is None:
            return None
        lines = list(self.code.co_positions())
        line = lines[self.instruction // 2][0] if self.instruction >= 0 else None
        return self.code.co_filename, line or self.code.co_firstlineno, self.code.co_name


class Branch(NamedTuple):
    """One of the several outputs of a node."""

    node: Node
    output: int

    @property
    def sequence(self) -> int:
        """The number of the recording."""
        return self.node.sequence


def is_our_file(name: str) -> bool:
    """Whether a file belongs to this package."""
    return name.startswith(PACKAGE)


def caller() -> tuple[str, int, str] | None:
    """File, line and function of the user's code that is running: the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and is_our_file(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else None


def record(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    """``output`` with a node that remembers this call, if any input it can differentiate requires a gradient."""
    if isinstance(output, ExTensor) and output.dtype not in FLOATING:
        return output
    rule = op.rule
    bound = rule.bind(args, kwargs)
    for name, value in bound.items():
        if needs_grad(value) and name not in rule.targets:
            raise NotImplementedError(f"[{op.__name__}] has no gradient for {name}; pass {name}.detach()")
    inputs = rule.inputs(bound)
    return attach(op, rule.arguments(bound, output), inputs, list(map(needs_grad, inputs)), output)


def attach(op: Any, saved: Any, inputs: Sequence[Any], wanted: Sequence[bool], output: Any) -> Any:
    """Give ``output`` (a tensor, or several) the node of this call; the tensors returned are new objects."""
    edges = [
        (value._node if value._node is not None else value) if want else None
        for value, want in zip(inputs, wanted)
    ]
    positional, options = saved
    outputs = op.rule.output_positions
    if outputs:  # without its node: a node that owns its own output would be a cycle
        positional = tuple(v.detach() if i in outputs else v for i, v in enumerate(positional))
    node = Node(op, tuple(edges), tuple(map(_owned, positional)), _owned(options) if options else None)
    if op.is_custom:
        node.shapes = tuple((v.shape, v.dtype) if isinstance(v, ExTensor) else None for v in inputs)
    if isinstance(output, ExTensor):
        node.shape = output.shape
        node.casts = _casts(inputs, output.dtype)
        return ExTensor(output._data, True, node)
    node.outputs = [
        (v.shape, v.dtype) if isinstance(v, ExTensor) and v.dtype in FLOATING else None for v in output
    ]
    dtype = next((described[1] for described in node.outputs if described), None)
    if dtype is None:
        return output  # an empty list, or integers alone: there is no gradient to wait for
    node.casts = _casts(inputs, dtype)
    branches = [
        ExTensor(v._data, True, Branch(node, i)) if described else v
        for i, (v, described) in enumerate(zip(output, node.outputs))
    ]
    return refilled(type(output), branches)


def refilled(kind: type, parts: list[Any]) -> Any:
    """A list, a tuple or a named tuple of ``parts``."""
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def _owned(value: Any) -> Any:
    """What a node saves, without memory that the caller may write to before the backward pass."""
    if isinstance(value, ExTensor):
        return value
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (tuple, list):
        return type(value)(map(_owned, value))
    return {name: _owned(v) for name, v in value.items()} if type(value) is dict else value


def _casts(inputs: Sequence[Any], dtype: Any) -> tuple[Any, ...] | None:
    dtypes = tuple([v.dtype if isinstance(v, ExTensor) else dtype for v in inputs])
    return None if dtypes.count(dtype) == len(dtypes) else dtypes
