"""Nothing that is read is ever executed: read from the source, so that it stays so. See SECURITY.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import extensor

SOURCE = Path(extensor.__file__).parent

MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "subprocess",
    "ctypes",
    "code",
    "imp",
    "pty",
}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
ATTRIBUTES = {
    ("os", "system"), ("os", "popen"), ("os", "execv"), ("os", "execve"), ("os", "spawnl"), ("os", "spawnv"),
    ("os", "posix_spawn"), ("np", "load"), ("numpy", "load"), ("yaml", "load"), ("torch", "load"), ("joblib", "load"),
}  # fmt: skip
# A user's own file, named by the user, is imported by `extensor verify FILE.py`; that is its purpose.
# `extensor train --processes N` starts mpiexec and itself; no word of a file is part of that command line.
# `extensor sweep` starts `extensor train` with the options that the user typed.
# bfloat16 by DLPack: two bytes of a capsule that another library of this process hands over; no file is one.
# Worker processes of a loader, which it starts itself, send batches through their pipe as pickles; no file is one.
ALLOWED = {
    ("_dlpack.py", "ctypes"),
    ("testing/user_pairs.py", "exec_module"),
    ("cli/_processes.py", "subprocess"),
    ("cli/sweep.py", "subprocess"),
    ("data/workers.py", "pickle"),
}


def dangers(source: str) -> Iterator[str]:
    """Names of what could execute or unpickle data, as they are called or imported."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.split(".")[0] in MODULES:
                yield node.module
        elif isinstance(node, ast.Call):
            yield from _called(node)


def _called(node: ast.Call) -> Iterator[str]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in CALLS:
        yield function.id
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if (owner, function.attr) in ATTRIBUTES or function.attr in ("exec_module", "unpickle"):
            yield function.attr
    for keyword in node.keywords:
        if keyword.arg in ("allow_pickle", "shell") and not (
            isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        ):
            yield keyword.arg


def test_no_source_executes_or_unpickles() -> None:
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        for name in dangers(path.read_text(encoding="utf-8"))
    }
    assert found - ALLOWED == set()


def test_the_reader_sees_what_it_looks_for() -> None:
    sources = ["import pickle", "from subprocess import run", "eval('1')", "np.load(f)", "f(allow_pickle=True)",
               "os.system('x')", "run(x, shell=True)", "spec.loader.exec_module(m)"]  # fmt: skip
    assert all(list(dangers(source)) for source in sources)
    assert not list(dangers("model.eval(); re.compile('x'); f(allow_pickle=False)"))
