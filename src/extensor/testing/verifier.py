"""The verifier: walks the rows of the registry and holds every public backward to what the mathematics says.

Each case is checked in float64 against central differences, and in each narrower dtype against the float64
gradient of the same (rounded) inputs; every dtype a second time with inputs that are not contiguous, and half types once more as
the call is made under autocast. Large cases are
checked in the narrower dtypes alone. Upstream gradients are random. At the edges (kinks, ties) the gradients must be those the registry states, and an
elementwise function must give the same ones at every position of a vector.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from .. import ops
from ..dtypes import FLOATING, HALF, bfloat16, float16, float32, float64
from ..graph import Op, run_bodies
from ..tensor import ExTensor
from .calls import Call, floating_arrays, floating_outputs, strided
from .complex_values import narrowed, real_dtype, widened
from .numerical import central_differences, compare, random_gradient
from .registry import Case, Draw, Edge, Pair
from .samples import PAIRS
from .second_order import second_derivatives
from .snippets import snippet
from .tolerances import TOLERANCES
from .under_autocast import gradients_under_autocast

__all__ = ["DTYPES", "Failure", "Subject", "Verdict", "library_subjects", "verify"]

DTYPES: dict[str, np.dtype[Any]] = {d.name: d for d in (float64, float32, float16, bfloat16)}
_NUMERICAL = "central differences give"
_LONGEST = 10_000  # numbers that a snippet writes out
_LENGTH = 37  # of the vectors that carry edges at every position: several registers and an odd tail


@dataclass(frozen=True)
class Subject:
    """A pair to verify: the op, how to draw its inputs, and where it comes from."""

    op: Op
    pair: Pair
    module: str = "extensor"

    @property
    def name(self) -> str:
        """The name people call it by."""
        return self.pair.name

    @property
    def family(self) -> str:
        """The module it is defined in, without the packages around it."""
        return self.op.__module__.rpartition(".")[2]


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong, and how to see it again.

    Attributes:
        function: the forward function.
        dtype: the dtype of the inputs.
        case: the call, in short.
        message: what is wrong.
        argument, index, analytic, expected: the worst element of a wrong gradient, where there is one.
        snippet: Python that reproduces it.
        size: the number of input elements; small ones are shown first.
    """

    function: str
    dtype: str
    case: str
    message: str
    argument: str | None = None
    index: tuple[int, ...] | None = None
    analytic: float | None = None
    expected: float | None = None
    snippet: str = ""
    size: int = 0


