"""What elementwise functions do beyond the table of ops: foreign operands, SciPy, reverse only."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import scipy.special

import gradtape as gt
from gradtape.errors import LeakedTensorError, UnsupportedError
from gradtape.testing import check_grads
from opcases import activation, arithmetic, exponential, select, special, trigonometric
from opcases.case import OpCase

FAMILIES = (activation, arithmetic, exponential, select, special, trigonometric)
CASES = [case for family in FAMILIES for case in family.CASES if case.elementwise]

# ---- comparisons --------------------------------------------------------------------------------


def test_foreign_operands_are_left_to_python():
    t = gt.tensor([1.0, 2.0])
    assert (t == None) is False  # noqa: E711
    assert (t != None) is True  # noqa: E711
    assert (t == "a") is False
    assert t not in ("a", None)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError, match="not supported between instances"):
            compare(t, None)
    with pytest.raises(TypeError, match="unsupported operand"):
        operator.and_(t, None)


def test_tensors_stay_hashable():
    t = gt.tensor([1.0, 2.0])
    assert {t: "here"}[t] == "here"


@pytest.mark.parametrize("number", [np.float64(1.0), np.array([1.0, 3.0]), 1, True])
def test_numpy_on_the_left_gives_tensors(number: Any):
    t = gt.tensor([1.0, 2.0])
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        result = compare(number, t)
        assert isinstance(result, gt.Tensor)
        np.testing.assert_array_equal(result.numpy(), compare(number, t.numpy()))


def test_comparing_a_tracked_tensor_is_not_tracked():
    x = gt.tensor([1.0, -2.0], requires_grad=True)
    assert not (x * 2 > 0).requires_grad
    assert ((x > 0) & (x < 3)).tolist() == [True, False]


def test_comparing_a_leaked_tensor_raises():
    kept = []
    gt.grad(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(LeakedTensorError, match="less: got a tensor of a grad"):
        kept[0] < 2.0  # noqa: B015


def test_augmented_bits_change_the_handle():
    mask = same = gt.tensor([True, False])
    mask &= gt.tensor([True, True])
    mask |= True
    mask ^= np.array([False, True])
    assert same is mask
    assert same.tolist() == [True, False]


# ---- where --------------------------------------------------------------------------------------


def test_where_with_the_condition_alone_is_nonzero():
    (found,) = np.where(gt.tensor([0.0, 2.0, 3.0]) > 1)
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_was_not_chosen_has_a_clean_zero(bad: float):
    x, y = np.array([1.0, bad]), np.array([bad, 1.0])
    to_x, to_y = gt.grad(lambda x, y: gt.sum(gt.where([True, False], x, y) ** 2), (0, 1))(x, y)
    np.testing.assert_array_equal(to_x, [2.0, 0.0])
    np.testing.assert_array_equal(to_y, [0.0, 2.0])


@pytest.mark.parametrize(
    "bend",
    [
        gt.relu,
        lambda x: gt.maximum(x, 0.0),
        lambda x: gt.clip(x, 0.0, None),
        lambda x: gt.where(x > 0, x, 0.0),
    ],
)
def test_an_infinite_cotangent_stops_at_a_flat_piece(bend: Any):
    # d log(0) is infinite; times a slope of 0 it must not become NaN
    with np.errstate(divide="ignore"):
        grad = gt.grad(lambda x: gt.sum(gt.log(bend(x))))(np.array([-1.0, 2.0]))
    np.testing.assert_array_equal(grad, [0.0, 0.5])


# ---- SciPy's ufuncs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ufunc", "function"),
    [
        (scipy.special.erf, gt.erf),
        (scipy.special.erfc, gt.erfc),
        (scipy.special.erfinv, gt.erfinv),
        (scipy.special.ndtr, gt.ndtr),
        (scipy.special.gammaln, gt.lgamma),
        (scipy.special.digamma, gt.digamma),
        (scipy.special.expit, gt.sigmoid),
        (scipy.special.log_expit, gt.log_sigmoid),
        (scipy.special.exp2, gt.exp2),
        (scipy.special.exp10, gt.exp10),
        (scipy.special.expm1, gt.expm1),
        (scipy.special.log1p, gt.log1p),
        (scipy.special.cbrt, gt.cbrt),
    ],
)
def test_scipy_records(ufunc: Any, function: Any):
    x = np.array([0.2, 0.7])
    value, grad = gt.value_and_grad(lambda x: gt.sum(ufunc(x)))(x)
    expected, expected_grad = gt.value_and_grad(lambda x: gt.sum(function(x)))(x)
    assert value == expected
    np.testing.assert_array_equal(grad, expected_grad)
    np.testing.assert_allclose(value, ufunc(x).sum(), rtol=1e-15)


def test_scipy_ufunc_of_two_arrays_records():
    to_x = gt.grad(lambda x: gt.sum(scipy.special.xlogy(x, np.array([1.0, 2.0]))))(np.ones(2))
    np.testing.assert_allclose(to_x, [0.0, np.log(2.0)], rtol=1e-15)


def test_other_ufuncs_are_refused_by_name():
    t = gt.tensor([1.0])
    with pytest.raises(UnsupportedError, match=r"scipy\.special\.itj0y0 is not differentiable"):
        scipy.special.itj0y0(t)
    # Only the ufunc of SciPy itself is answered for, not whatever has its name.
    erf = np.frompyfunc(lambda x: x, 1, 1)
    with pytest.raises(UnsupportedError, match="is not differentiable"):
        erf(t)


# ---- dtypes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_single_precision_stays_single(case: OpCase):
    args = [np.asarray(arg).astype(np.float32) for arg in case.args]
    forms = [args]
    if len(args) == 2 and case.id != "mask":
        forms += [[number, args[1]] for number in (0.5, 2)]
        forms += [[args[0], number] for number in (0.5, 2, 1)]
    for form in forms:
        wanted = tuple(i for i, x in enumerate(form) if isinstance(x, np.ndarray))
        with np.errstate(all="ignore"):
            total = lambda *form: gt.sum(case.function(*form, **case.params))  # noqa: E731
            value, grads = gt.value_and_grad(total, wanted)(*form)
        assert value.dtype == np.float32
        assert [grad.dtype for grad in grads] == [np.float32] * len(grads)


def test_large_and_small_arrays_have_the_same_sigmoid():
    x = np.linspace(-800.0, 800.0, 2001)
    np.testing.assert_allclose(gt.sigmoid(x), scipy.special.expit(x), rtol=1e-14, atol=1e-307)


# ---- complex numbers ----------------------------------------------------------------------------

HOLOMORPHIC = """
    square reciprocal negative exp expm1 log log2 log10 log1p sqrt sin cos tan arcsin arccos arctan
    sinh cosh tanh arcsinh arccosh arctanh sinc erf erfc
