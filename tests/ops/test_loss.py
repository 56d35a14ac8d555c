"""The losses against SciPy and HIPS autograd over all options, at their edges, and what they refuse."""

from __future__ import annotations

import warnings

import autograd.numpy as anp
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from autograd import grad as hips_grad
from autograd.scipy.special import expit, logsumexp

import extensor as et
from extensor.testing.registry import Case, Draw, kinks, ties
from extensor.testing.samples import loss as samples

INF, NAN = float("inf"), float("nan")
PAIRS = {pair.name: pair for pair in samples.PAIRS}
MIRRORED = ("mean_squared_error", "mean_absolute_error", "smooth_l1", "huber")
GRADIENTS = {"kl_divergence": 2, "triplet_margin": 3, "cosine_embedding": 2, **dict.fromkeys(MIRRORED, 2)}


# The oracles: each loss from its definition, single losses first


def reduce(losses, reduction, count=None):
    if reduction == "none":
        return losses
    total = anp.sum(losses)
    return total / (np.size(losses) if count is None else count) if reduction == "mean" else total


def softplus(x):
    return anp.logaddexp(x, 0.0 * x)


def smooth_l1(d, beta):
    z = anp.abs(d)
    return anp.where(z < beta, d**2 / (2 * beta or 1), z - beta / 2)


def huber(d, delta):
    return delta * smooth_l1(d, delta)


def bce(p, t, weight=None):
    return -(t * anp.log(p) + (1 - t) * anp.log(1 - p)) * (1 if weight is None else weight)


def bce_with_logits(x, t, weight=None, pos_weight=None):
    positive = t * softplus(-x) * (1 if pos_weight is None else pos_weight)
    return (positive + (1 - t) * softplus(x)) * (1 if weight is None else weight)


def focal(x, t, alpha=0.25, gamma=2.0):
    hit = expit(x) * t + (1 - expit(x)) * (1 - t)
    balance = alpha * t + (1 - alpha) * (1 - t) if alpha >= 0 else 1
    return balance * (1 - hit) ** gamma * bce_with_logits(x, t)


def cross_entropy(x, t, axis, label_smoothing, weight, ignore_index=None, reduction="mean"):
    """Row by row: the classes last, everything else flattened."""
    classes = x.shape[axis]
    w = np.ones(classes) if weight is None else weight
    x = anp.moveaxis(x, axis, -1)
    shape = x.shape[:-1]
    x = anp.reshape(x, (-1, classes))
    labels = t.dtype.kind == "i"
    t = t.reshape(-1) if labels else np.moveaxis(t, axis, -1).reshape(-1, classes)
    losses, count = [], 0.0
    for row, target in zip(x, t):
        log_p = row - logsumexp(row)
        if labels and target == ignore_index:
            losses.append(0.0 * row[0])
            continue
        spread = (np.arange(classes) == target) if labels else target
        count += w[target] if labels else 1
        spread = spread * (1 - label_smoothing) + label_smoothing / classes
        losses.append(-anp.sum(w * spread * log_p))
    stacked = anp.reshape(anp.array(losses), shape) if losses else anp.zeros(shape) + anp.sum(x)
    return reduce(stacked, reduction, count)


def kl(p, q, axis):
    return anp.sum(p * anp.log(p / q), axis=axis)


def distance(a, b, p, eps):
    size = anp.abs(a - b + eps)
    return anp.max(size, axis=-1) if p == INF else anp.sum(size**p, axis=-1) ** (1 / p)


def triplet(a, b, c, margin=1.0, p=2.0, eps=1e-6, swap=False):
    far = distance(a, c, p, eps)
    far = anp.minimum(far, distance(b, c, p, eps)) if swap else far
    return anp.maximum(margin + distance(a, b, p, eps) - far, 0)


