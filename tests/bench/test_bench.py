"""The benchmark runs every kind of case, and its records can be read again. No test here depends on a time."""

from __future__ import annotations

import itertools

import pytest
from click.testing import CliRunner

import extensor as et
from extensor import bench
from extensor.bench import limits
from extensor.bench.report import Result, Run
from extensor.bench.timing import Timing
from extensor.cli import main


def run_of(**best: float) -> Run:
    times = {name: Timing(value, value, 2 * value) for name, value in best.items()}
    result = Result("elementwise", "exp", "1M", times, bytes_moved=8e6, operations=0.0)
    return Run("a machine", 1, {"extensor": "0"}, 16e9, 1e11, [result])


def test_every_case_can_be_called():
    libraries = bench.peers()
    libraries.pop("torch", None)
    seen = set()
    for case in bench.cases(libraries):
        kind = (case.group, case.name)
        if kind in seen or case.size in ("1M", "8M"):
            continue
        seen.add(kind)
        runs = case.make()
        assert "extensor" in runs
        for call in runs.values():
            call()
    assert {group for group, _ in seen} == set(bench.GROUPS)


def test_rounds_are_taken_in_turn():
    order = []
    bench.compare({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, seconds=0.0)
    rounds = [name for name, _ in itertools.groupby(order)]
    assert rounds[-6:] == ["a", "b"] * 3


def test_the_table_shows_ratio_and_share_of_the_limit():
    text = bench.markdown(run_of(extensor=1e-3, torch=2e-3))
    assert "| exp         |   1M |      1000.0 |   2000.0 |  0.50 | 0.25-1.00 |      50% |" in text
    assert "geometric mean 0.50, largest 0.50, 1 cells" in text


def test_the_limits_are_a_copy_and_our_own_products(monkeypatch):
    seen = {}

    def take_times(contestants, rounds):
        seen.update({name: call() for name, call in contestants.items()})
        return {"copy": 1e-3, "256": 1.0, "512": 0.5, "1024": 64.0}

    monkeypatch.setattr(limits, "best_times", take_times)
    assert bench.measure_limits() == (2 * (32 << 20) / 1e-3, 2 * 512**3 / 0.5)
    products = {name: product for name, product in seen.items() if name != "copy"}
    assert all(isinstance(product, et.ExTensor) for product in products.values())
    assert {product.shape for product in products.values()} == {(256, 256), (512, 512), (1024, 1024)}
    assert "fastest product" in bench.markdown(run_of(extensor=1e-3))


def test_a_run_is_kept_and_compared(tmp_path):
    path = tmp_path / "bench.json"
    bench.write_json(run_of(extensor=1e-3), path)
    again = bench.read_json(path)
    assert again == run_of(extensor=1e-3)
    assert "2.00" in bench.compare_runs(again, run_of(extensor=2e-3))
    path.write_text('{"results": 3}')
    with pytest.raises(ValueError, match=r"\[bench\] .* is not a run"):
        bench.read_json(path)


def test_the_command_writes_what_it_says(tmp_path):
    call = ["bench", "--only", "relu", "--size", "16", "--rounds", "2", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, call)
    assert result.exit_code == 0, result.output
    assert "relu" in (tmp_path / "bench.md").read_text()
    again = CliRunner().invoke(main, [*call, "--against", str(tmp_path / "bench.json")])
    assert "after / before" in again.output
    assert CliRunner().invoke(main, ["bench", "--only", "nothing"]).exit_code == 2


def test_a_case_that_is_misspelt() -> None:
    result = CliRunner().invoke(main, ["bench", "--only", "sigmod"])
    assert (result.exit_code, "no case fits --only 'sigmod'; did you mean 'sigmoid'?" in result.stderr) == (
        2,
        True,
    )