"""
NOT_HOLOMORPHIC = "abs sign"
Z, W = np.array([0.3 + 0.7j, -1.1 + 0.2j, 0.6 - 1.3j]), np.array([1.2 - 0.4j, 0.5 + 0.9j, -0.8j])


@pytest.mark.parametrize("name", (HOLOMORPHIC + NOT_HOLOMORPHIC).split())
def test_complex_derivatives(name: str):
    check_grads(getattr(gt, name), (Z,), order=2)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "xlogy"])
def test_complex_derivatives_of_two(name: str):
    function = getattr(gt, name)
    check_grads(function, (Z, W), order=2)
    check_grads(function, (np.array([0.5, 1.5, 2.5]), W), order=2)
    check_grads(function, (Z, np.array([0.5, 1.5, 2.5])), order=2)


# ---- half precision -----------------------------------------------------------------------------

HALF = "sigmoid silu gelu erf erfc lgamma digamma ndtr erfinv softplus log_sigmoid xlogy logaddexp"


@pytest.mark.parametrize("name", HALF.split())
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("shape", [(3,), ()])
def test_small_floats_stay_small(name: str, dtype: Any, shape: tuple[int, ...]):
    function = getattr(gt, name)
    args = [np.full(shape, 0.5, dtype)] * (2 if name in ("xlogy", "logaddexp") else 1)
    out = function(*args)
    assert out.dtype == dtype
    wide = function(*(x.astype(np.float64) for x in args))
    np.testing.assert_allclose(out, wide, rtol=4 * np.finfo(dtype).eps)
    slopes = gt.grad(lambda *xs: gt.sum(function(*xs)), tuple(range(len(args))))(*args)
    assert {slope.dtype for slope in slopes} == {np.dtype(dtype)}


def test_polygamma_and_tanh_gelu_in_half_precision():
    x = np.full(3, 0.5, np.float16)
    assert gt.polygamma(1, x).dtype == gt.gelu(x, approximate="tanh").dtype == np.float16


# ---- powers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compile_it", [lambda f: f, gt.jit])
def test_slope_of_a_power_depends_on_an_exponent_of_0(compile_it: Any):
    x = np.array([2.0, -2.0, 0.0, np.nan, np.inf, 5e-324, -1e-310, 1e-300])
    y = np.zeros(x.size)
    by_base = gt.grad(lambda x, y: gt.sum(x**y))
    np.testing.assert_array_equal(compile_it(by_base)(x, y), np.zeros(x.size))
    # ∂²(x^y)/∂x∂y = (1 + y·log x)·x^(y−1) = 1/x
    mixed = compile_it(lambda x, y: gt.jvp(lambda y: by_base(x, y), (y,), (np.ones_like(y),))[1])
    np.testing.assert_array_equal(mixed(np.array([2.0, 4.0]), y[:2]), [0.5, 0.25])


# ---- sinc ---------------------------------------------------------------------------------------


def test_sinc_has_derivatives_of_any_order_at_0():
    slope: Any = gt.sinc
    expected = [1.0, 0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5, 0.0, -(np.pi**6) / 7]
    for value in expected:
        np.testing.assert_allclose(slope(np.float64(0.0)), value, rtol=1e-14, atol=1e-14)
        slope = gt.grad(slope)


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_sinc_is_accurate_on_both_sides_of_the_switch(order: int):
    # sinc⁽ⁿ⁾(x) = ∫₀¹ (πt)ⁿ·cos(πxt + nπ/2) dt by Gauss's rule, exact to rounding here
    x = np.linspace(-4.0, 4.0, 81)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t = (nodes + 1) / 2
    integrand = (np.pi * t) ** order * np.cos(np.pi * x[:, None] * t + order * np.pi / 2)
    slope: Any = gt.sinc
    for _ in range(order):
        slope = gt.grad(slope)
    got = gt.vmap(slope)(x)
    np.testing.assert_allclose(got, integrand @ weights / 2, rtol=0, atol=1e-13 * np.pi**order)
