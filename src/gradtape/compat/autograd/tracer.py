"""Traces: what a function computes, seen op by op by nodes of a class of one's own.

autograd's tracer is what its differentiation is built on. Here it is a level beside others: ops on
its tensors are handed down, and a node is made for each.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradtape import containers
from gradtape.compat.autograd.primitives import (
    notrace_primitives as notrace_primitives,
    primitive as primitive,
    primitive_jvps,
    primitive_of,
    primitive_vjps,
)
from gradtape.compat.autograd.util import subvals as subvals, toposort as toposort
from gradtape.compat.autograd.wrap_util import wraps
from gradtape.core.call import call, dispatch
from gradtape.core.level import Level, Node as LevelNode
from gradtape.core.nested import Nested, unshell
from gradtape.core.op import Op
from gradtape.core.state import next_level
from gradtape.core.tensor import Tensor, as_value, innermost
from gradtape.dropin.held_tensors import holds_tensor
from gradtape.errors import GradtapeWarning, UnsupportedError, a_type

Function = Callable[..., Any]


# ---- boxes --------------------------------------------------------------------------------------


class _BoxMeta(type):
    """Makes tensors instances of a class, so that `isinstance(x, ArrayBox)` works."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return bool(cls.__dict__.get("_holds_arrays")) and isinstance(instance, Tensor)


class Box(metaclass=_BoxMeta):
    """What autograd tracks a value in; here, a tensor. It is for `isinstance` only."""

    _holds_arrays = True
    types: ClassVar[set[type]] = set()

    @classmethod
    def register(cls, value_type: type) -> None:
        """Say that values of a type can be differentiated; arrays of any class can.

        Raises:
            UnsupportedError: It is not a class of arrays.
        """
        if not issubclass(value_type, np.ndarray | np.generic | float | complex):
            raise UnsupportedError(
                f"Box.register: got {value_type.__name__}, expected a class of arrays; other "
                "classes are containers of arrays, made known by gt.tree.register"
            )


def isbox(x: Any) -> bool:
    """Whether a value is a tensor."""
    return isinstance(x, Tensor)


def getval(x: Any) -> Any:
    """The plain value of a tensor, also of one that is being differentiated; others as they are.

    Containers of tensors become containers of plain values.

    >>> from gradtape.compat.autograd import grad
    >>> from gradtape.compat.autograd.tracer import getval
    >>> grad(lambda x: x * getval(x))(3.0)
    np.float64(3.0)
    """
    if isinstance(x, Tensor):
        value = innermost(x, "getval")
        return value if value.ndim else value[()]
    if not holds_tensor(x):
        return x
    # An array of tracked numbers, or a container.
    return getval(as_value(x)) if isinstance(x, np.ndarray) else containers.map_leaves(getval, x)


# Programs read `x._value` to print it, and ask for it to tell boxes from arrays.
Tensor._value = property(getval)  # type: ignore[attr-defined]


def new_box(value: Any, trace: Any, node: Any) -> Tensor:
    """A tensor that a trace sees.

    Raises:
        UnsupportedError: The trace is not one of `trace`.
    """
    if not isinstance(trace, NodeLevel):
        raise UnsupportedError(
            f"new_box: got {a_type(trace)}, expected the trace that a function runs in; use "
            "autograd.tracer.trace(start_node, fun, x)"
        )
    return trace.box(value, node)


def notrace_primitive(f_raw: Function) -> Function:
    """Make a function see plain arrays, and its result a constant of all derivatives."""

    @wraps(f_raw)
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    attributes: Any = f_wrapped
    attributes._is_primitive = True
    return f_wrapped


def register_notrace(trace_type: type, primitive_fun: Function) -> None:
    """Make the results of a primitive constants for nodes of a class.

    Args:
        trace_type: `VJPNode` for reverse mode, `JVPNode` for forward mode, or a class of `Node`.
        primitive_fun: The primitive.
    """
    notrace_primitives[trace_type].add(primitive_fun)
    if trace_type is VJPNode:
        primitive_vjps[primitive_fun] = lambda argnums, *_: lambda _g: [None] * len(argnums)
    if trace_type is JVPNode:
        primitive_jvps[primitive_fun] = lambda *_: None


# ---- nodes --------------------------------------------------------------------------------------


