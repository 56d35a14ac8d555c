"""Arguments that are no tensors, of functions that are recorded: arrays of the caller's, lists, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sample_calls import call, pair_call

import extensor as et
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import find_op

# The others take a gradient for each of several results.
OF_ONE = [name for name in sorted(PAIRS) if getattr(find_op(name).backward, "has_one_gradient", False)]


def recording(value: Any) -> Any:
    if isinstance(value, et.ExTensor) and value.dtype.kind in "fc":
        return et.tensor(value, requires_grad=True)
    return value


def results(found: Any) -> list[np.ndarray]:
    if found is None:
        return []
    return [found.numpy()] if isinstance(found, et.ExTensor) else [a for part in found for a in results(part)]


@pytest.mark.parametrize("name", OF_ONE)
def test_a_gradient_that_is_no_tensor(name: str) -> None:
    backward = find_op(name).backward
    arguments = pair_call(f"{name}_backward")
    grad = arguments.pop("grad_output")
    if grad.dtype.kind == "f":
        grad = et.tensor(np.arange(1.0, grad.size + 1).reshape(grad.shape), grad.dtype)
    recorded = {key: recording(value) for key, value in arguments.items()}
    expected = results(call(backward, {"grad_output": grad} | recorded))
    for given in (grad.numpy(), grad.tolist()):
        found = results(call(backward, {"grad_output": given} | recorded))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_lists_in_the_place_of_other_tensors() -> None:
    b = et.tensor(2.0, requires_grad=True)
    lists = et.betainc_backward([1.0, 1.0], [1.5, 2.5], b, [0.25, 0.5])  # type: ignore[arg-type]
    tensors = et.betainc_backward(et.ones(2), et.tensor([1.5, 2.5]), b, et.tensor([0.25, 0.5]))
    for found, expected in zip(lists, tensors, strict=True):
        if isinstance(expected, et.ExTensor):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("grad", [2.0, np.float64(2), np.array(2.0), et.tensor(2.0)])
def test_a_number_as_the_gradient_of_one_element(grad: Any) -> None:
    x = et.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert et.take_backward(grad, x, 0).tolist() == et.index_backward(grad, x, 0).tolist() == [2, 0, 0]


def test_an_int_as_a_gradient_is_refused_as_ever() -> None:
    with pytest.raises(TypeError, match=r"\[take_backward\] grad_output must have a floating dtype"):
        et.take_backward(2, et.tensor([1.0, 2.0], requires_grad=True), 0)


def sum_of(found: Any) -> et.ExTensor:
    """Of all elements of all results that can be differentiated, each with a weight of its own."""
    parts = [found] if isinstance(found, et.ExTensor) else found
    total = et.zeros((), "float64")
    for part in parts:
        if part is not None and part.requires_grad:
            weights = et.tensor(np.arange(1.0, part.size + 1).reshape(part.shape) / part.size)
            total = total + (abs(part) * weights).sum()
    return total


def gradients(function: Any, arguments: dict[str, Any], name: str, overwrite: bool) -> list[float] | None:
    """Of one argument, where all others are arrays of the caller's; None if the result does not depend on it."""
    arrays = {
        key: value.numpy().copy() if isinstance(value, et.ExTensor) else value
        for key, value in arguments.items()
    }
    x = arrays[name] = et.tensor(arguments[name], requires_grad=True)
    total = sum_of(call(function, arrays))
    if overwrite:
        for value in arrays.values():
            if isinstance(value, np.ndarray):
                value[...] = 0
    if not total.requires_grad:
        return None
    total.backward()
    assert x.grad is not None
    return list(x.grad.numpy().ravel())


