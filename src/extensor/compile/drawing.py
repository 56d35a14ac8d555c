"""A program as boxes, for :func:`extensor.draw_graph`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ..autograd.drawing import Box
from .program import Program
from .recording import Call, Place
from .source import Writer, places_in
from .trees import Kind, flat

__all__ = ["boxes_of"]


def boxes_of(program: Program, name: str, fn: Callable[..., Any]) -> list[Box]:
    """A box for each call, for what it takes from outside, and for what is returned.

    The calls are those of :meth:`Compiled.source`, in the same order.
    """
    writer = Writer(program, name, fn)
    writer.write()
    recording = program.recording
    boxes: list[Box] = []
    known: dict[Place, int] = {}

    def found(places: Iterator[Place]) -> list[int]:
        """Positions of what was computed, or comes from outside; constants are not drawn."""
        positions = []
        for place in places:
            place = program.moved.get(place, place)
            if place.kind == "input" and place not in known:
                known[place] = len(boxes)
                shape = recording.inputs[place.position].array[1]
                boxes.append(Box(_plain(writer.names[place]), str(shape), [], True))
            if place in known and known[place] not in positions:
                positions.append(known[place])
        return positions

    for call in writer.calls:
        inputs = found(places_in((call.args, call.kwargs)))
        for place in places_in(call.results):
            known[place] = len(boxes)
        boxes.append(
            Box(_title(call), " ".join(map(str, call.shapes)) if call.kind != "step" else "", inputs, False)
        )
    returned = [writer.place(tree[2]) for tree in flat(program.result_tree) if tree[0] == Kind.TENSOR]
    inputs = found(iter(returned))
    boxes.append(Box("return", "", inputs, False))
    return boxes


def _title(call: Call) -> str:
    if call.kind == "step":
        return f"{type(call.function).__name__}.step"
    name = str(getattr(call.function, "__name__", "call"))
    return f"{type(call.args[0]).__name__}.{name}" if call.kind == "change" else name


def _plain(expression: str) -> str:
    """``conv1.weight`` for ``parameters['conv1.weight']``."""
    return re.sub(r"^(?:parameters|modules)\['([^']*)'\]", r"\1", expression)