@dataclass
class Verdict:
    """What came of one pair.

    Attributes:
        name: the forward function.
        family: the module it belongs to.
        cases: how many calls of the backward were compared.
        worst: the worst relative error for each dtype.
        failures: what is wrong, the smallest inputs first.
    """

    name: str
    family: str
    cases: int = 0
    worst: dict[str, float] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong, and something was compared at all."""
        return not self.failures and self.cases > 0


def find_op(name: str) -> Op:
    """The differentiable function of a public name inside the package: ``relu``, ``linalg.inv``."""
    home, _, last = name.rpartition(".")
    op: Op = getattr(import_module(f"extensor.{home}") if home else ops, last)
    return op


def library_subjects() -> list[Subject]:
    """Every pair of ExTensor, in the order of the registry, each family together."""
    subjects = [Subject(find_op(pair.name), pair) for pair in PAIRS.values()]
    families = list(dict.fromkeys(subject.family for subject in subjects))
    return sorted(subjects, key=lambda subject: families.index(subject.family))


def verify(
    subjects: Iterable[Subject] | None = None,
    dtypes: Sequence[str] = ("float64", "float32", "float16"),
    seed: int = 0,
    order: int = 1,
) -> Iterator[Verdict]:
    """Verify pairs one after the other.

    Args:
        subjects: what to verify; None is all of ExTensor (:func:`library_subjects`).
        dtypes: names of floating dtypes. The float64 gradient is what the others are compared with.
        seed: of the sample inputs and upstream gradients. A pair's draws do not depend on the others.
        order: 2 differentiates the backward functions themselves, in float64, instead of the forwards.

    Example:
        >>> from extensor.testing import verify
        >>> verdict = next(verify())
        >>> verdict.name, verdict.passed
        ('add', True)
    """
    for subject in library_subjects() if subjects is None else subjects:
        yield _Examination(subject, [DTYPES[name] for name in dtypes], seed).run(order)


class _Examination:
    """Everything that is asked of one pair."""

    def __init__(self, subject: Subject, dtypes: Sequence[np.dtype[Any]], seed: int) -> None:
        self.subject = subject
        self.dtypes = dtypes
        seeds = [seed, zlib.crc32(subject.name.encode())]
        self.draw = Draw(seeds)
        self.rng = np.random.default_rng([*seeds, 1])
        self.verdict = Verdict(subject.name, subject.family, worst={d.name: 0.0 for d in dtypes})

    def run(self, order: int) -> Verdict:
        try:
            self.subject.op.rule  # noqa: B018  the backward exists and asks for what there is
        except (NotImplementedError, TypeError) as error:
            self._fail("", Case(), str(error))
            return self.verdict
        if order == 2:
            for case in self.subject.pair.cases(self.draw):
                self._protected(case, lambda case=case: self._second(case))
            return self.verdict
        for case in self.subject.pair.cases(self.draw):
            self._protected(case, lambda case=case: self._case(case))
        for case in self.subject.pair.large(self.draw):
            self._protected(case, lambda case=case: self._case(case, large=True))
        for edge in self.subject.pair.edges:
            self._protected(edge.case, lambda edge=edge: self._edge(edge))
        for edges in _alike(self.subject.pair.edges):
            self._protected(edges[0].case, lambda edges=edges: self._every_position(edges))
        self.verdict.failures.sort(key=lambda failure: failure.size)
        return self.verdict

    def _protected(self, case: Case, check: Any) -> None:
        """A pair that raises has failed; the others are still to be verified."""
        try:
            check()
        except Exception as error:
            self._fail("", case, f"raises {type(error).__name__}: {error}")

    # Away from the edges: is it the derivative?

    def _case(self, case: Case, large: bool = False) -> None:
        arrays = [np.array(array, order="C") for array in floating_arrays(case)]
        call = Call(self.subject.op, case, arrays)
        values = call.values()
        if not all(np.isfinite(value).all() for value in values):
            self._fail("float64", case, "the forward gives inf or nan here: the sample is outside its domain")
            return
        grads = [random_gradient(self.rng, value.shape, value.dtype.kind) for value in values]
        for dtype in self.dtypes:
            if large and dtype == float64:
                continue
            rounded = [narrowed(array, dtype) for array in arrays]
            weights = [narrowed(grad, dtype) for grad in grads]
            if dtype == float64:
                expected, source = self._numerical(case, arrays, grads), _NUMERICAL
            else:
                expected, source = self._in_float64(case, rounded, weights), "the float64 result is"
            for layout in (False, True):
                laid_out = [strided(array) for array in rounded] if layout else rounded
                self._compare(case, laid_out, weights, expected, source, layout)
            if (
                dtype in HALF
                and self.subject.op.autocasts
                and arrays
                and all(a.dtype == dtype for a in rounded)
            ):
                self._under_autocast(case, rounded, weights, expected)

    def _under_autocast(
        self, case: Case, arrays: list[np.ndarray], grads: list[np.ndarray], expected: Sequence[Any]
    ) -> None:
        """The same gradients where the call is made under autocast, each in the dtype of its input."""
        dtype = arrays[0].dtype
        call, gradients = gradients_under_autocast(self.subject.op, case, arrays, grads)
        self.verdict.cases += 1
        for name, tensor, gradient, right in zip(call.names, call.inputs, gradients, expected):
            if not isinstance(tensor, ExTensor) or tensor.dtype not in FLOATING or right is None:
                continue
            problem = _misfit(name, tensor, gradient)
            if problem is None and gradient is not None:
                closeness = compare(gradient.numpy(), right, TOLERANCES[dtype])
                self.verdict.worst[dtype.name] = max(self.verdict.worst[dtype.name], closeness.worst)
                if not closeness.passed:
                    problem = (
                        f"grad_{name} is {closeness.actual:.10g} at {list(closeness.element or ())} but the float64 result is "
                        f"{closeness.expected:.10g}"
                    )
            if problem is not None:
                size = sum(array.size for array in arrays)
                self._fail(dtype.name, f"{case!r}, under autocast", problem, argument=name, size=size)

    def _numerical(
        self, case: Case, arrays: list[np.ndarray], grads: list[np.ndarray]
    ) -> list[np.ndarray | None]:
        call = Call(self.subject.op, case, arrays)

        def at(position: int) -> np.ndarray:
            def value(array: np.ndarray) -> list[np.ndarray]:
                return Call(
                    self.subject.op, case, [*arrays[:position], array, *arrays[position + 1 :]]
                ).values()

            return central_differences(value, arrays[position], grads)

        return [None if position is None else at(position) for position in call.positions]

    def _in_float64(
        self, case: Case, arrays: list[np.ndarray], grads: list[np.ndarray]
    ) -> list[np.ndarray | None]:
        call = Call(self.subject.op, case, [widened(array) for array in arrays])
        gradients = call.gradients(call.forward(), [widened(grad) for grad in grads])
        return [None if grad is None else grad.numpy() for grad in gradients]

    def _compare(
        self,
        case: Case,
        arrays: list[np.ndarray],
        grads: list[np.ndarray],
        expected: Sequence[Any],
        source: str,
        non_contiguous: bool = False,
    ) -> None:
        """Run the backward on ``arrays`` and hold each gradient against ``expected``."""
        call = Call(self.subject.op, case, arrays)
        before = [array.copy() for array in arrays]
        output = call.forward()
        gradients = call.gradients(output, grads)
        self.verdict.cases += 1
        dtype = real_dtype(arrays[0].dtype) if arrays else np.dtype(float64)

        def fail(message: str, **where: Any) -> None:
            numerical = where.get("argument") if source == _NUMERICAL else None
            size = sum(array.size for array in arrays)
            text = ""
            if size <= _LONGEST:
                text = snippet(call, output, grads, self.subject.module, non_contiguous, numerical)
            shown = f"{case!r}{', not contiguous' if non_contiguous else ''}"
            self._fail(dtype.name, shown, message, snippet=text, size=size, **where)

        for name, array, copy in zip(call.names, arrays, before):
            if array.tobytes() != copy.tobytes():
                fail(f"{name} was changed by the call; functions must be pure")
        repeated = _bits(call, grads)
        with run_bodies():
            if _bits(call, grads) != repeated:
                fail("a repeated call gives other bits than the body of its function")
        if len(gradients) != len(call.inputs):
            fail(
                f"the backward returns {len(gradients)} gradients for {len(call.inputs)} inputs: {call.names}"
            )
            return
        asked = {parameter.name for parameter in call.op.rule.parameters}
        for name, tensor, gradient, right in zip(call.names, call.inputs, gradients, expected):
            if not isinstance(tensor, ExTensor) or tensor.dtype not in FLOATING:
                if tensor is None and gradient is not None and name in asked:
                    fail(f"the gradient of {name}, which is absent, must be None")
                continue
            if problem := _misfit(name, tensor, gradient):
                fail(problem, argument=name)
                continue
            closeness = compare(gradient.numpy(), right, TOLERANCES[dtype])
            self.verdict.worst[dtype.name] = max(self.verdict.worst.get(dtype.name, 0.0), closeness.worst)
            if not closeness.passed:
                where = f"grad_{name}{list(closeness.element)}" if closeness.element else f"grad_{name}"
                fail(
                    f"{where} is {closeness.actual:.10g} but {source} {closeness.expected:.10g} "
                    f"(relative error {closeness.worst:.2g}, allowed {closeness.tolerance.limit:g})",
                    argument=name,
                    index=closeness.element,
                    analytic=closeness.actual,
                    expected=closeness.expected,
                )

    def _second(self, case: Case) -> None:
        """The derivatives of the backward itself, as the recorder finds them."""
        arrays = [np.array(array, order="C") for array in floating_arrays(case)]
        call = Call(self.subject.op, case, arrays)
        grads = [random_gradient(self.rng, value.shape, value.dtype.kind) for value in call.values()]
        self.verdict.cases += 1
        for name, analytic, numerical in second_derivatives(self.subject.op, case, arrays, grads, self.rng):
            closeness = compare(analytic, numerical, TOLERANCES[float64])
            self.verdict.worst["float64"] = max(self.verdict.worst["float64"], closeness.worst)
            if not closeness.passed:
                where = f"{name}{list(closeness.element)}" if closeness.element else name
                self._fail(
                    "float64",
                    case,
                    f"the derivative of the backward with respect to {where} is {closeness.actual:.10g} "
                    f"but central differences give {closeness.expected:.10g} "
                    f"(relative error {closeness.worst:.2g}, allowed {closeness.tolerance.limit:g})",
                    argument=name,
                    index=closeness.element,
                    analytic=closeness.actual,
                    expected=closeness.expected,
                    snippet=snippet(call, call.forward(), grads, self.subject.module),
                    size=sum(array.size for array in arrays),
                )

    # At the edges: is it what we promised?

    def _edge(self, edge: Edge) -> None:
        arrays = [np.array(array, order="C") for array in floating_arrays(edge.case)]
        for dtype in self.dtypes:
            rounded = [narrowed(array, dtype) for array in arrays]
            grads = _ones(Call(self.subject.op, edge.case, rounded).forward())
            if edge.expect is not None:
                expected: Sequence[Any] = [None if v is None else widened(np.asarray(v)) for v in edge.expect]
                if _representable([*arrays, *expected], dtype):
                    self._compare(
                        edge.case, rounded, grads, expected, f"at the edge {edge.label!r} it must be"
                    )
            elif (
                dtype == float32
            ):  # the guards of half precision are wider, so there is nothing to compare with
                expected = self._in_float64(edge.case, rounded, grads)
                self._compare(edge.case, rounded, grads, expected, f"at the edge {edge.label!r} float64 has")

    def _every_position(self, edges: Sequence[Edge]) -> None:
        """One vector in which the points of all edges take turns, turned until each has been everywhere."""
        points = [floating_arrays(edge.case) for edge in edges]
        for dtype in self.dtypes:
            single = [self._at_point(edge.case, dtype) for edge in edges]
            for turn in range(len(edges)):
                order = [(i + turn) % len(edges) for i in range(_LENGTH)]
                columns = [np.stack([points[k][i] for k in order]) for i in range(len(points[0]))]
                case = _with_arrays(edges[0].case, columns)
                arrays = [narrowed(column, dtype) for column in columns]
                output = Call(self.subject.op, case, arrays).forward()
                if not isinstance(output, ExTensor) or output.shape != (_LENGTH,):
                    return
                expected = [
                    None if single[0][i] is None else np.stack([single[k][i] for k in order])
                    for i in range(len(single[0]))
                ]
                self._compare(case, arrays, _ones(output), expected, "the same point alone has")

    def _at_point(self, case: Case, dtype: np.dtype[Any]) -> list[Any]:
        call = Call(self.subject.op, case, [narrowed(array, dtype) for array in floating_arrays(case)])
        output = call.forward()
        return [None if grad is None else grad.numpy() for grad in call.gradients(output, _ones(output))]

    def _fail(self, dtype: str, case: Case | str, message: str, **details: Any) -> None:
        self.verdict.failures.append(Failure(self.subject.name, dtype, str(case), message, **details))


def _bits(call: Call, grads: list[np.ndarray]) -> list[Any]:
    """What the forward and the backward give, to the last bit."""
    output = call.forward()
    found = [*floating_outputs(output), *call.gradients(output, grads)]
    return [(v.shape, v.dtype, v.numpy().tobytes()) if isinstance(v, ExTensor) else None for v in found]


def _misfit(name: str, tensor: ExTensor, gradient: Any) -> str | None:
    """What is wrong with the kind, shape or dtype of a gradient."""
    if not isinstance(gradient, ExTensor):
        return f"grad_{name} must be a tensor, got {type(gradient).__name__}"
    if gradient.shape != tensor.shape:
        return (
            f"grad_{name} has shape {gradient.shape} but {name} has shape {tensor.shape}; "
            "a broadcast input needs sum_to_shape"
        )
    if gradient.dtype != tensor.dtype:
        return f"grad_{name} has dtype {gradient.dtype} but {name} has dtype {tensor.dtype}"
    return None


def _representable(values: Iterable[Any], dtype: np.dtype[Any]) -> bool:
    """Whether the numbers of an edge are still themselves in ``dtype``: 1e-6 is not, in float16."""
    with np.errstate(over="ignore"):
        return all(
            np.allclose(widened(narrowed(value, dtype)), value, rtol=2**-7, atol=0, equal_nan=True)
            for value in values
            if value is not None
        )


def _ones(output: Any) -> list[np.ndarray]:
    return [np.ones(value.shape, value.dtype) for value in floating_outputs(output)]


def _alike(edges: Sequence[Edge]) -> list[list[Edge]]:
    """The elementwise edges, gathered by the options of their calls."""
    groups: dict[str, list[Edge]] = {}
    for edge in edges:
        if edge.elementwise:
            groups.setdefault(repr(edge.case.kwargs), []).append(edge)
    return list(groups.values())


def _with_arrays(case: Case, arrays: Sequence[np.ndarray]) -> Case:
    """The call with other arrays in the places of its floating inputs, which are all positional."""
    return Case(*arrays, *case.args[len(arrays) :], **case.kwargs)
