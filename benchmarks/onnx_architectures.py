"""Image networks of the kinds that torchvision has, written out compactly over ``torch.nn``, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

__all__ = ["ARCHITECTURES", "CLASSES"]

CLASSES = 10


def conv_norm(
    inside: int, outside: int, size: int = 3, stride: int = 1, groups: int = 1, act: Any = nn.ReLU
) -> nn.Sequential:
    """A convolution without bias, batch normalisation, an activation."""
    layers = [
        nn.Conv2d(inside, outside, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
    ]
    return nn.Sequential(*layers, *([] if act is None else [act()]))


class Head(nn.Sequential):
    """The mean over the image, and a layer of logits."""

    def __init__(self, width: int, *between: nn.Module) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), *between, nn.Linear(width, CLASSES))


# ResNet


class BasicBlock(nn.Module):
    """relu(x + conv conv x)"""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(inside, outside, 3, stride), conv_norm(outside, outside, 3, act=None)
        )
        same = stride == 1 and inside == outside
        self.downsample = nn.Identity() if same else conv_norm(inside, outside, 1, stride, act=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.downsample(x))


def resnet18() -> nn.Module:
    blocks = []
    for inside, outside in ((64, 64), (64, 128), (128, 256), (256, 512)):
        blocks += [BasicBlock(inside, outside, 1 + (inside != outside)), BasicBlock(outside, outside, 1)]
    stem = nn.Sequential(conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(stem, *blocks, Head(512))


# MobileNet V3 and EfficientNet


class SqueezeExcite(nn.Module):
    """Channels scaled by a gate of their means."""

    def __init__(self, width: int, inner: int, act: Any, gate: Any) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), act(), nn.Conv2d(inner, width, 1), gate()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class InvertedResidual(nn.Module):
    """Widen, one convolution per channel, perhaps a gate, narrow; plus x where the shapes allow."""

    def __init__(
        self, inside: int, wide: int, outside: int, size: int, stride: int, act: Any, gate: Any
    ) -> None:
        super().__init__()
        widen = [] if wide == inside else [conv_norm(inside, wide, 1, act=act)]
        each = conv_norm(wide, wide, size, stride, wide, act=act)
        gates = [] if gate is None else [gate(inside, wide)]
        self.body = nn.Sequential(*widen, each, *gates, conv_norm(wide, outside, 1, act=None))
        self.adds = stride == 1 and inside == outside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v3_small() -> nn.Module:
    rows = [  # kernel, wide, out, gate, activation, stride
        (3, 16, 16, True, nn.ReLU, 2), (3, 72, 24, False, nn.ReLU, 2), (3, 88, 24, False, nn.ReLU, 1),
        (5, 96, 40, True, nn.Hardswish, 2), (5, 240, 40, True, nn.Hardswish, 1), (5, 240, 40, True, nn.Hardswish, 1),
        (5, 120, 48, True, nn.Hardswish, 1), (5, 144, 48, True, nn.Hardswish, 1), (5, 288, 96, True, nn.Hardswish, 2),
        (5, 576, 96, True, nn.Hardswish, 1), (5, 576, 96, True, nn.Hardswish, 1),
    ]  # fmt: skip

    def gate(_: int, wide: int) -> nn.Module:
        return SqueezeExcite(wide, max(8, (wide // 4 + 4) // 8 * 8), nn.ReLU, nn.Hardsigmoid)

    layers: list[nn.Module] = [conv_norm(3, 16, 3, 2, act=nn.Hardswish)]
    inside = 16
    for size, wide, outside, gated, act, stride in rows:
        layers.append(InvertedResidual(inside, wide, outside, size, stride, act, gate if gated else None))
        inside = outside
    layers.append(conv_norm(96, 576, 1, act=nn.Hardswish))
    return nn.Sequential(*layers, Head(1024, nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2)))


def efficientnet_b0() -> nn.Module:
    rows = [  # times as wide, kernel, stride, out, blocks
        (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
        (6, 3, 1, 320, 1),
    ]  # fmt: skip

    def gate(inside: int, wide: int) -> nn.Module:
        return SqueezeExcite(wide, max(1, inside // 4), nn.SiLU, nn.Sigmoid)

    layers: list[nn.Module] = [conv_norm(3, 32, 3, 2, act=nn.SiLU)]
    inside = 32
    for times, size, stride, outside, blocks in rows:
        for i in range(blocks):
            step = stride if i == 0 else 1
            layers.append(InvertedResidual(inside, times * inside, outside, size, step, nn.SiLU, gate))
            inside = outside
    layers.append(conv_norm(320, 1280, 1, act=nn.SiLU))
    return nn.Sequential(*layers, Head(1280, nn.Dropout(0.2)))


# ConvNeXt


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of images."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """x + scale * MLP(norm(conv x)), channels last inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.each = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.mlp(self.norm(self.each(x).permute(0, 2, 3, 1))) * self.scale
        return x + inner.permute(0, 3, 1, 2)


