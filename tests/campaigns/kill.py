"""Runs that are killed, stopped, starved and cut off: what they leave can be resumed, and ends with the same bits."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from campaign import Campaign

KINDS = (*["kill"] * 4, "stop", "terminate", "full disk", "read-only", "closed pipe", "clock")
READ_ONLY = 'mkdir -p "$0" && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"; exec "$@"'

CLOCK = """
import random, runpy, sys, time
real, rng = time.time, random.Random(0)
time.time = lambda: real() + rng.choice([-1e7, -3600, 0, 3600, 1e7])  # as if somebody set it, again and again
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(campaign: Campaign) -> None:
    import small_run

    from extensor import train

    rng = random.Random(campaign.seed)
    with tempfile.TemporaryDirectory() as name:
        good = Path(name) / "undisturbed"
        model, _ = small_run.fit(good)
        wanted = small_run.bits(model)
        whole = _used_by(small_run.__file__, Path(name) / "timed")
        count = 0
        while campaign.goes_on():
            folder = Path(name) / f"run{count}"
            count += 1
            history = []
            for _ in range(rng.randrange(3, 12)):
                kind, seconds = rng.choice(KINDS), whole * rng.uniform(0.1, 1.0)
                history.append([kind, seconds])
                _disturbed(small_run.__file__, folder, kind, seconds)
                campaign.did("kills")
                if not campaign.goes_on():
                    break
            problem = _problem(small_run, train, folder, wanted)
            campaign.did("runs resumed to their end")
            if problem:
                campaign.found(problem, history)


def _used_by(program: str, folder: Path) -> float:
    """The seconds of processor time that a whole run takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, program, str(folder), "0"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _disturbed(program: str, folder: Path, kind: str, seconds: float) -> None:
    command = [sys.executable, program, str(folder), "0"]
    if kind == "full disk":  # files end after 20 KB, with an error instead of a signal
        command = ["sh", "-c", 'trap "" XFSZ; ulimit -f 40; exec "$@"', "sh", *command]
    if kind == "read-only":  # for this process alone: also root cannot write there
        alone = ["unshare", "--map-root-user", "--mount"]
        command = [*alone, "sh", "-c", READ_ONLY, str(folder), *command]
    if kind == "clock":
        command = [sys.executable, "-c", CLOCK, *command[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    if kind == "closed pipe":
        process.stdout.close()
    _wait_until_used(process, seconds)
    if kind == "stop":
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM if kind == "terminate" else signal.SIGKILL)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if not process.stdout.closed:
        process.stdout.close()


def _wait_until_used(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a process has used so much of a processor: on a busy machine as well, it is disturbed in its middle."""
    ticks = os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / ticks >= seconds:
            return
        time.sleep(0.005)


def _problem(small_run: object, train: object, folder: Path, wanted: dict[str, bytes]) -> str | None:
    program = small_run.__file__  # type: ignore[attr-defined]
    done = subprocess.run(
        [sys.executable, program, str(folder), "0"],
        capture_output=True,
        text=True,
        timeout=3600,
        env=os.environ,
    )
    if done.returncode:
        return f"a run could not be resumed: {done.stderr[-500:]}"
    left = [str(path) for path in folder.rglob("*unfinished")]
    if left:
        return f"files were left: {left}"
    newest = train.latest_whole(folder / "checkpoints")  # type: ignore[attr-defined]
    if newest is None:
        return "no checkpoint is whole"
    model = train.load_checkpoint(newest)["model"]  # type: ignore[attr-defined]
    found = {name: value.numpy().tobytes() for name, value in model.items()}
    return None if found == wanted else "the run ends with other bits"
