"""The instruction set: every kernel by name.

Those of the operators and methods of a tensor load with the package. The others load with the operations that call them, which
take them from their module: ``from ..kernels.reference import conv as kernels``.
"""

from .dispatch import KERNELS, NATIVE, Kernel
from .reference.arithmetic import *  # noqa: F403
from .reference.broadcasting import *  # noqa: F403
from .reference.casting import *  # noqa: F403
from .reference.comparison import *  # noqa: F403
from .reference.complex_numbers import *  # noqa: F403
from .reference.creation import *  # noqa: F403
from .reference.elementwise import *  # noqa: F403
from .reference.guards import *  # noqa: F403
from .reference.indexing import *  # noqa: F403
from .reference.matrix import *  # noqa: F403
from .reference.reduction import *  # noqa: F403
from .reference.selection import *  # noqa: F403
from .reference.shape import *  # noqa: F403

__all__ = ["KERNELS", "NATIVE", "Kernel", *KERNELS]  # noqa: PLE0604


def __getattr__(name: str) -> Kernel:
    if name.startswith("_") or name not in KERNELS.complete():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return KERNELS[name]
