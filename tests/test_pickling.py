"""Tensors, models and optimisers between the processes of one program, and copies of everything."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest

import extensor as et
from extensor import data, models, nn, optim, train
from extensor.dtypes import SUPPORTED


def again(value: Any, protocol: int = 5) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def out_of_band(value: Any) -> Any:
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return pickle.loads(message, buffers=buffers)


WAYS: list[Callable[[Any], Any]] = [
    again,
    out_of_band,
    copy.deepcopy,
    *(lambda v, p=p: again(v, p) for p in range(2, 5)),
]


@pytest.mark.parametrize("way", WAYS, ids=["5", "buffers", "deepcopy", "2", "3", "4"])
@pytest.mark.parametrize("dtype", sorted(SUPPORTED, key=str), ids=str)
def test_tensors_of_every_dtype_and_layout(way: Any, dtype: Any) -> None:
    whole = np.arange(24).reshape(2, 3, 4) % 2
    for array in (whole, whole[:, ::-1], whole.T, whole[0, 0, 0], whole[:, :0]):
        x = et.asarray(array.astype(dtype))
        found = way(x)
        assert (type(found), found.dtype, found.shape, found.requires_grad) == (
            et.ExTensor,
            x.dtype,
            x.shape,
            False,
        )
        np.testing.assert_array_equal(found.numpy(), x.numpy())
        (found + found).sum()  # a tensor like any other


@pytest.mark.parametrize("way", WAYS)
def test_parameters_stay_parameters(way: Any) -> None:
    for requires_grad in (True, False):
        found = way(nn.Parameter([1.0, 2.0], requires_grad))
        assert (type(found), found.requires_grad) == (nn.Parameter, requires_grad)
        found.assign(found * 2.0)
        assert found.tolist() == [2.0, 4.0]


def test_buffers_beside_the_pickle_are_not_copied() -> None:
    x = et.ones((1000, 1000))
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(message) < 1000
    assert len(buffers) == 1
    assert np.shares_memory(pickle.loads(message, buffers=buffers).numpy(), x.numpy())


def test_what_was_computed_cannot_go() -> None:
    y = et.ones(2).requires_grad_() * 2.0
    with pytest.raises(
        ValueError,
        match=r"\[pickle\] this tensor was computed from others, which cannot go with it; use x.detach",
    ):
        pickle.dumps(y)
    assert again(y.detach()).tolist() == [2.0, 2.0]


class Net(nn.Module):
    def __init__(self) -> None:
        self.conv = nn.Conv2d(1, 4, 3, rng=0)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2, rng=1)
        self.parts = nn.ModuleList([nn.Linear(16, 8, rng=2), nn.Linear(8, 3, rng=3)])
        self.parts[1].weight.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        x = self.drop(self.norm(self.conv(x)).relu()).flatten(1)
        return self.parts[1](self.parts[0](x).tanh())


def trained(steps: int = 2) -> tuple[Net, optim.Optimizer, optim.LRScheduler]:
    net = Net()
    optimizer = optim.AdamW(net.parameters(), lr=0.01)
    schedule = optim.CosineAnnealingLR(optimizer, 10)
    for _ in range(steps):
        step(net, optimizer, schedule)
    return net, optimizer, schedule


def step(net: Any, optimizer: Any, schedule: Any) -> None:
    optimizer.zero_grad()
    et.cross_entropy(net(et.random.normal(5, (6, 1, 4, 4))), et.tensor([0, 1, 2, 0, 1, 2])).backward()
    optimizer.step()
    schedule.step()


def same_state(a: Any, b: Any) -> bool:
    mine, its = a.state_dict(), b.state_dict()
    return mine.keys() == its.keys() and all(np.array_equal(mine[k].numpy(), its[k].numpy()) for k in mine)


@pytest.mark.parametrize("way", WAYS[:3], ids=["5", "buffers", "deepcopy"])
def test_a_model_and_its_optimiser_go_on_where_they_were(way: Any) -> None:
    mine = trained()
    net, optimizer, schedule = way(mine)
    assert same_state(net, mine[0])
    assert [id(p) for p in optimizer.param_groups[0]["params"]] == [id(p) for p in net.parameters()]
    assert schedule.optimizer is optimizer
    for _ in range(3):
        step(*mine)
        step(net, optimizer, schedule)
    assert same_state(net, mine[0])
    assert optimizer.lr == mine[1].lr


OPTIMIZERS = [
    n
    for n in optim.__all__
    if isinstance(getattr(optim, n), type)
    and issubclass(getattr(optim, n), optim.Optimizer)
    and n != "Optimizer"
]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser(name: str) -> None:
    w = nn.Parameter(np.ones((3, 3), np.float32))
    optimizer = getattr(optim, name)([w], lr=0.1)

    def closure(w: Any, optimizer: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    optimizer.step(lambda: closure(w, optimizer))
    v, other = again((w, optimizer))
    optimizer.step(lambda: closure(w, optimizer))
    other.step(lambda: closure(v, other))
    np.testing.assert_array_equal(v.numpy(), w.numpy())


def everything() -> dict[str, Any]:
    table = np.random.default_rng(0).normal(size=(8, 2))
    made = data.Dataset(table, np.arange(8), [data.Normalize(0.0, 1.0)], classes=["a"])
    net, optimizer, _ = trained(1)
    found: dict[str, Any] = {
        "dataset": made, "loader": data.DataLoader(made, 2, shuffle=True), "digits": data.digits(),
        "accuracy": train.Accuracy(), "confusion": train.ConfusionMatrix(2), "perplexity": train.Perplexity(),
        "stopping": train.EarlyStopping(), "history": train.History(), "ema": optim.EMA(net),
        "gpt": models.GPT(vocab_size=7, block_size=4, n_layer=1, n_head=1, n_embd=4) if hasattr(models, "GPT") else None,
        "trainer": train.Trainer(net, optimizer, et.cross_entropy, display="off"), "dtype": et.float32, "function": et.softmax,
    }  # fmt: skip
    return found


@pytest.mark.parametrize("name", everything())
def test_everything_else_copies_and_pickles(name: str) -> None:
    value = everything()[name]
    for way in (again, copy.deepcopy, copy.copy):
        assert type(way(value)) is type(value)


def test_functions_pickle_by_name() -> None:
    assert again(et.softmax) is et.softmax
    assert copy.deepcopy(et.softmax) is et.softmax
    assert again(et.softmax_backward) is et.softmax_backward
    assert again(et.argmax) is et.argmax


# In other processes


def network() -> nn.Sequential:
    """Of classes that other processes can import."""
    return nn.Sequential(
        nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4), nn.Dropout(0.5, rng=0), nn.Linear(4, 2, rng=1)
    )


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_multiprocessing(start: str) -> None:
    net, x = network().eval().requires_grad_(False), et.random.normal(0, (5, 3))
    with ProcessPoolExecutor(1, multiprocessing.get_context(start)) as pool:
        outputs = pool.submit(nn.Module.__call__, net, x).result(60)
        weights = pool.submit(copy.copy, net).result(60)
    np.testing.assert_array_equal(outputs.numpy(), net(x).numpy())
    assert same_state(weights, net)


def test_joblib() -> None:
    net, x = network().eval().requires_grad_(False), et.random.normal(0, (5, 3))

    class Local(nn.Module):  # cloudpickle takes classes along that no module has
        def forward(self, x: Any) -> Any:
            return x * 2.0

    jobs = [joblib.delayed(net)(x), joblib.delayed(Local())(x)]
    outputs, doubled = joblib.Parallel(n_jobs=2, timeout=60)(jobs)
    np.testing.assert_array_equal(outputs.numpy(), net(x).numpy())
    np.testing.assert_array_equal(doubled.numpy(), x.numpy() * 2)
