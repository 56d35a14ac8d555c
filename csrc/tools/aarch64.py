"""Build the core for 64-bit ARM, run it under qemu-user, and compare its bits with those of this processor.

    python3 dev.py aarch64 [--every N] [--steps N] [family ...]

For Debian and its kin: needs g++-aarch64-linux-gnu and qemu-user. Python for ARM comes from the distribution's packages (the
version that runs this), NumPy and the others as wheels from the package index. Nothing is installed: all of it stays in
build/aarch64. Emulated, the checks take some forty times as long as here; ``--every 10`` takes one in ten.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "aarch64"
SYSTEM, SITE, OBJECTS = WORK / "system", WORK / "site", WORK / "objects"
PYTHON = f"python3.{sys.version_info.minor}"
TRIPLE = "aarch64-linux-gnu"
PACKAGES = (
    f"{PYTHON}-minimal", f"lib{PYTHON}-minimal", f"lib{PYTHON}-stdlib", f"lib{PYTHON}-dev", "libc6", "zlib1g", "libexpat1", "libssl3",
    "libffi8", "libbz2-1.0", "liblzma5", "libstdc++6", "libgcc-s1", "libuuid1", "libcrypt1",
)  # fmt: skip
WHEELS = ("numpy", "ml_dtypes", "safetensors")
PLATFORMS = [f"manylinux{tag}_aarch64" for tag in ("2014", "_2_17", "_2_27", "_2_28")]
SUPPORT = ROOT / "tests" / "support"


def fetch_system() -> None:
    """An ARM system with Python, unpacked beside this one."""
    if SYSTEM.exists():
        return
    packages = WORK / "packages"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (packages / folder).mkdir(parents=True, exist_ok=True)
    (packages / "status").touch()
    settings = packages / "apt.conf"
    settings.write_text(
        'APT::Architecture "arm64"; APT::Architectures { "arm64"; };\n'
        f'Dir::State "{packages}/state"; Dir::State::status "{packages}/status"; Dir::Cache "{packages}/cache";\n'
    )
    environment = os.environ | {"APT_CONFIG": str(settings)}
    subprocess.run(["apt-get", "update", "-q"], env=environment, check=True)
    subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=packages, env=environment, check=True)
    for package in sorted(packages.glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, SYSTEM], check=True)


def fetch_wheels() -> None:
    """The packages that ExTensor needs, of the versions that are installed here."""
    if (SITE / "numpy").exists():
        return
    from importlib.metadata import version

    wanted = [f"{name}=={version(name)}" for name in WHEELS]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    options = [
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        f"3.{sys.version_info.minor}",
        *platforms,
    ]
    target = WORK / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "-d", target, *options, *wanted], check=True
    )
    for wheel in target.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(SITE)


def build() -> None:
    """The native module, beside a copy of the package."""
    include = SYSTEM / "usr" / "include"
    definitions = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_CXX_COMPILER": f"{TRIPLE}-g++",
        "CMAKE_CXX_FLAGS": f"-idirafter {include}",
        "CMAKE_BUILD_TYPE": "Release",
        "EXTENSOR_ISAS": "native",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": include / PYTHON,
        "Python_NumPy_INCLUDE_DIR": SITE / "numpy" / "_core" / "include",
    }
    settings = [f"-D{name}={value}" for name, value in definitions.items()]
    subprocess.run(["cmake", "-S", ROOT, "-B", OBJECTS, "-G", "Ninja", *settings], check=True)
    subprocess.run(["cmake", "--build", OBJECTS], check=True)
    shutil.rmtree(SITE / "extensor", ignore_errors=True)
    shutil.copytree(
        ROOT / "src" / "extensor", SITE / "extensor", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    (module,) = OBJECTS.glob("_native*.so")
    shutil.copy(module, SITE / "extensor" / f"_native.cpython-3{sys.version_info.minor}-{TRIPLE}.so")


def run(emulated: bool, script: str, *arguments: str) -> str:
    """What a script of tests/support prints, here or under qemu. Units for bfloat16 are left alone."""
    here: list[str | Path] = [sys.executable]
    there: list[str | Path] = ["qemu-aarch64", "-L", SYSTEM, SYSTEM / "usr" / "bin" / PYTHON]
    environment = os.environ | {"EXTENSOR_BF16_UNIT": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if emulated:
        environment |= {"PYTHONPATH": str(SITE)}
    command = [*(there if emulated else here), SUPPORT / script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def compare(families: list[str], every: int, steps: int) -> bool:
    """Whether all hashes are the same."""
    alike = True
    for family in families or ["elementwise", "reductions", "layers", "images", "optimisers", "registry"]:
        here, there = (
            json.loads(run(e, "isa_bits.py", "--every", str(every), family)) for e in (False, True)
        )
        differing = [name for name in here if there.get(name) != here[name]]
        numpys = [
            name for name in differing if "by NumPy" in here[name] and "by NumPy" in there.get(name, "")
        ]
        ours = [name for name in differing if name not in numpys]
        alike = alike and not ours and here.keys() == there.keys()
        counts = f"{len(here)} checks, {len(ours)} differ, and {len(numpys)} that NumPy computes"
        print(f"  {family}: {counts}", *ours[:20], sep="\n    ", flush=True)
    if steps > 0:
        hashes = [run(e, "isa_training.py", "lenet", str(steps)).strip() for e in (False, True)]
        alike = alike and hashes[0] == hashes[1]
        print(f"  {steps} steps of LeNet-5: {' and '.join(hashes)}")
    return alike


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Compare the bits of 64-bit ARM, emulated, with those of this processor."
    )
    parser.add_argument("--every", type=int, default=1, help="one check in so many")
    parser.add_argument("--steps", type=int, default=5, help="steps of LeNet-5")
    parser.add_argument("families", nargs="*")
    given = parser.parse_args()
    for tool in (f"{TRIPLE}-g++", "qemu-aarch64", "apt-get", "dpkg"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is missing; on Debian: apt install g++-aarch64-linux-gnu qemu-user")
    WORK.mkdir(parents=True, exist_ok=True)
    fetch_system()
    fetch_wheels()
    build()
    sys.exit(not compare(given.families, given.every, given.steps))
