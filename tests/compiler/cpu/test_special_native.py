"""Special functions as machine code: negative arguments, beside SciPy, in large arrays and jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import gradtape as gt
import our_scipy
from elementary_samples import DTYPES, EXACT
from opcases import special, special_bessel
from test_elementary import TARGETS, apply

ULPS = special.ULPS | special_bessel.ULPS

# ---- negative arguments -------------------------------------------------------------------------

# Beside what the function is a sum of, its own value may be small.
BESIDE: dict[str, Callable[[Any], Any]] = {
    "lgamma": lambda x: mp.loggamma(-x),
    "digamma": lambda x: 1 + abs(mp.digamma(1 - x)),
    "trigamma": lambda x: mp.mpf(0),
    "tetragamma": lambda x: 2 * (mp.pi / mp.sin(mp.pi * x)) ** 2,
}


def negative_arguments(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(7)
    whole = rng.integers(-30, 0, 100)
    close = whole + rng.choice([-1, 1], 100) * 2.0 ** rng.uniform(-20, -2, 100)
    parts = [
        rng.uniform(-6, 0, 150),
        rng.uniform(-1000, 0, 100),
        close,
        -(2.0 ** rng.uniform(-40, 0, 50)),
    ]
    x = np.concatenate(parts).astype(dtype)
    return x[x != np.rint(x)]


@pytest.mark.parametrize("scalar", DTYPES)
@pytest.mark.parametrize("name", BESIDE)
def test_negative_arguments(name: str, scalar: str, thorough: bool) -> None:
    # Every third one is more than a hundred, from each of the ranges.
    x = negative_arguments(DTYPES[scalar])[:: 1 if thorough else 3]
    found = [apply(name, x, target=target) for target in TARGETS.values()]
    info = np.finfo(x.dtype)
    for argument, *values in zip(x.tolist(), *(got.tolist() for got in found), strict=True):
        with mp.workprec(200):
            exact = EXACT[name](mp.mpf(argument))
            size = max(abs(exact), abs(BESIDE[name](mp.mpf(argument))))
            if size > float(info.max):
                continue
            errors = [float(abs(mp.mpf(value) - exact) / size) for value in values]
        # Sizes are not rounded to powers of two here: a unit is eps or half of it.
        assert max(errors) <= 5 * info.eps, (argument, dict(zip(TARGETS, errors, strict=True)))


def test_poles_and_ends() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([0.0, -0.0, -1.0, -2.0, -1e10, -1e300, -inf, inf, nan])
    for target in TARGETS.values():
        for name, expected in {
            "lgamma": [inf, inf, inf, inf, inf, inf, -inf, inf, nan],
            "digamma": [-inf, inf, nan, nan, nan, nan, nan, inf, nan],
            "trigamma": [inf, inf, inf, inf, inf, inf, inf, 0, nan],
            "tetragamma": [-inf, -inf, -inf, -inf, -inf, -inf, -inf, 0, nan],
        }.items():
            np.testing.assert_array_equal(apply(name, x, target=target), expected)


# ---- beside SciPy -------------------------------------------------------------------------------

# Function, op, where it is compared: not where an error of SciPy itself is large.
FUNCTIONS: list[tuple[Callable[..., Any], str, tuple[float, float]]] = [
    (gt.erfinv, "erfinv", (-0.999, 0.999)),
    (our_scipy.special.erfcinv, "erfcinv", (1e-4, 0.9)),
    (our_scipy.special.ndtri, "ndtri", (1e-4, 0.45)),
    (our_scipy.special.erfcx, "erfcx", (-3.0, 30.0)),
    (gt.ndtr, "ndtr", (-1.0, 4.0)),
    (our_scipy.special.log_ndtr, "log_ndtr", (-30.0, 1.0)),
    (gt.lgamma, "lgamma", (2.2, 60.0)),
    (our_scipy.special.loggamma, "loggamma", (2.2, 60.0)),
    (gt.digamma, "digamma", (1.6, 60.0)),
    (lambda x: gt.polygamma(1, x), "polygamma", (0.01, 60.0)),
    (lambda x: gt.polygamma(2, x), "polygamma", (0.01, 60.0)),
    (our_scipy.special.i0, "i0", (-20.0, 20.0)),
    (our_scipy.special.i1, "i1", (-20.0, 20.0)),
    (our_scipy.special.i0e, "i0e", (-50.0, 50.0)),
    (our_scipy.special.i1e, "i1e", (-50.0, 50.0)),
]
cases = pytest.mark.parametrize(
    ("function", "name", "bounds"),
    FUNCTIONS,
    ids=[f"{name}{i}" for i, (_, name, _) in enumerate(FUNCTIONS)],
)


@cases
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_arrays_agree_with_small_ones(
    function: Any, name: str, bounds: Any, dtype: Any
) -> None:
    x = np.random.default_rng(3).uniform(*bounds, 40_000).astype(dtype)
    chosen = x[:2000]
    large, small = function(x)[:2000], function(chosen)
    assert large.dtype == small.dtype == dtype
    limit = ULPS[name] * np.spacing(np.abs(small))
    assert np.all(np.abs(large - small) <= limit), np.max(np.abs(large - small) / limit)


@cases
def test_compiled_gradients_are_native(function: Any, name: str, bounds: Any) -> None:
    x = np.linspace(*bounds, 64)
    if function is FUNCTIONS[10][0]:
        with pytest.raises(AssertionError):  # its slope is of order 3
            assert_native(function, x)
        return
    assert_native(function, x)


def assert_native(function: Any, x: Any) -> None:
    compiled = gt.jit(gt.value_and_grad(lambda x: gt.sum(function(x))))
    assert not compiled.explain(x).eager
    expected = gt.grad(lambda x: gt.sum(function(x)))(x)
    np.testing.assert_allclose(compiled(x)[1], expected, rtol=2e-13)


def test_logarithms_of_negative_numbers_stay_nan_in_compiled_code() -> None:
    x = np.array([-0.5, 0.0, 2.5])
    got = gt.jit(our_scipy.special.loggamma)(x)
    np.testing.assert_allclose(got, scipy.special.loggamma(x), rtol=1e-15)


def test_second_derivatives_of_compiled_functions() -> None:
    x = np.array([-1.5, 0.3, 2.0, 9.0])
    for function in (gt.lgamma, our_scipy.special.i0):
        twice = gt.grad(lambda x, f=function: gt.sum(gt.grad(lambda x: gt.sum(f(x)))(x)))
        np.testing.assert_allclose(gt.jit(twice)(x), twice(x), rtol=1e-13)
