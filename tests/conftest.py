"""Property tests draw the same examples on every run; EXTENSOR_PROPERTIES=thorough searches further, at random."""

import os

from hypothesis import settings

settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("EXTENSOR_PROPERTIES", "quick"))
