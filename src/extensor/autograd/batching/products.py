"""Batching rules of products and of linear algebra: the batch axis is one more axis of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...checks import as_axis, as_ints, differentiable_input
from ...graph import backward_of, differentiable
from ...ops.einsum import einsum
from ...ops.linear import linear
from ...ops.matrix import matmul
from ...ops.reduction import sum as total
from ...ops.shape import expand_dims, reshape, squeeze, swapaxes
from ...tensor import ExTensor
from .batched import Level
from .elementwise import aligned
from .registry import batches, each_example

__all__ = ["first_of", "plus_bias"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@batches("matmul")
def _matmul(level: Level, op: Any, a: Any, b: Any) -> Any:
    """Vectors become matrices of one row or column, and the product loses that axis again."""
    if not (a.ndim and b.ndim):
        return each_example(level, op, a, b)  # which says what is wrong
    if not level.has(b) and a.ndim <= 2 and b.ndim <= 2:
        return matmul(a.batch, b)  # the rows of all examples times one matrix
    row, column = a.ndim == 1, b.ndim == 1
    ndim = max(a.ndim, b.ndim, 2)
    left = expand_dims(_full_or_same(level, a), -2) if row else aligned(level, a, ndim)
    right = expand_dims(_full_or_same(level, b), -1) if column else aligned(level, b, ndim)
    if row and level.has(a):
        left = reshape(left, (level.size, *(1,) * (ndim - 2), 1, a.shape[0]))
    if column and level.has(b):
        right = reshape(right, (level.size, *(1,) * (ndim - 2), b.shape[0], 1))
    found = matmul(left, right)
    lost = [axis for axis, gone in ((-2, row), (-1, column)) if gone]
    return squeeze(found, tuple(lost)) if lost else found


def _full_or_same(level: Level, x: Any) -> Any:
    return x.batch if level.has(x) else x


@batches("einsum")
def _einsum(level: Level, op: Any, subscripts: Any, *operands: Any) -> Any:
    """One more letter, in front."""
    if not isinstance(subscripts, str):
        return each_example(level, op, subscripts, *operands)
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        return each_example(level, op, subscripts, *operands)  # which says what is wrong
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = ("..." if "..." in left else "") + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1)
        )
    letter = next(c for c in _LETTERS if c not in text)
    terms = [letter + term if level.has(x) else term for term, x in zip(terms, operands)]
    return op(f"{','.join(terms)}->{letter}{right}", *(_full_or_same(level, x) for x in operands))


@batches("outer", "inner", "dot", "tensordot")
def _by_letters(level: Level, op: Any, a: Any, b: Any, *axes: Any, **named: Any) -> Any:
    """Products over named axes, as einsum writes them."""
    name = op.__name__
    if name == "outer":
        a, b = (
            reshape(x, (x.size,))
            if not level.has(x)
            else level.wrapped(reshape(x.batch, (level.size, x.size)))
            for x in (a, b)
        )
        pairs: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    elif not (a.ndim and b.ndim):
        pairs = ((), ())
    elif name == "inner":
        pairs = ((a.ndim - 1,), (b.ndim - 1,))
    elif name == "dot":
        pairs = ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    else:
        wanted = axes[0] if axes else named.get("axes", 2)
        if isinstance(wanted, int):
            pairs = tuple(range(a.ndim - wanted, a.ndim)), tuple(range(wanted))
        else:
            over_a, over_b = (as_ints("tensordot", "axes", part) for part in wanted)
            pairs = (
                tuple(as_axis("tensordot", i, a.ndim) for i in over_a),
                tuple(as_axis("tensordot", i, b.ndim) for i in over_b),
            )
    if any(a.shape[i : i + 1] != b.shape[j : j + 1] or i < 0 for i, j in zip(*pairs)) or len(pairs[0]) != len(
        pairs[1]
    ):
        return each_example(level, op, a, b, *axes, **named)  # which says what is wrong
    of_a, of_b = list(_LETTERS[: a.ndim]), list(_LETTERS[a.ndim : a.ndim + b.ndim])
    for i, j in zip(*pairs):
        of_b[j] = of_a[i]
    kept = [c for i, c in enumerate(of_a) if i not in pairs[0]] + [
        c for j, c in enumerate(of_b) if j not in pairs[1]
    ]
    letter = _LETTERS[-1]
    first, second = ((letter if level.has(x) else "") + "".join(of) for x, of in ((a, of_a), (b, of_b)))
    return einsum(
        f"{first},{second}->{letter}{''.join(kept)}", _full_or_same(level, a), _full_or_same(level, b)
    )


# A dense layer


class _PerExample(NamedTuple):
    grad_x: ExTensor | None
    grad_weight: ExTensor | None
    grad_bias: ExTensor | None


def first_of(x: ExTensor | None) -> ExTensor | None:
    """The first of examples that are all the same."""
    return None if x is None else x[0]


@differentiable
def shared_linear(x: ExTensor, weight: ExTensor, bias: ExTensor | None = None) -> ExTensor:
    """:func:`linear` where each example has the same weight, and a gradient of its own.   y_n = x_n @ weight_n.T + bias_n

    x: (examples, ..., in), weight: (examples, out, in), bias: (examples, out); all examples of weight and bias are equal.
    """
    return linear(x, weight[0], first_of(bias))


@backward_of(shared_linear, wrt=("x", "weight", "bias"))
def shared_linear_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    needs: tuple[bool, bool, bool] = (True, True, True),
) -> _PerExample:
    """Gradient of :func:`shared_linear`.   dweight_n = dy_n.T @ x_n,  dbias_n = sum of dy_n over all but the last axis"""
    x = differentiable_input("shared_linear_backward", "x", x)
    rows = (x.shape[0], -1)
    grads, inputs = (
        reshape(t, (*rows, t.shape[-1])) if t.size else reshape(t, (t.shape[0], 0, t.shape[-1]))
        for t in (grad_output, x)
    )
    return _PerExample(
        matmul(grad_output, weight[0]) if needs[0] else None,
        matmul(swapaxes(grads, 1, 2), inputs) if needs[1] else None,
        total(grads, 1) if needs[2] else None,
    )


@batches("linear")
def _linear(level: Level, op: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """One weight for all: the rows of all examples at once. Weights that differ: one product per example."""
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        return each_example(level, op, x, weight, bias)  # which says what is wrong
    if not level.has(weight):
        if bias is None or not level.has(bias):
            return op(level.full(x), weight, bias)
        return plus_bias(level, op(level.full(x), weight), bias, x.ndim - 1)
    if weight.shared and (bias is None or not level.has(bias) or bias.shared):
        return shared_linear(level.full(x), weight.batch, None if bias is None else level.full(bias))
    full = level.full(x)
    rows = expand_dims(full, 1) if x.ndim == 1 else reshape(full, (level.size, -1, x.shape[-1]))
    found = matmul(rows, swapaxes(weight.batch, 1, 2))
    found = reshape(found, (level.size, *x.shape[:-1], weight.shape[0]))
    return found if bias is None else plus_bias(level, found, bias, x.ndim - 1)


def plus_bias(level: Level, y: ExTensor, bias: Any, before: int, after: int = 0) -> ExTensor:
    """``y`` plus a bias per example, which has ``before`` axes of ``y`` in front of its own and ``after`` behind."""
    shape = (*(1,) * before, *bias.shape, *(1,) * after)
    return y + (reshape(bias.batch, (level.size, *shape)) if level.has(bias) else reshape(bias, shape))


# Linear algebra


@batches(
    "inv", "det", "slogdet", "cholesky", "qr", "eigh", "eigvalsh", "eig", "eigvals", "matrix_power", "matrix_exp", "svd", "svdvals",
    "pinv", "matrix_norm", "cond", "matrix_rank",
)  # fmt: skip
def _of_matrices(level: Level, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Functions of matrices take stacks of them."""
    if x.ndim < 2 or level.holds(args) or level.holds(kwargs.values()):
        return each_example(level, op, x, *args, **kwargs)
    return op(x.batch, *args, **kwargs)


