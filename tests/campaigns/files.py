"""Damaged and hostile files of every kind that is read: each is read, or refused with an error that names it."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_files
from campaign import Campaign

import extensor as et
from extensor import convert, data, train
from extensor.train.saved_run import read_config

LIMIT = 200_000_000  # bytes that reading a small file may take


def kinds(folder: Path) -> dict[str, tuple[bytes, Callable[[Path], Any]]]:
    """For each kind of file a good one and how it is read."""
    rng = np.random.default_rng(0)
    made: dict[str, tuple[bytes, Callable[[Path], Any]]] = {}

    def keep(name: str, read: Callable[[Path], Any]) -> Path:
        path = folder / name
        made[name] = (path.read_bytes(), read)
        return path

    state = {"w": et.tensor(rng.normal(size=(4, 5))), "n": {"step": 3, "names": ["a", "b"]}}
    train.save_checkpoint(folder / "c.safetensors", state)
    keep("c.safetensors", train.load_checkpoint)
    train.save_weights(folder / "w.safetensors", {"w": et.tensor(rng.normal(size=(4, 5)))}, {"note": "x"})
    keep("w.safetensors", train.load_weights)
    made["other.safetensors"] = (made["w.safetensors"][0], convert.load_weights)
    np.save(folder / "a.npy", rng.normal(size=(3, 4)))
    keep("a.npy", data.read_npy)
    np.savez(folder / "a.npz", x=rng.normal(size=(5, 2)), y=np.arange(5))
    keep("a.npz", data.read_npz)
    made["arrays.npz"] = (made["a.npz"][0], data.read_arrays)
    (folder / "t.csv").write_text("a,b,c\n" + "\n".join(f"{i},{i * 0.5},x{i % 3}" for i in range(30)))
    keep("t.csv", data.read_csv)
    idx = bytes([0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + bytes(12)
    (folder / "i.idx").write_bytes(idx)
    keep("i.idx", data.read_idx)
    (folder / "b.bin").write_bytes(bytes(3073 * 2))
    keep("b.bin", data.read_cifar)
    records = [{"kind": "begin", "time": 1.0}, {"kind": "step", "step": 1, "loss": 0.5}]
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    keep("log.jsonl", train.read_log)
    (folder / "config.json").write_text(
        json.dumps({"recipe": "mlp", "seed": 0, "classes": ["a", "b"], "model": {"sizes": [2, 2]}})
    )
    made["config.json"] = ((folder / "config.json").read_bytes(), lambda path: read_config(path.parent))
    rows = [{"a": i, "b": f"x{i % 3}", "c": None} for i in range(20)]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keep("t.jsonl", data.read_csv)
    pytorch_files.write_state_dict(
        folder / "w.pt", {"w": rng.normal(size=(3, 4)).astype(np.float32), "n": np.arange(3)}
    )
    keep("w.pt", convert.load_weights)
    try:
        import onnx  # noqa: F401, an extra
    except ImportError:
        return made
    model = et.nn.Sequential(et.nn.Linear(4, 3, rng=0), et.nn.ReLU(), et.nn.LayerNorm(3))
    et.onnx.export(model, folder / "m.onnx", et.ones((2, 4)))
    keep("m.onnx", et.onnx.load)
    return made


def run(campaign: Campaign) -> None:
    from damage import DAMAGES, memory_below

    rng = random.Random(campaign.seed)
    cases = campaign.corpus()
    with tempfile.TemporaryDirectory() as name:
        good = kinds(Path(name))
        (Path(name) / "bad").mkdir()
        while campaign.goes_on():
            kind, seed = cases.pop() if cases else [rng.choice(sorted(good)), rng.getrandbits(31)]
            content, read = good[kind]
            chance = random.Random(seed)
            bad = content
            for _ in range(chance.choice([1, 1, 1, 2, 3])):
                bad = chance.choice(DAMAGES)(bad, chance) if bad else bad
            path = (
                Path(name) / "bad" / ("config.json" if kind == "config.json" else f"bad{Path(kind).suffix}")
            )
            path.write_bytes(bad)
            campaign.did("files")
            problem = _problem(read, path, memory_below)
            if problem:
                campaign.found(f"{kind}, damaged by seed {seed}: {problem}", [kind, seed])


def _problem(read: Callable[[Path], Any], path: Path, memory_below: Any) -> str | None:
    try:
        with memory_below(LIMIT):
            read(path)
    except (ValueError, NotImplementedError) as error:  # damaged, or with operators that nobody knows
        text, kind = str(error), type(error).__name__
        if not text.startswith("[") and path.name != "config.json":
            return f"{kind} without a function: {text[:200]}"
        if path.name not in text:
            return f"{kind} without the file: {text[:200]}"
    except AssertionError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return "something was unpickled" if "EXTENSOR_UNPICKLED" in os.environ else None
