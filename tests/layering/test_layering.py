"""Imports only point down. Read from the source, so that no import can hide inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import extensor

SOURCE = Path(extensor.__file__).parent

# The floors of the house, from the ground up. A module imports from its own floor or from below.
FLOORS = [
    {
        "errors",
        "version",
        "_core",
        "_native",
        "_pure",
        "_habit_names",
        "_habits",
        "_loading",
        "_misfits",
        "_html",
        "_numerals",
        "_printable",
        "_progress",
        "_scale",
        "_spelling",
        "autocast_table",
    },
    {"devices", "dtypes"},
    {"_dlpack", "_tensor_view", "nested"},
    {"tensor"},
    {"checks", "state_trees"},
    {"kernels"},
    {"config", "graph"},
    {"ops", "random"},
    {"fft", "linalg"},
    {"autograd"},
    {"compile"},
    {"array_api", "init", "models", "nn", "optim"},
    {"", "__main__"},  # the package itself gathers the names below it
    {"distributed"},
    {"bench", "convert", "data", "onnx", "report", "testing", "train"},
    {"cli", "sklearn"},
]
FLOOR_OF = {name: level for level, names in enumerate(FLOORS) for name in names}


def modules_of(root: Path) -> dict[str, Path]:
    """Dotted name inside the package ('' for the package itself) to file."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path, modules: dict[str, Path], package: str) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in its text."""
    here = name.split(".") if name else []
    if path.name != "__init__.py":
        here = here[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == package or alias.name.startswith(package + "."):
                    yield alias.name[len(package) + 1 :]
        elif isinstance(node, ast.ImportFrom):
            base = node.module.split(".") if node.module else []
            if node.level:
                base = here[: len(here) - node.level + 1] + base
            elif base[:1] == [package]:
                base = base[1:]
            else:
                continue
            for alias in node.names:
                inner = ".".join([*base, alias.name])
                yield inner if inner in modules or inner == "_native" else ".".join(base)


def graph_of(root: Path, package: str = "extensor") -> dict[str, set[str]]:
    modules = modules_of(root)
    return {name: set(imports_of(name, path, modules, package)) - {name} for name, path in modules.items()}


def upward(graph: dict[str, set[str]]) -> list[str]:
    """Imports that point up, and modules that have no floor."""

    def floor(module: str) -> int:
        return FLOOR_OF[module.split(".", maxsplit=1)[0]]

    homeless = {m for edges in graph.values() for m in edges} | set(graph)
    homeless = {m for m in homeless if m.split(".")[0] not in FLOOR_OF}
    problems = [f"{m or 'extensor'} has no floor; name it in FLOORS" for m in sorted(homeless)]
    problems += [
        f"{module or 'extensor'} imports {other or 'extensor'}, which is above it"
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if not {module, other} & homeless and floor(other) > floor(module)
    ]
    return problems


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle of imports; empty if there is none."""
    done: set[str] = set()
    for start in sorted(graph):
        trail: list[str] = []
        walk = [(start, iter(sorted(graph[start])))] if start not in done else []
        trail += [start] if walk else []
        while walk:
            for other in walk[-1][1]:
                if other in trail:
                    return [*trail[trail.index(other) :], other]
                if other not in done and other in graph:
                    walk.append((other, iter(sorted(graph[other]))))
                    trail.append(other)
                    break
            else:
                done.add(walk.pop()[0])
                trail.pop()
    return []


def test_imports_point_down() -> None:
    assert not upward(graph_of(SOURCE))


def test_no_circular_imports() -> None:
    assert not cycle(graph_of(SOURCE))


@pytest.mark.parametrize(
    ("files", "upwards", "circle"),
    [
        ({"dtypes.py": "from .errors import x", "errors.py": ""}, 0, []),
        ({"dtypes.py": "from .tensor import x", "tensor.py": ""}, 1, []),
        ({"dtypes.py": "def f():\n    from extensor.ops.loss import mse", "ops/loss.py": ""}, 1, []),
        ({"kernels/__init__.py": "", "kernels/gemm.py": "from .. import tensor", "tensor.py": ""}, 0, []),
        ({"tensor.py": "import extensor.kernels", "kernels/__init__.py": ""}, 1, []),
        ({"ops/__init__.py": "from .a import f", "ops/a.py": "from . import b", "ops/b.py": "from .a import f"}, 0, ["ops.a", "ops.b", "ops.a"]),
        ({"ops/a.py": "def f():\n    from . import b", "ops/b.py": "from . import a"}, 0, ["ops.a", "ops.b", "ops.a"]),
        ({"graph.py": "from . import ops", "ops/__init__.py": "from ..graph import x"}, 1, ["graph", "ops", "graph"]),
        ({"attic.py": ""}, 1, []),
    ],
)  # fmt: skip
def test_finds_planted_mistakes(
    tmp_path: Path, files: dict[str, str], upwards: int, circle: list[str]
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    graph = graph_of(tmp_path)
    assert len(upward(graph)) == upwards
    assert cycle(graph) == circle
