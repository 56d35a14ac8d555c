"""The verifier looks at half precision as autocast uses it."""

from __future__ import annotations

from typing import Any

import pytest

import extensor as et
from extensor.graph import precision as mode
from extensor.testing.verifier import Subject, Verdict, library_subjects, verify

SUBJECTS = {subject.name: subject for subject in library_subjects()}


def verdict(subject: Subject, dtype: str) -> Verdict:
    return next(verify([subject], [dtype]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["linear", "conv2d", "einsum", "lstm_cell", "softmax", "cross_entropy"])
def test_calls_under_autocast_are_verified(name: str, dtype: str) -> None:
    found = verdict(SUBJECTS[name], dtype)
    assert found.passed
    op = SUBJECTS[name].op
    before, op.autocasts = op.autocasts, None
    try:
        assert verdict(SUBJECTS[name], dtype).cases < found.cases
    finally:
        op.autocasts = before


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_wrong_casts_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: et.ExTensor, dtype: Any) -> et.ExTensor:
        return x.astype(dtype) * 1.5

    monkeypatch.setattr(mode, "_cast", wrong)
    found = verdict(SUBJECTS[name], "bfloat16")
    assert not found.passed
    assert all("under autocast" in failure.case for failure in found.failures)


def test_gradients_in_a_wrong_dtype_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(x: et.ExTensor, dtype: Any) -> et.ExTensor:
        return x.detach().astype(dtype)

    monkeypatch.setattr(mode, "_cast", cut)
    assert not verdict(SUBJECTS["matmul"], "bfloat16").passed
