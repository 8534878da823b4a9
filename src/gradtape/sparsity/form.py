"""A function prepared for one form of its arguments: trace, pattern, plan, compiled sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradtape import containers
from gradtape.autodiff.arguments import as_primals, selected
from gradtape.backends import is_raw
from gradtape.compiler.draws import Draws
from gradtape.compiler.jit import Compiled, jit
from gradtape.compiler.signature import Arguments, Statics, arguments, leaf_aval, merged
from gradtape.core.call import is_differentiable
from gradtape.core.state import current, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    NotDifferentiableError,
    ShapeError,
    a_type,
)
from gradtape.graph.capture import DrawCapture
from gradtape.graph.ir import Operand
from gradtape.graph.trace import Trace, TraceLevel, is_truth, trace
from gradtape.sparsity.compressed import Traced, program
from gradtape.sparsity.finding import Found, find_pattern, is_symmetric
from gradtape.sparsity.pattern import SparsityPattern, given_pattern, same_pattern, truths
from gradtape.sparsity.pattern_check import coarsest, probes_for
from gradtape.sparsity.plan import SparsePlan, hessian_plan, jacobian_plan


class Request(NamedTuple):
    """What was asked for.

    Attributes:
        name: The public function that was called.
        function: The function to differentiate.
        argnum: The argument to differentiate by.
        hessian: Whether it is second derivatives of a scalar function.
        mode: The direction of the sweeps.
        pattern: The pattern that was given, or None.
        has_aux: Whether the function returns something besides.
    """

    name: str
    function: Callable[..., Any]
    argnum: int
    hessian: bool
    mode: str = "auto"
    pattern: Any = None
    has_aux: bool = False


class Taken(NamedTuple):
    """The arguments of a call, taken apart.

    Attributes:
        given: Leaves, structure, and the key of the form.
        chosen: The leaves to differentiate by.
    """

    given: Arguments
    chosen: tuple[int, ...]


def taken(request: Request, args: Sequence[Any], kwargs: dict[str, Any]) -> Taken:
    """Take the arguments of a call apart; those that are no arrays become part of the form.

    Raises:
        ArgumentError: There is no such argument, it holds no array, or one cannot be hashed.
        DTypeError: The argument to differentiate by is not real and floating.
    """
    name = request.name
    (position,) = selected(request.argnum, len(args), name)
    _, values, structure = as_primals(args[position], name, f"argument {position}")
    if not values:
        raise ArgumentError(
            f"{name}: argument {position} holds no array, expected one to differentiate by"
        )
    for value in values:
        _check_real(name, value)
    full = [*args[:position], containers.unflatten(structure, values), *args[position + 1 :]]
    fixed = tuple(n for n, arg in enumerate(full) if _is_static(arg))
    named = tuple(key for key, arg in kwargs.items() if _is_static(arg))
    try:
        given = arguments(tuple(full), kwargs, Statics(fixed, named))
    except GradtapeError as error:
        raise type(error)(str(error).replace("jit:", f"{name}:", 1)) from None
    before = (arg for n, arg in enumerate(full[:position]) if n not in fixed)
    begin = sum(len(containers.flatten(arg)[0]) for arg in before)
    return Taken(given, tuple(range(begin, begin + len(values))))


def _is_static(arg: Any) -> bool:
    return not all(isinstance(leaf, Tensor) or is_raw(leaf) for leaf in containers.flatten(arg)[0])


def _check_real(name: str, value: Any) -> None:
    if value.dtype.kind == "c":
        raise DTypeError(
            f"{name}: got {value.dtype}{list(value.shape)}, expected real arguments and results; "
            "split complex ones into real and imaginary parts"
        )


class Form:
    """A function prepared for arguments of one form."""

    def __init__(self, request: Request, call: Taken) -> None:
        self.request = request
        self.aux: Any = None
        self._trace = self._traced(call.given)
        self.traced = Traced(self._trace.graph, call.chosen)
        _check_output(request, self._trace.graph.outputs[0])
        # Replaced as a whole: other threads may find another pattern meanwhile.
        self._ready: _Ready | None = None

    def _traced(self, given: Arguments) -> Trace:
        name, function, has_aux = self.request.name, self.request.function, self.request.has_aux

        def flat(*leaves: Any) -> Any:
            args, keywords = merged(given, leaves)
            out = function(*args, **keywords)
            if has_aux and not (isinstance(out, tuple) and len(out) == 2):
                raise ArgumentError(
                    f"{name}: the function returned {a_type(out)}, expected (result, aux), as "
                    "has_aux=True says"
                )
            result, aux = out if has_aux else (out, ())
            further, self.aux = containers.flatten(aux)
            main, structure = containers.flatten(result)
            if structure is not containers.SINGLE:
                raise ArgumentError(
                    f"{name}: the function returned {a_type(result)}, expected one array; put "
                    "results together with np.concatenate, or return others with has_aux=True"
                )
            for leaf in further:
                _check_array(leaf, f"{name}: the function returned {{}} in aux")
            _check_array(main[0], f"{name}: the function returned {{}}")
            return [*main, *further]

        avals = [leaf_aval(leaf) for leaf in given.leaves]
        truth = [place for place, leaf in enumerate(given.leaves) if is_truth(leaf)]
        draws = Draws((function, *given.fixed.values(), *given.named.values()))
        label, level = _name(function), TraceLevel(name)
        traced = trace(flat, avals, label, truth, current().rewriting, level)
        draws.warn(label)
        return traced

    @property
    def outdated(self) -> bool:
        """Whether a captured value is of a transform that has returned, or has changed its form."""
        changed = any(guard.changed() for guard in self._trace.guards)
        return changed or any(capture.outdated(aval) for capture, aval in self._trace.hidden)

    def values(self, leaves: Sequence[Any], *, draws: bool) -> list[Any]:
        """The values of all inputs of the graph.

        Args:
            leaves: Those of the arguments.
            draws: Whether random numbers are drawn; a pattern does not depend on them.
        """
        for guard in self._trace.guards:
            values_read(guard.array)  # a function that is being traced depends on it, too
        hidden = [
            capture.value if isinstance(capture, DrawCapture) and not draws else capture.current()
            for capture in self._trace.captures
        ]
        return [*leaves, *hidden]

    def find(self, values: Sequence[Any]) -> Found:
        """The pattern for given values, and what it depends on."""
        return find_pattern(self.traced, values, hessian=self.request.hessian)

    def ready(self, values: Sequence[Any]) -> _Ready:
        """The plan and the compiled sweeps, made anew if the pattern no longer holds."""
        ready = self._ready
        if ready is None or not ready.found.holds(values):
            ready = self._ready = self._prepared(values, ready)
        return ready

    def _prepared(self, values: Sequence[Any], before: _Ready | None) -> _Ready:
        request, symmetric = self.request, is_symmetric(self.traced.graph)
        if request.pattern is not None:
            found = Found(self._given(request.hessian and symmetric))
        else:
            found = self.find(values)
        if before is not None and same_pattern(found.pattern, before.found.pattern):
            return before._replace(found=found)
        if request.hessian:
            plan = hessian_plan(found.pattern, symmetric)
        else:
            plan = jacobian_plan(found.pattern, request.mode)
        compiled = self._compiled(plan)
        try:
            compiled.graph(*plan.colours, *values)
        except NotDifferentiableError as error:
            return self._otherwise(found, plan, values, error)
        return _Ready(found, plan, compiled)

    def _otherwise(
        self, found: Found, plan: SparsePlan, values: Sequence[Any], error: NotDifferentiableError
    ) -> _Ready:
        """The sweeps in the one direction that the function has.

        One with only a custom_vjp in it has no forward mode, and one with a custom_jvp whose rule
        calls the function itself no reverse mode.

        Raises:
            NotDifferentiableError: It has neither, or was asked for the other one.
        """
        request = self.request
        for other, needless in (("reverse", plan.forward), ("forward", plan.reverse)):
            if not needless:
                continue  # the plan has only that direction
            changed = jacobian_plan(found.pattern, other)._replace(name=request.name)
            compiled = self._compiled(changed)
            try:
                compiled.graph(*changed.colours, *values)
            except NotDifferentiableError:
                continue
            if request.mode != "auto":
                raise NotDifferentiableError(
                    f"{request.name}: got mode={request.mode!r} ({error}), expected a direction "
                    f'that the function has; use mode="{other}" or "auto"'
                ) from error
            return _Ready(found, changed, compiled)
        raise error

    def _given(self, symmetric: bool) -> SparsityPattern:
        """The pattern that the user has given; with its mirror image if that is the same matrix."""
        columns = sum(math.prod(aval.shape) for aval in self.traced.like)
        rows = columns if self.request.hessian else math.prod(self.traced.graph.outputs[0].shape)
        pattern = given_pattern(self.request.name, self.request.pattern, (rows, columns))
        if not symmetric:
            return pattern
        return SparsityPattern(truths(pattern.matrix + pattern.matrix.T), pattern.blocks)

    def _compiled(self, plan: SparsePlan) -> Compiled:
        probes = None
        if self.request.pattern is not None:
            probes = probes_for(plan, float(coarsest(self.traced.graph).eps))
        compiled: Compiled = jit(program(self.traced, plan, probes))
        return compiled


class _Ready(NamedTuple):
    """A pattern, the plan that was made for it, and the compiled function that carries it out."""

    found: Found
    plan: SparsePlan
    compiled: Compiled


def _check_array(leaf: Any, text: str) -> None:
    if not isinstance(leaf, Tensor) and not is_raw(leaf):
        raise GradtapeError(f"{text.format(a_type(leaf))}, expected arrays, numbers or containers")


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _check_output(request: Request, output: Operand) -> None:
    """Raise for results that have no such derivative."""
    name = request.name
    _check_real(name, output)
    if not is_differentiable(output):
        raise DTypeError(
            f"{name}: the function returned {output.aval}, expected a floating dtype, as "
            f"{output.dtype} has no derivatives"
        )
    if request.hessian and output.shape != ():
        raise ShapeError(
            f"{name}: the function returned shape {output.shape}, expected a scalar; use np.sum, "
            "or sparse_jacobian of a gradient"
        )
