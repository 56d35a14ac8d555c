"""Operators of classical machine learning (ai.onnx.ml)."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value, ints_of
from ..table import opaque, operator

__all__: list[str] = []

_DOMAIN = "ai.onnx.ml"


@operator("ArrayFeatureExtractor", domain=_DOMAIN)
def array_feature_extractor(x: Any, places: Any) -> Any:
    """Columns of x."""
    rows = x.reshape((1, -1)) if x.ndim == 1 else x
    return et.take(rows, as_value(np.array(ints_of(places))), -1)


@operator("Binarizer", domain=_DOMAIN)
def binarizer(x: Any, *, threshold: float = 0.0) -> Any:
    """1 above a threshold, else 0."""
    return et.astype(et.greater(x, threshold), x.dtype)


@operator("LabelEncoder", domain=_DOMAIN, since=2)
@opaque
def label_encoder(
    x: Any, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, keys_floats: Any = None, keys_int64s: Any = None, keys_strings: Any = None,
    keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None, values_strings: Any = None,
    values_tensor: Any = None,
) -> Any:  # fmt: skip
    """Every element looked up in a table; another value where it is not there."""
    keys = [k for k in (keys_floats, keys_int64s, keys_strings) if k is not None]
    wanted = array_of(keys_tensor).tolist() if keys_tensor is not None else keys[0]
    choices: list[tuple[Any, Any, Any]] = [
        (values_floats, default_float, np.float32), (values_int64s, default_int64, np.int64),
        (values_strings, default_string, object),
    ]  # fmt: skip
    if values_tensor is not None:
        values, dtype = array_of(values_tensor).tolist(), array_of(values_tensor).dtype
        other = array_of(default_tensor).reshape(-1)[0] if default_tensor is not None else None
        if other is None:
            other = (
                default_string if dtype.kind == "O" else default_float if dtype.kind == "f" else default_int64
            )
    else:
        values, other, dtype = next(c for c in choices if c[0] is not None)
    table = {k: v for k, v in zip(wanted, values) if k == k}
    nan = next((v for k, v in zip(wanted, values) if k != k), None)
    items = array_of(x)
    found = [nan if v != v and nan is not None else table.get(v, other) for v in items.reshape(-1).tolist()]
    return as_value(np.array(found, dtype).reshape(items.shape))


# leaf or branch: x[feature] <= split and so on
_TESTS = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]
_MEMBER = 6


@operator("TreeEnsemble", domain=_DOMAIN, since=5)
@opaque
def tree_ensemble(
    x: Any, *, leaf_targetids: list[int], leaf_weights: Any, nodes_falseleafs: list[int], nodes_falsenodeids: list[int],
    nodes_featureids: list[int], nodes_modes: Any, nodes_splits: Any, nodes_trueleafs: list[int],
    nodes_truenodeids: list[int], tree_roots: list[int], aggregate_function: int = 1, membership_values: Any = None,
    n_targets: int = 1, nodes_hitrates: Any = None, nodes_missing_value_tracks_true: list[int] | None = None,
    post_transform: int = 0,
) -> Any:  # fmt: skip
    """Decision trees: each leads a row to a leaf, whose weight goes to a target; sum, mean, least or greatest."""
    if post_transform:
        raise NotImplementedError(f"[TreeEnsemble] post_transform {post_transform} is not supported")
    rows = array_of(x)
    modes, splits, weights = array_of(nodes_modes), array_of(nodes_splits), array_of(leaf_weights)
    members = _member_sets(membership_values, modes)
    start = {0: 0.0, 1: 0.0, 2: np.inf, 3: -np.inf}[aggregate_function]
    found = np.full((len(rows), n_targets), start, rows.dtype)
    join = {0: np.add, 1: np.add, 2: np.minimum, 3: np.maximum}[aggregate_function]
    for result, row in zip(found, rows):
        for root in tree_roots:
            place, leaf = root, False
            if (
                nodes_trueleafs[root]
                and nodes_truenodeids[root] == nodes_falsenodeids[root]
                and nodes_falseleafs[root]
            ):
                place, leaf = nodes_truenodeids[root], True  # a tree of one leaf
            for _ in range(len(modes) + 1):
                if leaf:
                    break
                value = row[nodes_featureids[place]]
                mode = int(modes[place])
                holds = (
                    value in members[place] if mode == _MEMBER else bool(_TESTS[mode](value, splits[place]))
                )
                if (
                    np.isnan(value)
                    and nodes_missing_value_tracks_true
                    and nodes_missing_value_tracks_true[place]
                ):
                    holds = True
                ids, leafs = (
                    (nodes_truenodeids, nodes_trueleafs) if holds else (nodes_falsenodeids, nodes_falseleafs)
                )
                place, leaf = ids[place], bool(leafs[place])
            if not leaf:
                raise ValueError("[TreeEnsemble] a tree leads in a circle")
            target = leaf_targetids[place]
            result[target] = join(result[target], weights[place])
    return as_value(found / len(tree_roots) if aggregate_function == 0 else found)


def _member_sets(values: Any, modes: np.ndarray) -> dict[int, set[float]]:
    """The sets of the nodes that ask for membership, which follow each other with nan between them."""
    sets: list[set[float]] = [set()]
    for v in array_of(values).tolist() if values is not None else []:
        if v != v:
            sets.append(set())
        else:
            sets[-1].add(v)
    places = [i for i, mode in enumerate(modes) if mode == _MEMBER]
    return {place: sets[i] if i < len(sets) else set() for i, place in enumerate(places)}
