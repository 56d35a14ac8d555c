"""A run from Python: its model, its history, and predictions for new data."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .. import nn
from ..data import Dataset
from ..data.csv_file import column_names
from ..data.frames import is_frame, open_table
from ..ops.softmax import softmax
from ..tensor import ExTensor, asarray
from .array_samples import array_samples
from .history import History
from .log import scan_log
from .passes import outputs_on
from .saved_run import held_out_samples, load_model, new_samples, prepared, read_config
from .table_samples import read_again, unscaled
from .whole_files import write_whole

__all__ = ["Predictions", "SavedRun", "columns_of", "load_run"]


@dataclass(frozen=True)
class Predictions:
    """What a run says about samples.

    Attributes:
        values: one for each sample: the names of the likeliest classes, or quantities in the units of the data.
        classes: the names of the classes; None for quantities.
        probabilities: (samples, classes); None for quantities.
        targets: what was known of the samples, in the form of ``values``; None where nothing was.
        columns: the columns of the input, by name, as they were given; empty where it was no table.

    Example:
        >>> import numpy as np
        >>> from extensor.train import Predictions
        >>> found = Predictions(np.array(["a", "b"]), ("a", "b"), np.array([[0.75, 0.25], [0.5, 0.5]]), None, {"id": [7, 9]})
        >>> found.as_columns()
        {'id': [7, 9], 'predicted': ['a', 'b'], 'p(a)': [0.75, 0.5], 'p(b)': [0.25, 0.5]}
    """

    values: np.ndarray
    classes: tuple[str, ...] | None
    probabilities: np.ndarray | None
    targets: np.ndarray | None
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values.tolist())

    def as_columns(self) -> dict[str, list[Any]]:
        """The columns of the input, then ``predicted`` and, of classes, the probability of each: ``p(setosa)``."""
        found: dict[str, list[Any]] = {} if self.columns else {"sample": list(range(len(self)))}
        found |= self.columns
        found[_free("predicted", found)] = self.values.tolist()
        if self.probabilities is not None and self.classes is not None:
            for k, name in enumerate(self.classes):
                found[_free(f"p({name})", found)] = (
                    self.probabilities[:, k].astype(np.float64).round(6).tolist()
                )
        return found

    def to_frame(self) -> Any:
        """A pandas DataFrame of :meth:`as_columns`."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError(
                "[to_frame] needs pandas: pip install pandas; as_columns() gives a dict"
            ) from None
        return pandas.DataFrame(self.as_columns())

    def to_csv(self, path: Any) -> None:
        """Write :meth:`as_columns` into a CSV file."""
        columns = self.as_columns()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
        write_whole("to_csv", Path(path), [text.getvalue().encode("utf-8")])

    def __repr__(self) -> str:
        kind = "quantities" if self.classes is None else f"{len(self.classes)} classes"
        return f"Predictions({len(self)} samples, {kind})"


