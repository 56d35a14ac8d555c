"""Runs to report on, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from extensor.cli import main

HOSTILE = '<b onclick="x">&"'  # the name of a class, which must stay a name


def trained(folder: Path, *arguments: object) -> Path:
    result = CliRunner().invoke(main, ["train", *map(str, arguments), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert f"report: {folder}/report.html" in result.output
    return folder


def table(path: Path, targets: Callable[[np.ndarray], list[str]]) -> Path:
    x = np.random.default_rng(0).normal(size=(200, 3))
    rows = ["a,b,c,target", *(",".join([*map(str, row), t]) for row, t in zip(x.tolist(), targets(x)))]
    path.write_text("\n".join(rows))
    return path


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("report") / "digits", "lenet", "--epochs", 3)


@pytest.fixture(scope="session")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("report") / "short", "mlp", "--epochs", 1)


@pytest.fixture(scope="session")
def classes_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    data = table(
        place / "t.csv",
        lambda x: [HOSTILE.replace('"', '""').join('""') if a > 0 else "low" for a in x[:, 0]],
    )
    return trained(place / "a <run> & more", "mlp", "--data", data, "--epochs", 2)


@pytest.fixture(scope="session")
def quantities_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    data = table(place / "t.csv", lambda x: [str(3 * a + 0.5) for a in x[:, 0]])
    return trained(place / "prices", "mlp", "--data", data, "--epochs", 4)


@pytest.fixture(scope="session", params=["chargpt", "lstm"])
def text_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    (place / "text.txt").write_text("the quick brown fox jumps over the lazy dog.\n" * 60)
    return trained(place / request.param, request.param, "--data", place / "text.txt", "--steps", 4)
