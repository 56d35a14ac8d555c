"""How each public function is written in ONNX, one file per family."""

from . import elementwise, imported, indexing, layers, matrices, recurrent, reduction, shape  # noqa: F401
from .decompositions import DECOMPOSITIONS

__all__ = ["DECOMPOSITIONS"]
