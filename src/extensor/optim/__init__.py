"""Optimisers: rules that turn gradients into better parameters; and schedules of their learning rates."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._habits import OPTIM as _OPTIM
from .._habits import missing_from as _missing_from
from . import functional
from .adaptive import Adadelta, Adafactor, Muon, NAdam, RAdam
from .averaging import EMA
from .clipping import clip_grad_norm, clip_grad_value
from .cycles import CosineAnnealingWarmRestarts, CyclicLR, PolynomialLR
from .functional import sgd_step
from .lbfgs import LBFGS
from .loss_scaling import LossScaler, scale_loss, unscale_gradients
from .one_cycle import OneCycleLR
from .optimizer import Optimizer
from .optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Lion, RMSprop
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler
from .schedules import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    StepLR,
)
from .sequences import SequentialLR, WarmupScheduler

__all__ = [
    "functional", "sgd_step", "clip_grad_norm", "clip_grad_value", "LossScaler", "scale_loss", "unscale_gradients",
    "Optimizer", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "LAMB", "NAdam", "RAdam", "Adadelta",
    "Adafactor", "Muon", "LBFGS", "EMA",
    "LRScheduler", "StepLR", "MultiStepLR", "ExponentialLR", "ConstantLR", "LinearLR", "LambdaLR", "CosineAnnealingLR",
    "PolynomialLR", "CosineAnnealingWarmRestarts", "CyclicLR", "WarmupScheduler", "OneCycleLR", "ReduceLROnPlateau", "SequentialLR",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _OPTIM)
