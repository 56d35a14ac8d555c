"""What goes wrong between processes."""

from __future__ import annotations

__all__ = ["LostRankError", "MismatchError"]


class LostRankError(RuntimeError):
    """Another rank ended, was stopped or cannot be reached; the job cannot go on."""


class MismatchError(ValueError):
    """The ranks do not run the same thing: another version, other shapes, seeds or data."""
