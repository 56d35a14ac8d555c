"""ExTensor: neural networks on a CPU, with gradients you can read, call and verify."""

from .autograd import *  # noqa: F403
from .config import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .errors import *  # noqa: F403
from .ops import *  # noqa: F403
from .tensor import *  # noqa: F403
from .version import *  # noqa: F403
