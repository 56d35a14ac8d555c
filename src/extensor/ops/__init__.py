"""Every operation and its gradient, as pairs of plain functions."""

from .arithmetic import *  # noqa: F403
from .broadcasting import *  # noqa: F403
from .casting import *  # noqa: F403
from .comparison import *  # noqa: F403
from .creation import *  # noqa: F403
from .selection import *  # noqa: F403
from .methods import attach

attach(globals())
