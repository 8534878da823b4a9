"""What a lowering computes, by NumPy: an interpreter of `core.scalar` that shares no code with it.

An expression is evaluated for all elements at once: indices and operands are bound to whole arrays.
Every instruction is checked on the way: operands and result have the dtypes it says, and elements
are read inside of arrays only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval, aval_of
from gradtape.core.lowering import (
    Composite,
    Contraction,
    Elements,
    Lowering,
    Matrices,
    Pointwise,
    Reduction,
    Relabel,
    Scan,
    Scatter,
)
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.core.state import Proceed
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import UnsupportedError
from gradtape.ops.special.bessel_fixed import i2, i2e
from gradtape.ops.special.stirling import real_polygamma

# Instructions whose operands have one dtype, which is also that of the result.
UNIFORM = {
    name: getattr(np, name)
    for name in (
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod"),
        *("negative", "absolute", "maximum", "minimum", "copysign"),
        *("floor", "ceil", "trunc", "rint", "left_shift", "right_shift"),
    )
}
UNIFORM |= {name: getattr(np, f"bitwise_{name}") for name in ("and", "or", "xor")}
TESTS = {
    name: getattr(np, name)
    for name in (
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "signbit"),
    )
}
ELEMENTARY = {
    name: getattr(np, name)
    for name in (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "power"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "hypot"),
        *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    )
}
ELEMENTARY |= {
    "sigmoid": scipy.special.expit,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx,
    "erfinv": scipy.special.erfinv,
    "erfcinv": scipy.special.erfcinv,
    "ndtr": scipy.special.ndtr,
    "log_ndtr": scipy.special.log_ndtr,
    "ndtri": scipy.special.ndtri,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "trigamma": functools.partial(real_polygamma, np, 1),
    "tetragamma": functools.partial(real_polygamma, np, 2),
    **{f"bessel_{name}": getattr(scipy.special, name) for name in ("i0", "i1", "i0e", "i1e")},
    "bessel_i2": functools.partial(i2.op.evaluate, np),
    "bessel_i2e": functools.partial(i2e.op.evaluate, np),
}
COMBINE = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.logical_and,
    "or": np.logical_or,
}


class Operand:
    """An operand that elements are read from; a number of Python's has none but itself."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.aval = aval_of(value)
        promotion.native(self.aval.dtype)

    def __call__(self, *index: Any, inside: Scalar | None = None) -> Scalar:
        assert len(index) == self.aval.ndim, f"{len(index)} indices for {self.aval}"
        if self.aval.weak:
            return scalar.constant(self.value)
        places = [scalar.constant(k, promotion.INT64) if isinstance(k, int) else k for k in index]
        assert all(place.dtype == promotion.INT64 for place in places)
        where = [] if inside is None else [inside]
        array = np.asarray(self.value)
        return Scalar("read", (*places, *where), self.aval.dtype, extra=array)

    def check(self, value: Scalar, holds: Scalar, message: str, given: Scalar) -> Scalar:
        return scalar.check(value, holds, message, given)


def instruction(part: Scalar, values: list[Any]) -> Any:
    """What an instruction of the language gives for the values of its operands."""
    name, dtypes = part.name, [value.dtype for value in values]
    if name == "constant":
        return np.asarray(part.extra, part.dtype)
    if name in ("axis", "argument"):
        return part.extra
    if name == "read":
        return _read(part.extra, values)
    if name == "convert":
        assert part.dtype != np.bool_, "truth values are asked for by comparison with 0"
        return values[0].astype(part.dtype)
    if name == "check":
        assert dtypes[0] == part.dtype
        assert np.all(values[1]), part.extra
        return values[0]
    if name in ("select", "rarely"):
        assert dtypes == [np.bool_, part.dtype, part.dtype]
        return np.where(*values)
    if name in ("bits", "from_bits"):
        assert dtypes[0].itemsize == part.dtype.itemsize
        return values[0].view(part.dtype)
    assert len(set(dtypes)) == 1, f"{name} of {dtypes}"
    if name in TESTS:
        return TESTS[name](*values)
    assert dtypes[0] == part.dtype
    assert part.dtype.kind != "b" or name in ("and", "or", "xor"), f"{name} of truth values"
    if name in ELEMENTARY or name == "fma":
        assert part.dtype.kind == "f"
        # In full: NumPy takes a square root for a power of 0.5 that all elements share.
        values = [np.array(value) for value in np.broadcast_arrays(*values)]
        return _fused(*values) if name == "fma" else ELEMENTARY[name](*values)
    return UNIFORM[name](*values)


