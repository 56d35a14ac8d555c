"""The profiler: what ran, where, and the timeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = [nn.Linear(4, 4, rng=0), nn.Linear(4, 4, rng=1)]
        self.head = nn.Linear(4, 3, rng=2)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x).relu()
        return self.head(x)


def profiled(steps: int = 2) -> Any:
    net = Net()
    optimizer = et.optim.SGD(net.parameters(), lr=0.1)
    x, y = et.ones((5, 4)), et.tensor([0, 1, 2, 0, 1])
    with et.profile() as p:
        for _ in range(steps):
            loss = et.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return p


def test_every_call_is_counted_forward_and_backward() -> None:
    calls = {row.name: row.calls for row in profiled().by_op()}
    assert calls == {
        "linear": 6, "relu": 4, "cross_entropy": 2, "linear_backward": 6, "relu_backward": 4, "cross_entropy_backward": 2,
        "SGD.step": 2,
    }  # fmt: skip


def test_the_path_of_the_module_forward_and_backward() -> None:
    p = profiled(1)
    paths = {(e.name, e.path) for e in p.events if e.kind in ("forward", "backward")}
    for name in ("linear", "linear_backward"):
        assert {path for n, path in paths if n == name} == {"Net.blocks[0]", "Net.blocks[1]", "Net.head"}
    assert {path for n, path in paths if n.startswith("relu")} == {"Net"}
    assert ("cross_entropy_backward", "") in paths
    rows = {row.name: row for row in p.by_module()}
    assert list(rows) == ["Net", "Net.blocks[0]", "Net.blocks[1]", "Net.head"]
    inner = [rows[name] for name in list(rows)[1:]]
    assert rows["Net"].forward >= sum(r.forward for r in inner)
    relus = sum(e.duration for e in p.events if e.name == "relu_backward")
    assert rows["Net"].backward == sum(r.backward for r in inner) + relus
    linear = [e for e in p.events if e.name == "linear_backward"]
    assert {(e.path, e.duration) for e in linear} == {(r.name, r.backward) for r in inner}


def test_bytes_are_those_of_new_memory() -> None:
    x = et.ones((4, 8))
    with et.profile() as p:
        y = x + 1.0
        z = y.reshape(8, 4)
        z.T.sum()
    rows = {row.name: row.nbytes for row in p.by_op()}
    assert rows == {"add": 4 * 8 * 4, "reshape": 0, "transpose": 0, "sum": 4}


def test_lines_shapes_and_times() -> None:
    p = profiled(1)
    first = p.events[0]
    assert first.place.split(":")[0].endswith("test_profiler.py")
    assert next(e for e in p.events if e.name == "linear").shapes == ((5, 4),)
    assert all(e.start >= 0 and e.duration > 0 for e in p.events)
    assert p.elapsed >= p.time("forward") + p.time("backward") + p.time("optimizer") > 0


def test_outside_nothing_is_measured_and_a_profile_goes_on() -> None:
    p = profiled(1)
    count = len(p.events)
    et.ones(2) + 1.0
    Net()(et.ones((1, 4)))
    assert len(p.events) == count
    with p:
        et.ones(2) * 2.0
    assert len(p.events) == count + 1
    with pytest.raises(ZeroDivisionError), p:
        raise ZeroDivisionError
    et.ones(2) + 1.0
    assert len(p.events) == count + 1


def test_results_are_the_same_bits() -> None:
    def run() -> Any:
        net = Net()
        et.cross_entropy(net(et.ones((5, 4))), et.tensor([0, 1, 2, 0, 1])).backward()
        return [g.tolist() for g in (p.grad for p in net.parameters())]

    want = run()
    with et.profile():
        got = run()
    assert got == want


def test_gradients_that_meet_and_transforms() -> None:
    with et.profile() as p:
        et.grad(lambda x: (x * x + x.exp()).sum())(et.ones(3))
    names = [e.name for e in p.events if e.kind == "backward"]
    assert names.count("accumulate") == 2
    assert "exp_backward" in names


def test_it_works_inside_of_anomaly_detection() -> None:
    x = et.tensor([1.0, 2.0], requires_grad=True)
    with et.detect_anomaly(), et.profile() as p:
        (x * 2.0).sum().backward()
        with pytest.raises(et.AnomalyError):
            (x - 10.0).log()
        small = et.tensor([1e-37], requires_grad=True)
        loss = (small * 1e20 * 1e20).sum()
        with pytest.raises(et.AnomalyError, match=r"^\[multiply_backward\]"):
            loss.backward()
    assert {"multiply", "multiply_backward"} <= {e.name for e in p.events}


def test_tables_as_text_and_html() -> None:
    p = profiled()
    text = str(p)
    head, rule, *rows = text.splitlines()
    assert head.split() == ["operation", "calls", "time", "share", "mean", "memory"]
    assert set(rule) == {"-", " "}
    assert len(rows) == 7 + 1 + 2 + 4 + 2
    assert rows[-1].startswith("total ")
    shares = [float(r.split("%")[0].split()[-1]) for r in rows[:7]]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    page = p._repr_html_()
    assert page.count("<tr>") == 7 + 4 + 2
    assert "Net.blocks[1]" in page
    assert str(et.profile()) == "nothing was measured"


def test_the_timeline_is_what_tracing_views_read(tmp_path: Path) -> None:
    p = profiled()
    file = tmp_path / "trace.json"
    p.export_chrome_trace(file)
    trace = json.loads(file.read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(p.events)
    for e in events:
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid"} <= set(e)
        assert isinstance(e["ts"], float)
        assert e["dur"] >= 0
    # slices of one thread nest: each lies wholly inside those that are open
    open_until: list[float] = []
    for e in events:
        while open_until and open_until[-1] <= e["ts"]:
            open_until.pop()
        assert not open_until or e["ts"] + e["dur"] <= open_until[-1] + 1e-6
        open_until.append(e["ts"] + e["dur"])
    assert {e["cat"] for e in events} == {"forward", "backward", "module", "optimizer"}
    linear = next(e for e in events if e["name"] == "linear_backward")
    assert linear["args"]["module"] == "Net.head"
    assert linear["args"]["shapes"][1] == [3, 4]


def test_two_at_once_are_refused() -> None:
    with et.profile(), pytest.raises(RuntimeError, match=r"^\[profile\] another profile is open"):
        et.profile().__enter__()
    with et.profile() as p:
        et.tensor(np.ones(2)) + 1.0
    assert len(p.events) == 1
