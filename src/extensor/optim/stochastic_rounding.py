"""bfloat16 parameters without float32 copies: new values are rounded by chance, so that small steps are not lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..checks import as_int
from ..dtypes import bfloat16, float32
from ..errors import describe
from ..kernels.reference import optim as kernels
from ..nn.parameter import Parameter
from ..tensor import ExTensor

__all__ = ["StochasticRounding"]


class StochasticRounding:
    """The chances of one optimiser: they follow from the seed, the number of the step and the place of the parameter.

    Args:
        function: the optimiser, for messages.
        seed: of the chances.
    """

    def __init__(self, function: str, seed: Any) -> None:
        self.seed = as_int(function, "stochastic_rounding", seed)
        if not 0 <= self.seed < 2**64:
            raise ValueError(
                f"[{function}] stochastic_rounding must be a seed from 0 to 2**64 - 1, got {seed}"
            )
        self.calls = 0  # one for each group and step

    def widened(self, params: Sequence[Parameter]) -> list[ExTensor]:
        """bfloat16 parameters in float32, for a rule that then rounds nothing."""
        return [p.detach().astype(float32) if p.dtype == bfloat16 else p for p in params]

    def rounded(self, new: Sequence[ExTensor], params: Sequence[Parameter]) -> list[ExTensor]:
        """What the rule returned for widened parameters, in the dtypes of the parameters."""
        self.calls += 1
        return [
            kernels.round_stochastically(value, self.seed, self.calls, place)
            if p.dtype == bfloat16
            else value
            for place, (value, p) in enumerate(zip(new, params))
        ]

    def state_dict(self) -> dict[str, int]:
        """The seed, and how often it was drawn from."""
        return {"seed": self.seed, "calls": self.calls}

    def load_state_dict(self, function: str, state: Any) -> None:
        """Take over what :meth:`state_dict` gave."""
        if not isinstance(state, Mapping) or set(state) != {"seed", "calls"}:
            raise TypeError(
                f"[{function}] rounding must be a dict with seed and calls, got {describe(state)}"
            )
        seed, calls = (as_int(function, f"rounding[{key!r}]", state[key]) for key in ("seed", "calls"))
        if seed != self.seed or calls < 0:
            raise ValueError(f"[{function}] rounding has the seed {seed}, the optimiser {self.seed}")
        self.calls = calls
