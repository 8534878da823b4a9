"""Integers and booleans in compiled code: at the ends of their ranges, and as Python's numbers.

Every op gives what eager code gives, bit for bit and in the same dtype, or raises where it raises.
Python's own integers never wrap around: they give what Python gives, or raise.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DivisionByZeroError, IntegerOverflowError

DTYPES = [bool, np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64]
FEW = [bool, np.int8, np.uint8, np.int64, np.uint64, np.float32]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """NumPy warns of what is compared here."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # ~True
        yield


def edges(dtype: Any) -> Any:
    """Numbers at the ends of a range, around 0, and around widths to shift by."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        return np.array([-1e30, -2.5, -1.0, 0.0, 0.5, 7.0, 3e18], kind)
    limits = np.iinfo(kind)
    ends = [limits.min, limits.min + 1, limits.max // 2, limits.max - 1, limits.max]
    small = [n for n in (-8, -3, -2, -1, 0, 1, 2, 3, 7, 8, 31, 63, 64) if n >= limits.min]
    return np.array([*ends, *small], kind)


def pairs(one: Any, other: Any) -> tuple[Any, Any]:
    x, y = np.meshgrid(edges(one), edges(other))
    return x.reshape(-1).copy(), y.reshape(-1).copy()


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{f"np.{ufunc.__name__}": ufunc for ufunc in (
        np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.fmod,
        np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift,
        np.right_shift, np.less, np.less_equal, np.equal, np.not_equal, np.greater,
        np.greater_equal, np.logical_and, np.logical_or, np.logical_xor, np.gcd, np.lcm,
    )},
    "where": lambda x, y: np.where(x, x, y),
    "divmod": lambda x, y: divmod(x, y)[1],
}  # fmt: skip

UNARY: dict[str, Callable[[Any], Any]] = {
    **{f"np.{ufunc.__name__}": ufunc for ufunc in (
        np.negative, np.positive, np.absolute, np.invert, np.logical_not, np.square, np.sign,
        np.reciprocal, np.floor, np.ceil, np.trunc, np.rint, np.isnan, np.isfinite, np.signbit,
        np.sum, np.prod, np.max, np.min, np.any, np.all, np.cumsum, np.cumprod, np.argmax,
        np.mean, np.sort, np.diff, np.count_nonzero,
    )},
    **{f"x ** {n!r}": lambda x, n=n: x**n for n in (0, 1, 2, 3, 5, 2.0, 0.5, True)},
    **{f"x // {n}": lambda x, n=n: x // n for n in (0, 1, 2, 7)},
    **{f"x % {n}": lambda x, n=n: x % n for n in (0, 1, 2, 7)},
    **{f"{n} // x": lambda x, n=n: n // x for n in (0, 7)},
    **{f"x << {n}": lambda x, n=n: x << n for n in (0, 1, 7, 70)},
    **{f"x >> {n}": lambda x, n=n: x >> n for n in (0, 1, 7, 70)},
    **{f"x + {n}": lambda x, n=n: x + n for n in (1, True)},
    **{f"x * {n}": lambda x, n=n: x * n for n in (2, 100, True)},
    **{f"x < {n}": lambda x, n=n: x < n for n in (-1, 0, 300, 2**63 - 1, 2**63, 2**64, 2**70)},
    **{f"{n} <= x": lambda x, n=n: n <= x for n in (-(2**70), -(2**63), 127, 255, 2**63)},
    **{f"x == {n}": lambda x, n=n: x == n for n in (-1, 255, 300, 2**64 - 1, 2**64)},
    **{f"as {np.dtype(d)}": lambda x, d=d: x.astype(d) for d in [*DTYPES, np.float32]},
    "1 - x": lambda x: 1 - x,
    "x.conj()": lambda x: x.conj() + x,
    "np.conj": np.conj,
    "x / 0": lambda x: x / 0,
    "abs": abs,
    "2 ** x": lambda x: 2 ** (x & 7),
    "clip": lambda x: np.clip(x, 1, 5),
    "x @ x": lambda x: x @ x,
    "outer": lambda x: np.outer(x, x),
    "round": lambda x: np.round(x, -1),
}  # fmt: skip


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns, or the exception it raises."""
    try:
        return function(*args)
    except Exception as error:
        return error


