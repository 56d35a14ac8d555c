"""The same network, batches and epochs in ExTensor's and scikit-learn's MLPClassifier, on the embedded digits.

    python benchmarks/sklearn_mlp.py [--rounds 5] [--epochs 20] [--hidden 100] [--batch 200] [--threads 1]

The fits take turns; the table shows the shortest time of each and the mean accuracy on samples that none of them saw.
scikit-learn computes in the dtype of the samples, as ExTensor does, so both are given the same.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn import neural_network
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import extensor as et
from extensor.sklearn import MLPClassifier

KINDS = {"extensor": MLPClassifier, "scikit-learn": neural_network.MLPClassifier}


def arrays(part: et.data.Dataset, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = part.batch(np.arange(len(part)))
    assert y is not None
    return x.numpy().reshape(len(x), -1).astype(dtype), y.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("rounds", 5), ("epochs", 20), ("hidden", 100), ("batch", 200), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    et.set_num_threads(options.threads)
    threadpool_limits(options.threads)  # of the BLAS that scikit-learn multiplies with
    warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the same on purpose
    parts = et.data.digits().split(0.8, rng=0)
    print(
        f"{options.epochs} epochs, {options.hidden} hidden, batches of {options.batch}, {options.threads} threads"
    )
    print(f"{'dtype':8} {'library':13} {'seconds':>8} {'accuracy':>9}")
    for dtype in (np.float32, np.float64):
        (X, y), (X_test, y_test) = (arrays(part, dtype) for part in parts)
        times: dict[str, list[float]] = {name: [] for name in KINDS}
        scores: dict[str, list[float]] = {name: [] for name in KINDS}
        for seed in range(options.rounds):
            for name, kind in KINDS.items():
                net = kind(
                    options.hidden, batch_size=options.batch, max_iter=options.epochs, tol=0,
                    n_iter_no_change=options.epochs, random_state=seed,
                )  # fmt: skip
                start = time.perf_counter()
                net.fit(X, y)
                times[name].append(time.perf_counter() - start)
                scores[name].append(net.score(X_test, y_test))
                assert net.n_iter_ == options.epochs
        for name in KINDS:
            print(f"{dtype.__name__:8} {name:13} {min(times[name]):8.3f} {np.mean(scores[name]):9.2%}")
        print(f"{'':8} ratio         {min(times['extensor']) / min(times['scikit-learn']):8.2f}")


if __name__ == "__main__":
    main()
