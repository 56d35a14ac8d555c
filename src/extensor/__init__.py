"""ExTensor: neural networks on a CPU, with gradients you can read, call and verify."""

from .dtypes import *  # noqa: F403
from .ops import *  # noqa: F403
from .tensor import *  # noqa: F403
