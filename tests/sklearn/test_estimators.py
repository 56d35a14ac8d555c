"""The estimators as users of scikit-learn use them: its own checks, pipelines, searches, pickles, labels of any kind."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.sparse import csr_array
from sklearn import neural_network as theirs
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import extensor as et
from extensor.sklearn import MLPClassifier, MLPRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def beyond_float32(estimator: Any) -> dict[str, str]:
    if estimator.dtype == "float64":
        return {}
    return {"check_sample_weight_equivalence_on_dense_data": "compares sums of other orders to 1e-7"}


@parametrize_with_checks(
    [make(dtype=dtype) for make in (MLPClassifier, MLPRegressor) for dtype in ("float32", "float64")],
    expected_failed_checks=beyond_float32,
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def digits(count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return (X[:count] / 16).astype(np.float32), y[:count]


def same_weights(a: Any, b: Any) -> bool:
    return all(np.array_equal(v, w) for v, w in zip(a.coefs_ + a.intercepts_, b.coefs_ + b.intercepts_))


# With the rest of scikit-learn


def test_grid_search_over_a_pipeline_on_digits() -> None:
    X, y = digits()
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("net", MLPClassifier(batch_size=32, random_state=0, max_iter=10))]
    )
    grid = {"net__hidden_layer_sizes": [(4,), (64,)], "net__learning_rate_init": [1e-6, 5e-3]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"net__hidden_layer_sizes": (64,), "net__learning_rate_init": 5e-3}
    assert search.best_score_ > 0.85
    assert search.cv_results_["mean_test_score"].min() < 0.4


def test_cross_validation_with_weights_that_are_passed_on() -> None:
    X, y = digits(300)
    weights = {
        "params" if "params" in inspect.signature(cross_val_score).parameters else "fit_params": {
            "sample_weight": np.ones(300)
        }
    }
    plain = cross_val_score(MLPClassifier(random_state=0, max_iter=5), X, y, cv=3)
    assert np.array_equal(
        plain, cross_val_score(MLPClassifier(random_state=0, max_iter=5), X, y, cv=3, **weights)
    )


@pytest.mark.parametrize(
    "labels", [["no", "yes", "why"], [False, True, False], [-7, 100, 3], np.array(["a", "b", "a"], object)]
)
def test_labels_of_any_kind(labels: Any) -> None:
    X, y = make_classification(
        150, 5, n_informative=4, n_redundant=0, n_classes=3, class_sep=3, random_state=1
    )
    named = np.array(labels)[y]
    net = MLPClassifier(30, learning_rate_init=0.02, random_state=0).fit(X, named)
    assert net.classes_.tolist() == sorted(set(named.tolist()))
    assert set(net.predict(X).tolist()) <= set(named.tolist())
    assert net.score(X, named) > 0.9
    probabilities = net.predict_proba(X)
    assert np.allclose(probabilities.sum(1), 1)
    assert np.array_equal(net.classes_[probabilities.argmax(1)], net.predict(X))
    assert np.allclose(np.exp(net.predict_log_proba(X)), probabilities)


def test_quantities_are_no_labels() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        MLPClassifier().fit(digits(30)[0], np.linspace(0, 1, 30))


def test_several_outputs_and_one() -> None:
    X, y = make_regression(200, 6, n_targets=3, random_state=0)
    y /= y.std(0)
    net = MLPRegressor(50, learning_rate_init=0.01, random_state=0).fit(X, y)
    assert net.predict(X).shape == (200, 3)
    assert net.score(X, y) > 0.97
    assert net.n_outputs_ == 3
    assert MLPRegressor(max_iter=1).fit(X, y[:, 0]).predict(X).shape == (200,)


# The same as scikit-learn's network from the same weights


@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "quantities"])
def test_learns_step_by_step_like_scikit_learns_network(
    solver: str, weighted: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Adam's epsilon stands beside the corrected root here and beside the uncorrected one there: without it they agree
    monkeypatch.setattr(et.optim, "Adam", partial(et.optim.Adam, eps=1e-200))
    common = {
        "hidden_layer_sizes": (7, 5), "activation": "tanh", "solver": solver, "alpha": 0.5, "batch_size": 32, "learning_rate_init": 0.01,
        "max_iter": 1, "shuffle": False, "warm_start": True, "random_state": 0,
    }  # fmt: skip
    if kind == "classes":
        X, y = make_classification(107, 6, n_informative=4, n_classes=3, random_state=0)
        ours, other = MLPClassifier(**common, dtype="float64"), theirs.MLPClassifier(**common, epsilon=1e-200)
    else:
        X, y = make_regression(107, 6, random_state=0)
        y /= 100
        ours, other = MLPRegressor(**common, dtype="float64"), theirs.MLPRegressor(**common, epsilon=1e-200)
    if weighted and "sample_weight" not in inspect.signature(other.fit).parameters:
        pytest.skip("this scikit-learn has no weights in its networks")
    options = {"sample_weight": np.random.default_rng(0).integers(0, 3, 107)} if weighted else {}
    ours.fit(X, y), other.fit(X, y)
    for layer, weight, bias in zip(ours._layers(), other.coefs_, other.intercepts_):
        layer.weight.assign(weight.T.copy())
        layer.bias.assign(bias)
    ours.set_params(max_iter=5).fit(X, y, **options)
    other.set_params(max_iter=5).fit(X, y, **options)
    assert ours.n_iter_ == other.n_iter_ == 5
    close = {"rtol": 1e-6, "atol": 1e-9}
    if not weighted:  # the mean over an epoch counts samples there and weights here
        np.testing.assert_allclose(ours.loss_curve_[1:], other.loss_curve_[1:], **close)
    for mine, its in zip(ours.coefs_ + ours.intercepts_, other.coefs_ + other.intercepts_):
        np.testing.assert_allclose(mine, its, **close)


# Reproducible


def test_the_random_state_decides_every_bit() -> None:
    X, y = digits()
    threads = et.get_num_threads()

    def fitted(state: Any, count: int = 1) -> MLPClassifier:
        et.set_num_threads(count)
        return MLPClassifier(random_state=state, max_iter=3, early_stopping=True).fit(X, y)

    try:
        first = fitted(3)
        assert same_weights(first, fitted(3, 2))
        assert same_weights(first, fitted(np.random.RandomState(3)))
        assert same_weights(first, clone(first).fit(X, y))
        assert not same_weights(first, fitted(4))
        assert first.loss_curve_ == fitted(3).loss_curve_
        one, other = (
            MLPClassifier(shuffle=False, random_state=seed, max_iter=1).fit(X, y) for seed in (0, 1)
        )
        assert not same_weights(one, other)
    finally:
        et.set_num_threads(threads)


def test_a_pickled_network_predicts_and_goes_on_to_the_same_bits() -> None:
    X, y = digits()
    net = MLPClassifier(20, "tanh", random_state=0, max_iter=2).fit(X, y)
    net.set_params(activation="relu")  # the next fit is told; the fitted network stays what it is
    copy = pickle.loads(pickle.dumps(net))
    assert np.array_equal(net.predict_proba(X), copy.predict_proba(X))
    net.set_params(activation="tanh").partial_fit(X, y)
    assert not same_weights(net, copy)
    copy.set_params(activation="tanh").partial_fit(X, y)
    assert same_weights(net, copy)
    assert pickle.loads(pickle.dumps(MLPClassifier(7))).hidden_layer_sizes == 7


# Stopping


def test_stops_when_the_loss_no_longer_falls() -> None:
    X, y = digits(200)
    net = MLPClassifier(
        random_state=0, learning_rate_init=0.01, tol=1e-2, n_iter_no_change=4, max_iter=300
    ).fit(X, y)
    assert net.n_iter_ == len(net.loss_curve_) < 300
    best = np.minimum.accumulate(net.loss_curve_)
    assert (best[-6:-1] - net.loss_curve_[-5:] < 1e-2).all()
    assert best[-7] - net.loss_curve_[-6] >= 1e-2
    assert net.best_loss_ == best[-1]
    assert net.validation_scores_ is None
    with pytest.warns(ConvergenceWarning, match=r"^\[MLPClassifier\] still learning after max_iter=3"):
        MLPClassifier(max_iter=3).fit(X, y)


def test_early_stopping_takes_the_best_weights() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20))
    y = np.where(rng.random(200) < 0.3, rng.integers(0, 2, 200), X[:, 0] > 0)
    options = {
        "hidden_layer_sizes": 100,
        "learning_rate_init": 0.01,
        "early_stopping": True,
        "validation_fraction": 0.3,
        "random_state": 1,
    }
    net = MLPClassifier(**options, n_iter_no_change=5).fit(X, y)
    scores = net.validation_scores_
    assert len(scores) == net.n_iter_ < 200
    assert scores[-1] < max(scores) == net.best_validation_score_
    best = int(np.argmax(scores)) + 1
    assert same_weights(net, MLPClassifier(**options, max_iter=best).fit(X, y))
    assert not same_weights(net, MLPClassifier(**options, max_iter=best - 1).fit(X, y))


def test_early_stopping_of_a_regressor_and_weights_of_its_score() -> None:
    X, y = make_regression(120, 4, noise=5, random_state=0)
    net = MLPRegressor(early_stopping=True, random_state=0, learning_rate_init=0.1).fit(
        X, y / 50, sample_weight=np.ones(120)
    )
    assert net.best_validation_score_ > 0.9
    with pytest.raises(ValueError, match="leaves fewer than 2 to validate on"):
        MLPRegressor(early_stopping=True, validation_fraction=0.005).fit(X, y)


def test_validation_samples_have_every_class() -> None:
    X, y = digits(100)
    with pytest.raises(ValueError, match="least populated class"):
        MLPClassifier(early_stopping=True).fit(X, np.where(np.arange(100) == 5, 99, y))


# In pieces


def test_partial_fit_learns_from_pieces() -> None:
    X, y = digits(1000)
    net = MLPClassifier(random_state=0, learning_rate_init=0.01)
    with pytest.raises(ValueError, match=r"^\[MLPClassifier\] the first call of partial_fit needs classes"):
        net.partial_fit(X, y)
    for _ in range(5):
        for start in range(0, 800, 100):
            net.partial_fit(X[start : start + 100], y[start : start + 100], classes=range(10))
    assert net.n_iter_ == len(net.loss_curve_) == 40
    assert net.score(X[800:], y[800:]) > 0.85
    with pytest.raises(ValueError, match=r"y has labels \[11\] that are not among the classes"):
        net.partial_fit(X[:2], [1, 11])
    with pytest.raises(ValueError, match="but were"):
        net.partial_fit(X, y, classes=[1, 2])
    with pytest.raises(ValueError, match="early_stopping=False"):
        net.set_params(early_stopping=True).partial_fit(X, y)


def test_warm_start_goes_on() -> None:
    X, y = digits(300)
    net = MLPClassifier(random_state=0, warm_start=True, max_iter=4).fit(X, y)
    before = net.loss_
    net.fit(X, y)
    assert net.loss_ < before
    assert (net.n_iter_, len(net.loss_curve_)) == (4, 8)
    with pytest.raises(ValueError, match=r"cannot go on with .*\[64, 7, 10\]"):
        net.set_params(hidden_layer_sizes=7).fit(X, y)
    assert net.set_params(warm_start=False).fit(X, y).coefs_[0].shape == (64, 7)


# Weights, dtypes, mistakes


def test_a_sample_of_weight_zero_is_not_there() -> None:
    X, y = make_classification(300, 5, class_sep=2, random_state=0)
    wrong = np.arange(300) % 3 == 0
    net = MLPClassifier(batch_size=16, max_iter=30, random_state=0, learning_rate_init=0.01)
    told = np.where(wrong, 1 - y, y)
    assert (
        net.fit(X, np.where(wrong, "never", y.astype(str)), np.where(wrong, 0.0, 1.0))
        .predict_proba(X)[:, 2]
        .max()
        < 0.05
    )
    assert net.fit(X, told, np.where(wrong, 0.0, 2.5)).score(X, y) > 0.9
    with pytest.raises(
        ValueError, match=r"^\[MLPClassifier\] sample_weight must not be negative, and not all"
    ):
        net.fit(X, y, np.where(wrong, -1.0, 1.0))
    with pytest.raises(ValueError, match=r"non-zero|not all"):
        net.fit(X, y, np.zeros(300))


def test_batches_without_weight_are_passed_over() -> None:
    X, y = digits(400)
    weight = np.arange(400) < 100
    options = {"batch_size": 100, "shuffle": False, "random_state": 0, "max_iter": 5}
    assert same_weights(
        MLPClassifier(**options).fit(X, y, weight),
        MLPClassifier(**options).fit(X[:100], y[:100], np.ones(100)),
    )


@pytest.mark.parametrize("make", [MLPClassifier, MLPRegressor])
def test_computes_in_float32_unless_told(make: Any) -> None:
    X, y = digits(50)
    wide = make(max_iter=2, random_state=0).fit(X.astype(np.float64), y)
    assert wide.coefs_[0].dtype == np.float32
    assert same_weights(wide, make(max_iter=2, random_state=0).fit(X, y))
    told = make(max_iter=2, random_state=0, dtype="float64").fit(X, y)
    assert told.coefs_[0].dtype == np.float64
    outputs = wide._outputs
    assert (outputs(X).dtype, outputs(X.astype(np.float64)).dtype) == (np.float32, np.float64)
    with pytest.raises(ValueError, match=r"\[MLP\w+\] dtype must be 'float32' or 'float64', got str 'int8'"):
        make(dtype="int8").fit(X, y)


def test_many_samples_are_predicted_in_parts() -> None:
    X, y = digits(100)
    net = MLPClassifier(max_iter=1, random_state=0).fit(X, y)
    many = np.resize(X, (20_000, 64))
    assert np.array_equal(net.predict_proba(many)[-50:], net.predict_proba(many[-50:]))


@pytest.mark.parametrize("estimator", [MLPClassifier, MLPRegressor])
def test_sparse_samples_are_refused_clearly(estimator: Any) -> None:
    X, y = digits(50)
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        estimator().fit(csr_array(X), y)
    net = estimator(max_iter=1).fit(X, y)
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        net.predict(csr_array(X))


def test_before_a_fit() -> None:
    with pytest.raises(NotFittedError):
        MLPClassifier().predict_proba([[1.0]])
    assert not hasattr(MLPClassifier(), "coefs_")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("hidden_layer_sizes", (10, 0)), ("hidden_layer_sizes", "10"), ("hidden_layer_sizes", 2.5), ("activation", "softplus"),
        ("activation", None), ("solver", "lbfgs"), ("alpha", -1.0), ("alpha", float("nan")), ("batch_size", 0),
        ("batch_size", "all"), ("learning_rate_init", 0.0), ("max_iter", 0), ("shuffle", "no"), ("tol", -1e-4), ("verbose", "yes"),
        ("warm_start", 2), ("momentum", 1.0), ("early_stopping", None), ("validation_fraction", 1.0), ("n_iter_no_change", True),
    ],
)  # fmt: skip
def test_parameters_are_judged(parameter: str, value: Any) -> None:
    X, y = digits(20)
    with pytest.raises(ValueError, match=rf"^\[MLPRegressor\] {parameter} must be .*, got"):
        MLPRegressor(**{parameter: value}).fit(X, y)


def test_what_diverges_says_so() -> None:
    X, y = make_regression(50, 3, random_state=0)
    with pytest.raises(
        ValueError, match=r"^\[MLPRegressor\] the loss or the weights became infinite .*StandardScaler"
    ):
        MLPRegressor(solver="sgd", learning_rate_init=1e3, random_state=0).fit(X * 1e6, y * 1e6)


def test_verbose_tells_the_loss_and_the_score(capsys: Any) -> None:
    X, y = digits(100)
    MLPClassifier(max_iter=2, verbose=True, early_stopping=True, random_state=0).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["epoch 1", "epoch 1", "epoch 2", "epoch 2"]
    assert "validation score" in lines[1]


# Imports


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    done = run("import sys; sys.modules['sklearn'] = None; import extensor.sklearn")
    assert done.stderr.splitlines()[-1].startswith("ImportError: [extensor.sklearn] needs scikit-learn")
    assert "pip install -U scikit-learn (the extra 'sklearn' of ExTensor)" in done.stderr


def test_extensor_alone_does_not_import_scikit_learn() -> None:
    assert run("import sys, extensor.train, extensor.nn; print('sklearn' in sys.modules)").stdout == "False\n"
    assert run("import extensor; print(extensor.sklearn.MLPClassifier.__name__)").stdout == "MLPClassifier\n"


# Half precision


@pytest.mark.filterwarnings("ignore:.*will not be faster than float32:UserWarning")
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "auto"])
def test_precision(precision: str) -> None:
    X, y = digits()
    exact = MLPClassifier(max_iter=15, random_state=0).fit(X, y)
    half = MLPClassifier(max_iter=15, random_state=0, precision=precision).fit(X.astype(np.float64), y)
    assert {w.dtype for w in half.coefs_} == {np.dtype(np.float32)}
    assert half.predict_proba(X).dtype == np.float32
    if precision != "auto":
        assert not same_weights(exact, half)
    assert half.score(X, y) == pytest.approx(exact.score(X, y), abs=0.02)
    copy = pickle.loads(pickle.dumps(half))
    half.partial_fit(X, y), copy.partial_fit(X, y)
    assert same_weights(half, copy)
    warm = (
        MLPClassifier(max_iter=2, random_state=0, warm_start=True).fit(X, y).set_params(precision=precision)
    )
    warm.fit(X, y)
    assert warm._mixed.asked == precision
    again = MLPClassifier(max_iter=15, random_state=0, precision=precision)
    with pytest.raises(ValueError, match="precision must be one of"):
        again.set_params(precision="half").fit(X, y)


@pytest.mark.filterwarnings("ignore:.*will not be faster than float32:UserWarning")
def test_overflow_in_float16_is_skipped() -> None:
    X, y = digits(100)
    found = MLPClassifier(max_iter=3, random_state=0, precision="float16", batch_size=20).fit(X * 3000, y)
    assert found._mixed.scaler is not None
    assert found._mixed.scaler.skipped > 0
    assert all(np.isfinite(w).all() for w in found.coefs_)
