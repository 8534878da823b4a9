"""Calls of solvers as ops with rules of their own.

The steps of a solver are not recorded. If it is written with functions that can be traced and
batched, compiled functions contain it, and a batch is solved at once. If it is not, as SciPy's
are not, it runs between compiled parts, and for each element of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradtape import containers
from gradtape.autodiff.custom_run import batch_of_cotangents
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.host_call import HostRun
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import jvp, vmap
from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import is_differentiable
from gradtape.core.lowering import Composite, Whole
from gradtape.core.nested import unshell
from gradtape.core.op import Facts, Op
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError, GradtapeError
from gradtape.graph.ir import Graph
from gradtape.graph.known_values import is_traced
from gradtape.graph.loop_state import leaf_aval, traced_function
from gradtape.graph.run import replay
from gradtape.ops.shape import broadcast_to


class Rules(Protocol):
    """The derivatives of a solver."""

    @property
    def reads(self) -> Whole:
        """What the results depend on, for the sparsity of derivatives."""
        ...

    def pull(
        self, wanted: Sequence[bool], cts: Sequence[Any], outs: Sequence[Any], inputs: Sequence[Any]
    ) -> list[Any]:
        """The cotangents of the wanted inputs, given those of the results; None for zero."""
        ...

    def push(self, tangents: Sequence[Any], outs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """The tangents of the results, given those of the inputs; None for zero."""
        ...


class CapturedError(GradtapeError):
    """A function uses a tensor that is recorded, batched or traced, and is not an argument."""


def solved(
    name: str,
    function: Callable[..., tuple[Any, ...]],
    rules: Rules,
    inputs: Sequence[Any],
    avals: Sequence[Aval],
    guesses: int = 0,
) -> tuple[Any, ...]:
    """Call a solver as an op.

    Args:
        name: The name in errors and graphs.
        function: The solver, `function(*inputs)`.
        rules: Its derivatives.
        inputs: Arrays, or tensors of any level.
        avals: The shapes and dtypes of the results.
        guesses: How many inputs, the first ones, are where it begins.

    Returns:
        The results.

    Raises:
        CapturedError: It depends on something else that a gradient has to reach.
    """
    run = SolverRun(name, function, rules, len(inputs), avals, guesses)
    if is_traced(inputs):
        inputs = run.trace(inputs)
    return tuple(run.run(inputs))


class SolverRun(HostRun):
    """One call of a solver, which returns a tuple of arrays."""

    kind = "custom"
    effect = None

    def __init__(
        self,
        name: str,
        function: Callable[..., tuple[Any, ...]],
        rules: Rules,
        inputs: int,
        avals: Sequence[Aval],
        guesses: int,
    ) -> None:
        super().__init__(name, function, rules.pull, rules.push, _tuple_of(inputs), {})
        self.rules = rules
        self._guesses = guesses
        self._graph: Graph | None = None
        self.returns(avals, _tuple_of(len(avals)), None)

    def trace(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Trace the solver, if it can be; returns the inputs with the arrays that it uses."""
        try:
            made = traced_function(
                self.name, self.function, [leaf_aval(self.name, x) for x in inputs]
            )
        except Exception:
            # Whatever a solver of another library makes of traced tensors. If it is wrong with
            # arrays, too, it raises when the compiled function runs.
            return inputs
        self._graph = made.graph
        self.function = lambda *inputs: tuple(replay(made.graph, inputs))
        self.rules = _OfFirst(self.rules, len(inputs))
        self.structure = _tuple_of(len(inputs) + len(made.captures))
        return *inputs, *made.captures

    def _facts(self) -> Facts:
        return Facts(reads=self.rules.reads)

    def _lowering(self) -> Composite:
        return Composite(self._composed, self._graph)

    def _composed(self, *_inputs: Any) -> Any:
        raise ConversionError(f"{self.name}: the solver cannot be traced")

    def _results(self, returned: Any) -> list[Any]:
        if any(map(belongs_to_a_level, returned)):
            raise CapturedError(
                f"{self.name}: the solver, or a function given to it, uses a recorded tensor that "
                "is not an argument, whose gradient would be lost; pass it as an argument, or "
                "detach() it"
            )
        return super()._results(returned)

    def _pull(self, wanted: Sequence[bool], ct: Any, out: Any, *inputs: Any) -> list[Any]:
        return self.rules.pull(wanted, ct, out, inputs)

    _pull.takes_none = True  # type: ignore[attr-defined]

    def _push(self, tangents: Sequence[Any], out: Any, *inputs: Any) -> Any:
        return self.rules.push(tangents, out, inputs)

    def _batch(self, _op: Op, axes: Sequence[Any], args: Any, _params: Any) -> Any:
        axes, args = self._batch_of_guesses(axes, args)
        one_by_one = super()._batched(axes, args)
        at_once = vmap(self.function, in_axes=tuple(axes))

        def function(*inputs: Any) -> Any:
            try:
                return at_once(*inputs)
            except Exception:  # as above
                return one_by_one.function(*inputs)

        assert isinstance(one_by_one, HostRun)
        rules = _OfBatch(self.rules, tuple(axes))
        out = solved(self.name, function, rules, args, one_by_one.avals, self._guesses)
        return out, (0,) * len(self.avals)

    def _batch_of_guesses(self, axes: Sequence[Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """The inputs with a guess for each element: a solver sees that it is given a batch."""
        along = zip(args, axes, strict=True)
        size = next(aval_of(arg).shape[axis] for arg, axis in along if axis is not None)
        axes, args = list(axes), list(args)
        for n in range(self._guesses):
            if axes[n] is None:
                axes[n], args[n] = 0, broadcast_to(args[n], (size, *aval_of(args[n]).shape))
        return axes, args


def _tuple_of(count: int) -> containers.Structure:
    return containers.flatten((0.0,) * count)[1]


def belongs_to_a_level(value: Any) -> bool:
    """Whether a value is recorded, batched or traced."""
    return isinstance(value, Tensor) and isinstance(unshell(value), Tensor)


class _OfFirst:
    """Rules of a solver that has further inputs, which nothing is differentiated by."""

    def __init__(self, rules: Rules, count: int) -> None:
        self._rules, self._count = rules, count

    @property
    def reads(self) -> Whole:
        reads = self._rules.reads
        return reads._replace(operands=reads.operands[: self._count - reads.operands.start])

    def pull(self, wanted: Any, cts: Any, outs: Any, inputs: Any) -> list[Any]:
        given = self._rules.pull(wanted[: self._count], cts, outs, inputs[: self._count])
        return [*given, *[None] * (len(inputs) - self._count)]

    def push(self, tangents: Any, outs: Any, inputs: Any) -> Any:
        return self._rules.push(tangents[: self._count], outs, inputs[: self._count])


class _OfBatch:
    """Rules for every element of a batch, which is along the first axis of results.

    Args:
        rules: Those of an element.
        axes: The axis of the batch of each input; None for one that is the same for all.
    """

    def __init__(self, rules: Rules, axes: tuple[int | None, ...]) -> None:
        self._rules, self._axes = rules, axes

    @property
    def reads(self) -> Whole:
        reads = self._rules.reads
        return reads._replace(axes=(self._axes, *reads.axes))

    def pull(self, wanted: Any, cts: Any, outs: Any, inputs: Any) -> list[Any]:
        given = [n for n, ct in enumerate(cts) if ct is not None]
        chosen = [n for n, x in enumerate(inputs) if wanted[n] and is_differentiable(x)]

        def one(some: Any, outs: Any, inputs: Any) -> Any:
            pulled = self._rules.pull(wanted, _spread(some, given, len(cts)), outs, inputs)
            return tuple(zeros_like(inputs[n]) if pulled[n] is None else pulled[n] for n in chosen)

        batch = vmap(one, in_axes=(0, 0, self._axes))
        found = batch(tuple(cts[n] for n in given), tuple(outs), tuple(inputs))
        axes = [self._axes[n] for n in chosen]
        return _spread(list(map(batch_of_cotangents, found, axes)), chosen, len(inputs))

    def push(self, tangents: Any, outs: Any, inputs: Any) -> Any:
        given = [n for n, tangent in enumerate(tangents) if tangent is not None]
        moving = [n for n, out in enumerate(outs) if is_differentiable(out)]

        def one(some: Any, outs: Any, inputs: Any) -> Any:
            pushed = self._rules.push(_spread(some, given, len(inputs)), outs, inputs)
            return tuple(zeros_like(outs[n]) if pushed[n] is None else pushed[n] for n in moving)

        along = tuple(self._axes[n] for n in given)
        found = vmap(one, in_axes=(along, 0, self._axes))(
            tuple(tangents[n] for n in given), tuple(outs), tuple(inputs)
        )
        return tuple(_spread(found, moving, len(outs)))


def _spread(values: Sequence[Any], places: Sequence[int], count: int) -> list[Any]:
    """Values at their places, None elsewhere."""
    known = dict(zip(places, values, strict=True))
    return [known.get(n) for n in range(count)]


# ---- derivatives by some of the arguments -------------------------------------------------------


def pull_to(
    function: Callable[..., Any], inputs: Sequence[Any], wanted: Sequence[bool], ct: Any
) -> list[Any]:
    """The cotangents of the wanted inputs of a function; None for the others."""
    chosen = [n for n, x in enumerate(inputs) if wanted[n] and is_differentiable(x)]
    if not chosen:
        return [None] * len(inputs)
    _, pullback = vjp(_of_some(function, inputs, chosen), *(inputs[n] for n in chosen))
    return _spread(pullback(ct), chosen, len(inputs))


def push_from(
    function: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]
) -> Any | None:
    """The tangent of the result of a function; None if no input has one."""
    chosen = [n for n, tangent in enumerate(tangents) if tangent is not None]
    if not chosen:
        return None
    primals, moved = ([values[n] for n in chosen] for values in (inputs, tangents))
    return jvp(_of_some(function, inputs, chosen), primals, moved)[1]


def _of_some(
    function: Callable[..., Any], inputs: Sequence[Any], chosen: Sequence[int]
) -> Callable[..., Any]:
    def of_some(*some: Any) -> Any:
        full = list(inputs)
        for n, value in zip(chosen, some, strict=True):
            full[n] = value
        return function(*full)

    return of_some
