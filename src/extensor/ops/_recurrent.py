"""What the recurrent cells and sequences share: the checks of their arguments, and the walk of their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..checks import as_floating, as_tensor
from ..tensor import ExTensor, Shape
from .casting import cast_like
from .joining import stack

__all__ = [
    "ALL6", "Inputs", "RecurrentGradients", "as_saved", "finished", "in_order", "one_step", "order", "plus", "present",
    "tensors", "weight_gradient",
]  # fmt: skip

ALL6 = (True,) * 6


class RecurrentGradients(NamedTuple):
    """The gradients of a plain or a GRU cell; None where ``needs`` says that one is not wanted."""

    grad_x: ExTensor | None
    grad_h: ExTensor | None
    grad_w_ih: ExTensor | None
    grad_w_hh: ExTensor | None
    grad_b_ih: ExTensor | None
    grad_b_hh: ExTensor | None


class Inputs:
    """The arguments of a cell or of a sequence, once they are sure to fit each other.

    Attributes:
        states: h, or h and c.
        w_ih: None, where ``may_lack_w_ih`` allows it, if x already is its product.
        biases: b_ih and b_hh, either None.
    """

    def __init__(
        self,
        function: str,
        gates: int,
        x: Any,
        states: dict[str, Any],
        w_ih: Any,
        w_hh: Any,
        biases: dict[str, Any],
        sequence: bool,
        check: Callable[[str, str, Any], ExTensor] = as_floating,
        may_lack_w_ih: bool = False,
    ) -> None:
        self.x = x = check(function, "x", x)
        self.states = [check(function, name, value) for name, value in states.items()]
        self.w_ih = None if w_ih is None and may_lack_w_ih else check(function, "w_ih", w_ih)
        self.w_hh = check(function, "w_hh", w_hh)
        self.biases = [
            None if value is None else check(function, name, value) for name, value in biases.items()
        ]
        h = self.states[0]
        if (x.ndim != 3) if sequence else (x.ndim not in (1, 2)):
            axes = "(T, N, I)" if sequence else "(N, I) or (I,)"
            raise ValueError(f"[{function}] x must have the axes {axes}, got shape {x.shape}")
        if sequence and not x.shape[0]:
            raise ValueError(f"[{function}] x of shape {x.shape} has no steps")
        if self.w_hh.ndim != 2 or self.w_hh.shape[0] != gates * self.w_hh.shape[1]:
            raise ValueError(
                f"[{function}] w_hh must have shape ({_times(gates)}H, H), got {self.w_hh.shape}"
            )
        hidden, batch = self.w_hh.shape[1], x.shape[1:-1] if sequence else x.shape[:-1]
        for name, state in zip(states, self.states):
            if state.shape != (*batch, hidden):
                raise ValueError(
                    f"[{function}] {name} has shape {state.shape} but must have shape {(*batch, hidden)} "
                    f"(x: {x.shape}, w_hh: {self.w_hh.shape})"
                )
        if self.w_ih is None:
            if x.shape[-1] != gates * hidden:
                raise ValueError(
                    f"[{function}] without w_ih, x must have the axes (T, N, {_times(gates)}H), got shape {x.shape} "
                    f"(w_hh: {self.w_hh.shape})"
                )
        elif self.w_ih.shape != (gates * hidden, x.shape[-1]):
            raise ValueError(
                f"[{function}] w_ih has shape {self.w_ih.shape} but must have shape {(gates * hidden, x.shape[-1])} "
                f"(x: {x.shape}, w_hh: {self.w_hh.shape})"
            )
        for name, bias in zip(biases, self.biases):
            if bias is not None and bias.shape != (gates * hidden,):
                raise ValueError(
                    f"[{function}] {name} has shape {bias.shape} but must have shape {(gates * hidden,)}"
                )
        self.output_shape: Shape = (*x.shape[:-1], hidden) if sequence else h.shape

    @property
    def arrays(self) -> tuple[Any, ...]:
        """x, the states, the weights and the biases, in the order of the kernels."""
        return (self.x, *self.states, self.w_ih, self.w_hh, *self.biases)

    def in_their_dtypes(self, grads: Any) -> list[ExTensor | None]:
        """Each gradient in the dtype of its input; those of biases nobody asked for, in that of the weights."""
        likes = [*self.arrays, self.w_ih, self.w_hh]
        return [cast_like(grad, like) for grad, like in zip(grads, likes)]


def present(needs: tuple[bool, ...], b_ih: Any, b_hh: Any) -> tuple[bool, ...]:
    """An absent bias has no gradient."""
    return (*needs[:-2], needs[-2] and b_ih is not None, needs[-1] and b_hh is not None)


def _times(gates: int) -> str:
    return "" if gates == 1 else f"{gates}*"


def as_saved(function: str, name: str, value: Any, shape: Shape) -> ExTensor:
    """A result of the forward, given back to the backward."""
    found = as_floating(function, name, value)
    if found.shape != shape:
        raise ValueError(
            f"[{function}] {name} has shape {found.shape} but the forward's result has shape {shape}"
        )
    return found


# What the formulas share. They walk through the steps as the kernels do, in differentiable functions.


def plus(a: Any, *biases: Any) -> Any:
    for bias in biases:
        a = a if bias is None else a + bias
    return a


def order(length: int, reverse: bool) -> list[int]:
    return list(range(length - 1, -1, -1) if reverse else range(length))


def one_step(*tensors: Any) -> list[Any]:
    """A step, with or without the batch axis, as a sequence of one."""
    return [t.reshape((1, 1, *t.shape) if t.ndim == 1 else (1, *t.shape)) for t in tensors]


def rows(x: Any) -> Any:
    return x.reshape((x.shape[0] * x.shape[1], x.shape[2]))


def weight_gradient(grad: Any, x: Any) -> Any:
    return rows(grad).T @ rows(x)


def in_order(parts: dict[int, Any]) -> Any:
    return stack([parts[t] for t in range(len(parts))])


def finished(kind: Any, grads: list[Any], likes: list[Any], needs: tuple[bool, ...]) -> Any:
    """The gradients that are wanted, those of inputs in the shapes of the inputs."""
    shaped = [g.reshape(like.shape) for g, like in zip(grads, likes)] + grads[len(likes) :]
    return kind(*(g if need else None for g, need in zip(shaped, needs)))


def tensors(*values: Any) -> list[Any]:
    return [as_tensor("formula", "argument", value) for value in values]
