"""``extensor train --processes N``: the ranks of a job on this host, started, watched, and started again."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import click

from ..distributed.mpi import EXTRA
from ._output import say
from ._ranks import JOB, LOST

__all__ = ["run_processes"]

_GRACE = 3.0  # seconds in which ranks that lost another may end by themselves
_INTERRUPTED = 130


def run_processes(arguments: Sequence[str], processes: int, restarts: int, threads: int | None) -> int:
    """Run ``extensor train`` with these arguments on so many ranks; returns the exit code.

    When a rank is lost the others end; the job then begins again from the last whole checkpoint with as many ranks as are
    left, up to ``restarts`` times.
    """
    mpiexec = _find_mpiexec()
    arguments = list(arguments)
    while True:
        code, left, word = _run(mpiexec, arguments, processes, threads)
        if word is None:
            return code
        say(word, err=True)
        if not restarts:
            say("the same command with --resume goes on from the last whole checkpoint", err=True)
            return LOST
        restarts -= 1
        lost, processes = processes - left, max(left, 1)
        arguments = [a for a in arguments if a != "--overwrite"]
        arguments += [] if "--resume" in arguments else ["--resume"]
        ways = "process" if processes == 1 else "processes"
        say(
            f"{lost} of the ranks lost; going on with {processes} {ways} ({restarts} more restarts)", err=True
        )


def _find_mpiexec() -> list[str]:
    """The launcher of MPI beside this Python, or that of the machine, with the options it needs."""
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None or importlib.util.find_spec("mpi4py") is None:
        missing = "mpi4py" if found is not None else "mpiexec (an MPI)"
        raise click.ClickException(f"--processes needs {missing}, which is not installed: {EXTRA}")
    told = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    if "HYDRA" in told:
        return [found, "-disable-auto-cleanup"]  # so that the others can say what happened
    return [found, "--oversubscribe"] if "Open MPI" in told else [found]


def _run(
    mpiexec: list[str], arguments: list[str], processes: int, threads: int | None
) -> tuple[int, int, str | None]:
    """Run the job once: its exit code, how many ranks were left, and what they said if one of them was lost."""
    with tempfile.TemporaryDirectory(prefix="extensor-job-") as folder, contextlib.ExitStack() as stack:
        environment = os.environ | {JOB: folder}
        if threads is None and "EXTENSOR_NUM_THREADS" not in os.environ:
            environment["EXTENSOR_NUM_THREADS"] = str(max(len(os.sched_getaffinity(0)) // processes, 1))
        program = [sys.executable, "-m", "extensor.cli", "train", *arguments]
        job = subprocess.Popen(
            [*mpiexec, "-n", str(processes), *program],
            env=environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        stack.callback(_end, job, Path(folder))
        stack.enter_context(_passing_interrupts_on(Path(folder)))
        ends = stack.enter_context(_Ends())
        since = 0.0
        while job.poll() is None:
            ends.wait(_words(Path(folder), "pid"), 0.05)
            if not since and _words(Path(folder), "lost"):
                since = time.monotonic()
            if since and time.monotonic() - since > _GRACE:
                break
        words = _words(Path(folder), "lost")
        killed = job.returncode is not None and job.returncode not in (0, 1, 2, LOST, _INTERRUPTED)
        if not words and not killed:
            return job.returncode or 0, processes, None
        gone = set(ends.first) - set(words)
        left = processes - len(gone) if gone else len(words) or processes - 1
        return LOST, left, next(iter(words.values()), ends.message())


class _Ends:
    """Which ranks ended first, seen from outside.

    A rank that notices the loss of another says so itself, unless the launcher of MPI ends it before it can; then this is all
    that is known.
    """

    def __init__(self) -> None:
        self.first: dict[int, int] = {}  # rank and process of those that ended before all others
        self._selector = selectors.DefaultSelector()
        self._watched: set[int] = set()

    def __enter__(self) -> _Ends:
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()

    def wait(self, processes: dict[int, str], seconds: float) -> None:
        """Watch these processes too, by their rank; return when the first ends, or after so many seconds."""
        if not hasattr(os, "pidfd_open") or self.first:
            time.sleep(seconds)
            return
        for rank, text in processes.items():
            if rank not in self._watched and text.isdigit():
                self._watched.add(rank)
                try:
                    descriptor = os.pidfd_open(int(text))
                except OSError:  # it has ended already, or the system has no such descriptors
                    continue
                self._selector.register(descriptor, selectors.EVENT_READ, (rank, int(text)))
        for key, _ in self._selector.select(seconds):
            rank, process = key.data
            self.first[rank] = process

    def message(self) -> str:
        """What can be said where no rank said anything."""
        if not self.first:
            return "[World] every rank ended without a word"
        names = [
            f"rank {r} (host {socket.gethostname()}, process {p})" for r, p in sorted(self.first.items())
        ]
        return f"[World] {' and '.join(names)} ended without a word: killed, or out of memory; the others were ended too"


def _words(folder: Path, kind: str) -> dict[int, str]:
    """What the ranks left for us."""
    return {int(path.name.split("-")[1]): path.read_text() for path in folder.glob(f"{kind}-*")}


def _end(job: subprocess.Popen[bytes], folder: Path) -> None:
    """End what still runs: a rank that was stopped does not end by itself."""
    if job.poll() is not None:
        return
    for text in _words(folder, "pid").values():
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(text), signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(_GRACE)
        return
    job.kill()
    job.wait()


@contextlib.contextmanager
def _passing_interrupts_on(folder: Path) -> Iterator[None]:
    """In this block Ctrl-C and SIGTERM go to one rank, which has all of them stop with a checkpoint; a second one ends all."""
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(number)
        ranks = _words(folder, "pid")
        if len(received) > 1 or not ranks:
            raise KeyboardInterrupt
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(ranks[min(ranks)]), signal.SIGINT)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
