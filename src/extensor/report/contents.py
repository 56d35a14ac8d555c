"""Everything a report shows, gathered from the folder of a run; what cannot be had becomes a note."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .. import random
from ..data import Dataset, Text
from ..nn import Module
from ..nn.summary import Summary
from ..tensor import ExTensor
from ..train.saved_run import held_out_samples, load_model, weights_file
from ..train.table_samples import unscaled
from ..train.text_sampling import drawn_tokens
from ..train.weights import load_weights
from .chart import Chart, Heat
from .curves import curves
from .evaluation import Classification, Regression, evaluate
from .filters import Filters, first_filters
from .layers import layer_charts
from .predictions import prediction_chart
from .run_record import RunRecord

__all__ = ["Contents", "gather"]

_REFUSALS = (ArithmeticError, AttributeError, KeyError, MemoryError, OSError, TypeError, ValueError)
_PROMPT, _CHARACTERS = "\n", 200
_PATIENCE = 0.8  # seconds for the text: a report must not make one wait

T = TypeVar("T")


@dataclass
class Contents:
    """The parts of a report; None stands for what makes no sense for this run or cannot be had."""

    run: RunRecord
    curves: list[Chart] = field(default_factory=list)
    layers: list[Chart | Heat] = field(default_factory=list)
    summary: Summary | None = None
    weights: dict[str, ExTensor] | None = None
    evaluation: Classification | Regression | None = None
    filters: Filters | None = None
    text: tuple[str, str] | None = None  # the prompt and what the model wrote

    @property
    def predictions(self) -> Chart | None:
        """Predicted over wanted quantities."""
        return prediction_chart(self.evaluation) if isinstance(self.evaluation, Regression) else None

    def charts(self) -> list[Chart | Heat]:
        """Every chart of the report."""
        return [*self.curves, *self.layers, *([self.predictions] if self.predictions else [])]


def gather(run: RunRecord, samples: Dataset | None, model: Module | None, data: Path | None) -> Contents:
    """Read the log, open the model, and let it predict.

    Args:
        run: what the folder says.
        samples: test samples that are in memory already; otherwise they are read again.
        model: the model, if the recipes of ExTensor cannot build it.
        data: where the data is now, if it has moved.
    """
    found = Contents(run, curves(run), layer_charts(run))
    found.weights = None if model is None else model.state_dict()
    if model is None:
        model = _model(run, found)
    if samples is None and model is not None and "vocabulary" not in run.config:
        samples = _or_note(run, "The test samples cannot be read", lambda: _samples(run.config, data))
    image_shape = None if samples is None else tuple(samples[0][0].shape)
    if found.weights is not None:
        found.filters = first_filters(found.weights, image_shape)
    if model is None:
        return found
    found.summary = _or_note(
        run, "The model cannot be summarised", lambda: model.summary(*_sample(run, samples))
    )
    if samples is not None and samples.targets is not None:
        found.evaluation = _or_note(
            run, "The test samples were not predicted", lambda: _evaluated(run, model, samples)
        )
    if "vocabulary" in run.config:
        found.text = _or_note(run, "The model wrote no text", lambda: _written(run, model))
    return found


def _or_note(run: RunRecord, what: str, make: Callable[[], T]) -> T | None:
    """What ``make`` gives; if it is refused, the reader is told why and the report goes on without it."""
    try:
        return make()
    except _REFUSALS as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        run.notes.append(f"{what}: {reason}.")
        return None


def _model(run: RunRecord, found: Contents) -> Module | None:
    """The model of the configuration with the best weights; the weights alone, if it describes none."""
    found.weights = _or_note(
        run, "There are no weights to show", lambda: load_weights(weights_file(run.folder))[0]
    )
    if found.weights is None or not run.config:
        return None
    return _or_note(
        run, "The model of this run cannot be built again", lambda: load_model(run.folder, run.config)
    )


def _samples(config: dict[str, Any], moved: Path | None) -> Dataset:
    place = config.get("data") if moved is None else str(moved)
    if place and not Path(place).exists():
        raise FileNotFoundError(f"{place} is not there; extensor report --data says where it is now")
    return held_out_samples(config, moved)


def _evaluated(run: RunRecord, model: Module, samples: Dataset) -> Classification | Regression:
    classes = run.config.get("classes", samples.classes)
    found = evaluate(model, samples, classes if isinstance(classes, (list, tuple)) else None)
    if isinstance(found, Classification):
        return found
    table = run.config.get("table")  # which scaled its quantities
    return replace(found, targets=unscaled(found.targets, table), predicted=unscaled(found.predicted, table))


def _sample(run: RunRecord, samples: Dataset | None) -> tuple[ExTensor, ...]:
    """One input for the model, if it is known what one looks like."""
    if samples is not None:
        return (samples.batch(np.array([0]))[0],)
    if "vocabulary" in run.config:
        return (ExTensor(np.zeros((1, int(run.config["length"])), np.int64)),)
    return ()


def _written(run: RunRecord, model: Module) -> tuple[str, str]:
    vocabulary: Any = run.config["vocabulary"]
    alphabet = Text(vocabulary, vocabulary)
    prompt = _PROMPT if _PROMPT in alphabet.vocabulary else alphabet.vocabulary[0]
    tokens = drawn_tokens(
        model, alphabet.encode(prompt), _CHARACTERS, int(run.config["length"]), 0.8, random.generator(0)
    )
    written, began = list[int](), time.monotonic()
    for token in tokens:
        written.append(token)
        if len(written) >= 20 and time.monotonic() - began > _PATIENCE:
            break
    return prompt, alphabet.decode(written)
