"""The parameters of an optimizer: lists of leaf tensors, and what is remembered of each."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.class_fields import has_fields
from gradtape.core.level import LEAVES
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError, a_type


def is_group(value: Any) -> bool:
    """Whether a value describes a group of parameters, as in PyTorch: a dict with `"params"`."""
    return isinstance(value, Mapping) and "params" in value


def groups_in(params: Any, name: str) -> list[dict[str, Any]]:
    """The groups that are described by the first argument of an optimizer."""
    if isinstance(params, Number):
        raise ArgumentError(
            f"{name}: got the number {params} as parameters, expected a sequence or dict of "
            f"tensors; a learning rate is given by its name, lr={params}"
        )
    if isinstance(params, Tensor):
        parameters_in(params, name)  # says what to give
    if is_group(params) and not isinstance(params["params"], Tensor):
        return [dict(params)]
    if isinstance(params, Iterable) and not isinstance(
        params, Tensor | Mapping | containers.Members
    ):
        params = params if isinstance(params, list | tuple) else list(params)
        if params and all(map(is_group, params)):
            return [dict(group) for group in params]
    return [{"params": params}]


def parameters_in(params: Any, name: str) -> list[Tensor]:
    """The parameters in containers, each once, checked to be leaves."""
    if isinstance(params, containers.Members):
        params = list(params.parameters()) if hasattr(params, "parameters") else [params]
    known = isinstance(params, list | tuple | dict) or has_fields(type(params))
    if isinstance(params, Tensor) or not (known or isinstance(params, Iterable)):
        raise DTypeError(
            f"{name}: got a {type(params).__name__} as parameters, expected a sequence or dict of "
            "tensors: [w, b]"
        )
    result: list[Tensor] = containers.flatten(params if known else list(params))[0]
    for param in result:
        if not isinstance(param, Tensor):
            raise DTypeError(
                f"{name}: got a parameter of type {type(param).__name__}, expected tensors: "
                "net.parameters(), without names, or gt.tensor(array, requires_grad=True)"
            )
        record = param.record
        if not is_leaf(param) and getattr(param, "_off", None) is None:
            what = "does not require a gradient" if record is None else "is a recorded result"
            raise ArgumentError(
                f"{name}: got a parameter of shape {param.shape} that {what}, expected a leaf: "
                "x.set_requires_grad(True), after detach() if need be"
            )
    return list({id(param): param for param in result}.values())


def is_leaf(value: Any) -> bool:
    """Whether a value is a leaf that requires a gradient."""
    return isinstance(value, Tensor) and value.record is not None and value.record.segment is LEAVES


def held(leaf: Any) -> Any:
    """A leaf of a tree, to be remembered: a parameter without its place on the tape."""
    return leaf.detach() if is_leaf(leaf) else leaf


def check_state(name: str, state: Any) -> None:
    """Raise an ArgumentError for a state that is no dict with names."""
    if not (isinstance(state, Mapping) and all(isinstance(entry, str) for entry in state)):
        raise ArgumentError(
            f"{name}: got {a_type(state)} as a state, expected a dict of arrays by name"
        )


def loaded_slot(name: str, entry: str, given: Any, like: Any) -> Any:
    """An array of a state as one that is remembered.

    Args:
        name: The name of the optimizer.
        entry: The name of the array in the state.
        given: The array.
        like: One of the shape and dtype that it has to have.

    Raises:
        DTypeError: It is not of numbers, or complex where real ones are remembered.
        ShapeError: It has another shape.
    """
    if given.shape != like.shape:
        raise ShapeError(
            f"{name}: got state {entry!r} of shape {given.shape}, expected {like.shape}"
        )
    if given.dtype.kind in "OSUMm" or not np.can_cast(given.dtype, like.dtype, "same_kind"):
        raise DTypeError(f"{name}: got state {entry!r} of {given.dtype}, expected {like.dtype}")
    return np.array(given, like.dtype)


def loaded_number(name: str, entry: str, given: Any, like: Any) -> Any:
    """A number of a state, such as that of steps; an ArgumentError for one that cannot be it."""
    is_number = given.shape == () and given.dtype.kind in "iuf" and 0 <= given < np.inf
    if not is_number or type(like)(given) != given:
        what = "an integer" if isinstance(like, int) else "a number"
        raise ArgumentError(f"{name}: got state {entry!r} = {given}, expected {what} from 0")
    return type(like)(given)


class Memory:
    """What an optimizer remembers of one parameter.

    Attributes:
        param: A weak reference to it.
        shape: Its shape at its first step.
        clock: The numbers that change with each step.
        slots: The arrays, by name; they belong to the optimizer, which may write into them.
    """

    __slots__ = ("clock", "param", "shape", "slots")

    def __init__(self, param: weakref.ref[Tensor], shape: tuple[int, ...]) -> None:
        self.param = param
        self.shape = shape
        self.clock: dict[str, Any] = {}
        self.slots: dict[str, Any] = {}


class Memories(dict[int, Memory]):
    """What is remembered of each parameter, for as long as the parameter lives.

    Tensors compare element by element, so they are identified by `id`; the weak reference beside
    what is remembered removes it before another object can have that id.
    """

    def of(self, param: Tensor, name: str) -> Memory:
        """What is remembered of a parameter; empty if it has not made a step yet."""
        memory = self.get(id(param))
        shape = param.value.shape
        if memory is None:
            number = id(param)
            reference = weakref.ref(param, lambda _: self.pop(number, None))
            memory = self[number] = Memory(reference, shape)
        elif memory.shape != shape:
            raise ShapeError(
                f"{name}: got a parameter of shape {shape}; at its first step it had shape "
                f"{memory.shape}; make a new optimizer"
            )
        return memory

    def copied(self, memo: dict[int, Any], name: str) -> Memories:
        """A deep copy: what is remembered of the copies of the parameters."""
        new = Memories()
        for memory in list(self.values()):
            param: Any = copy.deepcopy(memory.param(), memo)
            own = new.of(param, name)
            own.slots, own.clock = copy.deepcopy((memory.slots, memory.clock), memo)
        return new
