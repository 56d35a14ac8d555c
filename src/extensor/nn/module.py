"""The base of all layers: it finds parameters by looking at its own attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._habits import MODULE, teach
from ..autograd.batching.batched import Batched
from ..autograd.scopes import path_of, scopes
from ..dtypes import FLOATING, as_dtype
from ..errors import describe
from ..graph import bump_structure, current_recorder
from ..ops._generators import note_replaced
from ..tensor import ExTensor, tensor
from .hooks import Handle, Hooks
from .parameter import Parameter
from .summary import Summary, summarise
from .view import module_html

__all__ = ["Module"]

M = TypeVar("M", bound="Module")


class IncompatibleKeys(NamedTuple):
    """Where :meth:`Module.load_state_dict` found a state and a module to differ in their names."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """A layer or a model. Subclasses define ``forward``; calling the module runs it.

    Attributes that are parameters, modules, or lists and dicts of them belong to the module. Tensors registered with
    :meth:`register_buffer` (running statistics) are saved with it but not trained. A tensor assigned to an attribute that
    is a parameter becomes its value: ``layer.weight = et.init.xavier_uniform((3, 2), rng=0)``.

    Example:
        >>> import extensor as et
        >>> from extensor import nn
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         self.hidden = nn.Linear(2, 8, rng=0)
        ...         self.out = nn.Linear(8, 1, rng=1)
        ...     def forward(self, x):
        ...         return self.out(self.hidden(x).tanh())
        >>> net = Net()
        >>> net(et.ones((3, 2))).shape, [name for name, _ in net.named_parameters()]
        ((3, 1), ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias'])
    """

    training: bool = True
    _buffer_names: tuple[str, ...] = ()
    _hooks: Hooks | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        running, profile = scopes.running, scopes.profile
        running.append(self)
        start = 0 if profile is None else perf_counter_ns()
        try:
            if self._hooks is None:
                return self.forward(*args, **kwargs)
            return self._hooks.call(self, args, kwargs)
        except (ValueError, TypeError, NotImplementedError) as error:
            _name_path(error, running)
            raise
        finally:
            if profile is not None:
                profile.add_module(start)
            running.pop()

    def __setattr__(self, name: str, value: Any) -> None:
        before = vars(self).get(name)
        if isinstance(before, Parameter) and not isinstance(value, Parameter):
            self._set_value(name, before, value)
            return
        recorder = current_recorder()
        if type(value) is ExTensor and type(before) is ExTensor:
            if recorder is None:  # a buffer that moves on, many times in each step
                if name in self._buffer_names:
                    note_replaced(self, name)
                object.__setattr__(self, name, value)
                return
        else:
            bump_structure()
        if recorder is not None:
            recorder.note_attribute(self, name, value)
        if name in self._buffer_names:
            note_replaced(self, name)
            value = _as_buffer(type(self).__name__, name, value)
            if isinstance(value, Batched) and not isinstance(before, Batched):
                raise ValueError(
                    f"[vmap] {type(self).__name__}.{name} would differ from example to example; use eval(), or hand "
                    "batched buffers to functional_call"
                )
        if isinstance(before, (Parameter, Module)) and value is not before:
            self._let_go(name, before)
        object.__setattr__(self, name, value)
        if isinstance(value, Parameter):
            value._left = None

    def __delattr__(self, name: str) -> None:
        before = vars(self).get(name)
        bump_structure()
        if isinstance(before, (Parameter, Module)):
            self._let_go(name, before)
        object.__delattr__(self, name)

    def _set_value(self, name: str, parameter: Parameter, value: Any) -> None:
        """A tensor that is assigned where a parameter stands becomes its value."""
        place = f"[{type(self).__name__}] {name}"
        if not isinstance(value, (ExTensor, np.ndarray)):
            raise TypeError(
                f"{place} is a parameter of shape {parameter.shape}; assign a tensor of that shape to set its value, "
                f"an nn.Parameter to replace it, or `del` it first, got {describe(value)}"
            )
        if isinstance(value, ExTensor) and value._node is not None:
            raise TypeError(
                f"{place} is a parameter and a computed tensor would lose its history; assign value.detach() to set its "
                "value, or compute with extensor.functional_call"
            )
        if value.shape != parameter.shape:
            raise ValueError(
                f"{place} has shape {parameter.shape} but the tensor has {value.shape}; assign an nn.Parameter to replace it"
            )
        parameter.assign(value)

    def _let_go(self, name: str, before: Any) -> None:
        """Parameters that leave the module remember it, for an optimiser that still holds them."""
        parts = [("", before)] if isinstance(before, Parameter) else list(before.named_parameters())
        for inner, p in parts:
            p._left = (f"{type(self).__name__}.{name}{'.' if inner else ''}{inner}", p._grad)

    # What belongs to it

    def _members(self) -> Iterator[tuple[str, Any]]:
        """Attributes, elements of lists and values of dicts, with their names."""
        for name, value in vars(self).items():
            yield from flatten(name, value)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, by name."""
        return ((name, value) for name, value in self._members() if isinstance(value, Module))

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all inside it, by path."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all inside it."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters by path; one that is shared appears once, under its first name."""
        seen: set[int] = set()
        for path, module in self.named_modules():
            for name, value in module._members():
                if isinstance(value, Parameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def parameters(self) -> Iterator[Parameter]:
        """All parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def register_buffer(self, name: str, value: ExTensor | None) -> None:
        """Make ``value`` an attribute that is saved with the module but not trained; an array is copied."""
        if name not in self._buffer_names:
            self._buffer_names = (*self._buffer_names, name)
        setattr(self, name, value)

    def named_buffers(self) -> Iterator[tuple[str, ExTensor]]:
        """All buffers by path."""
        for path, module in self.named_modules():
            for name in module._buffer_names:
                value = getattr(module, name)
                if value is not None:
                    yield (f"{path}.{name}" if path else name), value

    # Hooks

    def _own_hooks(self) -> Hooks:
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call ``hook(module, args)`` before every forward; it may return other arguments.

        Args:
            hook: gets the positional arguments as a tuple, and returns None, one argument, or a tuple of them.
            prepend: run it before the hooks that are there.
            with_kwargs: call ``hook(module, args, kwargs)`` instead; it returns None or ``(args, kwargs)``.

        Returns:
            A handle with ``remove()``.

        Example:
            >>> import extensor as et
            >>> layer = et.nn.Identity()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] * 2.0)
            >>> layer(et.ones(2)).tolist()
            [2.0, 2.0]
            >>> handle.remove()
            >>> layer(et.ones(2)).tolist()
            [1.0, 1.0]
        """
        hooks = self._own_hooks()
        return hooks.add("register_forward_pre_hook", hooks.before, hook, with_kwargs, prepend)

    def register_forward_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call ``hook(module, args, output)`` after every forward; it may return another output.

        Args:
            hook: gets the positional arguments as a tuple and what forward returned; returns None or another output.
            prepend: run it before the hooks that are there.
            with_kwargs: call ``hook(module, args, kwargs, output)`` instead.

        Returns:
            A handle with ``remove()``.

        Example:
            >>> import extensor as et
            >>> seen = []
            >>> net = et.nn.Sequential(et.nn.Linear(2, 3, rng=0), et.nn.ReLU())
            >>> with net[0].register_forward_hook(lambda module, args, output: seen.append(output.shape)):
            ...     _ = net(et.ones((1, 2)))
            >>> seen
            [(1, 3)]
        """
        hooks = self._own_hooks()
        return hooks.add("register_forward_hook", hooks.after, hook, with_kwargs, prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_input, grad_output)`` when gradients have passed through the module.

        Args:
            hook: gets two tuples, with a gradient or None for every tensor among the inputs and outputs; it may return
                other gradients for the inputs. A tensor that is given twice has its gradient in the first place. Where
                no input requires a gradient the hook is called all the same.
            prepend: run it before the hooks that are there.

        Returns:
            A handle with ``remove()``.

        Example:
            >>> import extensor as et
            >>> layer = et.nn.Linear(2, 1, rng=0)
            >>> handle = layer.register_full_backward_hook(
            ...     lambda module, grad_input, grad_output: print(grad_output[0].tolist()))
            >>> (layer(et.ones((1, 2))) * 3.0).sum().backward()
            [[3.0]]
        """
        hooks = self._own_hooks()
        return hooks.add("register_full_backward_hook", hooks.backward, hook, prepend=prepend)

    # Saving and loading

    def state_dict(self) -> dict[str, ExTensor]:
        """Every parameter and buffer by path, as plain tensors, in PyTorch's order."""
        state: dict[str, ExTensor] = {}
        for path, module in self.named_modules():
            prefix = f"{path}." if path else ""
            own = {name: v.detach() for name, v in module._members() if isinstance(v, Parameter)}
            own.update(
                {n: getattr(module, n) for n in module._buffer_names if getattr(module, n) is not None}
            )
            state.update({prefix + name: value for name, value in own.items()})
        return state

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Take over the values of ``state`` (tensors or arrays, which are copied), cast to each parameter's dtype.

        Nothing is changed unless every shape fits, and every name too where it is strict.

        Args:
            state: values by path, as :meth:`state_dict` gives them.
            strict: whether every name must be there, and no other. Without it the names that both have are loaded.

        Returns:
            The names that were missing in ``state`` and those the module has no place for.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"[load_state_dict] state must be a dict of tensors, got {describe(state)}")
        own = self.state_dict()
        values = {
            name: value if isinstance(value, ExTensor) else tensor(value)
            for name, value in state.items()
            if name in own
        }
        different = IncompatibleKeys(
            [name for name in own if name not in state], [name for name in state if name not in own]
        )
        problems = [
            f"{name} has shape {value.shape} but the model has {own[name].shape}"
            for name, value in values.items()
            if value.shape != own[name].shape
        ]
        if strict:
            names = [f"missing: {name} {own[name].shape}" for name in different.missing_keys]
            problems = [*names, *(f"unexpected: {name}" for name in different.unexpected_keys), *problems]
        if problems:
            more = f"; and {len(problems) - 8} more" if len(problems) > 8 else ""
            raise ValueError(
                f"[load_state_dict] state does not fit {type(self).__name__}: {'; '.join(problems[:8])}{more}"
            )
        for path, module in self.named_modules():
            prefix = f"{path}." if path else ""
            for name, parameter in module._members():
                if isinstance(parameter, Parameter) and prefix + name in values:
                    parameter.assign(values[prefix + name])
            for name in module._buffer_names:
                before = getattr(module, name)
                if before is not None and prefix + name in values:
                    setattr(module, name, ExTensor(values[prefix + name].numpy().astype(before.dtype)))
        return different

    # Modes

    def train(self: M, mode: bool = True) -> M:
        """Training mode for this module and all inside it (dropout drops, batch norm uses the batch)."""
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self: M) -> M:
        """Evaluation mode for this module and all inside it."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Train the parameters of this module, or freeze them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def astype(self: M, dtype: Any) -> M:
        """All parameters and floating buffers in another floating dtype."""
        wanted = as_dtype("astype", dtype)
        if wanted not in FLOATING:
            raise TypeError(f"[astype] a module's dtype must be floating, got {wanted}")
        for parameter in self.parameters():
            parameter._array = parameter._array.astype(wanted)
            parameter._grad = None
        for module in self.modules():
            for name in module._buffer_names:
                value = getattr(module, name)
                if value is not None and value.dtype in FLOATING:
                    setattr(module, name, ExTensor(value.numpy().astype(wanted)))
        return self

    def apply(self: M, function: Any) -> M:
        """Call ``function`` on every module inside and on this one."""
        for _, child in self.named_children():
            child.apply(function)
        function(self)
        return self

    # For people

    def summary(self, *inputs: Any) -> Summary:
        """The layers as a table: output shapes, parameters and memory.

        Args:
            inputs: what the module is called with, as a sample; it runs once, in evaluation mode and without recording.
                Without them there are no shapes and no memory of outputs.

        Example:
            >>> import extensor as et
            >>> net = et.nn.Sequential(et.nn.Linear(2, 8, rng=0), et.nn.ReLU(), et.nn.Linear(8, 1, rng=1))
            >>> print(net.summary(et.ones((3, 2))))
            layer  type    output  parameters  memory
            -----------------------------------------
            0      Linear  (3, 8)          24   192 B
            1      ReLU    (3, 8)           -    96 B
            2      Linear  (3, 1)           9    48 B
            -----------------------------------------
            33 parameters; 132 B, outputs of the layers 204 B
        """
        return summarise(self, inputs)

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        children = list(self.named_children())
        if not children:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in children]
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"

    def _repr_html_(self) -> str:
        return module_html(self)


teach(Module, MODULE)


def _as_buffer(owner: str, name: str, value: Any) -> ExTensor | None:
    """What a buffer may be: a tensor, an array, which is copied, or None."""
    if value is None or isinstance(value, ExTensor):
        return value
    if not isinstance(value, np.ndarray):
        raise TypeError(f"[{owner}] {name} is a buffer; it must be a tensor or None, got {describe(value)}")
    return tensor(value)


def flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value, or those in lists and dicts of them, each with its name."""
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from flatten(f"{name}.{i}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(f"{name}.{key}", item)
    else:
        yield name, value


def _name_path(error: Exception, running: list[Module]) -> None:
    """Put the path of the innermost module before the message, once."""
    if getattr(error, "_extensor_path", False) or not error.args or not isinstance(error.args[0], str):
        return
    error.args = (f"in {path_of(running)}: {error.args[0]}", *error.args[1:])
    error._extensor_path = True  # type: ignore[attr-defined]
