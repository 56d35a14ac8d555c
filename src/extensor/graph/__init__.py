"""The recorder: what was called, what is kept, which public backward function undoes it.

``@differentiable`` turns a function into an :class:`Op`, ``@backward_of`` says which function is its gradient. Calling an op
runs its body; if recording is on and an input requires a gradient, the result remembers a :class:`Node`, which holds exactly
what the backward asks for (:mod:`.rules`).

What a body decides (kernels, attributes, what to save) for one kind of call is a plan (:mod:`.plans`); the native side
repeats it for the next calls of that kind. There is no other description of an op than its body.
"""

from .nodes import Branch, Node, attach, caller, is_our_file
from .ops import Backward, Op, Undifferentiated, backward_of, differentiable, for_complex, undifferentiated
from .plans import clear_plans, plan_counts, run_bodies
from .precision import autocast, forget_casts, get_autocast
from .recorder import Recorder, bump_structure, current_recorder, repeated, repeated_change
from .state import StateBlock, levels, next_sequence, no_grad, observe, set_recording, this_thread, walking

__all__ = [
    "Backward", "Branch", "Node", "Op", "Recorder", "StateBlock", "Undifferentiated", "attach", "autocast", "backward_of", "bump_structure",
    "caller", "clear_plans", "current_recorder", "differentiable", "for_complex", "forget_casts", "get_autocast", "is_our_file",
    "levels", "next_sequence", "no_grad", "observe", "plan_counts", "repeated", "repeated_change", "run_bodies",
    "set_recording", "this_thread", "undifferentiated", "walking",
]  # fmt: skip
