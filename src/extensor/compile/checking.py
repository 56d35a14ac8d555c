"""The first repetitions of a program, compared with ordinary execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import CompileError
from ..tensor import ExTensor
from .program import Program
from .recording import Recording
from .trees import fill

__all__ = ["checked_run"]


def checked_run(fn: Callable[..., Any], program: Program, args: Any, kwargs: Any, tolerant: bool) -> Any:
    """The result of ``fn``, after a repetition from the same state gave the same bits in every step."""
    before = _State(program)
    repeated: list[Any] = []
    if program.run(args, kwargs, repeated) is NotImplemented:
        return NotImplemented
    before.restore()
    given: list[ExTensor] = []

    def own(tensor: ExTensor) -> ExTensor:
        made = (
            tensor if tensor._requires_grad or type(tensor) is not ExTensor else ExTensor(tensor._data.view())
        )
        if type(tensor) is ExTensor:
            given.append(made)
        return made

    own_args, own_kwargs = fill((args, kwargs), own)
    recording = Recording(given, tolerant)
    recording.values = []
    with recording.running():
        result = fn(*own_args, **own_kwargs)
    _compare(program, repeated, recording)
    return result


def _compare(program: Program, repeated: list[Any], recording: Recording) -> None:
    expected = [step for step in program.recording.steps if step.kind in ("kernel", "call")]
    ran = recording.values or []
    for i, (step, made) in enumerate(ran):
        call = recording.calls[step.call] if step.call < len(recording.calls) else None
        where = f", called at {call.place[0]}:{call.place[1]}" if call is not None and call.place else ""
        if i >= len(expected) or expected[i].name != step.name:
            now = expected[i].name if i < len(expected) else "nothing"
            raise CompileError(
                f"[compile] check: the function calls {step.name}{where} where the recording has {now}; "
                "what it does depends on a Python value that is no argument"
            )
        found = repeated[i] if isinstance(repeated[i], (tuple, list)) else [repeated[i]]
        for a, b in zip(found, made):
            if (a is None) != (b is None) or (a is not None and not _same_bits(a, b)):
                raise CompileError(
                    f"[compile] check: {step.name}{where} (step {i}) differs from ordinary execution; a Python number that the "
                    "recording holds as a constant has changed: pass it as an argument, or as a tensor"
                )
    if len(ran) < len(expected):
        raise CompileError(
            f"[compile] check: the function no longer calls {expected[len(ran)].name}, which the recording has"
        )


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


class _State:
    """Everything that a run of a program changes, as it is now."""

    def __init__(self, program: Program) -> None:
        recording = program.recording
        self.leaves = [
            (leaf.tensor, leaf.tensor._data, leaf.tensor._grad, getattr(leaf.tensor, "_replaced", None))
            for leaf in recording.leaves.values()
        ]
        self.attributes = [
            (owner, name, vars(owner).get(name)) for owner, name in recording.attributes.values()
        ]
        self.generators = [(g, g.bit_generator.state) for g in recording.generators.values()]
        self.objects = [(thing, _copied(vars(thing))) for thing in recording.changed.values()]

    def restore(self) -> None:
        for tensor, array, grad, replaced in self.leaves:
            tensor._array, tensor._grad = array, grad
            if replaced is not None:
                tensor._replaced = replaced  # type: ignore[attr-defined]
        for owner, name, value in self.attributes:
            vars(owner)[name] = value
        for generator, state in self.generators:
            generator.bit_generator.state = state
        for thing, fields in self.objects:
            _put_back(vars(thing), fields)


def _copied(thing: Any) -> Any:
    """Dicts and lists copied, their elements shared."""
    if type(thing) is dict:
        return {key: _copied(value) for key, value in thing.items()}
    return [_copied(value) for value in thing] if type(thing) is list else thing


def _put_back(fields: dict[Any, Any], saved: dict[Any, Any]) -> None:
    """Dicts inside stay the objects they are: others hold them."""
    for key in [key for key in fields if key not in saved]:
        del fields[key]
    for key, value in saved.items():
        now = fields.get(key)
        if type(value) is dict and type(now) is dict:
            _put_back(now, value)
        elif type(value) is list and type(now) is list and len(now) == len(value):
            for i, element in enumerate(value):
                if type(element) is dict and type(now[i]) is dict:
                    _put_back(now[i], element)
                else:
                    now[i] = element
        else:
            fields[key] = value
