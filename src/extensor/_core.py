"""What the recorder is made of: native, or the same in Python where there is no native module. This is the place that chooses."""

try:
    from ._native import *  # noqa: F403
except ModuleNotFoundError:
    from ._pure import *  # type: ignore[assignment]  # noqa: F403
