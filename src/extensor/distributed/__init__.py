"""Training on many processes: the same weights, to the bit, on any number of them.

>>> from extensor.distributed import World
>>> World().size
1
"""

from .errors import LostRankError, MismatchError
from .world import World

__all__ = ["LostRankError", "MismatchError", "World"]
