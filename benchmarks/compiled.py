"""Compiled training steps beside eager ones, a step written by hand in C++ (the limit), and jax.jit where it is installed.

    python benchmarks/compiled.py --threads 1
    python benchmarks/compiled.py --only mlp --rounds 200
    python benchmarks/compiled.py --old OTHER_PYTHON        beside the eager steps of another installed version
    python benchmarks/compiled.py --shares                  what the time of a compiled step goes to
    python benchmarks/compiled.py --beside                  steps beside a thread that computes in Python

All contestants of a row take turns (another version in a process of its own); printed are minima. Networks of random labels
learn them by heart after a while, so each round starts from fresh weights. More tables show what the first call of a compiled
step costs, what 50 sizes of a batch cost, and the most memory of ten steps, each training in a process of its own: of tensors
and workspaces (``et.memory().peak``, from 64 KiB on), and what the process grew by.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import extensor as et
from extensor import models, nn, optim

FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math"]
Step = Callable[[], Any]


def small_mlp() -> nn.Module:
    layers = [
        nn.Linear(64, 64, rng=0),
        nn.ReLU(),
        nn.Linear(64, 64, rng=1),
        nn.ReLU(),
        nn.Linear(64, 10, rng=2),
    ]
    return nn.Sequential(*layers)


def images(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, 10, shape[0])


def texts(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    lines = np.random.default_rng(0).integers(0, 65, (batch, length + 1))
    return lines[:, :-1].copy(), lines[:, 1:].copy()


# title: model, data, optimiser, the function of compiled_limit.cpp
ROWS: dict[str, tuple[str, Callable[[], nn.Module], Any, Callable[[Any], Any], str | None]] = {
    "mlp": ("MLP 64-64-64-10, b32, Adam", small_mlp, images(32, 64), lambda p: optim.Adam(p, lr=1e-3), "small_step"),
    "mlp784": ("MLP 784-128-10, b64, SGD", lambda: models.MLP([784, 128, 10], rng=0), images(64, 784), lambda p: optim.SGD(p, lr=0.1), "large_step"),
    "lenet": ("LeNet-5, b64, SGD", lambda: models.LeNet5(rng=0), images(64, 1, 28, 28), lambda p: optim.SGD(p, lr=0.01), None),
    "lstm": ("LSTM 128, b32 x 64, Adam", lambda: models.LSTMLanguageModel(65, rng=0), texts(32, 64), optim.Adam, None),
    "gpt": ("GPT 128 x 4, b16 x 64, AdamW", lambda: models.GPT(65, 64, rng=0), texts(16, 64), optim.AdamW, None),
    "resnet": ("ResNet-20, b64, SGD", lambda: models.ResNet20(rng=0), images(64, 3, 32, 32), lambda p: optim.SGD(p, lr=0.01, momentum=0.9), None),
}  # fmt: skip


DEEP: dict[str, Any] = {
    "gpt12": (
        "GPT 128 x 12, b1 x 64, AdamW",
        lambda: models.GPT(65, 64, 12, rng=0),
        texts(1, 64),
        optim.AdamW,
        None,
    )
}


def step_of(model: nn.Module, optimizer: Any) -> Callable[..., et.ExTensor]:
    def step(x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        optimizer.zero_grad()
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        loss = et.cross_entropy(out.reshape((-1, out.shape[-1])), y.reshape((-1,)))
        loss.backward()
        optimizer.step()
        return loss

    return step


def limit() -> ctypes.CDLL | None:
    """The steps by hand, compiled for this processor; None without a compiler."""
    target = Path(tempfile.mkdtemp()) / "limit.so"
    source = Path(__file__).with_name("compiled_limit.cpp")
    try:
        subprocess.run(["g++", *FLAGS, "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ctypes.CDLL(str(target))


def jax_step(name: str, data: Any) -> Step | None:
    """The same network by jax.jit, for the two of dense layers; None without jax."""
    if name not in ("mlp", "mlp784"):
        return None
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    sizes = [64, 64, 64, 10] if name == "mlp" else [784, 128, 10]
    rng = np.random.default_rng(0)
    params = [
        (jnp.asarray(rng.normal(size=(a, b)).astype(np.float32) * a**-0.5), jnp.zeros(b))
        for a, b in zip(sizes, sizes[1:])
    ]

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        scores = jax.nn.log_softmax(x @ params[-1][0] + params[-1][1])
        return -jnp.take_along_axis(scores, y[:, None], 1).mean()

    def adam(p: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 / (1 - 0.9**t) * m / (jnp.sqrt(v) / jnp.sqrt(1 - 0.999**t) + 1e-8), m, v

    def step(state: Any, x: Any, y: Any) -> Any:
        params, m, v, t = state
        value, grads = jax.value_and_grad(loss)(params, x, y)
        if name == "mlp784":
            return (jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), m, v, t), value
        moved = jax.tree.map(lambda p, g, m, v: adam(p, g, m, v, t), params, grads, m, v)
        parts = [
            jax.tree.map(lambda r, i=i: r[i], moved, is_leaf=lambda r: isinstance(r, tuple) and len(r) == 3)
            for i in range(3)
        ]
        return (*parts, t + 1), value

    zeros = jax.tree.map(jnp.zeros_like, params)
    held = [(params, zeros, zeros, jnp.asarray(1.0))]
    x, y = map(jnp.asarray, data)
    compiled = jax.jit(step)

    def run() -> None:
        held[0], value = compiled(held[0], x, y)
        value.block_until_ready()

    run()
    return run


class Other:
    """Eager steps of another version, in its own process, which answers with the seconds of one."""

    def __init__(self, python: str, name: str, threads: int) -> None:
        command = [python, __file__, "--serve", name, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("fresh")

    def ask(self, what: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(what, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def serve(name: str) -> None:
    run = None
    for line in sys.stdin:
        if line.strip() == "fresh":
            run = eager_step(name)
            run(), run(), run()
            print(0.0, flush=True)
        else:
            assert run is not None
            print(seconds_of(run), flush=True)


def eager_step(name: str) -> Step:
    _, make, data, optimizer, _ = ROWS[name]
    x, y = map(et.tensor, data)
    model = make()
    step = step_of(model, optimizer(model.parameters()))
    return lambda: step(x, y)


def seconds_of(run: Step) -> float:
    began, count = time.perf_counter(), 0
    while count < 1 or time.perf_counter() - began < 0.004:
        run()
        count += 1
    return (time.perf_counter() - began) / count


def contestants(name: str, hand: ctypes.CDLL | None) -> Callable[[], dict[str, Step]]:
    """Fresh ones for each round."""
    _, make, data, optimizer, by_hand = ROWS[name]
    x, y = map(et.tensor, data)
    jax = jax_step(name, data)

    def fresh() -> dict[str, Step]:
        found: dict[str, Step] = {}
        for kind in ("eager", "compiled"):
            model = make()
            step = step_of(model, optimizer(model.parameters()))
            run = et.compile(step) if kind == "compiled" else step
            found[kind] = lambda run=run: run(x, y)
        if hand is not None and by_hand is not None:
            hand.set_up()
            function = getattr(hand, by_hand)
            given = [array.ctypes.data_as(ctypes.c_void_p) for array in data]
            found["by hand"] = lambda: function(*given)
        if jax is not None:
            found["jax.jit"] = jax
        for run in found.values():
            run(), run(), run()
        return found

    return fresh


def measure(name: str, hand: ctypes.CDLL | None, rounds: int, other: Other | None) -> dict[str, float]:
    best: dict[str, float] = {}
    fresh = contestants(name, hand)
    for _ in range(max(rounds // 5, 1)):
        steps = fresh()
        if other is not None:
            other.ask("fresh")
        for _ in range(5):
            found = {kind: seconds_of(run) for kind, run in steps.items()}
            if other is not None:
                found["old"] = other.ask("time")
            best = {kind: min(best.get(kind, 1e9), seconds) for kind, seconds in found.items()}
    return best


PRODUCTS = ("linear", "conv2d", "self_attention", "lstm_sequence")


def shares(name: str) -> list[str]:
    """Parts of a compiled step's time, in percent: products and what is computed with them; norms, activations and sums; the optimiser."""
    _, make, data, optimizer, _ = ROWS[name]
    x, y = map(et.tensor, data)
    model = make()
    step = et.compile(step_of(model, optimizer(model.parameters())))
    for _ in range(3 * 64 + 3):  # one run in 64 is timed
        step(x, y)
    program = step.programs[0]
    found = {"products": 0.0, "passes": 0.0, "optimiser": 0.0, "rest": 0.0}
    for part, seconds in zip(program.recording.steps, program.times()[0]):
        first = part.name.split(" + ")[-1].removesuffix("_backward")
        if first in PRODUCTS:
            kind = "products"
        elif part.moves is not None:
            kind = "optimiser"
        else:
            kind = "passes" if first in ("relu", "gelu", "add", "batch_norm", "layer_norm") else "rest"
        found[kind] += seconds
    return [f"{100 * seconds / sum(found.values()):.0f}" for seconds in found.values()]


