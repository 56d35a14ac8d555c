"""The parts of the page that are no charts: tables, images, text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from .._numerals import shown
from ..autograd.figures import readable_bytes
from ..nn.summary import Summary
from .evaluation import Classification, Example, Regression, sample_names
from .filters import Filters
from .images import filter_pixels, sample_pixels
from .png import data_address

__all__ = [
    "card", "configuration_html", "confusion_html", "errors_html", "examples_html", "filters_html", "flat_settings", "summary_html", "text_html",
    "weights_html",
]  # fmt: skip

_MOST_CLASSES = 20  # a larger matrix is a list of its confusions
_MOST_CHARACTERS = 200  # of a setting that are shown before one opens it


def card(title: str, body: str, key: str, about: str = "", extra: str = "") -> str:
    """A panel with a title, and a quiet line below it."""
    line = f"<p class=about>{about}</p>" if about else ""
    return f'<div class="card {extra}" id="{key}"><h3>{escape(title)}</h3>{line}{body}</div>'


# Classes


def confusion_html(found: Classification) -> str:
    """How often each class was taken for each other one."""
    about = f"{found.total - found.wrong:,} of {found.total:,} test samples right"
    if len(found.classes) > _MOST_CLASSES:
        return card("Confusions", _confusion_list(found, 20), "confusion", about)
    body = _matrix(found) + _confusion_list(found, 5) + _per_class(found)
    return card(
        "Confusion matrix", body, "confusion", f"{about}. Rows: what it is. Columns: what it was taken for."
    )


def _matrix(found: Classification) -> str:
    names = [escape(name) for name in found.classes]
    most_wrong = max((count for _, _, count in found.confusions()), default=1)
    head = "".join(f"<th scope=col><span>{name}</span></th>" for name in names)
    rows = []
    for i, name in enumerate(names):
        total = max(int(found.matrix[i].sum()), 1)
        cells = []
        for j, other in enumerate(names):
            count = int(found.matrix[i, j])
            kind, share = ("right", count / total) if i == j else ("wrong", math.sqrt(count / most_wrong))
            words = f"{name} read right" if i == j else f"{name} taken for {other}"
            if not count:
                cells.append("<td></td>")
                continue
            title = f"{words}: {count:,} of {total:,}"
            cells.append(f'<td class="{kind}" style="--share:{share:.3f}" title="{title}">{count:,}</td>')
        rows.append(f"<tr><th scope=row>{name}</th>{''.join(cells)}</tr>")
    longest = max(map(len, found.classes))
    long = "" if longest <= 3 else " long" if longest * len(names) <= 50 else " long upright"
    return (
        f'<table class="confusion{long}" style="--classes:{len(names)}"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _per_class(found: Classification) -> str:
    """How much of each class was found, and how often its name was right."""
    right, actual, said = np.diag(found.matrix), found.matrix.sum(1), found.matrix.sum(0)
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td class=n>{actual[i]:,}</td><td class=n>{_ratio(right[i], said[i])}</td>"
        f"<td class=n>{_ratio(right[i], actual[i])}</td><td class=n>{_ratio(2 * right[i], said[i] + actual[i])}</td></tr>"
        for i, name in enumerate(found.classes)
    )
    head = "<tr><th>class</th><th class=n>samples</th><th class=n>precision</th><th class=n>recall</th><th class=n>F1</th></tr>"
    return f'<div class=scroll><table class="data close"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _ratio(part: Any, whole: Any) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _confusion_list(found: Classification, most: int) -> str:
    entries = "".join(
        f"<li><b>{escape(found.classes[i])}</b> taken for <b>{escape(found.classes[j])}</b> "
        f"<span>{'once' if count == 1 else 'twice' if count == 2 else f'{count:,} times'}</span></li>"
        for i, j, count in found.confusions()[:most]
    )
    return f'<ol class="confusions">{entries}</ol>' if entries else ""


def examples_html(found: Classification) -> str:
    """The most confused examples, as images where they are images."""
    draw = _tiles if found.has_images else _example_table
    mistakes, doubts = found.mistakes, found.doubts
    if not found.wrong:
        about = "There is no mistake"
    elif found.wrong == len(mistakes):
        about = "Every mistake, the surest first" if found.wrong > 1 else "The only mistake"
    else:
        about = f"Of {found.wrong:,} mistakes, the {len(mistakes)} the model was surest of"
    body = draw(found, mistakes) if mistakes else ""
    if doubts:
        body += f"<p class=about>Right, but least certain.</p>{draw(found, doubts)}"
    return card("Most confused", body, "examples", f"{about}.")


def _tiles(found: Classification, examples: Sequence[Example]) -> str:
    tiles = []
    heading, names = sample_names(found.samples, [e.index for e in examples])
    for example, image, name in zip(examples, sample_pixels(found.inputs(examples)), names):
        was, taken = escape(found.classes[example.target]), escape(found.classes[example.predicted])
        right = example.target == example.predicted
        verdict = f"<b>{was}</b>" if right else f"<b>{was}</b><s>→</s><b class=bad>{taken}</b>"
        tiles.append(
            f'<li title="{heading} {escape(name)}: {was}, taken for {taken}">'
            f'<img src="{data_address(image)}" alt="a sample of {was}"><span>{verdict}</span>'
            f"<small>{_sureness(example)}</small></li>"
        )
    return f'<ul class="tiles">{"".join(tiles)}</ul>'


def _sureness(example: Example) -> str:
    return f"{100 * example.probability:.1f} %" if example.probability < 0.9995 else "over 99.9 %"


def _example_table(found: Classification, examples: Sequence[Example]) -> str:
    heading, names = sample_names(found.samples, [e.index for e in examples])
    rows = "".join(
        f"<tr><td class=n>{escape(name)}</td><td>{escape(found.classes[e.target])}</td>"
        f"<td>{escape(found.classes[e.predicted])}</td><td class=n>{_sureness(e)}</td></tr>"
        for e, name in zip(examples, names)
    )
    head = f"<tr><th class=n>{heading}</th><th>is</th><th>taken for</th><th class=n>sureness</th></tr>"
    return f"<div class=scroll><table class=data><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


# Quantities


def errors_html(found: Regression) -> str:
    """The samples that are furthest off."""
    worst = found.largest_errors()
    heading, names = sample_names(found.samples, [i // found.per_sample for i in worst])
    rows = "".join(
        f"<tr><td class=n>{escape(name)}</td><td class=n>{shown(found.targets[i])}</td><td class=n>{shown(found.predicted[i])}</td>"
        f"<td class=n>{shown(found.predicted[i] - found.targets[i])}</td></tr>"
        for i, name in zip(worst, names)
    )
    head = f"<tr><th class=n>{heading}</th><th class=n>wanted</th><th class=n>predicted</th><th class=n>off by</th></tr>"
    table = f"<div class=scroll><table class=data><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    return card("Largest errors", table, "errors")


# Text


def text_html(text: str, prompt: str) -> str:
    """What a language model writes."""
    begin = f"<b>{escape(prompt)}</b>" if prompt.strip() else escape(prompt)
    body = f"<pre class=text>{begin}{escape(text)}</pre>"
    return card("What it writes", body, "text", "Drawn from the best weights at temperature 0.8, seed 0.")


# The model


def filters_html(found: Filters) -> str:
    """The weights of the first layer as small images."""
    tiles = "".join(
        f'<img src="{data_address(pixels)}" alt="weights of unit {i}" title="{escape(found.layer)}[{i}]">'
        for i, pixels in enumerate(filter_pixels(found.weight))
    )
    key = (
        ""
        if found.weight.shape[1] == 3
        else " Blue is below 0, white is 0, orange is above; each is scaled by itself."
    )
    return card("First layer", f'<div class="filters {_size(len(found.weight))}" style="--count:{len(found.weight)}">{tiles}</div>', "filters", f"{escape(found.layer)}: {found.text}.{key}")  # fmt: skip


def _size(count: int) -> str:
    """Few filters are shown large."""
    return "large" if count <= 8 else "medium" if count <= 32 else "small"


def summary_html(summary: Summary) -> str:
    """The layers, what they give, and where the parameters are."""
    largest = max((row.parameters for row in summary.rows), default=1) or 1
    shapes = summary.output_nbytes is not None
    rows = []
    for row in summary.rows:
        output = f"<td class=n>{escape(' '.join(map(_shape, row.shapes)) or '–')}</td>" if shapes else ""
        bar = f'<i style="width:{100 * row.parameters / largest:.1f}%"></i>' if row.parameters else ""
        rows.append(
            f"<tr><td class=path>{escape(row.path or '(model)')}</td><td>{escape(row.layer)}</td>{output}"
            f"<td class=n>{row.parameters or '–':{',' if row.parameters else ''}}</td><td class=bar>{bar}</td></tr>"
        )
    output_head = "<th class=n>output</th>" if shapes else ""
    head = f"<tr><th>layer</th><th>type</th>{output_head}<th class=n>parameters</th><th></th></tr>"
    frozen = f", {summary.frozen:,} more are frozen" if summary.frozen else ""
    about = f"{summary.parameters:,} parameters{frozen}; {readable_bytes(summary.nbytes)}"
    table = f"<div class=scroll><table class=data><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    return card("Layers", table, "model", f"{about}.")


def weights_html(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The tensors of a weights file, where the model cannot be built again."""
    rows = "".join(
        f"<tr><td class=path>{escape(name)}</td><td class=n>{_shape(shape)}</td><td class=n>{math.prod(shape):,}</td></tr>"
        for name, shape in shapes.items()
    )
    head = "<tr><th>tensor</th><th class=n>shape</th><th class=n>numbers</th></tr>"
    total = sum(math.prod(shape) for shape in shapes.values())
    table = f"<div class=scroll><table class=data><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    return card("Weights", table, "model", f"{total:,} numbers in {len(shapes)} tensors.")


