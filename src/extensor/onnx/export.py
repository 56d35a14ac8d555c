"""``extensor.onnx.export``: a model or function of ours as a file that other programs run."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import describe
from ..nn import Module
from ..tensor import ExTensor, asarray
from ..version import __version__
from .dims import Changing, Dim, Symbol, merge
from .emit import EXPORTERS, Emitter, Value
from .exporters import DECOMPOSITIONS
from .proto import BUFFER, onnx
from .runtime import largest_difference
from .saving import save
from .trace import Step, Trace, array_key, needed_steps, tensors_in, trace

__all__ = ["DEFAULT_OPSET", "Exported", "export"]

DEFAULT_OPSET = 20
OPSETS = range(17, 24)
_FOLDED = {
    "concatenate",
    "expand_dims",
    "index",
    "reshape",
    "split",
    "squeeze",
}  # of weights alone: the result is stored


class Exported(NamedTuple):
    """What :func:`export` wrote.

    Attributes:
        path: the file.
        opset: the version of the operator set.
        inputs, outputs: their names.
        difference: the largest difference to ONNX Runtime, relative to the largest output; None where it is not installed.
    """

    path: Path
    opset: int
    inputs: list[str]
    outputs: list[str]
    difference: float | None

    def __str__(self) -> str:
        text = (
            f"{self.path}: operator set {self.opset}, {', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        )
        if self.difference is None:
            return f"{text}; install onnxruntime to compare"
        return f"{text}; largest difference to ONNX Runtime {self.difference:.2g}"


def export(
    model_or_fn: Callable[..., Any], path: Any, *example: Any, dynamic_axes: bool | Mapping[Any, Any] = True,
    opset: int | None = None, metadata: Mapping[str, str] | None = None,
) -> Exported:  # fmt: skip
    """Write what a model or function computes, in evaluation mode, to an ONNX file.

    The calls of one run are written down, so loops and branches are exported as they ran. The file is checked by
    ``onnx.checker``; where ``onnxruntime`` is installed the file is run and compared.

    Args:
        model_or_fn: a :class:`extensor.nn.Module`, or a function of tensors.
        path: the file to write. Weights beyond 1 GB go into a file of the same name with ``.data`` at its end.
        example: the inputs of a sample run.
        dynamic_axes: ``True``: the first axis of every input and output is free; ``{input name or position: {axis: name}}``:
            those axes are; ``False``: all are fixed.
        opset: the version of the operator set, 17 to 23; 20 without it.
        metadata: texts to store with the model.

    Raises:
        NotImplementedError: a function that is called has no ONNX operator; the message names it.
        ValueError: something depends on the sizes or values of the inputs that ONNX cannot say.

    Example:
        >>> import extensor as et, extensor.onnx, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = et.onnx.export(et.models.LeNet5(rng=0), pathlib.Path(folder, "lenet.onnx"), et.ones((1, 1, 28, 28)))
        >>> written.opset, written.inputs, written.outputs
        (20, ['x'], ['output'])
    """
    if not callable(model_or_fn):
        raise TypeError(f"[export] model_or_fn must be a module or a function, got {describe(model_or_fn)}")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"[export] path must be a str or a pathlib.Path, got {describe(path)}")
    version = DEFAULT_OPSET if opset is None else opset
    if type(version) is not int:
        raise TypeError(f"[export] opset must be an int, got {describe(opset)}")
    if version not in OPSETS:
        raise ValueError(f"[export] opset must lie between {OPSETS[0]} and {OPSETS[-1]}, got {opset}")
    inputs = [x if isinstance(x, ExTensor) else asarray(x) for x in example]
    names = _input_names(model_or_fn, len(inputs))
    model, result = _written(model_or_fn, inputs, names, dynamic_axes, version, metadata or {})
    target = Path(path)
    save(model, target)
    difference = largest_difference(target, dict(zip(names, inputs)), tensors_in(result))
    outputs = [value.name for value in model.graph.output]
    return Exported(target, version, names, outputs, difference)


def _input_names(function: Any, count: int) -> list[str]:
    """The names of the parameters that the inputs are passed to."""
    forward = function.forward if isinstance(function, Module) else function
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    given = getattr(function, "input_names", None)  # an imported network knows its own
    if isinstance(given, list) and len(given) == count:
        return list(given)
    found = named[:count]
    return found + [f"input_{i}" for i in range(len(found), count)]


# Runs at several sizes


def _symbols(
    names: list[str], inputs: list[ExTensor], dynamic_axes: Any
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Free lengths by name, each with the (input, axis) places it stands at."""
    if dynamic_axes is False:
        return []
    if dynamic_axes is True:
        places = [(i, 0) for i, x in enumerate(inputs) if x.ndim]
        return [("batch", places)] if places else []
    if not isinstance(dynamic_axes, Mapping):
        raise TypeError(f"[export] dynamic_axes must be True, False or a dict, got {describe(dynamic_axes)}")
    found: dict[str, list[tuple[int, int]]] = {}
    for key, axes in dynamic_axes.items():
        position = key if isinstance(key, int) else names.index(key) if key in names else None
        if position is None or not 0 <= position < len(inputs):
            raise ValueError(f"[export] dynamic_axes names the input {key!r}; the inputs are {names}")
        for axis, name in axes.items() if isinstance(axes, Mapping) else [(a, f"{key}_{a}") for a in axes]:
            if not -inputs[position].ndim <= axis < inputs[position].ndim:
                raise ValueError(f"[export] dynamic_axes: input {key!r} has no axis {axis}")
            found.setdefault(str(name), []).append((position, axis % inputs[position].ndim))
    return list(found.items())


