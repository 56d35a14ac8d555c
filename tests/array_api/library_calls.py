"""64 functions of SciPy and scikit-learn that take arrays of the standard, with NumPy's arrays and with ours.

Run as a program, in a process of its own: SciPy reads ``SCIPY_ARRAY_API`` when it is first imported. Prints a JSON list of the
calls whose results differ from NumPy's or are no tensors.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats as st
import sklearn
from scipy.cluster import vq
from scipy.spatial.transform import Rotation
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, mixture, preprocessing
from sklearn.metrics import pairwise

import extensor as et

_rng = np.random.default_rng(0)
X = _rng.standard_normal(40)
Y = X + 0.3 * _rng.standard_normal(40)
POSITIVE = np.abs(X) + 0.1
TABLE, OTHER = _rng.standard_normal((2, 40, 5))
LABELS, GUESSES = _rng.integers(0, 2, (2, 40))
LEVELS = np.linspace(0.1, 0.9, 5)

CALLS: dict[str, Callable[[Callable[[np.ndarray], Any]], Any]] = {
    "zscore": lambda a: st.zscore(a(X)),
    "skew": lambda a: st.skew(a(X)),
    "kurtosis": lambda a: st.kurtosis(a(X)),
    "moment": lambda a: st.moment(a(X), 3),
    "sem": lambda a: st.sem(a(X)),
    "variation": lambda a: st.variation(a(POSITIVE)),
    "gmean": lambda a: st.gmean(a(POSITIVE)),
    "hmean": lambda a: st.hmean(a(POSITIVE)),
    "pmean": lambda a: st.pmean(a(POSITIVE), 2),
    "describe": lambda a: st.describe(a(X)).variance,
    "ttest_1samp": lambda a: st.ttest_1samp(a(X), 0.0).statistic,
    "ttest_ind": lambda a: st.ttest_ind(a(X), a(Y)).statistic,
    "ttest_rel": lambda a: st.ttest_rel(a(X), a(Y)).pvalue,
    "pearsonr": lambda a: st.pearsonr(a(X), a(Y)).statistic,
    "jarque_bera": lambda a: st.jarque_bera(a(X)).statistic,
    "skewtest": lambda a: st.skewtest(a(X)).statistic,
    "kurtosistest": lambda a: st.kurtosistest(a(X)).statistic,
    "normaltest": lambda a: st.normaltest(a(X)).pvalue,
    "bartlett": lambda a: st.bartlett(a(X), a(Y)).statistic,
    "power_divergence": lambda a: st.power_divergence(a(POSITIVE)).statistic,
    "entropy": lambda a: st.entropy(a(POSITIVE)),
    "differential_entropy": lambda a: st.differential_entropy(a(X)),
    "circmean": lambda a: st.circmean(a(X)),
    "circvar": lambda a: st.circvar(a(X)),
    "circstd": lambda a: st.circstd(a(X)),
    "lmoment": lambda a: st.lmoment(a(X)),
    "rankdata": lambda a: st.rankdata(a(X)),
    "combine_pvalues": lambda a: st.combine_pvalues(a(LEVELS)).pvalue,
    "quantile": lambda a: st.quantile(a(X), a(LEVELS)),
    "boxcox_llf": lambda a: st.boxcox_llf(0.5, a(POSITIVE)),
    "directional_stats": lambda a: st.directional_stats(a(TABLE)).mean_direction,
    "zmap": lambda a: st.zmap(a(X), a(Y)),
    "tmean": lambda a: st.tmean(a(X), (-1, 1)),
    "tvar": lambda a: st.tvar(a(X), (-1, 1)),
    "logsumexp": lambda a: scipy.special.logsumexp(a(X)),
    "softmax": lambda a: scipy.special.softmax(a(X)),
    "expit": lambda a: scipy.special.expit(a(X)),
    "erf": lambda a: scipy.special.erf(a(X)),
    "xlogy": lambda a: scipy.special.xlogy(a(POSITIVE), a(POSITIVE)),
    "ndtr": lambda a: scipy.special.ndtr(a(X)),
    "detrend": lambda a: scipy.signal.detrend(a(X)),
    "convolve": lambda a: scipy.signal.convolve(a(X), a(Y)),
    "hilbert": lambda a: scipy.signal.hilbert(a(X)),
    "fft": lambda a: scipy.fft.fft(a(X)),
    "irfft": lambda a: scipy.fft.irfft(a(X)),
    "whiten": lambda a: vq.whiten(a(TABLE)),
    "vq": lambda a: vq.vq(a(TABLE), a(TABLE[:3]))[1],
    "trapezoid": lambda a: scipy.integrate.trapezoid(a(X)),
    "rosen_der": lambda a: scipy.optimize.rosen_der(a(X)),
    "derivative": lambda a: scipy.differentiate.derivative(lambda t: t**2, a(X)).df,
    "rotation": lambda a: Rotation.from_quat(a(np.array([0.0, 0.0, 0.6, 0.8]))).as_matrix(),
    "cubic_spline": lambda a: scipy.interpolate.CubicSpline(a(np.arange(5.0)), a(X[:5]))(a(LEVELS)),
    "mean_squared_error": lambda a: metrics.mean_squared_error(a(X), a(Y)),
    "r2_score": lambda a: metrics.r2_score(a(X), a(Y)),
    "f1_score": lambda a: metrics.f1_score(a(LABELS), a(GUESSES)),
    "euclidean_distances": lambda a: pairwise.euclidean_distances(a(TABLE), a(OTHER)),
    "rbf_kernel": lambda a: pairwise.rbf_kernel(a(TABLE), a(OTHER)),
    "min_max": lambda a: preprocessing.MinMaxScaler().fit_transform(a(TABLE)),
    "standard": lambda a: preprocessing.StandardScaler().fit_transform(a(TABLE)),
    "polynomial": lambda a: preprocessing.PolynomialFeatures(2).fit_transform(a(TABLE)),
    "pca": lambda a: decomposition.PCA(2, svd_solver="full").fit_transform(a(TABLE)),
    "ridge": lambda a: linear_model.Ridge(solver="svd").fit(a(TABLE), a(X)).predict(a(TABLE)),
    "lda": lambda a: discriminant_analysis.LinearDiscriminantAnalysis().fit(a(TABLE), a(LABELS)).predict(a(TABLE)),
    "mixture": lambda a: mixture.GaussianMixture(2, init_params="random", random_state=0).fit(a(TABLE)).predict(a(TABLE)),
}  # fmt: skip


def problem(call: Callable[[Callable[[np.ndarray], Any]], Any]) -> str | None:
    """What is wrong with a call on our tensors; None if nothing."""
    expected = call(np.asarray)
    try:
        found = call(et.asarray)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(found, (et.ExTensor, float)):  # metrics are Python numbers everywhere
        return f"a result of type {type(found).__name__}"
    if not np.allclose(np.asarray(found), np.asarray(expected), rtol=1e-6, atol=1e-8):
        return "another result than NumPy's"
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sklearn.set_config(array_api_dispatch=True)
    problems = {name: problem(call) for name, call in CALLS.items()}
    json.dump({"calls": len(CALLS), "problems": {n: p for n, p in problems.items() if p}}, sys.stdout)