@batches("solve", "triangular_solve", "lstsq")
def _solve(level: Level, op: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """One vector on the right is a matrix of one column."""
    if a.ndim < 2 or b.ndim < 1 or op.__name__ == "lstsq":
        return each_example(level, op, a, b, *args, **kwargs)
    if b.ndim == 1:
        column = reshape(level.full(b), (level.size, *(1,) * (a.ndim - 2), b.shape[0], 1))
        return squeeze(op(level.full(a), column, *args, **kwargs), -1)
    ndim = max(a.ndim, b.ndim)
    return op(aligned(level, a, ndim), aligned(level, b, ndim), *args, **kwargs)


@batches("norm")
def _norm(level: Level, op: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Without an axis: of all elements, of a vector or of a matrix."""
    if axis is None and ord is not None and x.ndim not in (1, 2):
        return each_example(level, op, x, ord, axis, keepdims)
    if axis is None and (ord is None or x.ndim == 1):
        rows = reshape(level.full(x), (level.size, x.size))
        found = op(rows, ord, 1)
        return reshape(found, (level.size, *(1,) * x.ndim)) if keepdims else found
    if axis is None:
        return op(x.batch, ord, (1, 2), keepdims)
    places = tuple(as_axis("norm", i, x.ndim) + 1 for i in as_ints("norm", "axis", axis))
    return op(x.batch, ord, places if len(places) > 1 else places[0], keepdims)


@batches("trace")
def _trace(level: Level, op: Any, x: Any, offset: int = 0) -> Any:
    """Of each matrix."""
    return op(x.batch, offset)
