"""The log of a run as charts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .._numerals import is_share
from .chart import Axis, Chart, Point, Series
from .run_record import RunRecord, number

__all__ = ["axis_of", "curves", "metric_names", "points_of", "resumes"]

_NOT_METRICS = {
    "kind", "step", "epoch", "loss", "lr", "seconds", "samples_per_second", "grad_norm", "at", "loss_scale", "skipped_steps",
}  # fmt: skip


def axis_of(run: RunRecord) -> Axis:
    """Epochs along the bottom if there are several, else steps."""
    epochs = run.of_kind("epoch")
    last = epochs[-1] if epochs else {}
    count, step = number(last, "epoch"), number(last, "step")
    return Axis("epoch", step / count) if count and step and count >= 2 else Axis()


def resumes(run: RunRecord) -> list[tuple[float, str]]:
    """Where the run was taken up again."""
    return [(r["step"], f"resumed at step {r['step']:,.0f}") for r in run.of_kind("resume")]


def points_of(records: Sequence[dict[str, Any]], name: str) -> list[Point]:
    """A number of some records over their steps; what is there but not finite is a gap."""
    return [(float(r["step"]), number(r, name)) for r in records if name in r]


def metric_names(run: RunRecord) -> list[str]:
    """The metrics beside the loss, without ``val_``, in the order of the log."""
    found: dict[str, None] = {}
    for record in run.of_kind("epoch", "validation"):
        for name in record:
            plain = name.removeprefix("val_")
            if plain not in _NOT_METRICS and number(record, name) is not None:
                found[plain] = None
    return list(found)


def curves(run: RunRecord) -> list[Chart]:
    """The charts of the loss, the metrics, the learning rate, the loss scale and the speed that the log has numbers for."""
    metrics = [_metric(run, name) for name in metric_names(run)]
    found = [_loss(run), *metrics, _rate(run), _norm(run), _scale(run), _speed(run)]
    return _with_own_keys([chart for chart in found if chart is not None])


def _with_own_keys(charts: Sequence[Chart]) -> list[Chart]:
    """Keys that may name a file, each different: a metric can have any name."""
    kept: dict[str, Chart] = {}
    for chart in charts:
        key = re.sub(r"\W+", "_", chart.key, flags=re.ASCII)[:40]
        while key in kept:
            key += "_"
        kept[key] = replace(chart, key=key)
    return list(kept.values())


def _chart(run: RunRecord, key: str, title: str, series: Sequence[Series], **options: Any) -> Chart | None:
    """A chart, if any of its series has two points to show."""
    shown = [s for s in series if s.known()]
    if not any(len(s.known()) >= 2 for s in shown):
        return None
    return Chart(key, title, shown, axis=axis_of(run), marks=resumes(run), until=run.last_step(), **options)


def _spans_decades(series: Sequence[Series], ratio: float) -> bool:
    """Whether most of the story would be flat on an even axis."""
    values = [y for s in series for _, y in s.known()]
    return bool(values) and min(values) > 0 and max(values) / min(values) > ratio


def _best(name: str, points: Sequence[Point], most: bool) -> tuple[str, tuple[float, float]] | None:
    known = [(x, y) for x, y in points if y is not None]
    if len(known) < 2:
        return None
    return name, (max if most else min)(known, key=lambda point: point[1])


def _loss(run: RunRecord) -> Chart | None:
    steps = points_of(run.of_kind("step"), "loss")
    epochs = points_of(run.of_kind("epoch"), "loss")
    validation = points_of(run.of_kind("epoch", "validation"), "val_loss")
    several = len(epochs) >= 2
    series = [
        Series("training, step by step" if several else "training", steps, "training", "faint" if several else "line"),
        Series("training", epochs if several else [], "training"),
        Series("validation", validation, "validation"),
    ]  # fmt: skip
    return _chart(
        run, "loss", "Loss", series, logarithmic=_spans_decades(series, 20), best=_best("validation", validation, most=False),
    )  # fmt: skip


def _metric(run: RunRecord, name: str) -> Chart | None:
    fraction = is_share(name)
    epochs = points_of(run.of_kind("epoch"), name)
    validation = points_of(run.of_kind("epoch", "validation"), f"val_{name}")
    series = [Series("training", epochs, "training"), Series("validation", validation, "validation")]
    note = ""
    if len(epochs) < 2 and fraction:
        so_far = [
            {**r["epoch_so_far"], "step": r["step"]}
            for r in run.of_kind("step")
            if isinstance(r.get("epoch_so_far"), dict)
        ]
        series[0] = Series("training", points_of(so_far, name), "training")
        note = "Training: the mean of the epoch so far."
    title = name.replace("_", " ").capitalize()
    best = _best("validation", validation, most=fraction)
    return _chart(run, name, title, series, kind="percent" if fraction else "number", note=note, best=best)


def _rate(run: RunRecord) -> Chart | None:
    points = points_of(run.of_kind("step"), "lr") or points_of(run.of_kind("epoch"), "lr")
    return _chart(
        run, "learning_rate", "Learning rate", [Series("learning rate", points, "third")], with_zero=True
    )


def _norm(run: RunRecord) -> Chart | None:
    series = [Series("norm", points_of(run.of_kind("step"), "grad_norm"), "third")]
    note = "Of all gradients together, before clipping."
    return _chart(
        run, "gradient_norm", "Gradient norm", series, note=note, logarithmic=_spans_decades(series, 20)
    )


def _scale(run: RunRecord) -> Chart | None:
    steps = run.of_kind("step")
    series = [Series("loss scale", points_of(steps, "loss_scale"), "third")]
    skipped = int(next((n for r in reversed(steps) if (n := number(r, "skipped_steps")) is not None), 0))
    note = f"{skipped:,} step{'' if skipped == 1 else 's'} skipped, whose gradients overflowed."
    return _chart(run, "loss_scale", "Loss scale", series, note=note, logarithmic=_spans_decades(series, 20))


def _speed(run: RunRecord) -> Chart | None:
    epochs = run.of_kind("epoch")  # within one, the speed is the mean so far, which starts anew with the next
    points = points_of(epochs if len(epochs) >= 5 else run.of_kind("step"), "samples_per_second")
    series = [Series("samples per second", points, "third")]
    return _chart(run, "speed", "Samples per second", series, with_zero=True)
