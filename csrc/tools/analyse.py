"""What compilers and an analyser say of the native core before it runs: GCC and Clang with -Wconversion, and clang-tidy.

    python3 dev.py analyse [PART OF A PATH...]      every source, or some: dev.py analyse csrc/bindings

Each source is read as the build compiles it, once for each instruction set (EXTENSOR_ISAS=all for those that this processor
does not have), and nothing is linked. A warning is an error. The checks of clang-tidy stand in `.clang-tidy`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "analyse"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
# Clang's names of these differ, and it must not stumble over GCC's.
CLANG = ["-Wno-unknown-warning-option", "-Wno-sign-conversion", "-Wno-pass-failed"]
GCC_ONLY = ("-fschedule-insns", "-fsched-pressure", "-fno-unswitch-loops")


def configured() -> list[dict[str, str]]:
    """The commands of a build, and what they need to have been generated."""
    configure = [
        "cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
        f"-DEXTENSOR_ISAS={os.environ.get('EXTENSOR_ISAS', 'native')}", f"-DPython_EXECUTABLE={sys.executable}",
    ]  # fmt: skip
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    digest = ["cmake", f"-DLIST={BUILD / 'csrc' / 'kernel_files.txt'}", f"-DROOT={ROOT}"]
    output = f"-DOUTPUT={BUILD / 'csrc' / 'generated' / 'source_digest.hpp'}"
    subprocess.run([*digest, output, "-P", str(ROOT / "csrc" / "tools" / "source_digest.cmake")], check=True)
    commands: list[dict[str, str]] = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    return commands


def options(command: dict[str, str]) -> list[str]:
    """The options of a compilation, without the compiler, the output and the source."""
    words = shlex.split(command["command"])
    first = next(i for i, word in enumerate(words) if word.startswith("-"))
    kept, skip = [], False
    for word in words[first:]:
        if not skip and word not in ("-o", "-c") and word != command["file"]:
            kept.append(word)
        skip = word == "-o"
    return kept


def checks(command: dict[str, str]) -> list[tuple[str, list[str]]]:
    """(title, what to run) for one compilation."""
    source, given = command["file"], options(command)
    plain = [word for word in given if word not in GCC_ONLY]
    found = []
    if shutil.which("g++"):
        found.append(("gcc", ["g++", *given, *WARNINGS, "-fsyntax-only", source]))
    if shutil.which("clang-tidy"):  # its parser is that of Clang, whose warnings are among its findings
        tidy = ["clang-tidy", "--quiet", source, "--", *plain, *WARNINGS, *CLANG]
        found.append(("clang-tidy", tidy))
    return found


def run(job: tuple[dict[str, str], str, list[str]]) -> str:
    command, title, words = job
    done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    said = "\n".join(
        line for line in (done.stdout + done.stderr).splitlines() if "warnings generated" not in line
    )
    return f"{title}: {Path(command['file']).relative_to(ROOT)}\n{said}\n"


def main() -> int:
    for tool in ("g++", "clang-tidy"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed: its part is left out", file=sys.stderr)
    chosen = [c for c in configured() if not sys.argv[1:] or any(part in c["file"] for part in sys.argv[1:])]
    jobs = [(command, title, words) for command in chosen for title, words in checks(command)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        complaints = 0
        for done in as_completed(
            [pool.submit(run, job) for job in jobs]
        ):  # some sources take an hour of a busy machine
            said = done.result()
            complaints += bool(said)
            print(said, end="", flush=True)
    print(f"{len(chosen)} compilations, {len(jobs)} readings: {complaints} with something to say")
    return int(complaints > 0 or not jobs)


if __name__ == "__main__":
    sys.exit(main())
