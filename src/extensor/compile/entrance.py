"""``extensor.compile``: what it takes. The rest of this package loads when something is compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from ..devices import find_device
from ..errors import describe

if TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["compile"]


@overload
def compile(
    fn: Callable[..., Any], *, check: int = 0, fallback: bool = False, device: Any = None
) -> Compiled: ...
@overload
def compile(
    fn: None = None, *, check: int = 0, fallback: bool = False, device: Any = None
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(
    fn: Callable[..., Any] | None = None, *, check: int = 0, fallback: bool = False, device: Any = None
) -> Any:
    """``fn``, recorded at the first call of each kind and repeated natively afterwards, with the same bits.

    A kind of call is the structure of the arguments, the shapes and dtypes of their tensors, the values of their numbers and
    texts, and the modes (training, recording). Parameters, gradients, buffers, optimisers with their options, schedules and
    generators are read afresh in every call. Other Python values are constants of the recording, and side effects in Python
    happen only while recording.

    Args:
        fn: a function of tensors (and structures of them), a module, or a training step that calls ``backward()`` and
            ``optimizer.step()`` on objects it closes over.
        check: so many of the first repetitions of each program are compared with ordinary execution, bit by bit;
            :class:`extensor.CompileError` names the first operation that differs.
        fallback: a function that cannot be recorded (it reads the value of a tensor) runs as it is written, with one
            warning, instead of raising :class:`extensor.CompileError`.
        device: where to run; None or ``"cpu"`` is this processor with our own kernels. ``"jax"``, ``"jax:gpu:0"`` run the
            whole program as one function of XLA (the extra ``jax``): results agree to rounding, parameters stay there between
            calls (see :meth:`Compiled.sync`), and what looks at elements in Python is refused.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0, 2.0])
        >>> optimizer = et.optim.SGD([w], lr=0.25)
        >>> @et.compile
        ... def step(x):
        ...     optimizer.zero_grad()
        ...     loss = ((w * x) ** 2).sum()
        ...     loss.backward()
        ...     optimizer.step()
        ...     return loss
        >>> [step(et.ones(2)).item() for _ in range(3)], len(step.programs)
        ([5.0, 1.25, 0.3125], 1)
    """
    from .compiled import Compiled

    place = None if device is None else find_device("compile", device)
    if isinstance(check, bool) or not isinstance(check, int) or check < 0:
        raise ValueError(f"[compile] check must be a number of calls from 0, got {describe(check)}")
    if fn is None:
        return functools.partial(compile, check=check, fallback=fallback, device=device)
    if not callable(fn):
        raise TypeError(f"[compile] fn must be a function or a module, got {describe(fn)}")
    if check and place is not None:
        raise ValueError(
            "[compile] check compares bits, which differ between devices; use check=0 with device="
        )
    return fn if isinstance(fn, Compiled) else Compiled(fn, check, fallback, place=place)
