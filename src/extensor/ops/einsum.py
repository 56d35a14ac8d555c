"""Sums of products in index notation, and their gradient.

A call is first brought into a plain form: one letter per axis, the ellipsis spelled out, the output explicit.
"""

from __future__ import annotations

import itertools
import math
import string
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..checks import as_grad, as_tensor, check_needs, differentiable_input, takes_complex
from ..dtypes import float32, float64
from ..errors import describe
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape
from .broadcasting import broadcast_to
from .casting import cast_like, in_one_dtype
from .complex_numbers import conj
from .selection import where

__all__ = ["einsum", "einsum_backward"]


class Equation(NamedTuple):
    """Subscripts in plain form: a letter per axis of each operand and of the output, and each letter's length."""

    inputs: list[str]
    output: str
    lengths: dict[str, int]

    @property
    def shape(self) -> Shape:
        """The shape of the output."""
        return tuple(self.lengths[letter] for letter in self.output)

    @property
    def text(self) -> str:
        """The plain form as a string."""
        return f"{','.join(self.inputs)}->{self.output}"


def _split(function: str, subscripts: Any, operands: int) -> tuple[list[str], str | None]:
    """The terms of the operands and of the output (None where it is implied), with valid characters only."""
    if not isinstance(subscripts, str):
        raise TypeError(
            f"[{function}] subscripts must be a string such as 'ij,jk->ik', got {describe(subscripts)}"
        )
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in [*terms, right]:
        letters = term.replace("...", "", 1)
        if any(c not in string.ascii_letters for c in letters):
            raise ValueError(
                f"[{function}] subscripts {subscripts!r}: {term!r} may hold letters and one '...' only"
            )
    if len(terms) != operands:
        raise ValueError(
            f"[{function}] subscripts {subscripts!r} name {len(terms)} operands but {operands} were given"
        )
    return terms, right if arrow else None


def _parse(function: str, subscripts: Any, shapes: list[Shape]) -> Equation:
    terms, output = _split(function, subscripts, len(shapes))
    extras = []
    for term, shape in zip(terms, shapes):
        named = len(term.replace("...", ""))
        if named > len(shape) or (named < len(shape) and "..." not in term):
            raise ValueError(
                f"[{function}] {term!r} of {subscripts!r} names {named} axes but the operand has shape {shape}"
            )
        extras.append(len(shape) - named)
    unused = [c for c in string.ascii_letters if c not in subscripts]
    if max(extras) > len(unused):
        raise ValueError(
            f"[{function}] subscripts {subscripts!r} need more than {len(string.ascii_letters)} letters"
        )
    ellipsis = "".join(unused[: max(extras)])
    inputs = [t.replace("...", ellipsis[len(ellipsis) - n :]) for t, n in zip(terms, extras)]
    if output is None:
        counts = Counter("".join(t.replace("...", "") for t in terms))
        output = ellipsis + "".join(sorted(c for c, n in counts.items() if n == 1))
    elif ellipsis and "..." not in output:
        raise ValueError(f"[{function}] subscripts {subscripts!r}: the axes of '...' must be in the output")
    else:
        output = output.replace("...", ellipsis)
    for letter in output:
        if output.count(letter) > 1 or not any(letter in term for term in inputs):
            raise ValueError(
                f"[{function}] subscripts {subscripts!r}: output {letter!r} must be in an input, and once"
            )
    return Equation(inputs, output, _lengths(function, subscripts, inputs, shapes))


def _lengths(function: str, subscripts: str, inputs: list[str], shapes: list[Shape]) -> dict[str, int]:
    """The length of each letter; a length of 1 broadcasts, except along a diagonal."""
    lengths: dict[str, int] = {}
    for term, shape in zip(inputs, shapes):
        own: dict[str, int] = {}
        for letter, length in zip(term, shape):
            if own.setdefault(letter, length) != length:
                raise ValueError(
                    f"[{function}] subscripts {subscripts!r}: a diagonal needs equal lengths, {letter!r} has "
                    f"{own[letter]} and {length} in the operand of shape {shape}"
                )
            known = lengths.get(letter, 1)
            if 1 not in (known, length) and known != length:
                raise ValueError(
                    f"[{function}] subscripts {subscripts!r}: {letter!r} has length {known} in one operand and {length} "
                    f"in another (shapes: {', '.join(map(str, shapes))})"
                )
            lengths[letter] = length if known == 1 else known
    return lengths


