"""Mixed precision: the mode of a thread in which calls get their operands in the dtype that suits the function.

A call under autocast is nothing but casts followed by the same call without autocast: ``linear(x, w)`` is
``linear(astype(x, d), astype(w, d))``, recorded as such. So gradients, second derivatives, observers and plans know nothing of it; a body never runs under autocast,
nor does a backward function, which computes in the dtypes it is given.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from threading import local
from typing import Any, TypeVar

import numpy as np

from ..autocast_table import Policy
from ..dtypes import HALF, as_dtype, bfloat16, float16, float32
from ..nested import needs_grad
from ..tensor import ExTensor, asarray, tensor
from .nodes import Node
from .rules import Rule
from .state import StateBlock, this_thread

__all__ = ["autocast", "cast_arguments", "forget_casts", "get_autocast"]

F = TypeVar("F", bound=Callable[..., Any])

# The modes of a thread, which are part of the key of a plan.
_DTYPES: tuple[np.dtype[Any], ...] = (float32, bfloat16, float16)
_CASTABLE = frozenset({float16, bfloat16, float32})


class autocast(StateBlock):
    """Products in a half type, the rest where it is safe: a context and a decorator, for this thread.

    Matrix products, convolutions, attention and recurrent layers take their operands in ``dtype``, accumulate in float32 and
    return ``dtype``. Reductions, softmax, norms, losses and exponentials compute and return float32. Everything else follows
    its inputs, the widest first. Parameters stay float32 and their gradients are float32; a half copy of each is made once
    and kept until the outermost block is left or the parameter changes. A call with a float64, complex or integer operand
    is left as it is. Gradients are computed in the dtypes of the forward pass, wherever ``backward()`` is called.

    Blocks nest; ``autocast(extensor.float32)`` is a part without it.

    Args:
        dtype: ``extensor.bfloat16`` (the range of float32, 8 bits of precision), ``extensor.float16`` (11 bits, but nothing
            above 65504 and little below 6e-8: see :class:`extensor.optim.LossScaler`) or ``extensor.float32``.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.Linear(3, 2, rng=0)
        >>> with et.autocast(et.bfloat16):
        ...     y = layer(et.ones((4, 3)))
        ...     loss = y.mean()
        >>> y.dtype, loss.dtype
        (dtype(bfloat16), dtype('float32'))
        >>> loss.backward()
        >>> layer.weight.dtype, layer.weight.grad.dtype
        (dtype('float32'), dtype('float32'))
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        found = as_dtype("autocast", dtype)
        if dtype is None or found not in _DTYPES:
            raise TypeError(
                f"[autocast] dtype must be bfloat16, float16 or float32, got {found if dtype is not None else None}"
            )
        self.dtype = found
        super().__init__("mode", _DTYPES.index(found))

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if not this_thread.mode:  # the outermost one
            forget_casts()

    def __call__(self, function: F) -> F:
        @wraps(function)
        def cast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"autocast({self.dtype.name})"


def get_autocast() -> np.dtype[Any]:
    """The dtype of products in this thread; float32 where there is no autocast."""
    return _DTYPES[this_thread.mode]


class _Casts(local):
    """The half copies of parameters: by the identity of the array and the dtype, with what tells that it is still the same."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, Any], tuple[Any, int, np.ndarray]] = {}


_casts = _Casts()


def forget_casts() -> None:
    """Let go of the half copies of parameters of this thread."""
    _casts.kept.clear()


def _cast(x: ExTensor, dtype: np.dtype[Any]) -> ExTensor:
    """``astype(x, dtype)``; the elements of a parameter are cast once and kept."""
    if x.dtype == dtype:
        return x
    is_parameter = x._node is None and (x._requires_grad or hasattr(x, "_replaced"))
    if not is_parameter or dtype == float32 or this_thread.observer is not None:
        return x.astype(dtype)
    source = x._array  # which tells that no plan can repeat this
    kept, key, version = _casts.kept, (id(source), dtype), getattr(x, "_replaced", 0)
    found = kept.get(key)
    if found is None or found[0]() is not source or found[1] != version:
        half = x.detach().astype(dtype)._array
        found = kept[key] = (weakref.ref(source, lambda _: kept.pop(key, None)), version, half)
    if not (x._requires_grad and this_thread.recording):
        return ExTensor(found[2])
    node = Node(
        ExTensor.astype, (x,), (x.dtype,), None
    )  # what recording astype(x, dtype) makes; a test compares
    node.shape, node.casts = x.shape, (x.dtype,)
    return ExTensor(found[2], True, node)


def cast_arguments(
    policy: Policy, rule: Rule, mode: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a call under autocast, in the dtypes that its function asks for."""
    dtype, casts = (float32, HALF) if policy == "float32" else (_DTYPES[mode], _CASTABLE)
    given, options = args, kwargs
    if policy == "half":
        if not kwargs and all(map(_is_castable, args)):  # nearly every call: tensors alone
            return [v if v is None else _cast(v, dtype) for v in args], kwargs
        names, targets = rule.names, rule.targets
        count = rule.signature.positional
        given = tuple(
            v if type(v) is ExTensor or (i < count and names[i] not in targets) else _as_operand(v)
            for i, v in enumerate(args)
        )
        options = {name: _as_operand(v) if name in targets else v for name, v in kwargs.items()}
        if any(map(_is_other_number, given)) or any(map(_is_other_number, options.values())):
            return args, kwargs
    return (
        [_with_casts(v, dtype, casts) for v in given],
        {name: _with_casts(v, dtype, casts) for name, v in options.items()},
    )


def _is_castable(value: Any) -> bool:
    """Whether a value is a tensor that autocast may cast, or none at all."""
    return value is None or (isinstance(value, ExTensor) and value.dtype in _CASTABLE)


def _as_operand(value: Any) -> Any:
    """Numbers that a body makes a tensor of, as that tensor."""
    if not isinstance(value, (float, np.generic, np.ndarray, list, tuple)) or needs_grad(value):
        return value
    try:
        found = tensor(value)  # a copy: the call may save it
    except (TypeError, ValueError):
        return value  # what is wrong with it, the body knows how to say
    return found if found.dtype in _CASTABLE else value


def _is_other_number(value: Any) -> bool:
    """Whether a tensor is wider than float32, or of whole numbers, which float32 would not hold."""
    if isinstance(value, (ExTensor, np.ndarray)):
        return value.dtype not in _CASTABLE and value.dtype.kind != "b"
    return isinstance(value, (list, tuple)) and any(map(_is_other_number, value))


def _with_casts(value: Any, dtype: np.dtype[Any], casts: frozenset[np.dtype[Any]]) -> Any:
    """An argument with its tensors and arrays of the dtypes ``casts`` in ``dtype``."""
    if isinstance(value, ExTensor):
        return _cast(value, dtype) if value.dtype in casts else value
    if isinstance(value, (np.ndarray, np.generic)):
        return asarray(value).astype(dtype) if value.dtype in casts else value
    if type(value) in (list, tuple):
        return type(value)(_with_casts(v, dtype, casts) for v in value)
    return value
