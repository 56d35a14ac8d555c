"""Networks with the manners of scikit-learn: for its pipelines, grid searches and scores."""

try:
    import sklearn as _sklearn  # noqa: F401  (only asked for here, to answer clearly where it is missing)
except ImportError as error:
    raise ImportError(
        "[extensor.sklearn] needs scikit-learn 1.6 or newer: pip install -U scikit-learn (the extra 'sklearn' of ExTensor)"
    ) from error

from ._classifier import MLPClassifier
from ._regressor import MLPRegressor

__all__ = ["MLPClassifier", "MLPRegressor"]
