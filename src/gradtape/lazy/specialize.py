"""Making the deferred calls of a lazy graph, once the sizes are known: an ordinary graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.core.call import call
from gradtape.core.nested import unshell
from gradtape.core.state import current, keeping, no_grad, run_inside, seen_by
from gradtape.core.tensor import Tensor
from gradtape.errors import GradtapeError
from gradtape.graph.capture import Capture, Guard
from gradtape.graph.ir import Operand, Value
from gradtape.graph.trace import Symbol, TraceLevel, trace
from gradtape.lazy.deferred import DeferredCall
from gradtape.lazy.level import LazyLevel
from gradtape.lazy.programs import Evaluation, Programs, subgraph
from gradtape.lazy.sources import Drawn, Feeds, Source


class Specialized:
    """The graph of some targets for certain sizes, ready to run.

    Args:
        lazy: The level of the lazy graph.
        operands: The operands of the targets.
        feeds: What is fed; only the shapes count.
        programs: The cache of compiled graphs, if they outlive the context.

    Raises:
        GradtapeError: A call raises for these sizes; the error says what was fed.
    """

    def __init__(
        self,
        lazy: LazyLevel,
        operands: Sequence[Operand],
        feeds: Feeds,
        programs: Programs | None,
    ) -> None:
        level = _SpecializedLevel(lazy, feeds)
        traced = trace(lambda: level.values_of(operands), [], "gt.run", level=level)
        self._structure = traced.structure
        self._guards: tuple[Guard, ...] = traced.guards
        self._evaluation = Evaluation(
            traced.graph, [_source_of(capture) for capture in traced.captures], programs
        )

    @property
    def outdated(self) -> bool:
        """Whether an array outside that decided the graph has changed."""
        return any(guard.changed() for guard in self._guards)

    def __call__(self, feeds: Feeds) -> list[Any]:
        """The values of the targets; a call with several results gives a container."""
        outputs = self._evaluation(feeds)
        return containers.unflatten(self._structure, outputs)  # type: ignore[no-any-return]


def _fresh(leaf: Any) -> Any:
    return leaf.fresh() if isinstance(leaf, Tensor) else leaf


def _source_of(capture: Capture) -> Source:
    return capture.source if isinstance(capture, _SourceCapture) else Drawn(capture)


class _SourceCapture(Capture):
    """An input of the specialised graph that stands for one of the lazy graph."""

    __slots__ = ("source",)

    def __init__(self, source: Source, value: Any) -> None:
        self.source = source
        self.value = value
        self._handle = self._seen = self._root = self._whole = self._checksum = None


class _SpecializedLevel(TraceLevel):
    """A trace in which the tensors of a lazy graph stand for their values in this trace.

    Functions may have such tensors in closures, where nobody can replace them beforehand.
    """

    __slots__ = ("_feeds", "_lazy", "_made", "_regions")
    lazy = True

    def __init__(self, lazy: LazyLevel, feeds: Feeds) -> None:
        super().__init__("gt.run")
        self._lazy = lazy
        self._feeds = feeds
        # The policies of checkpointed functions here, by those of the lazy graph.
        self._regions: dict[Any, Any] = {}
        # Tensors of this trace, or containers of them, by operands of the lazy graph.
        self._made: dict[Operand, Any] = {}

    def capture(self, source: Any) -> Value:
        value = unshell(source)
        record = value.record if isinstance(value, Tensor) else None
        if isinstance(record, Symbol) and record.segment is self._lazy:
            (found,) = self.values_of([record.operand])
            return self.operand(found)  # type: ignore[return-value]
        return super().capture(source)

    def values_of(self, operands: Sequence[Operand]) -> list[Any]:
        """What operands of the lazy graph are in this trace; makes the calls they depend on."""
        inputs, nodes = subgraph(
            self._lazy.nodes, [operand for operand in operands if operand not in self._made]
        )
        for value in inputs:
            if value not in self._made:
                source = self._lazy.sources[value]
                hidden = self._hidden(_SourceCapture(source, source.value(self._feeds)))
                self._made[value] = self.symbol(hidden)
        for node in nodes:
            if node.outputs[0] not in self._made:
                self._run(node)
        return [self._value(operand) for operand in operands]

    def _value(self, operand: Operand) -> Any:
        return self._made[operand] if isinstance(operand, Value) else self.symbol(operand)

    def _run(self, node: Any) -> None:
        """Make the calls of a node of the lazy graph."""
        before, self.line = self.line, node.line
        try:
            region = node.region and node.region.again(self._regions)
            results = run_inside(keeping(region), self._results, node)
        except GradtapeError as error:
            raise self._with_feeds(error, node.line) from error
        finally:
            self.line = before
        several = node.several if isinstance(node, DeferredCall) else node.op.outputs != 1
        parts = results if several else (results,)
        for value, result in zip(node.outputs, parts, strict=True):
            self._made[value] = containers.map_leaves(_fresh, result)

    def _results(self, node: Any) -> Any:
        if isinstance(node, DeferredCall):
            return self._called(node)
        return call(node.op, [self._value(x) for x in node.operands], node.params)

    def _called(self, node: DeferredCall) -> Any:
        def run() -> Any:
            return node(self._value)

        made: Callable[[], Any] = run
        if node.modes:
            every = (*node.modes, *current().modes)
            made = lambda: run_inside(seen_by(every), run)  # noqa: E731
        return made() if node.recorded else run_inside(no_grad(), made)

    def _with_feeds(self, error: GradtapeError, line: str) -> GradtapeError:
        """An error of a deferred call that says what was fed."""
        fed = ", ".join(
            f"{placeholder.name!r} of shape {value.shape}"
            for placeholder, value in self._feeds.items()
        )
        told = f" (at {line}, with {fed} fed)"
        if len(error.args) != 1 or told in str(error):
            return error
        return type(error)(f"{error}{told}")
