"""The types of the native module (_native.pyi) name what the module has, and nothing else."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import extensor

native = pytest.importorskip("extensor._native", reason="the native core is not installed")
STUB = ast.parse((Path(extensor.__file__).parent / "_native.pyi").read_text())


def names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """What a module or a class of the stub declares."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def test_module_has_what_the_stub_says() -> None:
    assert set(names(STUB.body)) == {name for name in dir(native) if not name.startswith("__")}


def test_classes_have_what_the_stub_says() -> None:
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            there = {name for name in vars(getattr(native, node.name)) if not name.startswith("__")}
            assert {name for name in names(node.body) if not name.startswith("__")} == there, node.name


def test_functions_take_what_the_stub_says() -> None:
    compared = 0
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            function = getattr(native, node.name)
            assert callable(function)
            wanted = [argument.arg for argument in node.args.args]
            # nanobind writes the signature into the first line of the docstring
            signature = re.match(rf"{node.name}\((.*?)\) ->", inspect.getdoc(function) or "")
            if signature:
                compared += 1
                assert re.findall(r"(\w+): ", signature[1]) == wanted, node.name
    assert compared >= 5