def _operands(function: str, operands: tuple[Any, ...]) -> list[ExTensor]:
    if not operands:
        raise ValueError(f"[{function}] needs at least one operand after subscripts")
    return [as_tensor(function, f"operands[{i}]", value) for i, value in enumerate(operands)]


@differentiable
@takes_complex
def einsum(subscripts: str, *operands: ExTensor) -> ExTensor:
    """Sum of products in index notation.   "ij,jk->ik": y_ik = sum_j a_ij b_jk

    A letter names an axis. Letters that are not in the output are summed over, a letter twice in one operand
    takes the diagonal, ``...`` stands for axes that broadcast. Without ``->`` the output has the axes of ``...``
    and then the letters that occur once, in alphabetical order.

    Args:
        subscripts: the letters of each operand, separated by commas, and of the output after ``->``.
        operands: one tensor per term.

    Example:
        >>> import extensor as et
        >>> a = et.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> et.einsum("ii", a).item(), et.einsum("ij->ji", a).tolist()
        (5.0, [[1.0, 3.0], [2.0, 4.0]])
    """
    tensors = _operands("einsum", operands)
    equation = _parse("einsum", subscripts, [x.shape for x in tensors])
    if _is_regular(equation, tensors):
        return _by_products(equation, list(in_one_dtype(*tensors)))
    return kernels.einsum(tensors, equation.text)


def _is_regular(equation: Equation, tensors: list[ExTensor]) -> bool:
    """Whether products of two operands after the other will do: no diagonal, no broadcast, and nothing that is rounded on the way."""
    if any(len(set(term)) < len(term) for term in equation.inputs):
        return False
    if any(equation.lengths[c] != n for t, x in zip(equation.inputs, tensors) for c, n in zip(t, x.shape)):
        return False
    wide = all(x.dtype in (float32, float64) for x in tensors)
    return wide or (len(tensors) == 2 and not any(_lone(equation.inputs, i, equation.output) for i in (0, 1)))


def _lone(terms: list[str], i: int, output: str) -> list[str]:
    """The letters of a term that nothing else has: their axes are summed over first."""
    return [c for c in terms[i] if c not in output and not any(c in t for k, t in enumerate(terms) if k != i)]


def _by_products(equation: Equation, tensors: list[ExTensor]) -> ExTensor:
    terms, output, lengths = equation
    for i in range(len(terms)):
        lone = _lone(terms, i, output)
        if lone:
            tensors[i] = kernels.sum(tensors[i], tuple(sorted(terms[i].index(c) for c in lone)), False)
            terms = [t if k != i else "".join(c for c in t if c not in lone) for k, t in enumerate(terms)]
    terms = list(terms)
    while len(terms) > 1:
        i, j = _next_pair(terms, lengths)
        right, b = terms.pop(j), tensors.pop(j)
        kept = {c for k, t in enumerate((*terms, output)) if k != i for c in t}
        terms[i], tensors[i] = _product(
            terms[i], tensors[i], right, b, sorted(kept, key=lambda c: (output.find(c), c)), lengths
        )
    return kernels.permute(tensors[0], tuple(terms[0].index(c) for c in output))


def _next_pair(terms: list[str], lengths: dict[str, int]) -> tuple[int, int]:
    """The two terms whose product is the cheapest; the first of those that are alike."""
    pairs = itertools.combinations(range(len(terms)), 2)
    return min(pairs, key=lambda pair: math.prod(lengths[c] for c in {*terms[pair[0]], *terms[pair[1]]}))


