"""The types of the native module (_native.pyi) name what the module has, and nothing else."""

from __future__ import annotations

import ast
import inspect
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
            if function.__text_signature__ is not None:
                compared += 1
                wanted = [("positional-only", a.arg) for a in node.args.posonlyargs]
                wanted += [("positional or keyword", a.arg) for a in node.args.args]
                found = inspect.signature(function).parameters.values()
                assert [(p.kind.description, p.name) for p in found] == wanted, node.name
    assert compared >= 8
