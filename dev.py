#!/usr/bin/env python3
"""Everything one does in a checkout of ExTensor. Needs Python 3.11 or newer and a C++ compiler, nothing else.

    python3 dev.py demo        install, train LeNet-5 on embedded digits, verify the gradients it used
    python3 dev.py test        install, lint, check types, run every test and every example in the docs
    python3 dev.py pure        the whole test suite on the package without the native core
    python3 dev.py sanitize address|undefined|thread|address,undefined [tests]
                               all tests, or some, on a native core built with that sanitizer; address and undefined
                               behaviour can be watched in one run
    python3 dev.py aarch64     the core for 64-bit ARM under qemu-user, its bits against those of this processor; on Debian,
                               with g++-aarch64-linux-gnu and qemu-user; `aarch64 --every 10` checks one kernel in ten
    python3 dev.py accuracy    every float32 through every elementwise function; --stride 251 for some of them
    python3 dev.py campaign fuzz|files|kill|memory|threads|soak|compile|ranks [--minutes N]
                               search for what breaks, and keep what is found
    python3 dev.py analyse     GCC, Clang (-Wall -Wextra -Wconversion) and clang-tidy on the native core; `analyse csrc/bindings`
                               reads some of it
    python3 dev.py docs        the documentation site, in site/; `docs serve` shows it while you write
    python3 dev.py wheel       a source distribution and a manylinux wheel for every instruction set, in dist/

Each command keeps its environment in .venv* and its objects in build/, so a second run is quick. A build is for this
processor alone; EXTENSOR_ISAS=all builds for every one, as `wheel` does.
What follows `test` and `pure` goes to pytest: python3 dev.py test tests/ops -k softmax
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(f"ExTensor needs Python 3.11 or newer; this is {sys.version.split()[0]}")

import tomllib

ROOT = Path(__file__).resolve().parent


def attempt(title: str, command: list[str | Path], env: dict[str, str] | None = None) -> bool:
    """Run a command quietly, with its title, its progress and its time; show what it wrote only if it fails."""
    print(f"  {title} ... ", end="", flush=True)
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    written, shown = [], ""
    for line in process.stdout:
        written.append(line)
        step = re.search(r"\[(\d+/\d+)\]", line)  # as Ninja counts
        if step and sys.stdout.isatty():
            print("\b" * len(shown) + step[1], end="", flush=True)
            shown = step[1]
    print("\b" * len(shown) + " " * len(shown) + "\b" * len(shown), end="")
    if process.wait():
        print("failed\n", "".join(written).rstrip(), f"\nfailed: {' '.join(map(str, command))}", sep="\n")
    else:
        print(f"{time.perf_counter() - start:.1f} s", flush=True)
    return process.returncode == 0


def run(title: str, command: list[str | Path], env: dict[str, str] | None = None) -> None:
    """A step that nothing can go on without."""
    if not attempt(title, command, env):
        sys.exit(1)


def show(command: list[str | Path], env: dict[str, str] | None = None) -> int:
    """Run a command in the open; return its exit code."""
    return subprocess.run(command, cwd=ROOT, env=os.environ | (env or {})).returncode


class Environment:
    """A virtual environment in the checkout, with the requirements of this project."""

    def __init__(self, name: str, *extras: str) -> None:
        self.folder = ROOT / name
        self.python = self.folder / "bin" / "python"
        if not self.python.exists():
            run(f"making {name}", [sys.executable, "-m", "venv", self.folder])
        self._require(*extras)

    def _require(self, *extras: str) -> None:
        """Install what pyproject.toml asks for, unless that was done before."""
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
        project = settings["project"]
        wanted = [*settings["build-system"]["requires"], *project["dependencies"]]
        for extra in extras:
            wanted += [r for r in project["optional-dependencies"][extra] if not r.startswith("extensor[")]
        stamp = self.folder / "requirements.json"
        have = set(json.loads(stamp.read_text())) if stamp.exists() else set()
        if not set(wanted) <= have:
            run("fetching requirements", self.pip("--quiet", *wanted))
            if builders := self._builders():
                run("fetching what builds", self.pip("--quiet", *builders))
            stamp.write_text(json.dumps(sorted({*have, *wanted}), indent=1))

    def _builders(self) -> list[str]:
        """CMake and Ninja where the system has none, as pip would fetch them: another Ninja than that of `pip install .`
        would compile again what is compiled."""
        ask = "import scikit_build_core.build as backend; print(*backend.get_requires_for_build_wheel())"
        answer = subprocess.run(
            [self.python, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return answer.stdout.split()

    def path(self) -> dict[str, str]:
        """Where programs are looked for: here first."""
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def pip(self, *options: str) -> list[str | Path]:
        return [self.python, "-m", "pip", "install", "--disable-pip-version-check", *options]

    def install(self, title: str, *options: str, env: dict[str, str] | None = None) -> None:
        """Install this checkout; what the build says passes by, so that its steps can be counted."""
        run(title, self.pip("--verbose", "--no-build-isolation", "--no-deps", *options), env)

    def pytest(self, arguments: list[str], env: dict[str, str] | None = None) -> int:
        return show([self.python, "-m", "pytest", "-q", *arguments], env)


def workers() -> list[str]:
    return ["-n", str(min(len(os.sched_getaffinity(0)), 8))]


def isas() -> str:
    """The instruction sets to build the kernels for: that of this processor, unless the environment asks for more."""
    return f"--config-settings=cmake.define.EXTENSOR_ISAS={os.environ.get('EXTENSOR_ISAS', 'native')}"


def developer(*extras: str) -> Environment:
    """The environment people work in: an editable install with the native core, its objects shared with `pip install .`."""
    environment = Environment(".venv", *extras)
    environment.install("building the native core", isas(), "-e", ".")
    return environment


def demo(rest: list[str]) -> int:
    environment = developer()
    print(flush=True)
    folder = ROOT / "runs" / "digits"
    again = ["--resume"] if folder.exists() else []  # a second demo goes on where the first ended
    train = ["train", "lenet", "--epochs", "30", "--verify", "--out", folder, *again, *rest]
    return show([environment.folder / "bin" / "extensor", *train])


def test(rest: list[str]) -> int:
    environment = developer("test", "dev")
    clean = attempt("lint", [environment.python, "-m", "ruff", "check", "."])
    typed = attempt("types", [environment.python, "-m", "mypy"])
    code = environment.pytest([*workers(), *rest])
    if not rest:
        print("the functions once more, each call by its body (EXTENSOR_PLANS=0)")
        code = environment.pytest([*workers(), "tests/ops"], {"EXTENSOR_PLANS": "0"}) or code
    if not (clean and typed):
        print("the tests are done; lint or types failed, see above")
    return code or int(not (clean and typed))


def pure(rest: list[str]) -> int:
    environment = Environment(".venv-pure", "test")
    environment.install(
        "installing without the native core", "--force-reinstall", ".", env={"EXTENSOR_NATIVE": "0"}
    )
    return environment.pytest([*workers(), *(rest or ["tests", "--pyargs", "extensor"])])


SANITIZERS = {
    # Leaks are not looked for: the interpreter and NumPy never free much of what they allocate, and every
    # allocation of ours has their frames below it, so a list of exceptions would hide ours as well.
    "address": (
        "libasan.so",
        {
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:allocator_may_return_null=1:handle_abort=1",
            "PYTHONMALLOC": "malloc",
        },
    ),
    # Beside the address sanitizer this one has no file to report to: it aborts, and the other one reports where.
    "undefined": ("libubsan.so", {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1"}),
    # The MPI of the tests speaks by UCX, which writes its own jumps into the C library and reads the memory of other
    # processes; the thread sanitizer, which watches both calls, falls over the addresses.
    "thread": (
        "libtsan.so",
        {
            "TSAN_OPTIONS": "halt_on_error=1:history_size=4:die_after_fork=0:allocator_may_return_null=1"
            f":suppressions='{ROOT / 'tests' / 'support' / 'races_elsewhere.txt'}'",
            "UCX_MEM_EVENTS": "no",
            "UCX_TLS": "^cma",
        },
    ),
}


def sanitize(rest: list[str]) -> int:
    known = (*SANITIZERS, "address,undefined")
    if not rest or rest[0] not in known:
        sys.exit(f"sanitize what? one of {' '.join(known)}")
    kind, *rest = rest
    watching = [SANITIZERS[name] for name in kind.split(",")]
    environment = Environment(f".venv-{kind.replace(',', '-')}", "test")
    environment.install(
        f"building the native core with the {kind} sanitizer",
        f"--config-settings=build-dir=build/{kind.replace(',', '-')}",
        f"--config-settings=cmake.define.EXTENSOR_SANITIZE={kind}",
        isas(),
        "--config-settings=install.strip=false",
        "--force-reinstall",
        ".",
    )
    runtimes = [
        subprocess.run(
            [os.environ.get("CXX", "c++"), f"-print-file-name={name}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name in (*(library for library, _ in watching), "libstdc++.so")
    ]
    env = {"LD_PRELOAD": " ".join(runtimes), "OPENBLAS_NUM_THREADS": "1"}
    findings = ROOT / "build" / f"{kind.replace(',', '-')}-findings"
    findings.mkdir(parents=True, exist_ok=True)
    for old in findings.iterdir():
        old.unlink()
    for _, options in watching:
        env |= {
            name: f"{value}:log_path='{findings}/finding'" if name.endswith("SAN_OPTIONS") else value
            for name, value in options.items()
        }
    # Threads are watched best without the address layout randomised.
    fixed = ["setarch", "-R"] if kind == "thread" else []
    # The shadow memory of the others leaves no room for tests that limit the address space.
    without = "not plain_build" if kind == "undefined" else "not plain_build and not address_space"
    # A finding ends its process: with workers that is one test that failed, and the others go on.
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *workers(), "-m", without]
    code = show([*fixed, environment.python, *pytest, *(rest or ["tests", "--pyargs", "extensor"])], env)
    return int(told(findings)) or code


def told(findings: Path) -> bool:
    """Show what sanitizers found, and say whether there was anything. They write to files: what is on the standard error
    pytest holds back until a test ends, which here never does, and a test that starts a program may not look at it."""
    found = False
    for file in sorted(findings.iterdir()):
        text = file.read_text(errors="replace")
        if re.search(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:", text):
            print(f"\n{file}", text.rstrip(), sep="\n")
            found = True
    return found


def accuracy(rest: list[str]) -> int:
    environment = Environment(".venv")
    build = ROOT / "build" / "every_float32"
    source = ROOT / "benchmarks" / "every_float32"
    run("configuring", ["cmake", "-S", source, "-B", build, "-G", "Ninja"], environment.path())
    run("building the kernels of each instruction set", ["cmake", "--build", build], environment.path())
    out = ["--out", str(ROOT / "benchmarks" / "results" / "every_float32.md")] if not rest else []
    return show([environment.python, source / "table.py", build / "every_float32", *out, *rest])


def campaign(rest: list[str]) -> int:
    environment = developer("test")
    return show([environment.python, ROOT / "tests" / "campaigns" / "run.py", *rest])


def analyse(rest: list[str]) -> int:
    environment = Environment(".venv")
    return show([environment.python, ROOT / "csrc" / "tools" / "analyse.py", *rest], environment.path())


def docs(rest: list[str]) -> int:
    environment = developer("docs")
    mkdocs: list[str | Path] = [environment.python, "-m", "mkdocs"]
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # a notice about the future of MkDocs
    if rest:
        return show([*mkdocs, *rest], quiet)
    run("building site/index.html", [*mkdocs, "build", "--strict"], quiet)
    return 0


def aarch64(rest: list[str]) -> int:
    environment = developer()
    return show([environment.python, ROOT / "csrc" / "tools" / "aarch64.py", *rest], environment.path())


def wheel(rest: list[str]) -> int:
    """The wheel goes through auditwheel, whose tag in its name says how old a system may be; pip goes by that tag."""
    environment = Environment(".venv", "dev")
    made, dist = ROOT / "build" / "wheel", ROOT / "dist"
    for folder in (made, dist):
        folder.mkdir(parents=True, exist_ok=True)
    for old in made.iterdir():
        old.unlink()
    run(
        "building sdist and wheel",
        [environment.python, "-m", "build", "--no-isolation", "--outdir", made, *rest],
        {"EXTENSOR_ISAS": os.environ.get("EXTENSOR_ISAS", "all")},
    )
    auditwheel: list[str | Path] = [environment.python, "-m", "auditwheel", "repair", "--wheel-dir", dist]
    for file in sorted(made.iterdir()):
        if file.suffix == ".whl" and not file.stem.endswith("-any"):
            run("finding the systems it runs on", [*auditwheel, file], environment.path())  # of patchelf
        else:
            file.replace(dist / file.name)
    for file in sorted(dist.iterdir()):
        print(f"  dist/{file.name}  {file.stat().st_size / 1e6:.2f} MB")
    return 0


def main() -> int:
    commands = {
        command.__name__: command
        for command in (demo, test, pure, sanitize, aarch64, accuracy, campaign, analyse, docs, wheel)
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=commands)
    chosen, rest = parser.parse_known_args()
    return commands[chosen.command](rest)


if __name__ == "__main__":
    sys.exit(main())
