"""The bits of every kernel, as hashes by name: run in a process for each instruction set, which must print the same.

    EXTENSOR_ISA=avx2 python tests/support/isa_bits.py [--every N] [family ...] > avx2.json

``--every 10`` runs one check in ten.
What a nan looks like is left out of the hashes: its sign and payload are the processor's business. Where a kernel has no native
twin for a call, NumPy computes it, whose bits may depend on the processor: the names of such kernels follow the hash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import ml_dtypes
import numpy as np

import extensor as et
from extensor import nn, optim
from extensor.dtypes import FLOATING
from extensor.kernels.dispatch import Kernel
from extensor.testing.calls import Call, floating_arrays, floating_outputs, strided
from extensor.testing.registry import Case, Draw
from extensor.testing.verifier import find_op, library_subjects

DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
WIDE = DTYPES[:2]
LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 255, 257, 500, 1000, 2049, 4100, 70_001)  # fmt: skip
# Overflow, underflow and what lies between
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, 3.0, 1e-300, 1e300, 1e-40, 5e-324, 88.7, -87.5, -104.0, 709.8, -745.2)  # fmt: skip
REDUCTIONS = (
    "sum", "mean", "prod", "max_reduce", "min_reduce", "variance", "std", "logsumexp", "softmax", "log_softmax", "argmax", "cumsum",
)  # fmt: skip
# rows, columns, depth
MATRICES = (
    (1, 1, 1), (1, 1, 9), (1, 1, 5000), (1, 1, 70000), (1, 40, 7), (1, 40, 12), (1, 600, 33), (1, 700, 900), (2, 3, 5),
    (2, 50, 10), (2, 50, 900), (3, 3, 3), (3, 9, 100), (5, 5, 13), (8, 8, 8), (9, 40, 12), (10, 40, 12), (4, 10, 6000), (13, 33, 65),
    (17, 1, 40), (40, 2, 900), (64, 64, 64), (31, 100, 400), (100, 31, 1000), (97, 130, 257), (120, 110, 4000), (200, 300, 500),
    (30, 40, 1), (7, 9, 1), (7, 17, 1), (1, 20, 1), (257, 3, 20), (33, 16, 15), (33, 16, 8), (9, 9, 11),
)  # fmt: skip
# images, groups, inputs, outputs, height, width, kernel, stride, padding, dilation
CONVOLUTIONS = (
    (1, 1, 1, 1, 5, 5, 3, 1, 0, 1), (2, 1, 1, 6, 28, 28, 5, 1, 2, 1), (3, 1, 6, 16, 14, 14, 5, 1, 0, 1), (2, 1, 3, 16, 32, 32, 3, 1, 1, 1),
    (4, 1, 16, 16, 32, 32, 3, 1, 1, 1), (4, 1, 32, 32, 16, 16, 3, 1, 1, 1), (4, 1, 64, 64, 8, 8, 3, 1, 1, 1), (2, 1, 16, 32, 32, 32, 3, 2, 1, 1),
    (2, 1, 32, 64, 16, 16, 3, 2, 1, 1), (2, 1, 16, 32, 17, 19, 1, 2, 0, 1), (2, 1, 7, 9, 13, 11, 3, 1, 1, 1), (2, 1, 8, 9, 9, 7, 3, 2, 1, 2),
    (2, 8, 1, 1, 12, 17, 3, 1, 1, 1), (2, 4, 1, 1, 30, 9, 5, 1, 2, 1), (2, 3, 2, 4, 10, 10, 3, 1, 1, 1), (3, 1, 5, 12, 4, 4, 3, 1, 1, 1),
    (2, 1, 20, 24, 7, 7, 3, 1, 1, 1), (8, 1, 40, 24, 21, 23, 3, 1, 1, 1), (1, 1, 130, 70, 15, 15, 3, 1, 1, 1), (2, 1, 3, 8, 40, 50, 7, 2, 3, 1),
    (2, 1, 100, 30, 6, 5, 3, 1, 1, 1), (9, 1, 17, 33, 20, 20, 3, 1, 1, 1), (16, 1, 16, 32, 28, 28, 3, 1, 1, 1), (2, 1, 12, 10, 3, 40, 3, 1, 1, 1),
    (2, 1, 4, 8, 30, 30, 1, 1, 0, 1), (3, 1, 6, 16, 10, 10, 5, 1, 4, 1), (2, 1, 3, 5, 8, 8, 3, 3, 0, 1), (32, 1, 6, 16, 14, 14, 5, 1, 0, 1),
    (32, 1, 1, 6, 28, 28, 5, 1, 2, 1), (2, 1, 2, 3, 60, 70, 3, 1, 1, 1),
)  # fmt: skip
# height, width, size, stride, padding
POOLS = ((8, 8, 2, 2, 0), (9, 13, 2, 2, 0), (30, 41, 3, 2, 1), (7, 7, 3, 1, 1), (24, 24, 2, 2, 0))
# queries, keys, features
ATTENTIONS = ((1, 1, 1), (5, 7, 3), (16, 16, 8), (33, 47, 17), (64, 129, 32), (130, 70, 24))
# batch, steps, inputs, hidden
SEQUENCES = ((1, 3, 2, 5), (5, 4, 7, 17), (33, 5, 16, 32), (3, 2, 40, 300))

NUMPY = "by NumPy:"

Check = tuple[str, Callable[[], Any]]


def add(digest: Any, value: Any) -> None:
    """Tensors, arrays and whatever holds them into a hash, every nan the same."""
    if isinstance(value, et.ExTensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fcV" and value.dtype.itemsize > 1:
            value = np.where(np.isnan(value), np.asarray(np.nan, value.dtype), value)
        digest.update(f"{value.shape}{value.dtype}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        for item in value:
            add(digest, item)
    else:
        digest.update(repr(value).encode())


def fractions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers in [-1, 1), from integers: NumPy's other ways to draw them round differently on different processors."""
    return rng.integers(-(1 << 52), 1 << 52, shape) / 2.0**52


