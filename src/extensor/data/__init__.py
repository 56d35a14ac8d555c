"""Data: readers for the usual files, datasets, transforms and batches."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._habits import DATA as _DATA
from .._habits import missing_from as _missing_from
from ._files import DamagedFileError
from .arrays import read_arrays, read_npy, read_npz
from .augmentations import ColorJitter, RandomErase, RandomRotate
from .cifar import cifar10, read_cifar
from .collate import collate
from .csv_table import Table, read_csv
from .dataset import Dataset
from .digits import digits
from .idx import mnist, read_idx
from .loader import DataLoader
from .pictures import image_folder
from .sample_random import SampleRandom
from .samplers import WeightedSampler
from .text import Text, Windows
from .transforms import Normalize, RandomCrop, RandomFlip, ToFloat, Transform

__all__ = [
    "ColorJitter", "DamagedFileError", "DataLoader", "Dataset", "Normalize", "RandomCrop", "RandomErase", "RandomFlip", "RandomRotate", "SampleRandom", "Table", "Text", "ToFloat",
    "Transform", "WeightedSampler", "Windows", "cifar10", "collate", "digits", "image_folder", "mnist", "read_arrays", "read_cifar", "read_csv", "read_idx",
    "read_npy", "read_npz",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _DATA)