def compare(functions: dict[str, Callable[..., Any]], *args: Any) -> None:
    """All functions at once compiled, but for those that raise in eager code: each by itself."""
    eager = {name: outcome(function, *args) for name, function in functions.items()}
    fine = {name: f for name, f in functions.items() if not isinstance(eager[name], Exception)}
    compiled = gt.jit(lambda *args: {name: f(*args) for name, f in fine.items()})(*args)
    for name in fine:
        expected, got = np.asarray(eager[name]), np.asarray(compiled[name])
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
        if got.dtype.kind == "f":
            np.testing.assert_array_max_ulp(got, expected, 4)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=name)
    for name, error in eager.items():
        if isinstance(error, Exception):
            got = outcome(gt.jit(functions[name]), *args)
            assert isinstance(got, Exception), (name, got, error)
            assert "bug" not in str(got), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_ops_of_one_array(dtype: Any) -> None:
    x = np.resize(edges(dtype), 37)
    # The square of bools is int8 in NumPy 2.0, also by an exponent that is a float.
    odd = ["x ** 2.0"] if (x**2.0).dtype != np.power(x, 2.0).dtype else []
    compare({name: f for name, f in UNARY.items() if name not in odd}, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ops_of_two_arrays(dtype: Any) -> None:
    compare(BINARY, *pairs(dtype, dtype))


@pytest.mark.parametrize("one", FEW)
def test_ops_of_two_dtypes(one: Any) -> None:
    real = {name: f for name, f in BINARY.items() if name not in ("np.maximum", "np.minimum")}
    for other in FEW:
        if one is not other:
            compare(real, *pairs(one, other))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64])
def test_powers_of_two_arrays(dtype: Any) -> None:
    x, y = pairs(dtype, dtype)
    assert isinstance(outcome(gt.jit(operator.pow), x, y), Exception) == (dtype is np.int8)
    compare({"**": operator.pow, "power": np.power}, x[y >= 0], y[y >= 0])


def test_negative_powers_raise_as_in_numpy() -> None:
    x = np.array([1, 2])
    for function in (lambda x: x**-1, lambda x: x ** np.array([1, -1]), lambda x: 2 ** (x - 5)):
        with pytest.raises(ValueError, match="negative integer powers"):
            function(x)
        with pytest.raises(ValueError, match="negative integer powers"):
            gt.jit(function)(x)


def test_squares_of_booleans() -> None:
    x = np.array([True, False, True])
    for function in (lambda x: x**2, lambda x: np.power(x, 2), lambda x: x**3, np.square):
        got, expected = gt.jit(function)(x), function(x)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    # Also of tensors that nobody traces.
    assert (gt.tensor(x) ** 2).dtype == (x**2).dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_casts_out_of_range_are_those_of_x86(dtype: Any) -> None:
    x = np.array(
        [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 1e10, -1.0, 255.9, -129.5], dtype
    )
    smallest, half = -(2**63), 2**63
    expected = {
        np.int64: [smallest] * 5 + [int(v) for v in x[5:]],
        np.uint64: [half, 0, half, 0, half] + [int(v) % 2**64 for v in x[5:]],
        np.int32: [-(2**31)] * 8 + [-1, 255, -129],
        np.int8: [0] * 8 + [-1, -1, 127],
        np.uint16: [0] * 8 + [65535, 255, 65407],
    }
    made = gt.jit(lambda x: [x.astype(to) for to in expected])(x)
    for (to, values), array in zip(expected.items(), made, strict=True):
        np.testing.assert_array_equal(array, np.array(values, to), err_msg=str(to))


# ---- Python's integers --------------------------------------------------------------------------

