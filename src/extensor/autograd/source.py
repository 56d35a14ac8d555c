"""The backward pass as readable code: the forward line by line, then the public backward functions in order."""

from __future__ import annotations

import ast
import functools
import inspect
import keyword
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import FLOATING
from ..errors import describe
from ..graph import Branch, Node, Op, is_our_file, observe, walking
from ..tensor import ExTensor
from .engine import Walk, backpropagate, backward_name
from .inputs import Sources, transforming
from .literals import literal
from .trees import kind_of

__all__ = ["backward_source"]

_MOST_LITERAL_ELEMENTS = 64


def backward_source(fn: Callable[..., Any], *args: Any) -> str:
    """Plain Python for the gradient of ``fn`` at ``args``: ``def backward(*args, grad_output=None)`` as text.

    The text calls public functions only: the forward line by line with shapes as comments, then the ``_backward`` calls in
    order. Executed, it returns a tuple with the gradient of each argument, the same bits as :func:`extensor.grad`.
    Variables carry the names they have in ``fn``.

    Args:
        fn: a function of tensors that returns a tensor. Tensors it uses must come in through ``args`` (small constants
            are written out); loops and branches are written as they ran.
        args: the arguments to run it with: tensors, nested dicts, lists and tuples of them, or a module, whose
            gradient is a dict of its parameters' gradients. Labels, indices and other whole numbers have the gradient
            None; a Python number or string is written into the text, which then refuses another one.

    Example:
        >>> import extensor as et
        >>> def loss(x, w):
        ...     h = et.tanh(x * w)
        ...     return h.sum()
        >>> print(et.backward_source(loss, et.ones(3), et.ones(3)))
        from extensor import multiply, multiply_backward, ones_like, sum, sum_backward, tanh, tanh_backward
        <BLANKLINE>
        <BLANKLINE>
        def backward(x, w, grad_output=None):
            multiply_1 = multiply(x, w)  # (3,)
            h = tanh(multiply_1)  # (3,)
            output = sum(h)  # ()
        <BLANKLINE>
            if grad_output is None:
                grad_output = ones_like(output)
            grad_h = sum_backward(grad_output, h.shape)  # (3,)
            grad_multiply_1 = tanh_backward(grad_h, h)  # (3,)
            grad_x, grad_w = multiply_backward(grad_multiply_1, x, w)  # (3,), (3,)
            return grad_x, grad_w
        <BLANKLINE>
    """
    if not callable(fn):
        raise TypeError(f"[backward_source] fn must be a function, got {describe(fn)}")
    sources = Sources("backward_source", args)
    parameters = _parameter_names(fn, len(args))
    writer = _Writer(fn, parameters)
    for name, given, tree in zip(parameters, args, sources.trees):
        writer.name_arguments(name, given, tree)
    with transforming(), observe(writer.call):
        output = fn(*sources.trees)
    if not isinstance(output, ExTensor):
        raise TypeError(f"[backward_source] fn must return a tensor, got {describe(output)}")
    if id(output) not in writer.names:
        raise ValueError("[backward_source] fn does not compute its result from its arguments")
    writer.finish_forward()
    start = ExTensor(np.ones(output.shape, output.dtype))
    writer.grad_names[id(start)] = "grad_output"
    with walking(functools.partial(_WritingWalk, writer)):
        found = backpropagate([output], [start], sources.nodes, retain_graph=True)
    gradients = iter(writer.gradient_or_zeros(g, t) for g, t in zip(found, sources.tensors))
    returns = [_structure(tree, gradients) for tree in sources.values]
    return writer.text(writer.names[id(output)], returns)


def _parameter_names(fn: Callable[..., Any], count: int) -> list[str]:
    names: list[str] = []
    try:
        for p in inspect.signature(fn).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names.extend(f"{p.name}_{i}" for i in range(count - len(names)))
    except (TypeError, ValueError):
        pass
    names += [f"x{i}" for i in range(len(names), count)]
    return names[:count]


def _structure(tree: Any, gradients: Iterator[str]) -> str:
    """The expression that puts gradients in the place of the tensors of an argument."""
    if isinstance(tree, ExTensor):
        return next(gradients) if tree.dtype in FLOATING else "None"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{k!r}: {_structure(v, gradients)}" for k, v in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        inner = ", ".join(_structure(v, gradients) for v in tree)
        return f"[{inner}]" if isinstance(tree, list) else f"({inner},)"
    return "None" if isinstance(tree, (int, np.integer, np.bool_)) else repr(tree)


class _Step:
    """One call of the forward."""

    def __init__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, place: _Place | None
    ) -> None:
        self.op = op
        self.args = args
        self.kwargs = kwargs
        self.outputs: list[Any] = [result] if isinstance(result, ExTensor) else list(result)
        self.several = not isinstance(result, ExTensor)
        self.fields: tuple[str, ...] = getattr(result, "_fields", ())
        self.place = place
        self.variables: list[str] = []


