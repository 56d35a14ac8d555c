"""The folder of a run while it is written: log, event files, checkpoints, weights, configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..data import DamagedFileError
from ..nn import Module
from .checkpoint import Checkpoints, load_checkpoint
from .log import Log, read_log
from .run_files import check_own
from .tensorboard import EventWriter
from .weights import save_weights
from .whole_files import remove_unfinished, write_whole

__all__ = ["RunFolder"]


class RunFolder:
    """Where a run is kept; with the path None nothing is written. The caller holds the lock of the folder.

    Args:
        path: the folder.
        keep: how many checkpoints.
        tensorboard: whether to write event files.
        config: what describes the run.
    """

    def __init__(
        self, path: Path | None, keep: int, tensorboard: bool, config: Mapping[str, Any] | None
    ) -> None:
        self.path = path
        self.log: Log | None = None
        self._checkpoints = None if path is None else Checkpoints(path / "checkpoints", keep)
        self._events: EventWriter | None = None
        self._tensorboard = tensorboard
        self._config = config
        self._saved_at: Any = None  # where the run stood when the last checkpoint was written

    # At the beginning

    def remove_run(self) -> None:
        """Remove the files of the run that is there, and nothing else that may lie in the folder."""
        if self.path is None or self._checkpoints is None:
            return
        for place in (self._checkpoints.folder, self.path / "events", self.path / "pictures"):
            check_own("fit", place)
        single = ("log.jsonl", "best.safetensors", "model.safetensors", "config.json", "report.html")
        pages = [
            *(self.path / "events").glob("events.out.tfevents.*"),
            *(self.path / "pictures").glob("*.png"),
        ]
        # the checkpoints first: what is left of a run without them is no run to go on with
        for file in (*self._checkpoints.files(), *(self.path / name for name in single), *pages):
            file.unlink(missing_ok=True)

    def newest_checkpoint(self, resume: bool) -> tuple[Path, dict[str, Any]] | None:
        """The checkpoint to go on from; None where the run begins.

        Raises:
            FileExistsError: there is a run and ``resume`` is False.
            ValueError: all its checkpoints are damaged.
        """
        if self.path is None or self._checkpoints is None:
            return None
        check_own("fit", self._checkpoints.folder)
        if not self._checkpoints.files():
            return None
        if not resume:
            raise FileExistsError(
                f"[fit] {self.path} holds a run already; pass resume=True to go on with it, overwrite=True to "
                "replace it, or choose another folder"
            )
        found = self._checkpoints.latest()
        if found is None:
            raise DamagedFileError(
                f"[fit] every checkpoint in {self._checkpoints.folder} is damaged; remove them to start from the beginning"
            )
        return found, load_checkpoint(found)

    def open(self, log_length: int | None, step: int) -> None:
        """Open the files; ``log_length`` is what a checkpoint knew of the log, None where the run begins."""
        if self.path is None or self._checkpoints is None:
            return
        for place in (self.path, self._checkpoints.folder):
            remove_unfinished(place)
        self.log = Log(self.path / "log.jsonl", log_length or 0)
        if log_length is None and self._config is not None:
            write_whole("fit", self.path / "config.json", [json.dumps(self._config, indent=2).encode()])
        if self._tensorboard:
            check_own("fit", self.path / "events")
            first_step = 0 if log_length is None else step + 1
            self._events = EventWriter(self.path / "events", first_step)

    def earlier_records(self) -> list[dict[str, Any]]:
        """The epochs and validations that the log knows."""
        if self.log is None:
            return []
        return [r for r in read_log(self.log.path) if r["kind"] in ("epoch", "validation")]

    # While it runs

    def write(self, record: dict[str, Any]) -> None:
        """A record of numbers, for the log and the event files."""
        if self.log is not None:
            self.log.write(record)
        if self._events is not None:
            self._events.scalars(record["step"], dict(_scalars(record)))

    def write_frame(self, record: dict[str, Any]) -> None:
        """A record of the beginning or the end, for the log alone; event files hold numbers only."""
        if self.log is not None:
            self.log.write(record)
            self.log.flush()

    def save_checkpoint(self, step: int, standing: Any, state: Mapping[str, Any]) -> None:
        """Write a checkpoint, unless one was written where the run stands now."""
        if self._checkpoints is None or self.log is None or standing == self._saved_at:
            return
        self.flush()
        log_length = self.log.sync()
        self._saved_at = standing
        self._checkpoints.save(step, {**state, "log": log_length})

    def save_weights(self, name: str, model: Module, texts: dict[str, str]) -> None:
        """Write the weights of the model with the configuration beside them."""
        if self.path is None:
            return
        texts = texts | ({} if self._config is None else {"config": json.dumps(self._config)})
        save_weights(self.path / name, model.state_dict(), texts)

    def flush(self) -> None:
        for file in (self.log, self._events):
            if file is not None:
                file.flush()

    def close(self) -> None:
        for file in (self.log, self._events):
            if file is not None:
                file.close()


def _scalars(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) and name not in ("step", "epoch"):
            kind = f"{record['kind']}/" if not prefix else ""
            yield f"{kind}{prefix}{name}", value
