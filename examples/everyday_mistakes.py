"""Sixty things people get wrong in their first week, and what ExTensor says to each: none is silent.

Run it: every line shows what was typed and the answer, an error that says what to do, or the result that was meant.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import extensor as et
from extensor import data, nn, optim, train

X = et.tensor([[1.0, 2.0], [3.0, 4.0]])
MODEL = nn.Linear(2, 3, rng=0)
LOADER = data.DataLoader(data.Dataset(np.ones((8, 2)), np.arange(8) % 3), 4)


def trainer(model: nn.Module = MODEL, loss: Any = et.cross_entropy) -> train.Trainer:
    """A small trainer that prints nothing."""
    return train.Trainer(model, optim.SGD(model.parameters(), lr=0.1), loss, display="off")


def assign_a_list() -> None:
    """A parameter takes tensors of its shape."""
    MODEL.weight = [[1.0, 2.0]]


def assign_a_wrong_shape() -> None:
    """The shape is checked."""
    MODEL.weight = et.ones((2, 2))


def step_with_a_lost_parameter() -> None:
    """An optimiser that holds what the model no longer has says so."""
    model = nn.Linear(2, 3, rng=0)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.weight = nn.Parameter(et.ones((3, 2)))
    et.cross_entropy(model(X), et.tensor([0, 1])).backward()
    optimizer.step()


def backward_twice() -> None:
    """A graph is walked once."""
    w = et.ones(2).requires_grad_()
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


def step_between_forward_and_backward() -> None:
    """Weights must not move under a graph."""
    model = nn.Linear(2, 3, rng=0)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss = (et.cross_entropy(model(X), et.tensor([0, 1])) * model.weight).sum()
    model.weight.grad = et.ones((3, 2))
    optimizer.step()
    loss.backward()


def write(text: str, suffix: str = ".csv") -> Path:
    """A file with a text."""
    handle, name = tempfile.mkstemp(suffix)
    os.close(handle)
    Path(name).write_text(text)
    return Path(name)


def zip_file() -> Path:
    """What torch.save writes is a zip."""
    path = write("", ".pt")
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    return path


def generator_twice() -> None:
    """A generator is empty after one epoch."""
    loader = data.DataLoader(iter([1.0, 2.0]), 1)
    list(loader)
    list(loader)


MISTAKES: dict[str, Callable[[], Any]] = {
    # dtypes
    "et.arange(8) / 8  (float32, not float64)": lambda: (et.arange(8) / 8).dtype,
    "et.tensor([1, 2]) + 1.5": lambda: (et.tensor([1, 2]) + 1.5).dtype,
    "(x > 2).mean()": lambda: (X > 2).mean().dtype,
    "Dataset of float64 rows": lambda: data.Dataset(np.ones((4, 2)))[0][0].dtype,
    "labels as floats": lambda: et.cross_entropy(X, et.tensor([0.0, 1.0])),
    "a label that is no class": lambda: et.cross_entropy(X, et.tensor([0, 2])),
    "requires_grad of integers": lambda: et.tensor([1, 2], requires_grad=True),
    "integer indices as floats": lambda: X[et.tensor([0.0])],
    # shapes
    "x.transpose(0, 1) of a matrix": lambda: X.transpose(0, 1),
    "et.zeros(3, 4)": lambda: et.zeros(3, 4),
    "et.reshape(x, 4, 1)": lambda: et.reshape(X, 4, 1),
    "x.item() of a matrix": lambda: X.item(),  # noqa: PLW0108
    "matmul of shapes that do not fit": lambda: X @ et.ones((3, 2)),
    "add of shapes that do not broadcast": lambda: X + et.ones(3),
    "a loss of (n,) and (n, 1)": lambda: et.mean_squared_error(et.ones(4), et.ones((4, 1))),
    "a layer with other inputs": lambda: MODEL(et.ones((2, 5))),
    "channels last in a convolution": lambda: nn.Conv2d(3, 8, 3, rng=0)(et.ones((1, 32, 32, 3))),
    "an axis that is not there": lambda: X.sum(axis=2),
    "ragged rows": lambda: et.tensor([[1.0, 2.0], [3.0]]),
    "if x > 0: of several elements": lambda: bool(X > 0),
    # names and arguments of others
    "x.sum(dim=0)": lambda: X.sum(dim=0),  # type: ignore[call-arg]
    "x.mean(axis=0, keepdim=True)": lambda: X.mean(axis=0, keepdim=True),  # type: ignore[call-arg]
    "x.view(4)": lambda: X.view(4),  # type: ignore[attr-defined]
    "et.cat([x, x])": lambda: et.cat([X, X]),  # type: ignore[attr-defined]
    "x.to('cuda')": lambda: X.to("cuda"),  # type: ignore[attr-defined]
    "et.randn(2, 3)": lambda: et.randn(2, 3),  # type: ignore[attr-defined]
    "x.add_(1)": lambda: X.add_(1),  # type: ignore[attr-defined]
    "x[0] = 5": lambda: X.__setitem__(0, 5),  # type: ignore[attr-defined]
    "attention(is_causal=True)": lambda: et.scaled_dot_product_attention(X, X, X, is_causal=True),  # type: ignore[call-arg]
    "et.relu(x, inplace=True)": lambda: et.relu(X, inplace=True),  # type: ignore[call-arg]
    "nn.Dense(3)": lambda: nn.Dense(3),  # type: ignore[attr-defined]
    "model.fit(x, y)": lambda: MODEL.fit(X, X),  # type: ignore[attr-defined]
    "et.svd(x)": lambda: et.svd(X),  # type: ignore[attr-defined]
    "et.Linear(2, 3)": lambda: et.Linear(2, 3),  # type: ignore[attr-defined]
    "a misspelt argument": lambda: X.sum(keepdimss=True),  # type: ignore[call-arg]
    # parameters and gradients
    "model.weight = a list": assign_a_list,
    "model.weight = another shape": assign_a_wrong_shape,
    "an optimiser of a parameter that is gone": step_with_a_lost_parameter,
    "backward of a matrix": lambda: (X.requires_grad_() * 2.0).backward(None),
    "backward where nothing requires a gradient": lambda: et.ones(2).sum().backward(),
    "backward twice": backward_twice,
    "a step between forward and backward": step_between_forward_and_backward,
    "an optimiser of nothing": lambda: optim.SGD([], lr=0.1),
    "an optimiser of tensors": lambda: optim.SGD([et.ones(2)], lr=0.1),
    "a negative learning rate": lambda: optim.SGD(MODEL.parameters(), lr=-1.0),
    "a state dict of another model": lambda: MODEL.load_state_dict(nn.Linear(3, 3, rng=0).state_dict()),
    "pickle of a computed tensor": lambda: pickle.dumps(et.ones(2).requires_grad_() * 2.0),
    # data
    "inputs and targets of different lengths": lambda: data.Dataset(np.ones((4, 2)), np.ones(3)),
    "samples of different shapes": lambda: list(data.DataLoader([np.ones(2), np.ones(3)], 2)),
    "a generator for two epochs": generator_twice,
    "a CSV file with a short row": lambda: data.read_csv(write("a,b,c\n1,2,3\n4,5\n")),
    "decimal commas": lambda: data.read_csv(write("size;price\n1,5;2,5\n2,5;3,5\n3,5;4,5\n")).inputs.ravel().tolist()[:3],
    "an empty file": lambda: data.read_csv(write("")),
    "a PyTorch file as safetensors": lambda: train.load_weights(zip_file()),
    "a folder that is no run": lambda: train.load_run(tempfile.gettempdir()),
    # training
    "fit with an array": lambda: trainer().fit(np.ones((4, 2)), epochs=1),
    "fit without epochs": lambda: trainer().fit(LOADER),
    "a metric that is not there": lambda: train.Trainer(MODEL, optim.SGD(MODEL.parameters(), lr=0.1), et.cross_entropy, metrics=["acuracy"]),
    "a loss that is not finite": lambda: trainer(nn.Linear(2, 3, rng=0), lambda o, t: et.cross_entropy(o, t) / 0.0).fit(LOADER, epochs=1),
    "early stopping on a missing metric": lambda: train.EarlyStopping("val_f1").on_validation_end(trainer(), {"val_loss": 1.0}),
}  # fmt: skip


def main() -> None:
    """Make every mistake and print the answer."""
    warnings.simplefilter("ignore")
    for number, (typed, call) in enumerate(MISTAKES.items(), 1):
        try:
            answer = f"-> {call()!r}"
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        print(f"{number:2}. {typed}\n    {answer.splitlines()[0].replace(tempfile.gettempdir(), '...')}")


if __name__ == "__main__":
    main()
