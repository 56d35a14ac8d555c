"""Inputs of different dtypes: each gradient comes back in the dtype of its own input, and is right."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from extensor.autograd.engine import backpropagate
from extensor.tensor import ExTensor
from extensor.testing.calls import Call, floating_arrays, floating_outputs
from extensor.testing.numerical import compare, random_gradient
from extensor.testing.registry import Draw
from extensor.testing.tolerances import TOLERANCES
from extensor.testing.verifier import Subject, library_subjects

SUBJECTS = [
    subject
    for subject in library_subjects()
    if any(len(floating_arrays(case)) > 1 for case in subject.pair.cases(Draw(0)))
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_gradients_have_the_dtypes_of_their_inputs(subject: Subject) -> None:
    rng = np.random.default_rng(zlib.crc32(subject.name.encode()))
    for number, case in enumerate(subject.pair.cases(Draw(0))):
        arrays = [
            np.array(a, (np.float32, np.float64)[(i + number) % 2])
            for i, a in enumerate(floating_arrays(case))
        ]
        if len(arrays) < 2:
            continue
        plain = Call(subject.op, case, [a.astype(np.float64) for a in arrays])
        output = plain.forward()
        grads = [random_gradient(rng, value.shape) for value in floating_outputs(output)]
        expected = plain.gradients(output, grads)

        wanted = frozenset(p for p in plain.positions if p is not None)
        call = Call(subject.op, case, arrays, requires_grad=wanted)
        outputs = floating_outputs(call.op(*call.args, **call.kwargs))
        upstream = [ExTensor(np.asarray(grad, out.dtype)) for grad, out in zip(grads, outputs)]
        inputs = [tensor for tensor, p in zip(call.inputs, call.positions) if p is not None]
        right = [grad for grad, p in zip(expected, call.positions) if p is not None]
        for tensor, found, grad in zip(inputs, backpropagate(outputs, upstream, inputs), right):
            assert found is not None
            assert (found.shape, found.dtype) == (tensor.shape, tensor.dtype)
            assert compare(found.numpy(), grad.numpy(), TOLERANCES[np.dtype(np.float32)]).passed
