"""What a compiled function shows of itself."""

from __future__ import annotations

from typing import Any

from ..autograd.figures import readable_bytes, readable_time, text_table

__all__ = ["report"]

_MOST_LINES = 12


def report(compiled: Any) -> str:
    """The programs of a compiled function, and where the time of each goes."""
    name = getattr(compiled.fn, "__name__", type(compiled.fn).__name__)
    count = len(compiled.programs)
    lines = [
        f"compiled {name}: {count} program{'s' * (count != 1)}, {compiled.recordings} recording{'s' * (compiled.recordings != 1)}"
    ]
    lines += [f"  runs without a program: {reason}" for reason in compiled.reasons]
    for i, program in enumerate(compiled.programs):
        seconds, runs = program.times()
        shapes = ", ".join(map(str, program.shapes)) or "no tensors"
        lines.append(
            f"\nprogram {i}, for {shapes}: {_parts(program)}, {_bytes(program)}, {_runs(seconds, runs)}"
        )
        lines += _slowest(program, seconds)
    return "\n".join(lines)


def _parts(program: Any) -> str:
    """How many steps there are, and of which kinds."""
    steps = [step for step in program.recording.steps if step.kind in ("kernel", "call")]
    fused = sum(" + " in step.name for step in steps)
    in_python = sum(step.kind == "call" and step.moves is None for step in steps)
    notes = [f"{fused} of several kernels"] * bool(fused) + [f"{in_python} in Python"] * bool(in_python)
    return f"{len(steps)} steps" + (f" ({', '.join(notes)})" if notes else "")


def _bytes(program: Any) -> str:
    return f"{readable_bytes(program.planned_bytes)} of results at one time"


def _runs(seconds: list[float], runs: int) -> str:
    """How often it ran, and the time of a run where one was measured."""
    taken = f", {readable_time(int(sum(seconds) * 1e9))} each" if sum(seconds) else ""
    return f"{runs} run{'s' * (runs != 1)}{taken}"


def _slowest(program: Any, seconds: list[float]) -> list[str]:
    """A table of the kernels that take longest."""
    total = sum(seconds)
    if not total:
        return []
    by_name: dict[str, list[float]] = {}
    for step, time in zip(program.recording.steps, seconds):
        by_name.setdefault(step.name, []).append(time)
    rows = sorted(((sum(times), name, len(times)) for name, times in by_name.items()), reverse=True)
    rest = rows[_MOST_LINES:]
    if len(rest) > 1:
        rows[_MOST_LINES:] = [
            (sum(row[0] for row in rest), f"{len(rest)} others", sum(row[2] for row in rest))
        ]
    shown: list[tuple[str, ...]] = [
        (name, str(calls), readable_time(int(time * 1e9)), f"{time / total:.0%}")
        for time, name, calls in rows
    ]
    return text_table(("kernel", "calls", "time", "share"), shown).splitlines()
