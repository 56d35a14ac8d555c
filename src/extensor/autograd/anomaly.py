"""Finding the first operation that made a nan or an inf out of finite numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import AnomalyError
from ..graph import Node, Op, caller, observe, walking
from ..tensor import ExTensor
from .engine import Walk, backward_name
from .trees import leaves

__all__ = ["detect_anomaly"]

# What usually helps, by the function that failed.
_ADVICE = {
    "log": "the argument was zero or negative; use clip(x, tiny, None), log1p or log_softmax",
    "log2": "the argument was zero or negative; use clip(x, tiny, None)",
    "log10": "the argument was zero or negative; use clip(x, tiny, None)",
    "log1p": "the argument was -1 or less",
    "sqrt": "the argument was negative, or zero in the backward; add a small constant under the root",
    "rsqrt": "the argument was zero or negative; add a small constant under the root",
    "divide": "the divisor was zero; add a small constant, or use where() on a safe divisor",
    "reciprocal": "the argument was zero; add a small constant",
    "power": "a negative base with a fractional exponent, or zero with a negative one",
    "exp": "the argument was too large; subtract the maximum first, or use softmax or logsumexp",
    "softmax": "a row was all -inf: every entry was masked out",
    "log_softmax": "a row was all -inf: every entry was masked out",
    "asin": "the argument was outside [-1, 1]",
    "acos": "the argument was outside [-1, 1]",
}
_OTHERWISE = "the numbers grew too large; try a smaller learning rate, clip_grad_norm, or a wider dtype"


@contextmanager
def detect_anomaly() -> Iterator[None]:
    """A context that raises :class:`extensor.AnomalyError` at the first operation, forward or backward, that makes a nan or
    an inf out of finite inputs. The message names the operation, the line of your code, and what usually helps.

    Example:
        >>> import extensor as et
        >>> with et.detect_anomaly():
        ...     et.log(et.tensor([1.0, -1.0]))
        Traceback (most recent call last):
        ...
        extensor.errors.AnomalyError: [log] made 1 nan out of finite inputs ...
    """
    with walking(_CheckedWalk), observe(_checked_call):
        yield


def _checked_call(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with observe(None):  # what the op calls inside is not observed
        result = op(*args, **kwargs)
    bad = _count_bad(result)
    if bad:
        inputs = _named(op, args, kwargs)
        if not _count_bad(list(inputs.values())):
            raise AnomalyError(_message(op.__name__, op.__name__, bad, inputs, caller(), result))
    return result


class _CheckedWalk(Walk):
    """A backward pass that looks at every gradient."""

    def gradients(self, node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
        saved = self.saved(node)
        with observe(None):
            grads = super().gradients(node, grad, needs)
        bad = _count_bad(grads)
        if bad and not _count_bad([grad, *saved]):
            name = backward_name(node)
            values = {"grad_output": grad} if isinstance(grad, ExTensor) else {}
            values.update({p.name: v for p, v in zip(getattr(node.op.rule, "parameters", ()), saved)})
            raise AnomalyError(_message(name, node.op.__name__, bad, values, node.place, grads))
        return grads


def _floats(value: Any) -> list[np.ndarray]:
    found = [t.numpy() for t in leaves(value)]
    return [a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in found if a.dtype.kind not in "biu"]


def _count_bad(value: Any) -> int:
    return sum(int(a.size - np.isfinite(a).sum()) for a in _floats(value))


def _named(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return op.rule.bind(args, kwargs)


def _message(
    name: str, op: str, bad: int, inputs: dict[str, Any], place: tuple[str, int, str] | None, result: Any
) -> str:
    nans = sum(int(np.isnan(a).sum()) for a in _floats(result))
    kinds = [f"{nans} nan"] * bool(nans) + [f"{bad - nans} inf"] * bool(bad - nans)
    lines = [f"[{name}] made {' and '.join(kinds)} out of finite inputs"]
    if place is not None:
        what = "computed" if name == op else f"of the {op} computed"
        lines.append(f"  {what} in {place[0]}, line {place[1]}, in {place[2]}")
    for argument, value in inputs.items():
        lines += [f"  {argument}: {text}" for text in map(_statistics, leaves(value))]
    lines.append(f"  what usually helps: {_ADVICE.get(op, _OTHERWISE)}")
    return "\n".join(lines)


def _statistics(x: ExTensor) -> str:
    a = x.numpy()
    if not a.size:
        return f"{x.shape} {x.dtype}, empty"
    if a.dtype.kind == "b":
        return f"{x.shape} bool"
    wide = a.astype(np.float64)
    zeros = int((wide == 0).sum())
    return f"{x.shape} {x.dtype}, min {wide.min():.4g}, max {wide.max():.4g}, mean {wide.mean():.4g}" + (
        f", {zeros} zeros" if zeros else ""
    )