def beside(name: str) -> list[str]:
    """Median milliseconds of an eager and of a compiled step, each alone and beside a thread that computes in Python."""
    _, make, data, optimizer, _ = ROWS[name]
    x, y = map(et.tensor, data)
    found = []
    for compiles in (False, True):
        model = make()
        step = step_of(model, optimizer(model.parameters()))
        run = et.compile(step) if compiles else step
        run(x, y), run(x, y)
        for busy in (False, True):
            stop = threading.Event()
            thread = threading.Thread(target=compute_until, args=(stop,))
            if busy:
                thread.start()
            times = []
            for _ in range(15):
                began = time.perf_counter()
                run(x, y)
                times.append(time.perf_counter() - began)
            stop.set()
            if busy:
                thread.join()
            found.append(f"{1e3 * sorted(times)[len(times) // 2]:.1f}")
    return found


def compute_until(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(1000))


def first_calls(name: str) -> tuple[float, float]:
    """Seconds of the first eager step, and of the first call of a compiled one, on fresh networks."""
    _, make, data, optimizer, _ = {**ROWS, **DEEP}[name]
    x, y = map(et.tensor, data)
    found = []
    for compiles in (False, True):
        times = []
        for _ in range(5):
            model = make()
            step = step_of(model, optimizer(model.parameters()))
            run = et.compile(step) if compiles else step
            began = time.perf_counter()
            run(x, y)
            times.append(time.perf_counter() - began)
        found.append(min(times))
    return found[0], found[1]


