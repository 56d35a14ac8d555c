"""Strings."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..proto import array_of, as_value
from ..table import operator

__all__: list[str] = []


@operator("StringConcat")
def string_concat(a: Any, b: Any) -> Any:
    """Texts joined, with broadcasting."""
    left, right = np.broadcast_arrays(array_of(a), array_of(b))
    return np.array([x + y for x, y in zip(left.reshape(-1), right.reshape(-1))], object).reshape(left.shape)


@operator("StringNormalizer")
def string_normalizer(
    x: Any, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str = "en_US",
    stopwords: list[str] | None = None,
) -> Any:  # fmt: skip
    """Without stop words, in upper or lower case; the empty text where nothing is left."""
    texts = array_of(x)
    rows = texts.reshape((-1, texts.shape[-1])) if texts.ndim == 2 else texts.reshape((1, -1))
    stop = set(stopwords or ())
    folded = {w.lower() for w in stop}
    change: Any = {"UPPER": str.upper, "LOWER": str.lower, "NONE": str}[case_change_action]
    kept = []
    for row in rows:
        left = [t for t in row if (t not in stop if is_case_sensitive else t.lower() not in folded)]
        kept.append([change(t) for t in left] or [""])
    width = max(map(len, kept), default=0)
    found = np.array([row + [""] * (width - len(row)) for row in kept], object)
    return found if texts.ndim == 2 else found[0]


@operator("StringSplit")
def string_split(x: Any, *, delimiter: str | None = None, maxsplit: int | None = None) -> Any:
    """The parts of each text along a new last axis, and how many there are."""
    texts = array_of(x)
    most = -1 if maxsplit is None else maxsplit
    parts = [t.split(delimiter or None, most) if t or not delimiter else [""] for t in texts.reshape(-1)]
    counts = np.array([len(p) for p in parts], np.int64).reshape(texts.shape)
    width = int(counts.max()) if counts.size else 0
    padded = [p + [""] * (width - len(p)) for p in parts]
    return np.array(padded, object).reshape((*texts.shape, width)), as_value(counts)


@operator("RegexFullMatch")
def regex_full_match(x: Any, *, pattern: str) -> Any:
    """Whether a whole text fits a pattern."""
    texts = array_of(x)
    expression = re.compile(pattern)
    return as_value(
        np.array([expression.fullmatch(t) is not None for t in texts.reshape(-1)], bool).reshape(texts.shape)
    )


@operator("TfIdfVectorizer")
def tf_idf_vectorizer(
    x: Any, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str, ngram_counts: list[int],
    ngram_indexes: list[int], pool_int64s: list[int] | None = None, pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Any:  # fmt: skip
    """How often each n-gram of a pool is in each row (TF), whether it is (IDF), or both times a weight (TFIDF)."""
    pool: list[Any] = list(pool_strings or pool_int64s or [])
    places, number = {}, 0
    for i, start in enumerate(ngram_counts):
        end = ngram_counts[i + 1] if i + 1 < len(ngram_counts) else len(pool)
        for j in range(start, end, i + 1):
            if i + 1 >= min_gram_length and i + 1 <= max_gram_length:
                places[tuple(pool[j : j + i + 1])] = number
            number += 1
    items = array_of(x)
    rows = items if items.ndim == 2 else items.reshape((1, -1))
    width = max(ngram_indexes, default=-1) + 1
    found = np.zeros((len(rows), width), np.float32)
    for result, row in zip(found, rows.tolist()):
        for size in range(min_gram_length, max_gram_length + 1):
            for skip in range(max_skip_count + 1 if size > 1 else 1):
                reach = (size - 1) * (skip + 1)
                for start in range(len(row) - reach):
                    gram = tuple(row[start : start + reach + 1 : skip + 1])
                    if gram in places:
                        result[ngram_indexes[places[gram]]] += 1
    factors = np.ones(width, np.float32)
    if weights:
        for index, weight in zip(ngram_indexes, weights):
            factors[index] = weight
    if mode == "IDF":
        found = (found > 0) * factors
    elif mode == "TFIDF":
        found = found * factors
    elif mode != "TF":
        raise NotImplementedError(f"[TfIdfVectorizer] the mode {mode!r} is not known")
    return as_value((found if items.ndim == 2 else found[0]).astype(np.float32))
