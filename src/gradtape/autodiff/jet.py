"""Taylor mode: derivatives of any order along a curve, by propagating power series."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import (
    as_function,
    as_primals,
    check_results,
    checked,
    deliver,
    has_tensors,
    run,
)
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.nested_forward import by_nesting
from gradtape.autodiff.power_series import Known, factorial, scaled
from gradtape.autodiff.series_rules import RuleLevel, SeriesLevel
from gradtape.core.call import dispatch, is_differentiable, lift
from gradtape.core.deferrable import deferrable
from gradtape.core.op import Op
from gradtape.core.tensor import note_places
from gradtape.core.walk import own
from gradtape.errors import ArgumentError, ShapeError, a_type

# There are floats for the factorials up to here.
MOST_DERIVATIVES = 170


class JetLevel(SeriesLevel):
    """One `jet` in progress: all coefficients of a result are computed with the result.

    Args:
        order: The number of coefficients besides the value.
    """

    __slots__ = ("_order",)

    def __init__(self, order: int) -> None:
        super().__init__()
        self._order = order

    def expand(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        values, series = zip(*map(self.split, args), strict=True)
        if not self.has_series(op, series):
            return dispatch(op, values, params)
        if op.pushed is not None:
            outs, rows = by_nesting(op, values, series, params, self._order)
            return tuple(map(self._joined, outs, zip(*rows, strict=True)))
        out = dispatch(op, values, params)
        rows = RuleLevel(self._order).coefficients(op, values, series, params, out)
        columns = zip(*rows, strict=True)
        if op.outputs == 1:
            return self._joined(out, next(columns))
        return tuple(map(self._joined, out, columns))

    def _joined(self, value: Any, coefficients: Sequence[Any]) -> Any:
        """A tensor of this level; a constant if all of its coefficients are 0."""
        if not is_differentiable(value) or all(term is None for term in coefficients):
            return value
        return self.tensor(Known(value, coefficients))


@deferrable
def jet(
    function: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]]
) -> tuple[Any, list[Any]]:
    """Run a function along a curve, and return the derivatives of its output by the parameter.

    The arguments are a curve x(t), given by its value and its derivatives at t = 0, and the results
    are the value and the derivatives of f(x(t)). The time grows with the square of the number of
    derivatives, where that of nested `gt.jvp` doubles with each of them.

    Args:
        function: The function to differentiate.
        primals: Its arguments at t = 0, as a tuple: arrays, tensors, floats, containers of them.
        series: For each argument its derivatives `[x', x'', …]`, in the form of the argument; None
            for one that is zero. There are equally many for all arguments.

    Returns:
        `(output, [output', output'', …])`, with as many derivatives as were given.

    Raises:
        ArgumentError: Primals or series are not tuples, or a series is not a list.
        ShapeError: Series differ in length, or a derivative is not in the form of its primal.
        DTypeError: A primal is not floating or complex.
        NotDifferentiableError: An op has no derivatives of that order.

    >>> gt.jet(np.sin, (0.0,), ([1.0, 0.0, 0.0],))  # the values of sin, cos, −sin and −cos
    (np.float64(0.0), [np.float64(1.0), np.float64(0.0), np.float64(-1.0)])
    """
    function = as_function(function, "jet")
    order = _check_series(primals, series)
    leaves, values, structure = as_primals(tuple(primals), "jet", "primals")
    columns, terms = _coefficients(primals, values, series)
    level = JetLevel(order)
    try:
        jets = [level.tensor(Known(*pair)) for pair in zip(values, columns, strict=True)]
        note_places(jets, leaves)
        out = run(function, containers.unflatten(structure, jets), {})
    finally:
        level.active = False
    check_results("jet", out, containers.flatten(out)[0])
    tensors = has_tensors([*leaves, *terms])
    taken = {id(value) for value in (*leaves, *terms)}

    def derivative(leaf: Any, k: int) -> Any:
        value, found = level.split(leaf)
        if k:
            term = None if found is None else found.coefficient(k)
            value = lift(zeros_like(value) if term is None else scaled(term, factorial(k)), value)
        return deliver(own(value, taken), tensors=tensors)

    def derivatives(k: int) -> Any:
        return containers.map_leaves(lambda leaf: derivative(leaf, k), out)

    return derivatives(0), [derivatives(k) for k in range(1, order + 1)]


def _check_series(primals: Any, series: Any) -> int:
    """Check that there is a list of derivatives for each argument; returns how many there are."""
    form = "jet(f, (x,), ([dx, d2x],))"
    for what, given in {"primals": primals, "series": series}.items():
        if not isinstance(given, tuple | list):
            raise ArgumentError(
                f"jet: got {what} as {a_type(given)}, expected a tuple with one entry per "
                f"argument: {form}"
            )
    if len(series) != len(primals):
        raise ShapeError(
            f"jet: got {len(primals)} primals and {len(series)} series, expected one per primal"
        )
    for n, terms in enumerate(series):
        if not isinstance(terms, tuple | list):
            raise ArgumentError(
                f"jet: got series[{n}] as {a_type(terms)}, expected a list of derivatives: {form}"
            )
    lengths = [len(terms) for terms in series]
    if len(set(lengths)) > 1:
        raise ShapeError(
            f"jet: got series of {', '.join(map(str, lengths))} derivatives, expected as many of "
            "each argument; None stands for one that is zero"
        )
    order = lengths[0] if lengths else 0
    if not 1 <= order <= MOST_DERIVATIVES:
        raise ShapeError(
            f"jet: got series of {order} derivatives, expected 1 to {MOST_DERIVATIVES}"
        )
    return order


def _coefficients(
    primals: Sequence[Any], values: Sequence[Any], series: Sequence[Sequence[Any]]
) -> tuple[list[Sequence[Any]], list[Any]]:
    """The coefficients of each leaf of the primals, and all derivatives as they were given."""
    columns: list[Sequence[Any]] = []
    given: list[Any] = []
    for n, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        leaves, structure = containers.flatten(primal)
        of_leaves = values[len(columns) : len(columns) + len(leaves)]
        rows = []
        for k, term in enumerate(terms):
            if term is None:
                rows.append([None] * len(leaves))
                continue
            parts, found = containers.flatten(term)
            if found != structure:
                raise ShapeError(
                    f"jet: series[{n}][{k}] has structure {containers.outline(found)}, expected "
                    f"that of the primal, {containers.outline(structure)}, where * is an array or "
                    "a number"
                )
            given += parts
            pairs = zip(parts, of_leaves, strict=True)
            where = f"derivative series[{n}][{k}]"
            rows.append(
                [
                    _coefficient(part, value, containers.Place(where, term, i), k + 1)
                    for i, (part, value) in enumerate(pairs)
                ]
            )
        columns += zip(*rows, strict=True)
    return columns, given


def _coefficient(derivative: Any, value: Any, where: containers.Place, k: int) -> Any:
    derivative = checked(derivative, value, "jet", where, "primal")
    return scaled(derivative, factorial(k), operator.truediv)
