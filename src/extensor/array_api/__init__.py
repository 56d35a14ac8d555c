"""The array API standard (2025.12) over :class:`~extensor.ExTensor`, with its extensions ``linalg`` and ``fft``.

Gradients flow through every function that has one. What the functions return takes ``x[i] = v``, with value semantics: the array
has new elements, and nothing else sees them; what is recorded refuses. Tensors themselves never change.

``//`` of these arrays is ``floor(x1 / x2)`` where an operand is infinite, as the standard prefers; that of tensors is Python's and
NumPy's, which pairs with ``%``.

The standard's own test suite passes but for one case, when it draws it: it takes ``can_cast(complex64, float64)`` to be asked for
where its table has None, since NumPy says that None equals the dtype float64.

Example:
    >>> import extensor as et
    >>> xp = et.array_api
    >>> (et.tensor(float("inf")) // 2).item(), (xp.asarray(xp.inf) // 2).item()
    (nan, inf)
    >>> x = et.tensor([3.0, 4.0])
    >>> xp = x.__array_namespace__()
    >>> xp.linalg.vector_norm(x).item()
    5.0
"""

import math as _math

from ..dtypes import (
    bool_ as bool,
)
from ..dtypes import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from . import fft, linalg
from ._arrays import *  # noqa: F403
from ._arrays import __all__ as _arrays
from ._assignable import of_arrays as _of_arrays
from ._creation import *  # noqa: F403
from ._creation import __all__ as _creation
from ._elementwise import *  # noqa: F403
from ._elementwise import __all__ as _elementwise
from ._info import Info as _Info

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None

__array_api_version__ = "2025.12"


def __array_namespace_info__() -> _Info:
    """What this namespace offers."""
    return _Info()


_WITHOUT_ARRAYS = {"finfo", "iinfo", "isdtype", "result_type", "can_cast"}
for _name in (*_arrays, *_creation, *_elementwise):
    if _name not in _WITHOUT_ARRAYS and callable(globals()[_name]):
        globals()[_name] = _of_arrays(globals()[_name])
for _module in (linalg, fft):
    for _name in _module.__all__:
        setattr(_module, _name, _of_arrays(getattr(_module, _name)))


__all__ = [  # noqa: PLE0604
    "__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi", "fft", "linalg", "bool", "complex64",
    "complex128", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", *_arrays,
    *_creation, *_elementwise,
]  # fmt: skip
