"""L-BFGS: steps along an estimate of the inverse Hessian, from the last changes of position and gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..dtypes import HALF, float32
from ..errors import describe
from ..graph import no_grad, set_recording
from ..nn.parameter import Parameter
from ..ops.creation import zeros
from ..ops.elementwise import abs as absolute
from ..ops.joining import concatenate
from ..ops.matrix import dot
from ..tensor import ExTensor, tensor
from ._line_search import Point, strong_wolfe
from .optimizer import Optimizer

__all__ = ["LBFGS"]


class _Pair(NamedTuple):
    """A step and the change of the gradient over it, and 1 over their product."""

    step: ExTensor
    change: ExTensor
    inverse: float


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal, 1989), for smooth losses on the whole data: small fits, physics, polishing.

    One call of :meth:`step` makes up to ``max_iter`` iterations, each along ``-H g`` with the inverse Hessian H estimated
    from the last ``history_size`` steps.

    Args:
        params: the parameters; one group.
        lr: the length of a step; with a line search, of its first try.
        max_iter: iterations per call of :meth:`step`.
        max_eval: evaluations of the closure per call; 5/4 of ``max_iter`` without it.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when steps or changes of the loss are smaller.
        history_size: how many steps are remembered.
        line_search_fn: None for steps of length ``lr``, or ``"strong_wolfe"``, which is what makes it robust.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([5.0, -3.0])
        >>> optimizer = et.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - et.tensor([1.0, 2.0])) ** 4).sum()
        ...     loss.backward()
        ...     return loss
        >>> first = optimizer.step(closure)
        >>> round(first.item()), [round(x, 1) for x in w.tolist()]
        (881, [1.0, 2.0])
    """

    def __init__(
        self, params: Any, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad}
        more = {
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        self._forget()
        super().__init__(params, options | more)

    def _forget(self) -> None:
        self._iterations = self._evaluations = 0
        self._pairs: list[_Pair] = []
        self._scale = 1.0
        self._direction: ExTensor | None = None
        self._length = 0.0
        self._gradient: ExTensor | None = None
        self._loss = math.inf

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """The parameters; there can be one group only."""
        if self.param_groups:
            raise ValueError("[LBFGS] params must be one group; it steps all parameters together")
        super().add_param_group(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to ``max_iter`` iterations.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The loss before the first of them.
        """
        if closure is None:
            raise TypeError("[LBFGS] step needs a closure that computes the loss and its gradients again")
        group = self.param_groups[0]
        self._check_live(group["params"])
        with set_recording(True):
            first = closure()
        with no_grad():
            self._iterate(closure, float(first), **group)
        return first

    def _iterate(
        self, closure: Callable[[], Any], loss: float, *, params: list[Parameter], lr: float, max_iter: int,
        max_eval: int | None, tolerance_grad: float, tolerance_change: float, history_size: int, line_search_fn: str | None,
        initial_lr: Any = None,
    ) -> None:  # fmt: skip
        def evaluate(start: list[ExTensor], direction: ExTensor, length: float) -> Point:
            _move(params, start, direction, length)
            with set_recording(True):
                value = float(closure())
            gradient = _flat_gradient(params)
            return Point(length, value, gradient, float(dot(gradient, direction)))

        gradient = _flat_gradient(params)
        most = max_iter * 5 // 4 if max_eval is None else max_eval
        evaluations = 1
        for iteration in range(1, max_iter + 1):
            if _largest(gradient) <= tolerance_grad:
                break
            direction = self._next_direction(gradient, history_size)
            self._iterations += 1
            length = lr * min(1.0, 1 / float(absolute(gradient).sum())) if self._iterations == 1 else lr
            slope = float(dot(gradient, direction))
            before, self._gradient, self._direction = loss, gradient, direction
            if not slope <= -tolerance_change:
                break
            start = [p.detach() for p in params]
            if line_search_fn is not None:
                found, tries = strong_wolfe(
                    lambda t, x=start, d=direction: evaluate(x, d, t),  # type: ignore[misc]
                    Point(0.0, loss, gradient, slope), length, tolerance_change / max(_largest(direction), 1e-300),
                )  # fmt: skip
                length, loss, gradient = found.length, found.value, found.gradient
                _move(params, start, direction, length)
                evaluations += tries
            elif iteration < max_iter:
                length, loss, gradient, _ = evaluate(start, direction, length)
                evaluations += 1
            else:  # the loss there is computed by the next call of step
                _move(params, start, direction, length)
            self._length = length
            if evaluations >= most or _largest(direction) * length <= tolerance_change:
                break
            if abs(loss - before) < tolerance_change and iteration < max_iter:
                break
        self._loss = loss
        self._evaluations += evaluations

    def _next_direction(self, gradient: ExTensor, history_size: int) -> ExTensor:
        """-H g: through the remembered steps from the last to the first, and back."""
        if self._direction is None or self._gradient is None:
            return -gradient
        step, change = self._direction * self._length, gradient - self._gradient
        product = float(dot(change, step))
        if product > 1e-10:
            self._pairs = [*self._pairs, _Pair(step, change, 1 / product)][-history_size:]
            self._scale = product / float(dot(change, change))
        weights = []
        q = -gradient
        for pair in reversed(self._pairs):
            weights.append(float(dot(pair.step, q)) * pair.inverse)
            q = q - pair.change * weights[-1]
        q = q * self._scale
        for pair, weight in zip(self._pairs, reversed(weights)):
            q = q + pair.step * (weight - float(dot(pair.change, q)) * pair.inverse)
        return q

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, under parameter 0 and PyTorch's names, and its options."""
        plain = super().state_dict()
        if self._iterations:
            plain["state"] = {
                0: {
                    "n_iter": self._iterations, "func_evals": self._evaluations, "d": self._direction, "t": self._length,
                    "old_dirs": [pair.change for pair in self._pairs], "old_stps": [pair.step for pair in self._pairs],
                    "ro": [pair.inverse for pair in self._pairs], "H_diag": self._scale, "prev_flat_grad": self._gradient,
                    "prev_loss": self._loss,
                }
            }  # fmt: skip
        return plain

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave. Nothing is changed unless everything fits."""
        name = "LBFGS.load_state_dict"
        if not isinstance(state_dict, Mapping) or not isinstance(state_dict.get("state"), Mapping):
            raise TypeError(
                f"[{name}] state_dict must be a dict with 'state' and 'param_groups', got {describe(state_dict)}"
            )
        states = list(state_dict["state"].values())
        saved = states[0] if states else None
        if saved is not None:
            missing = {
                "n_iter",
                "func_evals",
                "d",
                "t",
                "old_dirs",
                "old_stps",
                "ro",
                "H_diag",
                "prev_flat_grad",
            } - set(saved)
            if missing:
                raise ValueError(
                    f"[{name}] state[0] is of another optimiser: it has no {', '.join(sorted(missing))}"
                )
            size = sum(p.size for p in self._params())
            vectors = [saved["d"], saved["prev_flat_grad"], *saved["old_dirs"], *saved["old_stps"]]
            found = [tensor(v) for v in vectors]
            if (
                any(v.shape != (size,) for v in found)
                or len({len(saved[k]) for k in ("old_dirs", "old_stps", "ro")}) != 1
            ):
                raise ValueError(
                    f"[{name}] state[0] must have vectors of the {size} elements of all parameters"
                )
        super().load_state_dict({**state_dict, "state": {}})
        self._forget()
        if saved is not None:
            self._direction, self._gradient, *rest = found
            half = len(rest) // 2
            inverses = [float(r) for r in saved["ro"]]
            self._pairs = [_Pair(s, y, r) for y, s, r in zip(rest[:half], rest[half:], inverses)]
            self._iterations, self._evaluations = int(saved["n_iter"]), int(saved["func_evals"])
            self._length, self._scale = float(saved["t"]), float(saved["H_diag"])
            self._loss = float(saved.get("prev_loss", math.inf))


def _flat_gradient(params: list[Parameter]) -> ExTensor:
    """All gradients as one vector, at least float32; 0 where there is none."""
    parts = [zeros(p.size, p.dtype) if p.grad is None else p.grad.detach().reshape(-1) for p in params]
    return concatenate([part.astype(float32) if part.dtype in HALF else part for part in parts])


def _move(params: list[Parameter], start: list[ExTensor], direction: ExTensor, length: float) -> None:
    """Every parameter to its place on the line."""
    offset = 0
    for p, x in zip(params, start):
        part = direction[offset : offset + p.size].reshape(p.shape)
        p.assign(x + part * length)
        offset += p.size


def _largest(x: ExTensor) -> float:
    return float(absolute(x).max()) if x.size else 0.0
