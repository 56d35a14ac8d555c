"""Runs that are killed, stopped, starved and cut off: what they leave can be resumed, and ends with the same bits.

Most runs start as forks of a process that has everything imported, so that the moment falls into the training and not into the
start of Python, which takes six times as long. What is resumed to its end is a program of its own.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import small_run
from campaign import Campaign

from extensor import train

KINDS = (*["kill"] * 4, "stop", "terminate", "full disk", "read-only", "closed pipe", "clock", "cold start")
FAILING = ("full disk", "read-only")  # with an error that says so; all others go on until they are killed
FULL = 20 * 1024  # bytes of a file, after which the disk is full: less than a checkpoint
READ_ONLY = 'mkdir -p "$0" && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"; exec "$@"'


def run(campaign: Campaign) -> None:
    rng = random.Random(campaign.seed)
    with tempfile.TemporaryDirectory() as name:
        good = Path(name) / "undisturbed"
        subprocess.run(_command(good), check=True)
        wanted = _bits(good)
        cold, warm = (_used_by(kind, Path(name) / kind) for kind in ("cold start", "kill"))
        count = 0
        while campaign.goes_on():
            folder = Path(name) / f"run{count}"
            count += 1
            history = []
            for _ in range(rng.randrange(3, 12)):
                kind = rng.choice(KINDS)
                whole = cold if kind in ("cold start", "read-only") else warm
                history.append([kind, whole * rng.uniform(0.05, 1.0)])
                code = _disturbed(*history[-1], folder)
                campaign.did("kills")
                if code > 0 and kind not in FAILING:
                    campaign.found(f"{kind}: a run ended with the code {code}", history)
                if not campaign.goes_on():
                    break
            problem = _problem(folder, wanted)
            campaign.did("runs resumed to their end")
            if problem:
                campaign.found(problem, history)
            shutil.rmtree(folder, ignore_errors=True)


def _command(folder: Path) -> list[str]:
    """The run as a program of its own."""
    return [sys.executable, small_run.__file__, str(folder), "0"]


def _used_by(kind: str, folder: Path) -> float:
    """The seconds of processor time that a whole run takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code := _disturbed(kind, float("inf"), folder):
        raise RuntimeError(f"an undisturbed run ended with the code {code}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _disturbed(kind: str, seconds: float, folder: Path) -> int:
    """A run that is disturbed after it has used so many seconds of a processor; its code, negative for a signal."""
    pid = _started(kind, folder)
    if _lives_until_used(pid, seconds):
        if kind == "stop":
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.1)
        os.kill(pid, signal.SIGTERM if kind == "terminate" else signal.SIGKILL)
        if not _ends(pid, 60):
            os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _started(kind: str, folder: Path) -> int:
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        _start(kind, folder)
    finally:  # whatever happened, this process is not the campaign
        os._exit(1)


def _start(kind: str, folder: Path) -> NoReturn:
    """What a new process does: the run, under what its kind means."""
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    if kind == "cold start":
        os.execv(sys.executable, _command(folder))
    if kind == "read-only":  # for this process alone: also root cannot write there
        alone = ["unshare", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, str(folder)]
        os.execvp(alone[0], [*alone, *_command(folder)])
    if kind == "full disk":  # an error instead of a signal: Python ignores SIGXFSZ
        resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, FULL))
    if kind == "closed pipe":
        reader, writer = os.pipe()
        os.dup2(writer, 1)
        os.close(reader)
    if kind == "clock":  # as if somebody set it, again and again
        real, rng = time.time, random.Random(0)
        time.time = lambda: real() + rng.choice([-1e7, -3600, 0, 3600, 1e7])
    display = "plain" if kind == "closed pipe" else "off"
    small_run.fit(folder, resume=True, prefetch=2, callbacks=[small_run.Slow()], display=display)
    os._exit(0)


def _lives_until_used(pid: int, seconds: float) -> bool:
    """Wait until a process has used so much of a processor: on a busy machine as well, it is disturbed in its middle."""
    clock = ~pid << 3 | 2  # of the processor time of another process, as clock_getcpuclockid(3) gives it
    while not _ends(pid, 0):
        if time.clock_gettime(clock) >= seconds:
            return True
        time.sleep(0.001)
    return False


def _ends(pid: int, patience: float) -> bool:
    """Whether a child has ended, or does so soon; its code can still be asked for."""
    until = time.monotonic() + patience
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= until:
            return False
        time.sleep(0.001)
    return True


def _problem(folder: Path, wanted: dict[str, bytes]) -> str | None:
    done = subprocess.run(_command(folder), capture_output=True, text=True, timeout=3600)
    if done.returncode:
        return f"a run could not be resumed: {done.stderr[-500:]}"
    left = [str(path) for path in folder.rglob("*unfinished")]
    if left:
        return f"files were left: {left}"
    if train.latest_whole(folder / "checkpoints") is None:
        return "no checkpoint is whole"
    return None if _bits(folder) == wanted else "the run ends with other bits"


def _bits(folder: Path) -> dict[str, bytes]:
    """The weights of the newest whole checkpoint."""
    newest = train.latest_whole(folder / "checkpoints")
    assert newest is not None
    model = train.load_checkpoint(newest)["model"]
    return {name: value.numpy().tobytes() for name, value in model.items()}