def cosine(a, b, t, margin=0.0):
    c = anp.sum(a * b, -1) / anp.sqrt((anp.sum(a * a, -1) + 1e-12) * (anp.sum(b * b, -1) + 1e-12))
    return anp.where(t == 1, 1 - c, anp.maximum(c - margin, 0))


def elementwise(single):
    return lambda *args, reduction, **options: reduce(single(*args, **options), reduction)


ORACLES = {
    "mean_squared_error": elementwise(lambda p, t: (p - t) ** 2),
    "mean_absolute_error": elementwise(lambda p, t: anp.abs(p - t)),
    "smooth_l1": elementwise(lambda p, t, beta=1.0: smooth_l1(p - t, beta)),
    "huber": elementwise(lambda p, t, delta=1.0: huber(p - t, delta)),
    "binary_cross_entropy": elementwise(bce),
    "binary_cross_entropy_with_logits": elementwise(bce_with_logits),
    "cross_entropy": cross_entropy,
    "focal": elementwise(focal),
    "hinge": elementwise(lambda p, t: anp.maximum(1 - t * p, 0)),
    "kl_divergence": elementwise(kl),
    "triplet_margin": elementwise(triplet),
    "cosine_embedding": elementwise(cosine),
}


def cases(name, seed=7):
    return list(PAIRS[name].cases(Draw(seed)))


def arguments(case, dtype=np.float64):
    """The tensors and options of a case."""

    def convert(value):
        if not isinstance(value, np.ndarray):
            return value
        return et.asarray(value.astype(dtype) if value.dtype == np.float64 else value)

    return [convert(a) for a in case.args], {k: convert(v) for k, v in case.kwargs.items()}


def backward(name, grad_output, args, options):
    """All gradients of the public backward, that of mirrored targets included."""
    result = getattr(et, f"{name}_backward")(grad_output, *args, **options)
    grads = list(result) if isinstance(result, tuple) else [result]
    return [*grads, -grads[0]] if name in MIRRORED else grads


@pytest.mark.parametrize("name", ORACLES)
def test_values_and_gradients_are_those_of_hips_autograd(name):
    rng = np.random.default_rng(3)
    for case in cases(name):
        args, options = arguments(case)
        value = getattr(et, name)(*args, **options)
        np.testing.assert_allclose(value, ORACLES[name](*case.args, **case.kwargs), rtol=1e-10, atol=1e-13)
        weights = np.asarray(rng.normal(size=value.shape))

        def scalar(*inputs, case=case, weights=weights):
            return anp.sum(ORACLES[name](*inputs, **case.kwargs) * weights)

        for i, ours in enumerate(backward(name, et.asarray(weights), args, options)):
            theirs = hips_grad(scalar, i)(*case.args) if case.args[i].size else case.args[i]
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12, err_msg=f"{case} argument {i}")


@pytest.mark.parametrize("name", ORACLES)
def test_gradients_of_gradients_are_those_of_hips_autograd(name):
    rng = np.random.default_rng(4)
    for case in cases(name):
        args, options = arguments(case)
        if not case.args[0].size:
            continue
        weights = np.asarray(rng.normal(size=getattr(et, name)(*args, **options).shape))
        vectors = [np.asarray(rng.normal(size=case.args[0].shape)) for _ in range(GRADIENTS.get(name, 1))]

        def ours(first, args=args, options=options, weights=weights, vectors=vectors):
            grads = backward(name, et.asarray(weights), [first, *args[1:]], options)
            return sum((g * et.asarray(v)).sum() for g, v in zip(grads, vectors))

        def theirs(first, case=case, weights=weights, vectors=vectors):
            def scalar(*inputs):
                return anp.sum(ORACLES[name](*inputs, **case.kwargs) * weights)

            grads = [hips_grad(scalar, i)(first, *case.args[1:]) for i in range(len(vectors))]
            return sum(anp.sum(g * v) for g, v in zip(grads, vectors))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # HIPS says so where a second derivative is zero everywhere
            expected = hips_grad(theirs)(case.args[0])
        np.testing.assert_allclose(et.grad(ours)(args[0]), expected, rtol=1e-7, atol=1e-9, err_msg=str(case))


