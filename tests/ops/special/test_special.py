"""Special functions: what SciPy's ufuncs do with tensors, narrow dtypes, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import gradtape as gt
import our_scipy
from builds import needs_scipy_1_17
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    NotDifferentiableError,
    UnsupportedError,
)

UFUNCS = sorted(
    name
    for name in our_scipy.special.__all__
    if isinstance(getattr(scipy.special, name, None), np.ufunc)
)
# Arguments at which all functions of so many of them have a value.
POINTS = {1: (0.3,), 2: (1, 0.4), 3: (1, 2, 0.4), 4: (1, 1, 2, 0.4)}


# ---- SciPy on tensors ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", UFUNCS)
def test_ufunc_of_scipy_answers_on_tensors(name: str) -> None:
    ufunc, ours = getattr(scipy.special, name), getattr(our_scipy.special, name)
    point: list[Any] = list(POINTS[ufunc.nin])
    point[-1] = np.array([point[-1]])
    *others, last = point
    x = gt.tensor(last, requires_grad=True)
    with np.errstate(all="ignore"):
        results = ufunc(*others, x)
        expected, mine = ufunc(*point), ours(*point)
    several = ufunc.nout > 1
    rows = zip(*(row if several else (row,) for row in (results, expected, mine)), strict=True)
    for result, value, own in rows:
        assert isinstance(result, gt.Tensor)
        np.testing.assert_allclose(result.detach().numpy(), value, rtol=1e-12)
        np.testing.assert_array_equal(own, result.detach().numpy())


PROGRAM = """
import numpy as np, scipy.special as special, gradtape as gt
x = np.array([0.3, 0.6])
own = lambda name: getattr(gt.scipy.special, name).on_tensors
def check(ours, theirs, *args):
    tensors = [gt.tensor(arg) for arg in args]
    np.testing.assert_allclose(np.asarray(theirs(*tensors)), ours(*args), rtol=1e-14)
    i = tuple(range(len(args)))
    got = gt.grad(lambda *a: gt.sum(theirs(*a)), i)(*args)
    for one, other in zip(got, gt.grad(lambda *a: gt.sum(ours(*a)), i)(*args)):
        np.testing.assert_allclose(one, other, rtol=1e-14)
for name in ("erf", "gammaln", "psi", "expit", "logit", "log_ndtr", "entr", "i0", "ndtri", "j1"):
    check(own(name), getattr(special, name), x)
for name in ("gammainc", "xlogy", "rel_entr", "betaln", "stdtr", "chdtr"):
    check(own(name), getattr(special, name), x + 1, x)
