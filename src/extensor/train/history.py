"""What came of a run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from ..tensor import escaped

__all__ = ["History"]


@dataclass
class History:
    """What came of a run.

    Attributes:
        records: the epoch and validation records, in order, as they are in the log.
        steps: how many optimiser steps were made in all.
        stopped: why the run ended: ``"finished"``, ``"interrupted"``, or the reason a callback gave.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    stopped: str = "finished"

    def last(self, name: str) -> Any:
        """The newest value of a metric; None if there is none."""
        return next((record[name] for record in reversed(self.records) if name in record), None)

    def values(self, name: str) -> list[Any]:
        """A metric over the epochs (or validations) that have it."""
        return [record[name] for record in self.records if name in record]

    def plot(self, *names: str, ax: Any = None) -> Any:
        """The curves of metrics over the epochs, drawn by matplotlib (the extra ``plots``).

        Args:
            names: the metrics; the losses if there are none. The one of the validation (``val_...``) is drawn with each.
            ax: the axes to draw on; new ones if None.

        Returns:
            The axes.
        """
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            raise ImportError(
                "[plot] needs matplotlib: pip install matplotlib (the extra 'plots' of ExTensor)"
            ) from None
        ax = pyplot.subplots()[1] if ax is None else ax
        known = dict.fromkeys(name for record in self.records for name in record)
        for name in names or ("loss",):
            if name not in known:
                raise ValueError(f"[plot] there is no metric {name!r}; there are {', '.join(known)}")
            for shown, style in ((name, "-"), (f"val_{name}", "--")):
                points = [(r.get("epoch", r.get("step")), r[shown]) for r in self.records if shown in r]
                if points:
                    ax.plot(*zip(*points), style, label=shown)
        ax.set_xlabel("epoch")
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        """The last epochs as a table, for notebooks."""
        shown = self.records[-8:]
        names = [
            n
            for n in dict.fromkeys(name for r in shown for name in r)
            if n not in ("kind", "seconds", "samples_per_second")
        ]
        names = [n for n in names if any(isinstance(r.get(n), (int, float)) for r in shown)]
        head = "".join(f"<th>{escaped(name)}</th>" for name in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_cell(r.get(name))}</td>" for name in names) + "</tr>" for r in shown
        )
        before = f"{len(self.records) - len(shown)} epochs before; " if len(shown) < len(self.records) else ""
        facts = f"History · {before}{self.steps} steps · {escaped(self.stopped)}"
        return f'<div><div style="opacity:.65;margin-bottom:.3em">{facts}</div><table><tr>{head}</tr>{rows}</table></div>'


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else escaped(str(value))
