"""What a program uses again between its runs is never what somebody still holds; what it leaves out changes no bits."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim
from extensor.kernels import NATIVE

native = pytest.mark.skipif(
    not NATIVE, reason="the definition keeps gradients until they are replaced, and counts no memory"
)
Made = tuple[Callable[..., Any], list[nn.Parameter], optim.Optimizer]


def training(make_optimizer: Callable[[list[nn.Parameter]], optim.Optimizer], width: int = 8) -> Made:
    model = nn.Sequential(
        nn.Linear(6, width, rng=0), nn.ReLU(), nn.Linear(width, width, rng=1), nn.Tanh(), nn.Linear(width, 3, rng=2)
    )  # fmt: skip
    params = list(model.parameters())
    optimizer = make_optimizer(params)

    def step(x: et.ExTensor, y: et.ExTensor) -> tuple[et.ExTensor, et.ExTensor]:
        optimizer.zero_grad()
        out = model(x)
        loss = et.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        return loss, out

    return step, params, optimizer


def batch(seed: int) -> tuple[et.ExTensor, et.ExTensor]:
    rng = np.random.default_rng(seed)
    return et.tensor(rng.normal(size=(5, 6)).astype(np.float32)), et.tensor(rng.integers(0, 3, 5))


def bits(tensors: Any) -> list[bytes]:
    return [t.numpy().tobytes() for t in tensors]


def test_what_is_held_stays_as_it_is() -> None:
    step, params, _ = training(optim.Adam)
    compiled = et.compile(step)
    held: list[tuple[Any, np.ndarray]] = []
    for seed in range(8):
        results = compiled(*batch(seed))
        tensors = [*results, *(p.grad for p in params), *(p.detach() for p in params[:2])]
        # a tensor, its array alone, a view of it alone
        kept = [tensors[0], tensors[1]._data, *(t._data[:1] for t in tensors[2:])]
        held += [(k, np.array(k._data if isinstance(k, et.ExTensor) else k)) for k in kept]
        del results, tensors, kept
    for thing, copy in held:
        array = thing._data if isinstance(thing, et.ExTensor) else thing
        assert array.tobytes() == copy.tobytes()


def test_an_array_that_is_gone_does_not_come_back() -> None:
    step, params, _ = training(optim.SGD)
    compiled = et.compile(step)
    compiled(*batch(0))
    compiled(*batch(1))
    watched = [weakref.ref(p.grad._data) for p in params if p.grad is not None]
    for seed in range(2, 6):
        compiled(*batch(seed))
    assert [ref() for ref in watched] == [None] * len(params)


def test_an_array_that_was_changed_is_not_used_again() -> None:
    step, params, _ = training(optim.SGD)
    eager, other_params, _ = training(optim.SGD)
    compiled = et.compile(step)
    for seed in range(6):
        compiled(*batch(seed))
        eager(*batch(seed))
        array: Any = params[0].grad._data  # type: ignore[union-attr]
        array.flags.writeable = False
        array.shape = (array.size,)
        del array
        assert bits(params) == bits(other_params)
    assert compiled.recordings == 1


def changed_options(optimizer: optim.Optimizer, turn: int) -> None:
    optimizer.param_groups[0]["lr"] = 0.1 / (1 + turn)
    if turn == 2:
        optimizer.param_groups[-1]["weight_decay"] = 0.01
    if turn == 3 and "betas" in optimizer.param_groups[0]:
        optimizer.param_groups[0]["betas"] = (0.8, 0.99)
    if turn == 4:
        optimizer.load_state_dict(optimizer.state_dict())


OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], optim.Optimizer]] = {
    "SGD": lambda params: optim.SGD(params, lr=0.1),
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda params: optim.Adam(params, lr=0.1),
    "AdamW": lambda params: optim.AdamW(params, lr=0.1),
    "groups": lambda params: optim.Adam([{"params": params[:2]}, {"params": params[2:], "lr": 0.02}]),
    "some by the rule": lambda params: optim.Adam([{"params": params[:2]}, {"params": params[2:], "amsgrad": True}]),
    "the rule": lambda params: optim.RMSprop(params, lr=0.01),
    "rounded": lambda params: optim.Adam(params, stochastic_rounding=3),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("width", [8, 200])
def test_options_are_read_afresh(name: str, width: int) -> None:
    """Small parameters and large ones, whose memory comes from the pool."""
    runs = []
    for compiles in (True, False):
        step, params, optimizer = training(OPTIMIZERS[name], width)
        run = et.compile(step) if compiles else step
        for turn in range(7):
            run(*batch(turn))
            changed_options(optimizer, turn)
        states = [
            {key: v.tolist() if isinstance(v, et.ExTensor) else v for key, v in optimizer.state[p].items()}
            for p in params
        ]
        runs.append((bits(params), states))
        if compiles:
            assert len(run.programs) == 1  # type: ignore[attr-defined]
    assert runs[0] == runs[1]


def test_a_wrong_option_is_refused_as_ever() -> None:
    step, params, optimizer = training(optim.Adam)
    compiled = et.compile(step)
    compiled(*batch(0))
    compiled(*batch(1))
    before = bits(params)
    optimizer.param_groups[0]["lr"] = -1.0
    with pytest.raises(ValueError, match=r"\[Adam\] lr must be"):
        compiled(*batch(2))
    assert bits(params) == before


@pytest.mark.parametrize("width", [8, 200])
def test_parameters_stay_where_they_are_unless_they_are_held(width: int) -> None:
    pytest.importorskip("extensor._native", reason="steps in place are native")
    step, params, _ = training(optim.Adam, width)
    compiled = et.compile(step)
    for seed in range(3):
        compiled(*batch(seed))
    places = [p._data.ctypes.data for p in params]
    compiled(*batch(3))
    assert [p._data.ctypes.data for p in params] == places
    held = params[2]._data
    copy = held.copy()
    compiled(*batch(4))
    assert held.tobytes() == copy.tobytes()
    assert params[2]._data is not held


EDGES = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shows", ["nothing else", "the product", "its gradient"])
def test_an_activation_joined_to_its_product(dtype: str, shows: str) -> None:
    """relu of a product, with every kind of number in it; and where the product itself is wanted too."""
    rng = np.random.default_rng(0)
    weight = nn.Parameter(et.tensor(rng.normal(size=(9, 8)), dtype=dtype))
    bias = nn.Parameter(et.tensor([*EDGES, 0.5], dtype=dtype))
    x = et.tensor(np.where(rng.random((7, 8)) < 0.5, 0.0, rng.normal(size=(7, 8))), dtype=dtype)

    def step(x: et.ExTensor) -> Any:
        weight.zero_grad()
        bias.zero_grad()
        z = et.linear(x, weight, bias)
        y = et.relu(z)
        (y * y).sum().backward()
        more = {"the product": z.detach(), "its gradient": weight.grad}.get(shows, y.detach())
        return y.detach(), more

    compiled = et.compile(step)
    for _ in range(3):
        found = [*compiled(x), weight.grad, bias.grad]
        assert bits(found) == bits([*step(x), weight.grad, bias.grad])
    assert compiled.programs[0].times()[1] == 2


def test_the_same_question_is_asked_once_and_every_time() -> None:
    step, *_ = training(optim.SGD)
    compiled = et.compile(step)
    compiled(*batch(0))
    steps = compiled.programs[0].recording.steps
    assert [s.name for s in steps if s.kind == "guard"] == ["first_outside"]
    compiled(*batch(1))
    x, y = batch(2)
    with pytest.raises((IndexError, ValueError)) as expected:
        step(x, y + 3)
    with pytest.raises(type(expected.value)) as found:
        compiled(x, y + 3)
    assert str(found.value) == str(expected.value)


def test_a_reshape_to_the_same_shape_is_no_step() -> None:
    double = et.compile(lambda x: (x.reshape((-1, 3)) * 2.0).reshape((2, 3)))
    x = et.tensor(np.arange(6.0).reshape(2, 3))
    double(x)
    assert double.programs[0].kernels == ("multiply",)
    assert double(x + 1).tolist() == ((x + 1) * 2.0).tolist()
    same = et.compile(lambda x: x.reshape((2, 3)))
    same(x)
    assert same(x + 5).tolist() == (x + 5).tolist()


@native
def test_a_program_holds_no_memory_of_its_recording() -> None:
    """Neither the parameters nor the gradients that were there then."""
    data = et.random.normal(0, (4, 6)), et.tensor([0, 1, 2, 0])
    used = []
    for compiles in (False, True):
        step, params, optimizer = training(optim.SGD, width=256)
        run = et.compile(step) if compiles else step
        before = et.memory().used
        for _ in range(4):
            run(*data)
        used.append(et.memory().used - before)
        del step, params, optimizer, run
    assert used[1] <= used[0]


@native
def test_a_small_view_does_not_keep_what_it_is_a_part_of() -> None:
    run = et.compile(lambda x: (x * 2.0)[:1].sum() + 1.0)
    x = et.ones((256, 256))
    run(x), run(x)
    before = et.memory().used
    for _ in range(5):
        run(x)
    assert et.memory().used <= before


@native
def test_old_gradients_are_let_go_as_in_an_eager_step() -> None:
    w = nn.Parameter([1.0, 2.0])
    seen: list[bool] = []

    def spy_backward(grad: et.ExTensor) -> et.ExTensor:
        return grad

    @et.differentiable(backward=spy_backward, wrt="x")
    def spy(x: et.ExTensor) -> et.ExTensor:
        seen.append(w.grad is None)
        return et.tensor(x.numpy())

    def step(x: et.ExTensor) -> None:
        w.grad = None
        spy(w * x).sum().backward()

    compiled = et.compile(step)
    for _ in range(3):
        compiled(et.ones(2))
    assert compiled.programs[0].times()[1] == 2
    assert seen == [True, True, True]


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_gradients_stay_where_the_function_fails_before_it_clears_them(late: bool, moves: bool) -> None:
    w = nn.Parameter(et.random.normal(0, (6, 3)))
    optimizer = optim.SGD([w])

    def step(x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
        if not late:
            w.grad = None
        loss = et.cross_entropy(x @ w, y)
        if late:
            w.grad = None
        loss.backward()
        if moves:
            optimizer.step()
        return loss

    compiled = et.compile(step)
    x, y = batch(1)
    compiled(x, y), compiled(x, y)
    before = w.grad.tolist()
    with pytest.raises(ValueError, match="cross_entropy"):
        compiled(x, et.tensor([0, 1, 7, 0, 1]))
    assert (w.grad is not None and w.grad.tolist() == before) if late else w.grad is None