@pytest.mark.parametrize("name", ORACLES)
def test_the_recorded_formula_gives_what_the_kernel_gives(name):
    for case in [*cases(name), *(edge.case for edge in PAIRS[name].edges)]:
        args, options = arguments(case)
        g = et.ones_like(getattr(et, name)(*args, **options))
        recorded = backward(name, et.tensor(g, requires_grad=True), args, options)
        for ours, formula in zip(backward(name, g, args, options), recorded):
            np.testing.assert_allclose(formula.detach(), ours, rtol=1e-12, atol=1e-14, err_msg=str(case))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ORACLES)
def test_half_precision_is_the_float32_result_rounded_once(name, dtype):
    for case in cases(name):
        args, options = arguments(case, dtype)
        wide = [a.astype(np.float32) if a.dtype == dtype else a for a in args]
        wide_options = {
            k: v.astype(np.float32) if isinstance(v, et.ExTensor) else v for k, v in options.items()
        }
        narrow, full = getattr(et, name)(*args, **options), getattr(et, name)(*wide, **wide_options)
        assert narrow.dtype == dtype
        np.testing.assert_array_equal(narrow, full.astype(dtype))
        g = et.ones_like(narrow)
        for ours, theirs in zip(
            backward(name, g, args, options), backward(name, g.astype(np.float32), wide, wide_options)
        ):
            assert ours.dtype == dtype
            np.testing.assert_array_equal(ours, theirs.astype(dtype))


# SciPy


def test_scipy_agrees():
    rng = np.random.default_rng(0)
    p, t = rng.normal(size=(2, 40)) * 3
    np.testing.assert_allclose(
        et.huber(et.asarray(p), et.asarray(t), delta=0.7, reduction="none"), scipy.special.huber(0.7, p - t)
    )
    a, b = rng.dirichlet(np.ones(5), size=(2, 3))
    np.testing.assert_allclose(
        et.kl_divergence(et.asarray(a), et.asarray(b), reduction="none"), scipy.special.rel_entr(a, b).sum(-1)
    )
    x, labels = rng.normal(size=(6, 4)) * 100, rng.integers(0, 4, 6)
    np.testing.assert_allclose(
        et.cross_entropy(et.asarray(x), et.asarray(labels), reduction="none"),
        -scipy.special.log_softmax(x, axis=1)[np.arange(6), labels],
    )
    y = rng.integers(0, 2, 40).astype(float)
    np.testing.assert_allclose(
        et.binary_cross_entropy_with_logits(et.asarray(p * 100), et.asarray(y), reduction="none"),
        -scipy.special.log_expit(np.where(y == 1, p, -p) * 100),
    )


# Edges

FLAT = {  # where a power of 0 has no derivative of its own, but the loss is flat
    "focal": kinks({(1000.0, 1.0): 0, (-1000.0, 0.0): 0}, gamma=0.5, reduction="none"),
    "triplet_margin": ties("zeros", Case(*[np.zeros(3)] * 3, eps=0.0, p=1.5)),
}


@pytest.mark.parametrize(
    "name", ["binary_cross_entropy", "binary_cross_entropy_with_logits", "focal", "hinge", *MIRRORED]
)
def test_a_nan_stays_where_it_is_at_every_position(name):
    for length in range(1, 71):
        nan = np.eye(length, dtype=bool)  # row i has its nan at position i
        x = et.asarray(np.where(nan, NAN, 0.25).astype(np.float32))
        t = et.ones((length, length))
        value = getattr(et, name)(x, t, reduction="none")
        np.testing.assert_array_equal(et.isnan(value), nan)
        grad = getattr(et, f"{name}_backward")(t, x, t, reduction="none")
        np.testing.assert_array_equal(et.isnan(grad), nan)


