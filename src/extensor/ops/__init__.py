"""Every operation and its gradient, as pairs of plain functions."""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load as _load
from ..kernels.namespace import provide_for_tensors as _provide_for_tensors
from . import methods as _methods  # noqa: F401  (attaches the operators and methods of ExTensor)
from ._later import FAMILY_OF as _FAMILY_OF
from .arithmetic import *  # noqa: F403
from .broadcasting import *  # noqa: F403
from .casting import *  # noqa: F403
from .comparison import *  # noqa: F403
from .complex_numbers import *  # noqa: F403
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .matrix import *  # noqa: F403
from .reduction import *  # noqa: F403
from .selection import *  # noqa: F403
from .shape import *  # noqa: F403

_provide_for_tensors(lambda: _load(f"{__name__}._namespace").NAMESPACE)

if _TYPE_CHECKING:
    from .activation import *  # noqa: F403
    from .attention import *  # noqa: F403
    from .bitwise import *  # noqa: F403
    from .construction import *  # noqa: F403
    from .conv import *  # noqa: F403
    from .diagonals import *  # noqa: F403
    from .distances import *  # noqa: F403
    from .dropout import *  # noqa: F403
    from .einsum import *  # noqa: F403
    from .embedding import *  # noqa: F403
    from .exponential import *  # noqa: F403
    from .incomplete import *  # noqa: F403
    from .joining import *  # noqa: F403
    from .linear import *  # noqa: F403
    from .loss_classification import *  # noqa: F403
    from .loss_ctc import *  # noqa: F403
    from .loss_likelihood import *  # noqa: F403
    from .loss_margin import *  # noqa: F403
    from .loss_metric import *  # noqa: F403
    from .loss_regression import *  # noqa: F403
    from .normalization import *  # noqa: F403
    from .pooling import *  # noqa: F403
    from .recurrent_gru import *  # noqa: F403
    from .recurrent_lstm import *  # noqa: F403
    from .recurrent_rnn import *  # noqa: F403
    from .resampling import *  # noqa: F403
    from .response_norm import *  # noqa: F403
    from .scan import *  # noqa: F403
    from .scattering import *  # noqa: F403
    from .searching import *  # noqa: F403
    from .shrinking import *  # noqa: F403
    from .softmax import *  # noqa: F403
    from .sorting import *  # noqa: F403
    from .special import *  # noqa: F403
    from .statistics import *  # noqa: F403
    from .trigonometric import *  # noqa: F403
    from .volume_pooling import *  # noqa: F403
    from .volumes import *  # noqa: F403
else:

    class _Operations(_ModuleType):
        """This package: ``ops.linear`` is the function, not the module of the same name that an import would put there."""

        def __setattr__(self, name: str, value: object) -> None:
            is_family = isinstance(value, _ModuleType) and _FAMILY_OF.get(name) == name
            super().__setattr__(name, getattr(value, name) if is_family else value)

    _sys.modules[__name__].__class__ = _Operations

    def __getattr__(name: str) -> object:
        if name not in _FAMILY_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(_load(f"{__name__}.{_FAMILY_OF[name]}"), name)
