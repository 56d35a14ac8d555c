"""The operators and methods of a tensor: all there, as declared for type checkers, and the same as the functions."""

from __future__ import annotations

import ast
import inspect
import operator

import numpy as np
import pytest

import extensor as et
from extensor._habits import _Missing
from extensor.graph import Op
from extensor.ops import methods

OPERATORS = [
    (operator.add, "add"), (operator.sub, "subtract"), (operator.mul, "multiply"), (operator.truediv, "divide"),
    (operator.floordiv, "floor_divide"), (operator.mod, "modulo"), (operator.pow, "power"),
    (operator.eq, "equal"), (operator.ne, "not_equal"), (operator.lt, "less"), (operator.le, "less_equal"),
    (operator.gt, "greater"), (operator.ge, "greater_equal"),
]  # fmt: skip
A, B = np.array([[1.5, -2.0, 3.0]]), np.array([[2.0], [0.5]])


@pytest.mark.parametrize(("symbol", "name"), OPERATORS)
def test_binary_operators(symbol, name):
    function, a, b = getattr(et, name), et.asarray(A), et.asarray(B)
    for ours, theirs in (
        (symbol(a, b), function(a, b)),
        (symbol(a, 2), function(a, 2)),
        (symbol(2.5, a), function(2.5, a)),
        (symbol(A, b), function(A, b)),
        (symbol(a, B), function(a, B)),
        (symbol(a, [1.0, 2.0, 3.0]), function(a, [1.0, 2.0, 3.0])),
    ):
        assert type(ours) is et.ExTensor
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_matrix_product():
    a, b = et.asarray(A), et.asarray(np.ones((3, 2)))
    np.testing.assert_array_equal((a @ b).numpy(), A @ np.ones((3, 2)))
    np.testing.assert_array_equal((np.ones((2, 1)) @ a).numpy(), np.ones((2, 1)) @ A)
    with pytest.raises(ValueError, match=r"^\[matmul\]"):
        a @ 2.0


def test_unary_operators():
    a = et.asarray(A)
    assert (-a).tolist() == (-A).tolist()
    assert abs(a).tolist() == abs(A).tolist()
    assert +a is a
    assert (~(a > 0)).tolist() == [[False, True, False]]
    with pytest.raises(TypeError, match=r"^\[__invert__\]"):
        ~a


def test_masks():
    a, b = et.tensor([True, True, False]), et.tensor([True, False, False])
    assert (a & b).tolist() == [True, False, False]
    assert (a | b).tolist() == [True, True, False]
    assert (a ^ b).tolist() == [False, True, False]
    assert (True & b).tolist() == (b & np.True_).tolist() == [True, False, False]
    with pytest.raises(TypeError, match=r"^\[__and__\]"):
        a & et.tensor([1, 0, 1])
    with pytest.raises(TypeError, match=r"^\[__or__\]"):
        1 | a


class Foreign:
    """Answers every operator itself."""

    def answer(self, other):
        return "mine"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = answer
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __rand__ = answer
    __hash__ = None


@pytest.mark.parametrize("symbol", [*(symbol for symbol, _ in OPERATORS), operator.matmul, operator.and_])
def test_unknown_types_are_left_to_the_other_operand(symbol):
    assert symbol(et.tensor([1.0]), Foreign()) == "mine"


def test_unknown_types_without_an_answer():
    for value in ("a", None, object()):
        with pytest.raises(TypeError):
            et.tensor([1.0]) + value
        assert (et.tensor([1.0]) == value) is False
        assert (et.tensor([1.0]) != value) is True


def test_operators_are_recorded():
    x = et.tensor([2.0, 3.0], requires_grad=True)
    (1.0 / x - 2.0 * x + x**2).sum().backward()
    np.testing.assert_allclose(
        x.grad.numpy(), -1 / np.array([4.0, 9.0]) - 2 + 2 * np.array([2.0, 3.0]), rtol=1e-6
    )


def test_spread_and_packed_arguments():
    x = et.arange(24).reshape(2, 3, 4)
    for made, shape in (
        (x.reshape(4, 6), (4, 6)),
        (x.reshape((4, -1)), (4, 6)),
        (x.reshape([24]), (24,)),
        (x.reshape(-1), (24,)),
        (et.tensor([[1.0]]).reshape(), ()),
        (x.permute(2, 0, 1), (4, 2, 3)),
        (x.permute((2, 0, 1)), (4, 2, 3)),
        (x.transpose(), (4, 3, 2)),
        (x.transpose(1, 0, 2), (3, 2, 4)),
        (x.transpose((1, 0, 2)), (3, 2, 4)),
        (x.T, (4, 3, 2)),
        (x.mT, (2, 4, 3)),
    ):
        assert made.shape == shape
    np.testing.assert_array_equal(x.permute(2, 0, 1).numpy(), x.numpy().transpose(2, 0, 1))
    np.testing.assert_array_equal(x.mT.numpy(), x.numpy().swapaxes(1, 2))
    with pytest.raises(ValueError, match=r"^\[mT\]"):
        et.tensor([1.0]).mT


def declared() -> dict[str, ast.FunctionDef]:
    """The methods declared for type checkers in the class."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(et.ExTensor)))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ExTensor")
    block = next(node for node in found.body if isinstance(node, ast.If))
    return {node.name: node for node in block.body if isinstance(node, ast.FunctionDef)}


def attached() -> set[str]:
    """What is attached to the class from outside: everything its own source does not define."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(et.ExTensor)))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ExTensor")
    own = {node.name for node in found.body if isinstance(node, ast.FunctionDef)}
    own |= {t.id for node in found.body if isinstance(node, ast.Assign) for t in node.targets}
    python = {
        "__module__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__slots__",
        "__annotations__",
        "__static_attributes__",
        "__firstlineno__",
    }
    habits = {name for name, value in vars(et.ExTensor).items() if isinstance(value, _Missing)}
    refused = {"__setitem__", "__dir__", *habits}  # type checkers shall refuse them as well
    return set(vars(et.ExTensor)) - own - python - refused


def test_every_method_is_declared_with_its_signature():
    declarations = declared()
    assert set(declarations) == attached()
    for name, node in declarations.items():
        value = vars(et.ExTensor)[name]
        if isinstance(value, property):
            continue
        value = getattr(et, name) if name in methods._MIRRORED_LATER.split() else value
        signature = inspect.signature(value.fn if isinstance(value, Op) else value)
        parameters = list(signature.parameters.values())[1:]
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            assert arguments.vararg is not None, name
            continue
        given = (*arguments.defaults, *arguments.kw_defaults)
        defaults = [ast.literal_eval(d) for d in given if d is not None]
        assert defaults == [p.default for p in parameters if p.default is not p.empty], name
        if not name.startswith("__"):
            assert names == [p.name for p in parameters], name


@pytest.mark.parametrize("name", [n for names in methods._MIRRORED.values() for n in names.split()])
def test_a_mirrored_method_is_the_function(name):
    assert vars(et.ExTensor)[name] is getattr(et, name)
