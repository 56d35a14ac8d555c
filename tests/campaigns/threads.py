"""Threads: exits with threads inside ops, changing thread counts, affinity, forks, limits,
subinterpreters. Each trial is a process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

from campaign import Campaign

EXITS = ("exit", "exit by an exception", "exit from a thread")  # with threads inside ops
PATIENCE = 500  # seconds: a trial takes one or two, and minutes on a machine that is busy with other things
START = """
import os, random, sys, threading, time
import numpy as np
import extensor as et
rng = random.Random(int(sys.argv[1]))
x = et.tensor(np.ones((300, 300), np.float32))
image, weight = et.ones((4, 8, 24, 24)), et.ones((8, 8, 3, 3))
def work():
    while True:
        [lambda: x @ x, lambda: et.exp(x), lambda: et.conv2d(image, weight), lambda: x.sum()][rng.randrange(4)]()
def start(count):
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(rng.random() * 0.05)
"""
TRIALS = {
    "exit": "start(rng.randrange(1, 5))",
    "exit by an exception": "start(3)\nraise SystemExit(0)",
    "exit from a thread": "start(3)\nos._exit(0)",
    "thread counts": """
start(2)
for _ in range(60):
    et.set_num_threads(rng.randrange(1, 9))
    y = x @ x
    assert (y.numpy() == 300).all()
""",
    "affinity": """
start(1)
every = os.sched_getaffinity(0)
for _ in range(40):
    os.sched_setaffinity(0, rng.sample(sorted(every), rng.randrange(1, len(every) + 1)))
    assert ((x @ x).numpy() == 300).all()
""",
    "fork": """
import warnings
warnings.simplefilter("ignore")
start(2)
for _ in range(6):
    child = os.fork()
    if child == 0:
        good = ((x @ x).numpy() == 300).all() and et.conv2d(image, weight).shape == (4, 8, 22, 22)
        os._exit(0 if good else 3)
    assert os.waitpid(child, 0)[1] == 0
""",
    "limits": """
import resource
et.set_num_threads(4)
for _ in range(20):  # a result or a MemoryError, with however few threads
    child = os.fork()
    if child == 0:
        used = 4096 * int(open("/proc/self/statm").read().split()[0])
        room = rng.randrange(1 << rng.randrange(12, 28))
        resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
        if rng.random() < 0.25:
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        try:
            w = et.tensor(np.ones((512, 512), np.float32), requires_grad=True)
            (et.softmax(w @ w).sum() + et.conv2d(image, weight, padding=1).sum()).backward()
        except MemoryError:
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""",
    "subinterpreter": """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    raise SystemExit(0)
start(1)
other = interpreters.create()
try:
    interpreters.run_string(other, "import extensor")
except interpreters.RunFailedError as error:  # NumPy refuses to be there twice
    assert "ImportError" in str(error), error
interpreters.destroy(other)
""",
}


def run(campaign: Campaign) -> None:
    rng = random.Random(campaign.seed)
    cases = campaign.corpus()
    while campaign.goes_on():
        kind, seed = cases.pop() if cases else [rng.choice([*EXITS * 2, *TRIALS]), rng.getrandbits(31)]
        problem = _problem(kind, seed)
        campaign.did("processes")
        if kind in EXITS:
            campaign.did("exits with threads inside ops")
        campaign.did(kind)
        if problem:
            campaign.found(f"{kind}, seed {seed}: {problem}", [kind, seed])


def _problem(kind: str, seed: int) -> str:
    """What is wrong with one trial, or nothing. One that hangs is ended with every process it forked."""
    command = [sys.executable, "-c", START + TRIALS[kind], str(seed)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as trial:
        try:
            _, said = trial.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(trial.pid, signal.SIGKILL)
            return "hangs"
    return "" if trial.returncode == 0 else f"exit code {trial.returncode}: {said[-400:]}"