@pytest.mark.parametrize("name", ORACLES)
def test_where_a_gradient_is_finite_so_is_the_second(name):
    for edge in [*PAIRS[name].edges, *FLAT.get(name, ())]:
        args, options = arguments(edge.case)
        g = et.ones_like(getattr(et, name)(*args, **options))
        firsts = backward(name, g, args, options)
        if not all(np.isfinite(np.asarray(x)).all() for x in (*args, *firsts)):
            continue

        def total(first, g=g, args=args, options=options):
            return sum(grad.sum() for grad in backward(name, g, [first, *args[1:]], options))

        assert np.isfinite(np.asarray(et.grad(total)(args[0]))).all(), edge.label


def test_the_logarithms_of_binary_cross_entropy_are_held_at_minus_100():
    p, t = et.tensor([0.0, 1.0, 0.0, 1.0]), et.tensor([1.0, 0.0, 0.0, 1.0])
    assert et.binary_cross_entropy(p, t, reduction="none").tolist() == [100, 100, 0, 0]
    grad = et.binary_cross_entropy_backward(et.ones(4), p, t, reduction="none")
    np.testing.assert_allclose(grad, [-1e12, 1e12, 0, 0], rtol=1e-6)


def test_confident_logits_keep_their_tiny_losses():
    x, t = et.tensor([50.0, -50.0]), et.tensor([1.0, 0.0])
    tiny = np.exp(-50)
    np.testing.assert_allclose(
        et.binary_cross_entropy_with_logits(x, t, reduction="none"), [tiny, tiny], rtol=1e-6
    )
    grad = et.binary_cross_entropy_with_logits_backward(et.ones(2), x, t, reduction="none")
    np.testing.assert_allclose(grad, [-tiny, tiny], rtol=1e-6)
    np.testing.assert_allclose(
        et.cross_entropy(et.tensor([15.0, 0.0]), 0).item(), np.log1p(np.exp(-15)), rtol=1e-6
    )


@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0]])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_cross_entropy_of_ignored_labels_alone(weight, label_smoothing):
    x = et.tensor([[1.0, 2.0, 3.0]] * 2)
    options = {"ignore_index": -100, "weight": weight, "label_smoothing": label_smoothing}
    targets = et.tensor([-100, -100])
    assert np.isnan(et.cross_entropy(x, targets, **options).item())
    assert et.cross_entropy(x, targets, reduction="sum", **options).item() == 0
    assert et.cross_entropy_backward(et.tensor(1.0), x, targets, **options).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_labels_have_any_integer_dtype(dtype):
    x, labels = et.tensor([[0.5, 2.0, 1.0], [0.0, 0.0, 4.0]]), np.array([2, 1])
    expected = et.cross_entropy(x, et.asarray(labels), ignore_index=-1, reduction="none")
    np.testing.assert_array_equal(
        et.cross_entropy(x, et.asarray(labels.astype(dtype)), ignore_index=-1, reduction="none"), expected
    )


def test_the_gradient_of_distributions_does_not_assume_that_they_sum_to_one():
    x, t = et.tensor([1.0, 2.0, 0.5]), et.tensor([0.5, 2.0, 1.5])
    expected = scipy.special.softmax(x.numpy()) * 4 - t.numpy()
    np.testing.assert_allclose(et.cross_entropy_backward(et.tensor(1.0), x, t), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ORACLES)
def test_nothing_at_all_has_the_sum_0_and_no_mean(name):
    empty = et.zeros((0, 3))
    last = {"triplet_margin": [empty], "cosine_embedding": [et.zeros(0)]}.get(name, [])
    assert np.isnan(getattr(et, name)(empty, empty, *last).item())
    assert getattr(et, name)(empty, empty, *last, reduction="sum").item() == 0
    for grad in backward(name, et.tensor(1.0), [empty, empty, *last], {}):
        assert grad.shape == (0, 3)


# Which arguments have gradients


