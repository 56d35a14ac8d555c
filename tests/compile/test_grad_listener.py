"""Gradients that are told while a program still runs, natively and by the definition."""

from __future__ import annotations

from typing import Any

import pytest

import extensor as et
from extensor import nn
from extensor.compile.program import Program
from extensor.compile.runner import Runner


class Learner:
    """A pass over a small network that accumulates gradients, and who listens to it."""

    def __init__(self, by_definition: bool) -> None:
        self.model = nn.Sequential(nn.Linear(5, 4, rng=0), nn.ReLU(), nn.Linear(4, 3, rng=1))
        self.parameters = list(self.model.parameters())
        self.x, self.y = et.random.normal(2, (6, 5)), et.random.integers(3, 0, 3, (6,))
        self.run = et.compile(self.learn)
        self.by_definition = by_definition
        self.told: list[tuple[int, list[bool]]] = []

    def learn(self, x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        loss = et.cross_entropy(self.model(x), y)
        loss.backward()
        return loss

    def __call__(self, y: et.ExTensor | None = None, listener: Any = None) -> et.ExTensor:
        run = self.run if listener is None else self.run.telling(listener)
        result: et.ExTensor = run(self.x, self.y if y is None else y)
        for program in self.run.programs:
            if self.by_definition and type(program) is Program:
                program.run = Runner(program.description).run
        return result

    def listen(self, leaf: Any) -> None:
        number = next(i for i, p in enumerate(self.parameters) if p is leaf)
        self.told.append((number, [p.grad is not None for p in self.parameters]))

    def grads(self) -> list[Any]:
        return [p.grad.tolist() for p in self.parameters if p.grad is not None]


@pytest.fixture(params=[False, True], ids=["native", "definition"])
def learner(request: pytest.FixtureRequest) -> Learner:
    return Learner(request.param)


def recorded(learner: Learner) -> list[Any]:
    """Once without gradients and once with them; returns the gradients of the second."""
    learner()
    learner()
    return learner.grads()


def test_leaves_are_told_as_they_are_complete(learner: Learner) -> None:
    expected = recorded(learner)
    for p in learner.parameters:
        p.zero_grad()
    learner(listener=learner.listen)
    assert [number for number, _ in learner.told] == [2, 3, 0, 1]  # the last layer comes first
    for place, (_, present) in enumerate(learner.told):
        assert sum(present) == place + 1  # of those that come later nothing is there yet
    assert expected != learner.grads()
    learner.told.clear()
    learner(listener=learner.listen)  # adds to those of before
    assert len(learner.told) == 4
    assert expected == learner.grads()


def test_nobody_is_told_without_a_program(learner: Learner) -> None:
    learner(listener=learner.listen)
    assert learner.told == []


def test_who_listens_may_take_the_gradient(learner: Learner) -> None:
    recorded(learner)
    for p in learner.parameters:
        p.zero_grad()
    learner(listener=lambda leaf: leaf.zero_grad())
    assert learner.grads() == []


def test_an_error_of_who_listens_ends_the_call(learner: Learner) -> None:
    recorded(learner)

    def refuse(leaf: Any) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        learner(listener=refuse)
    learner()  # nothing is broken


def test_what_is_refused_is_refused_before_anybody_is_told(learner: Learner) -> None:
    """The guard on labels answers otherwise: the function itself runs, and its gradients are added once."""
    expected = recorded(learner)
    for p in learner.parameters:
        p.zero_grad()
    with pytest.raises(ValueError, match="cross_entropy"):
        learner(et.full((6,), 7, dtype=et.int64), learner.listen)
    assert learner.told == []
    learner()
    learner()
    assert learner.grads() == expected


class Checked(Learner):
    """A segment that is computed again asks which elements are the largest, after the gradients of the head are there."""

    def learn(self, x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        table = self.parameters[0]

        def segment(x: et.ExTensor) -> et.ExTensor:
            h = x @ table.T
            return h + et.embedding(h.argmax(1), table)[:, :4]

        h = et.checkpoint(segment)(x)
        loss = et.cross_entropy(et.linear(h, self.parameters[2], self.parameters[3]), y)
        loss.backward()
        return loss


@pytest.mark.parametrize("by_definition", [False, True], ids=["native", "definition"])
def test_gradients_in_front_of_a_guard_stay(by_definition: bool) -> None:
    learner = Checked(by_definition)
    learner()
    learner.grads()
    for p in learner.parameters:
        p.zero_grad()
    learner(listener=learner.listen)
    expected = learner.grads()
    for p in learner.parameters:
        p.zero_grad()
    learner()
    assert learner.grads() == expected
    assert sorted(number for number, _ in learner.told) == [0, 2, 3]


def test_a_program_inside_an_eager_pass_tells_nobody() -> None:
    outer = Learner(False)
    recorded(outer)
    told: list[Any] = []

    def learn(x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        loss: et.ExTensor = outer.run(x, y)
        if loss.item() > 1e9:  # which no program can ask
            raise AssertionError
        return loss

    run = et.compile(learn, fallback=True)
    with pytest.warns(UserWarning, match="runs without compile"):
        run.telling(told.append)(outer.x, outer.y)
    run.telling(told.append)(outer.x, outer.y)
    assert told == []
