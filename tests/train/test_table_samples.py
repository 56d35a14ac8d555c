"""How a table of one's own is scaled, split and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from extensor.train.recipes import RECIPES
from extensor.train.saved_run import samples_of
from extensor.train.table_samples import read_again, read_table, unscaled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = "".join(f"{1000 + 10 * i},{'ab'[i % 2]},5,{0.5 + i}\n" for i in range(40))
    (tmp_path / "table.csv").write_text("size,kind,same,price\n" + rows)
    return tmp_path / "table.csv"


def test_numbers_are_scaled_and_words_stay(file: Path) -> None:
    table, samples, description = read_table(file)
    assert table.columns == ("size", "kind=a", "kind=b", "same")
    assert np.allclose(samples.inputs.mean(0), [0, 0.5, 0.5, 0], atol=1e-6)
    assert np.allclose(samples.inputs.std(0), [1, 0.5, 0.5, 0], atol=1e-6)
    assert samples.targets is not None
    assert np.allclose([samples.targets.mean(), samples.targets.std()], [0, 1], atol=1e-6)
    assert np.allclose(unscaled(samples.targets, description), np.arange(40) + 0.5)
    assert np.array_equal(read_again(file, description)[1].inputs, samples.inputs)


def test_a_short_table_has_small_batches(file: Path) -> None:
    setup = RECIPES["mlp"].build(file, 0, None)
    assert setup.config["batch_size"] == setup.train.batch_size == 8


def test_the_runs_own_test_samples_or_all_of_another_file(file: Path) -> None:
    setup = RECIPES["mlp"].build(file, 0, None, target="kind", ignore=["same"])
    config = {"recipe": "mlp", **setup.config}
    assert np.array_equal(samples_of(config).inputs, setup.validation.dataset.inputs)
    assert len(samples_of(config)) == 8
    assert len(samples_of(config, file)) == 40


@pytest.mark.parametrize("description", [None, {}, {"encoding": {}}])
def test_a_description_that_is_none(file: Path, description: object) -> None:
    with pytest.raises(ValueError, match=r"which no table is|encoding must be"):
        read_again(file, description)