def _resized(inputs: list[ExTensor], places: list[tuple[int, int]], size: int) -> list[ExTensor]:
    """The inputs with another length along some axes, and with their values in another order."""
    found = []
    for i, x in enumerate(inputs):
        array = x.numpy()
        for position, axis in places:
            if position == i:
                array = np.take(array, np.arange(size) % max(array.shape[axis], 1), axis)
        found.append(ExTensor(np.ascontiguousarray(array.reshape(-1)[::-1]).reshape(array.shape)))
    return found


def _written(
    function: Any,
    inputs: list[ExTensor],
    names: list[str],
    dynamic_axes: Any,
    opset: int,
    metadata: Mapping[str, str],
) -> tuple[Any, Any]:
    first = trace(function, inputs, names, DECOMPOSITIONS)
    others, symbols = [], []
    for name, places in _symbols(names, inputs, dynamic_axes):
        position, axis = places[0]
        size = inputs[position].shape[axis]
        if any(inputs[p].shape[a] != size for p, a in places):
            raise ValueError(
                f"[export] the free length {name!r} is {size} in one input and another number in a second; "
                "name the free axes with dynamic_axes={input: {axis: name}}"
            )
        other, run = _another_size(function, inputs, names, name, places, size)
        others.append(run)
        symbols.append(Symbol(name, names[position], axis, size, other))
    if not others:  # the same sizes, other values: what is constant must stay so
        others.append(trace(function, _resized(inputs, [], 0), names, DECOMPOSITIONS))
        symbols.append(Symbol("", "", 0, 0, 0))
    runs = [first, *others]
    if any([s.name for s in run.steps] != [s.name for s in first.steps] for run in runs):
        raise ValueError(
            "[export] the functions that are called depend on the inputs; export with dynamic_axes=False, and no branch on values"
        )
    return _Graph(runs, symbols, opset).model(function, metadata), first.result


