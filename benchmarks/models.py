"""Training steps of whole networks against PyTorch: the same weights and data, interleaved, equal threads.

A step is zero_grad, forward, loss, backward and update. PyTorch runs images in both memory layouts and the faster one counts.
After each turn both libraries rest for 10 ms, because the workers of OpenMP spin for a while after their last task. The peak
of memory is how much the resident set of a process of its own grows over the first five steps; it holds no data of the other.

    python benchmarks/models.py --threads 1
    python benchmarks/models.py --only lstm --threads 2 --rounds 40 --no-memory
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import extensor as et
from extensor.bench import compare, table

PAUSE = 0.01
VOCABULARY = 65
Step = Callable[[], float]


class Model(NamedTuple):
    """One row: the network of ExTensor, that of PyTorch, the data, and the optimiser of both."""

    title: str
    limit: float
    ours: Callable[[], Any]
    theirs: Callable[[Any], Any]
    data: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    optimizer: str
    options: dict[str, float]


def images(channels: int, size: int) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    return lambda rng: (
        rng.normal(size=(64, channels, size, size)).astype(np.float32),
        rng.integers(0, 10, 64),
    )


def text(batch: int, length: int) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        tokens = rng.integers(0, VOCABULARY, (batch, length + 1))
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()

    return draw


# The networks in PyTorch, with the names of ours, so that a state dict moves over by name.


def torch_mlp(torch: Any, sizes: Sequence[int] = (784, 128, 10)) -> Any:
    nn = torch.nn

    class MLP(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
            self.layers = nn.Sequential(*layers[:-1])

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    return MLP()


def torch_lenet(torch: Any) -> Any:
    nn = torch.nn

    class LeNet5(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
            self.pool = nn.MaxPool2d(2)
            self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

        def forward(self, x: Any) -> Any:
            x = self.pool(self.conv1(x).relu())
            x = self.pool(self.conv2(x).relu()).flatten(1)
            return self.fc3(self.fc2(self.fc1(x).relu()).relu())

    return LeNet5()


def torch_resnet(torch: Any) -> Any:
    nn = torch.nn

    class BasicBlock(nn.Module):
        def __init__(self, channels_in: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.stride, self.more = stride, (channels - channels_in) // 2

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
            if self.stride != 1:
                x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more, self.more))
            return (out + x).relu()

    class ResNet20(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
            self.layer1, self.layer2, self.layer3 = stage(16, 16, 1), stage(16, 32, 2), stage(32, 64, 2)
            self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            x = self.layer3(self.layer2(self.layer1(self.bn1(self.conv1(x)).relu())))
            return self.fc(self.pool(x).flatten(1))

    def stage(channels_in: int, channels: int, stride: int) -> Any:
        rest = [BasicBlock(channels, channels, 1) for _ in range(2)]
        return nn.Sequential(BasicBlock(channels_in, channels, stride), *rest)

    return ResNet20()


def torch_gpt(torch: Any, bias: bool = True, context: int = 64, heads: int = 4, width: int = 128) -> Any:
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            q, k, v = (p.view(n, t, heads, -1).transpose(1, 2) for p in self.c_attn(x).split(width, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(y.transpose(1, 2).reshape(n, t, width))

    class FeedForward(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.c_fc, self.gelu, self.c_proj = (
                nn.Linear(width, 4 * width, bias),
                nn.GELU(),
                nn.Linear(4 * width, width, bias),
            )

        def forward(self, x: Any) -> Any:
            return self.c_proj(self.gelu(self.c_fc(x)))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.attn, self.ln_2, self.mlp = (
                nn.LayerNorm(width, bias=bias), Attention(), nn.LayerNorm(width, bias=bias), FeedForward(),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
            self.h = nn.ModuleList([Block() for _ in range(4)])
            self.ln_f, self.lm_head = nn.LayerNorm(width, bias=bias), nn.Linear(width, VOCABULARY, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, tokens: Any) -> Any:
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
            for block in self.h:
                x = block(x)
            return self.lm_head(self.ln_f(x))

    return GPT()


def torch_lstm(torch: Any) -> Any:
    nn = torch.nn

    class LSTMLanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 128)
            self.lstm = nn.LSTM(128, 128, batch_first=True)
            self.decoder = nn.Linear(128, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.decoder(self.lstm(self.embedding(tokens))[0])

    return LSTMLanguageModel()


MODELS = {
    "mlp": Model(
        "MLP 784-128-10, batch 64, SGD", 0.6, lambda: et.models.MLP([784, 128, 10], rng=0), torch_mlp,
        lambda rng: (rng.normal(size=(64, 784)).astype(np.float32), rng.integers(0, 10, 64)), "SGD", {"lr": 0.01},
    ),
    "lenet": Model(
        "LeNet-5, batch 64, SGD", 0.4, lambda: et.models.LeNet5(rng=0), torch_lenet, images(1, 28), "SGD", {"lr": 0.01},
    ),
    "resnet": Model(
        "ResNet-20, 32x32, batch 64, SGD", 0.9, lambda: et.models.ResNet20(rng=0), torch_resnet, images(3, 32), "SGD",
        {"lr": 0.01, "momentum": 0.9},
    ),
    "gpt": Model(
        "GPT 4 layers, 4 heads, 128 wide, context 64, batch 12, AdamW", 0.7,
        lambda: et.models.GPT(VOCABULARY, 64, rng=0), torch_gpt, text(12, 64), "AdamW", {"lr": 1e-3},
    ),
    "lstm": Model(
        "LSTM hidden 128, sequence 32, batch 32, Adam", 0.7,
        lambda: et.models.LSTMLanguageModel(VOCABULARY, rng=0), torch_lstm, text(32, 32), "Adam", {"lr": 1e-3},
    ),
}  # fmt: skip


def our_step(model: Model) -> Step:
    network = model.ours()
    inputs, targets = map(et.tensor, model.data(np.random.default_rng(0)))
    targets = targets.reshape((targets.size,))
    optimizer = getattr(et.optim, model.optimizer)(network.parameters(), **model.options)

    def step() -> float:
        optimizer.zero_grad()
        found = network(inputs)
        logits = found[0] if isinstance(found, tuple) else found
        loss = et.cross_entropy(logits.reshape((targets.size, logits.shape[-1])), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch_step(model: Model, torch: Any, channels_last: bool = False) -> Step:
    network = model.theirs(torch)
    network.load_state_dict({name: torch.tensor(p.numpy()) for name, p in model.ours().state_dict().items()})
    inputs, targets = map(torch.tensor, model.data(np.random.default_rng(0)))
    targets = targets.reshape(-1)
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        inputs = inputs.to(memory_format=torch.channels_last)
    optimizer = getattr(torch.optim, model.optimizer)(network.parameters(), **model.options)

    def step() -> float:
        optimizer.zero_grad()
        logits = network(inputs)
        loss = torch.nn.functional.cross_entropy(logits.reshape(targets.numel(), -1), targets)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def contestants(model: Model, torch: Any) -> dict[str, Step]:
    steps = {"extensor": our_step(model), "torch": torch_step(model, torch)}
    if model.data(np.random.default_rng(0))[0].ndim == 4:
        steps["torch, channels last"] = torch_step(model, torch, channels_last=True)
    return steps


def peak_growth(name: str, library: str, threads: int) -> int:
    """KiB by which the first five steps raise the peak of a process of its own."""
    run = [sys.executable, __file__, "--only", name, "--threads", str(threads), "--peak-of", library]
    return int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def print_peak_growth(model: Model, library: str, threads: int) -> None:
    if library == "extensor":
        et.set_num_threads(threads)
        step = our_step(model)
    else:
        import torch

        torch.set_num_threads(threads)
        step = torch_step(model, torch)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now
    before = resident_peak()
    for _ in range(5):
        step()
    print(resident_peak() - before)


def resident_peak() -> int:
    """KiB; as Linux counts them, for getrusage also remembers the peak of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def measure(names: list[str], threads: int, rounds: int, memory: bool) -> list[tuple[str, ...]]:
    import torch

    et.set_num_threads(threads)
    torch.set_num_threads(threads)
    header = ("training step", "ExTensor ms", "PyTorch ms", "ratio", "limit", "loss differs by")
    rows = [(*header, "ExTensor MB", "PyTorch MB") if memory else header]
    for name in names:
        model = MODELS[name]
        steps = contestants(model, torch)
        losses = [steps["extensor"](), steps["torch"]()]
        found = {library: timing.best for library, timing in compare(steps, rounds, 0.02, PAUSE).items()}
        ours, theirs = found.pop("extensor"), min(found.values())
        row = (
            model.title, f"{ours * 1e3:.2f}", f"{theirs * 1e3:.2f}", f"{ours / theirs:.2f}", f"{model.limit:.2f}",
            f"{abs(losses[0] / losses[1] - 1):.0e}",
        )  # fmt: skip
        if memory:
            peaks = (peak_growth(name, library, threads) / 1024 for library in ("extensor", "torch"))
            row = (*row, *(f"{peak:.1f}" for peak in peaks))
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Training steps of whole networks against PyTorch.")
    parser.add_argument(
        "--only", choices=MODELS, action="append", help="this network; may be given several times"
    )
    parser.add_argument("--threads", type=int, default=1, help="of both libraries")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--no-memory", action="store_true", help="measure time alone")
    parser.add_argument("--peak-of", choices=("extensor", "torch"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.only or list(MODELS)
    if arguments.peak_of:
        print_peak_growth(MODELS[names[0]], arguments.peak_of, arguments.threads)
        return
    print(table(measure(names, arguments.threads, arguments.rounds, not arguments.no_memory)))


if __name__ == "__main__":
    main()
