"""What PyTorch and NumPy users type first and ExTensor calls otherwise: the AttributeError names our way.

Only names with an equivalent stand here; ``tests/test_habits.py`` runs every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LEFT_OUT = "leave it out: everything is on the CPU"
_SAME = ": tensors never change"


def _use(ways: Mapping[str, str]) -> dict[str, str]:
    return {name: f"use {way}" for name, way in ways.items()}


_RENAMED = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "clamp": "clip",
    "div": "divide", "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less",
    "movedim": "moveaxis", "mul": "multiply", "ne": "not_equal", "neg": "negate", "negative": "negate", "pow": "power",
    "remainder": "modulo", "sub": "subtract", "true_divide": "divide",
}  # fmt: skip

# Functions there that are methods too.
_BOTH = {name: f"et.{ours}" for name, ours in _RENAMED.items()} | {
    "bmm": "x @ y",
    "chunk": "x.split(n)",
    "clone": "x.copy()",
    "index_select": "x.take(indices, axis)",
    "masked_select": "x[mask]",
    "mm": "x @ y",
    "narrow": "x[start:stop]",
    "norm": "et.linalg.norm(x)",
    "numel": "x.size",
    "repeat_interleave": "x.repeat(n)",
    "t": "x.T",
    "topk": "x.top_k(k)",
    "unbind": "list(x)",
}

_DTYPES = {
    "bfloat16": "bfloat16", "bool": "bool_", "double": "float64", "float": "float32", "half": "float16", "int": "int32",
    "long": "int64",
}  # fmt: skip

TENSOR = _use(
    _BOTH
    | {name: f"x.astype(et.{ours})" for name, ours in _DTYPES.items()}
    | {
        "add_": f"x = x + y{_SAME}",
        "contiguous": "x: any layout will do",
        "copy_": f"x = y{_SAME}",
        "data": "x.detach()",
        "dim": "x.ndim",
        "div_": f"x = x / y{_SAME}",
        "element_size": "x.dtype.itemsize",
        "expand": "x.broadcast_to(shape)",
        "expand_as": "x.broadcast_to(y.shape)",
        "fill_": f"x = et.full_like(x, value){_SAME}",
        "mul_": f"x = x * y{_SAME}",
        "nelement": "x.size",
        "new_ones": "et.ones(shape, x.dtype)",
        "new_zeros": "et.zeros(shape, x.dtype)",
        "sub_": f"x = x - y{_SAME}",
        "to": "x.astype(dtype): everything is on the CPU",
        "type": "x.astype(dtype)",
        "type_as": "x.astype(y.dtype)",
        "view": "x.reshape(shape)",
        "view_as": "x.reshape(y.shape)",
        "zero_": f"x = et.zeros_like(x){_SAME}",
    }
) | dict.fromkeys(("cpu", "cuda"), LEFT_OUT)

EXTENSOR = _use(
    _BOTH
    | {name: f"et.{ours}" for name, ours in _DTYPES.items() if name != ours}
    | {
        "FloatTensor": "et.tensor(data, et.float32)",
        "LongTensor": "et.tensor(data, et.int64)",
        "Tensor": "et.tensor(data): its class is et.ExTensor",
        "array": "et.tensor(data)",
        "as_tensor": "et.asarray(data)",
        "cat": "et.concatenate(tensors, axis)",
        "concat": "et.concatenate(tensors, axis)",
        "from_numpy": "et.asarray(data)",
        "functional": "et: functions stand at the top, as et.relu does",
        "inference_mode": "et.no_grad()",
        "is_tensor": "isinstance(x, et.ExTensor)",
        "l1_loss": "et.mean_absolute_error(predictions, targets)",
        "load": "et.train.load_weights(path)",
        "manual_seed": "et.seed(n)",
        "mse_loss": "et.mean_squared_error(predictions, targets)",
        "one_hot": "et.eye(n)[labels]",
        "rand": "et.random.uniform(rng, shape)",
        "randint": "et.random.integers(rng, low, high, shape)",
        "randn": "et.random.normal(rng, shape)",
        "randperm": "et.random.permutation(rng, n)",
        "save": "et.train.save_weights(path, state)",
        "smooth_l1_loss": "et.smooth_l1(predictions, targets)",
        "utils": "et.data: Dataset and DataLoader are there",
    }
) | dict.fromkeys(("cuda", "device"), LEFT_OUT)

NN = _use({
    "NLLLoss": "et.nn.CrossEntropyLoss(): it takes logits",
    "functional": "et: functions stand at the top, as et.relu does",
    "init": "et.init",
    "utils": "et.clip_grad_norm",
})  # fmt: skip

OPTIM = _use({"lr_scheduler": "et.optim: the schedules are there, as et.optim.StepLR is"})

MODULE = _use({
    "buffers": "model.named_buffers()",
    "children": "model.named_children()",
    "double": "model.astype(et.float64)",
    "float": "model.astype(et.float32)",
    "half": "model.astype(et.float16)",
    "to": "model.astype(dtype): everything is on the CPU",
}) | dict.fromkeys(("cpu", "cuda"), LEFT_OUT)  # fmt: skip


class _Missing:
    """An attribute that is not there. ``__getattr__`` would do, but make every attribute that is there slower."""

    __slots__ = ("_name", "_way")

    def __init__(self, name: str, way: str) -> None:
        self._name, self._way = name, way

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}; {self._way}")


def teach(owner: type, table: Mapping[str, str]) -> None:
    """Asked for a name of the table, instances of the class say what to use."""
    for name, way in table.items():
        setattr(owner, name, _Missing(name, way))

    def listed(self: Any) -> list[str]:
        return [name for name in object.__dir__(self) if name not in table or hasattr(self, name)]

    owner.__dir__ = listed  # type: ignore[assignment, method-assign]


def missing_from(module: str, table: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module."""

    def ask(name: str) -> Any:
        way = f"; {table[name]}" if name in table else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{way}")

    return ask
