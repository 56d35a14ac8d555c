"""2,000 JPEG files of mixed sizes: trained and one predicted by the command line, with the peak memory of each process.

    pip install Pillow
    python benchmarks/pictures.py --out benchmarks/results

The pictures are discs, squares, triangles and crosses of any colour, size and place, before darker noise, 120 to 1,600 pixels wide. They are made
here: a figure for memory and time, not for how well photographs are told apart.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("cross", "disc", "square", "triangle")


def draw(shape: str, rng: np.random.Generator) -> Image.Image:
    """One picture."""
    width, height = (int(n) for n in np.exp(rng.uniform(np.log(120), np.log(1600), 2)))
    low = rng.integers(0, 128, (max(height // 8, 1), max(width // 8, 1), 3), np.uint8)
    picture = Image.fromarray(low).resize((width, height))
    size = rng.uniform(0.35, 0.48) * min(width, height)
    x, y = (rng.uniform(size, side - size) for side in (width, height))
    pen, colour = ImageDraw.Draw(picture), tuple(rng.integers(128, 256, 3).tolist())
    box = (x - size, y - size, x + size, y + size)
    if shape == "disc":
        pen.ellipse(box, fill=colour)
    elif shape == "square":
        pen.rectangle(box, fill=colour)
    elif shape == "triangle":
        pen.polygon([(x, y - size), (x - size, y + size), (x + size, y + size)], fill=colour)
    else:
        arm = size / 3
        pen.rectangle((x - arm, y - size, x + arm, y + size), fill=colour)
        pen.rectangle((x - size, y - arm, x + size, y + arm), fill=colour)
    return picture


def run(*arguments: str) -> tuple[str, float, float]:
    """What a command printed, its seconds, and the most memory any child has had, in MB."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "extensor.cli", *arguments], check=True, capture_output=True, text=True
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return done.stdout, time.perf_counter() - began, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path, help="a folder for pictures.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place, rng = Path(folder), np.random.default_rng(0)
        for i in range(options.files):
            shape = SHAPES[i % len(SHAPES)]
            (place / "data" / shape).mkdir(parents=True, exist_ok=True)
            draw(shape, rng).save(place / "data" / shape / f"{i:05d}.jpg", quality=85)
        sizes = sum(file.stat().st_size for file in (place / "data").rglob("*.jpg")) / 1e6
        out = str(place / "run")
        said, seconds, peak = run(
            "train", "lenet", "--data", str(place / "data"), "--epochs", str(options.epochs), "--out", out
        )
        one = place / "data" / "disc" / "00001.jpg"
        answer, one_second, _ = run("predict", out, "--data", str(one))
    closing = next(line for line in said.splitlines() if "test accuracy" in line).split(";")[0]
    text = "\n".join(
        [
            "# A folder of pictures", "",
            f"Made by `python benchmarks/pictures.py`: {options.files:,} JPEG files of 120 to 1,600 pixels ({sizes:.0f} MB), drawn by the",
            f"script; `extensor train lenet --data FOLDER --epochs {options.epochs}`, then `extensor predict` of one file.", "",
            "| what | |", "| --- | --- |",
            f"| peak memory | {peak:.0f} MB |",
            f"| training | {seconds:.0f} s, {closing} |",
            f"| one picture | {one_second:.1f} s: `{answer.splitlines()[1]}` |", "",
        ]
    )  # fmt: skip
    print(text)
    if options.out is not None:
        (options.out / "pictures.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