check(own("betainc"), special.betainc, x + 1, x + 2, x)
"""


@pytest.mark.parametrize(
    "setting", [None, pytest.param("1", marks=needs_scipy_1_17)], ids=["unset", "set"]
)
def test_both_settings_of_scipy(setting: str | None) -> None:
    env = {key: value for key, value in os.environ.items() if key != "SCIPY_ARRAY_API"}
    if setting is not None:
        env["SCIPY_ARRAY_API"] = setting
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# ---- dtypes -------------------------------------------------------------------------------------

DTYPES = [np.float32, np.float16, gt.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(dtype).name for dtype in DTYPES])
@pytest.mark.parametrize("name", ["gammainc", "betaln", "xlog1py", "stdtr", "huber", "jve"])
def test_narrow_dtypes_stay(name: str, dtype: Any) -> None:
    function = getattr(our_scipy.special, name)
    x = np.array([0.5, 0.75]).astype(dtype)
    tolerance = 8 * {4: 2.0**-23, 2: 2.0**-7}[x.dtype.itemsize]
    for args in ((x, x), (1, x), (1.5, x)):
        out = function(*args)
        assert out.dtype == dtype
        wide = [np.asarray(arg, np.float64) for arg in args]
        np.testing.assert_allclose(out.astype(np.float64), function(*wide), rtol=tolerance)
    slope = gt.grad(lambda x: gt.sum(function(1.5, x)))(x)
    assert slope.dtype == dtype


def test_whole_numbers_give_double_precision() -> None:
    assert (
        our_scipy.special.gammainc(np.array([1, 2], np.int8), np.array([1, 2])).dtype == np.float64
    )
    assert our_scipy.special.erfcx(np.array([1, 2])).dtype == np.float64
    assert our_scipy.special.xlogy(2, 3).dtype == np.float64


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polygamma_of_a_python_number(order: int) -> None:
    expected = scipy.special.polygamma(order, 1.5)
    np.testing.assert_allclose(gt.polygamma(order, 1.5), expected, rtol=1e-14)
    np.testing.assert_allclose(gt.jit(gt.polygamma, static_argnums=0)(order, 1.5), expected)


def test_complex_numbers() -> None:
    z = np.array([0.3 + 0.4j])
    for name in ("gamma", "loggamma", "digamma", "erfcx", "dawsn", "spence", "wrightomega"):
        function = getattr(our_scipy.special, name)
        out, pullback = gt.vjp(function, z)
        step = 1e-6
        slope = (function(z + step) - function(z - step)) / (2 * step)
        np.testing.assert_allclose(pullback(np.ones_like(out))[0], np.conj(slope), rtol=1e-8)


def test_lambert_at_zero() -> None:
    slope = gt.grad(lambda x: gt.real(our_scipy.special.lambertw(x)))(0.0)
    assert slope == 1.0


# ---- what has no derivative ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args"),
    [
        *((name, (1.5, 2.0)) for name in ("jv", "yv", "iv", "kve", "hankel1", "struve")),
        ("expn", (2.0, 2.0)),
        *((name, (1.5, 2.0)) for name in ("hyp0f1", "zeta", "eval_legendre")),
        ("hyp1f1", (0.5, 1.5, 0.2)),
        ("hyp2f1", (0.5, 0.7, 1.5, 0.2)),
        ("eval_jacobi", (2.0, 0.5, 1.5, 0.2)),
    ],
)
def test_orders_are_refused(name: str, args: tuple[float, ...]) -> None:
    function = getattr(our_scipy.special, name)
    last = args[-1]

    def of_order(v: Any) -> Any:
        return gt.real(function(v, *args[1:]))

    with pytest.raises(NotDifferentiableError, match="no derivative with respect to"):
        gt.grad(of_order)(args[0])
    with pytest.raises(NotDifferentiableError, match="no derivative with respect to"):
        gt.jvp(of_order, (np.float64(args[0]),), (np.float64(1.0),))
    gt.grad(lambda x: gt.real(function(*args[:-1], x)))(last)  # that of the argument is there


@pytest.mark.parametrize(("name", "count"), [("sici", 1), ("ellipj", 2), ("betainc", 3)])
def test_another_number_of_arguments(name: str, count: int) -> None:
    function = getattr(our_scipy.special, name)
    for given in (count - 1, count + 1):  # SciPy would write into one more
        with pytest.raises(TypeError, match=f"{name}: got .*; expected {count} argument"):
            function(*[0.5] * given)


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
def test_scales_that_are_not_complex_differentiable(name: str) -> None:
    function = getattr(our_scipy.special, name)
    with pytest.raises(NotDifferentiableError, match=f"{name}: got complex128; its scale is"):
        gt.vjp(lambda z: function(1.0, z), np.array([1.0 + 1.0j]))[1](np.array([1.0 + 0.0j]))


def test_airye_of_complex_numbers() -> None:
    with pytest.raises(NotDifferentiableError, match="airye: got complex128"):
        gt.jvp(lambda z: our_scipy.special.airye(z)[0], (np.array([1j]),), (np.array([1.0 + 0j]),))


def test_degrees_of_hermite_are_integers() -> None:
    with pytest.raises(DTypeError, match="eval_hermite: got"):
        our_scipy.special.eval_hermite(2.5, np.ones(2))


# ---- distributions ------------------------------------------------------------------------------


def test_frozen_distribution() -> None:
    x = np.array([0.5, 2.0])
    frozen = gt.scipy.stats.gamma(gt.asarray(2.0), scale=3.0)
    theirs = scipy.stats.gamma(2.0, scale=3.0)
    for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
        np.testing.assert_allclose(getattr(frozen, method)(x), getattr(theirs, method)(x))
    for method in ("ppf", "isf"):
        np.testing.assert_allclose(getattr(frozen, method)(x / 4), getattr(theirs, method)(x / 4))


def test_parameters_that_are_missing_or_unknown() -> None:
    with pytest.raises(ArgumentError, match="gamma: logpdf got 0 parameters"):
        our_scipy.stats.gamma.logpdf(1.0)
    with pytest.raises(ArgumentError, match="expected a, loc, scale"):
        our_scipy.stats.gamma.logpdf(1.0, 2.0, rate=1.0)
    with pytest.raises(ArgumentError, match="expected loc, scale"):
        our_scipy.stats.norm.logpdf(1.0, 2.0, loc=1.0)
    with pytest.raises(UnsupportedError, match="vonmises: has no cdf in gradtape; it has logpdf"):
        our_scipy.stats.vonmises.cdf(1.0, 2.0)


def test_arguments_that_are_not_numbers_or_make_no_distribution() -> None:
    x = np.array([np.nan, 1.0, 1.0])
    shape, scale = np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, -2.0])
    with np.errstate(all="ignore"):
        got = our_scipy.stats.gamma.logpdf(x, shape, scale=scale)
    assert np.isnan(got).all()
    assert np.isnan(our_scipy.stats.norm.ppf(np.array([-0.1, 1.1]))).all()
    assert np.isnan(our_scipy.stats.poisson.logpmf(1, -1.0))
    np.testing.assert_array_equal(
        our_scipy.stats.poisson.pmf(np.array([0.5, -1.0]), 2.0), [0.0, 0.0]
    )


def test_tails_are_exact() -> None:
    x = np.array([-300.0, -30.0, 30.0, 300.0])
    for name in ("norm", "logistic", "laplace", "cauchy", "gumbel_r"):
        ours, theirs = getattr(our_scipy.stats, name), getattr(scipy.stats, name)
        with np.errstate(all="ignore"):
            for method in ("logpdf", "cdf", "sf"):
                np.testing.assert_allclose(
                    getattr(ours, method)(x), getattr(theirs, method)(x), rtol=1e-12
                )
    slope = gt.grad(lambda x: gt.sum(our_scipy.stats.norm.logsf(x)))(np.array([100.0]))
    np.testing.assert_allclose(slope, [-100.00999800099926], rtol=1e-13)


def test_one_impossible_observation_leaves_the_gradient_of_others() -> None:
    x = np.array([-1.0, 0.5, 2.0])

    def total(a: Any, scale: Any, x: Any = x) -> Any:
        return gt.sum(our_scipy.stats.gamma.logpdf(x, a, scale=scale))

    np.testing.assert_array_equal(
        gt.grad(total, (0, 1))(2.0, 0.5), gt.grad(lambda a, s: total(a, s, x[1:]), (0, 1))(2.0, 0.5)
    )
    assert np.isfinite(gt.jit(gt.grad(total, (0, 1)))(2.0, 0.5)).all()


def test_ufuncs_behind_functions_of_other_names() -> None:
    x = np.array([1.5, 2.5])
    grad = gt.grad(lambda x: gt.sum(gt.real(scipy.special.lambertw(x))))(x)
    w = scipy.special.lambertw(x).real
    np.testing.assert_allclose(grad, w / (x * (1 + w)), rtol=1e-12)
    slope = gt.grad(lambda q: gt.sum(scipy.special.zeta(3.0, q)))(x)
    np.testing.assert_allclose(slope, -3 * scipy.special.zeta(4.0, x), rtol=1e-12)
