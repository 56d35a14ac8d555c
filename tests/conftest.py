"""The same numbers in every run, whichever tests ran before: those of a module's RNG, of the layers, of properties.

EXTENSOR_PROPERTIES=thorough lets the property tests search further, at random.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest
from hypothesis import settings

import extensor as et

settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("EXTENSOR_PROPERTIES", "quick"))


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order(request: pytest.FixtureRequest) -> None:
    seed = zlib.crc32(request.node.nodeid.encode())
    et.seed(seed)
    rng = getattr(getattr(request, "module", None), "RNG", None)
    if isinstance(rng, np.random.Generator):
        rng.bit_generator.state = np.random.Generator(type(rng.bit_generator)(seed)).bit_generator.state
