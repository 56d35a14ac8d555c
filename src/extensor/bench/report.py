"""The results as a table, as JSON that two commits can be compared by, and as a chart."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .timing import Timing, table

__all__ = ["Result", "Run", "chart", "compare_runs", "markdown", "read_json", "write_json"]


@dataclass(frozen=True)
class Result:
    """The timings of one case by library, and what the case moved and computed."""

    group: str
    name: str
    size: str
    times: dict[str, Timing]
    bytes_moved: float
    operations: float

    def ratio(self, peer: str) -> float | None:
        """Our time over the peer's."""
        if peer not in self.times:
            return None
        return self.times["extensor"].best / self.times[peer].best


@dataclass(frozen=True)
class Run:
    """All results of one run, and where it was made."""

    machine: str
    threads: int
    versions: dict[str, str]
    copy_bandwidth: float
    peak_flops: float
    results: list[Result]


def markdown(run: Run, peer: str = "torch") -> str:
    """A table per group: our time, the peer's, their ratio with its spread, and the share of the machine's limit."""
    parts = [
        f"{run.machine}, {run.threads} thread{'s' * (run.threads > 1)}; "
        + ", ".join(f"{name} {version}" for name, version in run.versions.items())
        + f"; copy {run.copy_bandwidth / 1e9:.1f} GB/s, fastest product {run.peak_flops / 1e9:.0f} GFLOP/s (float32)."
    ]
    for group in dict.fromkeys(r.group for r in run.results):
        rows = [(group, "size", "ExTensor µs", f"{peer} µs", "ratio", "spread", "of limit")]
        ratios = []
        for r in (r for r in run.results if r.group == group):
            ratio, ours, other = r.ratio(peer), r.times["extensor"], r.times.get(peer)
            spread = f"{ours.low / other.high:.2f}-{ours.high / other.low:.2f}" if other else ""
            if ratio is not None:
                ratios.append(ratio)
            rows.append(
                (
                    r.name,
                    r.size,
                    f"{ours.best * 1e6:.1f}",
                    f"{other.best * 1e6:.1f}" if other else "",
                    f"{ratio:.2f}" if ratio is not None else "",
                    spread,
                    _of_limit(run, r),
                )
            )
        parts.append(table(rows))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            parts.append(
                f"{group}: geometric mean {mean:.2f}, largest {max(ratios):.2f}, {len(ratios)} cells."
            )
    return "\n\n".join(parts) + "\n"


def _of_limit(run: Run, r: Result) -> str:
    """How near the machine's own limit a large case comes."""
    seconds = r.times["extensor"].best
    if r.operations > 1e7:
        return f"{r.operations / seconds / run.peak_flops:.0%}"
    return f"{r.bytes_moved / seconds / run.copy_bandwidth:.0%}" if r.bytes_moved > 4e6 else ""


def write_json(run: Run, path: Path) -> None:
    """Keep a run."""
    path.write_text(json.dumps(asdict(run), indent=1), encoding="utf-8")


def read_json(path: Path) -> Run:
    """A run that was kept."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        results = [
            Result(**{**r, "times": {n: Timing(*t) for n, t in r["times"].items()}})
            for r in data.pop("results")
        ]
        return Run(**data, results=results)
    except (OSError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"[bench] {path} is not a run written by extensor bench: {error}") from None


def compare_runs(before: Run, after: Run) -> str:
    """A table of the cases that both runs have, the largest change first. Compare runs of one machine only."""
    old = {(r.group, r.name, r.size): r.times["extensor"].best for r in before.results}
    changes = []
    for r in after.results:
        was = old.get((r.group, r.name, r.size))
        if was is not None:
            changes.append((r.times["extensor"].best / was, r, was))
    changes.sort(key=lambda change: -abs(math.log(change[0])))
    rows = [("case", "size", "before µs", "after µs", "after / before")]
    rows += [
        (r.name, r.size, f"{was * 1e6:.1f}", f"{r.times['extensor'].best * 1e6:.1f}", f"{change:.2f}")
        for change, r, was in changes
    ]
    return table(rows) + "\n"


def chart(run: Run, path: Path, peer: str = "torch") -> None:
    """A picture: a dot per case, its ratio to the peer on a logarithmic scale, by group."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = [
        g
        for g in dict.fromkeys(r.group for r in run.results)
        if any(r.ratio(peer) for r in run.results if r.group == g)
    ]
    figure, axes = plt.subplots(figsize=(9, 0.9 + 0.75 * len(groups)), layout="constrained")
    for row, group in enumerate(groups):
        ratios = [ratio for r in run.results if r.group == group and (ratio := r.ratio(peer)) is not None]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        jitter = [row + 0.22 * math.sin(7.3 * i) for i in range(len(ratios))]
        axes.scatter(ratios, jitter, s=22, alpha=0.55, color="#2563eb", edgecolor="none")
        axes.plot([mean, mean], [row - 0.36, row + 0.36], color="#b45309", linewidth=2.5)
        axes.text(mean, row - 0.4, f"{mean:.2f}", ha="center", va="bottom", fontsize=9, color="#b45309")
    axes.axvline(1.0, color="#6b7280", linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.set_yticks(range(len(groups)), groups)
    axes.set_ylim(len(groups) - 0.4, -0.7)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(f"our time / {peer}'s (smaller is faster; bar: geometric mean)")
    axes.set_title(f"{run.machine}, {run.threads} thread{'s' * (run.threads > 1)}", fontsize=10)
    axes.grid(axis="x", which="both", color="#e5e7eb", linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
