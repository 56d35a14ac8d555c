"""Layers that add a margin: of zeros, of a constant, of the last elements, of a mirror image, or of the other end."""

from __future__ import annotations

from typing import Any

from ..checks import as_ints, as_number
from ..errors import describe
from ..ops.joining import pad
from ..tensor import ExTensor
from .module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d",
]  # fmt: skip


class _Padding(Module):
    """Margins of the last axes: an int for all, or before and after for each direction, the last one first."""

    _directions = 1
    _mode = "constant"
    value = 0.0

    def __init__(self, padding: Any) -> None:
        name = type(self).__name__
        found = as_ints(name, "padding", padding)
        if len(found) == 1 and not isinstance(padding, (tuple, list)):
            found *= 2 * self._directions
        if len(found) != 2 * self._directions:
            raise ValueError(
                f"[{name}] padding must be an int or {2 * self._directions} of them, got {describe(padding)}"
            )
        if self._mode != "constant" and min(found) < 0:
            raise ValueError(f"[{name}] padding must not be negative, got {describe(padding)}")
        self.padding = found

    def forward(self, x: ExTensor) -> ExTensor:
        name = type(self).__name__
        if x.ndim not in (self._directions + 1, self._directions + 2):
            raise ValueError(
                f"[{name}] x must have {self._directions + 1} or {self._directions + 2} axes, got shape {x.shape}"
            )
        sides = list(zip(self.padding[::2], self.padding[1::2]))[::-1]
        lengths = x.shape[x.ndim - self._directions :]
        for n, (before, after) in zip(lengths, sides):
            most = n - 1 if self._mode == "reflect" else n
            if self._mode in ("reflect", "wrap") and max(before, after) > most:
                raise ValueError(
                    f"[{name}] padding {self.padding} is more than x of shape {x.shape} can fill"
                )
            if before + after + n < 0:
                raise ValueError(
                    f"[{name}] padding {self.padding} takes off more than x of shape {x.shape} has"
                )
        cut = tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(lengths, sides))
        if min(self.padding) < 0:  # negative margins are taken off
            x = x[(..., *cut)]
        margins = [(0, 0)] * (x.ndim - self._directions) + [
            (max(before, 0), max(after, 0)) for before, after in sides
        ]
        return (
            pad(x, margins, self._mode, self.value)
            if self._mode == "constant"
            else pad(x, margins, self._mode)
        )

    def extra_repr(self) -> str:
        return f"{self.padding}" if not self.value else f"{self.padding}, value={self.value}"


class ZeroPad1d(_Padding):
    """Zeros around sequences; ``padding`` is an int, or (left, right). A negative margin is taken off.

    Example:
        >>> import extensor as et
        >>> et.nn.ZeroPad1d((1, 2))(et.ones((1, 1, 2))).tolist()
        [[[0.0, 1.0, 1.0, 0.0, 0.0]]]
    """


class ZeroPad2d(_Padding):
    """Zeros around images; ``padding`` is an int, or (left, right, top, bottom). A negative margin is taken off.

    Example:
        >>> import extensor as et
        >>> et.nn.ZeroPad2d((1, 0, 0, 1))(et.ones((1, 1, 1, 1))).tolist()
        [[[[0.0, 1.0], [0.0, 0.0]]]]
    """

    _directions = 2


class ZeroPad3d(_Padding):
    """Zeros around volumes; ``padding`` is an int, or (left, right, top, bottom, front, back).

    Example:
        >>> import extensor as et
        >>> et.nn.ZeroPad3d(1)(et.ones((1, 1, 2, 2, 2))).shape
        (1, 1, 4, 4, 4)
    """

    _directions = 3


class _ConstantPadding(_Padding):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = as_number(type(self).__name__, "value", value)


class ConstantPad1d(_ConstantPadding):
    """A constant around sequences; arguments as :class:`ZeroPad1d`, then the value.

    Example:
        >>> import extensor as et
        >>> et.nn.ConstantPad1d(1, 5.0)(et.ones((1, 1, 1))).tolist()
        [[[5.0, 1.0, 5.0]]]
    """


class ConstantPad2d(_ConstantPadding):
    """A constant around images; arguments as :class:`ZeroPad2d`, then the value.

    Example:
        >>> import extensor as et
        >>> et.nn.ConstantPad2d(1, 5.0)(et.ones((1, 1, 1, 1))).shape
        (1, 1, 3, 3)
    """

    _directions = 2


class ConstantPad3d(_ConstantPadding):
    """A constant around volumes; arguments as :class:`ZeroPad3d`, then the value.

    Example:
        >>> import extensor as et
        >>> et.nn.ConstantPad3d(1, 5.0)(et.ones((1, 1, 1, 1, 1))).shape
        (1, 1, 3, 3, 3)
    """

    _directions = 3


class ReflectionPad1d(_Padding):
    """A mirror image around sequences, without its last element; arguments as :class:`ZeroPad1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReflectionPad1d(2)(et.tensor([[[1.0, 2.0, 3.0]]])).tolist()
        [[[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]]
    """

    _mode = "reflect"


class ReflectionPad2d(_Padding):
    """A mirror image around images, without their last pixels; arguments as :class:`ZeroPad2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReflectionPad2d(1)(et.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    _directions, _mode = 2, "reflect"


class ReflectionPad3d(_Padding):
    """A mirror image around volumes, without their last voxels; arguments as :class:`ZeroPad3d`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReflectionPad3d(1)(et.ones((1, 1, 2, 2, 2))).shape
        (1, 1, 4, 4, 4)
    """

    _directions, _mode = 3, "reflect"


class ReplicationPad1d(_Padding):
    """The last elements of sequences again and again; arguments as :class:`ZeroPad1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReplicationPad1d((2, 1))(et.tensor([[[1.0, 2.0]]])).tolist()
        [[[1.0, 1.0, 1.0, 2.0, 2.0]]]
    """

    _mode = "edge"


class ReplicationPad2d(_Padding):
    """The last pixels of images again and again; arguments as :class:`ZeroPad2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReplicationPad2d(1)(et.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    _directions, _mode = 2, "edge"


class ReplicationPad3d(_Padding):
    """The last voxels of volumes again and again; arguments as :class:`ZeroPad3d`.

    Example:
        >>> import extensor as et
        >>> et.nn.ReplicationPad3d(1)(et.ones((1, 1, 2, 2, 2))).shape
        (1, 1, 4, 4, 4)
    """

    _directions, _mode = 3, "edge"


class CircularPad1d(_Padding):
    """Sequences as rings: the other end goes on where one stops; arguments as :class:`ZeroPad1d`.

    Example:
        >>> import extensor as et
        >>> et.nn.CircularPad1d(1)(et.tensor([[[1.0, 2.0, 3.0]]])).tolist()
        [[[3.0, 1.0, 2.0, 3.0, 1.0]]]
    """

    _mode = "wrap"


class CircularPad2d(_Padding):
    """Images as rings in both directions; arguments as :class:`ZeroPad2d`.

    Example:
        >>> import extensor as et
        >>> et.nn.CircularPad2d(1)(et.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    _directions, _mode = 2, "wrap"


class CircularPad3d(_Padding):
    """Volumes as rings in all directions; arguments as :class:`ZeroPad3d`.

    Example:
        >>> import extensor as et
        >>> et.nn.CircularPad3d(1)(et.ones((1, 1, 2, 2, 2))).shape
        (1, 1, 4, 4, 4)
    """

    _directions, _mode = 3, "wrap"