@pytest.mark.parametrize("name", MIRRORED)
def test_targets_of_a_difference_have_the_negative_gradient(name):
    p = et.tensor([1.0, 2.5, -3.0], requires_grad=True)
    t = et.tensor([0.5, 4.0, -3.25], dtype=et.float64, requires_grad=True)
    getattr(et, name)(p, t).backward()
    assert p.grad.dtype == et.float32
    assert t.grad.dtype == et.float64
    np.testing.assert_allclose(t.grad, -p.grad.numpy(), rtol=1e-6)
    assert np.all(t.grad.numpy() != 0)


@pytest.mark.parametrize(
    "name", ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "focal", "hinge"]
)
def test_other_targets_have_none_and_say_so(name):
    p, t = et.tensor([0.5, 0.25]), et.tensor([1.0, 1.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match=rf"^\[{name}\] has no gradient for targets"):
        getattr(et, name)(p, t)


@pytest.mark.parametrize("name", ["kl_divergence", "triplet_margin", "cosine_embedding"])
def test_gradients_that_are_not_needed_are_none(name):
    args, options = arguments(cases(name)[1])
    g = et.ones_like(getattr(et, name)(*args, **options))
    everything = getattr(et, f"{name}_backward")(g, *args, **options)
    for i in range(len(everything)):
        needs = tuple(j == i for j in range(len(everything)))
        only = getattr(et, f"{name}_backward")(g, *args, **options, needs=needs)
        assert [grad is not None for grad in only] == list(needs)
        np.testing.assert_array_equal(only[i], everything[i])


# What they refuse

X, P, T = et.tensor([[0.5, 0.25]]), et.tensor([[0.5, 0.25]]), et.tensor([[1.0, 1.0]])
INTS, WRONG = et.tensor([[1, 1]]), et.ones((2, 1))
TWO = (
    *MIRRORED,
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "focal",
    "hinge",
    "kl_divergence",
)

REFUSED = [
    *((name, (X, WRONG), {}, ValueError, "does not broadcast") for name in TWO),
    *((name, (INTS, T), {}, TypeError, "floating dtype") for name in (*TWO, "cross_entropy")),
    *((name, (X, T), {"reduction": "average"}, ValueError, "reduction") for name in (*TWO, "cross_entropy")),
    *((name, (X, INTS), {}, TypeError, "targets") for name in MIRRORED),
    *((name, (X, "abc"), {}, TypeError, "must be a tensor") for name in TWO),
    ("smooth_l1", (X, T), {"beta": -1}, ValueError, "beta"),
    ("smooth_l1", (X, T), {"beta": NAN}, ValueError, "beta"),
    ("huber", (X, T), {"delta": 0}, ValueError, "delta"),
    ("huber", (X, T), {"delta": "1"}, TypeError, "delta"),
    ("binary_cross_entropy", (X * 3, T), {}, ValueError, r"predictions must lie in \[0, 1\], got 1.5 at index \(0, 0\)"),
    ("binary_cross_entropy", (P, -T), {}, ValueError, r"targets must lie in \[0, 1\]"),
    ("binary_cross_entropy", (P, T), {"weight": et.ones((3, 2))}, ValueError, "weight"),
    ("binary_cross_entropy", (P, T), {"weight": [1, 2]}, TypeError, "weight"),
    ("binary_cross_entropy_with_logits", (X, T), {"pos_weight": et.ones(3)}, ValueError, "pos_weight"),
    ("cross_entropy", (X, [2]), {}, ValueError, r"from 0 to 1, got 2 at index \(0,\)"),
    ("cross_entropy", (X, [-1]), {}, ValueError, "from 0 to 1, got -1"),
    ("cross_entropy", (X, [-100]), {"ignore_index": -1}, ValueError, "from 0 to 1"),
    ("cross_entropy", (X, [0, 1]), {}, ValueError, "without axis 1"),
    ("cross_entropy", (X, INTS), {}, ValueError, "distributions must have a floating dtype"),
    ("cross_entropy", (X, [1.0]), {}, ValueError, "labels must have an integer dtype"),
    ("cross_entropy", (X, [True]), {}, TypeError, "targets"),
    ("cross_entropy", (X, T), {"ignore_index": 0}, ValueError, "ignore_index"),
    ("cross_entropy", (X, [0]), {"ignore_index": 0.5}, TypeError, "ignore_index"),
    ("cross_entropy", (X, [0]), {"axis": 2}, ValueError, "axis 2"),
    ("cross_entropy", (et.tensor(1.0), 0), {}, ValueError, "axis"),
    ("cross_entropy", (X, [0]), {"weight": et.ones(3)}, ValueError, "one number per class"),
    ("cross_entropy", (X, [0]), {"label_smoothing": 1.5}, ValueError, "label_smoothing"),
    ("focal", (X, T * 2), {}, ValueError, "targets"),
    ("focal", (X, T), {"alpha": 1.5}, ValueError, "alpha"),
    ("focal", (X, T), {"gamma": -1}, ValueError, "gamma"),
    ("hinge", (X, T * 0), {}, ValueError, "-1 or 1"),
    ("hinge", (X, T * NAN), {}, ValueError, "-1 or 1"),
    ("kl_divergence", (-P, P), {}, ValueError, "p must not be negative"),
    ("kl_divergence", (P, -P), {}, ValueError, "q must not be negative"),
    ("kl_divergence", (P, P), {"axis": -3}, ValueError, "axis -3"),
    ("triplet_margin", (X, X, WRONG), {}, ValueError, "does not broadcast"),
    ("triplet_margin", (X, X, X), {"margin": 0}, ValueError, "margin"),
    ("triplet_margin", (X, X, X), {"margin": INF}, ValueError, "margin"),
    ("triplet_margin", (X, X, X), {"p": 0}, ValueError, "p must be positive"),
    ("triplet_margin", (X, X, X), {"eps": NAN}, ValueError, "eps"),
    ("triplet_margin", (X, X, X), {"swap": 1}, TypeError, "swap"),
    ("triplet_margin", (et.tensor(1.0),) * 3, {}, ValueError, "at least one axis"),
    ("cosine_embedding", (X, WRONG, [1]), {}, ValueError, "does not broadcast"),
    ("cosine_embedding", (X, X, T), {}, ValueError, "targets has shape"),
    ("cosine_embedding", (X, X, [0]), {}, ValueError, "-1 or 1"),
    ("cosine_embedding", (X, X, [1]), {"margin": NAN}, ValueError, "margin"),
    ("cosine_embedding", (et.tensor(1.0), et.tensor(1.0), 1), {}, ValueError, "at least one axis"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options", "error", "text"), REFUSED)
def test_bad_input_is_refused_by_the_forward_and_the_backward(name, args, options, error, text):
    with pytest.raises(error, match=rf"^\[{name}\] .*{text}"):
        getattr(et, name)(*args, **options)
    with pytest.raises(error, match=rf"^\[{name}_backward\] .*{text}"):
        getattr(et, f"{name}_backward")(et.tensor(1.0), *args, **options)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ORACLES)
def test_grad_output_has_the_shape_of_the_loss(name, reduction):
    args, options = arguments(next(c for c in cases(name) if c.args[0].ndim > 1 and c.args[0].size))
    options["reduction"] = reduction
    shape = getattr(et, name)(*args, **options).shape
    with pytest.raises(ValueError, match=rf"^\[{name}_backward\] grad_output has shape"):
        getattr(et, f"{name}_backward")(et.ones((*shape, 1)), *args, **options)
    with pytest.raises(TypeError, match=rf"^\[{name}_backward\] grad_output"):
        getattr(et, f"{name}_backward")(et.ones(shape, dtype=et.int64), *args, **options)
