"""Layers, losses and functions beyond the common ones, beside PyTorch, in one process.

    python benchmarks/new_layers.py [part of a name...] [--threads 1] [--rounds 15] [--worst 12]

Each is called alone (without recording) and with the gradients of all its floating inputs. Short rounds in turn, the minimum
of each counts. Prints our time as a multiple of PyTorch's (less is better), the geometric means and the worst. Needs torch.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import extensor as et
from extensor.bench.layer_cases import both
from extensor.bench.timing import best_times, table

Arrays = list[np.ndarray]
Row = tuple[str, str, Callable[[], Arrays], Callable[..., Any], Callable[..., Any]]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, count, shape)


def signs(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).choice([-1, 1], shape)


def of(*shapes: tuple[int, ...]) -> Callable[[], Arrays]:
    return lambda: [normal(*shape, seed=i) for i, shape in enumerate(shapes)]


def alike(function: str, *shapes: tuple[int, ...], note: str = "", **options: Any) -> Row:
    """A function that both have under one name, called alike."""
    ours, theirs = getattr(et, function), getattr(F, function)
    size = "x".join(map(str, shapes[0]))
    return (
        f"{function}{note}", size, of(*shapes), lambda *t: ours(*t, **options), lambda *t: theirs(*t, **options),
    )  # fmt: skip


def to_size(function: str, shape: tuple[int, ...], size: int, note: str = "") -> Row:
    """The same with a size or factor that each calls otherwise: by position."""
    row = alike(function, shape, note=note)
    ours, theirs = getattr(et, function), getattr(F, function)
    return (*row[:3], lambda x: ours(x, size), lambda x: theirs(x, size))


def windows() -> list[Row]:
    """Convolutions and poolings."""
    sequence, image, volume = (16, 16, 512), (16, 16, 32, 32), (4, 8, 16, 16, 16)
    twice: dict[str, Any] = {"stride": 2, "padding": 1}
    return [
        alike("conv1d", sequence, (16, 16, 5), (16,), padding=2),
        alike("conv1d", sequence, (32, 16, 3), (32,), note=", stride 2", **twice),
        alike("conv1d", sequence, (16, 1, 5), note=" depthwise", padding=2, groups=16),
        alike("conv3d", volume, (16, 8, 3, 3, 3), (16,), padding=1),
        alike("conv3d", volume, (16, 8, 3, 3, 3), note=", stride 2", **twice),
        alike("conv3d", volume, (16, 8, 1, 1, 1), note=" 1x1x1"),
        alike("conv_transpose1d", (16, 16, 256), (16, 8, 4), (8,), **twice),
        alike("conv_transpose2d", (16, 16, 16, 16), (16, 8, 4, 4), (8,), **twice),
        alike("conv_transpose3d", (4, 8, 8, 8, 8), (8, 8, 2, 2, 2), (8,), stride=2),
        alike("max_pool1d", sequence, kernel_size=2),
        alike("max_pool1d", sequence, note=" 3, stride 2", kernel_size=3, **twice),
        alike("max_pool2d", image, note=", dilation 2", kernel_size=2, dilation=2),
        alike("max_pool3d", volume, kernel_size=2),
        alike("avg_pool1d", sequence, kernel_size=2),
        alike("avg_pool3d", volume, kernel_size=2),
        to_size("adaptive_avg_pool1d", sequence, 7),
        to_size("adaptive_avg_pool2d", image, 7),
        to_size("adaptive_avg_pool3d", volume, 5),
        to_size("adaptive_max_pool1d", sequence, 7),
        to_size("adaptive_max_pool2d", image, 7),
        to_size("adaptive_max_pool2d", image, 8, ", even"),
        to_size("adaptive_max_pool3d", volume, 5),
    ]


def pictures() -> list[Row]:
    """Resampling, padding and neighbours."""
    image = (16, 16, 32, 32)

    def grid():
        return [
            normal(*image),
            np.random.default_rng(1).uniform(-1, 1, (16, 32, 32, 2)).astype(np.float32),
        ]

    rows: list[Row] = [
        alike("interpolate", shape, note=f" {mode}", scale_factor=2, mode=mode)
        for mode, shape in (
            ("nearest", image),
            ("bilinear", image),
            ("bicubic", image),
            ("linear", (16, 16, 512)),
        )
    ]
    rows += [
        ("grid_sample", "16x16x32x32", grid, et.grid_sample, lambda x, g: F.grid_sample(x, g, align_corners=False)),
        ("affine_grid", "16x32x32", of((16, 2, 3)), lambda t: et.affine_grid(t, (16, 3, 32, 32)),
         lambda t: F.affine_grid(t, (16, 3, 32, 32), align_corners=False)),
        to_size("pixel_shuffle", image, 2),
        to_size("pixel_unshuffle", image, 2),
        alike("local_response_norm", image, size=5),
    ]  # fmt: skip
    for mode in ("Reflection", "Replication", "Circular", "Zero"):
        ours, theirs = getattr(et.nn, f"{mode}Pad2d")(2), getattr(torch.nn, f"{mode}Pad2d")(2)
        rows.append((f"{mode}Pad2d", "16x16x32x32", of(image), ours, theirs))
    return rows


def losses() -> list[Row]:
    """Losses of margins, likelihoods and sequences."""

    def scores() -> Arrays:
        return [normal(128, 32), labels(32, 128)]

    def sequences() -> Arrays:
        logits = normal(50, 16, 20)
        return [logits - np.log(np.exp(logits).sum(-1, keepdims=True))]

    marks = np.random.default_rng(1).integers(1, 20, (16, 10))
    lengths = np.full(16, 50), np.full(16, 10)
    ours_given = [et.tensor(v) for v in (marks, *lengths)]
    theirs_given = [torch.from_numpy(v) for v in (marks, *lengths)]
    several = np.where(np.arange(32) < 4, labels(32, 128, 32), -1)
    rows: list[Row] = [
        ("ctc", "50x16x20", sequences, lambda x: et.ctc(x, *ours_given), lambda x: F.ctc_loss(x, *theirs_given)),
        ("nll", "128x32", scores, et.nll, F.nll_loss),
        ("soft_margin", "128x32", lambda: [normal(128, 32), signs(128, 32)], et.soft_margin, F.soft_margin_loss),
        ("hinge_embedding", "128x32", lambda: [normal(128, 32), signs(128, 32)], et.hinge_embedding, F.hinge_embedding_loss),
        ("margin_ranking", "4096", lambda: [normal(4096), normal(4096, seed=1), signs(4096)], et.margin_ranking,
         F.margin_ranking_loss),
        ("multi_margin", "128x32", scores, et.multi_margin, F.multi_margin_loss),
        ("multilabel_margin", "128x32", lambda: [normal(128, 32), several], et.multilabel_margin, F.multilabel_margin_loss),
        ("multilabel_soft_margin", "128x32", lambda: [normal(128, 32), labels(2, 128, 32).astype(np.float32)], lambda x, t: et.multilabel_soft_margin(x, t.detach()),
         F.multilabel_soft_margin_loss),
        ("gaussian_nll", "128x32", lambda: [normal(128, 32), normal(128, 32, seed=1), np.abs(normal(128, 32, seed=2)) + 1],
         et.gaussian_nll, F.gaussian_nll_loss),
        ("poisson_nll", "128x32", lambda: [normal(128, 32), labels(5, 128, 32).astype(np.float32)], lambda x, t: et.poisson_nll(x, t.detach()), F.poisson_nll_loss),
        ("triplet_margin", "128x64", of((128, 64), (128, 64), (128, 64)), et.triplet_margin, F.triplet_margin_loss),
        ("cosine_embedding", "128x64", lambda: [normal(128, 64), normal(128, 64, seed=1), signs(128)], et.cosine_embedding,
         F.cosine_embedding_loss),
        ("cosine_similarity", "128x64", of((128, 64), (128, 64)), et.cosine_similarity, F.cosine_similarity),
        ("cdist", "64x64x16", of((64, 16), (64, 16)), et.cdist, torch.cdist),
    ]  # fmt: skip
    return rows


def networks() -> list[Row]:
    """Cells, positions, attention, gates, dropout and the functions between layers."""
    rows: list[Row] = []
    for kind in ("RNNCell", "GRUCell", "LSTMCell"):
        ours, theirs = getattr(et.nn, kind)(64, 64, rng=0), getattr(torch.nn, kind)(64, 64)
        first = kind == "LSTMCell"
        rows.append((kind, "32x64", of((32, 64)), (lambda x, f=ours: f(x)[0]) if first else ours,
                     (lambda x, f=theirs: f(x)[0]) if first else theirs))  # fmt: skip
    cos, sin = (
        f(np.arange(128)[:, None] * np.linspace(1, 0.1, 16)).astype(np.float32) for f in (np.cos, np.sin)
    )
    our_angles, their_angles = [et.tensor(v) for v in (cos, sin)], [torch.from_numpy(v) for v in (cos, sin)]

    def turned(x: Any) -> Any:  # as transformers' models write it
        c, s = (torch.cat([v, v], -1) for v in their_angles)
        a, b = x.chunk(2, -1)
        return x * c + torch.cat([-b, a], -1) * s

    dropout, torch_dropout = et.nn.Dropout(0.5, rng=0), torch.nn.Dropout(0.5)
    dropout2d, torch_dropout2d = et.nn.Dropout2d(0.5, rng=0), torch.nn.Dropout2d(0.5)
    encoder = et.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, rng=0)
    their_encoder = torch.nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)
    rows += [
        ("rotary_embedding", "8x4x128x32", of((8, 4, 128, 32)), lambda x: et.rotary_embedding(x, *our_angles), turned),
        ("grouped-query attention", "8x8x128x32", of((8, 8, 128, 32), (8, 2, 128, 32), (8, 2, 128, 32)), grouped,
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)),
        ("TransformerEncoderLayer", "8x64x64", of((8, 64, 64)), encoder, their_encoder),
        ("glu", "256x512", of((256, 512)), et.glu, F.glu),
        ("softmin", "256x512", of((256, 512)), et.nn.Softmin(-1), torch.nn.Softmin(-1)),
        ("hardshrink", "256x512", of((256, 512)), et.hard_shrink, F.hardshrink),
        ("softshrink", "256x512", of((256, 512)), et.soft_shrink, F.softshrink),
        ("tanhshrink", "256x512", of((256, 512)), et.tanh_shrink, F.tanhshrink),
        ("log_sigmoid", "256x512", of((256, 512)), et.log_sigmoid, F.logsigmoid),
        ("softsign", "256x512", of((256, 512)), et.softsign, F.softsign),
        ("celu", "256x512", of((256, 512)), et.celu, F.celu),
        ("Dropout", "256x512", of((256, 512)), dropout, torch_dropout),
        ("Dropout2d", "16x16x32x32", of((16, 16, 32, 32)), dropout2d, torch_dropout2d),
        ("einsum bij,bjk->bik", "16x64x64", of((16, 64, 64), (16, 64, 64)), lambda a, b: et.einsum("bij,bjk->bik", a, b),
         lambda a, b: torch.einsum("bij,bjk->bik", a, b)),
        ("einsum bhid,bhjd->bhij", "8x4x64x32", of((8, 4, 64, 32), (8, 4, 64, 32)), lambda a, b: et.einsum("bhid,bhjd->bhij", a, b),
         lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b)),
        ("einsum ij,jk,kl->il", "64", of((64, 64), (64, 64), (64, 64)), lambda *t: et.einsum("ij,jk,kl->il", *t),
         lambda *t: torch.einsum("ij,jk,kl->il", *t)),
        ("sort", "64x1024", of((64, 1024)), et.sort, lambda x: torch.sort(x)[0]),
        ("argsort", "64x1024", lambda: [labels(2**30, 64, 1024)], et.argsort, torch.argsort),
        ("top_k", "64x1024", of((64, 1024)), lambda x: et.top_k(x, 10).values, lambda x: torch.topk(x, 10)[0]),
        ("cumprod", "64x256", of((64, 256)), lambda x: et.cumprod(x, 1), lambda x: torch.cumprod(x, 1)),
        ("logcumsumexp", "64x256", of((64, 256)), lambda x: et.logcumsumexp(x, 1), lambda x: torch.logcumsumexp(x, 1)),
        ("median", "64x1024", of((64, 1024)), lambda x: et.median(x, 1), lambda x: torch.quantile(x, 0.5, 1)),
    ]  # fmt: skip
    return rows


def grouped(q: Any, k: Any, v: Any) -> Any:
    k, v = (et.repeat(t, 4, 1) for t in (k, v))
    return et.scaled_dot_product_attention(q, k, v, None, True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only what contains one of these")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--worst", type=int, default=12)
    options = parser.parse_args()
    et.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    found: dict[str, float] = {}
    lines = [("layer", "size", "alone [us]", "/ PyTorch", "gradients [us]", "/ PyTorch")]
    for name, size, arrays, ours, theirs in windows() + pictures() + losses() + networks():
        if options.names and not any(part in name for part in options.names):
            continue
        line = [name, size]
        cases = list(
            both("", name, (size, arrays, ours, lambda torch, *t, f=theirs: f(*t)), {"torch": torch})
        )
        for case in (
            cases if any(a.dtype == np.float32 for a in arrays()) else cases[:1]
        ):  # else without gradients
            times = best_times(case.make(), options.rounds)
            found[case.name] = times["extensor"] / times["torch"]
            line += [f"{times['extensor'] * 1e6:.0f}", f"{found[case.name]:.2f}"]
        lines.append((*line, *[""] * (6 - len(line))))
    print(table(lines))
    with_gradients = [n for n in found if n.endswith(", gradients")]
    alone = [n for n in found if n not in with_gradients]
    for title, kept in (("alone", alone), ("with gradients", with_gradients), ("all", list(found))):
        if kept:
            mean = math.exp(sum(math.log(found[n]) for n in kept) / len(kept))
            print(
                f"geometric mean, {title}: {mean:.2f} of {len(kept)}, over 1: {sum(found[n] > 1 for n in kept)}"
            )
    worst = sorted(found, key=found.__getitem__, reverse=True)[: options.worst]
    print("worst: " + "; ".join(f"{n} {found[n]:.2f}" for n in worst))


if __name__ == "__main__":
    main()