def _another_size(
    function: Any,
    inputs: list[ExTensor],
    names: list[str],
    name: str,
    places: list[tuple[int, int]],
    size: int,
) -> tuple[int, Trace]:
    """A run with another length, whichever the model accepts."""
    problem: Exception | None = None
    for other in (size + 1, 2 * size, size - 1, size // 2):
        if other > 0 and other != size:
            try:
                return other, trace(function, _resized(inputs, places, other), names, DECOMPOSITIONS)
            except (ValueError, TypeError, IndexError) as error:
                problem = problem or error
    raise ValueError(
        f"[export] the model does not run with another length of {name!r} than {size} ({problem}); pass dynamic_axes=False"
    )


class _Graph:
    """The nodes of a trace."""

    def __init__(self, runs: list[Trace], symbols: list[Symbol], opset: int) -> None:
        self.runs, self.symbols = runs, symbols
        self.first = runs[0]
        self.emitter = Emitter(opset)
        self.values: dict[int, Value] = {}
        self.opset = opset

    def model(self, function: Any, metadata: Mapping[str, str]) -> Any:
        """The whole ModelProto."""
        inputs = []
        for i, name in enumerate(self.first.inputs):
            given = [run.given[i] for run in self.runs]
            shape = merge([g.shape for g in given], self.symbols, f"input {name!r}")
            self._bind(given[0], Value(name, shape, given[0].dtype))
            inputs.append(self._info(name, shape, given[0].dtype))
        needed = needed_steps(self.first)
        for number, steps in enumerate(zip(*(run.steps for run in self.runs))):
            if number in needed:
                self._write(list(steps))
        outputs = []
        results = [tensors_in(run.result) for run in self.runs]
        if not results[0]:
            raise ValueError("[export] the function returns no tensor")
        for i, each in enumerate(zip(*results)):
            name = "output" if len(results[0]) == 1 else f"output_{i}"
            self.emitter.call = ""
            shape = merge([t.shape for t in each], self.symbols, name)
            source = self.emitter.use(self._value(list(each), name))
            self.emitter.nodes.append(onnx.helper.make_node("Identity", [source], [name]))
            outputs.append(self._info(name, shape, each[0].dtype))
        graph = onnx.helper.make_graph(
            _tidied(self.emitter.nodes, {o.name for o in outputs}, {i.name for i in inputs}), type(function).__name__,
            inputs, outputs, [self._stored(name, array) for name, array in self.emitter.initializers.items()],
        )  # fmt: skip
        _drop_unused(graph)
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)], producer_name="extensor",
            producer_version=__version__, ir_version=min(10, onnx.IR_VERSION),
        )  # fmt: skip
        onnx.helper.set_model_props(model, {str(k): str(v) for k, v in metadata.items()})
        return model

    def _info(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        dims: list[Any] = []
        for n in shape:
            if not isinstance(n, Dim):
                dims.append(int(n))
            elif n.symbols is not None and len(n.symbols) == 1 and (n.factor, n.offset) == (1, 0):
                dims.append(n.symbols[0].name)
            else:
                dims.append(None)
        return onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims
        )

    def _stored(self, name: str, array: np.ndarray) -> Any:
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        found = onnx.helper.make_tensor(
            name, kind, array.shape, np.ascontiguousarray(array).tobytes(), raw=True
        )
        found.doc_string = BUFFER if name in self.emitter.buffers else ""
        return found

    def _bind(self, tensor: Any, value: Value) -> None:
        key = array_key(tensor)
        if key is not None:
            self.values[key] = value

    def _write(self, steps: list[Step]) -> None:
        """The nodes of one call."""
        step = steps[0]
        name = step.name
        if name not in EXPORTERS:
            raise NotImplementedError(f"[export] {name} has no ONNX operator here")
        bound = [self._bound(s) for s in steps]
        arguments = {k: self._value([b[k] for b in bound], name) for k in bound[0]}
        outputs = []
        for each in zip(*(s.outputs for s in steps)):
            if isinstance(each[0], ExTensor):
                outputs.append(Value("", merge([o.shape for o in each], self.symbols, name), each[0].dtype))
            else:
                outputs.append(Value("", (), np.float32))
        emitter = self.emitter
        if name in _FOLDED:
            sources = _values_in(list(arguments.values()))
            if sources and all(emitter.stored(v) is not None for v in sources):
                for tensor, value in zip(step.outputs, outputs):
                    value.name = emitter.derived(sources[0].name, tensor.numpy())
                    self._bind(tensor, value)
                return
        emitter.call, emitter.outputs = name, outputs
        written = EXPORTERS[name](emitter, *arguments.values())
        results = list(written) if isinstance(written, (tuple, list)) else [written]
        for tensor, value, result in zip(step.outputs, outputs, results):
            value.name = result
            self._bind(tensor, value)

    def _bound(self, step: Step) -> dict[str, Any]:
        function = getattr(step.function, "fn", step.function)
        found = inspect.signature(function).bind(*step.args, **step.kwargs)
        found.apply_defaults()
        return dict(found.arguments)

    def _value(self, values: list[Any], where: str) -> Any:
        """An argument of all runs as one: tensors of the graph, constants, numbers with free lengths."""
        first = values[0]
        if isinstance(first, (ExTensor, np.ndarray)):
            return self._tensor_value(values, where)
        if isinstance(first, (list, tuple)) and all(len(v) == len(first) for v in values):
            parts = [self._value(list(each), where) for each in zip(*values)]
            return parts if isinstance(first, list) else tuple(parts)
        if isinstance(first, np.generic):
            values = [v.item() for v in values]
        return merge(values, self.symbols, where)

    def _tensor_value(self, values: list[Any], where: str) -> Any:
        first = values[0]
        key = array_key(first)
        if key in self.values:
            return self.values[key]
        known = self.first.known.get(key) if key is not None else None
        arrays = [v.numpy() if isinstance(v, ExTensor) else v for v in values]
        if known is not None and known[0] != "input":
            if known[0] == "buffer":
                self.emitter.buffers.add(known[1])
            value = Value(known[1], arrays[0].shape, arrays[0].dtype)
            self.emitter.initializers[known[1]] = arrays[0]
            self._bind(first, value)
            return value
        if any(a.shape != arrays[0].shape for a in arrays):
            return Changing(arrays, merge([a.shape for a in arrays], self.symbols, where))
        if any(not np.array_equal(a, arrays[0], equal_nan=a.dtype.kind in "fV") for a in arrays):
            raise ValueError(
                f"[export] {where} is given a tensor of shape {arrays[0].shape} that was computed from the inputs outside of "
                "recorded functions (NumPy, item(), float()); compute it with functions of extensor"
            )
        return np.asarray(arrays[0]) if isinstance(first, np.ndarray) else self._constant(first, arrays[0])

    def _constant(self, tensor: Any, array: np.ndarray) -> Value:
        value = Value(self.emitter.constant(array), array.shape, array.dtype)
        self._bind(tensor, value)
        return value


def _values_in(tree: Any) -> list[Value]:
    if isinstance(tree, Value):
        return [tree]
    return [v for part in tree for v in _values_in(part)] if isinstance(tree, (list, tuple)) else []


def _tidied(nodes: list[Any], outputs: set[str], inputs: set[str]) -> list[Any]:
    """Without the Identity of an output whose tensor is used nowhere else: its node computes the output itself."""
    makers = {name: node for node in nodes for name in node.output}
    uses: dict[str, int] = {}
    for node in nodes:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    kept = []
    for node in nodes:
        source = node.input[0] if node.input else ""
        if (
            node.op_type == "Identity"
            and node.output[0] in outputs
            and source in makers
            and uses[source] == 1
        ):
            maker = makers[source]
            maker.output[list(maker.output).index(source)] = node.output[0]
        else:
            kept.append(node)
    return kept


def _drop_unused(graph: Any) -> None:
    """Tensors that no node uses are not stored."""
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
