"""Several processes: the same bits as one, whatever their number and the hosts they are on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mpi_jobs import answer, job, needs_mpi

pytestmark = needs_mpi
RUN = "shared_run.py"


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    return {}


def of_one(alone: dict[str, str], *args: str) -> str:
    key = " ".join(args)
    if key not in alone:
        alone[key] = answer(1, RUN, *args)
    return alone[key]


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_dropout_statistics_and_metrics_do_not_depend_on_the_ranks(alone: dict[str, str], ranks: int) -> None:
    assert answer(ranks, RUN, "mlp", "-") == of_one(alone, "mlp", "-")


@pytest.mark.parametrize("kind", ["lenet", "resnet", "gpt"])
def test_networks_do_not_depend_on_the_ranks(alone: dict[str, str], kind: str) -> None:
    args = (kind, "-", "steps=3")
    assert answer(4, RUN, *args) == of_one(alone, *args)


@pytest.mark.parametrize(
    ("hosts", "args"),
    [((2, 1), ()), ((1, 3), ("compress=true",)), ((1, 1, 1), ("shards=5", "accumulate=1"))],
)
def test_hosts_exchange_by_messages(
    alone: dict[str, str], hosts: tuple[int, ...], args: tuple[str, ...]
) -> None:
    assert answer(sum(hosts), RUN, "mlp", "-", *args, hosts=hosts) == of_one(alone, "mlp", "-", *args)


@pytest.mark.parametrize(
    ("kind", "hosts", "args"),
    [
        ("lenet", (1, 1), ()),
        ("resnet", (1, 1), ("clip_norm=null",)),
        ("gpt", (2, 1), ()),
        ("gpt", (1, 1, 1), ("compress=true", "clip_norm=null")),
        ("mlp", (1, 2), ("shards=3", 'optimizer="LAMB"')),
        ("mlp", (1, 1), ("compile=false",)),
    ],
)
def test_vectors_travel_in_pieces(
    alone: dict[str, str], kind: str, hosts: tuple[int, ...], args: tuple[str, ...]
) -> None:
    """While the backward pass completes the rest; a divided optimiser has a slice of each piece then."""
    args = (kind, "-", "steps=4", *args)
    assert answer(sum(hosts), RUN, *args, "piece_bytes=2048", hosts=hosts) == of_one(alone, *args)


def test_pieces_leave_before_the_backward_pass_ends() -> None:
    told = json.loads(answer(2, "early_pieces.py", hosts=(1, 1)))
    for pieces, steps in told:  # of each rank
        assert pieces > 2
        # two batches make a step, whose last pass is recorded once and repeated from then on: every piece but the last leaves early
        assert steps == [0, pieces - 1, pieces - 1, pieces - 1]


@pytest.mark.parametrize(
    "args",
    [
        ('optimizer="LAMB"',),
        ("clip_norm=null", "clip_value=0.01", 'optimizer="SGD"'),
        ("compress=true",),
        ("shards=3",),
    ],
)
def test_other_settings(alone: dict[str, str], args: tuple[str, ...]) -> None:
    assert answer(2, RUN, "mlp", "-", *args) == of_one(alone, "mlp", "-", *args)


def said_by_rank_0(what: str, folder: Path) -> str:
    """The error of a job that fails; its launcher may lose what is said on stderr."""
    assert job(2, "failing_ranks.py", what, str(folder / "error")).returncode != 0
    return (folder / "error").read_text()


def test_an_error_of_one_rank_ends_all_with_its_message(tmp_path: Path) -> None:
    said = said_by_rank_0("error", tmp_path)
    assert said.startswith("LostRankError: [World] rank 1 (host host0, process")
    assert "failed: ValueError: rank 1 broke" in said


@pytest.mark.parametrize("what", ["weights", "data", "shards", "seed", "optimizer"])
def test_ranks_that_differ_are_named_at_the_start(what: str, tmp_path: Path) -> None:
    words = {
        "weights": "start of the weights", "data": "training data", "shards": "number of shards",
        "seed": "position or seed of the data", "optimizer": "optimiser or loss",
    }  # fmt: skip
    said = said_by_rank_0(what, tmp_path)
    assert said.startswith(f"MismatchError: [fit] rank 1 has another {words[what]} than rank 0")


def test_the_optimiser_remembers_its_slice_alone() -> None:
    told = json.loads(answer(3, "divided_state.py"))
    parameters = told[0][3]
    inside = [row[0] for row in told]
    assert sum(inside) == 2 * parameters  # two numbers of Adam for each weight, kept once
    assert max(inside) - min(inside) <= 2 * 3 * 16  # slices begin at whole cache lines
    assert [row[1] for row in told] == [0, 0, 0]
    assert [row[2] for row in told] == [2 * parameters] * 3  # whole again after the run
