"""Elementary functions as machine code: values against mpmath, special ones against NumPy."""

import ctypes
import functools
import math
import platform
import re
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

from elementary_samples import (
    BINARY,
    DTYPES,
    EXACT,
    arguments,
    errors,
    exact_values,
    near_multiples,
)
from gradtape.compiler.cpu.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.instructions import elementary
from gradtape.compiler.cpu.llvm.link import Cpu, Library, assembly, compile_module, host
from gradtape.compiler.elementary import ELEMENTARY as EXPRESSIONS
from gradtape.ops.special.bessel_fixed import i2, i2e

# (builder, *operands) -> result
ELEMENTARY: dict[str, Callable[..., Value]] = {
    **{name: functools.partial(elementary, name) for name in EXPRESSIONS},
    "sqrt": Builder.sqrt,
}
# Also a CPU without a fused multiply-add, whose code runs on all that have one.
TARGETS = {"host": host()}
if platform.machine() in ("x86_64", "AMD64"):
    TARGETS["no-fma"] = Cpu("x86-64-v2", "+sse4.2")
UNARY = tuple(name for name in ELEMENTARY if name not in BINARY)

# Largest error in units in the last place, float and double: a little above what millions of
# arguments showed.
BOUNDS = {
    "exp": (1.1, 1.1),
    "exp2": (1.0, 1.0),
    "expm1": (1.6, 2.0),
    "sigmoid": (2.4, 2.4),
    "log": (1.0, 1.0),
    "log2": (1.2, 1.3),
    "log10": (1.2, 1.1),
    "log1p": (1.6, 1.4),
    "sin": (1.9, 1.8),
    "cos": (2.2, 1.8),
    "tan": (2.7, 2.8),
    "sinh": (1.9, 2.3),
    "cosh": (1.9, 1.6),
    "tanh": (2.2, 2.5),
    "arcsin": (1.3, 1.3),
    "arccos": (1.2, 1.3),
    "arctan": (2.0, 2.0),
    "arctan2": (2.0, 2.0),
    "arcsinh": (2.0, 2.0),
    "arccosh": (2.1, 2.3),
    "arctanh": (2.3, 2.1),
    "sqrt": (0.5, 0.5),
    "cbrt": (0.8, 0.8),
    "hypot": (1.1, 1.1),
    "power": (0.6, 1.4),
    "erf": (1.2, 1.2),
    "erfc": (2.8, 2.5),
    "erfcx": (2.7, 2.7),
    "ndtr": (3.7, 3.9),
    "log_ndtr": (3.9, 3.9),
    "erfinv": (2.6, 2.0),
    "erfcinv": (2.9, 2.8),
    "ndtri": (3.0, 3.0),
    "lgamma": (3.2, 3.5),
    "digamma": (3.1, 3.9),
    "trigamma": (2.8, 2.8),
    "tetragamma": (3.2, 3.3),
    "bessel_i0": (3.0, 2.8),
    "bessel_i1": (2.8, 2.8),
    "bessel_i2": (3.0, 2.9),
    "bessel_i0e": (2.8, 2.8),
    "bessel_i1e": (2.8, 2.6),
    "bessel_i2e": (3.4, 3.1),
}
# How much more without a fused multiply-add; a quotient of long polynomials shows it most.
WITHOUT_FMA = {"ndtr": 1.7, "bessel_i2e": 1.3}


