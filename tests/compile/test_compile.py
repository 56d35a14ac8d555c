"""A compiled function computes what the function computes: the same bits, the same effects, and errors that say what to do."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import nn, optim

from .networks import NETWORKS, OPTIMIZERS, SCHEDULES, Training


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("whole", [False, True], ids=["plain", "clipped and scheduled"])
def test_training_has_the_same_bits(network: str, whole: bool) -> None:
    eager = Training(network, OPTIMIZERS["adamw"], clip=whole, schedule="cosine" if whole else None)
    other = Training(network, OPTIMIZERS["adamw"], clip=whole, schedule="cosine" if whole else None)
    compiled = et.compile(other.step)
    assert other.digest(7, compiled) == eager.digest(7, eager.step)
    assert len(compiled.programs) == 1
    assert compiled.recordings == 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser(name: str) -> None:
    eager, other = (Training("mlp", OPTIMIZERS[name], schedule="cosine") for _ in range(2))
    compiled = et.compile(other.step)
    assert other.digest(9, compiled) == eager.digest(9, eager.step)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule(name: str) -> None:
    eager, other = (Training("mlp", OPTIMIZERS["sgd"], schedule=name) for _ in range(2))
    compiled = et.compile(other.step)
    assert other.digest(9, compiled) == eager.digest(9, eager.step)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("options", [{"checkpoint": True}, {"pieces": 3}], ids=["checkpoint", "accumulate"])
@pytest.mark.parametrize("network", ["mlp", "gpt", "lstm"])
def test_checkpoints_and_accumulated_gradients(network: str, options: dict[str, Any]) -> None:
    eager, other = (Training(network, OPTIMIZERS["adam"], clip=True, **options) for _ in range(2))
    compiled = et.compile(other.step)
    assert other.digest(6, compiled) == eager.digest(6, eager.step)
    if "checkpoint" in options and network != "lstm":  # dropout, whose draws are repeated: as it is written
        assert [reason[:42] for reason in compiled.reasons] == [
            "a checkpointed segment draws random numbers"[:42]
        ]
    else:
        assert len(compiled.programs) == 1


def test_gradients_that_needed_no_clipping_at_first() -> None:
    w = nn.Parameter([1.0, 1.0])
    clipped = et.compile(lambda x: optim.clip_grad_norm([x * w.detach()], 1.0)[0][0])
    for size in (0.1, 0.1, 10.0, 0.1):
        x = et.full((2,), size)
        expected = optim.clip_grad_norm([x * w.detach()], 1.0)[0][0]
        assert clipped(x).tolist() == expected.tolist()
    assert len(clipped.programs) == 1


@et.differentiable
def tamed(x: et.ExTensor) -> et.ExTensor:
    """x / max|x| where that is above 1; x itself otherwise."""
    largest = float(np.abs(x.numpy()).max())
    return x if largest <= 1 else et.tensor(x.numpy() / np.float32(largest))


def tamed_backward(grad: et.ExTensor, x: et.ExTensor) -> et.ExTensor:
    return grad / et.maximum(et.abs(x).max(), et.ones(()))


@et.differentiable
def tamed_exp(x: et.ExTensor) -> et.ExTensor:
    """Nonsense whose gradient is saved as its result: x where its first element is below 0, exp(x) otherwise."""
    return x if x.numpy()[0] < 0 else et.tensor(np.exp(x.numpy()))


def tamed_exp_backward(grad: et.ExTensor, output: et.ExTensor) -> et.ExTensor:
    return grad * output


def test_an_argument_that_an_op_handed_through_at_first() -> None:
    w = nn.Parameter([1.0, 2.0])

    def step(x: et.ExTensor) -> et.ExTensor:
        w.grad = None
        out = tamed(w * x)
        (out * out).sum().backward()
        return out.detach()

    compiled = et.compile(step)
    for size in (0.1, 0.1, 10.0, 0.1):
        x = et.full((2,), size)
        expected, grad = step(x).tolist(), w.grad.tolist()
        assert compiled(x).tolist() == expected
        assert w.grad.tolist() == grad
    assert len(compiled.programs) == 1


@et.differentiable
def higher(x: et.ExTensor, y: et.ExTensor) -> et.ExTensor:
    """x or y itself, whichever has the larger first element."""
    return x if x.numpy()[0] > y.numpy()[0] else y


def higher_backward(grad: et.ExTensor, x: et.ExTensor, y: et.ExTensor) -> tuple[et.ExTensor, et.ExTensor]:
    zero = et.zeros_like(grad)
    return et.where(x[:1] > y[:1], grad, zero), et.where(x[:1] > y[:1], zero, grad)


def test_one_of_two_that_an_op_handed_through() -> None:
    w, constant = nn.Parameter([1.0, 2.0]), et.tensor([0.5, 0.2])

    def step(x: et.ExTensor) -> tuple[et.ExTensor, ...]:
        w.grad = None
        out = higher(w * x, w * 0.3)
        (out * out).sum().backward()
        w.grad = tamed(w.grad)
        return out.detach(), higher(x, constant), tamed(tamed(x))

    compiled = et.compile(step)
    for size in (0.1, 0.1, 10.0, 0.4, 3.0):
        x = et.full((2,), size)
        expected, grad = [t.tolist() for t in step(x)], w.grad.tolist()
        assert [t.tolist() for t in compiled(x)] == expected
        assert w.grad.tolist() == grad
    assert len(compiled.programs) == 1


def test_a_buffer_that_an_op_handed_through() -> None:
    class Grows(nn.Module):
        def __init__(self) -> None:
            self.size = et.tensor([0.5, 0.25])

        def forward(self, x: et.ExTensor) -> et.ExTensor:
            size = tamed(self.size)
            self.size = size * 1.5
            return x * size

    eager, other = Grows(), Grows()
    compiled = et.compile(other)
    with et.no_grad():
        for value in (1.0, 2.0, 3.0, 4.0, 5.0):
            x = et.full((2,), value)
            assert compiled(x).tolist() == eager(x).tolist()
            assert other.size.tolist() == eager.size.tolist()
    assert len(compiled.programs) == 1


def test_a_parameter_that_an_op_handed_through_is_not_compiled() -> None:
    w = nn.Parameter([0.5, 0.25])

    def run(x: et.ExTensor) -> et.ExTensor:
        with et.no_grad():
            return tamed(w) * x

    compiled = et.compile(run)
    for value in (0.5, 0.5, 4.0):
        w.assign([value, 0.25])
        assert compiled(et.ones(2)).tolist() == run(et.ones(2)).tolist()
    assert "as it is" in compiled.reasons[0]


def test_an_argument_that_is_saved_as_a_result_is_not_compiled() -> None:
    w = nn.Parameter([1.0, 2.0])

    def step(x: et.ExTensor) -> None:
        w.grad = None
        tamed_exp(w * x).sum().backward()

    compiled = et.compile(step)
    for size in (-1.0, -1.0, 1.0):
        step(et.full((2,), size))
        grad = w.grad.tolist()
        compiled(et.full((2,), size))
        assert w.grad.tolist() == grad
    assert "saves as its result" in compiled.reasons[0]


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_same_bits_on_any_number_of_threads(threads: int) -> None:
    before = et.get_num_threads()
    eager = Training("lenet", OPTIMIZERS["adam"])
    expected = eager.digest(4, eager.step)
    et.set_num_threads(threads)
    try:
        other = Training("lenet", OPTIMIZERS["adam"])
        assert other.digest(4, et.compile(other.step)) == expected
    finally:
        et.set_num_threads(before)


def test_what_changes_between_calls_is_read_afresh() -> None:
    def make() -> tuple[nn.Module, Any, Any]:
        layer = nn.Linear(3, 2, rng=0)
        optimizer = optim.SGD(layer.parameters(), lr=0.5, momentum=0.9)

        def step(x: et.ExTensor) -> et.ExTensor:
            loss = (layer(x) ** 2.0).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return layer, optimizer, step

    layers = []
    for compiles in (False, True):
        layer, optimizer, step = make()
        run = et.compile(step) if compiles else step
        for i in range(12):
            if i == 4:
                optimizer.lr = 0.01
            if i == 6:
                layer.weight.assign(layer.weight * 0.5)
            if i == 8:
                optimizer.param_groups[0]["momentum"] = 0.5
            if i == 10:
                layer.load_state_dict({"weight": np.ones((2, 3)), "bias": np.zeros(2)})
            run(et.full((4, 3), 0.1 * i))
        layers.append(layer)
    assert layers[0].weight.tolist() == layers[1].weight.tolist()
    assert layers[0].bias.tolist() == layers[1].bias.tolist()


def test_parameters_assigned_inside_the_step() -> None:
    """A moving average of the weights, which nothing differentiates, goes on in each replay."""

    def averages(compiles: bool) -> list[Any]:
        layer, average = nn.Linear(3, 2, rng=0), nn.Linear(3, 2, rng=1)
        optimizer = optim.SGD(layer.parameters(), lr=0.1)

        def step(x: et.ExTensor) -> et.ExTensor:
            optimizer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            for mean, parameter in zip(average.parameters(), layer.parameters()):
                mean.assign(mean * 0.9 + parameter.detach() * 0.1)
            return loss

        run = et.compile(step) if compiles else step
        seen = []
        for i in range(6):
            run(et.full((4, 3), 0.1 * i))
            seen.append([parameter.tolist() for parameter in average.parameters()])
        return seen

    assert averages(compiles=True) == averages(compiles=False)


def test_a_detached_parameter_is_no_constant() -> None:
    w = nn.Parameter([1.0])
    run = et.compile(lambda x: x * w.detach())
    assert [run(et.ones(1)).item() for _ in range(2)] == [1.0, 1.0]
    w.assign([3.0])
    assert run(et.ones(1)).item() == 3.0
    assert len(run.programs) == 1
    with pytest.raises(et.CompileError, match="the value of a parameter was read"):
        et.compile(lambda x: x * w.item())(et.ones(1))


def test_gradients_accumulate_over_calls() -> None:
    w = nn.Parameter([1.0, 2.0])
    add = et.compile(lambda x: (w * x).sum().backward())
    for i in range(1, 5):
        add(et.full((2,), float(i)))
    assert w.grad is not None
    assert w.grad.tolist() == [10.0, 10.0]
    assert len(add.programs) == 2  # without a gradient before, and with one
    w.zero_grad()
    add(et.ones(2))
    assert w.grad.tolist() == [1.0, 1.0]
    assert len(add.programs) == 2


def test_arguments_that_require_gradients_get_theirs() -> None:
    square = et.compile(lambda x: (x * x).sum().backward())
    for i in range(3):
        x = et.tensor([1.0, float(i)], requires_grad=True)
        square(x)
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 2.0 * i]


def test_kinds_of_calls_have_programs_of_their_own() -> None:
    layer = nn.Linear(2, 2, rng=0)
    run = et.compile(lambda x, scale=1.0: (layer(x) * scale).detach())
    with et.no_grad():
        for shape in ((1, 2), (3, 2), (1, 2)):
            x = et.ones(shape)
            assert run(x).tolist() == layer(x).tolist()
            assert run(x).tolist() == layer(x).tolist()
        assert len(run.programs) == 2
        assert run(x, scale=3.0).tolist() == (layer(x) * 3.0).tolist()
        assert run(x, scale=3.0).tolist() == (layer(x) * 3.0).tolist()
        assert len(run.programs) == 3
    many = et.compile(lambda x: x + 1.0)
    for n in range(1, 101):
        assert many(et.ones(n)).tolist() == [2.0] * n
    assert len(many.programs) == 64


def test_structures_of_arguments_and_results() -> None:
    @et.compile
    def run(tree: dict[str, Any], pair: tuple[Any, Any]) -> Any:
        return {"sum": tree["a"] + tree["b"][0], "same": pair[0], "none": None, "list": [pair[1] * 2.0, 7]}

    for i in range(3):
        a, b = et.full((2,), float(i)), et.ones(2)
        found = run({"a": a, "b": [b]}, (b, a))
        assert found["sum"].tolist() == [i + 1.0] * 2
        assert found["same"] is b
        assert found["list"][0].tolist() == [2.0 * i] * 2
        assert found["list"][1] == 7
        assert found["none"] is None
    assert len(run.programs) == 1


def test_tensors_that_are_returned_as_they_are() -> None:
    first, second = et.tensor([7.0, 8.0]), et.tensor([1.0, 2.0, 3.0])
    run = et.compile(lambda x: (x * 2.0, first, [x + 1.0, second]))
    for value in (1.0, 2.0, 3.0):
        doubled, one, (more, other) = run(et.full((2,), value))
        assert doubled.tolist() == [2 * value] * 2
        assert more.tolist() == [value + 1] * 2
        assert one.tolist() == [7.0, 8.0]
        assert other.tolist() == [1.0, 2.0, 3.0]
    assert len(run.programs) == 1


def test_arrays_are_arguments_not_constants() -> None:
    double = et.compile(lambda x: et.asarray(x) * 2.0)
    for i in range(3):
        assert double(np.full(2, float(i), np.float32)).tolist() == [2.0 * i] * 2


def test_the_same_tensor_twice_is_two_arguments() -> None:
    x, y = et.ones(2), et.zeros(2)
    minus = et.compile(lambda a, b: a - b)
    minus(x, x)
    assert minus(x, x).tolist() == [0.0, 0.0]
    assert minus(x, y).tolist() == [1.0, 1.0]
    outside = et.compile(lambda a: a - x)
    outside(x)
    assert outside(y).tolist() == [-1.0, -1.0]


def test_modes_and_settings_of_modules_are_part_of_the_kind() -> None:
    layer = nn.Dropout(0.5, rng=0)
    run = et.compile(layer)
    x = et.ones(50)
    first, second = run(x).tolist(), run(x).tolist()
    assert first != second
    layer.eval()
    assert run(x).tolist() == [1.0] * 50
    layer.train()
    layer.p = 1.0
    assert run(x).tolist() == [0.0] * 50
    assert run(x).tolist() == [0.0] * 50


def test_a_replaced_layer_is_noticed() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2, rng=0)

        def forward(self, x: et.ExTensor) -> et.ExTensor:
            return self.inner(x).tanh()

    model = Net()
    run = et.compile(lambda x: model(x).detach())
    x = et.ones((1, 2))
    run(x)
    model.inner = nn.Linear(2, 2, rng=5)
    assert run(x).tolist() == model(x).tolist()
    assert run(x).tolist() == model(x).tolist()


def test_buffers_are_read_and_written() -> None:
    norms = [nn.BatchNorm1d(3) for _ in range(2)]
    run = et.compile(norms[0])
    rng = np.random.default_rng(0)
    with et.no_grad():
        for i in range(6):
            x = et.tensor(rng.standard_normal((4, 3)))
            for norm in norms:
                norm.train(i % 3 != 2)
            assert run(x).tolist() == norms[1](x).tolist()
    for (_, a), (_, b) in zip(norms[0].named_buffers(), norms[1].named_buffers()):
        assert a.tolist() == b.tolist()


def test_random_numbers_go_on() -> None:
    def noisy(rng: np.random.Generator) -> Callable[[et.ExTensor], et.ExTensor]:
        return lambda x: x + et.random.normal(rng, x.shape) + et.random.uniform(3, x.shape)

    eager, compiled = noisy(np.random.default_rng(0)), et.compile(noisy(np.random.default_rng(0)))
    for _ in range(4):
        assert compiled(et.zeros(3)).tolist() == eager(et.zeros(3)).tolist()
    assert len(compiled.programs) == 1


def test_an_edited_function_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = et.compile(lambda x: et.relu(x))
    x = et.tensor([-1.0, 2.0])
    run(x)
    assert run(x).tolist() == [0.0, 2.0]
    op: Any = et.relu
    body = op.fn
    monkeypatch.setattr(op, "fn", lambda x: body(-x))
    assert run(x).tolist() == [1.0, 0.0]


# What cannot be recorded


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.item(), float, int, bool, lambda t: t.numpy(), lambda t: t.tolist(), np.asarray, repr,
        lambda t: t if t > 0 else -t, lambda t: range(t.astype(et.int64)),
    ],
)  # fmt: skip
def test_reading_a_value_is_an_error_that_names_the_line(read: Callable[[Any], Any]) -> None:
    def step(x: et.ExTensor) -> Any:
        return read((x * 2.0).sum())

    with pytest.raises(et.CompileError, match=r"test_compile\.py:\d+.*fallback=True"):
        et.compile(step)(et.ones(1))


def test_reading_a_buffer_is_an_error() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            self.register_buffer("seen", et.tensor(0))

        def forward(self, x: et.ExTensor) -> et.ExTensor:
            self.seen = et.tensor(self.seen.item() + len(x))
            return x * 2.0

    with pytest.raises(et.CompileError, match=r"a module's tensor was read at .*test_compile\.py:\d+"):
        et.compile(Counting())(et.ones(3))
    counting = Counting()
    run = et.compile(counting, fallback=True)
    with pytest.warns(UserWarning, match="runs without compile"):
        run(et.ones(3))
    run(et.ones(3))
    assert counting.seen.item() == 6


def test_fallback_runs_the_function_once_as_written_and_says_so() -> None:
    calls = []
    w = nn.Parameter([1.0])
    optimizer = optim.SGD([w], lr=0.25)

    @et.compile(fallback=True)
    def step(x: et.ExTensor) -> float:
        calls.append(1)
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    with pytest.warns(UserWarning, match="step runs without compile: the value of a tensor was read"):
        assert step(et.ones(1)) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert step(et.ones(1)) == 0.75
    assert (len(calls), w.tolist()) == (2, [0.5])
    assert not step.programs


def test_results_that_are_differentiated_outside_keep_their_history() -> None:
    layer = nn.Linear(2, 1, rng=0)
    run = et.compile(layer)
    for _ in range(3):
        layer.zero_grad()
        run(et.ones((1, 2))).sum().backward()
        assert layer.weight.grad is not None
        assert layer.weight.grad.tolist() == [[1.0, 1.0]]


FACTOR = 2.0


def test_numbers_that_change_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    free = 3.0

    class Settings:
        power = 1.0

        def __init__(self) -> None:
            self.offset = 0.5

    settings = Settings()

    def helper(x: et.ExTensor) -> et.ExTensor:
        return x * FACTOR

    @et.compile
    def run(x: et.ExTensor) -> et.ExTensor:
        return helper(x) * free + settings.offset

    x = et.ones(1)
    assert [run(x).item() for _ in range(3)] == [6.5] * 3
    free = 4.0
    assert [run(x).item() for _ in range(3)] == [8.5] * 3
    settings.offset = 1.0
    assert [run(x).item() for _ in range(3)] == [9.0] * 3
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    assert [run(x).item() for _ in range(3)] == [5.0] * 3
    assert len(run.programs) == 4


def test_a_loss_with_a_changing_weight_is_noticed() -> None:
    class Loss:
        def __init__(self) -> None:
            self.beta = 1.0

        def __call__(self, x: et.ExTensor) -> et.ExTensor:
            return (x * self.beta).sum()

    loss = Loss()
    run = et.compile(lambda loss, x: loss(x))
    assert [run(loss, et.ones(2)).item() for _ in range(2)] == [2.0, 2.0]
    loss.beta = 2.0
    assert [run(loss, et.ones(2)).item() for _ in range(2)] == [4.0, 4.0]


def test_check_finds_a_number_that_changed() -> None:
    scale = [1.0]
    run = et.compile(lambda x: (x * scale[0]).exp(), check=3)
    x = et.ones(2)
    run(x)
    run(x)
    scale[0] = 2.0
    with pytest.raises(et.CompileError, match=r"multiply.*test_compile\.py.*differs"):
        run(x)
    flag = [True]
    branch = et.compile(lambda x: x.exp() if flag[0] else x.sin(), check=3)
    branch(x)
    flag[0] = False
    with pytest.raises(et.CompileError, match=r"calls sin.*where the recording has exp"):
        branch(x)


@pytest.mark.parametrize("network", ["mlp", "gpt"])
def test_check_leaves_training_as_it_is(network: str) -> None:
    eager = Training(network, OPTIMIZERS["adam"], clip=True, schedule="cosine")
    other = Training(network, OPTIMIZERS["adam"], clip=True, schedule="cosine")
    compiled = et.compile(other.step, check=4)
    assert other.digest(7, compiled) == eager.digest(7, eager.step)
    assert len(compiled.programs) == 1


def test_wrong_arguments_raise_what_the_function_raises() -> None:
    run = et.compile(lambda x, y: et.cross_entropy(x, y))
    x, y = et.ones((2, 3)), et.tensor([0, 1])
    run(x, y)
    run(x, y)
    with pytest.raises(ValueError, match=r"\[cross_entropy\]"):
        run(x, et.tensor([0, 9]))
    with pytest.raises(TypeError):
        run(x)
    with pytest.raises(TypeError, match=r"\[compile\] fn"):
        et.compile(3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"\[compile\] check"):
        et.compile(lambda x: x, check=-1)


def test_an_error_before_the_step_changes_nothing() -> None:
    training = Training("gpt", OPTIMIZERS["adam"])
    compiled = et.compile(training.step)
    x, y = training.batches[0]
    for _ in range(3):
        compiled(x, y)
    before = {name: value.tolist() for name, value in training.model.state_dict().items()}
    with pytest.raises(ValueError, match="cross_entropy"):
        compiled(x, y.at[0, 0].set(99))
    after = {name: value.tolist() for name, value in training.model.state_dict().items()}
    assert before == after


# Around it


def test_a_compiled_function_inside_another_is_part_of_it() -> None:
    inner = et.compile(lambda x: x * 2.0)
    outer = et.compile(lambda x: inner(x) + 1.0)
    for i in range(3):
        assert outer(et.full((2,), float(i))).tolist() == [2.0 * i + 1.0] * 2
    assert len(outer.programs) == 1
    with et.profile() as p:
        outer(et.ones(2))
    assert {row.name for row in p.by_op()} == {"multiply", "add"}


def test_threads_run_programs_at_the_same_time() -> None:
    run = et.compile(lambda x: (x @ x).tanh().sum())
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = et.random.normal(seed, (20 + seed % 2, 20 + seed % 2))
        expected = (x @ x).tanh().sum().item()
        wrong.extend(seed for _ in range(50) if run(x).item() != expected)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_kept() -> None:
    training = Training("mlp", OPTIMIZERS["adam"])
    compiled = et.compile(training.step)
    x, y = training.batches[0]
    for _ in range(3):
        compiled(x, y)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        compiled(x, y)
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_arrays_that_somebody_holds_never_change() -> None:
    training = Training("mlp", OPTIMIZERS["adam"])
    compiled = et.compile(training.step)
    held = []
    for i in range(6):
        loss, out = compiled(*training.batches[i % 3])
        weight = training.model[0].weight.numpy()
        held.append([(a, a.copy()) for a in (loss.numpy(), out.numpy(), weight)])
    for arrays in held:
        for array, copy in arrays:
            assert (array == copy).all()


def test_clear_and_report() -> None:
    run = et.compile(lambda x: x.exp().sum())
    for _ in range(3):
        run(et.ones((2, 3)))
    assert "1 program, 1 recording\n" in repr(run)
    assert "(2, 3)" in repr(run)
    assert run.programs[0].kernels == ("exp", "sum")
    assert run.programs[0].shapes == ((2, 3),)
    assert run.programs[0].planned_bytes == 28
    run.clear()
    assert run.programs == []
    with pytest.raises(et.CompileError, match="nothing is recorded"):
        run.source()


def test_methods_can_be_compiled() -> None:
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = et.tensor(by)

        @et.compile
        def times(self, x: et.ExTensor) -> et.ExTensor:
            return x * self.by

    a, b = Scaled(2.0), Scaled(3.0)
    for _ in range(3):
        assert a.times(et.ones(1)).tolist() == [2.0]
        assert b.times(et.ones(1)).tolist() == [3.0]
