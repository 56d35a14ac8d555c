"""Every public name, and the page of the API reference that it stands on."""

from __future__ import annotations

import importlib
import types
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Page:
    """A page of the reference: the public modules it shows whole, or the modules whose functions it shows."""

    name: str
    title: str
    about: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Name:
    """A public name: ``extensor.relu``, its object and its page."""

    dotted: str
    value: Any
    page: str

    @property
    def short(self) -> str:
        return self.dotted.removeprefix("extensor.")


def _ops(*names: str) -> tuple[str, ...]:
    return tuple(f"extensor.ops.{name}" for name in names)


PAGES = (
    Page("tensor", "Tensors", "The tensor, its dtypes, and making tensors.",
         ("extensor.tensor", "extensor.dtypes", *_ops("creation", "casting"))),
    Page("arithmetic", "Arithmetic", "Functions of two operands, with broadcasting.", _ops("arithmetic")),
    Page("elementwise", "Elementwise", "Functions of one number at a time.",
         _ops("elementwise", "exponential", "trigonometric", "special", "incomplete", "bitwise", "complex_numbers")),
    Page("comparison", "Comparison and selection", "What is true where, and choosing by it.",
         _ops("comparison", "selection")),
    Page("matrix", "Matrix", "Products of matrices and their kin.", _ops("matrix", "einsum", "diagonals", "distances")),
    Page("linalg", "extensor.linalg", "Linear algebra: solving, decomposing, norms.", ("extensor.linalg",)),
    Page("fft", "extensor.fft", "Fourier transforms.", ("extensor.fft",)),
    Page("reduction", "Reduction and sorting", "Many numbers to fewer, and in order.", _ops("reduction", "sorting", "scan", "statistics", "searching")),
    Page("shape", "Shape and indexing", "Moving elements without changing them.",
         _ops("shape", "joining", "indexing", "broadcasting", "construction", "scattering")),
    Page("activation", "Activation", "The bends between layers.", _ops("activation", "shrinking", "softmax")),
    Page("layers", "Layers as functions", "What the layers of `nn` call, without parameters of their own.",
         _ops("linear", "conv", "volumes", "pooling", "volume_pooling", "resampling", "response_norm", "normalization", "dropout", "embedding", "attention", "recurrent")),
    Page("loss", "Loss", "How wrong a prediction is.", _ops("loss")),
    Page("autograd", "Autograd", "Chaining the backward functions, and reading what was recorded.",
         ("extensor.autograd", "extensor.compile", "extensor.graph", "extensor.errors")),
    Page("nn", "extensor.nn", "Layers: they own parameters and call the functions.", ("extensor.nn",)),
    Page("optim", "extensor.optim", "Optimisers and schedules, as classes and as functions.",
         ("extensor.optim", "extensor.optim.functional")),
    Page("init", "extensor.init", "First values of parameters.", ("extensor.init",)),
    Page("models", "extensor.models", "Networks that are often wanted.", ("extensor.models",)),
    Page("data", "extensor.data", "Readers, datasets and batches.", ("extensor.data",)),
    Page("train", "extensor.train", "The training loop and what it keeps.", ("extensor.train",)),
    Page("distributed", "extensor.distributed", "Processes that train together.", ("extensor.distributed",)),
    Page("report", "extensor.report", "A run as a page to look at.", ("extensor.report",)),
    Page(
        "sklearn",
        "extensor.sklearn",
        "Estimators that keep the manners of scikit-learn, which they need.",
        ("extensor.sklearn",),
    ),
    Page("onnx", "extensor.onnx", "Networks of other programs in, ours out.", ("extensor.onnx",)),
    Page("convert", "extensor.convert", "Weights of other programs.", ("extensor.convert",)),
    Page("random", "extensor.random", "Random tensors from an explicit seed or generator.", ("extensor.random",)),
    Page("testing", "extensor.testing", "Checking gradients numerically.", ("extensor.testing",)),
    Page("library", "The library itself", "Threads, seeds and what runs.", ("extensor.config",)),
)  # fmt: skip

# Public modules besides the top one; each is shown on the page that has it among its sources.
MODULES = tuple(
    source for page in PAGES for source in page.sources
    if not source.startswith("extensor.ops.") and source not in
    ("extensor.tensor", "extensor.dtypes", "extensor.autograd", "extensor.compile", "extensor.graph", "extensor.errors", "extensor.config")
)  # fmt: skip


@cache
def names() -> tuple[Name, ...]:
    """All public names but modules, in the order of their ``__all__``, the top ones first."""
    found = [_top_name(name, value) for name, value in _public("extensor")]
    for page in PAGES:
        for module in page.sources:
            if module in MODULES:
                found += [Name(f"{module}.{name}", value, page.name) for name, value in _public(module)]
    return tuple(found)


def _public(module_name: str) -> list[tuple[str, Any]]:
    module = importlib.import_module(module_name)
    listed = [(name, getattr(module, name)) for name in module.__all__]
    return [(name, value) for name, value in listed if not isinstance(value, types.ModuleType)]


def _top_name(name: str, value: Any) -> Name:
    """Where a name of ``extensor`` itself belongs: by the module that defines it."""
    home = getattr(value, "__module__", None) or (
        "extensor.config" if name == "__version__" else "extensor.dtypes"
    )
    for page in PAGES:
        if any(is_in(home.replace("._", "."), source) for source in page.sources):
            return Name(f"extensor.{name}", value, page.name)
    raise LookupError(f"extensor.{name} is defined in {home}, which no page of the reference shows")


def is_in(module: str, family: str) -> bool:
    """Whether a module is a family, inside of it, or one of the files it was split into: ``loss_metric`` of ``loss``."""
    return module == family or module.startswith((f"{family}.", f"{family}_"))


@cache
def _places() -> dict[str, Name]:
    """Every way a docstring may call a name; the first one listed has it."""
    places: dict[str, Name] = {}
    for name in names():
        for spelling in (name.dotted, name.short, name.dotted.rpartition(".")[2]):
            places.setdefault(spelling, name)
    return places


def find(spelling: str) -> Name | None:
    """The public name a docstring means by ``relu``, ``nn.Linear`` or ``extensor.train.Metric``."""
    return _places().get(spelling)
