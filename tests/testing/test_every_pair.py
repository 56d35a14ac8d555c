"""What ``extensor verify`` says of each pair, in every dtype and to second order."""

from __future__ import annotations

import pytest

from extensor.testing.verifier import DTYPES, Subject, library_subjects, verify

EVERY_PAIR = pytest.mark.parametrize("subject", library_subjects(), ids=lambda subject: subject.name)


@EVERY_PAIR
def test_gradients(subject: Subject) -> None:
    verdict = next(verify([subject], tuple(DTYPES)))
    assert verdict.passed, verdict.failures[:2]


@EVERY_PAIR
def test_second_derivatives(subject: Subject) -> None:
    verdict = next(verify([subject], ("float64",), order=2))
    assert verdict.passed, verdict.failures[:2]
