"""Layers and models: they own parameters and call the functions of :mod:`extensor.ops`."""

from ._random import seed
from .containers import ModuleList, ParameterDict, Sequential
from .module import Module
from .parameter import Parameter

__all__ = ["Module", "ModuleList", "Parameter", "ParameterDict", "Sequential", "seed"]
