"""What came of a run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from .notebook import history_html

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
        """The curves and the last epochs, for notebooks."""
        return history_html(self.records, f"History · {self.steps:,} steps · {self.stopped}")
