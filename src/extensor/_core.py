"""What the recorder is made of: native, or the same in Python where there is no native module. This is the place that chooses."""

from __future__ import annotations

try:
    from ._native import (
        NodeBase,
        OpBase,
        StateBlock,
        TensorBase,
        bump_structure,
        clear_plans,
        enable_plans,
        kernels,
        next_sequence,
        plan_counts,
        register,
        this_thread,
        walk_back,
    )  # fmt: skip
except ModuleNotFoundError:
    from ._pure import (  # type: ignore[assignment]
        NodeBase,
        OpBase,
        StateBlock,
        TensorBase,
        bump_structure,
        clear_plans,
        enable_plans,
        kernels,
        next_sequence,
        plan_counts,
        register,
        this_thread,
        walk_back,
    )  # fmt: skip

__all__ = [
    "NodeBase", "OpBase", "StateBlock", "TensorBase", "bump_structure", "clear_plans", "enable_plans", "kernels",
    "next_sequence", "plan_counts", "register", "this_thread", "walk_back",
]  # fmt: skip
