"""Layers that change the size of images, and one that normalises across channels."""

from __future__ import annotations

from typing import Any

from ..checks import as_bool
from ..errors import describe
from ..ops.distances import cosine_similarity
from ..ops.resampling import interpolate, pixel_shuffle, pixel_unshuffle
from ..ops.response_norm import local_response_norm
from ..tensor import ExTensor
from ._settings import positive
from .module import Module

__all__ = ["CosineSimilarity", "LocalResponseNorm", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Upsample"]


class Upsample(Module):
    """Sequences, images or volumes of another size, see :func:`extensor.interpolate`.

    Args:
        size: the new lengths; or
        scale_factor: a factor.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"trilinear"`` or ``"bicubic"``.
        align_corners: whether the centres of the corner pixels stay where they are.

    Example:
        >>> import extensor as et
        >>> et.nn.Upsample(scale_factor=2, mode="bilinear")(et.ones((1, 3, 4, 4))).shape
        (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        if (size is None) == (scale_factor is None):
            raise ValueError(
                f"[Upsample] give either size or scale_factor, got {describe(size)} and {describe(scale_factor)}"
            )
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = (
            False if align_corners is None else as_bool("Upsample", "align_corners", align_corners)
        )

    def forward(self, x: ExTensor) -> ExTensor:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        how = f"size={self.size}" if self.size is not None else f"scale_factor={self.scale_factor}"
        return f"{how}, mode={self.mode!r}"


class PixelShuffle(Module):
    """r * r channels as the pixels of a larger image, see :func:`extensor.pixel_shuffle`.

    Example:
        >>> import extensor as et
        >>> et.nn.PixelShuffle(2)(et.ones((1, 8, 3, 3))).shape
        (1, 2, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = positive("PixelShuffle", "upscale_factor", upscale_factor)

    def forward(self, x: ExTensor) -> ExTensor:
        return pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Blocks of r x r pixels as channels, see :func:`extensor.pixel_unshuffle`.

    Example:
        >>> import extensor as et
        >>> et.nn.PixelUnshuffle(2)(et.ones((1, 2, 6, 6))).shape
        (1, 8, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = positive("PixelUnshuffle", "downscale_factor", downscale_factor)

    def forward(self, x: ExTensor) -> ExTensor:
        return pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class LocalResponseNorm(Module):
    """Each element divided by the size of its neighbours in other channels, see :func:`extensor.local_response_norm`.

    Example:
        >>> import extensor as et
        >>> et.nn.LocalResponseNorm(2)(et.ones((1, 4, 3, 3))).shape
        (1, 4, 3, 3)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = positive("LocalResponseNorm", "size", size)
        self.alpha, self.beta, self.k = alpha, beta, k

    def forward(self, x: ExTensor) -> ExTensor:
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CosineSimilarity(Module):
    """The cosine of the angle between vectors, see :func:`extensor.cosine_similarity`.

    Example:
        >>> import extensor as et
        >>> et.nn.CosineSimilarity()(et.tensor([[1.0, 0.0]]), et.tensor([[0.0, 2.0]])).tolist()
        [0.0]
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: ExTensor, x2: ExTensor) -> ExTensor:
        return cosine_similarity(x1, x2, self.dim, self.eps)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, eps={self.eps}"


class Unflatten(Module):
    """One axis as several.

    Example:
        >>> import extensor as et
        >>> et.nn.Unflatten(1, (2, 3))(et.ones((4, 6))).shape
        (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: ExTensor) -> ExTensor:
        axis = self.dim % x.ndim if -x.ndim <= self.dim < x.ndim else None
        if axis is None:
            raise ValueError(f"[Unflatten] dim {self.dim} is out of range for x of shape {x.shape}")
        return x.reshape((*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
