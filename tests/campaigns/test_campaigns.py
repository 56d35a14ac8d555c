"""Short forms of the campaigns, and what they do with what they find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHORT = {"fuzz": 1500, "files": 200, "kill": 2, "threads": 4, "soak": 2000, "compile": 20}


def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), name, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


# What is freed stays in memory under a sanitizer for a while, so that a use of it is seen: soak counts that as growth.
CASES = [pytest.param(name, marks=pytest.mark.address_space) if name == "soak" else name for name in SHORT]


@pytest.mark.parametrize("name", CASES)
def test_short_form(name: str) -> None:
    if name in ("fuzz", "compile", "threads"):
        # NumPy's own products hang in a process forked, or short of memory, while its threads compute.
        pytest.importorskip(
            "extensor._native", reason="this looks for defects of the native core and its threads"
        )
    done = run(name, "--count", str(SHORT[name]), "--minutes", "5", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 findings" in done.stdout


def test_short_form_of_memory() -> None:
    pytest.importorskip("extensor._native", reason="only the native core can fail on request")
    done = run("memory", "--count", "30")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("LeNet", "GPT", "ResNet"):
        assert f"30 failed allocations of {name}" in done.stdout


def test_a_finding_is_told_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    from campaign import Campaign

    first = Campaign("fuzz", 1, corpus=tmp_path)
    first.did("calls", 3)
    first.found("a crash", ["road", "exp", 7])
    first.found("a crash", ["road", "exp", 7])
    assert first.close() == 1
    assert "3 calls" in capsys.readouterr().out
    assert Campaign("fuzz", 1, corpus=tmp_path).corpus() == [["road", "exp", 7]]


def test_ranks_cover_every_case_early_and_tell_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    import ranks
    from campaign import Campaign

    every = ranks.pieces(0)
    assert len({str(piece) for piece in every}) == len(every) == 15 * 5 + 3 * (1 + 10 + 2)
    early = every[: len(every) // 5]
    assert {piece[:2] for piece in early} == {(n, s) for n in ranks.NETWORKS for s in ranks.SETTINGS}
    assert {piece.what for piece in early} >= {*ranks.WAYS, "4, 1, 3 ranks", "kill 1"}

    monkeypatch.setattr(ranks, "answer", lambda *_, **__: "0123")
    ranks.run(campaign := Campaign("ranks", 1, most=14))
    said = capsys.readouterr().out
    assert "gpt, compressed, 4 ranks: 0123" in said
    assert f"14 of {len(every)} pieces; no time for: {every[14]}; " in said
    assert campaign.counts == {"runs": 14}