def exactly(name: str, scipy_function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of SciPy, with better values where they can be computed."""

    def computed(x: np.ndarray) -> np.ndarray:
        out = scipy_function(x)
        for i, value in enumerate(x.tolist()):
            is_pole = value <= 0 and value == np.floor(value) and "gamma" in name
            outside = name == "erfcinv" and not 0 < value < 2
            if abs(value) < 1e4 and not (is_pole or outside):
                with mp.workprec(200):
                    out[i] = float(EXACT[name](mp.mpf(value)))
        return out

    return computed


REFERENCE: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ELEMENTARY if hasattr(np, name)},
    "sigmoid": scipy.special.expit,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    **{name: getattr(scipy.special, name) for name in ("erfcx", "erfinv", "ndtri")},
    **{f"bessel_{name}": getattr(scipy.special, name) for name in ("i0", "i1", "i0e", "i1e")},
    **{f"bessel_{op.name}": functools.partial(op.evaluate, np) for op in (i2.op, i2e.op)},
    "erfcinv": exactly("erfcinv", scipy.special.erfcinv),
    "ndtr": exactly("ndtr", scipy.special.ndtr),
    "log_ndtr": exactly("log_ndtr", scipy.special.log_ndtr),
    "lgamma": exactly("lgamma", scipy.special.gammaln),
    "digamma": exactly("digamma", scipy.special.digamma),
    "trigamma": lambda x: scipy.special.zeta(2.0, x),
    "tetragamma": exactly("tetragamma", lambda x: -2.0 * scipy.special.zeta(3.0, x)),
}


# ---- running what was written -------------------------------------------------------------------


def loop(module: Module, name: str, write: Callable[..., Value], type: Type, operands: int) -> None:
    """Add a function that applies `write` to arrays whose size is a multiple of the lanes."""
    b = Builder(module)
    pointers = [Value(PTR, f"%x{number}") for number in range(operands)]
    out, size, i = Value(PTR, "%out"), Value(I64, "%size"), Value(I64, "%i")
    b.branch("loop")
    b.start("loop")
    # What is written may end in another block than it begins in; the latch is the same in any case.
    b.emit("%i = phi i64 [ 0, %entry ], [ %following, %latch ]")
    values = [b.load(b.element(pointer, i, type.scalar), type) for pointer in pointers]
    b.store(write(b, *values), b.element(out, i, type.scalar))
    b.branch("latch")
    b.start("latch")
    b.emit(f"%following = add i64 %i, {type.lanes}")
    b.branch_if(b.icmp("ult", Value(I64, "%following"), size), "loop", "done")
    b.start("done")
    b.emit("ret void")
    listed = ", ".join(map(str, (*pointers, out, size)))
    width = f'"prefer-vector-width"="512" "min-legal-vector-width"="{type.bits * type.lanes}"'
    module.define(b.function(f"define void @{name}({listed}) {width}"))


@functools.cache
def module_text(scalar: str, lanes: int) -> str:
    """One module with all functions."""
    module = Module()
    for name, write in ELEMENTARY.items():
        loop(module, f"k_{name}", write, Type(scalar, lanes), 2 if name in BINARY else 1)
    return str(module)


@functools.cache
def library(scalar: str, lanes: int, target: Cpu) -> Library:
    """That module as machine code."""
    code = compile_module(module_text(scalar, lanes), target)
    return Library(code, {}, [f"k_{name}" for name in ELEMENTARY])


def widest(scalar: str, target: Cpu) -> int:
    """How many lanes a register of the target has."""
    return target.vector_bytes // DTYPES[scalar].itemsize


def call(address: int, lanes: int, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Apply a function made by `loop`."""
    size = operands[0].size
    padded = [np.resize(operand, -(-size // lanes) * lanes) for operand in operands]
    out = np.empty_like(padded[0])
    signature = [ctypes.c_void_p] * (len(padded) + 1) + [ctypes.c_int64]
    arrays = [array.ctypes.data for array in (*padded, out)]
    ctypes.CFUNCTYPE(None, *signature)(address)(*arrays, out.size)
    return out[:size]


def apply(name: str, *operands: np.ndarray, lanes: int = 0, target: Cpu | None = None) -> Any:
    """A function of arrays of one dtype."""
    scalar = "float" if operands[0].dtype == np.float32 else "double"
    target = target or host()
    lanes = lanes or widest(scalar, target)
    return call(library(scalar, lanes, target).address(f"k_{name}"), lanes, operands)


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", DTYPES)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_values_are_exact_to_a_few_last_bits(name: str, scalar: str, thorough: bool) -> None:
    # A quarter of the arguments are hundreds all the same, from each of the ranges.
    step = 1 if thorough else 4
    operands = [values[::step] for values in arguments(name, DTYPES[scalar])]
    exact = exact_values(name, scalar, step)
    for which, target in TARGETS.items():
        found = errors(apply(name, *operands, target=target), exact)
        worst = int(np.argmax(found))
        bound = BOUNDS[name][scalar == "double"]
        assert bound <= 4
        bound += 0 if "+fma" in target.features.split(",") else WITHOUT_FMA.get(name, 1.0)
        assert found[worst] <= bound, (which, [operand[worst] for operand in operands])


@pytest.mark.parametrize("name", ELEMENTARY)
def test_values_do_not_depend_on_the_lanes(name: str) -> None:
    for scalar, dtype in DTYPES.items():
        operands = arguments(name, dtype)
        results = [apply(name, *operands, lanes=lanes) for lanes in (1, 4, widest(scalar, host()))]
        for other in results[1:]:
            np.testing.assert_array_equal(results[0].view(np.uint8), other.view(np.uint8), scalar)


@pytest.mark.parametrize(
    ("scalar", "x"),
    [
        ("double", math.ldexp(6381956970095103, 797)),  # closest of all to a multiple of π/2
        ("double", math.ldexp(5319372648326541, 1)),
        ("double", np.finfo(np.float64).max),
        ("double", 131072.0),
        ("double", np.nextafter(131072.0, math.inf)),
        ("float", math.ldexp(16367173, 72)),
        ("float", float(np.finfo(np.float32).max)),
        ("float", 3200.0),
        ("float", float(np.nextafter(np.float32(3200), np.float32(9999)))),
    ],
)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_arguments(name: str, scalar: str, x: float) -> None:
    # One lane is far, its neighbours are not.
    values = np.array([x, 1.0, -x, 0.5], DTYPES[scalar])
    with mp.workprec(1400):
        exact = [EXACT[name](mp.mpf(value)) for value in values.tolist()]
    assert max(errors(apply(name, values), exact)) <= BOUNDS[name][scalar == "double"]


def test_arguments_close_to_zeros_of_the_sine_in_single_precision() -> None:
    multiples = np.unique(near_multiples(np.dtype(np.float32), np.arange(1, 2100)))
    neighbours = np.concatenate([multiples, np.nextafter(multiples, np.float32(0))])
    for name in ("sin", "cos", "tan"):
        # Double precision is exact enough to compare with.
        exact = [mp.mpf(value) for value in REFERENCE[name](neighbours.astype(float)).tolist()]
        for target in TARGETS.values():
            assert max(errors(apply(name, neighbours, target=target), exact)) <= 3


# ---- special values -----------------------------------------------------------------------------


def special_values(dtype: np.dtype) -> np.ndarray:
    info = np.finfo(dtype)
    sizes = [0, info.smallest_subnormal, info.tiny, 1e-5, 0.25, 0.5, 1 - info.epsneg, 1]
    sizes += [1 + info.eps, 1.5, 2, 3, 20, 1000, 2.0**info.nmant + 1, 2.0 ** (info.nmant + 1)]
    sizes += [1e30, info.max, math.inf]
    return np.array([*sizes, *(-size for size in sizes), math.nan], dtype)


def assert_same(got: np.ndarray, expected: np.ndarray, where: str) -> None:
    """NaN, infinities and zeros the same, with their signs; other numbers close."""
    must_be_equal = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(got[must_be_equal], expected[must_be_equal], where)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]), where)
    # Where SciPy computes in single precision, both have an error.
    tiny = 4 * np.finfo(got.dtype).smallest_subnormal
    eps = np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, expected, rtol=8 * eps, atol=tiny, err_msg=where)


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str) -> None:
    for scalar, dtype in DTYPES.items():
        x = special_values(dtype)
        with np.errstate(all="ignore"):
            expected = with_results_in_range(REFERENCE[name](x.astype(np.float64)), scalar)
        for which, target in TARGETS.items():
            assert_same(apply(name, x, target=target), expected, f"{scalar}, {which}")


