"""How a table of one's own is scaled, split and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from extensor.train.recipes import RECIPES, Order
from extensor.train.saved_run import held_out_samples, new_samples
from extensor.train.splits import split_rows
from extensor.train.table_samples import read_again, read_table, unscaled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = "".join(f"{1000 + 10 * i},{'ab'[i % 2]},5,{0.5 + i}\n" for i in range(40))
    (tmp_path / "table.csv").write_text("size,kind,same,price\n" + rows)
    return tmp_path / "table.csv"


def test_numbers_are_scaled_by_the_rows_to_train_on_and_words_stay(file: Path) -> None:
    found = read_table(file)
    assert found.table.columns == ("size", "kind=a", "kind=b", "same")
    learned = found.samples.inputs[found.rows.train]
    assert np.allclose(learned[:, [0, 3]].mean(0), 0, atol=1e-6)
    assert np.allclose(learned[:, [0, 3]].std(0), [1, 0], atol=1e-6)
    assert abs(found.samples.inputs[:, 0].mean()) > 1e-3  # all rows together are not what was scaled by
    assert found.samples.targets is not None
    goals = found.samples.targets[found.rows.train]
    assert np.allclose([goals.mean(), goals.std()], [0, 1], atol=1e-6)
    assert np.allclose(unscaled(found.samples.targets, found.description), np.arange(40) + 0.5)
    assert np.array_equal(read_again(file, found.description)[1].inputs, found.samples.inputs)


def test_words_and_means_come_from_the_rows_to_train_on(tmp_path: Path) -> None:
    test = split_rows(40).test
    rows = [("rare", "", 9.5) if i in test else ("ab"[i % 2], 1.0, 0.5 + i) for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["w,n,y", *(f"{w},{n},{y}" for w, n, y in rows)]))
    found = read_table(tmp_path / "t.csv")
    assert found.table.columns == ("w=a", "w=b", "n")
    assert found.table.unseen == {"w": ["rare"]}
    assert (found.samples.inputs[test] == [0, 0, 0]).all()


def test_numbers_that_float32_cannot_tell_apart(tmp_path: Path) -> None:
    """Unix timestamps: the scaling sees all their digits."""
    rows = [f"{1_700_000_000 + i},{i / 7}" for i in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["at,y", *rows]))
    assert len(np.unique(read_table(tmp_path / "t.csv").samples.inputs)) == 100


def test_a_short_table_has_small_batches(file: Path) -> None:
    setup = RECIPES["mlp"].set_up(Order(file))
    assert setup.config["batch_size"] == setup.train.batch_size == 8


def test_the_runs_own_test_samples_or_all_of_another_file(file: Path) -> None:
    setup = RECIPES["mlp"].set_up(Order(file, target="kind", ignore=("same",)))
    config = {"recipe": "mlp", **setup.config}
    assert setup.test is not None
    assert np.array_equal(held_out_samples(config).inputs, setup.test.inputs)
    assert len(held_out_samples(config)) == 8
    assert len(new_samples(config, file)[0]) == 40
    file.write_text(file.read_text() + "1,a,5,1\n")
    with pytest.raises(ValueError, match="is not what the run learned from"):
        held_out_samples(config)


@pytest.mark.parametrize("description", [None, {}, {"encoding": {}}])
def test_a_description_that_is_none(file: Path, description: object) -> None:
    with pytest.raises(ValueError, match=r"which no table is|encoding must be"):
        read_again(file, description)
