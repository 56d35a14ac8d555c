"""Training: the loop, checkpoints that survive anything, logs and metrics."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._habits import missing_from as _missing_from
from .callbacks import Callback, EarlyStopping
from .checkpoint import Checkpoints, latest_whole, load_checkpoint, save_checkpoint
from .lock import FolderInUseError
from .log import Log, read_log
from .loggers import CSVLogger, MLflowLogger, WandbLogger
from .metrics import Accuracy, ConfusionMatrix, Metric, Perplexity
from .rate_finder import RateCurve, find_rate
from .saved import Predictions, SavedRun, load_run
from .scores import F1, MAE, MSE, R2, RMSE, ROCAUC, Precision, Recall, metric_named
from .tensorboard import EventWriter
from .trainer import History, Trainer
from .weights import Header, TensorInfo, load_weights, read_header, save_weights

__all__ = [
    "Accuracy", "CSVLogger", "Callback", "Checkpoints", "ConfusionMatrix", "EarlyStopping", "EventWriter", "F1", "FolderInUseError", "Header",
    "History", "Log", "MAE", "MLflowLogger", "MSE", "Metric", "Perplexity", "Predictions", "Precision", "R2", "RMSE", "ROCAUC", "RateCurve", "Recall", "SavedRun", "TensorInfo", "Trainer", "WandbLogger", "metric_named", "find_rate", "latest_whole", "load_checkpoint", "load_run", "load_weights",
    "read_header", "read_log", "save_checkpoint", "save_weights",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, {})