def _product(
    left: str, a: ExTensor, right: str, b: ExTensor, kept: list[str], lengths: dict[str, int]
) -> tuple[str, ExTensor]:
    """Two operands as one batched matrix product, or as one of elements where nothing is summed; its letters, and it."""
    batch = [c for c in kept if c in left and c in right]
    summed = [c for c in left if c in right and c not in kept]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    made = [*batch, *rows, *columns]

    def ordered(x: ExTensor, term: str, letters: list[str], shape: tuple[int, ...]) -> ExTensor:
        return kernels.reshape(kernels.permute(x, tuple(term.index(c) for c in letters)), shape)

    def size(letters: list[str]) -> int:
        return math.prod(lengths[c] for c in letters)

    each = tuple(lengths[c] for c in batch)
    if summed:
        product = kernels.matmul(
            ordered(a, left, batch + rows + summed, (*each, size(rows), size(summed))),
            ordered(b, right, batch + summed + columns, (*each, size(summed), size(columns))),
        )
    else:
        product = kernels.multiply(
            ordered(a, left, batch + rows, (*each, size(rows), 1)),
            ordered(b, right, batch + columns, (*each, 1, size(columns))),
        )
    return "".join(made), kernels.reshape(product, tuple(lengths[c] for c in made))


@backward_of(einsum, each="operands")
def einsum_backward(
    grad_output: ExTensor, subscripts: str, *operands: ExTensor, needs: tuple[bool, ...] | None = None
) -> list[ExTensor | None]:
    """Gradient of :func:`einsum`: for each operand, the sum of products of dy and the other operands.

    "ij,jk->ik": da_ij = sum_k dy_ik b_jk,  db_jk = sum_i a_ij dy_ik.  Summed letters are broadcast back, broadcast
    ones summed; off a diagonal the gradient is 0.

    Args:
        grad_output: the gradient of the result.
        subscripts, operands: as given to :func:`einsum`.
        needs: which gradients are wanted; the others are None.

    Returns:
        A list with one gradient per operand.

    Example:
        >>> import extensor as et
        >>> et.einsum_backward(et.tensor(1.0), "ii", et.ones((2, 2)))[0].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    tensors = _operands("einsum_backward", operands)
    wanted = (True,) * len(tensors) if needs is None else needs
    check_needs("einsum_backward", wanted, len(tensors))
    for i, want in enumerate(wanted):
        if want:
            differentiable_input("einsum_backward", f"operands[{i}]", tensors[i])
    equation = _parse("einsum_backward", subscripts, [x.shape for x in tensors])
    grad = as_grad("einsum_backward", grad_output, equation.shape)
    return [_operand_gradient(equation, grad, tensors, i) if want else None for i, want in enumerate(wanted)]


def _operand_gradient(equation: Equation, grad: ExTensor, tensors: list[ExTensor], i: int) -> ExTensor | None:
    term, x = equation.inputs[i], tensors[i]
    others = [conj(other) for other in (*tensors[:i], *tensors[i + 1 :])]
    terms = [equation.output, *equation.inputs[:i], *equation.inputs[i + 1 :]]
    own = dict(zip(term, x.shape))
    known = [c for c in own if own[c] == equation.lengths[c] and any(c in t for t in terms)]
    found = einsum(f"{','.join(terms)}->{''.join(known)}", grad, *others)
    # the first axis of each letter takes its place, the others are new
    lengths = dict(zip(known, found.shape))
    first = [lengths.get(c, 1) if term.index(c) == axis else 1 for axis, c in enumerate(term)]
    spread = broadcast_to(found.reshape(tuple(first)), x.shape)
    if len(own) < len(term):
        spread = where(ExTensor(_diagonal(term, x.shape)), spread, 0.0)
    return cast_like(spread, x)


def _diagonal(term: str, shape: Shape) -> np.ndarray:
    """Where the positions along all axes of the same letter agree."""
    positions = np.indices(shape, sparse=True)
    agree = np.ones(shape, bool)
    for axis, letter in enumerate(term):
        agree &= positions[axis] == positions[term.index(letter)]
    return agree
