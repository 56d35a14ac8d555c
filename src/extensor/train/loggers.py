"""Callbacks that write the records of a run elsewhere: a CSV file, MLflow, Weights & Biases."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .callbacks import Callback, Run
from .whole_files import write_whole

__all__ = ["CSVLogger", "MLflowLogger", "WandbLogger"]


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in record.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


class CSVLogger(Callback):
    """Writes a row for every epoch into a CSV file.

    Args:
        path: the file; it is written whole after each epoch, and goes on where a resumed run goes on.

    Example:
        >>> import extensor as et
        >>> et.train.CSVLogger("history.csv").path.name
        'history.csv'
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self.rows: list[dict[str, float]] = []

    def on_epoch_end(self, trainer: Run, record: dict[str, Any]) -> None:
        self.rows.append(_numbers(record))
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_whole("CSVLogger", self.path, [text.getvalue().encode()])

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rows = [dict(row) for row in state["rows"]]


def _library(logger: str, name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            f"[{logger}] needs {name}: pip install {name} (the extra {extra!r} of ExTensor)"
        ) from None


class MLflowLogger(Callback):
    """Sends the records of epochs to MLflow, with the number of steps made.

    Args:
        params: what describes the run; logged once.
        start_run: whether to start a run of MLflow with the fit and end it after; else there must be an active one.

    Example:
        >>> import extensor as et
        >>> issubclass(et.train.MLflowLogger, et.train.Callback)
        True
    """

    def __init__(self, params: Mapping[str, Any] | None = None, start_run: bool = True) -> None:
        self.params, self.start_run = dict(params or {}), start_run
        self._mlflow = _library("MLflowLogger", "mlflow", "mlflow")

    def on_fit_start(self, trainer: Run) -> None:
        if self.start_run:
            self._mlflow.start_run()
        if self.params:
            self._mlflow.log_params(self.params)

    def on_epoch_end(self, trainer: Run, record: dict[str, Any]) -> None:
        self._mlflow.log_metrics(_numbers(record), step=trainer.step)

    def on_fit_end(self, trainer: Run) -> None:
        if self.start_run:
            self._mlflow.end_run()


class WandbLogger(Callback):
    """Sends the records of epochs to Weights & Biases, with the number of steps made.

    Args:
        options: what ``wandb.init`` takes: ``project=``, ``name=``, ``config=``.

    Example:
        >>> import extensor as et
        >>> issubclass(et.train.WandbLogger, et.train.Callback)
        True
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self._wandb = _library("WandbLogger", "wandb", "wandb")
        self._run: Any = None

    def on_fit_start(self, trainer: Run) -> None:
        self._run = self._wandb.init(**self.options)

    def on_epoch_end(self, trainer: Run, record: dict[str, Any]) -> None:
        self._run.log(_numbers(record), step=trainer.step)

    def on_fit_end(self, trainer: Run) -> None:
        self._run.finish()