def of_all_sizes(rng: np.random.Generator, least: int, most: int, *shape: int) -> np.ndarray:
    """Numbers times powers of two."""
    return np.ldexp(fractions(rng, *shape), rng.integers(least, most + 1, shape))


def values(rng: np.random.Generator, dtype: Any, *shape: int) -> et.ExTensor:
    """Numbers of several sizes, zeros of both signs among them."""
    x = of_all_sizes(rng, -4, 4, *shape)
    return et.ExTensor(np.where(rng.integers(0, 50, shape) == 0, np.copysign(0.0, x), x).astype(dtype))


def cancelling(rng: np.random.Generator, dtype: Any, *shape: int) -> et.ExTensor:
    """Numbers of all sizes, nearly each with its opposite somewhere: the order of their sum decides what is left of it."""
    most = 25 if np.dtype(dtype).itemsize >= 4 else 6
    x = of_all_sizes(rng, -most, most, *shape).ravel()
    half = x.size // 2
    x[half : 2 * half] = -x[:half]
    return et.ExTensor(rng.permutation(x).reshape(shape).astype(dtype))


def calm(rng: np.random.Generator, dtype: Any, *shape: int) -> et.ExTensor:
    """Numbers of like sizes, as Winograd's method wants them."""
    return et.ExTensor(fractions(rng, *shape).astype(dtype))


def flat(value: Any) -> list[et.ExTensor]:
    """All tensors of a result."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(item)]
    return [value] if isinstance(value, et.ExTensor) else []


def recorded(function: Callable[..., Any], *inputs: et.ExTensor, constants: Any = ()) -> list[Any]:
    """Results and gradients, from upstream gradients that are not all alike."""
    rng = np.random.default_rng(2)
    leaves = [et.ExTensor(x.numpy(), x.dtype in FLOATING) for x in inputs]
    result = function(*leaves, *constants)
    outputs = [y for y in flat(result) if y.requires_grad]
    for k, y in enumerate(outputs):
        y.backward(values(rng, y.dtype, *y.shape), retain_graph=k + 1 < len(outputs))
    return [result, *(x.grad for x in leaves)]


def elementwise(rng: np.random.Generator) -> Iterator[Check]:
    """Every function of one or two tensors that works element by element, over all magnitudes, with tails and special numbers."""
    for dtype in DTYPES:
        with np.errstate(all="ignore"):
            far = of_all_sizes(rng, -130, 14, 4999).astype(dtype)
            near, other = ((most * fractions(rng, 4999)).astype(dtype) for most in (12, 4))
            far[: len(SPECIAL)] = np.asarray(SPECIAL).astype(dtype)
            other[7 : 7 + len(SPECIAL)] = np.asarray(SPECIAL[::-1]).astype(dtype)
        for subject in library_subjects():
            case = next(iter(subject.pair.cases(Draw(0))))
            count, op = len(floating_arrays(case)), partial(find_op(subject.name), **case.kwargs)
            if len(case.args) == count and 1 <= count <= 2 and _keeps_shape(op, count):
                for label, x in (("far", far), ("near", near)):
                    inputs = [et.ExTensor(a) for a in (x, other)[:count]]
                    yield f"{subject.name} {label} {np.dtype(dtype)}", partial(recorded, op, *inputs)


def _keeps_shape(op: Callable[..., Any], count: int) -> bool:
    try:
        result = op(*[et.full((15,), 0.5) for _ in range(count)])
    except (TypeError, ValueError):
        return False
    return isinstance(result, et.ExTensor) and result.shape == (15,)


def reductions(rng: np.random.Generator) -> Iterator[Check]:
    """Along rows and columns, of all lengths."""
    for dtype in DTYPES:
        for n in LENGTHS:
            for shape in ((3, n), (n, 3), (n, 37), (2, n, 5)) if n < 1000 else ((2, n), (n, 3)):
                for draw in (values, cancelling):
                    x = draw(rng, dtype, *shape)
                    for name in REDUCTIONS:
                        for axis in (0, 1):
                            f = partial(getattr(et, name), axis=axis)
                            yield (
                                f"{name} {shape} axis {axis} {draw.__name__} {x.dtype}",
                                partial(recorded, f, x),
                            )
        long = cancelling(rng, dtype, 300_007)
        for name in ("sum", "mean", "max_reduce", "variance", "logsumexp"):
            yield f"{name} long {long.dtype}", partial(recorded, getattr(et, name), long)


def layers(rng: np.random.Generator) -> Iterator[Check]:
    """Normalisations, losses, attention, products of matrices, recurrent layers."""
    for dtype in DTYPES:
        of, name = partial(values, rng, dtype), str(np.dtype(dtype))
        for n in (*LENGTHS[:21], 1500):
            x, image, per_channel = of(21, n), of(5, 4, n), of(4)
            targets, labels = et.sigmoid(of(21, n)), et.tensor(np.arange(21) % n)
            yield f"layer_norm {n} {name}", partial(recorded, partial(_layer_norm, n), x, of(n), of(n))
            yield f"rms_norm {n} {name}", partial(recorded, partial(_rms_norm, n), x, of(n))
            yield f"group_norm {n} {name}", partial(recorded, et.group_norm, image, constants=(2,))
            yield f"batch_norm {n} {name}", partial(recorded, _batch_norm, image, per_channel, per_channel)
            yield f"cross_entropy {n} {name}", partial(recorded, et.cross_entropy, x, constants=(labels,))
            for loss in ("mean_squared_error", "mean_absolute_error", "smooth_l1", "binary_cross_entropy_with_logits"):  # fmt: skip
                yield f"{loss} {n} {name}", partial(recorded, getattr(et, loss), x, constants=(targets,))
        for queries, keys, features in ATTENTIONS:
            q, k, v = (of(2, 3, m, features) for m in (queries, keys, keys))
            for causal in (False, True):
                f = partial(et.scaled_dot_product_attention, causal=causal)
                yield f"attention {queries} {keys} {features} {causal} {name}", partial(recorded, f, q, k, v)
        for m, n, k in MATRICES:
            yield f"matmul {m} {n} {k} {name}", partial(recorded, et.matmul, of(m, k), of(k, n))
            yield f"linear {m} {n} {k} {name}", partial(recorded, et.linear, of(m, k), of(n, k), of(n))
        for batch, steps, inputs, hidden in SEQUENCES:
            for kind in (nn.RNN, nn.GRU, nn.LSTM):
                layer = kind(inputs, hidden, dtype=dtype, rng=np.random.default_rng(0))
                yield (
                    f"{kind.__name__} {batch} {steps} {inputs} {hidden} {name}",
                    partial(_layer, layer, of(steps, batch, inputs)),
                )


def _layer_norm(n: int, x: Any, weight: Any, bias: Any) -> Any:
    return et.layer_norm(x, n, weight, bias)


def _rms_norm(n: int, x: Any, weight: Any) -> Any:
    return et.rms_norm(x, n, weight)


def _batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    return et.batch_norm(x, weight, bias, None, None, True)[0]


def _layer(layer: nn.Module, x: et.ExTensor) -> Any:
    return [recorded(layer, x), [p.grad for p in layer.parameters()]]


def images(rng: np.random.Generator) -> Iterator[Check]:
    """Convolutions by every method, and pooling."""
    for dtype in DTYPES:
        for row in CONVOLUTIONS:
            count, groups, inputs, outputs, height, width, kernel, stride, padding, dilation = row
            f = partial(et.conv2d, stride=stride, padding=padding, dilation=dilation, groups=groups)
            for draw in (values, calm):
                x = draw(rng, dtype, count, groups * inputs, height, width)
                weight = draw(rng, dtype, groups * outputs, inputs, kernel, kernel)
                bias = draw(rng, dtype, groups * outputs)
                yield f"conv2d {row} {draw.__name__} {x.dtype}", partial(recorded, f, x, weight, bias)
        for height, width, *window in POOLS:
            x = values(rng, dtype, 3, 5, height, width)
            for name in ("max_pool2d", "avg_pool2d"):
                yield (
                    f"{name} {height} {width} {window} {x.dtype}",
                    partial(recorded, getattr(et, name), x, constants=window),
                )


def optimisers(rng: np.random.Generator) -> Iterator[Check]:
    """A few steps of every optimiser."""
    for name in optim.__all__:
        kind = getattr(optim, name)
        if name in ("Optimizer", "LBFGS") or not (
            isinstance(kind, type) and issubclass(kind, optim.Optimizer)
        ):
            continue
        for dtype in WIDE:
            yield f"{name} {np.dtype(dtype)}", partial(_steps, kind, dtype)


def _steps(kind: Any, dtype: Any) -> Any:
    rng = np.random.default_rng(7)
    parameter = nn.Parameter(values(rng, dtype, 61, 17))
    optimizer = kind([parameter], lr=0.01)
    for _ in range(4):
        parameter.grad = values(rng, dtype, 61, 17)
        optimizer.step()
    return parameter


def registry(rng: np.random.Generator) -> Iterator[Check]:
    """The samples of every pair, dense and strided."""
    for subject in library_subjects():
        for kind, draw_cases in (("case", subject.pair.cases), ("large", subject.pair.large)):
            for number, case in enumerate(draw_cases(Draw(11))):
                if any(array.dtype != np.float64 for array in floating_arrays(case)):
                    continue
                for dtype in DTYPES if kind == "case" else WIDE:
                    for layout in (np.array, strided):
                        yield (
                            f"{subject.name} {kind} {number} {layout.__name__} {np.dtype(dtype)}",
                            partial(_sample, subject.name, case, dtype, layout),
                        )


def _sample(name: str, case: Case, dtype: Any, layout: Callable[[Any], Any]) -> Any:
    rng = np.random.default_rng(8)
    arrays = [array.astype(np.float32).astype(dtype) for array in floating_arrays(case)]  # see fractions
    call = Call(find_op(name), case, [layout(array) for array in arrays])
    output = call.forward()
    return [output, call.gradients(output, [fractions(rng, *y.shape) for y in floating_outputs(output)])]


FAMILIES = {f.__name__: f for f in (elementwise, reductions, layers, images, optimisers, registry)}


def by_numpy() -> set[str]:
    """The names of the kernels that compute by their references from now on."""
    names: set[str] = set()
    reference = Kernel.by_reference

    def noted(kernel: Kernel, *args: Any) -> Any:
        if not kernel.exact or kernel.name.endswith(
            "_step"
        ):  # an exact one moves elements, or is an optimiser's
            names.add(kernel.name)
        return reference(kernel, *args)

    Kernel.by_reference = noted  # type: ignore[method-assign]
    return names


def digests(families: list[str], every: int = 1) -> dict[str, str]:
    """The hash of each check; the text of an error where a function has none for a dtype."""
    found: dict[str, str] = {}
    references = by_numpy()
    for family in families or FAMILIES:
        for name, run in islice(FAMILIES[family](np.random.default_rng(0)), 0, None, every):
            digest = hashlib.sha256()
            references.clear()
            try:
                with np.errstate(all="ignore"):
                    add(digest, run())
                numpys = f" {NUMPY} {', '.join(sorted(references))}" if references else ""
                found[f"{family}: {name}"] = digest.hexdigest()[:16] + numpys
            except (NotImplementedError, TypeError, ValueError) as error:
                found[f"{family}: {name}"] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("families", nargs="*")
    given = parser.parse_args()
    json.dump(digests(given.families, given.every), sys.stdout, indent=0)