def convnext_tiny() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, eps=1e-6)]
    for i, (width, blocks) in enumerate(((96, 3), (192, 3), (384, 9), (768, 3))):
        if i:
            layers += [ChannelNorm(width // 2, eps=1e-6), nn.Conv2d(width // 2, width, 2, 2)]
        layers += [ConvNextBlock(width) for _ in range(blocks)]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), ChannelNorm(768, eps=1e-6), nn.Flatten(), nn.Linear(768, CLASSES)
    )


# DenseNet, VGG, ShuffleNet


class DenseLayer(nn.Module):
    """x beside what two convolutions make of it."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inside), nn.ReLU(), conv_norm(inside, 4 * growth, 1), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.body(x)], 1)


def densenet() -> nn.Module:
    layers: list[nn.Module] = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for stage, count in enumerate((4, 6, 6)):
        if stage:
            layers += [
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width // 2, 1, bias=False),
                nn.AvgPool2d(2),
            ]
            width //= 2
        for _ in range(count):
            layers.append(DenseLayer(width, 32))
            width += 32
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), Head(width))


def vgg11() -> nn.Module:
    layers: list[nn.Module] = []
    inside = 3
    for outside in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0):
        layers += [nn.MaxPool2d(2)] if not outside else [nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU()]
        inside = outside or inside
    top = [nn.Linear(512 * 4, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, CLASSES)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), *top)


class ShuffleBlock(nn.Module):
    """Half of the channels convolved, then all of them interleaved."""

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        each = conv_norm(half, half, 3, groups=half, act=None)
        self.body = nn.Sequential(conv_norm(half, half, 1), each, conv_norm(half, half, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, turned = x.chunk(2, dim=1)
        n, c, h, w = x.shape
        both = torch.cat([kept, self.body(turned)], 1)
        return both.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet() -> nn.Module:
    layers: list[nn.Module] = [conv_norm(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), conv_norm(24, 116, 3, 2)]
    layers += [ShuffleBlock(116) for _ in range(4)] + [conv_norm(116, 232, 3, 2)]
    return nn.Sequential(*layers, *(ShuffleBlock(232) for _ in range(3)), Head(232))


# Transformers


class VisionTransformer(nn.Module):
    """Patches as tokens, a token of the class before them, encoder layers, logits of that token."""

    def __init__(
        self, patch: int = 8, width: int = 192, layers: int = 6, heads: int = 3, tokens: int = 64
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, tokens + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.encoder(x)[:, 0])


class WindowAttention(nn.Module):
    """Attention inside windows of 4 x 4, which every second block shifts by 2; a table of biases by distance."""

    def __init__(self, width: int, heads: int, shift: int) -> None:
        super().__init__()
        self.heads, self.shift = heads, shift
        self.norm, self.qkv, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.table = nn.Parameter(torch.randn(49, heads) * 0.02)
        at = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        apart = at[:, :, None] - at[:, None, :] + 3
        self.register_buffer("places", apart[0] * 7 + apart[1], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2)) if self.shift else self.norm(x)
        y = y.reshape(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(y).reshape(-1, 16, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
        bias = self.table[self.places.reshape(-1)].reshape(16, 16, self.heads).permute(2, 0, 1)
        y = (torch.softmax(scores + bias, -1) @ v).transpose(1, 2).reshape(-1, 16, c)
        y = self.out(y).reshape(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return x + (torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y)


class Residual(nn.Module):
    """x + inner(x)"""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x)


class MergePatches(nn.Module):
    """Four neighbours as one token of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.narrow = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.narrow(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    """Windowed attention in three stages."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 4, 4)
        layers: list[nn.Module] = []
        for stage, (width, heads) in enumerate(((48, 3), (96, 6))):
            layers += [MergePatches(width // 2)] if stage else []
            for shift in (0, 2):
                mlp = nn.Sequential(
                    nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
                )
                layers += [WindowAttention(width, heads, shift), Residual(mlp)]
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(96), nn.Linear(96, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(self.patches(x).permute(0, 2, 3, 1))
        return self.head(self.norm(x).mean((1, 2)))


ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "resnet18": resnet18, "mobilenet_v3_small": mobilenet_v3_small, "efficientnet_b0": efficientnet_b0,
    "convnext_tiny": convnext_tiny, "densenet": densenet, "vgg11": vgg11, "shufflenet": shufflenet,
    "vit": VisionTransformer, "swin": Swin,
}  # fmt: skip
