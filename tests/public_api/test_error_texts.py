"""A wrong shape, dtype, axis or value raises the promised exception, and its text names the function.

Every public function is called well once, then with each argument spoiled in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from public_functions import public_functions
from sample_calls import OF_FUNCTIONS, OTHERS, WITHOUT_ARGUMENTS, call, pair_call

import extensor as et
from extensor.checks import is_for_complex
from extensor.errors import describe
from extensor.testing.samples import PAIRS

FUNCTIONS = {
    name.removeprefix("extensor."): function
    for name, function in public_functions().items()
    if not name.startswith(
        (
            "extensor.convert.",
            "extensor.data.",
            "extensor.onnx.",
            "extensor.optim.",
            "extensor.report.",
            "extensor.testing.",
            "extensor.train.",
        )
    )
}

EITHER = (TypeError, ValueError)
Spoils = list[tuple[Any, Any]]

# What may not stand in place of a tensor, and in place of an option, by the name of the argument.
NO_TENSOR: Spoils = [
    ("text", TypeError), (object(), TypeError), (np.ones(3, complex), TypeError), ([[1.0], [1.0, 2.0]], ValueError),
]  # fmt: skip
AXIS: Spoils = [(99, ValueError), (-99, ValueError), ("x", TypeError), (0.5, TypeError)]
NUMBER: Spoils = [("x", TypeError), (object(), TypeError)]
NOT_NEGATIVE: Spoils = [*NUMBER, (-1.0, ValueError), (float("nan"), ValueError)]
OPTIONS: dict[str, Spoils] = {
    "axis": AXIS, "axes": [(99, EITHER), ((0, 99), ValueError), ("x", TypeError), (0.5, TypeError)], "axis1": AXIS, "axis2": AXIS, "source": AXIS, "destination": AXIS,
    "keepdims": [("x", TypeError), (2, TypeError)],
    "approximate": [("x", EITHER), (object(), TypeError)],
    "needs": [("x", TypeError), ((True,), EITHER), (7, TypeError)],
    "reduction": [("median", ValueError), (3, EITHER)],
    "dtype": [("nonsense", TypeError), (object(), TypeError), ("datetime64[s]", TypeError)],
    "shape": [("x", TypeError), ((-3,), ValueError), (1.5, TypeError), ((2.5,), TypeError)],
    "eps": NOT_NEGATIVE, "beta": NOT_NEGATIVE, "delta": NOT_NEGATIVE, "std": NOT_NEGATIVE, "lr": NUMBER,
    "label_smoothing": [*NUMBER, (1.5, ValueError), (-0.1, ValueError)],
    "rng": [("x", TypeError), (-1, ValueError), (None, TypeError), (0.5, TypeError)],
    "seed": [("x", TypeError), (-1, ValueError)],
    "n": [("x", TypeError), (-1, ValueError), (0.5, TypeError)],
    "num": [("x", TypeError), (-1, ValueError), (0.5, TypeError)],
    "k": [("x", TypeError), (-1, ValueError), (99, ValueError), (0.5, TypeError)],
    "p": [*NUMBER, (-0.5, ValueError), (1.5, ValueError)],
    "subscripts": [("ij,jk,kl->il", ValueError), ("i?j", ValueError), (3, TypeError)],
    "mode": [("sideways", ValueError), (3, EITHER)],
    "nonlinearity": [("sideways", ValueError), (3, EITHER)],
}  # fmt: skip
SPREAD: dict[str, Spoils] = {  # the arguments behind a star
    "shapes": [(["x"], TypeError), ([object()], TypeError), ([(-3,)], ValueError)],
    "tensors": [([object(), object()], TypeError), (["x"], TypeError)],
    "operands": [([object(), object()], TypeError), ([], ValueError)],
}
# Where an argument of a common name means something else.
SPECIAL: dict[tuple[str, str], Spoils] = {
    ("from_dlpack", "source"): [("x", TypeError), (object(), TypeError)],
    ("pad_backward", "constant_values"): [], ("seed", "n"): [("x", TypeError), (-1, ValueError)],
    **{key: [("x", TypeError), (0.5, TypeError)] for key in [("diag", "k"), ("tril", "k"), ("triu", "k"), ("linalg.matrix_power", "n")]},
    ("linalg.cond", "p"): [("x", ValueError), (object(), TypeError), (7, ValueError)],
    ("cdist", "p"): [*NUMBER, (0.5, ValueError), (float("nan"), ValueError)],
    ("local_response_norm", "beta"): NUMBER, ("local_response_norm", "k"): NUMBER,
    ("softplus", "beta"): NUMBER, ("triplet_margin", "p"): [*NUMBER, (-1.0, ValueError)], ("triplet_margin", "eps"): NUMBER,
}  # fmt: skip
ANY_OPTION: Spoils = [(object(), EITHER)]
# Gradients that look the same whatever the shape of the input was.
ANY_SHAPE = {
    "astype_backward", "conj_backward", "copy_backward", "fft.fftshift_backward", "fft.ifftshift_backward", "imag_backward", "real_backward", "flip_backward", "linalg.matrix_transpose_backward", "tril_backward", "triu_backward", "moveaxis_backward", "negate_backward", "roll_backward",
    "rotary_embedding_backward", "stack_backward", "swapaxes_backward",
}  # fmt: skip


def arguments_of(name: str) -> dict[str, Any]:
    return dict(OTHERS[name]) if name in OTHERS else pair_call(name)


def spoils(name: str, argument: str, value: Any) -> Spoils:
    """What to put in place of an argument, and the exception each must raise."""
    for key in ((name, argument), (name.removesuffix("_backward"), argument)):
        if key in SPECIAL:
            return SPECIAL[key]
    if argument in SPREAD and (argument != "tensors" or name.startswith(("broadcast_arrays", "meshgrid"))):
        return SPREAD[argument]
    if argument == "grad_output" and isinstance(value, et.ExTensor):
        wrong: Spoils = [("text", TypeError), (None, TypeError), (et.zeros(value.shape, et.int64), TypeError)]
        if name not in ANY_SHAPE:
            wrong.append((et.ones((*value.shape, 2), value.dtype), ValueError))
        return wrong
    if argument in OPTIONS and not isinstance(value, et.ExTensor):
        return OPTIONS[argument]
    if isinstance(value, et.ExTensor):
        last = name.rpartition(".")[2]
        return [
            bad
            for bad in NO_TENSOR
            if not (last in ("asarray", "tensor") or is_for_complex(last))
            or not isinstance(bad[0], np.ndarray)
        ]
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], et.ExTensor):
        return [("text", TypeError), (object(), TypeError), ([object(), object()], TypeError)]
    return ANY_OPTION


ROWS = [name for name in FUNCTIONS if name in OTHERS or name.removesuffix("_backward") in PAIRS]


@pytest.mark.parametrize("name", ROWS)
def test_spoiled_arguments(name: str) -> None:
    function = FUNCTIONS[name]
    good = arguments_of(name)
    call(function, good)
    told = {f"[{name.rpartition('.')[2]}]", f"[{function.__name__}]"}
    wrong = []
    for argument, value in good.items():
        for bad, promised in spoils(name, argument, value):
            case = f"{argument}={describe(bad)}"
            try:
                call(function, good | {argument: bad})
            except EITHER as error:
                if not isinstance(error, promised):
                    wrong.append(f"{case} raised {type(error).__name__}: {error}")
                elif not str(error).startswith(tuple(told)):
                    wrong.append(f"{case} said: {error}")
            except Exception as error:
                wrong.append(f"{case} raised {type(error).__name__}: {error}")
            else:
                wrong.append(f"{case} was accepted")
    if wrong:
        pytest.fail(f"{name}\n  " + "\n  ".join(wrong), pytrace=False)


def test_no_function_is_left_out() -> None:
    known = (
        OTHERS.keys()
        | OF_FUNCTIONS
        | WITHOUT_ARGUMENTS
        | PAIRS.keys()
        | {f"{name}_backward" for name in PAIRS}
    )
    assert not [name for name, function in FUNCTIONS.items() if not {name, function.__name__} & known]
