"""All batching rules, family by family."""

from . import elementwise as _elementwise  # noqa: F401
from . import layers as _layers  # noqa: F401
from . import losses as _losses  # noqa: F401
from . import picking as _picking  # noqa: F401
from . import products as _products  # noqa: F401
from . import reductions as _reductions  # noqa: F401
from . import shapes as _shapes  # noqa: F401
from .registry import each_example, rule_of

__all__ = ["each_example", "rule_of"]
