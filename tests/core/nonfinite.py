"""What the tests of derivatives at values that are not finite are made of.

Every elementwise op is called with awkward arguments, in small programs; modes that differentiate
these have to agree, but for what `docs/reference.md` says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradtape as gt
from every_case import CASES
from gradtape.core.call import call
from gradtape.core.op import NotDifferentiable, Op, Rule, Zero, registry
from gradtape.core.state import Proceed
from gradtape.core.tensor import Tensor, innermost
from graphcall import run_trace, traced
from opcall import Call, as_tensors, is_floating

inf, nan = np.inf, np.nan
POINTS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 800.0, -800.0, inf, -inf, nan)
# For more than one argument: all combinations of these.
FEW = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -1.5, inf, -inf, nan)
FEWER = (0.0, 1.0, -0.5, inf, nan)
# SciPy's do not return for some infinite parameters.
ENDLESS = frozenset({"hyp1f1"})

Function = Callable[[Any], Any]


def ops() -> list[Op]:
    """All elementwise ops with derivatives."""
    return [
        op
        for op in registry
        if op.kind == "elementwise"
        and op.outputs == 1
        and op.name != "nonzero_total"  # refuses what is awkward
        and any(map(_has_slope, _rules(op)))
    ]


def _rules(op: Op) -> Sequence[Rule]:
    return op.partials or op.vjps


def _has_slope(rule: Rule) -> bool:
    return not isinstance(rule, Zero | NotDifferentiable)


class _Seen:
    """A mode that notes the first call of an op."""

    kind = "observing"

    def __init__(self, op: Op) -> None:
        self._op = op
        self.call: tuple[Sequence[Any], dict[str, Any]] | None = None

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        if op is self._op and self.call is None:
            self.call = [_raw(arg) for arg in args], dict(params)
        return proceed(op, args, params)


def _raw(value: Any) -> Any:
    return np.asarray(innermost(value, show=True) if isinstance(value, Tensor) else value)


@functools.cache
def sample(op: Op) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments and parameters of an op in the first of its cases that comes by it."""
    for case in CASES:
        if op.name not in case.names or not case.differentiable:
            continue
        seen = _Seen(op)
        function, floats = Call(case.function, case.args, case.params).differentiable()
        with gt.using_mode(seen), np.errstate(all="ignore"):
            for _ in range(3):  # itself, or only its first or second derivative
                function(*as_tensors(floats))
                if seen.call is not None:
                    return seen.call
                function = _gradient(function)
    raise AssertionError(f"{op.name}: no case comes by it")


def _gradient(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def gradient(*xs: Any) -> list[Any]:
        out, pullback = gt.vjp(lambda *xs: function(*xs), *xs)
        return list(pullback([gt.ones_like(value) for value in out]))

    return gradient


@dataclass(frozen=True)
class Slope:
    """An op as a function of one argument, at awkward values of all of them.

    Attributes:
        op: The op.
        argument: Which argument it is.
        values: Of all arguments, as many of each.
        params: The parameters of the op.
        complexes: The arguments that it takes as complex numbers.
    """

    op: Op
    argument: int
    values: tuple[Any, ...]
    params: dict[str, Any]
    complexes: tuple[int, ...]

    @property
    def x(self) -> Any:
        """Where it is differentiated."""
        return self.values[self.argument]

    def __call__(self, x: Any) -> Any:
        args = [x if i == self.argument else value for i, value in enumerate(self.values)]
        for i in self.complexes:
            args[i] = args[i] + 0j
        out = call(self.op, args, self.params)
        return gt.real(out) + gt.imag(out) if out.dtype.kind == "c" else out


def slopes(op: Op) -> list[Slope]:
    """An op by each of its floating arguments that it can be differentiated by."""
    args, params = sample(op)
    floating = [i for i, arg in enumerate(args) if is_floating(arg)]
    points = np.array({1: POINTS, 2: FEW}.get(len(floating), FEWER))
    if op.name in ENDLESS:
        points = points[~np.isinf(points)]
    own = [arg.real.reshape(-1)[0] for arg in args]
    columns = [np.append(points, x) if i in floating else [x] for i, x in enumerate(own)]
    values = tuple(grid.reshape(-1) for grid in np.meshgrid(*columns, indexing="ij"))
    complexes = tuple(i for i, arg in enumerate(args) if arg.dtype.kind == "c")
    chosen = [i for i in floating if _has_slope(_rules(op)[i])]
    return [Slope(op, i, values, params, complexes) for i in chosen]


def programs(f: Function) -> dict[str, Function]:
    """A function alone, times its argument, and both in a branch that is not taken."""

    def not_taken(value: Any) -> Any:
        return gt.where(np.zeros(value.shape, np.bool_), value, 0.0)

    return {
        "f": f,
        "x*f": lambda x: x * f(x),
        "where": lambda x: not_taken(f(x)),
        "where x*f": lambda x: not_taken(x * f(x)),
        "where f/x": lambda x: not_taken(f(x) / x),
    }


# ---- modes --------------------------------------------------------------------------------------


def reverse(f: Function) -> Function:
    """The derivative of an elementwise function, backward."""
    return gt.grad(lambda x: gt.sum(f(x)))


def forward(f: Function) -> Function:
    """The same, forward."""
    return lambda x: gt.jvp(f, (x,), (np.ones(x.shape),))[1]


FIRST = {"reverse": reverse, "forward": forward}
SECOND = {
    f"{outer} over {inner}": lambda f, one=FIRST[outer], other=FIRST[inner]: one(other(f))
    for outer in FIRST
    for inner in FIRST
}


def derivatives(
    fs: dict[str, Function],
    x: Any,
    modes: dict[str, Callable[[Function], Function]],
    *,
    native: bool = False,
) -> dict[str, dict[str, Any]]:
    """By name of a function and of a mode: eager, and compiled.

    Compiled code is that of the graph, run op by op, if it does not have to be native: kernels
    have tests of their own.
    """

    def of_all(x: Any) -> Any:
        return {name: {key: mode(f)(x) for key, mode in modes.items()} for name, f in fs.items()}

    with np.errstate(all="ignore"):
        eager = of_all(x)
        other = gt.jit(of_all)(x) if native else run_trace(traced(of_all, x), x)
    return {
        name: eager[name] | {f"{key}, compiled": _raw(d) for key, d in other[name].items()}
        for name in fs
    }


# ---- what has to hold ---------------------------------------------------------------------------


def check_numbers(found: dict[str, Any], scale: Any, where: Slope) -> None:
    """No two modes give different numbers; rounding is relative to a scale."""
    all_found = np.stack(list(found.values()))
    finite = np.isfinite(all_found)
    low = np.where(finite, all_found, inf).min(axis=0)
    high = np.where(finite, all_found, -inf).max(axis=0)
    size = np.where(np.isfinite(scale), scale, 0) + np.maximum(np.abs(low), np.abs(high))
    _fail(finite.any(axis=0) & (high - low > 1e-10 * size), found, where)


def check_alike(found: dict[str, Any], but: Any, where: Slope) -> None:
    """Either all modes give a number or none does, but for some elements."""
    finite = np.isfinite(np.stack(list(found.values())))
    _fail((finite.any(axis=0) & ~finite.all(axis=0)) & ~but, found, where)


def _fail(wrong: Any, found: dict[str, Any], where: Slope) -> None:
    for i in np.flatnonzero(wrong)[:1]:
        args = tuple(float(value[i]) for value in where.values)
        results = {mode: float(result[i]) for mode, result in found.items()}
        raise AssertionError(f"{where.op.name}{args} by argument {where.argument}: {results}")