@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two_arguments(name: str) -> None:
    for scalar, dtype in DTYPES.items():
        x, y = (grid.ravel() for grid in np.meshgrid(*[special_values(dtype)] * 2))
        with np.errstate(all="ignore"):
            exact = REFERENCE[name](x.astype(np.float64), y.astype(np.float64))
        expected = with_results_in_range(exact, scalar)
        for which, target in TARGETS.items():
            assert_same(apply(name, x, y, target=target), expected, f"{scalar}, {which}")


def with_results_in_range(values: np.ndarray, scalar: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(DTYPES[scalar])


@pytest.mark.parametrize("scalar", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "sinh", "cosh"])
def test_overflow_begins_where_it_should(name: str, scalar: str) -> None:
    dtype = DTYPES[scalar]
    # The last argument with a finite result, by bisection with exact values.
    largest = mp.mpf(float(np.finfo(dtype).max))
    low, high = dtype.type(10), dtype.type(2000)
    while np.nextafter(low, high) < high:
        middle = dtype.type((float(low) + float(high)) / 2)
        low, high = (
            (middle, high) if EXACT[name](mp.mpf(float(middle))) <= largest else (low, middle)
        )
    x = np.array([np.nextafter(low, dtype.type(0)), high, np.nextafter(high, dtype.type(3000))])
    np.testing.assert_array_equal(np.isinf(apply(name, x)), [False, True, True])


