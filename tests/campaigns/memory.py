"""Each allocation of training steps of LeNet, GPT and ResNet fails once: a MemoryError, and the next step is as it was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from campaign import Campaign

import extensor as et

try:
    from extensor import _native as native
except ImportError:
    native = None  # type: ignore[assignment]


def steps() -> dict[str, Callable[[], bytes]]:
    """A training step of each network, which returns the bits of its loss; the learning rate is 0."""
    rng = np.random.default_rng(0)

    def step(model: et.nn.Module, x: et.ExTensor, y: et.ExTensor) -> Callable[[], bytes]:
        optimizer = et.optim.Adam(list(model.parameters()), lr=0.0)

        def run() -> bytes:
            optimizer.zero_grad()
            logits = model(x)
            loss = et.cross_entropy(logits.reshape((-1, logits.shape[-1])), y)
            loss.backward()
            optimizer.step()
            return loss.numpy().tobytes()

        return run

    def images(*shape: int) -> et.ExTensor:
        return et.tensor(rng.standard_normal(shape).astype(np.float32))

    tokens = et.tensor(rng.integers(0, 20, (2, 9)))
    gpt = et.models.GPT(20, 8, n_layer=2, n_head=2, n_embd=16, rng=0)
    resnet = et.models.ResNet20(rng=0)
    return {
        "LeNet": step(et.models.LeNet5(rng=0), images(4, 1, 28, 28), et.tensor(rng.integers(0, 10, 4))),
        "GPT": step(gpt, tokens[:, :-1], tokens[:, 1:].reshape((-1,))),
        "ResNet": step(resnet, images(2, 3, 8, 8), et.tensor(rng.integers(0, 10, 2))),
    }


ALLOCATIONS = 5000  # of each network, if no other number is asked for


def run(campaign: Campaign) -> None:
    if native is None:
        campaign.say("without the native core there is nothing to fail")
        return
    threads = native.get_num_threads()
    native.set_num_threads(1)  # the same allocations each time
    try:
        for name, step in steps().items():
            for _ in range(3):
                expected = step()
            passed = 0  # allocations of the steps that went well before this one
            for count in range(campaign.most or ALLOCATIONS):
                if not campaign.has_time():
                    break
                passed = _fail(campaign, name, step, count, passed)
            for _ in range(2):
                found = step()
            if found != expected and name != "ResNet":  # whose running statistics move
                campaign.found(f"{name} gives other bits after failures", [name, -1])
    finally:
        native.fail_allocation_after(-1)
        native.set_num_threads(threads)


def _fail(campaign: Campaign, name: str, step: Callable[[], bytes], count: int, passed: int) -> int:
    """Steps until allocation number ``count`` of all of them fails; returns how many belong to steps that went well.

    A step that failed leaves everything as it was, so the next allocation is tried from the same step on.
    """
    campaign.did(f"failed allocations of {name}")
    while True:
        native.fail_allocation_after(count - passed)
        try:
            step()
        except MemoryError as error:
            native.fail_allocation_after(-1)
            if not str(error):
                campaign.found(f"{name}: allocation {count} failed without a word", [name, count])
            return passed
        except Exception as error:
            native.fail_allocation_after(-1)
            campaign.found(f"{name}: allocation {count}: {type(error).__name__}: {error}", [name, count])
            return passed
        left = native.fail_allocation_after(-1)
        if left < 0:
            campaign.found(f"{name}: allocation {count} failed and was not reported", [name, count])
            return passed
        if left == count - passed:
            campaign.found(f"{name}: a step allocates nothing", [name, count])
            return passed
        passed = count - left
