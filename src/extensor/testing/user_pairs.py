"""The pairs of a user's own file, for ``extensor verify my_module.py``.

Every ``@differentiable`` function defined in the file is verified. Its sample inputs stand in ``SAMPLES``::

    from extensor.testing import Case

    SAMPLES = {
        "my_op": [Case(np.array([1.0, 2.0]), alpha=0.1), Case(np.ones((2, 3)))],  # calls of the forward, or
        "other": lambda draw: [Case(draw.values((3, 4)))],                        # a function that draws them
    }

or as a list of :class:`Pair` rows, which may hold edges too. A function whose required arguments are all
tensors needs no entry: it is tried on tensors of several shapes.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..dtypes import FLOATING
from ..errors import describe
from ..graph import Op
from ..tensor import ExTensor
from .calls import Call, floating_arrays
from .registry import POSITIVE, REAL, Case, Domain, Draw, Pair
from .verifier import Subject

__all__ = ["user_subjects"]

_SHAPES: tuple[tuple[int, ...], ...] = ((7,), (3, 4), (), (2, 3, 5), (2, 3, 5, 5), (4, 4), (33,))
_TENSOR_NAMES = ("ExTensor", "Tensor", "Any", "TensorOrShape", "_empty")


def user_subjects(path: str | Path) -> list[Subject]:
    """The pairs defined in the Python file ``path``, with their samples.

    Raises:
        ValueError: if the file cannot be imported, defines no pair, or leaves a pair without samples.
    """
    path = Path(path)
    module = _load(path)
    ops = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Op) and value.fn.__globals__ is vars(module)
    }
    if not ops:
        raise ValueError(
            f"[verify] {path.name} defines no differentiable function; "
            "put @extensor.differentiable above a forward and write <name>_backward beside it"
        )
    rows = _rows(path, getattr(module, "SAMPLES", {}))
    unknown = sorted(rows.keys() - ops.keys())
    if unknown:
        raise ValueError(
            f"[verify] SAMPLES in {path.name} names {unknown[0]!r}, but its differentiable functions are: "
            f"{', '.join(ops)}"
        )
    return [
        Subject(op, rows.get(name) or _default_row(path, name, op), path.stem) for name, op in ops.items()
    ]


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"[verify] there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"[verify] {path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.resolve().parent))  # so that it finds the files beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(
            f"[verify] {path.name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.pop(0)
    return module


def _rows(path: Path, samples: Any) -> dict[str, Pair]:
    """``SAMPLES`` in its several forms as rows."""
    if isinstance(samples, Mapping):
        return {name: _row(path, name, value) for name, value in samples.items()}
    if isinstance(samples, (list, tuple)) and all(isinstance(row, Pair) for row in samples):
        return {row.name: row for row in samples}
    raise ValueError(
        f"[verify] SAMPLES in {path.name} must be a dict of function names or a list of Pair rows, "
        f"got {describe(samples)}"
    )


def _row(path: Path, name: str, value: Any) -> Pair:
    if isinstance(value, Pair):
        return value
    if isinstance(value, Case):
        value = [value]
    draw_cases: Callable[[Draw], Iterable[Case]]
    if callable(value):
        draw_cases = value
    elif isinstance(value, (list, tuple)) and value and all(isinstance(case, Case) for case in value):
        draw_cases = lambda draw: value  # noqa: E731
    else:
        raise ValueError(
            f"[verify] SAMPLES[{name!r}] in {path.name} must be a list of Case(...) or a function that draws them, "
            f"got {describe(value)}"
        )
    return Pair(name, lambda draw: map(_in_float64, draw_cases(draw)))


def _in_float64(case: Case) -> Case:
    """Tensors and narrower arrays as the float64 arrays that stand for floating inputs."""

    def walk(value: Any) -> Any:
        if isinstance(value, ExTensor):
            value = value.numpy()
        if isinstance(value, np.ndarray):
            return value.astype(np.float64) if value.dtype in FLOATING else value
        return type(value)(map(walk, value)) if type(value) in (list, tuple) else value

    return Case(*map(walk, case.args), **{name: walk(value) for name, value in case.kwargs.items()})


def _default_row(path: Path, name: str, op: Op) -> Pair:
    """Samples for a function of tensors alone: the shapes it accepts, in a domain where it is finite."""
    required = [p for p in inspect.signature(op.fn).parameters.values() if p.default is p.empty]
    if not required or not all(_may_be_tensor(p) for p in required):
        raise ValueError(
            _ask(path, name, f"its arguments ({', '.join(p.name for p in required)}) are not all tensors")
        )
    reason = ""
    best: tuple[Domain, list[tuple[int, ...]]] = (REAL, [])
    for domain in (REAL, POSITIVE, Domain(0.05, 0.95)):
        shapes = []
        for shape in _SHAPES:
            try:
                if _finite(op, _same_shape(Draw(0), shape, domain, len(required))):
                    shapes.append(shape)
                else:
                    reason = "it gives inf or nan for the inputs that were tried"
            except Exception as error:
                reason = f"called with tensors of shape {shape} it raises {type(error).__name__}: {error}"
        if len(shapes) > len(best[1]):
            best = (domain, shapes)
    domain, shapes = best
    if shapes:
        return Pair(name, lambda draw: _same_shapes(draw, shapes, domain, len(required)))
    raise ValueError(_ask(path, name, reason))


def _ask(path: Path, name: str, reason: str) -> str:
    return (
        f"[verify] no sample inputs for {name}: {reason}. Say how to call it, in {path.name}:\n\n"
        f"    from extensor.testing import Case\n"
        f'    SAMPLES = {{"{name}": [Case(np.array([0.5, -1.5, 2.0]), ...)]}}'
    )


def _may_be_tensor(p: inspect.Parameter) -> bool:
    annotation = (
        p.annotation
        if isinstance(p.annotation, str)
        else getattr(p.annotation, "__name__", str(p.annotation))
    )
    return (
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        and annotation.rpartition(".")[2] in _TENSOR_NAMES
    )


def _same_shape(draw: Draw, shape: tuple[int, ...], domain: Domain, count: int) -> Case:
    return Case(*(draw.values(shape, domain) for _ in range(count)))


def _same_shapes(draw: Draw, shapes: list[tuple[int, ...]], domain: Domain, count: int) -> Iterator[Case]:
    return (_same_shape(draw, shape, domain, count) for shape in shapes)


def _finite(op: Op, case: Case) -> bool:
    return all(np.isfinite(value).all() for value in Call(op, case, floating_arrays(case)).values())