@pytest.mark.parametrize("scalar", DTYPES)
def test_whole_results_are_whole(scalar: str) -> None:
    dtype = DTYPES[scalar]
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp).astype(dtype)
    powers = np.ldexp(np.ones_like(exponents), exponents.astype(int))
    np.testing.assert_array_equal(apply("exp2", exponents), powers)
    np.testing.assert_array_equal(apply("log2", powers), exponents)
    tens = np.arange(10 if scalar == "float" else 22).astype(dtype)
    np.testing.assert_array_equal(apply("log10", np.array([10.0**n for n in tens], dtype)), tens)
    numbers = np.arange(1, 200).astype(dtype)
    np.testing.assert_array_equal(apply("cbrt", numbers**3), numbers)
    for exponent in range(5):
        whole = numbers[numbers.astype(float) ** exponent < 2.0 ** (info.nmant + 1)]
        for base in (whole, -whole):
            got = apply("power", base, np.full_like(base, exponent))
            np.testing.assert_array_equal(got, base.astype(float) ** exponent)


# ---- the code -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scalar", "target"),
    [
        # Code that lacks an instruction, and the widest registers; compiling it takes long.
        pytest.param(
            scalar,
            target,
            id=f"{scalar}-{which}",
            marks=() if (which == "host") == (scalar == "double") else pytest.mark.slow,
        )
        for scalar in DTYPES
        for which, target in TARGETS.items()
    ],
)
def test_nothing_is_called_but_the_way_round_for_far_arguments(scalar: str, target: Cpu) -> None:
    listing = assembly(module_text(scalar, widest(scalar, target)), target)
    called = set(re.findall(r"^\s+(?:callq?|jmp)\s+([^.\s*][^\s]*)", listing, re.MULTILINE))
    assert called == {"gradtape.far_remainders"}


def test_functions_can_follow_each_other() -> None:
    # The second branches in a block that the first began; the module has one way round for both.
    def write(b: Builder, x: Value) -> Value:
        s, c = ELEMENTARY["sin"](b, x), ELEMENTARY["cos"](b, x)
        return b.fadd(b.fmul(s, s), b.fmul(c, c))

    module = Module()
    loop(module, "k", write, Type("double", 4), 1)
    assert str(module).count("define internal void @gradtape.far_remainders") == 1
    x = np.array([0.0, 1.0, 1e9, -1e300, math.inf, 2.0, -3.0, 1e5])
    code = Library(compile_module(str(module)), {}, ["k"])
    result = call(code.address("k"), 4, [x])
    np.testing.assert_allclose(result, np.where(np.isinf(x), np.nan, 1.0), rtol=1e-15)