def evaluate(
    expression: Scalar,
    done: dict[int, Any] | None = None,
    compute: Callable[[Scalar, list[Any]], Any] = instruction,
) -> Any:
    """The values of an expression.

    Args:
        expression: What to compute.
        done: What is done already, by the identity of the parts.
        compute: Gives the value of one part from those of its arguments.
    """
    done = {} if done is None else done
    stack = [expression]
    while stack:
        part = stack[-1]
        missing = [arg for arg in part.args if id(arg) not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        if id(part) not in done:
            value = np.asarray(compute(part, [done[id(arg)] for arg in part.args]))
            assert value.dtype == part.dtype, f"{part.name} is {value.dtype}, not {part.dtype}"
            done[id(part)] = value
    return done[id(expression)]


def _fused(x: Any, y: Any, z: Any) -> Any:
    """x·y + z with more digits, which `longdouble` has for all that is computed here."""
    return (x.astype(np.longdouble) * y + z).astype(x.dtype)


def _read(array: Any, values: list[Any]) -> Any:
    places, where = values[: array.ndim], values[array.ndim :]
    valid = np.broadcast_to(where[0] if where else True, np.broadcast_shapes(*_shapes(values)))
    out = np.zeros(valid.shape, array.dtype)
    chosen = tuple(np.broadcast_to(place, valid.shape)[valid] for place in places)
    for place, size in zip(chosen, array.shape, strict=True):
        assert np.all((place >= 0) & (place < size)), "read outside of an array"
    out[valid] = array[chosen]
    return out


def _shapes(values: list[Any]) -> list[tuple[int, ...]]:
    return [value.shape for value in values]


# ---- the forms of lowering ----------------------------------------------------------------------


def _pointwise(form: Pointwise, operands: Any, params: Any, out: Aval, known: bool) -> Any:
    args = []
    for value in operands:
        aval = Operand(value).aval
        if aval.weak and known:
            args.append(scalar.constant(value))
        else:
            array = np.broadcast_to(np.asarray(value), out.shape)
            args.append(Scalar("argument", (), aval.dtype, weak=aval.weak, extra=array))
    return evaluate(form.expression(*args, **params))


def _elements(form: Elements, operands: Any, params: Any, out: Aval) -> Any:
    return evaluate(form.expression(_point(out.shape), *map(Operand, operands), **params))


def _reduction(form: Reduction, operands: Any, params: Any) -> Any:
    array = operands[0]
    element = Scalar("argument", (), Operand(array).aval.dtype, extra=array)
    values = evaluate(element if form.element is None else form.element(element))
    # NumPy adds small integers up in 64 bits by itself: that must have been said before.
    return COMBINE[form.combine].reduce(
        values, axis=params["axis"], keepdims=params["keepdims"], dtype=values.dtype
    )


def _scan(form: Scan, operands: Any, params: Any, out: Aval) -> Any:
    promotion.native(Operand(operands[0]).aval.dtype)
    step = -1 if params.get("reverse", False) else 1
    x, *factors = (np.moveaxis(operand, params["axis"], 0)[::step] for operand in operands)
    result = np.array(x, out.dtype)
    for k in range(1, len(result)):
        before = factors[0][k] * result[k - 1] if factors else result[k - 1]
        result[k] = COMBINE[form.combine](before, result[k])
    return np.moveaxis(result[::step], 0, params["axis"])


def _scatter(form: Scatter, operands: Any, params: Any, out: Aval) -> Any:
    result = np.zeros(out.shape, out.dtype)
    readers = list(map(Operand, operands))
    if form.start is not None:
        result[...] = evaluate(form.start(_point(out.shape), *readers, **params))
    serial, free = form.sizes(*(reader.aval for reader in readers), **params)
    index, value = form.put(_point((*serial, *free)), *readers, **params)
    points = (*serial, *free)
    places = [np.broadcast_to(evaluate(scalar.scalar(k)), points) for k in index]
    values = np.broadcast_to(evaluate(value), points)
    for point in np.ndindex(*points):
        place = tuple(k[point] for k in places)
        result[place] = result[place] + values[point] if form.adds else values[point]
    return result


class _Site:
    """Where an op on matrices is lowered."""

    def __init__(self, avals: Any) -> None:
        self.avals = avals

    def check(
        self, value: Scalar, holds: Scalar, error: type, message: str, given: Any = 0
    ) -> Scalar:
        return scalar.check(value, holds, (error, message), given)


def _matrices(form: Matrices, operands: Any, params: Any, outs: list[Aval]) -> list[Any]:
    avals = [Operand(value).aval for value in operands]
    nothing = 0 in avals[-1].shape or 0 in outs[0].shape
    if nothing or not form.fits(*avals, **params):
        raise UnsupportedError("these matrices are too large, or empty")
    stack = np.broadcast_shapes(*(aval.shape[: -form.axes] for aval in avals))

    def nested(array: Any, axes: int) -> Any:
        if axes:
            return [nested(part, axes - 1) for part in np.moveaxis(array, -axes, 0)]
        whole = np.broadcast_to(array.astype(outs[0].dtype), stack)
        return Scalar("argument", (), outs[0].dtype, extra=whole)

    made = form.small(_Site(avals), *(nested(array, form.axes) for array in operands), **params)
    results = [made] if len(outs) == 1 else made
    return [_of_lists(*pair, stack) for pair in zip(results, outs, strict=True)]


def _of_lists(result: Any, out: Aval, stack: tuple[int, ...]) -> Any:
    """Nested lists of expressions as an array; of a larger stack than its own, the first parts."""
    if not all(out.shape):
        return np.empty(out.shape, out.dtype)

    def values(part: Any) -> Any:
        if isinstance(part, Scalar):
            return np.broadcast_to(evaluate(scalar.convert(part, out.dtype)), stack)
        return np.stack([values(each) for each in part], axis=len(stack))

    whole = values(result)
    own = out.shape[: len(out.shape) - (whole.ndim - len(stack))]
    first = (0,) * (len(stack) - len(own)) + tuple(
        slice(None) if n == m else slice(1) for n, m in zip(own[::-1], stack[::-1], strict=False)
    )[::-1]
    return whole[first]


def _point(shape: tuple[int, ...]) -> tuple[Scalar, ...]:
    grid = np.indices(shape, np.int64)
    return tuple(Scalar("axis", (), promotion.INT64, extra=places) for places in grid)


def interpret(op: Op, operands: Any, params: Any, *, known: bool = True) -> Any:
    """The result of an op by its lowering, of the shape and dtype that `infer` says.

    Args:
        op: The op.
        operands: Arrays and numbers.
        params: Its parameters.
        known: Whether the numbers are known when it is compiled, or arguments of what is compiled.
    """
    form: Lowering | None = op.lower
    out = op.infer(*map(aval_of, operands), **params)
    with np.errstate(all="ignore"):
        if isinstance(form, Pointwise):
            value = _pointwise(form, operands, params, out, known)
        elif isinstance(form, Elements):
            value = _elements(form, operands, params, out)
        elif isinstance(form, Reduction):
            value = _reduction(form, operands, params)
        elif isinstance(form, Scan):
            value = _scan(form, operands, params, out)
        elif isinstance(form, Scatter):
            value = _scatter(form, operands, params, out)
        elif isinstance(form, Relabel):
            value = np.array(operands[0]).reshape(out.shape)
        elif isinstance(form, Contraction):
            value = np.matmul(*(x.astype(out.dtype) for x in operands))
        elif isinstance(form, Matrices):
            found = _matrices(form, operands, params, [out] if op.outputs == 1 else list(out))
            value = found[0] if op.outputs == 1 else found
        else:
            assert isinstance(form, Composite)
            with gt.using_mode(_Interpret()):
                value = form.function(*map(Tensor, operands), **params)
    if op.outputs == 1:
        return _result(op, value, out)
    return [_result(op, *pair) for pair in zip(value, out, strict=True)]


class _Interpret:
    """A mode that interprets the lowerings of what an op is composed of."""

    kind = "rewriting"

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        if op.lower is None:
            return proceed(op, args, params)
        value = interpret(op, tuple(_raw(arg) for arg in args), params)
        return Tensor(value) if op.outputs == 1 else [*map(Tensor, value)]


def _result(op: Op, value: Any, out: Aval) -> Any:
    value = np.asarray(value)
    assert value.dtype == out.dtype, f"{op.name}: infer says {out.dtype}, got {value.dtype}"
    return np.broadcast_to(value, out.shape)


# ---- calls to interpret -------------------------------------------------------------------------


class Sample(NamedTuple):
    """One call of an op on raw values."""

    operands: tuple[Any, ...]
    params: dict[str, Any]

    @property
    def key(self) -> Any:
        """Equal for calls with the same abstract values."""
        return tuple(aval_of(x) for x in self.operands), str(self.params)

    @property
    def native(self) -> bool:
        """Whether all operands have machine instructions."""
        return all(aval_of(x).dtype in promotion.NATIVE for x in self.operands)


class Collect:
    """A mode that writes down every call of an op."""

    kind = "rewriting"

    def __init__(self) -> None:
        self.samples: dict[str, dict[Any, Sample]] = {}

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        sample = Sample(tuple(_raw(arg) for arg in args), params)
        self.samples.setdefault(op.name, {}).setdefault(sample.key, sample)
        return proceed(op, args, params)


def _raw(arg: Any) -> Any:
    if isinstance(arg, Tensor):
        return np.array(innermost(arg, show=True))
    return arg if isinstance(arg, int | float | complex | np.generic) else np.array(arg)
