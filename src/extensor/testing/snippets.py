"""A failing call as text that a person can paste into Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Op
from ..tensor import ExTensor
from .calls import Call

__all__ = ["snippet"]


def snippet(
    call: Call,
    output: Any,
    grads: Sequence[np.ndarray],
    module: str,
    non_contiguous: bool = False,
    numerical: str | None = None,
) -> str:
    """Python that repeats ``call`` and prints what its backward returns.

    ``numerical`` names an input whose gradient is printed by central differences as well.
    """
    op = call.op
    prefix = "et" if module == "extensor" else module
    lines = ["import extensor as et"] if prefix == "et" else ["import extensor as et", f"import {module}"]
    if non_contiguous:
        lines.insert(0, "import numpy as np")
    rule = op.rule
    arguments: list[str] = []
    for name, value in call.bound.items():
        given = _is_given(call, name)
        if given and _holds_tensor(value):
            lines.append(f"{name} = {_literal(value)}")
            if (
                non_contiguous
                and isinstance(value, ExTensor)
                and value.ndim
                and value.dtype.kind not in "biu"
            ):
                lines.append(
                    f"{name} = et.asarray(np.repeat({name}.numpy().T, 2, axis=0)[::2].T)  # not contiguous"
                )
    for i, value in enumerate(call.args):
        name = _name_of_position(op, i)
        if rule.variadic is not None and i >= rule.names.index(rule.variadic):
            arguments.append(f"*{rule.variadic}")
            break
        arguments.append(name if _holds_tensor(value) else repr(value))
    arguments += [
        f"{name}={name if _holds_tensor(value) else repr(value)}" for name, value in call.kwargs.items()
    ]
    forward = f"{prefix}.{op.fn.__name__}({', '.join(arguments)})"
    lines.append(f"output = {forward}")
    if isinstance(output, ExTensor):
        lines.append(f"grad_output = {_literal(ExTensor(np.asarray(grads[0], output.dtype)))}")
    else:
        left = iter(grads)
        parts = [
            _literal(ExTensor(np.asarray(next(left), v.dtype)))
            if isinstance(v, ExTensor) and v.dtype.kind not in "biu"
            else "None"
            for v in output
        ]
        lines.append(f"grad_output = [{', '.join(parts)}]")
    lines.append(f"print({_backward_call(call, prefix)})")
    if numerical in call.bound and isinstance(output, ExTensor):
        lines.insert(
            lines.index("import extensor as et") + 1,
            "from extensor.testing import compute_numerical_gradient",
        )
        lines.append(
            f"print(compute_numerical_gradient(lambda {numerical}: {forward}, {numerical}, grad_output))"
        )
    return "\n".join(lines)


def _is_given(call: Call, name: str) -> bool:
    position = call.op.rule.names.index(name)
    return position < len(call.args) or name in call.kwargs or name == call.op.rule.variadic


def _name_of_position(op: Op, position: int) -> str:
    return op.rule.names[min(position, len(op.rule.names) - 1)]


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tensor, value))
    return isinstance(value, ExTensor)


def _backward_call(call: Call, prefix: str) -> str:
    op, parts = call.op, ["grad_output"]
    for p in op.rule.parameters:
        if p.kept == "output":
            parts.append("output")
        elif p.kept == "result":
            parts.append(f"output.{p.name}" if not p.keyword else f"{p.name}=output.{p.name}")
        else:
            value = call.bound[p.name]
            if p.keyword and not _is_given(call, p.name):
                continue
            text = p.name if _holds_tensor(value) else repr(value)
            parts.append(f"*{text}" if p.variadic else f"{p.name}={text}" if p.keyword else text)
    name = getattr(op.backward, "__name__", "")
    public = (
        f"{prefix}.{name}" if name == f"{op.fn.__name__}_backward" else f"{prefix}.{op.fn.__name__}.backward"
    )
    return f"{public}({', '.join(parts)})"


def _literal(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_literal, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if not isinstance(value, ExTensor):
        return repr(value)
    if not value.size:
        return f"et.zeros({value.shape}, dtype=et.{value.dtype.name})"
    name = "bool_" if value.dtype.kind == "b" else value.dtype.name
    return f"et.tensor({_numbers(value.numpy())}, dtype=et.{name})"


def _numbers(array: np.ndarray) -> str:
    if array.ndim:
        return f"[{', '.join(_numbers(np.asarray(row)) for row in array)}]"
    number = array[()]
    if array.dtype.kind in "biu":
        return str(number)
    if array.dtype.kind == "c":
        return f"complex({_numbers(array.real)}, {_numbers(array.imag)})"
    text = str(number)  # the shortest digits that give this number back in its own dtype
    return text if np.isfinite(float(number)) else f"float('{text}')"
