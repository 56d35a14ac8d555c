"""How the arguments of a forward call flow into its backward function; the table stands in :mod:`extensor.graph`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .tensor import ExTensor

__all__ = ["Parameter", "Rule", "dtype_of"]


class Parameter(NamedTuple):
    """How one parameter of a backward function is filled from a forward call."""

    name: str
    take: Callable[[dict[str, Any], Any], Any]
    keyword: bool
    variadic: bool
    is_output: bool
    only_shape: bool
    only_dtype: bool

    @property
    def kept(self) -> str:
        """What the recorder keeps of the argument."""
        return "shape" if self.only_shape else "dtype" if self.only_dtype else "argument"


class Rule:
    """How the arguments of a forward call flow into its backward function; read from the two signatures."""

    def __init__(
        self, fn: Callable[..., Any], backward: Callable[..., Any], mirrored: str | None, is_custom: bool
    ) -> None:
        self.fn = fn
        self.backward = backward
        self.mirrored = mirrored
        self.is_custom = is_custom
        forward = inspect.signature(fn).parameters
        self.names = tuple(forward)
        self.defaults = {n: p.default for n, p in forward.items() if p.default is not p.empty}
        self.variadic = next((n for n, p in forward.items() if p.kind is p.VAR_POSITIONAL), None)
        back = inspect.signature(backward)
        self.takes_needs = "needs" in back.parameters
        self.parameters = [
            p for p in map(self._parameter, list(back.parameters.values())[1:]) if p is not None
        ]
        self.output_positions = [i for i, p in enumerate(self.parameters) if p.is_output]
        returns = str(back.return_annotation)
        self.returns_list = returns.startswith("list")
        self.returns_all = not is_custom and mirrored is None  # a gradient for each target, or None
        self.targets = self._targets(returns)

    def _parameter(self, p: inspect.Parameter) -> Parameter | None:
        name, annotation = p.name, str(p.annotation)
        is_output = name == "output" and name not in self.names
        if name in self.names:
            keep = (
                _shapes
                if "TensorOrShape" in annotation
                else dtype_of
                if "TensorOrDtype" in annotation
                else None
            )
            take = (lambda bound, out: keep(bound[name])) if keep else (lambda bound, out: bound[name])
        elif is_output:
            take = lambda bound, out: out  # noqa: E731
        elif name in getattr(_return_type(self.fn), "_fields", ()):
            take = lambda bound, out: getattr(out, name)  # noqa: E731
        elif name == "needs" or p.default is not p.empty:
            return None
        else:
            raise TypeError(
                f"[differentiable] {self.backward.__name__} asks for {name!r}, which is neither an argument "
                f"of {self.fn.__name__} {self.names} nor 'output'"
            )
        keyword = not is_output and (p.kind is p.KEYWORD_ONLY or p.default is not p.empty)
        return Parameter(
            name,
            take,
            keyword,
            p.kind is p.VAR_POSITIONAL,
            is_output,
            *("TensorOr" + kind in annotation for kind in ("Shape", "Dtype")),
        )

    def _targets(self, returns: str) -> tuple[str, ...]:
        fields = getattr(_return_type(self.backward), "_fields", None)
        if fields:
            return tuple(field.removeprefix("grad_") for field in fields)
        if self.is_custom and not self.returns_list and "ExTensor" not in returns.split("[", maxsplit=1)[0]:
            return (
                self.names
            )  # a user's backward without annotation: a tensor, or a tuple in the forward's order
        if self.variadic is not None:
            return (self.variadic,)
        forward = inspect.signature(self.fn).parameters
        return (next(n for n, p in forward.items() if str(p.annotation) != "Indices"),)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The forward's arguments by name, defaults filled in."""
        bound = dict(self.defaults)
        if self.variadic is None:
            bound.update(zip(self.names, args))
        else:
            position = self.names.index(self.variadic)
            bound.update(zip(self.names[:position], args))
            bound[self.variadic] = args[position:]
        bound.update(kwargs)
        return bound

    def inputs(self, bound: dict[str, Any]) -> list[Any]:
        """The values the gradients belong to, in order; a list of tensors counts as its elements."""
        found: list[Any] = []
        for name in self.targets:
            value: Any = bound.get(name)
            found.extend(value) if self.returns_list else found.append(value)
        return found

    def arguments(self, bound: dict[str, Any], output: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the backward is called with, after ``grad_output``: positional and keyword arguments."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for p in self.parameters:
            value = p.take(bound, output)
            if p.keyword:
                keywords[p.name] = value
            elif p.variadic:
                positional.extend(value)
            else:
                positional.append(value)
        return tuple(positional), keywords

    def gradients(
        self,
        grad_output: Any,
        saved: Sequence[Any],
        options: dict[str, Any] | None,
        needs: tuple[bool, ...] | None = None,
    ) -> Sequence[Any]:
        """Call the public backward; one gradient per input of :meth:`inputs`."""
        if needs is not None and self.takes_needs:
            result = self.backward(grad_output, *saved, needs=needs, **(options or {}))
        elif options:
            result = self.backward(grad_output, *saved, **options)
        else:
            result = self.backward(grad_output, *saved)
        if self.returns_all:
            return result if isinstance(result, (tuple, list)) else (result,)
        flat = list(result) if isinstance(result, (tuple, list)) else [result]
        if self.is_custom and not self.returns_list:
            flat += [None] * (len(self.targets) - len(flat))
        if self.mirrored is not None:
            flat.append(-flat[0] if needs is None or needs[-1] else None)
        return flat


def _return_type(function: Callable[..., Any]) -> Any:
    """The return annotation as an object; None where it cannot be resolved."""
    function = inspect.unwrap(function)
    annotation = function.__annotations__.get("return")
    if isinstance(annotation, str):
        return function.__globals__.get(annotation)
    return annotation


def _shapes(value: Any) -> Any:
    if isinstance(value, (ExTensor, np.ndarray)):
        return value.shape
    if isinstance(value, (list, tuple)):
        return [_shapes(v) for v in value]
    return np.shape(value)


def dtype_of(value: Any) -> Any:
    """The dtype of a tensor, an array or a number."""
    return getattr(value, "dtype", None) or np.result_type(value)
