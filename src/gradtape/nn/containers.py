"""Modules that hold others: in a chain, in a list, in a dict."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.nn.module import Module
from gradtape.nn.recipe import KINDS, MODULE, PARAMETER


class _Listed(Module):
    """Modules by position: what chains and lists of them have in common."""

    def append(self, module: Any) -> Self:
        """Add a module at the end; returns the container."""
        self.add_module(str(len(self)), _checked(type(self).__name__, module))
        return self

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end; returns the container."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> None:
        """Put a module before the one at a position."""
        named = self._held()
        named.insert(index, ("0", _checked(type(self).__name__, module)))
        self._refill(named)

    def __delitem__(self, index: int | slice) -> None:
        named = self._held()
        del named[index if isinstance(index, slice) else self._position(index)]
        self._refill(named)

    def _held(self) -> list[tuple[str, Module]]:
        """The modules with their names."""
        held = vars(self)
        return [(name, held[name]) for name, kind in held[KINDS].items() if kind is MODULE]

    def _refill(self, named: Iterable[tuple[str, Module]]) -> None:
        """Hold other modules; numbers that are names are counted anew, as in PyTorch."""
        for name, _ in self._held():
            delattr(self, name)
        for number, (name, module) in enumerate(named):
            self.add_module(str(number) if name.isdigit() else name, module)

    def __iter__(self) -> Iterator[Module]:
        held = vars(self)
        return iter([held[name] for name in held[KINDS]])

    def __len__(self) -> int:
        return len(vars(self)[KINDS])

    @overload
    def __getitem__(self, index: int) -> Module: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Any:
        modules = list(self)
        if isinstance(index, slice):
            return self._of(modules[index])
        return modules[self._position(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        name = list(vars(self)[KINDS])[self._position(index)]
        self._put(name, _checked(type(self).__name__, module))

    def _position(self, index: Any) -> int:
        return _position(index, len(self), type(self).__name__)

    def _of(self, modules: list[Module]) -> Self:
        """A container of the same class."""
        raise NotImplementedError


class Sequential(_Listed):
    """Modules applied one after the other.

    Args:
        *modules: The modules, or one dict of modules by name.

    Raises:
        ArgumentError: Something is not a module.

    >>> net = gt.nn.Sequential(gt.nn.Linear(4, 8), gt.nn.Tanh(), gt.nn.Linear(8, 1))
    >>> net(np.ones((3, 4), np.float32)).shape
    (3, 1)
    >>> net[0].weight.shape, len(net), len(net[1:])
    ((8, 4), 3, 2)
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, _checked("Sequential", module))
            return
        if len(modules) == 1 and isinstance(modules[0], list | tuple):
            raise ArgumentError(
                f"Sequential: got {a_type(modules[0])}, expected modules; use Sequential(*modules)"
            )
        self.extend(modules)

    def forward(self, x: Any) -> Any:
        """Apply the modules in turn."""
        for module in self:
            x = module(x)
        return x

    def _of(self, modules: list[Module]) -> Self:
        return type(self)(*modules)


class ModuleList(_Listed):
    """A list of modules, which a module holds under its name.

    A plain list does the same; this one is a module itself.

    Args:
        modules: The modules.

    Raises:
        ArgumentError: Something is not a module.

    >>> layers = gt.nn.ModuleList([gt.nn.Linear(4, 4) for _ in range(3)])
    >>> len(layers), [name for name, _ in layers.named_parameters()][-1]
    (3, '2.bias')
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    def _of(self, modules: list[Module]) -> Self:
        return type(self)(modules)


class ModuleDict(Module):
    """Modules by name, which a module holds under its own.

    Args:
        modules: The modules by name; names have no dots.

    Raises:
        ArgumentError: Something is not a module, or a name is taken.

    >>> heads = gt.nn.ModuleDict({"mean": gt.nn.Linear(4, 1), "spread": gt.nn.Linear(4, 1)})
    >>> heads["mean"].weight.shape, list(heads)
    ((1, 4), ['mean', 'spread'])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        for name, module in (modules or {}).items():
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        if name not in self:
            raise ArgumentError(f"ModuleDict: got {name!r}, expected one of {list(self)}")
        return vars(self)[name]  # type: ignore[no-any-return]

    def __setitem__(self, name: str, module: Module) -> None:
        module = _checked("ModuleDict", module)
        if name in self:
            self._put(name, module)
        else:
            self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in vars(self)[KINDS]

    def __iter__(self) -> Iterator[str]:
        return iter(list(vars(self)[KINDS]))

    def __len__(self) -> int:
        return len(vars(self)[KINDS])

    def keys(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self)

    def values(self) -> Iterator[Module]:
        """Go through the modules."""
        return (self[name] for name in self)

    def items(self) -> Iterator[tuple[str, Module]]:
        """Go through the names and modules."""
        return ((name, self[name]) for name in self)


class ParameterList(Module):
    """A list of parameters, which a module holds under its name.

    A plain list of tensors that require gradients does the same; this one is a module itself.

    Args:
        parameters: Leaf tensors, or arrays to begin with.

    >>> powers = gt.nn.ParameterList([np.ones(2), np.zeros(2)])
    >>> [name for name, _ in powers.named_parameters()], powers[1].shape
    (['0', '1'], (2,))
    """

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        for value in parameters:
            self.append(value)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end; returns the list."""
        from_array = not isinstance(value, Tensor)
        self.register_parameter(str(len(self)), as_parameter(value) if from_array else value)
        return self

    def __iter__(self) -> Iterator[Tensor]:
        held = vars(self)
        return iter([held[name] for name, kind in held[KINDS].items() if kind is PARAMETER])

    def __len__(self) -> int:
        return len(vars(self)[KINDS])

    def __getitem__(self, index: int) -> Tensor:
        return list(self)[_position(index, len(self), "ParameterList")]


def as_parameter(value: Any) -> Tensor:
    """An array as a parameter that begins with it."""
    return Tensor(value.copy() if hasattr(value, "copy") else value).set_requires_grad()


def _checked(name: str, module: Any) -> Any:
    if not isinstance(module, Module):
        advice = (
            f"; make one by {module.__name__}(...)"
            if isinstance(module, type)
            else "; wrap a function in a class with forward, or use gt.nn.Tanh() for gt.tanh"
            if callable(module)
            else ""
        )
        got = f"the class {module.__name__}" if isinstance(module, type) else a_type(module)
        raise ArgumentError(f"{name}: got {got}, expected a gt.nn.Module{advice}")
    return module


def _position(index: Any, length: int, name: str) -> int:
    position = operator.index(index)
    if not -length <= position < length:
        raise IndexError(f"{name}: got position {position}, expected one of {length} modules")
    return position % length
