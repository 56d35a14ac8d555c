"""Optimisers: rules that turn gradients into better parameters."""

from .functional import sgd_step

__all__ = ["sgd_step"]