NUMBERS = [0, 1, 2, -1, -3, 62, 63, 64, 2**32, 2**62, 2**63 - 1, -(2**63)]
OPERATORS: list[Callable[..., Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip


def python_outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What Python gives for integers; no number if it needs more memory than there is."""
    if function in (operator.pow, operator.lshift) and abs(args[1]) > 70:
        return OverflowError() if args[0] not in (0, 1, -1) and args[1] > 0 else None
    return outcome(function, *args)


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_python_integers_are_exact_or_raise(function: Callable[..., Any]) -> None:
    compiled = gt.jit(lambda x, y: function(x, y))
    for x, y in itertools.product(NUMBERS, repeat=2):
        expected, got = python_outcome(function, x, y), outcome(compiled, x, y)
        if isinstance(expected, int) and not -(2**63) <= expected < 2**63:
            expected = OverflowError()
        if isinstance(expected, Exception):
            assert isinstance(got, type(expected)) or (y < 0 and isinstance(got, ValueError))
        elif isinstance(expected, float) and function is operator.pow:
            assert isinstance(got, ValueError)  # of integers an integer is needed
        elif expected is not None:
            assert got == expected, (x, y)
            assert isinstance(got, type(expected) | np.bool)


@pytest.mark.parametrize("function", [operator.neg, operator.abs, operator.invert, operator.pos])
def test_signs_of_python_integers(function: Callable[..., Any]) -> None:
    compiled = gt.jit(lambda x: function(x))
    for x in NUMBERS[:-1]:
        assert compiled(x) == function(x)
    if function in (operator.neg, operator.abs):
        with pytest.raises(IntegerOverflowError):
            compiled(-(2**63))


def test_errors_name_the_op_the_number_and_the_line() -> None:
    def product(x: Any, a: Any, b: Any) -> Any:
        return x * (a * b)

    def quotient(a: Any, b: Any) -> Any:
        return a // b

    line = product.__code__.co_firstlineno + 1
    with pytest.raises(IntegerOverflowError) as caught:
        gt.jit(product)(np.ones(3), 2**40, 2**41)
    message = f"multiply: got the Python integer {2**40}, and the result is too large at {__file__}"
    assert str(caught.value).startswith(f"{message}:{line}, expected one that fits into 64 bits")
    line = quotient.__code__.co_firstlineno + 1
    with pytest.raises(
        DivisionByZeroError, match=rf"the Python integer 7 divided by 0 at .*:{line},"
    ):
        gt.jit(quotient)(7, 0)
    with pytest.raises(
        IntegerOverflowError, match=r"2 and 63, .*\(at .*test_jit_integers.py:\d+\)"
    ):
        gt.jit(lambda a, b: a**b)(2, 63)


def test_powers_of_python_integers() -> None:
    for n in (0, 1, 2, 3, 4, 7, 20):
        compiled = gt.jit(lambda x, n=n: x**n)
        for x in (-3, -2, 0, 1, 8, 2**20, 2**21, 2**32):
            exact = x**n
            if -(2**63) <= exact < 2**63:
                assert compiled(x) == exact
            else:
                with pytest.raises(OverflowError):
                    compiled(x)


def test_literals_beyond_64_bits() -> None:
    x, n = np.array([0.5, 2.0]), np.array([1, 2])
    np.testing.assert_array_equal(gt.jit(lambda x: x * 2**70)(x), x * 2**70)
    np.testing.assert_array_equal(gt.jit(lambda x: x < 10**30)(x), [True, True])
    assert gt.jit(lambda a: a / 2**70)(3) == 3 / 2**70
    assert gt.jit(lambda a: a - 2**63)(2**62) == 2**62 - 2**63
    assert not gt.jit(lambda a: a == 2**63)(2**63 - 1)
    for function in (lambda n: n + 2**63, lambda n: n * 2**70):
        with pytest.raises(OverflowError):
            gt.jit(function)(n)
    # Numbers that differ far beyond 64 bits are not taken for the same.
    one, other = gt.jit(lambda x: (x * 2**70, x * 3**50))(x)
    np.testing.assert_array_equal(one, x * 2**70)
    np.testing.assert_array_equal(other, x * 3**50)


def test_python_integers_in_company_of_arrays() -> None:
    def function(x: Any, n: Any, flag: Any) -> Any:
        return x * n // 2 + (n + 1) * flag, x.sum() + n * 2, (n - 1) ** 2 * x

    args = np.array([1, 2, 3]), 7, True
    for got, expected in zip(gt.jit(function)(*args), function(*args), strict=True):
        np.testing.assert_array_equal(got, expected)
    # Arrays wrap around, as NumPy's do.
    assert gt.jit(lambda x, n: x * n)(np.array([2**40]), 2**40) == 0


# ---- Python's truth values ----------------------------------------------------------------------


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_python_booleans_count_as_integers(function: Callable[..., Any]) -> None:
    compiled = gt.jit(lambda x, y: function(x, y))
    for x, y in itertools.product([True, False, 3], repeat=2):
        expected, got = outcome(function, x, y), outcome(compiled, x, y)
        if isinstance(expected, Exception):
            assert isinstance(got, type(expected))
        else:
            assert got == expected, (x, y)


def test_comparisons_of_python_numbers_count_as_well() -> None:
    def function(a: Any, b: Any, flag: Any) -> Any:
        return (a < b) + (a <= b) + flag, -(a < b), (a < b) * 2.5, ~flag, +flag, (a > b) + True

    inner = gt.jit(function)
    for compiled in (inner, gt.jit(lambda a, b, flag: inner(a, b, flag))):
        for args in [(1, 2, True), (2, 1, False), (1.5, 1.5, True)]:
            assert compiled(*args) == function(*args)


def test_booleans_of_numpy_are_not_counted() -> None:
    def function(x: Any, y: Any) -> Any:
        return x + y, x * y

    for args in [(np.True_, np.True_), (np.array([True]), True), (True, np.array([True, False]))]:
        for got, expected in zip(gt.jit(function)(*args), function(*args), strict=True):
            assert got.dtype == np.bool
            np.testing.assert_array_equal(got, expected)


# ---- complex numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.nanmax, np.nanmin, np.max])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_gradients_of_complex_extremes(function: Any, dtype: Any) -> None:
    def loss(z: Any) -> Any:
        found = function(z)
        return 2.0 * np.real(found) + np.imag(found)

    z = np.array([1 + 2j, 3 - 1j, 3 + 4j, 0], dtype)
    np.testing.assert_array_equal(gt.jit(gt.grad(loss))(z), gt.grad(loss)(z))


def test_python_integers_are_computed_outside_of_loops() -> None:
    report = gt.jit(lambda x, a, b: x * (a * b + 1)).explain(np.ones(1000), 2, 3)
    outside, loop = report.kernels
    assert "check" not in loop.listing
    assert "for i0 < 1000" in loop.listing
    assert "for" not in outside.listing
