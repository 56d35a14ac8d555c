"""Random options, shapes and values of layers and losses, ours beside PyTorch's: the result and every gradient.

Each function below draws the arguments of one operation and returns ``Case``: the arrays to differentiate by, and the
operation as each library calls it. PyTorch is not needed by any test: without it this part of the campaign says so and rests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import extensor as et

Rng = np.random.Generator


class Case(NamedTuple):
    told: str
    arrays: list[np.ndarray]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


def library() -> Any:
    """PyTorch on one thread, or None."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


def difference(torch: Any, name: str, seed: int) -> str:
    """What PyTorch says otherwise, or nothing.

    The right answer is PyTorch's in float64. In float32 we may be as far from it as PyTorch is, several times over: rounding
    alone explains that where numbers cancel.
    """
    rng = np.random.default_rng(seed)
    case = CASES[name](torch, rng)
    dtype, tolerance = [(np.float64, 1e-9), (np.float32, 2e-4)][int(rng.integers(2))]
    arrays = [np.asarray(array, dtype) for array in case.arrays]
    told = f"{name} {case.told}, {np.dtype(dtype)}"
    seed_of_gradient = int(rng.integers(1 << 31))
    asked: Exception | None = None
    try:
        right = _by_pytorch(torch, case, [array.astype(np.float64) for array in arrays], seed_of_gradient)
        peers = _by_pytorch(torch, case, arrays, seed_of_gradient)
    except Exception as error:  # whatever PyTorch refuses by
        asked = error
    ours = [et.tensor(_laid_out(array, rng), requires_grad=True) for array in arrays]
    try:
        result = case.ours(*ours)
    except (ValueError, TypeError) as error:
        return "" if asked else f"{told}: refused by us alone: {error}"
    if asked:
        return f"{told}: refused by PyTorch alone: {asked}"
    if str(result.dtype) != str(np.dtype(dtype)) or result.shape != right[0].shape:
        return f"{told}: the result is {result.dtype} {result.shape}, not {right[0].shape}"
    result.backward(et.tensor(_upstream(result.shape, seed_of_gradient).astype(dtype)))
    found = [result, *(x.grad if x.grad is not None else et.zeros_like(x) for x in ours)]
    for place, (mine, other, exact) in enumerate(zip(found, peers, right)):
        if problem := _too_far(mine.numpy(), other, exact, tolerance):
            return f"{told}: {f'gradient {place - 1}' if place else 'the result'} {problem}"
    return ""


def _by_pytorch(torch: Any, case: Case, arrays: list[np.ndarray], seed: int) -> list[np.ndarray]:
    """The result and every gradient."""
    given = [torch.from_numpy(np.array(array)).requires_grad_() for array in arrays]
    result = case.theirs(*given)
    upstream = _upstream(tuple(result.shape), seed)
    result.backward(torch.from_numpy(upstream).to(result.dtype))
    grads = [torch.zeros_like(x) if x.grad is None else x.grad for x in given]
    return [x.detach().numpy() for x in (result, *grads)]


