"""Small helpers: tuples with entries replaced, nodes in topological order."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gradtape.locks import load


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A sequence with the values at some positions replaced, as a tuple."""
    replaced = list(x)
    for position, value in ivs:
        replaced[position] = value
    return tuple(replaced)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """A sequence with the value at one position replaced, as a tuple."""
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """The function itself, where autograd once had to unwrap methods."""
    return f


def toposort(
    end_node: Any, parents: Callable[[Any], Iterable[Any]] = operator.attrgetter("parents")
) -> Iterator[Any]:
    """The nodes that one was computed from, each before its parents, beginning with itself.

    >>> from gradtape.compat.autograd.util import toposort
    >>> parents = {"loss": ["h", "x"], "h": ["x"], "x": []}
    >>> list(toposort("loss", parents.__getitem__))
    ['loss', 'h', 'x']
    """
    uses: dict[Any, int] = {}
    stack = [end_node]
    while stack:
        node = stack.pop()
        uses[node] = uses.get(node, 0) + 1
        if uses[node] == 1:
            stack.extend(parents(node))
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)


def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    verbose: bool = True,
    eps: float = 1e-4,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    rs: Any = None,
) -> None:
    """Check a gradient; `test_util.check_grads` is what autograd recommends instead."""
    warnings.warn("quick_grad_check is deprecated; use check_grads", stacklevel=2)
    check_grads = load("gradtape.compat.autograd.test_util").check_grads
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
