"""Reductions, sorting and products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..emit import Emitter, Value, exports

__all__: list[str] = []


def _reduced(e: Emitter, operator: str, name: str, axis: Any, keepdims: bool, ndim: int) -> str:
    """A reduction; its axes are an input from operator set 18 on (13 for the sum)."""
    axes = (
        list(range(ndim))
        if axis is None
        else [a % ndim for a in (axis if isinstance(axis, (tuple, list)) else [axis])]
    )
    if not axes:
        return name
    if e.opset >= 18 or operator == "ReduceSum":
        return str(e.node(operator, name, e.constant(axes, np.int64), keepdims=int(keepdims)))
    return str(e.node(operator, name, axes=axes, keepdims=int(keepdims)))


@exports("sum")
def total(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """ReduceSum."""
    return _reduced(e, "ReduceSum", e.use(x, e.out.dtype), axis, keepdims, x.ndim)


@exports("mean")
def mean(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """ReduceMean."""
    return _reduced(e, "ReduceMean", e.use(x, e.out.dtype), axis, keepdims, x.ndim)


@exports("max", "max_reduce")
def greatest(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """ReduceMax."""
    return _reduced(e, "ReduceMax", e.use(x), axis, keepdims, x.ndim)


@exports("min", "min_reduce")
def least(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """ReduceMin."""
    return _reduced(e, "ReduceMin", e.use(x), axis, keepdims, x.ndim)


@exports("prod")
def prod(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """ReduceProd."""
    return _reduced(e, "ReduceProd", e.use(x, e.out.dtype), axis, keepdims, x.ndim)


@exports("logsumexp")
def logsumexp(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """ReduceLogSumExp."""
    return _reduced(e, "ReduceLogSumExp", e.use(x), axis, keepdims, x.ndim)


@exports("any")
def any_of(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """The greatest of 0 and 1."""
    return e.cast(
        _reduced(e, "ReduceMax", e.cast(e.use(x, np.bool_), np.int32), axis, keepdims, x.ndim), np.bool_
    )


@exports("all")
def all_of(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """The least of 0 and 1."""
    return e.cast(
        _reduced(e, "ReduceMin", e.cast(e.use(x, np.bool_), np.int32), axis, keepdims, x.ndim), np.bool_
    )


@exports("count_nonzero")
def count_nonzero(e: Emitter, x: Value, axis: Any = None, keepdims: bool = False) -> str:
    """The sum of 0 and 1."""
    return _reduced(e, "ReduceSum", e.cast(e.use(x, np.bool_), e.out.dtype), axis, keepdims, x.ndim)


def _extreme(e: Emitter, operator: str, x: Value, axis: int | None, keepdims: bool) -> str:
    name = e.use(x) if axis is not None else e.reshape(e.use(x), (-1,))
    found = e.node(
        operator, name, axis=0 if axis is None else axis % x.ndim, keepdims=int(keepdims or axis is None)
    )
    if axis is None:
        found = e.reshape(found, e.out.shape)
    return found if e.out.dtype == np.int64 else e.cast(found, e.out.dtype)


@exports("argmax")
def argmax(e: Emitter, x: Value, axis: int | None = None, keepdims: bool = False) -> str:
    """ArgMax."""
    return _extreme(e, "ArgMax", x, axis, keepdims)


@exports("argmin")
def argmin(e: Emitter, x: Value, axis: int | None = None, keepdims: bool = False) -> str:
    """ArgMin."""
    return _extreme(e, "ArgMin", x, axis, keepdims)


@exports("cumsum")
def cumsum(e: Emitter, x: Value, axis: int | None = None) -> str:
    """CumSum."""
    name = e.use(x, e.out.dtype) if axis is not None else e.reshape(e.use(x, e.out.dtype), (-1,))
    return str(e.node("CumSum", name, e.constant(axis or 0, np.int64)))


@exports("sort")
def sort(e: Emitter, x: Value, axis: int | None = -1, descending: bool = False, stable: bool = True) -> str:
    """TopK of all elements."""
    name = e.use(x) if axis is not None else e.reshape(e.use(x), (-1,))
    along = -1 if axis is None else axis
    count = e.number(e.out.shape[along])
    return str(e.node("TopK", name, count, results=2, axis=along, largest=int(descending))[0])


@exports("top_k")
def top_k(e: Emitter, x: Value, k: int, axis: int = -1) -> Any:
    """TopK."""
    values, indices = e.node("TopK", e.use(x), e.constant([k], np.int64), results=2, axis=axis)
    return values if len(e.outputs) == 1 else (values, indices)


# Products


@exports("matmul", "dot")
def matmul(e: Emitter, a: Any, b: Any) -> str:
    """MatMul; a product of numbers is a Mul."""
    shapes = [v.ndim if isinstance(v, Value) else np.ndim(v) for v in (a, b)]
    operator = "MatMul" if min(shapes) else "Mul"
    return str(e.node(operator, e.use(a, e.out.dtype), e.use(b, e.out.dtype)))


@exports("einsum")
def einsum(e: Emitter, subscripts: str, operands: Any) -> str:
    """Einsum; an axis of length 1 that meets a longer one is left out, ONNX does not broadcast it."""
    names = [e.use(v, e.out.dtype) for v in operands]
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if "." not in text:
        longest: dict[str, int] = {}
        for term, value in zip(terms, operands):
            for letter, length in zip(term, value.shape):
                longest[letter] = max(longest.get(letter, 1), length)
        if not arrow:
            arrow, right = "->", "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
        for i, (term, value) in enumerate(zip(terms, operands)):
            kept = [(c, n) for c, n in zip(term, value.shape) if not (n == 1 and longest[c] > 1)]
            if len(kept) < len(term):
                names[i] = e.reshape(names[i], [n for _, n in kept])
                terms[i] = "".join(c for c, _ in kept)
    return str(e.node("Einsum", *names, equation=",".join(terms) + arrow + right))


@exports("linear")
def linear(e: Emitter, x: Value, weight: Value, bias: Any = None) -> str:
    """Gemm for matrices, else MatMul and Add."""
    dtype = e.out.dtype
    if x.ndim == 2:
        return str(e.node("Gemm", e.use(x, dtype), e.use(weight, dtype), e.use(bias, dtype), transB=1))
    turned = e.node("Transpose", e.use(weight, dtype), perm=[1, 0])
    found = e.node("MatMul", e.use(x, dtype), turned)
    return str(found if bias is None else e.node("Add", found, e.use(bias, dtype)))
