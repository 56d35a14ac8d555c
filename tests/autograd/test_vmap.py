"""vmap: what it means, how it composes, what it refuses. Its rules have tests of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.errors import BatchedError, GraphError

X = et.tensor(np.linspace(-1, 1, 12).reshape(4, 3))
Y = et.tensor(np.cos(np.arange(12.0)).reshape(4, 3))


def _net() -> Any:
    return et.nn.Sequential(et.nn.Linear(3, 5, rng=0), et.nn.Tanh(), et.nn.Linear(5, 2, rng=1)).astype(
        et.float64
    )


def _same(found: et.ExTensor, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), rtol=1e-12, atol=1e-14, strict=True)


# Axes


def test_axes_in_and_out() -> None:
    x, y = X.numpy(), Y.numpy()
    _same(et.vmap(lambda a, b: a * b)(X, Y), x * y)
    _same(et.vmap(lambda a, b: a @ b, in_axes=(0, None))(X, Y[0]), x @ y[0])
    _same(et.vmap(lambda a, b: a @ b, in_axes=(1, -1))(X, Y), (x * y).sum(0))
    _same(et.vmap(lambda a: a * 2, out_axes=1)(X), 2 * x.T)
    _same(et.vmap(lambda a: a[:, None] * a, out_axes=-1)(X), np.einsum("ni,nj->ijn", x, x))


def test_structures() -> None:
    def fn(tree: Any, b: Any, *, c: Any) -> Any:
        return {"sum": tree["p"] + b[0], "pair": (tree["q"], c)}

    found = et.vmap(fn, in_axes=({"p": 0, "q": None}, 1), out_axes={"sum": 1, "pair": (None, 0)})(
        {"p": X, "q": Y[0]}, [et.tensor(Y.numpy().T)], c=Y
    )
    _same(found["sum"], (X.numpy() + Y.numpy()).T)
    _same(found["pair"][0], Y.numpy()[0])
    _same(found["pair"][1], Y.numpy())


def test_what_is_the_same_for_all_is_repeated() -> None:
    found = et.vmap(lambda a: (et.tensor([1.0, 2.0]), 3.0, None))(X)
    assert found[0].tolist() == [[1.0, 2.0]] * 4
    assert found[1].tolist() == [3.0] * 4
    assert found[2] is None


def test_no_examples() -> None:
    empty = et.zeros((0, 3))
    assert et.vmap(lambda a: et.softmax(a) @ et.ones((3, 2)))(empty).shape == (0, 2)
    assert et.vmap(et.grad(lambda a: (a * a).sum()))(empty).shape == (0, 3)
    assert et.vmap(lambda a: et.cdist(a[None], a[None]))(empty).shape == (0, 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: et.vmap(3), "fn must be a function"),
        (lambda: et.vmap(et.sin, in_axes="0"), "in_axes must be ints"),
        (lambda: et.vmap(et.sin, out_axes=1.5), "out_axes must be ints"),
        (lambda: et.vmap(et.sin, in_axes=True), "in_axes must be ints"),
        (lambda: et.vmap(et.sin, in_axes=None)(X), "no argument has an axis of examples"),
        (lambda: et.vmap(et.sin, in_axes=(0, 0))(X), "in_axes has 2 entries for 1 arguments"),
        (lambda: et.vmap(et.sin, in_axes=2)(X), r"args\[0\] has shape \(4, 3\) and no axis 2"),
        (lambda: et.vmap(et.add)(X, 2.0), r"args\[1\] is a number \(2.0\)"),
        (lambda: et.vmap(et.sin)(et.tensor(1.0)), "pass in_axes=None for it"),
        (lambda: et.vmap(et.add)(X, Y[:3]), r"args\[0\] has 4 examples but args\[1\] has 3 along axis 0"),
        (lambda: et.vmap(lambda t: t["a"])({"a": X, "b": Y[:2]}), r"args\[0\]\['a'\] has 4 examples but args\[0\]\['b'\] has 2"),
        (lambda: et.vmap(lambda t: t[0], in_axes=((0, 0, 0),))((X, Y)), "in_axes must be structured like"),
        (lambda: et.vmap(et.sin, in_axes=([0],))(X), r"in_axes has a structure for args\[0\]"),
        (lambda: et.vmap(et.sin, out_axes=None)(X), "out_axes is None for output, which differs"),
        (lambda: et.vmap(et.sin, out_axes=2)(X), "out_axes 2 is out of range for output with 2 axes"),
        (lambda: et.vmap(lambda a: (a, a), out_axes=(0, 0, 0))(X), "out_axes must be structured like"),
        (lambda: et.vmap(et.sin, out_axes=(0,))(X), "out_axes has a structure for output"),
        (lambda: et.vmap(lambda a: "text")(X), "fn must return tensors"),
        (lambda: et.vmap(lambda a: a.sum(2))(X), r"\[sum\] axis 2"),
        (lambda: et.vmap(lambda a: a.reshape(2, 2))(X), r"\[reshape\]"),
        (lambda: et.vmap(lambda a: et.unique_values(a))(et.tensor([[1, 1], [1, 2]])), "results of different shapes"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(
    "look",
    [
        lambda a: a.numpy(), lambda a: a.sum().item(), lambda a: float(a.sum()), lambda a: a.tolist(), lambda a: bool(a.sum() > 0),
        lambda a: a if a.sum() > 0 else -a, lambda a: np.asarray(a), lambda a: a._array, lambda a: a._data, lambda a: int(a[0]),
    ],
)  # fmt: skip
def test_elements_are_not_looked_at(look: Any) -> None:
    with pytest.raises(BatchedError, match=r"\[vmap\] the elements of a tensor"):
        et.vmap(look)(X)


def test_a_tensor_that_was_kept_computes_nothing() -> None:
    kept = []
    et.vmap(lambda a: kept.append(a) or a)(X)
    for use in (
        lambda t: t * 2,
        lambda t: et.linear(t, et.ones((2, 3), et.float64)),
        lambda t: t.numpy(),
        et.sin,
        lambda t: et.sum(t, 0),
    ):
        for _ in range(3):  # a kind of call is decided at its second time
            with pytest.raises(BatchedError, match="kept beyond its call"):
                use(kept[0])


def test_text_of_a_batched_tensor() -> None:
    texts = []
    et.vmap(
        lambda a: texts.append((repr(a), a._repr_html_(), a.shape, a.ndim, a.size, len(a), a.dtype)) or a
    )(X)
    assert texts[0][0] == "tensor(one of 4 examples under vmap, shape=(3,), dtype=float64)"
    assert texts[0][1:] == (f"<pre>{texts[0][0]}</pre>", (3,), 1, 3, 3, np.float64)


# Composition


def test_gradients_of_examples() -> None:
    def loss(w: Any, x: Any) -> Any:
        return et.tanh(w * x).sum() ** 2

    w = et.tensor([0.5, -1.0, 2.0], et.float64)
    found = et.vmap(et.grad(loss), in_axes=(None, 0))(w, X)
    _same(found, np.stack([et.grad(loss)(w, x).numpy() for x in X]))
    both = et.vmap(et.value_and_grad(loss, argnums=(0, 1)), in_axes=(None, 0))(w, X)
    _same(both[0], np.stack([loss(w, x).numpy() for x in X]))
    _same(both[1][0], found.numpy())
    _same(both[1][1], np.stack([et.grad(loss, 1)(w, x).numpy() for x in X]))


def test_higher_derivatives_inside_and_outside() -> None:
    def cubes(x: Any) -> Any:
        return (x**3).sum()

    x = X.numpy()
    _same(et.vmap(et.grad(lambda a: et.grad(cubes)(a).sum()))(X), 6 * x)
    _same(et.vmap(et.hessian(cubes))(X), np.stack([np.diag(6 * row) for row in x]))
    _same(et.grad(lambda t: et.vmap(et.grad(cubes))(t).sum())(X), 6 * x)
    _same(et.grad(lambda t: et.vmap(cubes)(t).sum())(X), 3 * x**2)
    _same(et.vmap(lambda a, v: et.hvp(cubes, a, v))(X, Y), 6 * x * Y.numpy())
    _same(et.hvp(lambda t: et.vmap(cubes)(t).sum(), X, Y), 6 * x * Y.numpy())


def test_forward_mode_and_jacobians() -> None:
    x, y = X.numpy(), Y.numpy()
    diagonal = np.stack([np.diag(np.cos(row)) for row in x])
    for jacobian in (et.jacobian, et.jacrev, et.jacfwd):
        _same(et.vmap(jacobian(et.sin))(X), diagonal)
    _same(et.vmap(lambda a, v: et.jvp(et.sin, (a,), (v,))[1])(X, Y), np.cos(x) * y)
    _same(et.jvp(et.vmap(et.sin), (X,), (Y,))[1], np.cos(x) * y)
    _same(et.jacobian(et.vmap(lambda a: a.sum()))(X), np.einsum("ni,nm->nmi", np.ones((4, 3)), np.eye(4)))


def test_pullbacks_and_directions_that_are_batched() -> None:
    _, pullback = et.vjp(et.sin, X[0])
    _same(et.vmap(lambda v: pullback(v)[0])(et.eye(3, dtype=et.float64)), np.diag(np.cos(X.numpy()[0])))
    _, along = et.linearize(et.sin, X[0])
    _same(et.vmap(along)(et.eye(3, dtype=et.float64)), np.diag(np.cos(X.numpy()[0])))
    assert et.vmap(lambda v: pullback(v)[0])(et.zeros((0, 3), et.float64)).shape == (0, 3)


def test_nested() -> None:
    x, y = X.numpy(), Y.numpy()
    _same(et.vmap(lambda a: et.vmap(lambda b: a @ b)(Y))(X), x @ y.T)
    _same(et.vmap(et.vmap(lambda a, b: a * b), in_axes=(0, 0))(X, Y), x * y)
    twice = et.vmap(et.vmap(et.grad(lambda a, b: (a * b).sum() ** 2), in_axes=(None, 0)), in_axes=(0, None))
    _same(twice(X, Y), 2 * np.einsum("mn,nk->mnk", x @ y.T, y))
    inner = et.vmap(lambda a: et.grad(lambda b: et.vmap(lambda c: (b * c).sum() ** 2)(Y).sum())(a))
    _same(inner(X), 2 * (x @ y.T) @ y)


def test_backward_reaches_what_is_closed_over() -> None:
    w = et.tensor(Y.numpy()[0], requires_grad=True)
    et.vmap(lambda a: (w * a).sum() ** 2)(X).sum().backward()
    expected = 2 * (X.numpy() @ Y.numpy()[0]) @ X.numpy()
    _same(w.grad, expected)
    w.grad = None
    (et.vmap(lambda a: et.grad(lambda b: (w * b).sum() ** 2)(a))(X)).sum().backward()
    derivative = np.zeros(3)  # of sum_n sum_i 2 (w . x_n) w_i
    for row in X.numpy():
        derivative += 2 * row * Y.numpy()[0].sum() + 2 * (Y.numpy()[0] @ row)
    _same(w.grad, derivative)


def test_no_grad_and_detach_hold_under_vmap() -> None:
    def fn(a: Any) -> Any:
        with et.no_grad():
            kept = a * a
        return (kept * a).sum() + (a.detach() * a).sum()

    _same(et.vmap(et.grad(fn))(X), X.numpy() ** 2 + X.numpy())
    _same(et.grad(lambda t: et.vmap(fn)(t).sum())(X), X.numpy() ** 2 + X.numpy())


def test_public_backward_functions() -> None:
    _same(et.vmap(et.multiply_backward)(X, X, Y).grad_a, X.numpy() * Y.numpy())
    weight = et.tensor(Y.numpy()[:2])
    found = et.vmap(lambda g, x: et.linear_backward(g, x[None], weight).grad_weight)(X[:, None, :2], X)
    _same(found, np.einsum("no,ni->noi", X.numpy()[:, :2], X.numpy()))


def test_backward_is_refused_inside() -> None:
    w = et.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(GraphError, match="use grad inside of vmap"):
        et.vmap(lambda a: (w * a).sum().backward())(X)
    with pytest.raises(GraphError, match="cannot become a leaf"):
        et.vmap(lambda a: a.requires_grad_())(X)
    assert w.grad is None


def test_a_users_pair() -> None:
    def cube_backward(grad_output: Any, x: Any) -> Any:
        assert type(x) is et.ExTensor  # one example: its elements are there
        return 3 * grad_output * x**2

    @et.differentiable(backward=cube_backward)
    def cube(x: Any) -> Any:
        return et.tensor(x.numpy() ** 3)

    _same(et.vmap(cube)(X), X.numpy() ** 3)
    _same(et.vmap(et.grad(lambda a: cube(a).sum()))(X), 3 * X.numpy() ** 2)
    _same(et.vmap(et.grad(lambda a: et.grad(lambda b: cube(b).sum())(a).sum()))(X), 6 * X.numpy())


def test_an_error_inside_leaves_nothing_behind() -> None:
    def fail(a: Any) -> Any:
        raise KeyError("x")

    for fn in (et.vmap(fail), et.vmap(et.vmap(fail)), et.vmap(et.grad(fail))):
        with pytest.raises(KeyError):
            fn(X)
    _same(et.sin(X), np.sin(X.numpy()))
    assert not et.graph.levels.running
    assert et.graph.this_thread.observer is None


# Modules and random numbers


def test_gradients_of_a_module_per_example() -> None:
    net, labels = _net(), et.tensor([0, 1, 1, 0])

    def loss(model: Any, x: Any, y: Any) -> Any:
        return et.cross_entropy(model(x), y)

    by_module = et.vmap(et.grad(loss), in_axes=(None, 0, 0))(net, X, labels)
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    by_call = et.vmap(
        et.grad(lambda p, x, y: et.cross_entropy(et.functional_call(net, p, x), y)), in_axes=(None, 0, 0)
    )(parameters, X, labels)
    for name, parameter in net.named_parameters():
        single = np.stack([et.grad(loss)(net, x, y)[name].numpy() for x, y in zip(X, labels)])
        assert single.shape == (4, *parameter.shape)
        _same(by_module[name], single)
        _same(by_call[name], single)


def test_gradients_of_convolutions_per_example() -> None:
    for layer, shape in (
        (et.nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, rng=0), (3, 2, 5, 5)),
        (et.nn.ConvTranspose2d(2, 3, 3, stride=2, rng=0), (3, 2, 4, 4)),
        (et.nn.Conv1d(2, 3, 3, padding="same", rng=0), (3, 2, 6)),
    ):
        layer = layer.astype(et.float64)
        images = et.random.normal(0, shape, dtype=et.float64)

        def loss(model: Any, x: Any) -> Any:
            return et.tanh(model(x[None])).sum()

        found = et.vmap(et.grad(loss), in_axes=(None, 0))(layer, images)
        for name in ("weight", "bias"):
            single = np.stack([et.grad(loss)(layer, x)[name].numpy() for x in images])
            np.testing.assert_allclose(found[name].numpy(), single, rtol=1e-10, atol=1e-12)
        twice = et.vmap(et.grad(lambda m, x: (et.grad(loss)(m, x)["weight"] ** 2).sum()), in_axes=(None, 0))(
            layer, images
        )
        single = np.stack(
            [
                et.grad(lambda m, x: (et.grad(loss)(m, x)["weight"] ** 2).sum())(layer, x)["weight"].numpy()
                for x in images
            ]
        )
        np.testing.assert_allclose(twice["weight"].numpy(), single, rtol=1e-9, atol=1e-11)


def test_an_ensemble_of_modules() -> None:
    nets = [et.nn.Linear(3, 2, rng=i).astype(et.float64) for i in range(3)]
    stacked = {
        name: et.stack([dict(n.named_parameters())[name].detach() for n in nets])
        for name in ("weight", "bias")
    }
    found = et.vmap(lambda p: et.functional_call(nets[0], p, X))(stacked)
    _same(found, np.stack([n(X).numpy() for n in nets]))
    each = et.vmap(lambda p, x: et.functional_call(nets[0], p, x))(stacked, et.stack([X, Y, X]))
    _same(each, np.stack([n(x).numpy() for n, x in zip(nets, (X, Y, X))]))


def test_running_statistics_are_not_kept_per_example() -> None:
    norm = et.nn.BatchNorm1d(3).astype(et.float64)
    with pytest.raises(ValueError, match=r"BatchNorm1d\.running_mean would differ from example to example"):
        et.vmap(norm)(et.stack([X, Y]))
    norm.eval()
    _same(et.vmap(norm)(et.stack([X, Y])), np.stack([norm(X).numpy(), norm(Y).numpy()]))


def test_random_numbers() -> None:
    rng = et.random.generator(0)
    own = et.vmap(lambda a: a + et.random.normal(rng, (3,), dtype=et.float64))(X) - X
    assert len({tuple(row) for row in own.numpy().round(6).tolist()}) == 4
    rng = et.random.generator(0)
    _same(own + X, np.stack([(x + et.random.normal(rng, (3,), dtype=et.float64)).numpy() for x in X]))
    same = et.vmap(lambda a: a * 0 + et.random.normal(5, (3,), dtype=et.float64))(X)
    assert len({tuple(row) for row in same.tolist()}) == 1
    logits = et.tensor([[0.0, 100.0], [100.0, 0.0]])
    assert et.vmap(lambda a: et.random.categorical(rng, a))(logits).tolist() == [1, 0]
    nested = et.vmap(lambda a: et.vmap(lambda b: b * 0 + et.random.uniform(rng, ()))(a))(et.zeros((2, 3)))
    assert len(set(nested.numpy().ravel().tolist())) == 6


def test_dropout() -> None:
    ones = et.ones((4, 100))
    masks = et.vmap(lambda a: et.dropout(a, 0.5, et.random.generator(3)).mask)(ones).numpy()
    assert len({row.tobytes() for row in masks}) == 4
    seeded = et.vmap(lambda a: et.dropout(a, 0.5, 3).mask)(ones).numpy()
    assert len({row.tobytes() for row in seeded}) == 1
    layer = et.nn.Dropout(0.5, rng=0)
    layered = et.vmap(layer)(ones).numpy()
    assert len({row.tobytes() for row in layered}) == 4


# Curvature


def test_gauss_newton_and_fisher() -> None:
    net, labels = _net(), et.tensor([0, 1, 1, 0])
    direction = {name: et.random.normal(3, p.shape, dtype=et.float64) for name, p in net.named_parameters()}
    flat = np.concatenate([direction[name].numpy().ravel() for name in direction])

    def rows(tree: Any) -> np.ndarray:
        return np.concatenate([tree[name].numpy().reshape(tree[name].shape[0], -1) for name in direction], 1)

    jacobian = np.concatenate([rows(et.jacobian(lambda m, x: m(x))(net, x)) for x in X])
    logits = net(X)
    curvature = et.hessian(lambda z: et.cross_entropy(z, labels))(logits.detach()).numpy().reshape(8, 8)
    expected = jacobian.T @ curvature @ jacobian @ flat
    found = et.gnvp(lambda m: m(X), lambda z: et.cross_entropy(z, labels), net, direction)
    np.testing.assert_allclose(
        np.concatenate([found[n].numpy().ravel() for n in direction]), expected, rtol=1e-9
    )

    grads = rows(
        et.vmap(et.grad(lambda m, x, y: -et.cross_entropy(m(x), y)), in_axes=(None, 0, 0))(net, X, labels)
    )
    fisher = grads.T @ (grads @ flat) / 4
    found = et.fvp(lambda m: -et.cross_entropy(m(X), labels, reduction="none"), net, direction)
    np.testing.assert_allclose(
        np.concatenate([found[n].numpy().ravel() for n in direction]), fisher, rtol=1e-9
    )
    with pytest.raises(ValueError, match=r"\[fvp\] log_likelihood must return"):
        et.fvp(lambda w: (w * w).sum(), X[0], X[0])
