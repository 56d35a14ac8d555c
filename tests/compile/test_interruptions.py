"""What happens in the middle of a compiled step leaves what it would leave in an eager one, or a whole number of steps."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim

from .networks import OPTIMIZERS, Training


class Trap:
    """A function of tensors that looks at elements, so that it is called in every run, and does something in one of the steps."""

    def __init__(self, act: Callable[[], Any], at: int) -> None:
        self.act, self.at, self.step = act, at, 0
        trap = self

        def passed_backward(grad_output: et.ExTensor) -> et.ExTensor:
            return grad_output

        @et.differentiable(backward=passed_backward)
        def passed(x: et.ExTensor) -> et.ExTensor:
            if trap.step == trap.at:
                trap.act()
            return et.asarray(np.array(x.numpy()))

        self.function = passed


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A program that is started in the background may have been told to ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def fails() -> None:
    raise OSError("the disk is gone")


def interrupts() -> None:
    signal.raise_signal(signal.SIGINT)


class Steps:
    """A network with dropout, whose step goes through a trap before its backward pass and another one after the update."""

    def __init__(self, act: Callable[[], Any], early: int, late: int) -> None:
        self.rng = rng = np.random.default_rng(3)
        self.model = nn.Sequential(
            nn.Linear(5, 7, rng=rng), nn.Dropout(0.4, rng=rng), nn.ReLU(), nn.Linear(7, 3, rng=rng)
        )
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)
        self.early, self.late = Trap(act, early), Trap(act, late)
        self.x = et.random.normal(1, (4, 5))

    def step(self, x: et.ExTensor) -> et.ExTensor:
        self.optimizer.zero_grad()
        loss = (self.early.function(self.model(x)) ** 2.0).sum()
        loss.backward()
        self.optimizer.step()
        return self.late.function(loss.detach()) + self.model[3].bias.detach().sum()

    def run(self, step: Callable[..., et.ExTensor], error: type[BaseException]) -> list[Any]:
        """Everything that twelve steps leave behind, of which two end early."""
        found: list[Any] = []
        for i in range(12):
            self.early.step = self.late.step = i
            try:
                found.append(step(self.x).item())
            except error as problem:
                found.append(repr(problem))
            found.append([p.tolist() for p in self.model.parameters()])
            if (
                found[-2] != "KeyboardInterrupt()"
            ):  # an interrupted step may not even have cleared the gradients
                found.append([p.grad is None or p.grad.tolist() for p in self.model.parameters()])
            found.append([self.optimizer.state[p].get("step") for p in self.model.parameters()])
        found.append(self.rng.standard_normal(3).tolist())  # the generator is where it would be
        return found


@pytest.mark.parametrize(("early", "late"), [(5, 99), (99, 5), (4, 6)])
@pytest.mark.parametrize(("act", "error"), [(fails, OSError), (interrupts, KeyboardInterrupt)])
def test_an_exception_inside_leaves_what_an_eager_step_leaves(
    act: Callable[[], Any], error: type[BaseException], early: int, late: int
) -> None:
    eager, other = Steps(act, early, late), Steps(act, early, late)
    compiled = et.compile(other.step)
    expected = eager.run(eager.step, error)
    assert other.run(compiled, error) == expected
    assert any("Error" in str(part) or "Interrupt" in str(part) for part in expected)
    assert compiled.programs[0].times()[1] >= 8


def test_signals_at_any_moment_leave_whole_steps() -> None:
    training = Training("lenet", OPTIMIZERS["adam"])
    compiled = et.compile(training.step)
    x, y = training.batches[0]
    compiled(x, y), compiled(x, y)
    armed: list[bool] = []

    def interrupt(*_: Any) -> None:
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(60):
            armed.append(True)
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 7e-5 * (i % 17))
                while True:
                    compiled(x, y)
    finally:
        armed.clear()
        signal.signal(signal.SIGALRM, before)
    steps = {training.optimizer.state[p]["step"] for p in training.model.parameters()}
    assert len(steps) == 1
    eager = Training("lenet", OPTIMIZERS["adam"])
    for _ in range(steps.pop()):
        eager.step(x, y)
    for ours, expected in zip(training.model.parameters(), eager.model.parameters()):
        assert ours.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that can fork")
def test_a_fork_goes_on_with_its_own_copy() -> None:
    training = Training("lenet", OPTIMIZERS["adam"])
    compiled = et.compile(training.step)
    training.digest(3, compiled)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, training.digest(4, compiled).encode())
        finally:
            os._exit(0)
    os.close(writer)
    expected = training.digest(4, compiled)
    found = os.read(reader, 200).decode()
    os.close(reader)
    assert os.waitpid(child, 0)[1] == 0
    assert found == expected
    assert compiled.recordings == 1


def test_two_threads_train_two_networks() -> None:
    def trained(compiles: bool) -> Callable[[str], str]:
        def run(name: str) -> str:
            training = Training(name, OPTIMIZERS["adam"], clip=True)
            return training.digest(25, et.compile(training.step) if compiles else training.step)

        return run

    names = ("lenet", "lstm")
    expected = list(map(trained(False), names))
    trainings = [Training(name, OPTIMIZERS["adam"], clip=True) for name in names]
    found: dict[int, str] = {}
    start = threading.Barrier(len(names))

    def work(i: int) -> None:
        step = et.compile(trainings[i].step)
        start.wait()
        found[i] = trainings[i].digest(25, step)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(names))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(len(names))] == expected
