"""Graphs of functions: the ops that depend on the arguments, run again without the rest."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape.compat.autograd.tracer import Node, trace
from gradtape.compat.autograd.util import subvals, toposort
from gradtape.compat.autograd.wrap_util import wraps
from gradtape.errors import ArgumentError

Function = Callable[..., Any]


class ConstGraphNode(Node):
    """A node that can compute its value again from those of its parents."""

    __slots__ = ("parents", "partial_fun")

    def __init__(
        self,
        value: Any,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        fixed = subvals(args, [(n, None) for n in parent_argnums])

        def partial_fun(values: Any) -> Any:
            return fun(*subvals(fixed, zip(parent_argnums, values, strict=True)), **kwargs)

        self.parents, self.partial_fun = parents, partial_fun

    def initialize_root(self) -> None:
        """A node without parents."""
        self.parents = ()


def const_graph_unary(fun: Function) -> Function:
    """`const_graph` for a function of one argument."""
    graph: list[Any] = []

    def maybe_cached_fun(x: Any) -> Any:
        if not graph:
            start = ConstGraphNode.new_root()
            value, end = trace(start, fun, x)
            if end is None:
                raise ArgumentError(
                    "const_graph: the result does not depend on the arguments, expected one that "
                    "does; call the function itself"
                )
            graph.extend(reversed(list(toposort(end))))
            return value
        values = {graph[0]: x}
        for node in graph[1:]:
            values[node] = node.partial_fun([values[parent] for parent in node.parents])
        return values[graph[-1]]

    return maybe_cached_fun


def const_graph(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """A function that is run once; later calls repeat the ops that depended on its arguments.

    The function must take the same branches each time, and arguments of the same shapes. `gt.jit`
    also makes machine code of it.

    Args:
        fun: The function.
        *args: Its first arguments, which are constants.
        **kwargs: Its keyword arguments.

    >>> from gradtape.compat.autograd.misc import const_graph
    >>> f = const_graph(lambda x, y: print("run") or x * y, 3.0)
    >>> f(2.0), f(5.0)
    run
    (np.float64(6.0), np.float64(15.0))
    """
    of_tuple = const_graph_unary(lambda rest: functools.partial(fun, *args, **kwargs)(*rest))

    @wraps(fun)
    def cached(*rest: Any) -> Any:
        return of_tuple(rest)

    return cached


class FullGraphNode(Node):
    """A node that knows how its value was computed.

    Attributes:
        value: The value.
        recipe: The function, its arguments, its keyword arguments, and pairs of the position of an
            argument and the node that it comes from.
    """

    __slots__ = ("recipe", "value")

    def __init__(
        self,
        value: Any,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        self.value = value
        self.recipe = (fun, args, kwargs, list(zip(parent_argnums, parents, strict=True)))

    def initialize_root(self) -> None:
        """A node of an argument."""
        self.value = None
        self.recipe = (lambda x: x, (), {}, [])


def full_graph(fun: Function, *args: Any, **kwargs: Any) -> Any:
    """The node of a function's result; its parents lead back to the arguments."""
    return trace(FullGraphNode.new_root(), lambda args: fun(*args, **kwargs), args)[1]
