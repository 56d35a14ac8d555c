"""Plans repeat what a body decided: for calls of its kind alone, as long as the body stays, within bounds."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import extensor as et
from extensor import kernels
from extensor.graph import clear_plans, plan_counts, run_bodies

pytest.importorskip("extensor._native", reason="without the native core there are no plans")

X = et.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
TEN = {
    "softmax": (X,),
    "relu": (X,),
    "sum": (X, 1),
    "matmul": (X, X.T),
    "reshape": (X, (3, 2)),
    "add": (X, 1.5),
    "mean_squared_error": (X, X * 2.0),
    "tanh_backward": (X, X),
    "layer_norm": (X, 3),
    "argmax": (X, 1),
}


@pytest.mark.parametrize("way", ["another function", "other code"])
@pytest.mark.parametrize("name", TEN)
def test_an_edited_body_is_what_runs(name: str, way: str) -> None:
    op, args = getattr(et, name), TEN[name]
    before = op.fn, op.fn.__code__
    for _ in range(3):
        usual = op(*args)

    def edited(*args, **kwargs):
        return marked

    marked = et.tensor([42.0])
    try:
        if way == "another function":
            op.fn = edited
        else:
            op.fn.__code__ = _answers_42.__code__
        for _ in range(3):
            assert op(*args).tolist() == [42.0]
    finally:
        op.fn = before[0]
        op.fn.__code__ = before[1]
    for _ in range(3):
        assert op(*args).tolist() == usual.tolist()


def _answers_42(*args, **kwargs):
    import extensor

    return extensor.tensor([42.0])


def test_an_edited_body_of_kernels_is_what_runs() -> None:
    """Twice the logits: the edit that once was ignored from the second call on."""
    usual = et.softmax(X)

    def doubled(x, axis=-1):
        return kernels.softmax(kernels.multiply(x, 2.0), 1)

    body, et.softmax.fn = et.softmax.fn, doubled
    try:
        found = [et.softmax(X).tolist() for _ in range(3)]
    finally:
        et.softmax.fn = body
    assert found == [et.softmax(X * 2.0).tolist()] * 3
    assert found[0] != usual.tolist()


def test_an_edited_default_is_what_runs() -> None:
    grad = et.ones((2, 3))
    for _ in range(3):
        assert et.multiply_backward(grad, X, X).grad_b is not None
    defaults = et.multiply_backward.fn.__kwdefaults__  # type: ignore[attr-defined]
    before = defaults["needs"]
    try:
        defaults["needs"] = (True, False)
        for _ in range(3):
            assert et.multiply_backward(grad, X, X).grad_b is None
    finally:
        defaults["needs"] = before
    for _ in range(3):
        assert et.multiply_backward(grad, X, X).grad_b is not None


@pytest.mark.parametrize("field", ["native", "reference"])
def test_an_edited_kernel_is_what_runs(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        usual = et.tanh(X).tolist()
    with monkeypatch.context() as patch:
        patch.setattr(kernels.tanh, field, lambda x: x * 2)
        if field == "reference":
            patch.setattr(kernels.tanh, "native", None)
        for _ in range(3):
            assert et.tanh(X).tolist() == (X * 2).tolist()
    for _ in range(3):
        assert et.tanh(X).tolist() == usual


NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    3.0,
    0.5,
    -0.5,
    1e-30,
    1e30,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
]


@pytest.mark.parametrize("name", [n for n in et.__all__ if getattr(getattr(et, n), "numbers", 0)])
def test_no_body_decides_by_a_number_that_is_no_part_of_the_kind(name: str) -> None:
    """A plan made with one number serves every other: each is tried as the one that makes it."""
    op, grad = getattr(et, name), et.ones((2, 3))

    def call(x: et.ExTensor, number: float) -> list[object]:
        found = []
        for args in ((x, number), (number, x)):
            result = op(grad, *args) if op.is_backward else op(*args)
            found += list(result) if isinstance(result, tuple) else [result]
        return [r if r is None else (r.dtype, r.numpy().tobytes()) for r in found]

    for x in (X, X.astype(et.float16), et.tensor([[1, 2, 3], [4, 5, 6]])):
        if op.is_backward and x.dtype == et.int64:
            continue
        with run_bodies():
            wanted = [call(x, number) for number in NUMBERS]
        for first in NUMBERS:
            clear_plans()
            call(x, first), call(x, first)
            assert [call(x, number) for number in NUMBERS] == wanted


def test_hits_are_counted() -> None:
    clear_plans()
    for _ in range(5):
        et.exp(X)
    counts = plan_counts()
    assert (counts["misses"], counts["hits"], counts["kept"]) == (2, 3, 1)  # the second call makes the plan
    with run_bodies():
        et.exp(X)
    assert plan_counts() == counts


def test_many_shapes_are_forgotten_in_turn() -> None:
    clear_plans()
    for n in range(20_000):
        assert et.negate(et.zeros(n % 10_000)).shape == (n % 10_000,)
    assert plan_counts()["kept"] <= 8192


def test_a_thousand_shapes_have_their_plans() -> None:
    clear_plans()
    tensors = [et.ones((1 + i % 50, 1 + i // 50)) for i in range(1000)]
    for _ in range(3):
        before = plan_counts()["hits"]
        for x in tensors:
            et.exp(x)
    assert plan_counts()["hits"] - before > 950  # kinds that share a place wait longer


def test_a_body_that_looks_at_elements_has_no_plan() -> None:
    clear_plans()
    mask = et.tensor([True, False, True])
    for _ in range(3):  # how many are picked, only the elements of the mask tell
        assert et.index_backward(et.ones(2), (3,), mask).tolist() == [1.0, 0.0, 1.0]
    counts = plan_counts()
    assert (counts["bodies"], counts["kept"], counts["hits"]) == (1, 1, 0)


def test_a_guard_is_asked_again() -> None:
    labels = et.tensor([0, 1])
    for _ in range(3):
        et.cross_entropy(X, labels)
    for _ in range(2):  # same kind of call, another answer of the guard
        with pytest.raises(
            ValueError, match=r"^\[cross_entropy\] targets must be labels from 0 to 2, got 3 at index \(1,\)"
        ):
            et.cross_entropy(X, et.tensor([0, 3]))


def test_one_tensor_twice_is_another_kind_than_two() -> None:
    other = X + 1.0
    for _ in range(2):
        assert (X * X).tolist() == (X.numpy() ** 2).tolist()
        assert (X * other).tolist() == (X.numpy() * other.numpy()).tolist()
        assert (X * X.detach()).tolist() == (X.numpy() ** 2).tolist()


def test_tensors_of_one_array_keep_their_own_histories() -> None:
    x = et.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(3):
        y = et.tensor([1.0, 1.0], requires_grad=True)
        alias = et.ExTensor(x._array, True)
        (x * alias + y).sum().backward()
        assert (x.grad.tolist(), alias.grad.tolist()) == ([2.0, 3.0], [2.0, 3.0])
        x.grad = None


def test_a_number_is_an_operand_and_not_a_constant() -> None:
    for number in (0.5, 2.0, -1.0, float("nan"), 1e300):
        with np.errstate(over="ignore"):
            expected = X.numpy() * np.float32(number)
        np.testing.assert_array_equal((X * number).numpy(), expected)
    y = et.tensor([1.0, 4.0], requires_grad=True)
    for number in (0.5, 3.0):
        et.divide(y, number).sum().backward()
        np.testing.assert_allclose(y.grad.numpy(), 1 / number)
        y.grad = None


def test_the_shape_of_a_masked_selection_is_its_own() -> None:
    x = et.tensor([1.0, -2.0, 3.0], requires_grad=True)
    for mask, shape in ([True, False, True], (2,)), ([False, False, True], (1,)), ([True, True, True], (3,)):
        picked = x[et.tensor(mask)]
        assert picked.shape == picked._node.shape == shape
        picked.sum().backward()
        assert x.grad.tolist() == [float(m) for m in mask]
        x.grad = None


def test_plans_can_be_left_out() -> None:
    code = "import extensor as et; from extensor.graph import plan_counts; x = et.ones(3); [et.exp(x) for _ in range(3)]; print(plan_counts())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "EXTENSOR_PLANS": "0"},
    )
    assert "'hits': 0" in run.stdout
    assert "'kept': 0" in run.stdout


def test_a_field_of_a_tensor_cannot_be_taken_away() -> None:
    x = et.ones(3)
    with pytest.raises(TypeError, match=r"^\[tensor\] _array must be a NumPy array"):
        del x._array
    with pytest.raises(TypeError, match=r"^\[tensor\] _array must be a NumPy array, got list"):
        x._array = [1.0]
    assert (x + 1).tolist() == [2.0, 2.0, 2.0]


def edited(op, body):
    """A context in which an op has another body."""

    class Edited:
        def __enter__(self):
            self.before, op.fn = op.fn, body

        def __exit__(self, *exception):
            op.fn = self.before

    return Edited()


def test_many_results() -> None:
    x = et.arange(100) * 1.0
    for count in (60, 64, 65, 80, 81, 100):
        for _ in range(3):
            assert [part.item() for part in et.split(x[:count], count)] == list(range(count))


def test_tensors_of_one_node_keep_their_own_gradients() -> None:
    x = et.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    for _ in range(3):
        y * et.ExTensor(np.array([5.0, 7.0], np.float32), True, y._node)
    for _ in range(3):
        a, b = (et.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
        (a * b).sum().backward()
        assert (a.grad.tolist(), b.grad.tolist()) == ([3.0, 4.0], [1.0, 2.0])


def test_a_list_of_the_caller_is_not_kept() -> None:
    x = et.tensor(np.ones((1, 2, 3)), requires_grad=True)
    axes = [2, 0, 1]
    for _ in range(3):
        et.permute(x, axes)
    axes[:] = [1, 2, 0]
    for _ in range(3):
        et.permute(x, [2, 0, 1]).sum().backward()
        assert x.grad.shape == x.shape
        x.grad = None


def test_a_number_that_the_body_computes_with_is_no_operand() -> None:
    with edited(et.add, lambda a, b: kernels.add(a, b * 2.0)):
        assert [et.add(et.tensor([1.0]), b).item() for b in (0.5, 0.5, 0.5, 3.0)] == [2.0, 2.0, 2.0, 7.0]


def test_a_kernel_that_raised_is_part_of_the_decision() -> None:
    def guarded_index(x, key):
        try:
            return kernels.index(x, (key, ...))
        except IndexError:
            return kernels.negate(x)

    x, bad, good = et.tensor([1.0, 2.0, 3.0]), et.tensor([9]), et.tensor([0])
    with edited(et.index, guarded_index):
        for _ in range(3):
            assert et.index(x, bad).tolist() == [-1.0, -2.0, -3.0]
        for _ in range(3):
            assert et.index(x, good).tolist() == [1.0]


def test_bodies_that_share_their_code() -> None:
    def times(factor):
        return lambda x, axis=-1: kernels.softmax(kernels.multiply(x, factor), 1)

    for factor in (2.0, 3.0):
        with edited(et.softmax, times(factor)):
            found = [et.softmax(X).tolist() for _ in range(3)]
        assert found == [et.softmax(X * factor).tolist()] * 3


def test_a_class_of_the_user_decides_for_itself() -> None:
    class Loud(et.ExTensor):
        __slots__ = ()

        def detach(self):
            return et.full_like(self, 9.0)

    base, plain, loud = et.zeros(3), et.ones(2), Loud(np.ones(2, np.float32))
    for _ in range(3):
        assert et.index_set(base, slice(0, 2), plain).tolist() == [1.0, 1.0, 0.0]
    for _ in range(3):
        assert et.index_set(base, slice(0, 2), loud).tolist() == [9.0, 9.0, 0.0]


def test_a_class_that_changes_is_no_option() -> None:
    class Wanted:
        dtype = np.dtype(np.float64)

    for _ in range(3):
        assert et.astype(X, Wanted).dtype == et.float64
    Wanted.dtype = np.dtype(np.int32)
    assert et.astype(X, Wanted).dtype == et.int32


def test_a_history_that_is_taken_away() -> None:
    x = et.tensor([1.0], requires_grad=True)
    for _ in range(3):
        x * 2.0
    del x._node
    (x * 2.0).backward()
    assert x.grad.item() == 2.0


def test_what_is_saved_does_not_follow_the_caller() -> None:
    w, b = et.tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0], np.float32)
    index = np.array([1, 1])
    loss = (w * b).sum() + et.concatenate([w, w * b]).sum() + w[index].sum() + et.where(b > 3, w, b).sum()
    b[:], index[:] = 0.0, 0
    loss.backward()
    assert w.grad.tolist() == [3.0 + 1.0 + 3.0, 4.0 + 1.0 + 4.0 + 2.0 + 1.0]


def test_an_op_in_the_place_of_one_that_is_gone_has_its_own_plans() -> None:
    from extensor.graph import differentiable

    found = []
    for body in (et.abs.fn, et.negate.fn, et.exp.fn, et.square.fn) * 5:
        op = differentiable(body)
        found.append([op(X).tolist() for _ in range(3)] == [body(X).tolist()] * 3)
        del op
    assert all(found)


@pytest.mark.parametrize("number", [0, -1, 3, 2**54, 2**55 - 1, 2**55, -(2**55), -(2**55) - 1, 2**62])
def test_whole_numbers_of_any_size_are_kinds_of_their_own(number):
    x = et.tensor([1, 2], dtype=et.int64)
    for other in (number, number ^ 2**56, number ^ 2**62, -number):
        for _ in range(3):
            assert et.add(x, other).tolist() == [1 + other, 2 + other]
