"""Every operation and its gradient, as pairs of plain functions."""

from . import methods as _methods  # noqa: F401  (attaches the operators and methods of ExTensor)
from .activation import *  # noqa: F403
from .arithmetic import *  # noqa: F403
from .attention import *  # noqa: F403
from .broadcasting import *  # noqa: F403
from .casting import *  # noqa: F403
from .comparison import *  # noqa: F403
from .conv import *  # noqa: F403
from .creation import *  # noqa: F403
from .dropout import *  # noqa: F403
from .einsum import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .embedding import *  # noqa: F403
from .exponential import *  # noqa: F403
from .indexing import *  # noqa: F403
from .joining import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss_classification import *  # noqa: F403
from .loss_metric import *  # noqa: F403
from .loss_regression import *  # noqa: F403
from .matrix import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .recurrent_gru import *  # noqa: F403
from .recurrent_lstm import *  # noqa: F403
from .recurrent_rnn import *  # noqa: F403
from .reduction import *  # noqa: F403
from .selection import *  # noqa: F403
from .shape import *  # noqa: F403
from .softmax import *  # noqa: F403
from .sorting import *  # noqa: F403
from .trigonometric import *  # noqa: F403
