"""Tensors on another device: functions run there, gradients and optimisers too, and elements come back when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn
from extensor.devices import DeviceArray

jnp = pytest.importorskip("jax.numpy", reason="needs the extra jax")

VALUES = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("dtype", [*DTYPES, et.bfloat16])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_there_and_back(dtype: Any, shape: tuple[int, ...]) -> None:
    x = et.tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype)
    there = x.to_device("jax")
    assert (there.device, there.shape, there.dtype) == ("jax:cpu:0", shape, x.dtype)
    back = there.to_device("cpu")
    assert (back.device, back.dtype) == ("cpu", x.dtype)
    assert (back.numpy() == x.numpy()).all()
    assert there.tolist() == x.tolist()
    assert type(there.numpy()) is np.ndarray


def test_names_of_devices() -> None:
    x = et.ones(2)
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    there = x.to_device("jax:cpu:0")
    assert there.to_device("jax:cpu") is there
    for name in ("cuda", "jax:nowhere:0", "jax:cpu:9", "jax:cpu:0:0", 1):
        with pytest.raises(ValueError, match=r"\[to_device\] device"):
            x.to_device(name)
    with pytest.raises(et.GraphError, match="to_device"):
        (et.ones(2).requires_grad_() * 2.0).to_device("jax")


def test_functions_run_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(self: Any) -> Any:
        raise AssertionError("the elements were read here")

    x = et.tensor(VALUES)
    expected = (et.softmax(x @ x.T, -1) * 2.0 + x.sum()).numpy()
    there = x.to_device("jax")
    with monkeypatch.context() as patch:
        patch.setattr(DeviceArray, "fetch", nowhere)
        y = et.softmax(there @ there.T, -1) * 2.0 + there.sum()
    assert y.device == "jax:cpu:0"
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def test_what_is_here_is_sent_along() -> None:
    y = et.tensor(VALUES).to_device("jax") + et.ones(3)
    assert y.device == "jax:cpu:0"
    assert (y.numpy() == VALUES + 1).all()


def test_gradients_stay_there() -> None:
    def gradient(x: et.ExTensor) -> et.ExTensor:
        (et.log_softmax(x * x, -1)[:, 0] * x.mean()).sum().backward()
        assert x.grad is not None
        return x.grad

    here = gradient(et.tensor(VALUES, requires_grad=True))
    there = gradient(et.tensor(VALUES, requires_grad=True).to_device("jax"))
    assert there.device == "jax:cpu:0"
    np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("half", [et.float16, et.bfloat16])
def test_half_precision_is_rounded_once(half: Any) -> None:
    x = et.tensor([1.5, -2.25, 3.0], half)
    y = (x.to_device("jax") * x + x).sum()
    assert (y.dtype, y.item()) == (half, (x * x + x).sum().item())


def test_a_network_trains_there_without_compile() -> None:
    def losses(device: str) -> list[float]:
        net = nn.Sequential(nn.Linear(3, 8, rng=0), nn.Tanh(), nn.Linear(8, 2, rng=1))
        for p in net.parameters():
            p.assign(p.detach().to_device(device))
        optimizer = et.optim.AdamW(net.parameters(), lr=0.05)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = et.cross_entropy(net(et.tensor(VALUES)), et.asarray([0, 1]))
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert {p.device for p in net.parameters()} == {"cpu" if device == "cpu" else "jax:cpu:0"}
        assert {s["exp_avg"].device for s in optimizer.state.values()} == {p.device for p in net.parameters()}
        return found

    np.testing.assert_allclose(losses("jax"), losses("cpu"), rtol=1e-5)


def test_compile_leaves_tensors_of_another_device_to_it() -> None:
    double = et.compile(lambda x: x * 2.0)
    x = et.tensor(VALUES).to_device("jax")
    assert {double(x).device for _ in range(3)} == {"jax:cpu:0"}
    assert not double.programs
    w = nn.Parameter(VALUES)
    w.assign(w.detach().to_device("jax"))
    product = et.compile(lambda x: (x * w).detach())
    assert [product(et.ones(3)).device for _ in range(3)] == ["jax:cpu:0"] * 3


def test_dlpack_copies_nothing() -> None:
    x = et.tensor(VALUES).to_device("jax")
    assert x.__dlpack_device__() == (1, 0)
    theirs = jnp.from_dlpack(x)
    assert theirs.unsafe_buffer_pointer() == x._data.held.unsafe_buffer_pointer()
    ours = et.from_dlpack(theirs)
    assert np.shares_memory(ours.numpy(), np.asarray(theirs))


def test_numpy_does_not_compute_with_the_stand_in() -> None:
    array = et.tensor(VALUES).to_device("jax")._data
    for function in (
        lambda: array + 1,
        lambda: np.concatenate([array, array]),
        lambda: array[0],
        lambda: array.view(np.int32),
    ):
        with pytest.raises(TypeError):
            function()
    assert "jax:cpu:0" in repr(array)


def test_state_dicts_are_read_here() -> None:
    net, other = nn.Linear(3, 2, rng=0), nn.Linear(3, 2, rng=1)
    before = net.weight.numpy().copy()
    net.weight.assign(net.weight.detach().to_device("jax"))
    other.load_state_dict(net.state_dict())
    assert (other.weight.numpy() == before).all()
