"""The instruction set: every kernel by name."""

from .dispatch import KERNELS, NATIVE, Kernel
from .reference.activation import *  # noqa: F403
from .reference.arithmetic import *  # noqa: F403
from .reference.attention import *  # noqa: F403
from .reference.broadcasting import *  # noqa: F403
from .reference.casting import *  # noqa: F403
from .reference.comparison import *  # noqa: F403
from .reference.complex_numbers import *  # noqa: F403
from .reference.conv import *  # noqa: F403
from .reference.creation import *  # noqa: F403
from .reference.diagonals import *  # noqa: F403
from .reference.dropout import *  # noqa: F403
from .reference.elementwise import *  # noqa: F403
from .reference.embedding import *  # noqa: F403
from .reference.exponential import *  # noqa: F403
from .reference.guards import *  # noqa: F403
from .reference.indexing import *  # noqa: F403
from .reference.joining import *  # noqa: F403
from .reference.loss_classification import *  # noqa: F403
from .reference.loss_metric import *  # noqa: F403
from .reference.loss_regression import *  # noqa: F403
from .reference.matrix import *  # noqa: F403
from .reference.normalization import *  # noqa: F403
from .reference.optim import *  # noqa: F403
from .reference.optim_adaptive import *  # noqa: F403
from .reference.pooling import *  # noqa: F403
from .reference.recurrent_gru import *  # noqa: F403
from .reference.recurrent_lstm import *  # noqa: F403
from .reference.recurrent_rnn import *  # noqa: F403
from .reference.reduction import *  # noqa: F403
from .reference.regions import *  # noqa: F403
from .reference.resampling import *  # noqa: F403
from .reference.selection import *  # noqa: F403
from .reference.shape import *  # noqa: F403
from .reference.softmax import *  # noqa: F403
from .reference.sorting import *  # noqa: F403
from .reference.trigonometric import *  # noqa: F403

__all__ = ["KERNELS", "NATIVE", "Kernel", *KERNELS]  # noqa: PLE0604