class Node:
    """What a trace makes for each op that a function runs; to be subclassed.

    A subclass defines `__init__(self, value, fun, args, kwargs, parent_argnums, parents)`, where
    `fun(*args, **kwargs)` gave the value and `parents` are the nodes of the arguments at
    `parent_argnums`, and `initialize_root(self, ...)` for the node that a trace starts with.
    """

    __slots__ = ()

    def __init__(
        self,
        value: Any,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        raise UnsupportedError(f"{type(self).__name__}: has no __init__; define one")

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Set up the node that a trace starts with."""
        raise UnsupportedError(f"{type(self).__name__}: has no initialize_root; define one")

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Any:
        """A node for a trace to start with."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


class VJPNode(Node):
    """Stands for reverse mode in `register_notrace`; gradtape's own records do the work."""

    __slots__ = ()

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Refuse: `make_vjp` runs a function, and goes back through its records."""
        raise UnsupportedError(
            "VJPNode: got a node to start with, but gradtape keeps records of its own; use "
            "autograd.make_vjp(f)(x), which returns the map from cotangents, and the value"
        )


class JVPNode(Node):
    """Stands for forward mode in `register_notrace`; gradtape's own levels do the work."""

    __slots__ = ()

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Refuse: `make_jvp` runs a function with a tangent."""
        raise UnsupportedError(
            "JVPNode: got a node to start with, but gradtape has levels of its own; use "
            "autograd.make_jvp(f)(x), which returns the map from tangents"
        )


class TraceStack:
    """Stands for autograd's stack of traces, with which programs for autograd open traces."""

    def new_trace(self) -> Any:
        """Refuse: `trace` runs a function in a trace of its own."""
        raise UnsupportedError(
            "trace_stack: got new_trace(), but levels of gradtape are made by its transforms; use "
            "autograd.tracer.trace(start_node, f, x), whose second result is None if f(x) does "
            "not depend on x"
        )


trace_stack = TraceStack()


class _Traced(LevelNode):
    """The node of a tensor of a trace: the level, and the node of the user's class."""

    __slots__ = ("node",)

    def __init__(self, level: NodeLevel, node: Any) -> None:
        self.segment, self.sequence, self.node = level, 0, node


class NodeLevel(Level):
    """One trace in progress.

    Attributes:
        kind: The class of its nodes.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        super().__init__(next_level(), "trace")
        self.kind = kind

    def box(self, value: Any, node: Any) -> Tensor:
        """A tensor of this level."""
        return Nested(unshell(value), _Traced(self, node))

    def split(self, value: Any) -> tuple[Any, Any]:
        """Value and node of a value; no node (None) if it does not depend on this level."""
        value = unshell(value)
        node = value.record if isinstance(value, Tensor) else None
        if isinstance(node, _Traced) and node.segment is self:
            return value.value, node.node
        return value, None

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        values, nodes = zip(*map(self.split, args), strict=True)
        out = dispatch(op, values, params)
        if not op.tracked or primitive_of(op) in notrace_primitives[self.kind]:
            return out
        argnums = tuple(n for n, node in enumerate(nodes) if node is not None)
        parents = tuple(node for node in nodes if node is not None)
        fun: Any = functools.partial(_run, op)
        fun.__name__ = op.name
        node = self.kind(_shown(out), fun, tuple(map(_shown, values)), params, argnums, parents)
        if op.outputs == 1:
            return self.box(out, node)
        return tuple(self.part(out, part, node, n) for n, part in enumerate(out))

    def part(self, whole: Any, value: Any, parent: Any, number: int) -> Tensor:
        """One leaf of a container that has a node; it gets one of its own."""
        fun: Any = functools.partial(_leaf, number)
        fun.__name__ = "getitem"
        node = self.kind(_shown(value), fun, (whole,), {}, (0,), (parent,))
        return self.box(value, node)


def _leaf(number: int, whole: Any) -> Any:
    return containers.flatten(whole)[0][number]


def _run(op: Op, *args: Any, **params: Any) -> Any:
    return call(op, args, params)


def _shown(value: Any) -> Any:
    """A value as nodes get it: tensors of outer levels are tensors."""
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def trace(start_node: Any, fun: Function, x: Any) -> tuple[Any, Any]:
    """Run a function, and make a node for each op on what depends on its argument.

    Args:
        start_node: The node of the argument, which tells the class of the others. The leaves of a
            container each have a node of their own, made by `getitem`.
        fun: The function.
        x: Its argument.

    Returns:
        The value, and its node; None if it depends on nothing, which is a warning. A container of
        results has a node that puts them together.
    """
    level = NodeLevel(type(start_node))
    try:
        leaves, structure = containers.flatten(x)
        if structure is containers.SINGLE:
            boxes = [level.box(_primal(x), start_node)]
        else:
            boxes = [level.part(x, _primal(leaf), start_node, n) for n, leaf in enumerate(leaves)]
        outs, out_structure = containers.flatten(fun(containers.unflatten(structure, boxes)))
        split = [level.split(out) for out in outs]
    finally:
        level.active = False
    values = [value for value, _ in split]
    parents = tuple(node for _, node in split if node is not None)
    value = containers.unflatten(out_structure, values)
    if not parents:
        warnings.warn("Output seems independent of input.", GradtapeWarning, stacklevel=2)
        return value, None
    if out_structure is containers.SINGLE:
        return value, parents[0]
    argnums = tuple(n for n, (_, node) in enumerate(split) if node is not None)
    fun_of: Any = functools.partial(_together, out_structure)
    fun_of.__name__ = "make_container"
    return value, level.kind(value, fun_of, tuple(values), {}, argnums, parents)


def _together(structure: containers.Structure, *values: Any) -> Any:
    return containers.unflatten(structure, list(values))


def _primal(leaf: Any) -> Any:
    return leaf if isinstance(leaf, Tensor) else np.asarray(leaf)
