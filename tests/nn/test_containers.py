"""Containers by name and by position."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import extensor as et
from extensor import nn


def test_a_dict_of_modules() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 1, rng=0)})
            self.heads["b"] = nn.Linear(2, 3, rng=1)
            self.heads.update([("act", nn.ReLU())])

        def forward(self, x: Any, name: str) -> Any:
            return self.heads["act"](self.heads[name](x))

    net = Net()
    assert list(net.state_dict()) == ["heads.a.weight", "heads.a.bias", "heads.b.weight", "heads.b.bias"]
    assert net(et.ones((1, 2)), "b").shape == (1, 3)
    assert (len(net.heads), "a" in net.heads, "z" in net.heads) == (3, True, False)
    assert list(net.heads.keys()) == ["a", "b", "act"]
    assert [type(m).__name__ for m in net.heads.values()] == ["Linear", "Linear", "ReLU"]
    assert dict(net.heads.items())["a"] is net.heads["a"]
    net.eval()
    assert not net.heads["act"].training
    assert net.heads.pop("act") is not None
    assert list(copy.deepcopy(net).heads) == ["a", "b"]
    net.heads.clear()
    assert len(net.heads) == 0
    with pytest.raises(KeyError):
        net.heads["a"]
    with pytest.raises(ValueError, match=r"^in Net.heads.a: \[linear\]"):
        Net()(et.ones((1, 5)), "a")


def test_a_list_of_parameters() -> None:
    held = nn.ParameterList([et.ones(2), nn.Parameter([3.0])])
    held.append([1.0, 2.0]).extend([et.zeros(1)])
    assert [name for name, _ in held.named_parameters()] == ["0", "1", "2", "3"]
    assert len(held) == 4
    assert [p.shape for p in held] == [(2,), (1,), (2,), (1,)]
    first = held[0]
    held[0] = et.tensor([5.0, 6.0])
    assert held[0] is first
    assert first.tolist() == [5.0, 6.0]
    held[-1] = nn.Parameter([7.0, 8.0])
    assert held[3].tolist() == [7.0, 8.0]
    assert [p.shape for p in held[1:3]] == [(1,), (2,)]
    (held[0] * 2.0).sum().backward()
    assert held[0].grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["d"].__setitem__("x", nn.Linear(1, 1)),
        lambda m: m["d"].pop("x"),
        lambda m: m["l"].__setitem__(0, nn.Parameter([1.0])),
        lambda m: m["p"].__setitem__("w", nn.Parameter([1.0])),
    ],
)
def test_an_optimiser_notices_what_left_a_container(change: Any) -> None:
    model = nn.ModuleDict({
        "d": nn.ModuleDict({"x": nn.Linear(1, 1, rng=0)}), "l": nn.ParameterList([[1.0]]), "p": nn.ParameterDict({"w": [1.0]}),
    })  # fmt: skip
    optimizer = et.optim.SGD(model.parameters(), lr=0.1)
    optimizer.step()
    change(model)
    with pytest.raises(RuntimeError, match=r"^\[SGD.step\] .* is no longer part of its model"):
        optimizer.step()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.ModuleDict({"a": 3}), TypeError, r"\[ModuleDict\] takes modules"),
        (lambda: nn.ModuleDict({1: nn.ReLU()}), TypeError, r"\[ModuleDict\] names must be strings"),
        (lambda: nn.ParameterList(et.ones(3)), TypeError, r"\[ParameterList\] takes a list"),
        (lambda: nn.ParameterList(["x"]), TypeError, r"\[Parameter\] data"),
        (
            lambda: nn.ParameterList([[1.0]]).__setitem__(0, et.ones(2)),
            ValueError,
            r"\[ParameterList\] 0 has shape",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"^{text}"):
        call()
