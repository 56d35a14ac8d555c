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
    lines = [f"compiled {name}: {count} program{'s' * (count != 1)}, recorded {compiled.recordings} times"]
    lines += [f"  runs without a program: {reason}" for reason in compiled.reasons]
    for i, program in enumerate(compiled.programs):
        seconds, runs = program.times()
        shapes = ", ".join(map(str, program.shapes)) or "no tensors"
        in_python = sum(step.kind == "call" and step.moves is None for step in program.recording.steps)
        lines.append(
            f"\nprogram {i}, for {shapes}: {len(program.kernels)} steps ({in_python} in Python), "
            f"{readable_bytes(program.planned_bytes)} at most, {runs} runs"
        )
        lines += _slowest(program, seconds)
    return "\n".join(lines)


def _slowest(program: Any, seconds: list[float]) -> list[str]:
    """A table of the kernels that take longest."""
    total = sum(seconds)
    if not total:
        return []
    by_name: dict[str, list[float]] = {}
    for step, time in zip(program.recording.steps, seconds):
        by_name.setdefault(step.name, []).append(time)
    rows = sorted(((sum(times), name, len(times)) for name, times in by_name.items()), reverse=True)
    shown: list[tuple[str, ...]] = [
        (name, str(calls), readable_time(int(time * 1e9)), f"{time / total:.0%}")
        for time, name, calls in rows[:_MOST_LINES]
    ]
    return text_table(("kernel", "calls", "time", "share"), shown).splitlines()
