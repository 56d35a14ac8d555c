"""Mixed precision as a mode of a thread: which dtype each function computes in, and that nothing else changes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_calls import samples

import extensor as et
from extensor import nn, optim
from extensor.autocast_table import FLOAT32_FUNCTIONS, HALF_FUNCTIONS, policy_of
from extensor.dtypes import FLOATING, HALF, promote
from extensor.graph import clear_plans, get_autocast, run_bodies
from extensor.graph.precision import _casts
from extensor.testing.autocast_page import autocast_page
from extensor.testing.samples import PAIRS
from extensor.testing.verifier import find_op

HALVES = [et.bfloat16, et.float16]
OPS = {name.rpartition(".")[2]: (name, find_op(name)) for name in PAIRS}
LISTED = {name for table in (HALF_FUNCTIONS, FLOAT32_FUNCTIONS) for names in table.values() for name in names}


def normal(*shape: int, seed: int = 0, **options: Any) -> et.ExTensor:
    return et.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32), **options)


def tensors(value: Any) -> list[et.ExTensor]:
    if isinstance(value, et.ExTensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for item in items for t in tensors(item)]


def in_dtype(value: Any, dtype: Any) -> Any:
    """The floating tensors of an argument in another dtype."""
    if isinstance(value, et.ExTensor):
        return value.astype(dtype) if value.dtype in FLOATING and value.dtype.kind != "c" else value
    if isinstance(value, dict):
        return {key: in_dtype(v, dtype) for key, v in value.items()}
    return type(value)(in_dtype(v, dtype) for v in value) if type(value) in (list, tuple) else value


# The table


def test_table_names_functions_once() -> None:
    names = [n for table in (HALF_FUNCTIONS, FLOAT32_FUNCTIONS) for names in table.values() for n in names]
    assert len(names) == len(set(names))
    assert set(names) <= set(OPS)


def test_families_are_listed_whole() -> None:
    """A new convolution, loss or norm is not forgotten."""
    wanted = {
        "half": ("conv", "volumes", "attention", "recurrent_", "linear", "einsum"),
        "float32": ("loss_", "normalization", "softmax", "reduction", "norms"),
    }
    for policy, families in wanted.items():
        for name, (_, op) in OPS.items():
            if op.__module__.rpartition(".")[2].startswith(families):
                assert policy_of(name) == policy, name


@pytest.mark.parametrize("name", sorted(OPS))
@pytest.mark.parametrize("given", ["float32", "bfloat16"])
def test_functions_return_what_the_table_says(name: str, given: str) -> None:
    """The dtypes of results under autocast, for each sample call in float32 and in bfloat16."""
    dotted, op = OPS[name]
    calls = samples(dotted, 0)
    assert calls
    for args, kwargs in calls:
        args, kwargs = in_dtype(args, given), in_dtype(kwargs, given)
        inputs = [t.dtype for t in tensors([args, kwargs]) if t.dtype in FLOATING]
        if not inputs or any(d.kind == "c" for d in inputs):
            continue
        plain = op(*args, **kwargs)
        with et.autocast(et.bfloat16):
            cast = op(*args, **kwargs)
        for before, after in zip(tensors(plain), tensors(cast), strict=True):
            if before.dtype not in FLOATING:
                assert after.dtype == before.dtype
            elif policy_of(name) == "half":
                assert after.dtype == et.bfloat16
            elif policy_of(name) == "float32":
                assert after.dtype == et.float32
            else:
                assert after.dtype == before.dtype


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", sorted(LISTED))
def test_call_is_the_plain_call_with_casts(name: str, dtype: Any) -> None:
    """Bits of results and gradients are those of casts by hand."""
    dotted, op = OPS[name]
    compared = 0
    for args, kwargs in samples(dotted, 1)[:6]:
        if any(t.dtype.kind == "c" for t in tensors([args, kwargs])):
            continue
        target = dtype if policy_of(name) == "half" else et.float32
        start = et.float32 if policy_of(name) == "half" else dtype
        args, kwargs = in_dtype(args, start), in_dtype(kwargs, start)
        with et.no_grad():
            expected = op(*in_dtype(args, target), **in_dtype(kwargs, target))
            with et.autocast(dtype):
                found = op(*args, **kwargs)
        for a, b in zip(tensors(expected), tensors(found), strict=True):
            assert (a.dtype, a.shape, a.numpy().tobytes()) == (b.dtype, b.shape, b.numpy().tobytes())
            compared += 1
    assert compared


def test_rest_follows_the_widest() -> None:
    wide, narrow, other = normal(3), normal(3).astype(et.bfloat16), normal(3).astype(et.float16)
    with et.autocast(et.bfloat16):
        assert (wide + narrow).dtype == et.float32
        assert (narrow * narrow).dtype == et.bfloat16
        assert (narrow * 2.5).dtype == et.bfloat16
        assert et.concatenate([narrow, other]).dtype == promote(et.bfloat16, et.float16) == et.float32
        assert et.relu(narrow).dtype == et.bfloat16
        assert et.gelu(wide).dtype == et.float32


@pytest.mark.parametrize("other", [et.float64, et.int64, et.complex64])
def test_other_numbers_are_left_alone(other: Any) -> None:
    a, b = normal(3, 4), normal(4, 2).astype(other)
    plain = et.matmul(a, b)
    with et.autocast(et.bfloat16):
        assert et.matmul(a, b).dtype == plain.dtype
        assert et.matmul(a, b).numpy().tobytes() == plain.numpy().tobytes()
        assert et.sum(b.astype(other)).dtype == et.sum(b).dtype


def test_arrays_and_lists_are_operands() -> None:
    weight = normal(2, 2)
    with et.autocast(et.float16):
        assert et.linear([1.0, 2.0], weight).dtype == et.float16
        assert et.linear(np.ones((3, 2), np.float32), weight).dtype == et.float16
        assert et.sum(np.ones(3, np.float16)).dtype == et.float32
        assert et.einsum("ij,jk->ik", weight, np.ones((2, 2), np.float32)).dtype == et.float16


def test_mask_of_attention_stays() -> None:
    q = normal(1, 4, 8)
    mask = et.tensor(np.tril(np.ones((4, 4), bool)))
    with et.autocast(et.bfloat16):
        found = et.scaled_dot_product_attention(q, q, q, mask=mask)
    half = q.astype(et.bfloat16)
    assert found.tolist() == et.scaled_dot_product_attention(half, half, half, mask=mask).tolist()


def test_errors_are_those_of_the_function() -> None:
    for call in (
        lambda: et.linear(et.ones((2, 3)), et.ones((4, 5))),
        lambda: et.matmul("no", et.ones(3)),
        lambda: et.matmul([[1.0], [1.0, 2.0]], et.ones(3)),
        lambda: et.softmax(et.ones(3), axis=4),
        lambda: et.linear(),
        lambda: et.linear([[1, 2]], et.ones((2, 2))),
    ):
        with pytest.raises(Exception) as plain:
            call()
        with et.autocast(et.bfloat16), pytest.raises(type(plain.value)) as cast:
            call()
        assert str(cast.value) == str(plain.value)


# The block


@pytest.mark.parametrize("dtype", [et.float64, "int8", None, et.complex64, "words"])
def test_dtype_must_be_a_short_float(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"\[autocast\] dtype"):
        et.autocast(dtype)


def test_blocks_nest_and_end() -> None:
    a = normal(2, 2)
    block = et.autocast("bfloat16")
    with block:
        assert (a @ a).dtype == et.bfloat16
        with et.autocast(et.float16):
            assert (a @ a).dtype == et.float16
            with et.autocast(et.float32):
                assert (a @ a).dtype == et.float32
            with block:
                assert (a @ a).dtype == et.bfloat16
            assert get_autocast() == et.float16
        assert (a @ a).dtype == et.bfloat16
        with pytest.raises(ZeroDivisionError), et.autocast(et.float16):
            _ = 1 / 0
        assert (a @ a).dtype == et.bfloat16
    assert (a @ a).dtype == et.float32


def test_blocks_are_left_in_any_order() -> None:
    def inside(dtype: Any) -> Iterator[None]:
        with et.autocast(dtype):
            yield

    first, second = inside(et.bfloat16), inside(et.float16)
    next(first), next(second)
    first.close()
    assert get_autocast() == et.float16
    second.close()
    assert get_autocast() == et.float32


def test_decorator() -> None:
    @et.autocast(et.bfloat16)
    def product(a: et.ExTensor) -> et.ExTensor:
        """A product."""
        return a @ a

    assert product(normal(2, 2)).dtype == et.bfloat16
    assert (product.__name__, product.__doc__) == ("product", "A product.")
    assert get_autocast() == et.float32


def test_other_threads_are_not_affected() -> None:
    found: list[Any] = []
    with et.autocast(et.bfloat16):
        thread = threading.Thread(target=lambda: found.append((normal(2, 2) @ normal(2, 2)).dtype))
        thread.start()
        thread.join()
    assert found == [et.float32]


def test_plans_of_modes_are_not_confused() -> None:
    """Calls of one kind in every mode, again and again: by bodies, while plans are made, and repeated."""
    clear_plans()
    a, b = normal(3, 4), normal(4, 5)
    for dtype in [et.float32, et.bfloat16, et.float16] * 4:
        with et.autocast(dtype), et.no_grad():
            found = a @ b, (a @ b).astype(et.float16).sum(), a.astype(et.float16).exp(), et.relu(a)
        with run_bodies(), et.autocast(dtype):
            right = a @ b, (a @ b).astype(et.float16).sum(), a.astype(et.float16).exp(), et.relu(a)
        assert found[0].dtype == dtype
        assert found[1].dtype == (et.float16 if dtype == et.float32 else et.float32)
        for x, y in zip(found, right):
            assert (x.dtype, x.numpy().tobytes()) == (y.dtype, y.numpy().tobytes())


# Parameters and their half copies


def saved_weight(y: et.ExTensor) -> Any:
    return y._node.saved[1]._data


def test_parameters_are_cast_once_per_block() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16):
        kept = saved_weight(layer(x))
        for _ in range(4):
            assert saved_weight(layer(x)) is kept
        with et.autocast(et.float16):
            assert saved_weight(layer(x)).dtype == np.float16
        assert saved_weight(layer(x)) is kept
        with et.no_grad():
            layer(x)
        assert saved_weight(layer(x)) is kept


def test_casts_of_parameters_are_recorded_as_such() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16):
        layer(x)
        found = layer(x)._node.edges[1]
    right = layer.weight.astype(et.bfloat16)._node
    for name in ("op", "edges", "saved", "options", "casts", "shape", "outputs", "shapes", "code"):
        a, b = getattr(found, name), getattr(right, name)
        assert a is b or (name != "op" and a == b) or (name == "edges" and a[0] is b[0]), name


def test_changed_parameters_are_cast_again() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16):
        before = layer(x)
        layer.weight.assign(layer.weight * 2)
        layer.bias.assign(layer.bias * 2)
        after = layer(x)
        assert saved_weight(after) is not saved_weight(before)
    half = layer.weight.astype(et.bfloat16), layer.bias.astype(et.bfloat16)
    assert after.tolist() == et.linear(x.astype(et.bfloat16), *half).tolist()
    layer.weight._array[...] = 1.0  # in place, as a native step may; the version tells
    with et.autocast(et.bfloat16):
        first = layer(x)
        layer.weight._array[...] = 3.0
        layer.weight._replaced += 1
        assert layer(x).tolist() != first.tolist()


def test_steps_of_an_optimiser_within_a_block() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    for optimizer in (optim.SGD(layer.parameters(), lr=0.5), optim.Adam(layer.parameters(), lr=0.5)):
        with et.autocast(et.bfloat16):
            for _ in range(3):
                optimizer.zero_grad()
                layer(x).sum().backward()
                optimizer.step()
                half = layer.weight.detach().astype(et.bfloat16).numpy()
                assert saved_weight(layer(x)).tobytes() == half.tobytes()


def test_half_copies_are_released() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16):
        copy = weakref.ref(saved_weight(layer(x)))
        gc.collect()
        assert copy() is not None
        layer.weight.assign(layer.weight * 2)
        gc.collect()
        assert copy() is None
        copy = weakref.ref(saved_weight(layer(x)))
    assert not _casts.kept
    gc.collect()
    assert copy() is None


def test_inference_uses_the_copies() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16), et.no_grad():
        for _ in range(4):
            layer(x)
        assert len(_casts.kept) == 2


# Gradients


def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, rng=0), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8, rng=1), nn.GELU(),
        nn.LayerNorm(8), nn.Linear(8, 3, rng=2),
    )  # fmt: skip


def gradients(inside: bool, dtype: Any, wrap: Callable[[Any], Any] = lambda f: f) -> list[np.ndarray]:
    net, x, y = model(), normal(5, 1, 6, 6), et.tensor([0, 1, 2, 0, 1])
    with et.autocast(dtype):
        loss = et.cross_entropy(wrap(net)(x), y)
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    assert loss.dtype == et.float32
    return [p.grad.numpy() for p in net.parameters()]


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_of_parameters_are_float32(dtype: Any) -> None:
    inside, outside = gradients(True, dtype), gradients(False, dtype)
    exact = gradients(True, et.float32)
    for a, b, right in zip(inside, outside, exact, strict=True):
        assert a.dtype == np.float32
        assert a.tobytes() == b.tobytes()
        assert a.tobytes() != right.tobytes()
        np.testing.assert_allclose(a, right, atol=0.06 * np.abs(right).max() + 1e-3)


@pytest.mark.parametrize("dtype", HALVES)
def test_checkpoint_computes_again_in_the_same_precision(dtype: Any) -> None:
    for a, b in zip(gradients(False, dtype), gradients(False, dtype, et.checkpoint), strict=True):
        assert a.tobytes() == b.tobytes()


def test_two_backwards_in_one_block() -> None:
    """The copy of a parameter serves several graphs; one of them freed does not spoil the next."""
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16):
        layer(x).sum().backward()
        once = layer.weight.grad.numpy()
        layer(x).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), 2 * once)


def test_step_between_forward_and_backward_is_noticed() -> None:
    layer, x = nn.Linear(3, 3, rng=0), normal(2, 3)
    with et.autocast(et.bfloat16):
        loss = layer(x).sum()
    layer.weight.assign(layer.weight * 2)
    with pytest.raises(RuntimeError, match="was replaced"):
        loss.backward()


def test_transforms() -> None:
    """Functional transforms see the casts as ordinary functions: their results are those of casts by hand."""
    x, w, v = normal(3, 4), normal(4, 2, seed=1), normal(3, 4, seed=2)

    def by_hand(x: Any, w: Any) -> Any:
        product = et.matmul(x.astype(et.bfloat16), w.astype(et.bfloat16))
        return et.sum(et.power(et.tanh(product).astype(et.float32), 2))

    def plain(x: Any, w: Any) -> Any:
        return et.sum(et.power(et.tanh(et.matmul(x, w)), 2))

    def both(transform: Callable[[Any], Any]) -> None:
        right = transform(by_hand)
        with et.autocast(et.bfloat16):
            found = transform(plain)
        for a, b in zip(tensors(right), tensors(found), strict=True):
            assert (a.dtype, a.numpy().tobytes()) == (b.dtype, b.numpy().tobytes())

    both(lambda f: et.value_and_grad(f, argnums=(0, 1))(x, w))
    both(lambda f: et.hvp(lambda x: f(x, w), x, v))
    both(lambda f: et.jvp(lambda x: f(x, w), (x,), (v,)))
    both(lambda f: et.hessian(lambda x: f(x, w))(x))
    both(lambda f: et.vjp(f, x, w)[1](et.tensor(1.0)))


def test_second_order_of_a_parameter() -> None:
    w = nn.Parameter(normal(3, 3))
    x = normal(2, 3)

    def penalty() -> np.ndarray:
        w.zero_grad()
        with et.autocast(et.bfloat16):
            loss = et.sum(et.linear(x, w) ** 3)
            loss.backward(create_graph=True)
            (w.grad**2).sum().backward()
        return w.grad.numpy()

    assert penalty().dtype == np.float32
    np.testing.assert_array_equal(penalty(), penalty())


def test_source_shows_the_casts() -> None:
    x = normal(2, 2)
    with et.autocast(et.float16):
        text = et.backward_source(lambda x: (x @ x).sum(), x)
    assert "astype(x, 'float16')" in text
    scope: dict[str, Any] = {}
    exec(text, scope)
    with et.autocast(et.float16):
        right = et.grad(lambda x: (x @ x).sum())(x)
    assert scope["backward"](x)[0].tolist() == right.tolist()


def test_own_pairs_compute_as_written() -> None:
    def scaled_backward(grad_output: Any, x: Any, w: Any) -> Any:
        return et.matmul(grad_output, w.T), et.matmul(x.T, grad_output)

    @et.differentiable(backward=scaled_backward)
    def scaled(x: Any, w: Any) -> Any:
        return et.matmul(x, w)

    x, w = normal(2, 3, requires_grad=True), normal(3, 4, requires_grad=True)
    with et.autocast(et.bfloat16):
        y = scaled(x, w)
        y.sum().backward()
    assert y.dtype == x.grad.dtype == w.grad.dtype == et.float32


def test_backward_functions_take_what_they_are_given() -> None:
    g, x, w = normal(2, 4), normal(2, 3), normal(4, 3)
    plain = et.linear_backward(g, x, w)
    with et.autocast(et.bfloat16):
        found = et.linear_backward(g, x, w)
    assert [t.numpy().tobytes() for t in found] == [t.numpy().tobytes() for t in plain]


@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers(layer: Any) -> None:
    net, x = layer(4, 5, rng=0), normal(7, 2, 4)
    with et.autocast(et.bfloat16):
        y, _ = net(x)
        y.sum().backward()
    assert y.dtype == et.bfloat16
    assert {p.grad.dtype for p in net.parameters()} == {et.float32}


def large_gradients(dtype: Any) -> list[np.ndarray]:
    """Of products, convolutions and attention that are worth several threads."""
    dense, conv = nn.Linear(256, 384, rng=0), nn.Conv2d(8, 16, 3, padding=1, rng=1)
    x, images = normal(512, 256), normal(8, 8, 24, 24, seed=1)
    with et.autocast(dtype):
        attended = et.self_attention(dense(x).reshape(4, 128, 384), num_heads=4, causal=True)
        loss = et.mean(attended**2) + et.mean(et.relu(conv(images)) ** 2)
    loss.backward()
    return [p.grad.numpy() for p in (dense.weight, dense.bias, conv.weight, conv.bias)]


@pytest.mark.parametrize("dtype", HALVES)
def test_same_bits_on_any_number_of_threads(dtype: Any) -> None:
    before, found = et.get_num_threads(), []
    try:
        for count in (1, 2, 3, 4):
            et.set_num_threads(count)
            found.append([g.tobytes() for g in [*gradients(True, dtype), *large_gradients(dtype)]])
    finally:
        et.set_num_threads(before)
    assert found[1:] == found[:-1]


def test_halves_are_all_of_them() -> None:
    assert set(HALVES) == set(HALF)


def test_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "autocast.md"
    assert page.read_text(encoding="utf-8") == autocast_page(), (
        "run: python -m extensor.testing.autocast_page docs/autocast.md"
    )