def fifty_sizes() -> tuple[int, int, float]:
    """Recordings of two passes over 50 sizes of a batch, and the MB that 20 more passes add to the process."""
    _, make, _, optimizer, _ = ROWS["mlp"]
    model = make()
    step = et.compile(step_of(model, optimizer(model.parameters())))
    batches = [tuple(map(et.tensor, images(size, 64))) for size in range(1, 51)]
    counts = []
    for _ in range(2):
        for x, y in batches:
            step(x, y)
        counts.append(step.recordings)
    before = resident()["VmRSS"]
    for _ in range(20):
        for x, y in batches:
            step(x, y)
    return counts[0], counts[1], (resident()["VmRSS"] - before) / 1024


def peak(name: str, kind: str) -> None:
    """Print the most MB that the tensors and workspaces of ten steps needed, and the MB that they added to this process."""
    _, make, data, optimizer, _ = ROWS[name]
    x, y = map(et.tensor, data)
    model = make()
    step = step_of(model, optimizer(model.parameters()))
    run = et.compile(step) if kind == "compiled" else step
    before = resident()["VmRSS"]
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the most from here on
    for _ in range(10):
        run(x, y)
    print(et.memory().peak / 2**20, (resident()["VmHWM"] - before) / 1024)


def resident() -> dict[str, int]:
    """KB of this process in memory: VmRSS now, VmHWM at most. (What getrusage calls the most is the parent's at first.)"""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}


def peaks(name: str, threads: int) -> list[str]:
    """Of an eager and of a compiled training, each in a process of its own."""
    command = [sys.executable, __file__, "--threads", str(threads), "--peak", name]
    found = [
        subprocess.run([*command, kind], check=True, capture_output=True, text=True).stdout.split()
        for kind in ("eager", "compiled")
    ]
    return [f"{float(megabytes):.1f}" for pair in zip(*found) for megabytes in pair]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--old", metavar="PYTHON", help="of another installed version, for its eager steps")
    parser.add_argument(
        "--shares", action="store_true", help="only show what the time of a compiled step goes to"
    )
    parser.add_argument(
        "--beside", action="store_true", help="only show steps beside a thread that computes in Python"
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    et.set_num_threads(options.threads)
    if options.serve:
        serve(options.serve)
    elif options.peak:
        peak(*options.peak)
    elif options.shares:
        titles = ("percent of a step", "products", "norms, activations, sums", "optimiser", "rest")
        show(titles, shares, options.only)
    elif options.beside:
        titles = ("median ms", "eager alone", "beside a thread", "compiled alone", "beside a thread")
        show(titles, beside, options.only)
    else:
        compare(options)


def show(titles: tuple[str, ...], row_of: Callable[[str], list[str]], names: list[str]) -> None:
    from extensor.bench import table  # which another version may not have

    print(table([titles, *((ROWS[name][0], *row_of(name)) for name in names)]))


def compare(options: argparse.Namespace) -> None:
    from extensor.bench import table  # which another version may not have

    hand = limit()
    kinds = ("old", "eager", "compiled", "by hand", "jax.jit")
    rows = [("step", *kinds, "eager / old", "compiled / old", "/ eager", "/ by hand", "/ jax.jit")]
    firsts = [("first call", "eager ms", "compiled ms", "2 x eager + 20 ms")]
    memory = [("ten steps, most MB", "tensors eager", "compiled", "process eager", "compiled")]
    for name in options.only:
        other = Other(options.old, name, options.threads) if options.old else None
        best = measure(name, hand, options.rounds, other)
        if other is not None:
            other.close()
        shown = [f"{best[kind] * 1e6:.1f}" if kind in best else "" for kind in kinds]
        pairs = [("eager", "old"), *(("compiled", kind) for kind in ("old", "eager", "by hand", "jax.jit"))]
        ratios = [f"{best[a] / best[b]:.2f}" if b in best else "" for a, b in pairs]
        rows.append((ROWS[name][0], *shown, *ratios))
        memory.append((ROWS[name][0], *peaks(name, options.threads)))
    for name in [*options.only, *(DEEP if "gpt" in options.only else ())]:
        eager, compiled = first_calls(name)
        title = {**ROWS, **DEEP}[name][0]
        firsts.append((title, *(f"{t * 1e3:.1f}" for t in (eager, compiled, 2 * eager + 0.02))))
    print(f"Microseconds, minima; threads: {options.threads}.\n")
    for found in (rows, firsts, memory):
        print(table(found) + "\n")
    if "mlp" in options.only:
        first, second, growth = fifty_sizes()
        print(
            f"50 sizes of a batch in a row: {first} recordings; once more: {second}; 20 times more: {growth:.1f} MB."
        )


if __name__ == "__main__":
    main()
