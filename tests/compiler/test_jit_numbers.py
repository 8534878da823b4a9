"""Numbers in compiled code: integers of all widths, NaN, infinities, zeros with signs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from jitcheck import assert_close

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
NUMBERS = [bool, *INTEGERS, np.float32, np.float64]
# More than a vector of the widest kind holds, and no multiple of any.
COUNT = 83


def eager(function: Callable[..., Any], *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*args)


def integers(dtype: Any) -> Any:
    """The ends of the range of a dtype, what is next to them, and small numbers."""
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2]
    small = [n for n in range(-3, 4) if n >= limits.min]
    return np.array([*ends, *small], dtype)


def pairs(dtype: Any) -> tuple[Any, Any]:
    """All pairs of such numbers."""
    one, other = np.meshgrid(integers(dtype), integers(dtype))
    return one.reshape(-1).copy(), other.reshape(-1).copy()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around_and_divide_as_in_numpy(dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return (
            [x + y, x - y, x * y, x // y, x % y, np.maximum(x, y), np.minimum(x, y)],
            [-x, abs(x), np.sign(x), x * 3, x // 3, x % 3, 7 // x, 7 % x, x**2, x**3],
            [x < y, x <= y, x == y, x != y, x > 2, np.where(x > y, x, y)],
            [x.sum(), x.prod(), x.max(), x.min(), x.cumsum(), x.argmax(), x.argmin()],
            [x.astype(bool), np.clip(x, 1, 5), np.square(x), x.all(), x.any()],
        )

    x, y = pairs(dtype)
    assert_close(gt.jit(function)(x, y), eager(function, x, y), 0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_become_floating_as_in_numpy(dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return [x / y, x.mean(), x.var(), x * 0.5, np.sqrt(abs(x)), x.astype(np.float32), x + 1.0]

    x, y = pairs(dtype)
    assert_close(gt.jit(function)(x, y), eager(function, x, y))


def test_dtypes_are_promoted_as_in_numpy() -> None:
    kinds = list(itertools.product(range(len(NUMBERS)), repeat=2))

    def function(arrays: Any) -> Any:
        results = []
        for one, other in kinds:
            x, y = arrays[one], arrays[other]
            results.append([x + y, x * y, np.maximum(x, y), x < y, x == y, np.where(x, x, y)])
            results[-1] += [] if x.dtype == y.dtype == bool else [x - y]
        return results

    arrays = []
    for dtype in NUMBERS:
        values = integers(dtype) if np.dtype(dtype).kind in "iu" else np.arange(-3, 4) * 0.75
        arrays.append(np.resize(values, 8).astype(dtype))
    assert_close(gt.jit(function)(arrays), eager(function, arrays), 2)


def test_dtypes_are_cast_as_in_numpy() -> None:
    def function(arrays: Any) -> Any:
        return [x.astype(dtype) for x in arrays for dtype in NUMBERS]

    values = np.array([0, 1, 2, 3, 5, 100, 126, 127] * 9 + [1], np.int64)
    arrays = [values.astype(dtype) for dtype in NUMBERS]
    arrays += [integers(dtype) for dtype in INTEGERS]
    # Fractions are cut off; what does not fit has no meaning in NumPy either.
    arrays += [np.linspace(-100, 100, 41).astype(dtype)[20:] for dtype in (np.float32, np.float64)]
    assert_close(gt.jit(function)(arrays), eager(function, arrays), 0)


def test_floats_that_fit_no_integer_do_not_crash() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 1.5] * 5)
    compiled = gt.jit(lambda x: [x.astype(dtype) for dtype in NUMBERS])
    for out, dtype in zip(compiled(x), NUMBERS, strict=True):
        assert out.dtype == dtype
        assert out[5] == np.float64(1.5).astype(dtype)


def test_booleans() -> None:
    def function(x: Any, y: Any) -> Any:
        return (
            [x & y, x | y, x ^ y, ~x] if hasattr(x, "__and__") else [],
            [x + y, x * y, np.logical_and(x, y), np.logical_or(x, y), np.logical_not(x)],
            [x.sum(), x.any(), x.all(), x.mean(), x.cumsum(), x.max(), x.argmax(), x == y, x < y],
            [x * 2, x + 1.5, np.where(x, 3, y), x.astype(np.int8), x.prod(), np.logical_xor(x, y)],
        )

    rng = np.random.default_rng(0)
    x, y = rng.random((2, COUNT)) < 0.5
    assert_close(gt.jit(function)(x, y), function(x, y))


# ---- NaN, infinities, zeros ---------------------------------------------------------------------

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-310, 1e308, -1e308, 3.0]
ONE = [
    np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10, np.sin, np.cos, np.tan, np.tanh, np.sinh,
    np.cosh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.sqrt, np.cbrt,
    np.abs, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.square, np.reciprocal, np.negative,
    np.isnan, np.isinf, np.isfinite, np.signbit, np.exp2, gt.sigmoid, gt.erf, gt.relu, gt.softplus,
]  # fmt: skip
TWO = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.fmax, np.fmin,
    np.arctan2, np.hypot, np.copysign, np.less, np.less_equal, np.equal, np.not_equal, np.greater,
    np.floor_divide, np.remainder, np.logaddexp, np.where,
]  # fmt: skip


def of_one(x: Any) -> Any:
    return [function(x) for function in ONE]


def of_two(x: Any, y: Any) -> Any:
    return [np.where(x > y, x, y) if f is np.where else f(x, y) for f in TWO]


def of_all(x: Any) -> Any:
    return [
        [x.sum(), x.prod(), x.max(), x.min(), x.mean(), x.argmax(), x.argmin(), x.any(), x.all()],
        [x.cumsum(), np.clip(x, -1.0, 1.0), gt.softmax(x), gt.logsumexp(x), np.var(x)],
        [x.astype(bool), np.where(np.isnan(x), 0.0, x), x @ x, np.outer(x, x)],
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_numbers(dtype: Any) -> None:
    x = np.resize(SPECIAL, COUNT).astype(np.float64)
    y = np.repeat(SPECIAL, 7)[:COUNT]
    with np.errstate(all="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    got, expected = gt.jit(of_one)(x), eager(of_one, x)
    for function, one, other in zip(ONE, got, expected, strict=True):
        check_special(function.__name__, one, other, (x,))
    got, expected = gt.jit(of_two)(x, y), eager(of_two, x, y)
    for function, one, other in zip(TWO, got, expected, strict=True):
        check_special(function.__name__, one, other, (x, y))


def check_special(name: str, one: Any, other: Any, args: Any) -> None:
    """NaN for NaN, equal infinities, and zeros of the same sign; else a few units of resolution."""
    assert one.dtype == other.dtype, name
    if one.dtype.kind == "b":
        np.testing.assert_array_equal(one, other, name)
        return
    limits = np.finfo(one.dtype)
    np.testing.assert_allclose(one, other, rtol=8 * limits.eps, atol=4 * limits.tiny, err_msg=name)
    # Which of two zeros of different sign is the larger depends on NumPy's vectors.
    zero = (one == 0) & (other == 0) & (name not in ("maximum", "minimum", "fmax", "fmin"))
    wrong = zero & (np.signbit(one) != np.signbit(other))
    assert not wrong.any(), (name, [arg[wrong] for arg in args], one[wrong], other[wrong])


@pytest.mark.parametrize(
    "values",
    [[np.nan], [np.inf], [np.nan, 1.0], [1.0, np.nan], [np.inf, -np.inf], [-np.inf, 1.0], [-0.0]],
)
@pytest.mark.parametrize("count", [1, 7, COUNT])
def test_reductions_of_special_numbers(values: list[float], count: int) -> None:
    x = np.resize(values, count)
    assert_close(gt.jit(of_all)(x), eager(of_all, x))


def test_nan_everywhere_in_a_gradient() -> None:
    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.tanh(x @ w) ** 2) + np.sum(np.where(x > 0, x, 0.0)) + gt.logsumexp(x)

    for fill in (np.nan, np.inf, -np.inf):
        x, w = np.full((5, 4), fill), np.ones((4, 3))
        gradient = gt.value_and_grad(loss, (0, 1))
        assert_close(gt.jit(gradient)(x, w), eager(gradient, x, w))


def test_no_warnings_and_no_errors_from_floating_point() -> None:
    def function(x: Any) -> Any:
        return 1.0 / x, np.log(-x), np.exp(1e3 + x), np.linalg.det(np.outer(x, x) * np.inf)

    with np.errstate(all="raise"):
        out = gt.jit(function)(np.zeros(3))
    assert_close(out[:3], (np.full(3, np.inf), np.full(3, -np.inf), np.full(3, np.inf)))


# ---- what is the same in a register, and not the same ----------------------------------------


def test_signed_and_unsigned_integers_of_the_same_bits() -> None:
    def function(x: Any) -> Any:
        y = x.astype(np.uint8)
        return [
            [np.maximum(x, y), x + y * np.int16(1), x.astype(np.int32) - y.astype(np.int32)],
            [x > 3, y > 3, x.astype(float), y.astype(float), x // 3, y // 3, x.max(), y.max()],
        ]

    x = np.resize(np.array([-128, -8, -1, 0, 5, 127], np.int8), COUNT)
    assert_close(gt.jit(function)(x), function(x), 0)


def test_zeros_of_both_signs() -> None:
    def function(x: Any) -> Any:
        return (
            np.copysign(x, 0.0) + 2 * np.copysign(x, -0.0),
            x * 0.0,
            x * -0.0,
            np.where(x, 0.0, -0.0),
        )

    x = np.array([-1.0, 0.0, 2.0])
    got, expected = gt.jit(function)(x), function(x)
    assert_close(got, expected, 0)
    for one, other in zip(got, expected, strict=True):
        assert np.array_equal(np.signbit(one), np.signbit(other))


@pytest.mark.parametrize("shape", [(10_000,), (10**6,), (3, 300_000), (70, 20_000)])
def test_rounding_does_not_add_up_along_long_sums(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.1, np.float32)
    total = gt.jit(lambda x: np.sum(x, axis=-1))(x)
    np.testing.assert_allclose(total, float(x.flat[0]) * shape[-1], rtol=1e-6)
