"""One process, and what is said where MPI is missing."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.distributed import MismatchError, World


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "PMI_SIZE",
        "OMPI_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_SIZE",
        "PMIX_SIZE",
        "SLURM_STEP_NUM_TASKS",
    ):
        monkeypatch.delenv(name, raising=False)


def test_one_process_needs_no_mpi() -> None:
    with World() as world:
        assert (world.rank, world.size, world.host_rank, world.host_size) == (0, 1, 0, 1)
        assert world.broadcast({"a": et.ones(2)})["a"].tolist() == [1, 1]
        assert world.gather(3) == [3]
        world.barrier()
    assert "mpi4py.MPI" not in sys.modules
    with pytest.raises(RuntimeError, match=r"\[gather\] this World is closed"):
        world.gather(1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_reduce_gradients_keeps_structure_dtype_and_order(dtype: str) -> None:
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype) if dtype != "bfloat16" else et.bfloat16
    values = [rng.normal(size=(2, 3)).astype(kind) for _ in range(3)]
    trees = [{"w": [et.asarray(v)], "none": None, "scalar": (et.tensor(1.0),)} for v in values]
    found = World().reduce_gradients(trees, [0, 1, 2])
    wide = [v.astype(np.float64 if dtype == "float64" else np.float32) for v in values]
    np.testing.assert_array_equal(found["w"][0].numpy(), ((wide[0] + wide[1]) + wide[2]).astype(kind))
    assert found["w"][0].dtype == kind
    assert found["none"] is None
    assert found["scalar"][0].item() == 3
    assert found["scalar"][0].shape == ()
    assert World().reduce_gradients(trees[1], 0)["w"][0].numpy().tobytes() == values[1].tobytes()


def test_a_gradient_that_some_shards_have_is_summed_over_those() -> None:
    found = World().reduce_gradients([[None], [et.ones(2)], [None]], range(3))
    assert found[0].tolist() == [1, 1]


def test_compression_rounds_every_sum_to_bfloat16() -> None:
    parts = [
        et.tensor([1.0 + 2**-7, 3.14159, float("nan"), float("inf")]),
        et.tensor([2.0**-8, 1.0, 1.0, 1.0]),
    ]
    found = World(compress=True).reduce_gradients([[p] for p in parts], [0, 1])[0].numpy()
    halves = [p.numpy().astype(et.bfloat16).astype(np.float32) for p in parts]
    np.testing.assert_array_equal(found, (halves[0] + halves[1]).astype(et.bfloat16).astype(np.float32))


@pytest.mark.parametrize(
    ("tree", "shard", "error", "text"),
    [
        ([[et.ones(2)], [et.ones(3)]], [0, 1], MismatchError, r"gradient 0 of shard 1 on rank 0 is float32 \(3,\)"),
        ([[et.ones(2)], [et.ones(2), None]], [0, 1], MismatchError, "has 2 gradients, others have 1"),
        ([[et.ones(2)]], [1], MismatchError, "each once"),
        ([[et.ones(2)], [et.ones(2)]], [0, 0], MismatchError, "each once"),
        ([[et.ones(2)]], [0, 1], ValueError, "1 trees come with 2 shard numbers"),
        (["no"], [0], TypeError, "made of tensors"),
        ([et.ones(2)], 0.5, TypeError, "shard"),
    ],
)  # fmt: skip
def test_reduce_gradients_names_what_does_not_fit(tree: Any, shard: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        World().reduce_gradients(tree, shard)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_must_be_a_time(timeout: float) -> None:
    with pytest.raises(ValueError, match=r"\[World\] timeout"):
        World(timeout=timeout)


def test_a_root_must_be_a_rank() -> None:
    with pytest.raises(ValueError, match=r"\[broadcast\] root must be from 0 to 0, got 1"):
        World().broadcast(1, root=1)
    with pytest.raises(TypeError, match="comm must be a communicator of mpi4py"):
        World(comm=3)


@pytest.mark.parametrize("present", [False, True])
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, present: bool) -> None:
    def find(name: str) -> Any:
        if name == "mpi4py" and present:
            return type("package", (), {"rc": type("rc", (), {})()})
        raise ImportError(f"no {name}")

    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    monkeypatch.setattr(importlib, "import_module", find)
    with pytest.raises(ImportError, match="pip install mpi4py mpich") as caught:
        World()
    assert ("finds no MPI" if present else "mpi4py is not installed") in str(caught.value)
