"""Programs on another device: the losses of ours to rounding, parameters that stay there, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn

pytest.importorskip("jax", reason="needs the extra jax")

Step = Callable[[et.ExTensor, et.ExTensor], et.ExTensor]


def lenet() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, 16)
    return et.models.LeNet5(rng=0), lambda p: et.optim.SGD(p, lr=0.02, momentum=0.9), x, y


def resnet() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 3, 16, 16)).astype(np.float32), rng.integers(0, 10, 4)
    return et.models.ResNet20(rng=0), lambda p: et.optim.SGD(p, lr=0.01), x, y


def gpt() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    model = et.models.GPT(65, 16, n_layer=2, n_head=4, n_embd=32, rng=0)
    return (
        model,
        lambda p: et.optim.AdamW(p, lr=1e-3),
        rng.integers(0, 65, (4, 16)),
        rng.integers(0, 65, (4, 16)),
    )


def trained(make: Callable[[], Any], steps: int, **options: Any) -> tuple[list[float], Any]:
    model, optimizer_of, x, y = make()
    optimizer = optimizer_of(model.parameters())

    def step(x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        optimizer.zero_grad()
        out = model(x)
        loss = et.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    compiled = et.compile(step, **options)
    losses = [compiled(et.asarray(x), et.asarray(y)).item() for _ in range(steps)]
    assert len(compiled.programs) == 1
    return losses, model


@pytest.mark.parametrize("make", [lenet, gpt, resnet], ids=lambda make: make.__name__)
def test_networks_train_as_ours(make: Callable[[], Any]) -> None:
    expected, ours = trained(make, 20)
    found, theirs = trained(make, 20, device="jax")
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert {p.device for p in theirs.parameters()} == {"jax:cpu:0"}
    for p, q in zip(theirs.parameters(), ours.parameters()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-3, atol=1e-4)


OPTIMIZERS = [
    lambda p: et.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda p: et.optim.Adam(p, lr=0.1, amsgrad=True),
    lambda p: et.optim.RMSprop(p, lr=0.1, centered=True, momentum=0.5),
    lambda p: et.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    lambda p: et.optim.Lion(p, lr=0.1),
    lambda p: et.optim.LAMB(p, lr=0.1, weight_decay=0.1),
    lambda p: et.optim.NAdam(p, lr=0.1),
    lambda p: et.optim.RAdam(p, lr=0.1),
    lambda p: et.optim.Adadelta(p, lr=0.1),
    lambda p: et.optim.Adafactor(p, lr=0.1),
]


@pytest.mark.parametrize("optimizer_of", OPTIMIZERS)
def test_every_optimiser_steps_as_ours(optimizer_of: Callable[[Any], Any]) -> None:
    def run(device: str | None) -> tuple[Any, ...]:
        w = nn.Parameter(np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4))
        b = nn.Parameter(np.linspace(-1, 1, 4, dtype=np.float32))
        optimizer = optimizer_of([w, b])

        @et.compile(device=device)
        def step(x: et.ExTensor) -> et.ExTensor:
            optimizer.zero_grad()
            loss = ((x @ w + b) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(et.ones((2, 3)) * float(i % 3)).item() for i in range(8)]
        return losses, w.numpy(), b.numpy(), optimizer.state_dict()

    losses, w, b, state = run(None)
    their_losses, their_w, their_b, their_state = run("jax")
    np.testing.assert_allclose(their_losses, losses, rtol=2e-5)
    np.testing.assert_allclose(their_w, w, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(their_b, b, rtol=2e-4, atol=2e-5)
    for ours, theirs in zip(state["state"].values(), their_state["state"].values(), strict=True):
        assert set(ours) == set(theirs)
        assert ours.get("step") == theirs.get("step")
        for key, value in ours.items():
            np.testing.assert_allclose(np.asarray(theirs[key]), np.asarray(value), rtol=2e-3, atol=1e-4)


def test_rates_options_and_clipping_are_read_in_every_call() -> None:
    def run(device: str | None) -> tuple[Any, ...]:
        w = nn.Parameter(np.array([1.0, -2.0], np.float32))
        optimizer = et.optim.SGD([w], lr=0.5, momentum=0.5)
        schedule = et.optim.StepLR(optimizer, 1, gamma=0.5)

        @et.compile(device=device)
        def step(x: et.ExTensor) -> et.ExTensor:
            optimizer.zero_grad()
            ((w * x) ** 2).sum().backward()
            (w.grad,), norm = et.clip_grad_norm([w.grad], 1.0)
            optimizer.step()
            schedule.step()
            return norm

        norms = [step(et.ones(2)).item() for _ in range(3)]
        optimizer.momentum = 0.25
        norms += [step(et.ones(2)).item() for _ in range(3)]
        return norms, w.numpy(), optimizer.lr

    found = run(None), run("jax")
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-6)
    assert found[0][2] == found[1][2] == 0.5**7


def test_random_masks_are_those_of_ours() -> None:
    found = []
    for device in (None, "jax"):
        layer = nn.Sequential(nn.Linear(8, 8, rng=0), nn.Dropout(0.5, rng=1))
        forward = et.compile(lambda x: layer(x).detach(), device=device)  # noqa: B023
        found.append([forward(et.ones((4, 8))).numpy() for _ in range(4)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert not (found[1][1] == found[1][2]).all()


def test_a_parameter_that_is_set_here_is_sent_again() -> None:
    w = nn.Parameter(np.array([1.0, 2.0], np.float32))
    total = et.compile(lambda x: (w * x).sum().detach(), device="jax")
    assert [total(et.ones(2)).item() for _ in range(3)] == [3.0] * 3
    w.assign(np.array([5.0, 7.0], np.float32))
    assert total(et.ones(2)).item() == 12.0


def test_sync_brings_everything_back() -> None:
    w = nn.Parameter(np.array([1.0, 2.0], np.float32))
    optimizer = et.optim.Adam([w], lr=0.1)

    @et.compile(device="jax")
    def step(x: et.ExTensor) -> et.ExTensor:
        optimizer.zero_grad()
        loss = ((w * x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        loss = step(et.ones(2))
    state = optimizer.state[w]
    assert loss.device == w.device == w.grad.device == state["exp_avg"].device == "jax:cpu:0"
    before = w.numpy().copy()
    step.sync()
    assert w.device == w.grad.device == state["exp_avg"].device == "cpu"
    assert (w.numpy() == before).all()
    assert state["step"] == 3
    step(et.ones(2))
    assert w.device == "jax:cpu:0"
    assert len(step.programs) == 1


def test_a_check_of_the_arguments_still_raises() -> None:
    layer = nn.Embedding(4, 2, rng=0)
    rows = et.compile(lambda i: layer(i).detach(), device="jax")
    assert rows(et.asarray([0, 3])).shape == rows(et.asarray([1, 2])).shape == (2, 2)
    with pytest.raises((IndexError, ValueError), match="embedding"):
        rows(et.asarray([0, 4]))


def test_what_looks_at_elements_is_refused_by_name() -> None:
    w = nn.Parameter(np.array([1.0, 0.0], np.float32))
    found = et.compile(lambda x: et.nonzero((w * x).detach())[0], device="jax")
    with pytest.raises(et.CompileError, match="nonzero"):
        found(et.ones(2))
    tolerant = et.compile(lambda x: et.nonzero((w * x).detach())[0], device="jax", fallback=True)
    with pytest.warns(UserWarning, match="nonzero"):
        assert tolerant(et.ones(2)).tolist() == [0]
    assert tolerant(et.ones(2)).tolist() == [0]


@pytest.mark.parametrize("device", ["gpu", "jax:nowhere", "jax:cpu:99", 3])
def test_unknown_devices_are_named(device: Any) -> None:
    with pytest.raises(ValueError, match=r"\[compile\] device"):
        et.compile(lambda x: x, device=device)


def test_check_is_refused() -> None:
    with pytest.raises(ValueError, match="check"):
        et.compile(lambda x: x, device="jax", check=1)
