"""README.md tells the truth: its example runs and learns, and every function of its table exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import extensor as et

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_example_learns() -> None:
    code, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    first: dict[str, Any] = {}
    exec(code.replace("range(500)", "range(1)"), first)
    last: dict[str, Any] = {}
    exec(code, last)
    assert last["loss"].item() < 0.1 * first["loss"].item()


def test_table_names_what_exists() -> None:
    rows = re.findall(r"^\| \w+ \| (`.*) \|$", README, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 120
    assert not [name for name in names if not hasattr(et, name)]


def test_table_leaves_out_no_function() -> None:
    table = set(re.findall(r"`(\w+)`", README))
    known = {
        "astype",
        "max_reduce",
        "min_reduce",
        "var",
    }  # other names of what is there, and a method's function
    functions = {name for name in et.__all__ if f"{name}_backward" in et.__all__}
    assert sorted(functions - table - known) == []


def test_training_example(capsys):
    _, code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    namespace = {}
    exec(code.replace("epochs=10", "epochs=2"), namespace)
    assert namespace["trainer"].step > 40
    assert "val accuracy" in capsys.readouterr().out
