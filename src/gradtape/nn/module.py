"""Modules: functions with parameters, as objects that are containers of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from gradtape import containers, dtypes
from gradtape.core.aval import is_extended_float
from gradtape.core.level import LEAVES, Leaf as GradientLeaf
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    MissingNameError,
    ShapeError,
    UnknownSizeError,
    WriteError,
    a_type,
)
from gradtape.nn.recipe import (
    BUFFER,
    CONTAINER,
    FROZEN,
    INSIDE,
    KINDS,
    MODULE,
    PARAMETER,
    WATCHED,
    entries,
    is_frozen,
    taken_apart,
)
from gradtape.nn.watched import Watched
from gradtape.ops.arguments import as_dtype
from gradtape.ops.cast import stop_gradient

_HOOKS = "_forward_hooks"
_TRANSIENT = "_transient"
_NOTHING = object()
# Values that are the same if they are written in the same way.
_PLAIN = (bool, int, float, str)
# Problems that are listed in an error, at most.
_LISTED = 20

# Methods that modules of PyTorch and models of Keras have, and what to write here.
_DEVICES = ("cpu", "cuda", "mps", "gpu")
_IN_MAIN_MEMORY = "modules are in main memory, and need not be moved"
_INSTEAD = {
    **dict.fromkeys((*_DEVICES, "device"), _IN_MAIN_MEMORY),
    "compile": "compile a training step with gt.jit, or use gt.fit(..., compile=True)",
    **dict.fromkeys(("fit", "train_on_batch"), "use gt.fit(model, loss, optimizer, data, ...)"),
    "evaluate": "use gt.training.evaluate(model, data, metrics)",
    **dict.fromkeys(("predict", "predict_on_batch"), "call it: model.eval()(x)"),
    "summary": "use print(model)",
    **dict.fromkeys(("count_params", "num_parameters"), "print(model) says how many there are"),
    **dict.fromkeys(("get_weights", "save", "save_weights"), "use gt.save(path, m.state_dict())"),
    **dict.fromkeys(("set_weights", "load_weights"), "use m.load_state_dict(gt.load(path))"),
    "trainable_variables": "use model.parameters()",
}


def Parameter(value: Any, requires_grad: bool = True) -> Tensor:  # noqa: N802 - PyTorch's name
    """Return a tensor that a module takes for a parameter when it is assigned to an attribute.

    It is a plain tensor that requires a gradient; nothing tells it from other such tensors.

    Args:
        value: Its first value, which is copied.
        requires_grad: Whether it is to be trained. If not, it is a frozen parameter.

    Raises:
        DTypeError: It is not an array of floating-point or complex numbers.

    >>> class Scale(gt.nn.Module):
    ...     def __init__(self, size):
    ...         self.factor = gt.nn.Parameter(np.ones(size))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> [name for name, _ in Scale(3).named_parameters()]
    ['factor']
    """
    known = value.detach().value if isinstance(value, Tensor) else value
    made = Tensor(np.array(known)).set_requires_grad()
    return made if requires_grad else made.set_requires_grad(False)


class Module(containers.Members):
    """Base class of layers and models: a function with parameters.

    A subclass makes its parameters and further modules in `__init__`, and says in `forward` what it
    computes; calling it calls `forward`. What is assigned to an attribute is

    - a *parameter*, if it is a tensor that requires a gradient (`gt.nn.Parameter`);
    - a *module*, and its parameters count as those of this one. Modules and parameters in lists,
      tuples and dicts count as well;
    - a *buffer*, if `register_buffer` made it one: an array that belongs to the state but is not
      trained, such as a running mean;
    - otherwise static: numbers, strings, functions.

    A module is a container wherever lists and dicts are: `gt.grad`, `gt.jit`, `gt.vmap` and the
    rules of optimizers take it and return modules. Derivatives are those by its parameters; buffers
    and everything else travel along. What a transform of derivatives writes to a buffer is in the
    buffer of the module it was given. A compiled function has to return the module, or it raises.

    >>> class Net(gt.nn.Module):
    ...     def __init__(self):
    ...         self.hidden = gt.nn.Linear(2, 3)
    ...         self.out = gt.nn.Linear(3, 1)
    ...
    ...     def forward(self, x):
    ...         return self.out(gt.tanh(self.hidden(x)))
    >>> net = Net()
    >>> net
    Net(
      (hidden): Linear(2, 3): weight[3, 2], bias[3]
      (out): Linear(3, 1): weight[1, 3], bias[1]
    ): 13 parameters
    >>> loss = lambda net, x: gt.mean(net(x) ** 2)
    >>> grads = gt.grad(loss)(net, np.ones((5, 2), np.float32))
    >>> grads.hidden.weight.shape
    (3, 2)
    """

    _kinds: dict[str, str]
    _frozen: frozenset[str]
    _watched: Watched
    _transient: frozenset[str] = frozenset()
    _forward_hooks: tuple[tuple[int, bool, Callable[..., Any]], ...] = ()

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        self = super().__new__(cls)
        # So `super().__init__()` may be left out.
        held = vars(self)
        held[KINDS], held[FROZEN], held[WATCHED] = {}, frozenset(), Watched(True)
        return self

    def __init__(self) -> None:
        """Do nothing: a subclass may call it, as in PyTorch, or not."""

    # ---- calling ---------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; a subclass says how."""
        raise NotImplementedError(f"{type(self).__name__}: define forward(self, ...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, and the hooks; put off on lazy tensors whose size is not known yet."""
        try:
            return self._called(args, kwargs)
        except UnknownSizeError as error:
            leaves, structure = containers.flatten(self, view=containers.ALL_ARRAYS)
            return error.deferred(_put_off(type(self), structure), (leaves, *args), kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if STATE.get().modes:
            self._watched.watch()
        hooks = self._forward_hooks
        if not hooks:
            return self.forward(*args, **kwargs)
        for _, before, hook in hooks:
            if before:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        out = self.forward(*args, **kwargs)
        for _, before, hook in hooks:
            if not before:
                changed = hook(self, args, out)
                out = out if changed is None else changed
        return out

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call a function after each call of this module.

        Args:
            hook: `hook(module, args, result)`; what it returns takes the place of the result,
                unless it is None.

        Returns:
            A handle; `handle.remove()` takes the hook away again.

        >>> layer = gt.nn.Linear(2, 1)
        >>> handle = layer.register_forward_hook(lambda module, args, out: print(out.shape))
        >>> _ = layer(np.ones((5, 2), np.float32))
        (5, 1)
        >>> handle.remove()
        """
        return self._hooked(False, hook, "register_forward_hook")

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call a function before each call of this module.

        Args:
            hook: `hook(module, args)`; what it returns takes the place of the arguments, unless it
                is None.

        Returns:
            A handle; `handle.remove()` takes the hook away again.

        >>> layer = gt.nn.Tanh()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] * 0.0)
        >>> layer(np.ones(2))
        array([0., 0.])
        """
        return self._hooked(True, hook, "register_forward_pre_hook")

    def _hooked(self, before: bool, hook: Callable[..., Any], name: str) -> HookHandle:
        if not callable(hook):
            raise ArgumentError(f"{name}: got {a_type(hook)}, expected a function")
        number = 1 + max([number for number, *_ in self._forward_hooks], default=0)
        self._put(_HOOKS, (*self._forward_hooks, (number, before, hook)))
        return HookHandle(self, number)

    # ---- attributes ------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        held = vars(self)
        known = held[KINDS].get(name)
        if known is BUFFER and not isinstance(value, Module):
            self._write_buffer(name, value)
            return
        if known is PARAMETER and not isinstance(value, Module):
            self._replace_parameter(name, value)
            return
        kind = self._kind(name, value)
        if kind is None:
            _note(held, name, None)
        else:
            if hasattr(Module, name):
                raise ArgumentError(
                    f"{type(self).__name__}.{name}: got {a_type(value)} for an attribute that the "
                    "class has; use another name"
                )
            _note(held, name, kind)
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        """Let an attribute hold a value; compiled functions that use the module notice a change."""
        held = vars(self)
        before = held.get(name, _NOTHING)
        held[name] = value
        plain = type(value) in _PLAIN and type(value) is type(before)
        if value is not before and not (plain and repr(value) == repr(before)):
            self._watched.note_change()

    def _kind(self, name: str, value: Any) -> str | None:
        """What an attribute is, by its first value; None for a static one.

        Raises:
            ArgumentError: It is an array, and nothing says whether it is a parameter or a buffer.
        """
        if isinstance(value, Module):
            return MODULE
        where = f"{type(self).__name__}.{name}"
        if isinstance(value, Tensor):
            _check_parameter(where, name, value)
            return PARAMETER
        if isinstance(value, np.ndarray):
            raise _neither(where, name, value)
        if isinstance(value, list | dict) or (isinstance(value, tuple) and _holds_arrays(value)):
            _check_contents(where, name, value)
            return CONTAINER
        return None

    def _replace_parameter(self, name: str, value: Any) -> None:
        if value is not None:
            where = f"{type(self).__name__}.{name}"
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"{where}: got {a_type(value)} in place of a parameter, expected a tensor; use "
                    "gt.nn.Parameter(array)"
                )
            if value.record is not None and not value.is_leaf:
                raise ArgumentError(
                    f"{where}: got the result of an operation in place of a parameter, expected a "
                    "leaf; compute it in forward, or use gt.nn.Parameter(value) to begin from it"
                )
        self._put(name, value)

    def _write_buffer(self, name: str, value: Any) -> None:
        buffer = vars(self)[name]
        if value is None:
            self._put(name, None)
        elif buffer is None:
            self._put(name, self._first_of_buffer(name, value))
        elif value is not buffer:
            write_buffer(buffer, value, f"{type(self).__name__}.{name}")

    def _first_of_buffer(self, name: str, value: Any) -> Tensor:
        """A buffer in place of None.

        Raises:
            WriteError: Its value is known only inside a transform, and the module is from outside.
        """
        made = _as_buffer(value)
        level = _level_of(made)
        if self._watched.is_of_outside() or (level is not None and level.label == "vmap"):
            raise WriteError(
                f"{type(self).__name__}.{name}: this buffer has no value yet, and one that is "
                "computed inside jit or vmap is not known outside; give it a value before, or "
                "return the module from the function that is compiled"
            )
        return made

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        _note(vars(self), name, None)
        self._watched.note_change()

    def __getattr__(self, name: str) -> Any:
        # Only reached for what is not there.
        raise MissingNameError(name, _advice_for, f"a module of class {type(self).__name__!r}")

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """Make an array a part of the module that is not trained.

        Later assignments to the attribute write to it. What is written has no history, so a running
        mean does not keep the batches it was computed from.

        Args:
            name: The name of the attribute.
            value: Its first value, an array or tensor, or None.
            persistent: Whether `state_dict` has it.

        Raises:
            ArgumentError: The name is taken, has a dot in it, or the value is no array.

        >>> class Count(gt.nn.Module):
        ...     def __init__(self):
        ...         self.register_buffer("calls", np.array(0))
        ...
        ...     def forward(self, x):
        ...         self.calls += 1
        ...         return x
        >>> count = Count()
        >>> _ = count(1.0), count(1.0)
        >>> count.calls
        tensor(2)
        """
        self._check_new_name("register_buffer", name)
        held = vars(self)
        self._put(name, None if value is None else _as_buffer(value))
        _note(held, name, BUFFER)
        if not persistent:
            held[_TRANSIENT] = self._transient | {name}

    def register_parameter(self, name: str, value: Tensor | None) -> None:
        """Make a tensor a parameter, or note that a parameter is left out.

        Args:
            name: The name of the attribute.
            value: A leaf tensor, or None.

        Raises:
            ArgumentError: The name is taken or has a dot in it, or the value is no leaf tensor.

        >>> layer = gt.nn.Module()
        >>> layer.register_parameter("scale", gt.nn.Parameter(np.ones(2)))
        >>> layer.scale.shape
        (2,)
        """
        self._check_new_name("register_parameter", name)
        if value is not None:
            if not isinstance(value, Tensor) or not value.is_leaf:
                raise ArgumentError(
                    f"register_parameter: got {a_type(value)}, expected a leaf tensor or None; use "
                    "gt.nn.Parameter(array)"
                )
            if value.record is None:
                vars(self)[FROZEN] |= {name}
        self._put(name, value)
        _note(vars(self), name, PARAMETER)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make a module a part of this one, under a name that need not be an identifier.

        Args:
            name: Its name, without dots.
            module: The module, or None.

        Raises:
            ArgumentError: The name is taken or has a dot in it, or it is no module.

        >>> net = gt.nn.Module()
        >>> net.add_module("0", gt.nn.Tanh())
        >>> [name for name, _ in net.named_children()]
        ['0']
        """
        self._check_new_name("add_module", name)
        if not (module is None or isinstance(module, Module)):
            raise ArgumentError(f"add_module: got {a_type(module)}, expected a gt.nn.Module")
        self._put(name, module)
        _note(vars(self), name, MODULE)

    register_module = add_module

    def _check_new_name(self, function: str, name: Any) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentError(
                f"{function}: got the name {name!r}, expected a string without dots"
            )
        taken = name in vars(self) or hasattr(type(self), name)
        if taken:
            raise ArgumentError(f"{function}: got the name {name!r}, which is taken already")

    # ---- what it holds ---------------------------------------------------------------------

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Go through this module and all in it, each once, with their names.

        >>> net = gt.nn.Sequential(gt.nn.Linear(2, 1), gt.nn.Tanh())
        >>> [name for name, _ in net.named_modules()]
        ['', '0', '1']
        """
        for name, module, first in self._places(prefix):
            if first:
                yield name, module

    def _places(self, prefix: str = "") -> Iterator[tuple[str, Module, bool]]:
        """All places of modules, and whether it is the first place of that module."""
        known: set[int] = set()
        stack = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            first = id(module) not in known
            known.add(id(module))
            yield name, module, first
            start = f"{name}." if name else ""
            inner = [(f"{start}{own}", m) for kind, own, m in entries(module) if kind is MODULE]
            stack += reversed(inner)

    def modules(self) -> Iterator[Module]:
        """Go through this module and all in it, each once.

        >>> len(list(gt.nn.Sequential(gt.nn.Linear(2, 1), gt.nn.Tanh()).modules()))
        3
        """
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Go through the modules that are held directly, with their names.

        >>> [name for name, _ in gt.nn.Sequential(gt.nn.Tanh(), gt.nn.ReLU()).named_children()]
        ['0', '1']
        """
        return ((name, value) for kind, name, value in entries(self) if kind is MODULE)

    def children(self) -> Iterator[Module]:
        """Go through the modules that are held directly.

        >>> list(gt.nn.Sequential(gt.nn.Tanh(), gt.nn.ReLU()).children())
        [Tanh(), ReLU()]
        """
        return (module for _, module in self.named_children())

    def _named(
        self, wanted: str, prefix: str = "", *, again: bool = False
    ) -> Iterator[tuple[str, Module, str, Tensor]]:
        """Tensors of a kind: full name, module, name in it, tensor; each once, unless `again`."""
        known: set[int] = set()
        for start, module, first in self._places(prefix):
            if not (first or again):
                continue
            for kind, name, value in entries(module):
                if kind is wanted and (again or id(value) not in known):
                    known.add(id(value))
                    yield f"{start}.{name}" if start else name, module, name, value

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Go through the parameters with their names; one that occurs twice has its first name.

        >>> [(name, w.shape) for name, w in gt.nn.Linear(2, 3).named_parameters()]
        [('weight', (3, 2)), ('bias', (3,))]
        """
        return ((name, value) for name, _, _, value in self._named(PARAMETER, prefix))

    def parameters(self) -> Iterator[Tensor]:
        """Go through the parameters, for an optimizer: `gt.optim.Adam(net.parameters())`.

        >>> sum(w.size for w in gt.nn.Linear(2, 3).parameters())
        9
        """
        return (value for _, value in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Go through the buffers with their names.

        >>> [name for name, _ in gt.nn.BatchNorm1d(3).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return ((name, value) for name, _, _, value in self._named(BUFFER, prefix))

    def buffers(self) -> Iterator[Tensor]:
        """Go through the buffers.

        >>> [buffer.shape for buffer in gt.nn.BatchNorm1d(3).buffers()]
        [(3,), (3,), ()]
        """
        return (value for _, value in self.named_buffers())

    def get_submodule(self, name: str) -> Module:
        """Return the module of a name, such as `"layers.0"`.

        Args:
            name: Its name, as `named_modules` has it; this module for an empty one.

        Raises:
            ArgumentError: There is none.

        >>> gt.nn.Sequential(gt.nn.Tanh()).get_submodule("0")
        Tanh()
        """
        for own, module, _ in self._places():
            if own == name:
                return module
        names = ", ".join(repr(own) for own, _ in self.named_modules() if own)
        raise ArgumentError(f"get_submodule: got {name!r}, expected one of {names or 'none'}")

    # ---- training, evaluation, freezing ----------------------------------------------------

    @property
    def training(self) -> bool:
        """Whether it is in training; `train` and `eval` change it for all modules in it, too.

        >>> gt.nn.Module().training
        True
        """
        return self._watched.is_training()

    @training.setter
    def training(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise ArgumentError(f"training: got {mode!r}, expected True or False")
        self._watched.set_training(mode)

    def train(self, mode: bool = True) -> Self:
        """Put this module and all in it into training, or into evaluation; returns itself.

        >>> gt.nn.Dropout(0.5).train(False).training
        False
        """
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Put this module and all in it into evaluation; returns itself.

        >>> gt.nn.Dropout(0.5).eval()(np.ones(2))
        array([1., 1.])
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make all parameters leaves that require gradients, or freeze them; returns itself.

        Frozen parameters are no leaves for `gt.grad` and optimizers; they travel along as buffers
        do. Modules that a compiled function returned hold plain tensors: this makes them leaves
        again, those that were frozen included.

        >>> net = gt.nn.Linear(2, 1).requires_grad_(False)
        >>> [w.requires_grad for w in net.parameters()]
        [False, False]
        """
        for _, module, name, value in self._named(PARAMETER, again=True):
            value.set_requires_grad(requires_grad)
            held = vars(module)
            held[FROZEN] = held[FROZEN] - {name} if requires_grad else held[FROZEN] | {name}
        return self

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to zeros.

        >>> net = gt.nn.Linear(2, 1)
        >>> gt.sum(net(np.ones((1, 2), np.float32))).backward()
        >>> net.zero_grad()
        >>> net.bias.grad
        tensor([0.], dtype=float32)
        """
        for value in self.parameters():
            value.zero_grad()

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call a function with every module, the innermost first; returns this module.

        Args:
            function: `function(module)`; what it returns is ignored.

        >>> def start(module):
        ...     if isinstance(module, gt.nn.Linear):
        ...         gt.nn.init.zeros_(module.bias)
        >>> gt.nn.Linear(2, 1).apply(start).bias
        tensor([0.], dtype=float32, requires_grad=True)
        """
        for module in reversed(list(self.modules())):
            function(module)
        return self

    def to(self, dtype: Any) -> Self:
        """Convert floating-point parameters and buffers to a dtype, in place; returns itself.

        Gradients are dropped.

        Args:
            dtype: A floating-point dtype.

        Raises:
            ArgumentError: It is the name of a device.
            DTypeError: The dtype is not floating.

        >>> gt.nn.Linear(2, 1).to(gt.float64).weight.dtype
        dtype('float64')
        """
        if isinstance(dtype, str) and dtype.partition(":")[0] in _DEVICES:
            raise ArgumentError(f"to: got {dtype!r}, expected a dtype; {_IN_MAIN_MEMORY}")
        target = as_dtype(dtype, "to")
        if not _is_float(target):
            raise DTypeError(f"to: got {target}, expected a floating-point dtype")
        for kind in (PARAMETER, BUFFER):
            for _, _, _, tensor in self._named(kind):
                if tensor.dtype != target and _is_float(tensor.dtype):
                    _convert(tensor, target)
        return self

    def float(self) -> Self:
        """Convert to float32; see `to`."""
        return self.to(np.float32)

    def double(self) -> Self:
        """Convert to float64; see `to`."""
        return self.to(np.float64)

    def half(self) -> Self:
        """Convert to float16; see `to`."""
        return self.to(np.float16)

    def bfloat16(self) -> Self:
        """Convert to bfloat16; see `to`."""
        return self.to(dtypes.bfloat16)

    # ---- state -----------------------------------------------------------------------------

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and persistent buffers by all their names, module by module.

        Raises:
            ArgumentError: Two have the same name, as keys of dicts may have dots in them.
        """
        known: dict[str, Tensor] = {}
        for start, module, _ in self._places():
            transient = module._transient
            for kind, name, value in entries(module):
                if kind is PARAMETER or (kind is BUFFER and name not in transient):
                    full = f"{start}.{name}" if start else name
                    if known.setdefault(full, value) is not value:
                        raise ArgumentError(
                            f"state_dict: got two tensors of the name {full!r} in "
                            f"{type(self).__name__}; use other keys in its dicts"
                        )
                    yield full, value

    def state_dict(self) -> dict[str, Tensor]:
        """Return parameters and persistent buffers by name, as they are now.

        Later training does not change what was returned, although nothing is copied.

        Returns:
            Tensors without history, in the order and with the names that PyTorch gives to the same
            layers. `gt.save` saves them.

        Raises:
            ArgumentError: Two of them have the same name.

        >>> list(gt.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        return {name: value.detach() for name, value in self._state()}

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Set parameters and buffers to values by name: all of them, or none if any does not fit.

        Args:
            state: Arrays, or tensors of any library that NumPy can read, by the names of
                `state_dict`.
            strict: Whether there has to be a value for each name, and no other ones.

        Raises:
            ArgumentError: Values are missing, unexpected or of another shape; all are listed.
            DTypeError: A value is not an array of numbers of the same kind.

        >>> net, other = gt.nn.Linear(2, 1), gt.nn.Linear(2, 1)
        >>> other.load_state_dict(net.state_dict())
        >>> bool(gt.all(net.weight == other.weight))
        True
        >>> other.load_state_dict({"weight": np.ones((1, 3))})
        Traceback (most recent call last):
            ...
        gradtape.errors.ArgumentError: load_state_dict: the state does not fit Linear: 'weight' is
        [1, 3], expected [1, 2]; missing 'bias'
        """
        if not isinstance(state, Mapping):
            raise ArgumentError(
                f"load_state_dict: got {a_type(state)}, expected a dict of arrays by name"
            )
        own = dict(self._state())
        values = {name: _loaded(name, state[name], own[name]) for name in own if name in state}
        problems = [
            f"{name!r} is {list(value.shape)}, expected {list(own[name].shape)}"
            for name, value in values.items()
            if value.shape != own[name].shape
        ]
        if strict:
            problems += [f"missing {name!r}" for name in own if name not in state]
            problems += [f"unexpected {name!r}" for name in state if name not in own]
        problems += _conflicts(own, values)
        if problems:
            more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
            raise ArgumentError(
                f"load_state_dict: the state does not fit {type(self).__name__}: "
                f"{'; '.join(problems[:_LISTED])}{more}"
            )
        for name, value in values.items():
            own[name].value = value

    # ---- as a container --------------------------------------------------------------------

    def take(self, view: str) -> tuple[Sequence[Any], Any, tuple[str, ...]]:
        """The arrays in a view, the rest, and the names of the arrays."""
        leaves, rest = taken_apart(self, view)
        return leaves, rest, rest.names

    @classmethod
    def make(cls, rest: Any, children: Sequence[Any]) -> Any:
        """A module like the one that `rest` comes from, with other arrays."""
        return rest.make(children)

    # ---- as text ---------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The settings that `repr` shows; a subclass says which."""
        return ""

    def __repr__(self) -> str:
        total = sum(value.size for value in self.parameters())
        frozen = sum(
            value.size
            for _, module, name, value in self._named(PARAMETER)
            if is_frozen(module, name, value)
        )
        text = _outlined(self)
        if "\n" not in text:
            return text
        note = f", {frozen:,} of them frozen" if frozen else ""
        return f"{text}: {total:,} parameters{note}"


class HookHandle:
    """Takes a forward hook away again; made by `register_forward_hook`."""

    def __init__(self, module: Module, number: int) -> None:
        self._module, self._number = module, number

    def remove(self) -> None:
        """Take the hook away, if it is still there."""
        left = [hook for hook in self._module._forward_hooks if hook[0] != self._number]
        self._module._put(_HOOKS, tuple(left))


# ---- parameters and buffers ---------------------------------------------------------------------


def write_buffer(buffer: Tensor, value: Any, where: str) -> None:
    """Give a buffer a new value, without history.

    Raises:
        ShapeError: It has another shape.
        WriteError: It is a value for each element of a batch of `gt.vmap`, and the buffer is not;
            or it is a lazy one, which may never be computed.
    """
    if _is_lazy(value):
        raise WriteError(
            f"{where}: the value that is written to this buffer is part of a lazy graph, and would "
            "be computed again or not at all; use module.eval(), or gt.jit in place of gt.run"
        )
    fixed = stop_gradient(value) if isinstance(value, Tensor) else np.asarray(value)
    if fixed.shape != buffer.shape:
        raise ShapeError(
            f"{where}: got a value of shape {fixed.shape} for a buffer of shape {buffer.shape}; "
            "delete the attribute and register a new buffer to change the shape"
        )
    level = _level_of(fixed)
    own = _level_of(buffer)
    if level is not None and level.label == "vmap" and (own is None or own.number < level.number):
        raise WriteError(
            f"{where}: the value that is written to this buffer inside vmap is another one for "
            "each element of the batch, while the buffer is one for all; use module.eval(), or "
            "stack modules and give them with in_axes=0"
        )
    buffer[...] = fixed


def _note(held: dict[str, Any], name: str, kind: str | None) -> None:
    """Note what an attribute is; None for a static one. Modules share dicts of kinds."""
    if INSIDE in held:
        held[INSIDE] = frozenset(n for n in held[INSIDE] if not n.startswith(f"{name}."))
    kinds = held[KINDS]
    if kind is not None:
        held[KINDS] = {**kinds, name: kind}
    elif name in kinds:
        held[KINDS] = {other: known for other, known in kinds.items() if other != name}


def _put_off(kind: type[Module], structure: containers.Structure) -> Callable[..., Any]:
    """A call of a module as a function of its arrays, as they are when the call is put off."""

    @functools.wraps(kind.forward)  # which says how many results there are
    def module(leaves: list[Any], *args: Any, **kwargs: Any) -> Any:
        return containers.unflatten(structure, leaves)(*args, **kwargs)

    return module


def _is_lazy(value: Any) -> bool:
    """Whether a value is part of a lazy graph, below whatever transforms."""
    while isinstance(value, Tensor):
        if getattr(_level_of(value), "lazy", False):
            return True
        value = value.value
    return False


def _level_of(value: Any) -> Any:
    record = value.record if isinstance(value, Tensor) else None
    return None if record is None else record.segment


def _as_buffer(value: Any) -> Tensor:
    known = stop_gradient(value) if isinstance(value, Tensor) else np.array(value)
    if known.dtype.kind in "OSUMm":
        raise ArgumentError(f"register_buffer: got {a_type(value)}, expected an array of numbers")
    # A tensor of its own: what is written to the buffer must not be written to the given one.
    return type(known)(known.value, known.record) if isinstance(known, Tensor) else Tensor(known)


def _check_parameter(where: str, name: str, value: Tensor) -> None:
    if value.record is None:
        raise _neither(where, name, value)
    if not value.is_leaf:
        raise ArgumentError(
            f"{where}: got the result of an operation, expected a leaf; a tensor that was computed "
            "belongs into a local variable, or use gt.nn.Parameter(value) for a parameter that "
            "begins with it"
        )


def _neither(where: str, name: str, value: Any) -> ArgumentError:
    return ArgumentError(
        f"{where}: got {a_type(value)} that does not require a gradient; use "
        f"self.{name} = gt.nn.Parameter(value) for a parameter, or "
        f"self.register_buffer({name!r}, value) for an array that is not trained"
    )


def _holds_arrays(value: Any) -> bool:
    """Whether nested lists, tuples and dicts hold modules, tensors, arrays or lists."""
    items = value.values() if isinstance(value, dict) else value
    return any(
        isinstance(item, Module | Tensor | np.ndarray | list | dict)
        or (isinstance(item, tuple) and _holds_arrays(item))
        for item in items
    )


def _check_contents(where: str, name: str, value: Any) -> None:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        place = f"{where}[{key!r}]"
        if isinstance(item, Tensor):
            _check_parameter(place, f"{name}", item)
        elif isinstance(item, np.ndarray):
            raise _neither(place, name, item)
        elif isinstance(item, list | tuple | dict):
            _check_contents(place, name, item)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or is_extended_float(dtype)


def _convert(tensor: Tensor, dtype: Any) -> None:
    """Convert the value of a parameter or buffer in place."""
    tensor.value = tensor.value.astype(dtype)
    if tensor.record is not None:
        tensor.record = GradientLeaf(LEAVES, tensor.value)


def _loaded(name: str, value: Any, own: Tensor) -> Any:
    """A value of a state as an array of its own, in the dtype of what it replaces."""
    given = value.detach() if isinstance(value, Tensor) else value
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(
            f"load_state_dict: got {a_type(value)} for {name!r} that NumPy cannot read, expected "
            f"an array; convert it, PyTorch's bfloat16 with .float(): {error}"
        ) from error
    if array.dtype.kind in "OSUMm" or not np.can_cast(array.dtype, own.dtype, "same_kind"):
        raise DTypeError(
            f"load_state_dict: got {array.dtype} for {name!r}, expected {own.dtype}, or what "
            "converts to it"
        )
    return np.array(array, own.dtype)


def _conflicts(own: Mapping[str, Tensor], values: Mapping[str, Any]) -> list[str]:
    """Names of one tied parameter that are given different values."""
    first: dict[int, str] = {}
    found = []
    for name, value in values.items():
        other = first.setdefault(id(own[name]), name)
        if not np.array_equal(values[other], value, equal_nan=value.dtype.kind == "f"):
            found.append(f"{other!r} and {name!r} are one parameter, and have different values")
    return found


def _advice_for(name: str) -> str:
    return _INSTEAD.get(name, "")


# ---- text ---------------------------------------------------------------------------------------


def _outlined(module: Module) -> str:
    own = f"{type(module).__name__}({module.extra_repr()})"
    held = [
        f"{name}{list(value.shape)}" for kind, name, value in entries(module) if kind is PARAMETER
    ]
    inner = []
    for name, child in module.named_children():
        text = _outlined(child).replace("\n", "\n  ")
        inner.append(f"  ({name}): {text}")
    listed = f": {', '.join(held)}" if held else ""
    if not inner:
        return own + listed
    return f"{own[:-1]}\n{chr(10).join(inner)}\n){listed}"