def _free(name: str, taken: dict[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name


class SavedRun:
    """The folder of a run, opened by :func:`load_run`.

    Attributes:
        folder: where it is.
        config: what ``config.json`` says: recipe, data, classes, settings.

    Example:
        >>> from extensor import train
        >>> train.load_run.__annotations__["return"]
        'SavedRun'
    """

    def __init__(self, folder: Any) -> None:
        self.folder = Path(folder)
        self.config = read_config(self.folder)

    @cached_property
    def model(self) -> nn.Module:
        """The model with the best weights, in evaluation mode."""
        return load_model(self.folder, self.config)

    @cached_property
    def history(self) -> History:
        """The records of the epochs and validations."""
        records, _ = scan_log(self.folder / "log.jsonl")
        kept = [r for r in records if r.get("kind") in ("epoch", "validation")]
        ends = [r for r in records if r.get("kind") == "end"]
        return History(
            kept,
            max((int(r.get("step", 0)) for r in records), default=0),
            str(ends[-1]["stopped"]) if ends else "unfinished",
        )

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes; None for quantities."""
        return tuple(self.config["classes"]) if self.config.get("classes") else None

    def predict(self, source: Any = None) -> Predictions:
        """What the model says about new samples.

        Args:
            source: a file of the kind the run learned from; for a table a DataFrame (pandas, polars, pyarrow), or rows as an
                array whose columns are those of the table without its target; else an array of samples. Without it, the run's
                own test samples.

        Example:
            >>> from extensor import train
            >>> run = train.load_run("runs/iris")  # doctest: +SKIP
            >>> run.predict(frame).to_frame()  # doctest: +SKIP
        """
        samples, columns = self._samples(source)
        return self.judged(outputs_on(self.model, samples), samples, columns)

    def judged(self, outputs: np.ndarray, samples: Dataset, columns: dict[str, list[Any]]) -> Predictions:
        """Outputs of the model in the words and units of the data."""
        if outputs.shape[1] == 1 and self.classes is None:
            table = self.config.get("table")
            targets = None if samples.targets is None else unscaled(samples.targets.astype(np.float64), table)
            return Predictions(
                unscaled(outputs[:, 0].astype(np.float64), table), None, None, targets, columns
            )
        names = np.array(self.classes or [str(i) for i in range(outputs.shape[1])])
        if len(names) != outputs.shape[1]:
            raise ValueError(
                f"[predict] {self.folder} names {len(names)} classes but its model has {outputs.shape[1]} outputs"
            )
        likely = softmax(asarray(outputs)).numpy()
        targets = (
            None if samples.targets is None or samples.targets.dtype.kind == "f" else names[samples.targets]
        )
        return Predictions(names[likely.argmax(1)], tuple(names.tolist()), likely, targets, columns)

    def _samples(self, source: Any) -> tuple[Dataset, dict[str, list[Any]]]:
        table = self.config.get("table")
        if source is None:
            return held_out_samples(self.config), {}
        if isinstance(source, Dataset):
            return source, {}
        if isinstance(source, (ExTensor, np.ndarray, list)):
            array = source.numpy() if isinstance(source, ExTensor) else np.asarray(source)
            if table is None:
                return prepared(self.config, array_samples(array, None)[0]), {}
            source = _Rows(array, [column["name"] for column in table["encoding"]["columns"]])
        if table is not None:
            found = read_again(source, table)[1]
            return found, columns_of(source, table)
        return new_samples(self.config, Path(source))[0], {}

    def __repr__(self) -> str:
        return f"SavedRun({str(self.folder)!r}, recipe {self.config.get('recipe')!r})"


class _Rows:
    """An array as a frame of pyarrow's form."""

    __module__ = "pyarrow"

    def __init__(self, array: np.ndarray, names: Sequence[str]) -> None:
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(
                f"[predict] the run's table has the columns {', '.join(names)}; got an array of shape {array.shape}"
            )
        self.column_names, self._array = list(names), array

    def column(self, i: int) -> Any:
        """A column, which knows ``to_pylist``."""
        return _Column(self._array[:, i].tolist())


class _Column(list[Any]):
    def to_pylist(self) -> list[Any]:
        """The values."""
        return self


def columns_of(source: Any, table: Any) -> dict[str, list[Any]]:
    """The cells of a table by column, as they are; ``table`` describes how it is read."""
    if is_frame(source) and type(source).__module__.startswith("pandas"):
        return {str(name): source[name].tolist() for name in source.columns}
    lines = open_table(source)
    header = lines.has_header([], None) if is_frame(source) else bool(table["encoding"]["header"])
    names = column_names(lines.first(), header)
    cells = list(zip(*(row for _, row in lines.data(header, len(names)))))
    return {name: list(column) for name, column in zip(names, cells)}


def load_run(folder: Any) -> SavedRun:
    """A run that ``extensor train`` made, for use from Python.

    Args:
        folder: the folder of the run.

    Returns:
        A :class:`SavedRun` with ``model``, ``history``, ``config`` and ``predict``.

    Example:
        >>> from extensor import train
        >>> train.load_run("nothing/here")
        Traceback (most recent call last):
        FileNotFoundError: nothing/here is not the folder of a run: it has no config.json
    """
    return SavedRun(folder)
