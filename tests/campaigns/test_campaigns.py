"""Short forms of the campaigns, and what they do with what they find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHORT = {"fuzz": 400, "files": 200, "kill": 2, "threads": 4, "soak": 2000, "compile": 20}


def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), name, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("name", SHORT)
def test_short_form(name: str) -> None:
    if name in ("fuzz", "compile"):
        pytest.importorskip(
            "extensor._native", reason="without the native core there is nothing native to compare"
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