class _Writer:
    """Collects the calls of the forward, names their results, and writes the lines."""

    def __init__(self, fn: Callable[..., Any], parameters: list[str]) -> None:
        self.code: CodeType | None = getattr(inspect.unwrap(fn), "__code__", None)
        self.parameters = parameters
        self.steps: list[_Step] = []
        self.names: dict[int, str] = {}  # of tensors
        self.array_names: dict[int, str] = {}  # of their memory: x.detach() is written as x
        self.node_names: dict[int, str] = {}  # of nodes and branches: the variable of their output
        self.node_steps: dict[int, _Step] = {}
        self.grad_names: dict[int, str] = {}  # of gradients
        self.kept: list[Any] = []  # keeps the ids above valid
        self.used = {*parameters, "grad_output", "backward"}
        self.functions: set[str] = set()
        self.prologue: list[str] = []  # arguments made ready
        self.forward: list[tuple[list[str], str]] = []
        self.backward: list[str] = []

    def name_arguments(self, name: str, given: Any, tree: Any) -> None:
        """Expressions for the tensors inside an argument: ``params["w"]``.

        ``given`` is the argument as the caller has it, ``tree`` as the function sees it.
        """
        kind = kind_of(given)
        if kind is not None:
            state = self._fresh(f"{_identifier(name)}_state", None)
            self.prologue.append(f"{state} = {name}.state_dict()")
            for key, value in {**kind.constants(tree), **kind.tensors(tree)}.items():
                self._name(value, f"{state}[{key!r}]")
        elif isinstance(tree, ExTensor):
            if not isinstance(given, ExTensor) or given.requires_grad:
                made = name if name.isidentifier() else self._fresh(_identifier(name), None)
                call = "{}.detach()" if isinstance(given, ExTensor) else self._function("asarray") + "({})"
                self.prologue.append(f"{made} = {call.format(name)}")
                name = made
            self._name(tree, name)
        elif isinstance(tree, dict):
            for key, value in tree.items():
                self.name_arguments(f"{name}[{key!r}]", given[key], value)
        elif isinstance(tree, (list, tuple)):
            for i, value in enumerate(tree):
                self.name_arguments(f"{name}[{i}]", given[i], value)
        elif tree is None or isinstance(tree, (int, np.integer, np.bool_, str)):
            literal = self.expression(tree)
            message = f"this backward was written for {name} = {literal}"
            test = "is" if tree is None or isinstance(tree, bool) else "=="
            self.prologue.append(f"if not {name} {test} {literal}:")
            self.prologue.append(f"    raise ValueError({message!r})")

    def _name(self, tensor: ExTensor, name: str) -> None:
        self.kept.append(tensor)
        self.names[id(tensor)] = name
        self.array_names.setdefault(id(tensor._array), name)
        if tensor._node is not None:
            self.node_names[id(tensor._node)] = name

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The observer: run the call, remember it."""
        with observe(None):
            result = op(*args, **kwargs)
        self.kept.append((args, kwargs, result))
        step = _Step(op, args, kwargs, result, _place())
        self.steps.append(step)
        for output in step.outputs:
            if isinstance(output, ExTensor):
                self.names.setdefault(id(output), "")
                node = output._node
                if node is not None:
                    self.node_steps[id(node.node if type(node) is Branch else node)] = step
        return result

    def finish_forward(self) -> None:
        """Name every result and write the forward's lines."""
        for i, step in enumerate(self.steps):
            after = self.steps[i + 1] if i + 1 < len(self.steps) else None
            for k, output in enumerate(step.outputs):
                name = self._fresh(
                    _assigned_name(step, after, self.code) or f"{step.op.__name__}_1",
                    k if step.several else None,
                )
                step.variables.append(name)
                if isinstance(output, ExTensor) and not self.names.get(id(output)):
                    self._name(output, name)
            arguments = [
                *map(self.expression, step.args),
                *(f"{k}={self.expression(v)}" for k, v in step.kwargs.items()),
            ]
            call = f"{self._function(step.op.__name__)}({', '.join(arguments)})"
            shapes = ", ".join(str(getattr(o, "shape", "")) for o in step.outputs)
            left = ", ".join(step.variables) + ("," if step.several and len(step.variables) == 1 else "")
            self.forward.append((step.variables, f"{left} = {call}  # {shapes}"))

    def _fresh(self, wanted: str, part: int | None) -> str:
        if part is not None:
            wanted = f"{wanted}_{part}"
        name, count = wanted, 1
        while name in self.used or keyword.iskeyword(name):
            count += 1
            name = f"{re.sub('_[0-9]+$', '', wanted)}_{count}"
        self.used.add(name)
        return name

    def _function(self, name: str) -> str:
        self.functions.add(name)
        return name

    def expression(self, value: Any) -> str:
        """A value as it stands in the text: a variable, or a literal."""
        if isinstance(value, ExTensor):
            name = self.names.get(id(value)) or self.array_names.get(id(value._array))
            return name or self._literal(value.numpy())
        if isinstance(value, np.ndarray):
            return self._literal(value)
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.expression, value))
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, np.random.Generator):
            raise ValueError(
                "[backward_source] fn draws from a random generator, which cannot be written down; "
                "call model.eval(), or pass a seed"
            )
        return literal(value)

    def _literal(self, array: np.ndarray) -> str:
        if array.size > _MOST_LITERAL_ELEMENTS:
            raise ValueError(
                f"[backward_source] fn uses a tensor of shape {array.shape} that is not one of its arguments; pass it in args"
            )
        numbers = re.sub(r"\b(nan|inf)\b", r'float("\1")', repr(array.tolist()))
        return f'{self._function("tensor")}({numbers}, dtype="{array.dtype.name}")'

    # The backward

    def call_backward(
        self, node: Node, grad: Any, needs: tuple[bool, ...] | None, edges: Any, grads: list[Any]
    ) -> None:
        """Write the line of one backward call and name the gradients it returns."""
        for edge in (node, *(e for e in edges if e is not None)):
            self._check_known(edge)
        step = self.node_steps[id(node)]
        rule = node.op.rule
        bound = rule.bind(step.args, step.kwargs)
        arguments = [self._incoming(grad, step)]
        for p in rule.parameters:
            text = self._saved(step, p, bound)
            if not p.keyword:
                arguments.append(text)
            elif bound.get(p.name, rule.defaults.get(p.name)) is not rule.defaults.get(p.name):
                arguments.append(f"{p.name}={text}")
        if needs is not None and rule.takes_needs:
            arguments.append(f"needs={needs!r}")
        lefts, shapes = [], []
        for edge, g in zip(edges, grads):
            if edge is None or g is None:
                lefts.append("_")
                continue
            name = self._fresh(f"grad_{_identifier(self.node_names[id(edge)])}", None)
            lefts.append(name)
            shapes.append(str(g.shape))
            self.kept.append(g)
            self.grad_names[id(g)] = name
        mirror = lefts.pop() if rule.mirrored is not None else "_"  # minus the first gradient
        if mirror != "_" and lefts[0] == "_":
            lefts[0] = self._fresh(f"grad_{step.variables[0]}_first", None)
        name = self._function(backward_name(node))
        several = rule.each or len(lefts) > 1
        left = ", ".join(lefts) + ("," if several and len(lefts) == 1 else "")
        self.backward.append(f"{left} = {name}({', '.join(arguments)})  # {', '.join(shapes[: len(lefts)])}")
        if mirror != "_":
            self.backward.append(f"{mirror} = -{lefts[0]}")

    def _check_known(self, edge: Any) -> None:
        node = edge.node if type(edge) is Branch else edge
        if id(node) not in self.node_steps and id(edge) not in self.node_names:
            raise ValueError(
                f"[backward_source] the gradient of {node.op.__name__} is no call of a public function; "
                "write the function down without checkpoints and backward hooks"
            )

    def _incoming(self, grad: Any, step: _Step) -> str:
        if isinstance(grad, ExTensor):
            return self.grad_names[id(grad)]
        parts = [
            "None"
            if g is None
            else self.grad_names.get(id(g)) or f"{self._function('zeros_like')}({variable})"
            for g, variable in zip(grad, step.variables)
        ]
        return f"[{', '.join(parts)}]"

    def _saved(self, step: _Step, p: Any, bound: dict[str, Any]) -> str:
        if p.kept == "output":
            return step.variables[0]
        if p.name not in bound:  # a field of the result
            return step.variables[step.fields.index(p.name)]
        value = bound[p.name]
        if p.kept in ("shape", "dtype"):
            attribute = p.kept
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(f'{self.expression(v)}.{attribute}' for v in value)}]"
            return f"{self.expression(value)}.{attribute}" if isinstance(value, ExTensor) else "()"
        if p.variadic:
            return ", ".join(map(self.expression, value))
        return self.expression(value)

    def add(self, a: ExTensor, b: ExTensor, total: ExTensor) -> None:
        """Two gradients of one variable meet."""
        name, other = self.grad_names[id(a)], self.grad_names[id(b)]
        self.backward.append(f"{name} = {name} + {other}")
        self._name_gradient(total, name)

    def cast(self, grad: ExTensor, dtype: Any, result: ExTensor) -> None:
        """A gradient takes the dtype of its input."""
        name = self.grad_names[id(grad)]
        self.backward.append(f'{name} = {self._function("astype")}({name}, "{np.dtype(dtype).name}")')
        self._name_gradient(result, name)

    def _name_gradient(self, grad: ExTensor, name: str) -> None:
        self.kept.append(grad)
        self.grad_names[id(grad)] = name

    def gradient_or_zeros(self, grad: ExTensor | None, argument: ExTensor) -> str:
        """The variable of an argument's gradient; zeros where the output does not depend on it."""
        if grad is None:
            return f"{self._function('zeros_like')}({self.names[id(argument)]})"
        return self.grad_names[id(grad)]

    def text(self, output: str, returns: list[str]) -> str:
        """The whole module; lines of the forward that nothing needs are left out."""
        self._function("ones_like")
        needed = set(re.findall(r"\w+", " ".join([*self.backward, output, *returns])))
        forward = []
        for variables, line in reversed(self.forward):
            if needed.intersection(variables):
                forward.append(line)
                needed.update(re.findall(r"\w+", line.split("  # ")[0]))
        backward = [
            "if grad_output is None:", f"    grad_output = ones_like({output})", *self.backward,
            f"return {', '.join(returns)}" + ("," if len(returns) == 1 else ""),
        ]  # fmt: skip
        lines = [*self.prologue, *reversed(forward), "", *backward]
        body = "\n".join(f"    {line}".rstrip() for line in lines)
        functions = sorted(f for f in self.functions if re.search(rf"\b{f}\(", body))
        imports = f"from extensor import {', '.join(functions)}"
        if len(imports) > 100:
            wrapped = textwrap.fill(", ".join(functions), 96, initial_indent="    ", subsequent_indent="    ")
            imports = f"from extensor import (\n{wrapped},\n)"
        return f"{imports}\n\n\ndef backward({', '.join(self.parameters)}, grad_output=None):\n{body}\n"


