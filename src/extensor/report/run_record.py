"""What the folder of a run says: its log, its configuration, and how far it came."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..data import DamagedFileError
from ..train.lock import is_locked
from ..train.log import scan_log
from ..train.saved_run import read_config

__all__ = ["RunRecord", "Status", "number", "read_run"]

State = Literal["finished", "running", "stopped", "interrupted", "failed", "unfinished"]


@dataclass(frozen=True)
class Status:
    """How a run stands, in a word and in a sentence."""

    state: State
    text: str


@dataclass
class RunRecord:
    """A run as its folder tells it.

    Attributes:
        records: what the log holds, in order.
        config: what ``config.json`` holds; empty if there is none.
        notes: what the reader of the report must know: damage, and what had to be left out.
    """

    folder: Path
    records: list[dict[str, Any]]
    config: dict[str, Any]
    status: Status
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        """The records of some kinds that say at which step they were written."""
        return [r for r in self.records if r.get("kind") in kinds and number(r, "step") is not None]

    def last_step(self) -> int:
        """The last step the log knows of."""
        return int(max((number(r, "step") or 0.0 for r in self.records), default=0.0))

    def total_steps(self) -> int | None:
        """How many steps were planned."""
        found = [number(r, "total_steps") for r in self.records if r.get("kind") in ("begin", "resume")]
        return int(found[-1]) if found and found[-1] is not None else None

    def beginning(self) -> dict[str, Any]:
        """The record of the beginning: with what the run was made."""
        return next((r for r in self.records if r.get("kind") == "begin"), {})


_LARGEST = 1e100  # beyond it nothing can be drawn, and sums of squares overflow


def number(record: dict[str, Any], name: str) -> float | None:
    """A finite number in a record; None for everything else that may stand there."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:
        return None
    return float(value) if abs(value) >= 1 / _LARGEST else 0.0


def read_run(folder: Path) -> RunRecord:
    """Read the folder of a run, whatever state it is in.

    Raises:
        FileNotFoundError: it has no log, so it is no run.
        ValueError: nothing in its log can be read.
    """
    log = folder / "log.jsonl"
    if not log.exists():
        raise FileNotFoundError(
            f"[report] {folder} is not the folder of a run: it has no log.jsonl; extensor train makes one"
        )
    records, problems = scan_log(log)
    if problems and not records:
        raise DamagedFileError(f"[report] no line of the log can be read: {problems[0]}")
    notes = []
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        notes.append(f"The log is damaged; what can be read is shown. {problems[0]}{more}.")
    config: dict[str, Any] = {}
    try:
        config = read_config(folder)
    except FileNotFoundError:
        notes.append(
            "The folder has no config.json: the panels that need the model or the data are left out."
        )
    except ValueError as error:
        notes.append(f"The panels that need the model or the data are left out: {error}.")
    run = RunRecord(folder, records, config, Status("unfinished", ""), notes)
    run.status = _status(run)
    if not run.of_kind("step", "epoch", "validation"):
        notes.append("The log holds no step yet: there are no curves to show.")
    return run


def _status(run: RunRecord) -> Status:
    last = run.last_step()
    framing = [r for r in run.records if r.get("kind") in ("begin", "resume", "end")]
    if framing and framing[-1]["kind"] == "end":
        return _ended(str(framing[-1].get("stopped")), last)
    if is_locked(run.folder):
        total = run.total_steps()
        return Status("running", f"in progress, step {last:,}" + (f" of {total:,}" if total else ""))
    return Status("unfinished", f"broken off after step {last:,}; --resume goes on from the last checkpoint")


def _ended(reason: str, last: int) -> Status:
    if reason == "finished":
        return Status("finished", "finished")
    if reason == "interrupted":
        return Status("interrupted", f"interrupted at step {last:,}; --resume goes on")
    if reason.startswith("["):  # the message of an error
        return Status("failed", f"failed after step {last:,}: {reason}")
    return Status("stopped", f"stopped early at step {last:,}: {reason}")