def _shape(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) or "scalar"


# The configuration


def configuration_html(settings: Mapping[str, Any]) -> str:
    """Every setting: single ones first, then a group for each that holds others."""
    single = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    groups = [("", single), *((n, value) for n, value in settings.items() if isinstance(value, Mapping))]
    body = "".join(_group(name, values) for name, values in groups if values)
    return card("Settings", body, "configuration")


def _group(name: str, values: Mapping[str, Any]) -> str:
    entries = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{_value(text)}</dd></div>" for label, text in flat_settings(values)
    )
    heading = f"<h4>{escape(_spoken(name))}</h4>" if name else ""
    return f"{heading}<dl class=settings>{entries}</dl>"


def _value(text: str) -> str:
    """A setting; a long one is folded, but whole."""
    if len(text) <= _MOST_CHARACTERS:
        return escape(text)
    return f"<details><summary>{escape(text[:_MOST_CHARACTERS])} …</summary>{escape(text[_MOST_CHARACTERS:])}</details>"


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, those of groups after the name of the group."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat_settings(value, f"{prefix}{_spoken(name)} · ")
        else:
            text = _setting(value)
            yield f"{prefix}{_spoken(name)}", text


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{_spoken(name)} {_setting(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        apart = "; " if any(isinstance(item, Mapping) for item in value) else ", "
        return apart.join(map(_setting, value)) or "none"
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", "−")
    if isinstance(value, str):
        return value if value.isprintable() else repr(value)
    return (
        {None: "–", True: "yes", False: "no"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )
