"""What is measured: the same computation in every library that is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import extensor as et

from .case import Case, Run
from .layer_cases import layer_cases, loss_cases
from .layout_cases import layout_cases
from .moving_cases import moving_cases

__all__ = ["GROUPS", "cases", "peers"]

SIZES = {"16": 16, "4K": 4096, "1M": 1 << 20, "8M": 8 << 20}
GROUPS = ("elementwise", "layout", "softmax", "reduction", "moving", "matmul", "loss", "layer", "training")


def peers() -> dict[str, ModuleType]:
    """The other libraries that are installed, by name."""
    found = {"numpy": np}
    for name in ("torch", "jax"):
        try:
            found[name] = importlib.import_module(name)
        except ImportError:
            continue
    return found


def cases(libraries: dict[str, ModuleType], groups: tuple[str, ...] = GROUPS) -> Iterator[Case]:
    """All cases of some groups."""
    builders: dict[str, Callable[[dict[str, ModuleType]], Iterator[Case]]] = {
        "elementwise": _elementwise, "layout": partial(layout_cases, sizes=SIZES), "softmax": _softmax, "reduction": _reductions,
        "moving": partial(moving_cases, sizes=SIZES), "matmul": _matmul,
        "loss": partial(loss_cases, sizes=SIZES), "layer": layer_cases, "training": _training,
    }  # fmt: skip
    for group in groups:
        yield from builders[group](libraries)


def _values(n: int | tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 2.0, n).astype(np.float32)


def _with_torch(
    libraries: dict[str, ModuleType], runs: dict[str, Run], make: Callable[[Any], Run | None]
) -> dict[str, Run]:
    """``runs`` with PyTorch's, where it is installed."""
    if "torch" in libraries:
        made = make(libraries["torch"])
        if made is not None:
            runs["torch"] = made
    return runs


# PyTorch's function, or aten's, by the name of ours; a dot is a module.
_UNARY = {
    "negate": "neg", "abs": "abs", "sign": "sign", "ceil": "ceil", "floor": "floor", "round": "round", "trunc": "trunc",
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "square": "square", "reciprocal": "reciprocal",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "erf": "erf", "isnan": "isnan",
    "relu": "relu", "leaky_relu": "nn.functional.leaky_relu", "sigmoid": "sigmoid", "gelu": "nn.functional.gelu",
    "silu": "nn.functional.silu", "mish": "nn.functional.mish", "elu": "nn.functional.elu", "selu": "selu",
    "softplus": "nn.functional.softplus", "relu6": "nn.functional.relu6", "hard_sigmoid": "nn.functional.hardsigmoid",
    "hard_swish": "nn.functional.hardswish", "hard_tanh": "nn.functional.hardtanh",
}  # fmt: skip
_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow", "maximum": "maximum",
    "minimum": "minimum", "floor_divide": "floor_divide", "modulo": "remainder", "less": "less", "equal": "eq",
}  # fmt: skip
# A backward of (grad_output, saved) -> aten's own function
_BACKWARD: dict[str, Callable[[Any, Any, Any], Any]] = {
    "relu_backward": lambda aten, g, x: aten.threshold_backward(g, x, 0.0),
    "leaky_relu_backward": lambda aten, g, x: aten.leaky_relu_backward(g, x, 0.01, False),
    "tanh_backward": lambda aten, g, y: aten.tanh_backward(g, y),
    "sigmoid_backward": lambda aten, g, y: aten.sigmoid_backward(g, y),
    "gelu_backward": lambda aten, g, x: aten.gelu_backward(g, x),
    "silu_backward": lambda aten, g, x: aten.silu_backward(g, x),
    "mish_backward": lambda aten, g, x: aten.mish_backward(g, x),
    "elu_backward": lambda aten, g, x: aten.elu_backward(g, 1.0, 1.0, 1.0, False, x),
    "softplus_backward": lambda aten, g, x: aten.softplus_backward(g, x, 1.0, 20.0),
    "hard_sigmoid_backward": lambda aten, g, x: aten.hardsigmoid_backward(g, x),
    "hard_swish_backward": lambda aten, g, x: aten.hardswish_backward(g, x),
    "hard_tanh_backward": lambda aten, g, x: aten.hardtanh_backward(g, x, -1.0, 1.0),
}
_INSIDE_ONE = ("asin", "acos")  # their domain


def _elementwise(libraries: dict[str, ModuleType]) -> Iterator[Case]:
    def make(name: str, path: str, n: int, count: int) -> dict[str, Run]:
        scale = np.float32(0.5 if name in _INSIDE_ONE else 1.0)
        arrays = [scale * _values(n, seed) for seed in range(count)]
        ours, tensors = getattr(et, name), [et.tensor(a) for a in arrays]
        runs: dict[str, Run] = {"extensor": lambda: ours(*tensors)}
        theirs = getattr(np, name, None)
        if theirs is not None:
            runs["numpy"] = lambda: theirs(*arrays)
        return _with_torch(libraries, runs, lambda torch: _torch_call(torch, path, arrays))

    def make_backward(name: str, call: Callable[[Any, Any, Any], Any], n: int) -> dict[str, Run]:
        g, x = _values(n), _values(n, 1)
        ours, tensors = getattr(et, name), [et.tensor(g), et.tensor(x)]

        def with_torch(torch: Any) -> Run:
            tg, tx = torch.from_numpy(g), torch.from_numpy(x)
            return lambda: call(torch.ops.aten, tg, tx)

        return _with_torch(libraries, {"extensor": lambda: ours(*tensors)}, with_torch)

    for size, n in SIZES.items():
        for count, functions in enumerate((_UNARY, _BINARY), 1):
            for name, path in functions.items():
                item = 1 if name in ("isnan", "less", "equal") else 4
                moved = n * (4.0 * count + item)
                yield Case("elementwise", name, size, partial(make, name, path, n, count), bytes_moved=moved)
        for name, call in _BACKWARD.items():
            yield Case("elementwise", name, size, partial(make_backward, name, call, n), bytes_moved=12.0 * n)


def _torch_call(torch: Any, path: str, arrays: list[np.ndarray]) -> Run:
    function = torch
    for part in path.split("."):
        function = getattr(function, part)
    tensors = [torch.from_numpy(a) for a in arrays]
    return lambda: function(*tensors)


def _rows(n: int) -> tuple[int, int]:
    """A matrix of n elements with rows as in practice: at most 1024 wide."""
    width = min(1024, n)
    return n // width, width


def _softmax(libraries: dict[str, ModuleType]) -> Iterator[Case]:
    for size, n in SIZES.items():
        shape = _rows(n)

        def make(name: str, shape: tuple[int, int]) -> dict[str, Run]:
            x = _values(shape)
            ours, tensor = getattr(et, name), et.tensor(x)
            return _with_torch(
                libraries, {"extensor": lambda: ours(tensor)}, lambda torch: _torch_last_axis(torch, name, x)
            )

        def make_backward(name: str, shape: tuple[int, int]) -> dict[str, Run]:
            g, y = _values(shape), getattr(et, name)(et.tensor(_values(shape, 1))).numpy().copy()
            ours, tensors = getattr(et, f"{name}_backward"), (et.tensor(g), et.tensor(y))

            def with_torch(torch: Any) -> Run:
                tg, ty = torch.from_numpy(g), torch.from_numpy(y)
                aten = getattr(torch.ops.aten, f"_{name}_backward_data")
                return lambda: aten(tg, ty, -1, torch.float32)

            return _with_torch(libraries, {"extensor": lambda: ours(*tensors)}, with_torch)

        def make_loss(shape: tuple[int, int]) -> dict[str, Run]:
            x, labels = _values(shape), np.random.default_rng(0).integers(0, shape[1], shape[0])
            tensors = (et.tensor(x), et.tensor(labels))

            def with_torch(torch: Any) -> Run:
                tx, tl = torch.from_numpy(x), torch.from_numpy(labels)
                return lambda: torch.nn.functional.cross_entropy(tx, tl)

            return _with_torch(libraries, {"extensor": lambda: et.cross_entropy(*tensors)}, with_torch)

        for name in ("softmax", "log_softmax"):
            yield Case("softmax", name, size, partial(make, name, shape), bytes_moved=8.0 * n)
            backward = partial(make_backward, name, shape)
            yield Case("softmax", f"{name}_backward", size, backward, bytes_moved=12.0 * n)
        yield Case("softmax", "cross_entropy", size, partial(make_loss, shape), bytes_moved=4.0 * n)


def _torch_last_axis(torch: Any, name: str, x: np.ndarray) -> Run:
    tensor, function = torch.from_numpy(x), getattr(torch, name)
    return lambda: function(tensor, -1)


def _reductions(libraries: dict[str, ModuleType]) -> Iterator[Case]:
    axes: dict[str, int | None] = {"all": None, "rows": 1, "columns": 0}
    names = {
        "sum": "sum", "mean": "mean", "max_reduce": "amax", "variance": "var", "std": "std", "logsumexp": "logsumexp",
    }  # fmt: skip
    for size, n in SIZES.items():
        shape = _rows(n)
        for name, torch_name in names.items():
            for label, axis in axes.items():

                def make(
                    a: str = name, b: str = torch_name, axis: int | None = axis, s: Any = shape
                ) -> dict[str, Run]:
                    x = _values(s)
                    ours, tensor = getattr(et, a), et.tensor(x)

                    def with_torch(torch: Any) -> Run:
                        t, dims = torch.from_numpy(x), (0, 1) if axis is None else (axis,)
                        options = {"correction": 0} if b in ("var", "std") else {}
                        return lambda: getattr(torch, b)(t, dims, **options)

                    return _with_torch(libraries, {"extensor": lambda: ours(tensor, axis)}, with_torch)

                yield Case("reduction", f"{name} over {label}", size, make, bytes_moved=4.0 * n)


# (m, k, n): multi-layer perceptrons, attention and convolutions as matrix products, squares
_SHAPES = [
    (32, 64, 64), (64, 784, 128), (64, 128, 10), (784, 64, 128), (64, 512, 512), (64, 32, 64), (768, 128, 384),
    (768, 384, 128), (16, 144, 16384), (32, 288, 4096), (64, 576, 1024), (64, 64, 64), (256, 256, 256), (512, 512, 512),
    (1024, 1024, 1024), (1, 1024, 1024), (1024, 1024, 1),
]  # fmt: skip


def _matmul(libraries: dict[str, ModuleType]) -> Iterator[Case]:
    for m, k, n in _SHAPES:
        for layout in ("A B", "A^T B", "A B^T"):

            def make(m: int = m, k: int = k, n: int = n, layout: str = layout) -> dict[str, Run]:
                a = _values((k, m)).T if layout == "A^T B" else _values((m, k))
                b = _values((n, k), 1).T if layout == "A B^T" else _values((k, n), 1)
                ta, tb = et.asarray(a), et.asarray(b)
                runs: dict[str, Run] = {
                    "extensor": lambda: et.matmul(ta, tb),
                    "numpy": lambda: np.matmul(a, b),
                }
                return _with_torch(libraries, runs, lambda torch: _torch_call(torch, "matmul", [a, b]))

            yield Case("matmul", layout, f"{m}x{k}x{n}", make, operations=2.0 * m * k * n)


def _training(libraries: dict[str, ModuleType]) -> Iterator[Case]:
    for name, (inputs, hidden, classes, batch, optimizer) in {
        "MLP 64-64-10, Adam, batch 32": (64, 64, 10, 32, "Adam"),
        "MLP 784-128-10, SGD, batch 64": (784, 128, 10, 64, "SGD"),
    }.items():

        def make(
            i: int = inputs, h: int = hidden, o: int = classes, b: int = batch, kind: str = optimizer
        ) -> dict[str, Run]:
            x, labels = _values((b, i)), np.random.default_rng(0).integers(0, o, b)
            return _with_torch(
                libraries,
                {"extensor": _our_step(x, labels, i, h, o, kind)},
                lambda torch: _torch_step(torch, x, labels, i, h, o, kind),
            )

        yield Case("training", name, "step", make)


def _our_step(x: np.ndarray, labels: np.ndarray, i: int, h: int, o: int, kind: str) -> Run:
    nn, optim = et.nn, et.optim
    model = nn.Sequential(nn.Linear(i, h, rng=0), nn.ReLU(), nn.Linear(h, o, rng=1))
    optimizer = getattr(optim, kind)(model.parameters(), lr=1e-3)
    inputs, targets = et.tensor(x), et.tensor(labels)

    def step() -> None:
        optimizer.zero_grad()
        et.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step


def _torch_step(torch: Any, x: np.ndarray, labels: np.ndarray, i: int, h: int, o: int, kind: str) -> Run:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, o))
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=1e-3)
    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step
