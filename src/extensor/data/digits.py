"""The handwritten digits that come with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .arrays import read_npz
from .dataset import Dataset
from .transforms import ToFloat

__all__ = ["digits"]


def digits() -> Dataset:
    """1,797 handwritten digits: images (1, 8, 8) with pixels from 0 to 1, and their labels 0 to 9, int64.

    They are the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998, UCI Machine Learning
    Repository, CC BY 4.0); nothing is downloaded.

    Example:
        >>> import extensor as et
        >>> digits = et.data.digits()
        >>> image, label = digits[0]
        >>> len(digits), image.shape, label.item()
        (1797, (1, 8, 8), 0)
    """
    arrays = read_npz(Path(__file__).with_name("digits.npz"))
    names = [str(n) for n in range(10)]
    return Dataset(arrays["images"][:, None], arrays["labels"].astype(np.int64), [ToFloat(16)], names)
