"""The installed package: small, typed, with its command, and the version in one place."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import extensor

PACKAGE = Path(extensor.__file__).parent


def installed_files() -> list[Path]:
    native = importlib.util.find_spec("extensor._native")
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return files + ([Path(native.origin)] if native and native.origin else [])


@pytest.mark.plain_build
def test_size() -> None:
    assert sum(path.stat().st_size for path in set(installed_files())) < 16e6


def test_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "_native.pyi").exists()


def test_only_the_package_is_installed() -> None:
    kinds = {path.suffix for path in installed_files()}
    assert not kinds & {".cpp", ".hpp", ".inc", ".md", ".toml"}


def test_version_and_command() -> None:
    try:
        distribution = importlib.metadata.distribution("extensor")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the source tree, not installed")
    assert distribution.version == extensor.__version__
    commands = {
        entry.name: entry.value for entry in distribution.entry_points.select(group="console_scripts")
    }
    assert commands == {"extensor": "extensor.cli:main"}


def test_import_brings_in_only_what_computes() -> None:
    """What belongs to the command line, the tests or the benchmarks is imported when it is used."""
    code = "import sys, extensor; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "numpy" in loaded
    assert not loaded & {
        "click",
        "rich",
        "safetensors",
        "matplotlib",
        "scipy",
        "hypothesis",
        "torch",
        "unittest",
        "asyncio",
    }
