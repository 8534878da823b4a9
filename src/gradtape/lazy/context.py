"""The context of a lazy graph: makes its inputs, and evaluates its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradtape.core.nested import unshell
from gradtape.core.recent import Recent
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ContextError, a_type
from gradtape.graph.ir import Graph, Operand, Value
from gradtape.graph.trace import Symbol
from gradtape.lazy.deferred import DeferredValue
from gradtape.lazy.feeds import Feed, Feeder, pairs_of
from gradtape.lazy.level import LazyLevel, check_outside
from gradtape.lazy.programs import MOST_GRAPHS, Evaluation, Programs, subgraph
from gradtape.lazy.sources import (
    Constant,
    Feeds,
    Placeholder,
    Variable,
    Variables,
    parsed_sizes,
)
from gradtape.lazy.specialize import Specialized
from gradtape.ops.arguments import as_dtype
from gradtape.typing import ArrayLike


class Context:
    """A lazy graph that is being built; `gt.run` makes one and passes it to the function.

    Args:
        variables: What `variable` finds variables in.
    """

    def __init__(self, variables: Variables | None = None) -> None:
        self._variables = variables
        self._level = LazyLevel()
        self._names: set[str] = set()
        self._variable_handles: dict[Any, Tensor] = {}
        self._evaluations: Recent[Evaluation] = Recent()
        self._specializations: Recent[Specialized] = Recent()
        self._programs: Programs | None = None if variables is None else variables.programs

    @property
    def variables(self) -> Variables | None:
        """What it finds variables in: the environment whose `run` made it."""
        return self._variables

    # ---- inputs ----------------------------------------------------------------------------

    def placeholder(self, name: str, shape: Any, dtype: Any = np.float64) -> Tensor:
        """Add an input that is fed when something that depends on it is evaluated.

        Args:
            name: Its name, which errors mention.
            shape: Its shape, with -1 for an axis of any size; None for any shape at all.
            dtype: The type of its elements; feeds of the same kind are cast to it.

        Returns:
            A lazy tensor.

        Raises:
            ArgumentError: There is a placeholder of this name, or the shape is none.

        >>> gt.run(lambda ctx: (2.0 * (x := ctx.placeholder("x", (2,)))).eval(ctx, {x: [1.0, 2.0]}))
        array([2., 4.])
        """
        if not isinstance(name, str):
            raise ArgumentError(f"placeholder: got {a_type(name)}, expected a name and a shape")
        if name in self._names:
            raise ArgumentError(
                f"placeholder: got the name {name!r} twice, expected a new one; use the tensor "
                "that the first call returned"
            )
        sizes = parsed_sizes(name, shape)
        made = Placeholder(name, sizes, as_dtype(dtype, "placeholder"))
        self._check_open("placeholder")
        self._names.add(name)
        return self._level.handle(self._level.add(made))

    def variable(self, name_or_id: Any) -> Tensor:
        """The lazy tensor of a variable, the same each time; its value is read when it is needed.

        Args:
            name_or_id: The name of the variable in its environment, or its id.

        Returns:
            A lazy tensor.

        Raises:
            ContextError: The context has no variables.
            GradtapeError: There is no such variable.
        """
        if self._variables is None:
            raise ContextError(
                f"variable: got {name_or_id!r} in a context without variables; use "
                "gt.VariableEnvironment and env.run(f) in place of gt.run(f)"
            )
        self._check_open("variable")
        named = isinstance(name_or_id, str)
        found = self._variables.id_of(name_or_id) if named else name_or_id
        if found not in self._variable_handles:
            source = Variable(self._variables, found, str(name_or_id))
            self._variable_handles[found] = self._level.handle(self._level.add(source))
        return self._variable_handles[found]

    def variable_id(self, tensor: Tensor) -> Any:
        """The id of the variable that a lazy tensor stands for.

        Raises:
            ArgumentError: It is not that of a variable.
        """
        operand = self.operand(tensor, "variable_id")
        source = self._level.sources.get(operand) if isinstance(operand, Value) else None
        if not isinstance(source, Variable):
            raise ArgumentError(
                "variable_id: got a lazy tensor that is not a variable, expected the result of "
                "ctx.variable(name)"
            )
        return source.variable

    def constant(self, value: ArrayLike) -> Tensor:
        """A lazy tensor with the elements of an array as they are now.

        Args:
            value: An array or a number.

        >>> gt.run(lambda ctx: (ctx.constant([1.0, 2.0]) * 3.0).eval(ctx))
        array([3., 6.])
        """
        self._check_open("constant")
        given = unshell(value)
        if not isinstance(given, Tensor):
            return self._level.handle(self._level.add(Constant(np.array(given))))
        check_outside(given)
        return self._level.handle(self._level.add(Constant(given)))

    # ---- evaluation ------------------------------------------------------------------------

    def evaluator(self) -> Evaluator:
        """An evaluation of several tensors at once, which share what they have in common.

        >>> def program(ctx):
        ...     x = ctx.placeholder("x", ())
        ...     return ctx.evaluator().push(x + 1.0).push(x * 2.0).feed(x, 3.0).run()
        >>> gt.run(program)
        [np.float64(4.0), np.float64(6.0)]
        """
        return Evaluator(self)

    def operand(self, tensor: Any, what: str) -> Operand:
        """What stands for a lazy tensor of this context in its graph.

        Raises:
            ArgumentError: It is not a lazy tensor, or one of a transform.
            ContextError: It is one of another context.
            LeakedTensorError: The context has ended.
        """
        value = unshell(tensor)
        if isinstance(value, Tensor) and isinstance(value.record, Symbol):
            if value.record.segment is self._level:
                self._check_open(what)
                return value.record.operand
            check_outside(value)
        inside = isinstance(value, Tensor) and value.record is not None
        got = f"a tensor recorded by {value.record.segment.label}" if inside else a_type(tensor)
        raise ArgumentError(f"{what}: got {got}, expected a lazy tensor of this context")

    def evaluated(self, operands: Sequence[Operand], feeder: Feeder) -> list[Any]:
        """The values of operands of the graph."""
        self._check_open("eval")
        feeds: dict[Placeholder, Any] = {}
        for tensor, value in feeder:
            operand = self.operand(tensor, "feed")
            source = self._level.sources.get(operand) if isinstance(operand, Value) else None
            if not isinstance(source, Placeholder):
                raise ArgumentError(
                    "feed: got a value for a lazy tensor that is not a placeholder, expected the "
                    "result of ctx.placeholder(name, shape)"
                )
            feeds[source] = source.checked(value)
        if any(isinstance(operand, DeferredValue) for operand in operands):
            return self._specialized(operands, feeds)(feeds)
        key = tuple(operands)
        known = self._evaluations.get(key)
        if known is None:
            inputs, nodes = subgraph(self._level.nodes, operands)
            graph = Graph("gt.run", inputs, nodes, operands)
            sources = [self._level.sources[value] for value in inputs]
            made = Evaluation(graph, sources, self._programs)
            known = self._evaluations.put(key, made, most=MOST_GRAPHS)
        return known(feeds)

    def _specialized(self, operands: Sequence[Operand], feeds: Feeds) -> Specialized:
        """The graph of targets for the sizes that are fed."""
        sizes = {source: value.shape for source, value in feeds.items() if source.aval is None}
        key = (tuple(operands), frozenset(sizes.items()))
        known = self._specializations.get(key)
        if known is not None and not known.outdated:
            return known
        made = Specialized(self._level, operands, feeds, self._programs)
        return self._specializations.put(key, made, most=MOST_GRAPHS, instead=known)

    # ---- life ------------------------------------------------------------------------------

    def close(self) -> None:
        """End the context: its tensors can no longer be used."""
        self._level.active = False

    def _check_open(self, what: str) -> None:
        if not self._level.active:
            raise ContextError(
                f"{what}: got a context whose gt.run has already returned; evaluate inside the "
                "function, and return the value"
            )


class Evaluator:
    """Collects tensors to evaluate together, and what is fed; made by `ctx.evaluator()`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._targets: list[Operand] = []
        self._feeder = Feeder()

    def push(self, target: Tensor) -> Evaluator:
        """Add a tensor to evaluate.

        Args:
            target: A lazy tensor.

        Returns:
            The evaluator itself.

        Raises:
            GradtapeError: It is not a lazy tensor of the context.
        """
        self._targets.append(self._context.operand(target, "push"))
        return self

    def extend(self, targets: Iterable[Tensor]) -> Evaluator:
        """Add several tensors to evaluate; returns the evaluator itself."""
        for target in targets:
            self.push(target)
        return self

    def feed(self, placeholder: Tensor, value: Any) -> Evaluator:
        """Feed a value to a placeholder; returns the evaluator itself."""
        self._feeder.push(placeholder, value)
        return self

    def set_feeder(self, feeder: Feed) -> Evaluator:
        """Feed what a feeder has, besides what is fed one by one.

        Args:
            feeder: A `gt.graph.Feeder`, or a dict from placeholders to values.

        Returns:
            The evaluator itself.
        """
        for placeholder, value in pairs_of(feeder):
            self._feeder.push(placeholder, value)
        return self

    def run(self) -> list[Any]:
        """Evaluate the tensors.

        Returns:
            Their values in the order they were added: arrays, and NumPy's numbers for 0-d ones.

        Raises:
            ArgumentError: A placeholder that is needed was not fed, or something else was.
            ShapeError: A feed has the wrong shape.
            DTypeError: A feed has a dtype of another kind.
        """
        return self._context.evaluated(self._targets, self._feeder)