def _upstream(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def _too_far(found: np.ndarray, peer: np.ndarray, exact: np.ndarray, tolerance: float) -> str:
    if found.shape != exact.shape:
        return f"has the shape {found.shape}, not {exact.shape}"
    size = max(1.0, float(np.abs(exact[np.isfinite(exact)]).max(initial=0)))
    with np.errstate(invalid="ignore"):
        theirs, ours = (float(np.nan_to_num(np.abs(x - exact)).max(initial=0)) for x in (peer, found))
    odd = (np.isnan(found) != np.isnan(exact)).any() or (np.isinf(found) != np.isinf(exact)).any()
    if not odd and ours <= tolerance * size + 8 * theirs:
        return ""
    return f"is {ours:.3g} from the right one, PyTorch's {theirs:.3g}, at a size of {size:.3g}"


def _laid_out(array: np.ndarray, rng: Rng) -> np.ndarray:
    """The same numbers, at times in another order in memory."""
    if array.ndim < 2 or rng.random() < 0.7:
        return array
    order = rng.permutation(array.ndim)
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def _draw(rng: Rng, *shape: int) -> np.ndarray:
    return rng.normal(size=shape)


def _less(rng: Rng, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return int(rng.integers(low, high + 1))


def _several(rng: Rng, count: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(_less(rng, low, high) for _ in range(count))


def _flag(rng: Rng) -> bool:
    return bool(rng.integers(2))


def _convolution(axes: int, transposed: bool) -> Callable[[Any, Rng], Case]:
    def draw(torch: Any, rng: Rng) -> Case:
        groups = _less(rng, 1, 3)
        into, out = groups * _less(rng, 1, 3), groups * _less(rng, 1, 3)
        kernel = _several(rng, axes, 1, 4)
        stride, dilation = _several(rng, axes, 1, 3), _several(rng, axes, 1, 2)
        padding = _several(rng, axes, 0, 2)
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
        least = [2 * p + 1 if transposed else max(1, r - 2 * p) for r, p in zip(reach, padding)]
        size = [low + _less(rng, 0, 9) for low in least]
        channels = (into, out // groups) if transposed else (out, into // groups)
        arrays = [_draw(rng, _less(rng, 1, 3), into, *size), _draw(rng, *channels, *kernel)]
        if _flag(rng):
            arrays.append(_draw(rng, out))
        options: dict[str, Any] = {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
        }
        if transposed:
            options["output_padding"] = tuple(_less(rng, 0, max(s, d) - 1) for s, d in zip(stride, dilation))
        name = f"conv{'_transpose' * transposed}{axes}d"
        ours, theirs = getattr(et, name), getattr(torch.nn.functional, name)
        return Case(
            f"of {[array.shape for array in arrays]}, {options}",
            arrays,
            lambda *given: ours(*given, **options),
            lambda *given: theirs(*given, **options),
        )

    return draw


def _pooling(kind: str, axes: int) -> Callable[[Any, Rng], Case]:
    def draw(torch: Any, rng: Rng) -> Case:
        kernel = _several(rng, axes, 1, 4)
        options: dict[str, Any] = {
            "stride": _several(rng, axes, 1, 4),
            "padding": tuple(_less(rng, 0, k // 2) for k in kernel),
            "ceil_mode": _flag(rng),
        }
        if kind == "max":
            options["dilation"] = _several(rng, axes, 1, 2)
        else:
            options["count_include_pad"] = _flag(rng)
        size = [2 * k + _less(rng, 0, 6) for k in kernel]
        x = _draw(rng, _less(rng, 1, 3), _less(rng, 1, 3), *size)
        ours, theirs = getattr(et, f"{kind}_pool{axes}d"), getattr(torch.nn.functional, f"{kind}_pool{axes}d")
        return Case(
            f"of {x.shape}, {kernel}, {options}",
            [x],
            lambda x: ours(x, kernel, **options),
            lambda x: theirs(x, kernel, **options),
        )

    return draw


def _adaptive(kind: str) -> Callable[[Any, Rng], Case]:
    def draw(torch: Any, rng: Rng) -> Case:
        x, size = _draw(rng, *_several(rng, 2, 1, 3), *_several(rng, 2, 1, 9)), _several(rng, 2, 1, 9)
        name = f"adaptive_{kind}_pool2d"
        ours, theirs = getattr(et, name), getattr(torch.nn.functional, name)
        return Case(f"of {x.shape} to {size}", [x], lambda x: ours(x, size), lambda x: theirs(x, size))

    return draw


def _elementwise(name: str, **options: tuple[str, float]) -> Callable[[Any, Rng], Case]:
    """``options``: our name of an option, PyTorch's, and where its values start."""

    def draw(torch: Any, rng: Rng) -> Case:
        x = _draw(rng, *_several(rng, _less(rng, 0, 4), 0, 5)) * 3
        values = {key: low + rng.random() for key, (_, low) in options.items()}
        other = {theirs: values[key] for key, (theirs, _) in options.items()}
        ours, theirs = getattr(et, name), getattr(torch.nn.functional, name, None) or getattr(torch, name)
        return Case(f"of {x.shape}, {values}", [x], lambda x: ours(x, **values), lambda x: theirs(x, **other))

    return draw


def _along_axis(name: str) -> Callable[[Any, Rng], Case]:
    def draw(torch: Any, rng: Rng) -> Case:
        x = _draw(rng, *_several(rng, _less(rng, 1, 4), 1, 6))
        axis = _less(rng, -x.ndim, x.ndim - 1)
        ours, theirs = getattr(et, name), getattr(torch, name)
        return Case(f"of {x.shape}, {axis}", [x], lambda x: ours(x, axis=axis), lambda x: theirs(x, dim=axis))

    return draw


def _reduction(name: str, theirs_named: str | None = None) -> Callable[[Any, Rng], Case]:
    def draw(torch: Any, rng: Rng) -> Case:
        x = _draw(rng, *_several(rng, _less(rng, 1, 4), 2, 5))
        axes = tuple(int(a) for a in rng.permutation(x.ndim)[: _less(rng, 1, x.ndim)])
        keep = _flag(rng)
        mine: dict[str, Any] = {"axis": axes, "keepdims": keep}
        other: dict[str, Any] = {"dim": axes, "keepdim": keep}
        if name in ("var", "std"):
            mine["ddof"] = other["correction"] = _less(rng, 0, 1)
        ours, theirs = getattr(et, name), getattr(torch, theirs_named or name)
        return Case(f"of {x.shape}, {mine}", [x], lambda x: ours(x, **mine), lambda x: theirs(x, **other))

    return draw


def _normalised(name: str) -> Callable[[Any, Rng], Case]:
    def draw(torch: Any, rng: Rng) -> Case:
        groups = _less(rng, 1, 3)
        channels = groups * _less(rng, 1, 3)
        x = _draw(rng, _less(rng, 2, 4), channels, *_several(rng, _less(rng, 1, 2), 2, 6))
        functional, eps = torch.nn.functional, float(10.0 ** rng.integers(-7, -1))
        shape: tuple[int, ...] = (channels,)
        if name in ("layer_norm", "rms_norm"):
            shape = x.shape[-_less(rng, 1, x.ndim - 1) :]
        arrays = [x, _draw(rng, *shape)] + ([_draw(rng, *shape)] if name != "rms_norm" else [])
        calls: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
            "layer_norm": (
                lambda x, w, b: et.layer_norm(x, shape, w, b, eps),
                lambda x, w, b: functional.layer_norm(x, shape, w, b, eps),
            ),
            "rms_norm": (
                lambda x, w: et.rms_norm(x, shape, w, eps),
                lambda x, w: functional.rms_norm(x, shape, w, eps),
            ),
            "group_norm": (
                lambda x, w, b: et.group_norm(x, groups, w, b, eps),
                lambda x, w, b: functional.group_norm(x, groups, w, b, eps),
            ),
            "instance_norm": (
                lambda x, w, b: et.instance_norm(x, w, b, eps),
                lambda x, w, b: functional.instance_norm(x, weight=w, bias=b, eps=eps),
            ),
            "batch_norm": (
                lambda x, w, b: et.batch_norm(x, w, b, None, None, training=True, eps=eps)[0],
                lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True, eps=eps),
            ),
        }
        return Case(f"of {x.shape}, {shape}, {groups} groups, eps {eps}", arrays, *calls[name])

    return draw


def _cross_entropy(torch: Any, rng: Rng) -> Case:
    rows, classes = _less(rng, 1, 7), _less(rng, 1, 6)
    labels = rng.integers(0, classes, rows)
    options: dict[str, Any] = {
        "label_smoothing": float(rng.choice([0.0, 0.1, 0.5])),
        "reduction": str(rng.choice(["mean", "sum", "none"])),
    }
    if _flag(rng):
        options["ignore_index"] = _less(rng, 0, classes)
    weight = rng.random(classes) + 0.1 if _flag(rng) else None

    def theirs(x: Any) -> Any:
        given = None if weight is None else torch.from_numpy(weight).to(x.dtype)
        return torch.nn.functional.cross_entropy(x, torch.from_numpy(labels), weight=given, **options)

    def ours(x: et.ExTensor) -> et.ExTensor:
        given = None if weight is None else et.tensor(weight.astype(str(x.dtype)))
        return et.cross_entropy(x, et.tensor(labels), weight=given, **options)

    return Case(f"of {rows}x{classes}, {options}, weight {weight}", [_draw(rng, rows, classes)], ours, theirs)


def _logits(torch: Any, rng: Rng) -> Case:
    shape = _several(rng, _less(rng, 1, 3), 1, 6)
    reduction = str(rng.choice(["mean", "sum", "none"]))
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    targets = rng.integers(0, 5, shape) / 4
    return Case(
        f"of {shape}, {reduction}",
        [_draw(rng, *shape) * 20],
        lambda x: et.binary_cross_entropy_with_logits(
            x, et.tensor(targets.astype(str(x.dtype))), reduction=reduction
        ),
        lambda x: loss(x, torch.from_numpy(targets).to(x.dtype), reduction=reduction),
    )


def _matmul(torch: Any, rng: Rng) -> Case:
    m, k, n = _several(rng, 3, 1, 40)
    batch = _several(rng, _less(rng, 0, 2), 1, 3)
    first = tuple(1 if rng.random() < 0.3 else b for b in batch)
    second = batch[_less(rng, 0, len(batch)) :]
    arrays = [_draw(rng, *first, m, k), _draw(rng, *second, k, n)]
    return Case(f"of {[a.shape for a in arrays]}", arrays, et.matmul, torch.matmul)


def _linear(torch: Any, rng: Rng) -> Case:
    into, out = _several(rng, 2, 1, 40)
    arrays = [_draw(rng, *_several(rng, _less(rng, 0, 3), 1, 5), into), _draw(rng, out, into)]
    if _flag(rng):
        arrays.append(_draw(rng, out))
    return Case(f"of {[a.shape for a in arrays]}", arrays, et.linear, torch.nn.functional.linear)


def _attention(torch: Any, rng: Rng) -> Case:
    batch, heads, queries, keys, width, depth = _several(rng, 6, 1, 6)
    causal = _flag(rng)
    keys = queries if causal else keys
    scale = float(rng.random()) + 0.1 if _flag(rng) else None
    arrays = [
        _draw(rng, batch, heads, queries, width),
        _draw(rng, batch, heads, keys, width),
        _draw(rng, batch, heads, keys, depth),
    ]
    attend = torch.nn.functional.scaled_dot_product_attention
    return Case(
        f"of {[a.shape for a in arrays]}, causal {causal}, scale {scale}",
        arrays,
        lambda q, k, v: et.scaled_dot_product_attention(q, k, v, causal=causal, scale=scale),
        lambda q, k, v: attend(q, k, v, is_causal=causal, scale=scale),
    )


def _interpolate(torch: Any, rng: Rng) -> Case:
    mode = str(rng.choice(["nearest", "bilinear", "bicubic"]))
    x, size = _draw(rng, *_several(rng, 2, 1, 2), *_several(rng, 2, 1, 8)), _several(rng, 2, 1, 12)
    options: dict[str, Any] = {"size": size, "mode": mode}
    if mode != "nearest":
        options["align_corners"] = _flag(rng)
    return Case(
        f"of {x.shape}, {options}",
        [x],
        lambda x: et.interpolate(x, **options),
        lambda x: torch.nn.functional.interpolate(x, **options),
    )


def _grid_sample(torch: Any, rng: Rng) -> Case:
    x = _draw(rng, _less(rng, 1, 2), _less(rng, 1, 3), *_several(rng, 2, 2, 7))
    grid = rng.uniform(-1.3, 1.3, (x.shape[0], *_several(rng, 2, 1, 6), 2))
    options = {
        "mode": str(rng.choice(["bilinear", "nearest"])),
        "padding_mode": str(rng.choice(["zeros", "border", "reflection"])),
        "align_corners": _flag(rng),
    }
    return Case(
        f"of {x.shape}, {grid.shape}, {options}",
        [x, grid],
        lambda x, grid: et.grid_sample(x, grid, **options),
        lambda x, grid: torch.nn.functional.grid_sample(x, grid, **options),
    )


def _embedding(torch: Any, rng: Rng) -> Case:
    rows, width = _several(rng, 2, 1, 9)
    indices = rng.integers(0, rows, _several(rng, _less(rng, 1, 3), 1, 4))
    skipped = _less(rng, 0, rows - 1) if _flag(rng) else None
    return Case(
        f"of {rows}x{width} at {indices.tolist()}, padding_idx {skipped}",
        [_draw(rng, rows, width)],
        lambda w: et.embedding(et.tensor(indices), w, skipped),
        lambda w: torch.nn.functional.embedding(torch.from_numpy(indices), w, skipped),
    )


EINSUMS = (
    "ij,jk->ik",
    "bij,bjk->bik",
    "ij,ij->",
    "ij->ji",
    "i,j->ij",
    "bhqd,bhkd->bhqk",
    "ii->i",
    "ij,kj,k->i",
)


def _einsum(torch: Any, rng: Rng) -> Case:
    subscripts = str(rng.choice(EINSUMS))
    lengths = {letter: _less(rng, 1, 6) for letter in "bhijkdq"}
    parts = subscripts.split("->", maxsplit=1)[0].split(",")
    arrays = [_draw(rng, *(lengths[letter] for letter in part)) for part in parts]
    return Case(
        f"{subscripts} of {[a.shape for a in arrays]}",
        arrays,
        lambda *given: et.einsum(subscripts, *given),
        lambda *given: torch.einsum(subscripts, *given),
    )


CASES: dict[str, Callable[[Any, Rng], Case]] = {
    **{f"conv{axes}d": _convolution(axes, False) for axes in (1, 2, 3)},
    **{f"conv_transpose{axes}d": _convolution(axes, True) for axes in (1, 2, 3)},
    **{f"{kind}_pool{axes}d": _pooling(kind, axes) for kind in ("max", "avg") for axes in (1, 2, 3)},
    **{f"adaptive_{kind}_pool2d": _adaptive(kind) for kind in ("max", "avg")},
    **{name: _elementwise(name) for name in ("exp", "tanh", "sigmoid", "silu", "mish", "relu", "erf", "sin")},
    "gelu": _elementwise("gelu"),
    "elu": _elementwise("elu", alpha=("alpha", 0.1)),
    "leaky_relu": _elementwise("leaky_relu", alpha=("negative_slope", 0.0)),
    "softplus": _elementwise("softplus", beta=("beta", 0.5)),
    **{name: _along_axis(name) for name in ("softmax", "log_softmax", "cumsum", "cumprod")},
    **{name: _reduction(name) for name in ("sum", "mean", "var", "std", "logsumexp")},
    "max": _reduction("max", "amax"),
    **{
        f"{kind}_norm": _normalised(f"{kind}_norm") for kind in ("layer", "rms", "group", "instance", "batch")
    },
    "cross_entropy": _cross_entropy,
    "binary_cross_entropy_with_logits": _logits,
    "matmul": _matmul,
    "linear": _linear,
    "scaled_dot_product_attention": _attention,
    "interpolate": _interpolate,
    "grid_sample": _grid_sample,
    "embedding": _embedding,
    "einsum": _einsum,
}