class _WritingWalk(Walk):
    """A backward pass that is written down."""

    def __init__(self, writer: _Writer, *options: Any) -> None:
        super().__init__(*options)
        self.writer = writer

    def gradients(self, node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
        # Each an object of its own, with a name of its own: add_backward may return one tensor for both operands.
        grads = [None if g is None else g.detach() for g in super().gradients(node, grad, needs)]
        edges = node.edges if needs is None else [e if need else None for e, need in zip(node.edges, needs)]
        self.writer.call_backward(node, grad, needs, edges, grads)
        return grads

    def plus(self, a: ExTensor, b: ExTensor) -> ExTensor:
        total = super().plus(a, b)
        self.writer.add(a, b, total)
        return total

    def cast(self, grad: ExTensor, dtype: Any) -> ExTensor:
        result = super().cast(grad, dtype)
        self.writer.cast(grad, dtype, result)
        return result


def _identifier(expression: str) -> str:
    """``params['w1']`` as part of a name: ``params_w1``."""
    return re.sub(r"\W+", "_", expression).strip("_")


class _Place(NamedTuple):
    """Where the user's code called an op."""

    file: str
    line: int
    instruction: int
    code: CodeType
    callee: Any  # the frame of ours that the user's code called: of a module, or of the op itself


def _place() -> _Place | None:
    frame, callee = sys._getframe(2), None
    while frame is not None and is_our_file(frame.f_code.co_filename):
        frame, callee = frame.f_back, frame  # type: ignore[assignment]
    if frame is None:
        return None
    return _Place(frame.f_code.co_filename, frame.f_lineno, frame.f_lasti, frame.f_code, callee)


def _assigned_name(step: _Step, after: _Step | None, code: CodeType | None) -> str | None:
    """The variable the user's statement assigns, if this call is the last of the statement.

    A return statement assigns ``output`` in the function itself, whose ``code`` is given, and nothing in those it calls.
    """
    here, there = step.place, None if after is None else after.place
    if (
        here is None or here.code.co_name == "<lambda>"
    ):  # a lambda stands inside a statement of another function
        return None
    statement = _statement_at(here.file, here.line)
    if statement is None or (statement[0] == "output" and here.code is not code):
        return None
    if there is not None and there.code is here.code:
        again = (
            there.instruction <= here.instruction and there.callee is not here.callee
        )  # a loop has come round
        if _statement_at(there.file, there.line) == statement and not again:
            return None
    return statement[0]


def _statement_at(file: str, line: int) -> tuple[str, int] | None:
    """Name and first line of the assignment (or return: "output") that covers a line."""
    return _statements(file).get(line)


@functools.lru_cache(maxsize=32)
def _statements(file: str) -> dict[int, tuple[str, int]]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[int, tuple[str, int]] = {}
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Return):
            name = "output"
        if name is not None:
            assert isinstance(node, ast.stmt)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line] = (name, node.lineno)
    return found
