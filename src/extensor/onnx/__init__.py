"""ONNX in and out: networks of other programs as modules, ours as files that other programs run.

The extra ``onnx`` installs what this needs: ``pip install onnx``.
"""

from .backend import Backend
from .export import Exported, export
from .load import OnnxModule, load

__all__ = ["Backend", "Exported", "OnnxModule", "export", "load"]
