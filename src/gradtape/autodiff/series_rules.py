"""Ops on power series: the coefficients of y(t) = op(x(t)) from those of x(t).

No op has a Taylor rule of its own. By the chain rule y'(t) = jvp(x'(t); y(t), x(t)), and a JVP rule
is written with ops, so it can be evaluated on series (`_ByRule`): the tangents are the series of
x', and the coefficient k of y is the coefficient k − 1 of what the rule gives, divided by k. A rule
that reads its result, as that of exp does, reads coefficients below k only. So coefficients inside
of rules are computed when they are asked for; and so are the rules of the ops in them, as those of
digamma go on with polygamma(1), polygamma(2), and so on for ever.

The same op on the same operands is computed once within the rules of one op. There is cos(x) in the
rule of sin(x), and in its rule sin(x), which is the first one again: two series in all. Rules that
need their function at two other places, as Bessel functions do, would otherwise double with each
order.

Three kinds of op need no rule on series, and all others end in them: those whose slope does not
depend on anything that moves (`_Linear`), products (`_Product`) and quotients (`_Quotient`). They
apply their JVP to one coefficient at a time.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.nested_forward import by_nesting
from gradtape.autodiff.power_series import Series, scaled, total
from gradtape.core.broadcasting import fit
from gradtape.core.call import dispatch, is_differentiable
from gradtape.core.evaluate import push
from gradtape.core.finite import is_finite, is_traced
from gradtape.core.hooks import HOOKS
from gradtape.core.level import Level, Node
from gradtape.core.lowering import Composite
from gradtape.core.nested import Nested, unshell
from gradtape.core.op import Op, Zero, rule_reads
from gradtape.core.settle import Settling, settled_higher
from gradtape.core.state import next_level
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError, GradtapeError, NotDifferentiableError

# ---- levels -------------------------------------------------------------------------------------


class Expanded(Node):
    """The node of a tensor of a power series: its level and the series; None for a constant."""

    __slots__ = ("series",)

    def __init__(self, level: Level, series: Series | None) -> None:
        self.segment = level
        self.sequence = 0
        self.series = series


class SeriesLevel(Level):
    """A level whose tensors are power series; their value is the coefficient of 1."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(next_level(), "jet")

    def tensor(self, series: Series) -> Tensor:
        """The tensor of a series."""
        return Nested(unshell(series.value), Expanded(self, series))

    def split(self, value: Any) -> tuple[Any, Series | None]:
        """The value below and its series; None for a constant."""
        value = unshell(value)
        node = value.record if isinstance(value, Tensor) else None
        if isinstance(node, Expanded) and node.segment is self:
            return value.value, node.series
        return value, None

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        if op.kind == "graph":  # a compiled function; its ops have rules that run on series
            assert isinstance(op.lower, Composite)
            return op.lower.function(*args, **params)
        return self.expand(op, args, params)

    @staticmethod
    def has_series(op: Op, series: Sequence[Series | None]) -> bool:
        """Whether the results of an op on such operands are series.

        Raises:
            NotDifferentiableError: They would be, and the op has no forward mode.
        """
        if all(one is None for one in series):
            return False
        if op.jvp is None and op.tracked:
            raise NotDifferentiableError(f"{op.name}: has no forward-mode derivative")
        return op.jvp is not None

    def expand(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The results of an op; without series if it has no derivatives."""
        raise NotImplementedError(self.label)


class RuleLevel(SeriesLevel):
    """The series in the rules of one op, whose coefficients are computed when asked for.

    Args:
        order: How many coefficients of the op are wanted.

    Attributes:
        depth: In how many rules, one within the other, ops are called now.
    """

    __slots__ = ("_applied", "_arrays", "_known", "depth", "order")

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order
        self.depth = 0
        self._applied: list[_AppliedOp] = []
        # Results by op and operands, which are held, since they are known by their ids.
        self._known: dict[Any, tuple[Any, Sequence[Any]]] = {}
        self._arrays: dict[Any, list[Any]] = {}

    def coefficients(
        self, op: Op, values: Sequence[Any], series: Sequence[Any], params: Any, out: Any
    ) -> list[Sequence[Any]]:
        """The coefficients of t, t², … of the op that this level is for.

        Args:
            op: The op.
            values: The operands at t = 0.
            series: Their series, None for constants.
            params: The parameters.
            out: The result at t = 0.

        Returns:
            A row for each order with a coefficient for each result; None for 0.
        """
        applied = self._apply(op, values, series, params, out)
        if isinstance(applied, _ByRule):  # others give no tensors to rules
            inputs = self.tensors(values, series)
            self._known[self._key(op, inputs, params)] = applied, inputs
        try:
            with np.errstate(all="ignore"):
                rows = []
                for k in range(1, self.order + 1):
                    # In the innermost rules first: else they would be reached by a deep recursion.
                    for inner in self._applied[:0:-1]:
                        inner.advance(k)
                    rows.append(applied.coefficients(k))
                return rows
        except GradtapeError as error:
            HOOKS.rule_failed(op, error)
            raise
        finally:
            self._close()

    def expand(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        key = self._key(op, args, params)
        if key not in self._known:
            values, series = zip(*map(self.split, args), strict=True)
            out = dispatch(op, values, params)
            if self.has_series(op, series):
                self._known[key] = self._apply(op, values, series, params, out), args
            else:
                self._known[key] = self.tensors(out if op.outputs != 1 else (out,)), args
        found = self._known[key][0]
        made = found.tensors() if isinstance(found, _AppliedOp) else found
        return made[0] if op.outputs == 1 else tuple(made)

    def tensors(self, values: Sequence[Any], series: Sequence[Series | None] = ()) -> list[Any]:
        """The tensors of some series, and constants.

        A constant that is an array stays one, and is shared by its elements: rules may read them.
        One without elements, as in a trace, is shared by the ops it was made by.
        """
        found = []
        for n, value in enumerate(values):
            one = series[n] if series else None
            value = unshell(value)
            if one is not None:
                value = self.tensor(one)
            elif isinstance(value, Tensor):
                value = Nested(value, Expanded(self, None))
            found.append(value)
        return found

    def _apply(
        self, op: Op, values: Sequence[Any], series: Sequence[Any], params: Any, out: Any
    ) -> _AppliedOp:
        # An operand that only chooses, such as a condition, has a derivative of 0.
        pairs = itertools.zip_longest(series, op.vjps)
        series = [None if isinstance(rule, Zero) else one for one, rule in pairs]
        applied = _class_for(op, series, self.order)(self, op, values, series, params, out)
        self._applied.append(applied)
        return applied

    def _close(self) -> None:
        """Undo reference cycles, which would keep all coefficients until they are collected."""
        self.active = False
        for applied in self._applied:
            applied.close()
        self._known, self._applied = {}, []

    def _key(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """What tells a call of an op from others; an object of its own if it is not shared."""
        operands = tuple([self._operand_key(arg) for arg in args])
        key = op, operands, tuple([(name, _number_key(value)) for name, value in params.items()])
        try:
            hash(key)
        except TypeError:
            return object()
        return key if op.effect is None else object()

    def _operand_key(self, arg: Any) -> Any:
        if isinstance(arg, Tensor):  # a copy made for the call, with the record of the original
            value, series = self.split(arg)
            return id(series or (value.record if isinstance(value, Tensor) else value))
        if isinstance(arg, np.generic):
            return type(arg), arg.tobytes()
        if type(arg) is np.ndarray:
            return id(self._first_like(arg))
        return id(arg) if hasattr(arg, "dtype") else _number_key(arg)

    def _first_like(self, array: Any) -> Any:
        """The first of the operands with the same elements: rules compute x == 0 again."""
        sample = array[tuple([slice(None, None, max(1, n // 4)) for n in array.shape])].tobytes()
        known = self._arrays.setdefault((array.shape, array.dtype, sample), [])
        for one in known:
            if one is array or one.tobytes() == array.tobytes():
                return one
        known.append(array)
        return array


def _number_key(value: Any) -> Any:
    """A key that is not equal for 0, 0.0, -0.0 and False."""
    if isinstance(value, tuple):
        return tuple(map(_number_key, value))
    return type(value), repr(value) if isinstance(value, float | complex) else value


# ---- ops on series ------------------------------------------------------------------------------


class _AppliedOp:
    """An op on series, with the coefficients of its results that were asked for.

    Attributes:
        level: The level of the tensors that its rule gets.
        op: The op.
        values: The operands at t = 0.
        series: Their series, None for constants.
        params: The parameters.
        outs: The results at t = 0.
    """

    __slots__ = ("_depth", "_results", "_rows", "level", "op", "outs", "params", "series", "values")

    def __init__(
        self,
        level: RuleLevel,
        op: Op,
        values: Sequence[Any],
        series: Sequence[Series | None],
        params: dict[str, Any],
        out: Any,
    ) -> None:
        self.level = level
        self._depth = level.depth
        self.op = op
        self.values = values
        self.series = series
        self.params = params
        self.outs = tuple(map(unshell, out if op.outputs != 1 else (out,)))
        self._results: list[Series | None] = []
        self._rows: dict[int, Sequence[Any]] = {}

    def tensors(self) -> list[Any]:
        """The results as tensors of the level; those without derivatives are constants."""
        if not self._results:
            self._results = [
                _Result(value, self, place) if is_differentiable(value) else None
                for place, value in enumerate(self.outs)
            ]
        return self.level.tensors(self.outs, self._results)

    def coefficients(self, k: int) -> Sequence[Any]:
        """The coefficients of t^k of all results, None for 0; computed once."""
        if k not in self._rows:
            self._rows[k] = self._computed(k)
        return self._rows[k]

    def advance(self, k: int) -> None:
        """Compute what the coefficient k of the outermost op will ask for, going by the last."""
        if k - 1 - self._depth in self._rows:
            self.coefficients(k - self._depth)

    def close(self) -> None:
        """Forget what refers back to it."""
        self._results = []
        self._rows = {}

    def _computed(self, k: int) -> Sequence[Any]:
        raise NotImplementedError

    def _orders(self, k: int) -> list[Any]:
        """The coefficients of t^k of the operands."""
        return [None if one is None else one.coefficient(k) for one in self.series]

    def _push(
        self,
        tangents: Sequence[Any],
        outs: Sequence[Any],
        inputs: Sequence[Any],
        careful: bool = True,
    ) -> Sequence[Any]:
        """Apply the JVP rule; returns a tangent for each result, or None."""
        if all(tangent is None for tangent in tangents):
            return (None,) * len(self.outs)
        single = self.op.outputs == 1
        out = outs[0] if single else tuple(outs)
        found = push(self.op, tuple(tangents), out, inputs, self.params, careful)
        parts = (found,) if single else (None,) * len(self.outs) if found is None else found
        return [
            fit(part, value) if part is not None and is_differentiable(value) else None
            for part, value in zip(parts, self.outs, strict=True)
        ]


class _Result(Series):
    """The series of one of the results of an op."""

    __slots__ = ("_applied", "_place")

    def __init__(self, value: Any, applied: _AppliedOp, place: int) -> None:
        super().__init__(value)
        self._applied = applied
        self._place = place

    def coefficient(self, k: int) -> Any:
        return self._applied.coefficients(k)[self._place]


def _class_for(op: Op, series: Sequence[Series | None], order: int) -> type[_AppliedOp]:
    """How to compute with an op on series."""
    if op.pushed is not None:
        return _ByNesting
    if order == 1 or isinstance(op, Settling):
        return _Linear
    if op.facts.divisors:
        return _Quotient
    if _is_linear(op, [one is not None for one in series]):
        return _Linear
    return _Product if op.facts.product else _ByRule


def _is_linear(op: Op, moving: Sequence[bool]) -> bool:
    """Whether the slope of an op does not depend on the operands that move."""
    if not op.tracked:  # it is differentiated in forward mode only
        assert op.jvp is not None
        return not rule_reads(op.jvp)
    reads_out, *reads = op.keeps(tuple(moving))
    return not reads_out and not any(map(operator.and_, reads, moving))


class _Linear(_AppliedOp):
    """An op with a constant slope: y_k = jvp(x_k). Settling ops have one in their first operand."""

    __slots__ = ()

    def _computed(self, k: int) -> Sequence[Any]:
        return self._push(self._orders(k), self.outs, self.values)


class _Product(_AppliedOp):
    """A product of series: (x·y)_k = Σ x_i·y_(k−i).

    A term is the JVP by one operand at coefficients of the others, which takes care of 0·∞.
    """

    __slots__ = ()

    def _computed(self, k: int) -> Sequence[Any]:
        if self.op.careful_jvp is None:
            return (self._sum(k, careful=False),)
        if not is_traced(self.outs[0]):
            found = self._sum(k, careful=False)
            if found is None or is_finite(found):
                return (found,)
        return (self._sum(k, careful=True),)

    def _sum(self, k: int, careful: bool) -> Any:
        moving = [n for n, one in enumerate(self.series) if one is not None]
        splits = _summing_to(k, len(moving))
        return total([self._term(dict(zip(moving, one, strict=True)), careful) for one in splits])

    def _term(self, orders: dict[int, int], careful: bool) -> Any:
        """The product of coefficients of these orders."""
        factors: dict[int, Any] = {}
        for n, order in orders.items():
            series = self.series[n]
            if order and series is not None:
                factors[n] = series.coefficient(order)
                if factors[n] is None:
                    return None
        moved, tangent = factors.popitem()
        inputs = [factors.get(n, value) for n, value in enumerate(self.values)]
        tangents = [tangent if n == moved else None for n in range(len(inputs))]
        return self._push(tangents, self.outs, inputs, careful)[0]


def _summing_to(whole: int, count: int) -> Iterator[tuple[int, ...]]:
    """All tuples of so many integers from 0 on with this sum."""
    if count == 1:
        yield (whole,)
        return
    for first in range(whole + 1):
        for rest in _summing_to(whole - first, count - 1):
            yield first, *rest


class _Quotient(_AppliedOp):
    """The solution y of b = m(a, y): y_k = jvp(b_k) + Σ jvp(a_j; y_(k−j)), where 0 < j ≤ k.

    That is b_k = Σ m(a_j, y_(k−j)), solved for y_k: the JVP by a is linear in the result it reads.
    """

    __slots__ = ()

    def _computed(self, k: int) -> Sequence[Any]:
        divisors = self.op.facts.divisors
        above = [None if n in divisors else x for n, x in enumerate(self._orders(k))]
        rows = [self._push(above, self.outs, self.values)]
        for place in divisors:
            terms = [self._term(place, j, k - j) for j in range(1, k + 1)]
            below = [total(parts) for parts in zip(*terms, strict=True)]
            rows.append([self._settled(place, part) for part in below])
        return [total(parts) for parts in zip(*rows, strict=True)]

    def _term(self, place: int, j: int, rest: int) -> Sequence[Any]:
        """The JVP by the coefficient j of a divisor, at a coefficient of the result."""
        earlier = self.coefficients(rest)[0] if rest else self.outs[0]
        if earlier is None:
            return (None,) * len(self.outs)
        tangents = [x if n == place else None for n, x in enumerate(self._orders(j))]
        return self._push(tangents, (earlier, *self.outs[1:]), self.values)

    def _settled(self, place: int, value: Any) -> Any:
        """What is due to a divisor: 0 at all orders where the first one is 0·∞, as by `jvp`."""
        given = self._orders(1)[place]
        if value is None or given is None or self.op.careful_jvp is None or is_finite(value):
            return value
        return settled_higher(self.op, place, value, given, self.outs[0], self.values, self.params)


class _ByRule(_AppliedOp):
    """Any other op: y_k is the coefficient k − 1 of y' = jvp(x'), divided by k."""

    __slots__ = ("_rates",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # The derivative of each result: its value and its series.
        self._rates: Sequence[tuple[Any, Series | None]] | None = None

    def close(self) -> None:
        super().close()
        self._rates = None

    def _computed(self, k: int) -> Sequence[Any]:
        if self._rates is None:
            if all(tangent is None for j in range(1, k + 1) for tangent in self._orders(j)):
                return (None,) * len(self.outs)
            self._rates = [self.level.split(rate) for rate in self._rule()]
        row = []
        for value, series in self._rates:
            found = value if k == 1 else None if series is None else series.coefficient(k - 1)
            row.append(None if found is None else scaled(found, k, operator.truediv))
        return row

    def _rule(self) -> Sequence[Any]:
        """The JVP rule, evaluated on series."""
        tensor = self.level.tensor
        inputs = self.level.tensors(self.values, self.series)
        rates = [None if series is None else tensor(series.rate()) for series in self.series]
        around, self.level.depth = self.level.depth, self._depth + 1
        try:
            return self._push(rates, self.tensors(), inputs)
        except ConversionError as error:
            raise NotDifferentiableError(
                f"{self.op.name}: has a forward-mode rule that reads arrays, expected one made of "
                f"functions of gradtape or NumPy, to find derivatives of higher order; {error}"
            ) from error
        finally:
            self.level.depth = around


class _ByNesting(_AppliedOp):
    """An op that pushes tangents together with its results, as loops do: forward mode, nested."""

    __slots__ = ()

    def _computed(self, k: int) -> Sequence[Any]:
        return by_nesting(self.op, self.values, self.series, self.params, k)[1][k - 1]
