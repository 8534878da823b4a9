"""How ops are made of SciPy's functions: dtypes, parameters, several results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_elementwise
from gradtape.core.define import (
    broadcast_sizes,
    broadcast_tangent,
    general,
    unbroadcast,
    vjp_of_partial,
)
from gradtape.core.op import NotDifferentiable, Op, Rule, rule_reads
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype, conj
from gradtape.ops.erf import F16, scipy_special
from gradtape.ops.inspection import result_type
from gradtape.ops.rounding import floor
from gradtape.typing import Array, ArrayLike

_COMPLEX = {"f": np.dtype(np.complex64), "d": np.dtype(np.complex128)}


def of_scipy(name: str, *, whole: Sequence[int] = ()) -> Callable[..., Any]:
    """The forward of one of SciPy's functions of several arrays.

    The numbers are those of SciPy, the dtypes those of NumPy's functions: Python's numbers are
    weak, float16 stays, and whole numbers make float64.

    Args:
        name: The function's name in `scipy.special`.
        whole: Positions of arguments (degrees, orders) that SciPy takes as they are: of integers
            it has better ways than of real numbers, or the only ones.
    """

    def forward(xp: Any, *args: Any) -> Any:
        dtype = xp.result_type(*args)
        wide = dtype.char.lower() if dtype.char in "fdFD" else "f" if dtype == F16 else "d"
        converted = [
            arg if i in whole else _converted(xp, arg, dtype, wide) for i, arg in enumerate(args)
        ]
        out = getattr(scipy_special(xp), name)(*converted)
        if isinstance(out, tuple):
            return tuple(_narrowed(part, dtype) for part in out)
        return _narrowed(out, dtype)

    return forward


def _converted(xp: Any, arg: Any, dtype: Any, wide: str) -> Any:
    # Python's integers have to fit beside others, as in NumPy.
    weak = type(arg) is int and dtype.kind in "iu"
    array = xp.asarray(arg, dtype) if weak else xp.asarray(arg)
    kind = _COMPLEX[wide] if array.dtype.kind == "c" else np.dtype(wide)
    return array if array.dtype == kind else array.astype(kind)


def as_complex(z: ArrayLike) -> Array:
    """An argument of a function whose results are complex, made complex itself."""
    z = as_array(z)
    if z.dtype.kind == "c":
        return z
    return astype(z, _COMPLEX["f" if z.dtype.kind in "fV" and z.dtype.itemsize <= 4 else "d"])


def operand(x: ArrayLike) -> Any:
    """An argument to compute with by operators: numbers stay weak, lists become arrays."""
    return x if isinstance(x, int | float | complex) else as_array(x)


def promoted(*args: ArrayLike) -> list[Array]:
    """Arguments as arrays of one floating dtype, as a ufunc takes them."""
    operands = [operand(arg) for arg in args]
    dtype = result_type(*operands, 0.0)
    return [astype(as_array(x), dtype, copy=False) for x in operands]


def typed(dtype: np.dtype[Any], *operands: Any) -> list[Any]:
    """Operands, with numbers as arrays of a dtype.

    For rules that choose between operands and constants: of two numbers, `where` makes float64.
    """
    return [np.asarray(x, dtype) if isinstance(x, int | float) else x for x in operands]


def whole_part(k: ArrayLike) -> Any:
    """An argument rounded down."""
    return math.floor(k) if isinstance(k, int | float) else floor(as_array(k))


def _narrowed(out: Any, dtype: Any) -> Any:
    if dtype.kind == "f" and out.dtype.kind == "f" and out.dtype != dtype:
        return out.astype(dtype)
    return out


@functools.lru_cache(maxsize=1024)
def _result_dtypes(evaluate: Callable[..., Any], kinds: Any, params: Any) -> tuple[Any, ...]:
    """What a forward gives on empty arrays of these dtypes, and numbers."""
    numbers = all(weak for _, weak in kinds)
    samples = (
        dtype.type(1).item() if weak and not numbers else np.empty(0, dtype)
        for dtype, weak in kinds
    )
    out = evaluate(np, *samples, **dict(params))
    return tuple(part.dtype for part in out) if isinstance(out, tuple) else (out.dtype,)


def _infer(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def infer(*avals: Aval, **params: Any) -> Any:
        kinds = tuple((aval.dtype, aval.weak) for aval in avals)
        dtypes = _result_dtypes(evaluate, kinds, tuple(params.items()))
        shape = broadcast_sizes(*(aval.shape for aval in avals))
        results = tuple(Aval(shape, dtype) for dtype in dtypes)
        return results if len(results) > 1 else results[0]

    return infer


def doubled(name: str, expression: Callable[..., Any], *, wide: bool = True) -> Callable[..., Any]:
    """The native form of a function of SciPy by its expression in double precision.

    SciPy computes many of its functions of float32 in double precision, and rounds the result.

    Args:
        name: The function of SciPy, which says what dtypes there are.
        expression: Of one element, see `core.scalar`.
        wide: Whether float32 is widened.
    """

    def element(*operands: Any) -> Any:
        values = [scalar.scalar(value) for value in operands]
        common = scalar.common(*values)
        # Python's numbers are as weak as everywhere, not float64 as SciPy takes them.
        values = [scalar.fit(value, common) if value.weak else value for value in values]
        values = list(scalar.promoted(*values, like=name))
        dtype = values[0].dtype
        if wide:
            values = [scalar.convert(value, np.float64) for value in values]
        return scalar.convert(expression(*values), dtype)

    return element


def with_params(name: str, evaluate: Callable[..., Any], *partials: Rule) -> Callable[..., Any]:
    """Define an elementwise op of several arrays whose rules take parameters.

    Args:
        name: The name of the op.
        evaluate: `evaluate(xp, *arrays, **params)`.
        *partials: Per array `partial(ct, out, *arrays, **params)`, as of `elementwise`.
    """

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any, **params: Any) -> Any:
        total = None
        for partial, tangent in zip(partials, tangents, strict=True):
            term = None if tangent is None else partial(tangent, out, *inputs, **params)
            if term is not None:
                total = term if total is None else total + term
        return total if total is None else broadcast_tangent(total, out)

    jvp.reads = frozenset().union(*map(rule_reads, partials))  # type: ignore[attr-defined]
    return general(
        name,
        evaluate,
        infer=_infer(evaluate),
        vjps=tuple(map(vjp_of_partial, partials, range(len(partials)))),
        jvp=jvp,
        batch=batch_elementwise,
        kind="elementwise",
        partials=partials,
    )


def with_results(
    name: str,
    evaluate: Callable[..., Any],
    outputs: int,
    *slopes: Callable[..., Sequence[Any]],
) -> Callable[..., Any]:
    """Define an elementwise op of several results.

    Args:
        name: The name of the op.
        evaluate: `evaluate(xp, *arrays)`, giving a tuple.
        outputs: The number of results.
        *slopes: Per array `slopes(out, *arrays)`, the derivatives of all results.
    """

    def vjp(i: int) -> Rule:
        def rule(ct: Any, out: Any, *inputs: Any) -> Any:
            slope = slopes[i](out, *inputs)
            terms = [part * conj(by) for part, by in zip(ct, slope, strict=True)]
            return unbroadcast(functools.reduce(lambda x, y: x + y, terms), inputs[i].shape)

        return rule

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any) -> Any:
        total: list[Any] = [None] * outputs
        for one, tangent in zip(slopes, tangents, strict=True):
            if tangent is not None:
                for k, by in enumerate(one(out, *inputs)):
                    total[k] = by * tangent if total[k] is None else total[k] + by * tangent
        pairs = zip(total, out, strict=True)
        return tuple(None if part is None else broadcast_tangent(part, of) for part, of in pairs)

    def batch(op: Op, axes: Any, args: Any, params: Any) -> Any:
        out, axis = batch_elementwise(op, axes, args, params)
        return out, (axis,) * outputs

    return general(
        name,
        evaluate,
        infer=_infer(evaluate),
        vjps=tuple(vjp(i) for i in range(len(slopes))),
        jvp=jvp,
        batch=batch,
        kind="elementwise",
        outputs=outputs,
    )


def in_parameter(function: str, parameter: str) -> NotDifferentiable:
    """The rule for a parameter (an order, a degree) that a function is not differentiated in."""
    return NotDifferentiable(
        f"{function}: no derivative with respect to {parameter} is known in closed form"
    )


def series(coefficients: Sequence[float], x: Any) -> Any:
    """Σ cₖ·xᵏ by Horner's rule, for anything."""
    total = coefficients[-1] * x + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * x + coefficient
    return total