@pytest.mark.parametrize("name", [*sorted(PAIRS), *(f"{name}_backward" for name in sorted(PAIRS))])
def test_the_caller_may_write_to_his_arrays(name: str) -> None:
    """What is recorded holds copies: gradients are those of the values at the time of the call."""
    op = find_op(name.removesuffix("_backward"))
    function = op.backward if name.endswith("_backward") else op
    arguments = pair_call(name)
    for key, value in arguments.items():
        if isinstance(value, et.ExTensor) and value.dtype.kind == "f":
            try:
                expected = gradients(function, arguments, key, False)
            except NotImplementedError:  # an argument without a gradient
                continue
            np.testing.assert_array_equal(gradients(function, arguments, key, True), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["take_backward", "multiply_backward"])  # with and without a formula
def test_a_list_that_holds_itself_is_refused_by_name(name: str) -> None:
    endless: list[Any] = []
    endless.extend([endless, endless])
    x = et.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match=rf"\[{name}\] grad_output: data is a list nested more than 64 deep"):
        getattr(et, name)(endless, x, x if name == "multiply_backward" else 0)


VIEWS = {
    "reshape": lambda b: et.reshape(b, (4,)),
    "flatten": et.flatten,
    "astype": lambda b: et.astype(b, et.float32),
    "transpose": et.transpose,
    "index": lambda b: et.index(b, slice(None)),
    "flip": et.flip,
    "squeeze": et.squeeze,
    "expand_dims": lambda b: et.expand_dims(b, 0),
    "broadcast_to": lambda b: et.broadcast_to(b, (1, 2, 2)),
    "split": lambda b: et.split(b, 1)[0],
    "broadcast_arrays": lambda b: et.broadcast_arrays(b, b)[0],
    "sum_to_shape": lambda b: et.sum_to_shape(b, (2, 2)),
    "reshape_backward": lambda b: et.reshape_backward(b, (2, 2)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_the_callers_array_is_a_copy(name: str) -> None:
    array = np.arange(4.0, dtype=np.float32).reshape(2, 2)
    found = VIEWS[name](array)  # type: ignore[no-untyped-call]
    before = found.tolist()
    array[...] = 7
    assert found.tolist() == before


def test_a_view_of_a_tensor_shares_its_memory() -> None:
    x = et.arange(4, dtype="float32")
    assert np.shares_memory(et.reshape(x, (2, 2)).numpy(), x.numpy())


MODULES = {
    "Flatten": (et.nn.Sequential(et.nn.Flatten(), et.nn.Linear(6, 2, rng=0)), et.float32, (2, 2, 3)),
    "LSTM": (et.nn.LSTM(3, 2, rng=0), et.float32, (2, 2, 3)),
    "MultiHeadAttention": (et.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, rng=0), et.float32, (2, 3, 4)),
    "GPT": (et.models.GPT(5, 4, n_layer=1, n_head=1, n_embd=4, rng=0), et.int64, (2, 3)),
    "LSTMLanguageModel": (et.models.LSTMLanguageModel(5, 4, 4, rng=0), et.int64, (2, 3)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("autocast", [False, True])
def test_the_caller_may_write_to_a_batch(name: str, autocast: bool) -> None:
    module, dtype, shape = MODULES[name]
    found: list[list[Any]] = []
    for overwrite in (False, True):
        module.zero_grad()
        batch = np.arange(np.prod(shape)).reshape(shape).astype(dtype) % 5
        with et.autocast(et.bfloat16 if autocast else et.float32):
            y = module(batch)
            y = y if isinstance(y, et.ExTensor) else y[0]
            loss = (y * y).sum()
        if overwrite:
            batch[...] = 0
        loss.backward()
        found.append([p.grad.tolist() for p in module.parameters() if p.grad is not None])
    assert found[0] == found[1]


def test_the_caller_may_write_to_half_precision_under_autocast() -> None:
    w, b = (
        et.tensor([1.0, 2.0], et.bfloat16, requires_grad=True),
        et.tensor([3.0, 4.0], et.bfloat16).numpy().copy(),
    )
    with et.autocast(et.bfloat16):
        loss = w @ b
    b[:] = 0
    loss.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3, 4]
