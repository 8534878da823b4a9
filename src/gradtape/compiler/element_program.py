"""Loops and branches element by element: small arrays are numbers in registers.

Where all that a loop computes is small, each element of each array is an expression of its own. The
body of the loop is then one long expression without arrays, however many ops it has, and the state
of the loop stays in registers.

An `ElementProgram` is a list of statements: stores, counted loops, loops with a condition, and
branches. Expressions are those of `core.scalar`; a `variable` stands for a number that a loop or
branch gives a value to. Nothing here depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.kernel import (
    Axis,
    Buffer,
    Store,
    walk,
)
from gradtape.core.lazy import lazy
from gradtape.core.scalar import (
    Scalar,
)
from gradtape.graph.while_op import Save

# ---- statements ---------------------------------------------------------------------------------


class Carried(NamedTuple):
    """A number that a loop carries from step to step.

    Attributes:
        variable: Reads it.
        start: Its value before the loop.
        next: Its value after a step.
    """

    variable: Scalar
    start: Scalar
    next: Scalar


class Block(NamedTuple):
    """Statements, and expressions that are computed after them."""

    statements: tuple[Statement, ...]
    results: tuple[Scalar, ...] = ()


class For(NamedTuple):
    """A loop over an axis; afterwards variables have the values of the last step."""

    axis: Axis
    carried: tuple[Carried, ...]
    body: Block


class WhileHolds(NamedTuple):
    """A loop that goes on as long as the result of `condition` is true."""

    carried: tuple[Carried, ...]
    condition: Block
    body: Block


class GoBack(NamedTuple):
    """The backward pass of a loop with a condition: it is run forward first, keeping states.

    Attributes:
        state: The numbers that the loop carries.
        condition: Whether it goes on.
        body: The statements of a step.
        save: Which states are kept.
        pulled: What the steps back carry; `next` is computed from the state before a step.
        pull: The statements of a step back.
    """

    state: tuple[Carried, ...]
    condition: Block
    body: Block
    save: Save
    pulled: tuple[Carried, ...]
    pull: Block


class Choose(NamedTuple):
    """A branch: the block with the given number is run; its results are those of the variables."""

    number: Scalar
    branches: tuple[Block, ...]
    variables: tuple[Scalar, ...]


Statement = Store | For | WhileHolds | GoBack | Choose


def variable(dtype: np.dtype[Any], *, weak: bool = False) -> Scalar:
    """A number that a statement gives a value to."""
    return Scalar("variable", (), dtype, weak=weak, extra=object())


class ElementProgram:
    """A loop or branch with all that is in it.

    Attributes:
        name: For listings and symbols.
        statements: In order.
        parallel: The axis of the outermost loop, if its steps do not depend on each other.
        locals: Arrays of its own.
        ops: The names of the ops it computes.
        largest: The number of elements of the largest array in it.
        endless: Whether it has a loop that may not end.
        nested: Whether it has loops or branches in others.
    """

    def __init__(
        self,
        name: str,
        statements: Sequence[Statement],
        parallel: Axis | None,
        locals: Sequence[Buffer],
        ops: Sequence[str],
        largest: int,
    ) -> None:
        self.name = name
        self.statements = tuple(statements)
        self.parallel = parallel
        self.locals = tuple(locals)
        self.ops = tuple(ops)
        self.largest = largest
        every = list(within(self.statements))
        self.nested = sum(not isinstance(each, Store) for each in every) > 1
        self.axes = tuple(each.axis for each in every if isinstance(each, For))
        self.endless = any(isinstance(each, WhileHolds | GoBack) for each in every)

    @lazy
    def expressions(self) -> tuple[Scalar, ...]:
        """All expressions and their parts, each once, parts before wholes."""
        seen: set[int] = set()
        return tuple(
            part
            for each in within(self.statements)
            for whole in expressions_of(each)
            for part in walk(whole, seen)
        )

    @lazy
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays it reads and writes, but for its own."""
        reads = (p.extra.buffer for p in self.expressions if p.name in ("load", "gather"))
        writes = (each.place.buffer for each in within(self.statements) if isinstance(each, Store))
        own = set(self.locals)
        return tuple(b for b in dict.fromkeys((*reads, *writes)) if b not in own)

    @property
    def longest(self) -> int:
        """The number of steps of its longest loop of known length, with those around it."""
        return longest_steps(self.statements)

    @property
    def outer(self) -> tuple[Axis, ...]:
        """All its axes: each is a loop."""
        return self.axes

    inner: tuple[Axis, ...] = ()


def longest_steps(statements: Sequence[Statement]) -> int:
    """The number of steps of the longest loop of known length, with those around it; at least 1."""
    steps = 1
    for each in statements:
        inside = max((longest_steps(block.statements) for block in blocks_of(each)), default=1)
        steps = max(steps, inside * each.axis.size if isinstance(each, For) else inside)
    return steps


def within(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Statements and all that are in them, in order."""
    for each in statements:
        yield each
        for block in blocks_of(each):
            yield from within(block.statements)


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks of a statement."""
    if isinstance(statement, For):
        return (statement.body,)
    if isinstance(statement, WhileHolds):
        return (statement.condition, statement.body)
    if isinstance(statement, GoBack):
        return (statement.condition, statement.body, statement.pull)
    return statement.branches if isinstance(statement, Choose) else ()


def expressions_of(statement: Statement) -> Iterator[Scalar]:
    """The expressions of a statement, with the results of its blocks."""
    if isinstance(statement, Store):
        yield from statement.expressions
    if isinstance(statement, For | WhileHolds):
        for each in statement.carried:
            yield from each
    if isinstance(statement, GoBack):
        for each in (*statement.state, *statement.pulled):
            yield from each
    if isinstance(statement, Choose):
        yield statement.number
        yield from statement.variables
    for block in blocks_of(statement):
        yield from block.results
