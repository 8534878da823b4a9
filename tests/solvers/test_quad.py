"""Integrals with derivatives in limits and parameters, against closed forms."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings, strategies as st

import gradtape as gt
from builds import NATIVE, SCIPY, needs_scipy_1_17
from gradtape.errors import (
    ArgumentError,
    ConvergenceError,
    DTypeError,
    ShapeError,
    UnsupportedError,
)
from gradtape.solvers.integrate import gauss_kronrod
from gradtape.testing import check_grads

quad = gt.scipy.integrate.quad
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def damped_wave(x: Any, p: Any) -> Any:
    return np.exp(-p["rate"] * x) * np.cos(p["omega"] * x)


def damped_area(a: Any, b: Any, p: Any) -> Any:
    """∫ e^(−rx)·cos(wx) dx in closed form."""

    def primitive(x: Any) -> Any:
        r, w = p["rate"], p["omega"]
        return np.exp(-r * x) * (w * np.sin(w * x) - r * np.cos(w * x)) / (r * r + w * w)

    return primitive(b) - primitive(a)


def area(a: Any, b: Any, p: Any) -> Any:
    return quad(damped_wave, a, b, args=(p,))[0]


def closed_over(a: Any, b: Any, p: Any) -> Any:
    return quad(lambda x: damped_wave(x, p), a, b)[0]


POINT = 0.3, 2.1, {"rate": 0.7, "omega": 2.5}


# ---- without tensors ----------------------------------------------------------------------------


def test_signature_is_scipys() -> None:
    ours, theirs = (inspect.signature(f).parameters for f in (quad, scipy.integrate.quad))
    assert list(ours) == list(theirs)
    if SCIPY >= (1, 17):
        assert all(ours[key].default == theirs[key].default for key in theirs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"args": (2.0,)},
        {"args": 2.0},
        {"full_output": 1},
        {"points": [0.5]},
        {"weight": "cos", "wvar": 3.0},
        {"epsabs": 1e-3, "epsrel": 1e-3, "limit": 10},
    ],
)
def test_without_tensors_it_is_scipys(options: dict[str, Any]) -> None:
    def f(x: float, a: float = 1.0) -> Any:
        return np.exp(-a * x) * np.sqrt(x)

    ours, theirs = (q(f, 0.0, 2.0, **options) for q in (quad, scipy.integrate.quad))
    assert ours[:2] == theirs[:2]
    assert type(ours[0]) is type(theirs[0])
    assert len(ours) == len(theirs)


def test_without_tensors_scipy_warns() -> None:
    with pytest.warns(scipy.integrate.IntegrationWarning):
        quad(lambda x: 1 / x, 0.0, 1.0)


def test_low_level_functions_go_to_scipy() -> None:
    import ctypes
    import ctypes.util

    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.sin.restype, library.sin.argtypes = ctypes.c_double, (ctypes.c_double,)
    assert quad(scipy.LowLevelCallable(library.sin), 0, np.pi)[0] == pytest.approx(2.0)


# ---- values and derivatives ---------------------------------------------------------------------


@pytest.mark.parametrize("function", [area, closed_over])
def test_values_and_gradients_equal_the_closed_form(function: Callable[..., Any]) -> None:
    ways = {
        "eager": gt.value_and_grad(function, (0, 1, 2)),
        "compiled": gt.jit(gt.value_and_grad(function, (0, 1, 2))),
        "outside": gt.value_and_grad(gt.jit(function), (0, 1, 2)),
    }
    value, slopes = gt.value_and_grad(damped_area, (0, 1, 2))(*POINT)
    for way in ways.values():
        found, grads = way(*POINT)
        np.testing.assert_allclose(found, value, **TIGHT)
        np.testing.assert_allclose(grads[:2], slopes[:2], **TIGHT)
        for key in ("rate", "omega"):
            np.testing.assert_allclose(grads[2][key], slopes[2][key], **TIGHT)


@pytest.mark.skipif(not NATIVE, reason="loops are switched off")
def test_a_compiled_integral_and_its_gradient_are_native() -> None:
    for function in (area, closed_over):
        assert gt.jit(gt.value_and_grad(function, 2)).explain(*POINT).eager == []


COMPILED = pytest.param(gt.jit, marks=pytest.mark.slow)


@pytest.mark.parametrize("wrap", [lambda f: f, COMPILED], ids=["eager", "compiled"])
def test_all_modes_and_second_order(wrap: Any) -> None:
    def total(v: Any) -> Any:
        return area(v[0], v[1], {"rate": v[2], "omega": v[3]})

    def exact(v: Any) -> Any:
        return damped_area(v[0], v[1], {"rate": v[2], "omega": v[3]})

    v = np.array([0.3, 2.1, 0.7, 2.5])
    expected = gt.hessian(exact)(v)
    for outer in (gt.jacfwd, gt.jacrev):
        for inner in (gt.jacfwd, gt.jacrev):
            np.testing.assert_allclose(wrap(outer(inner(total)))(v), expected, rtol=1e-7)
    if wrap is not gt.jit:
        check_grads(total, (v,))


def test_adjoint_identity() -> None:
    v, tangent = np.array([0.3, 2.1, 0.7, 2.5]), np.array([0.2, -0.5, 1.1, 0.4])

    def two(v: Any) -> Any:
        p = {"rate": v[2], "omega": v[3]}
        return gt.stack([area(v[0], v[1], p), area(v[1], 3.0, p)])

    ct = np.array([0.3, -1.7])
    forward = gt.jvp(two, (v,), (tangent,))[1]
    (back,) = gt.vjp(two, v)[1](ct)
    np.testing.assert_allclose(ct @ forward, back @ tangent, rtol=1e-12)


@pytest.mark.parametrize(
    "limits",
    [
        (-np.inf, np.inf), (0.3, np.inf), (-np.inf, 0.3), (np.inf, 0.3), (0.3, -np.inf),
        (np.inf, -np.inf), (1.0, 0.3), (0.4, 0.4),
        pytest.param((np.inf, np.inf), marks=needs_scipy_1_17),
    ],
)  # fmt: skip
def test_limits_of_all_kinds(limits: tuple[float, float]) -> None:
    def bell(x: Any, s: Any) -> Any:
        return np.exp(-s * x * x + 0.1 * x)

    value = scipy.integrate.quad(bell, *limits, args=(1.3,))[0]
    slope = scipy.integrate.quad(lambda x: -x * x * bell(x, 1.3), *limits)[0]
    both = gt.value_and_grad(lambda s: quad(bell, *limits, args=(s,))[0])
    for way in (both, gt.jit(both)):
        np.testing.assert_allclose(way(1.3), (value, slope), rtol=1e-9, atol=1e-12)


def test_an_infinite_limit_has_no_influence() -> None:
    def tail(a: Any, b: Any) -> Any:
        return quad(lambda x: np.exp(-2 * x), a, b)[0]

    found = gt.grad(tail, (0, 1))(0.5, np.inf)
    np.testing.assert_allclose(found, (-np.exp(-1.0), 0.0), rtol=1e-12)


def test_batches_of_parameters_and_limits() -> None:
    rates = np.array([0.3, 0.7, 2.0])

    def one(rate: Any, b: Any) -> Any:
        return area(0.0, b, {"rate": rate, "omega": 2.5})

    expected = [damped_area(0.0, 1.0 + r, {"rate": r, "omega": 2.5}) for r in rates]
    slopes = [gt.grad(one)(r, 1.0 + r) for r in rates]
    for wrap in (lambda f: f, gt.jit):
        np.testing.assert_allclose(wrap(gt.vmap(one))(rates, 1.0 + rates), expected, **TIGHT)
        found = wrap(gt.vmap(gt.grad(one)))(rates, 1.0 + rates)
        np.testing.assert_allclose(found, slopes, **TIGHT)


def test_integrals_of_integrals() -> None:
    def outer(s: Any) -> Any:
        return quad(lambda y: quad(lambda x: np.exp(-s * x * y), 0.0, y)[0], 0.0, 1.0)[0]

    def reference(s: float) -> Any:
        tight = {"epsabs": 1e-13, "epsrel": 1e-13}
        return scipy.integrate.dblquad(
            lambda x, y: np.exp(-s * x * y), 0, 1, 0, lambda y: y, **tight
        )

    slope = (reference(1.001)[0] - reference(0.999)[0]) / 0.002
    for way in (gt.value_and_grad(outer), gt.jit(gt.value_and_grad(outer))):
        value, found = way(1.0)
        np.testing.assert_allclose(value, reference(1.0)[0], rtol=1e-10)
        np.testing.assert_allclose(found, slope, rtol=1e-6)


def test_a_complex_function() -> None:
    def power(w: Any) -> Any:
        return np.abs(quad(lambda x: np.exp(1j * w * x), 0.0, 1.0, complex_func=True)[0]) ** 2

    # |∫e^(iwx)|² = 2·(1 − cos w)/w²
    exact = gt.value_and_grad(lambda w: 2 * (1 - np.cos(w)) / w**2)(2.0)
    for way in (gt.value_and_grad(power), gt.jit(gt.value_and_grad(power))):
        np.testing.assert_allclose(way(2.0), exact, **TIGHT)


def test_tapes_and_contexts() -> None:
    tape = gt.GradientTape()
    rate = tape.watch(0.7)
    value, error = quad(lambda x: np.exp(-rate * x), 0.0, 1.0)
    exact = gt.value_and_grad(lambda r: (1 - np.exp(-r)) / r)(0.7)
    assert 0 < float(error) < 1e-8
    found = value.detach(), tape.gradient(value, rate)
    np.testing.assert_allclose(found, exact, **TIGHT)
    leaf = gt.tensor(0.7, requires_grad=True)
    quad(lambda x, r: np.exp(-r * x), 0.0, 1.0, args=(leaf,))[0].backward()
    np.testing.assert_allclose(leaf.grad.numpy(), exact[1], **TIGHT)


def test_a_function_may_branch_on_x_in_eager_code() -> None:
    def bent(x: Any, slope: Any) -> Any:
        return slope * x if x < 0.5 else slope * (1 - x)

    found = gt.value_and_grad(lambda s: quad(bent, 0.0, 1.0, (s,), points=[0.5])[0])(3.0)
    np.testing.assert_allclose(found, (0.75, 0.25), rtol=1e-12)


def test_breakpoints_in_compiled_code() -> None:
    def stairs(t: Any) -> Any:
        return quad(lambda x: np.where(x > 0.3, t, 0.0), 0.0, 1.0, points=[0.3], limit=2)[0]

    np.testing.assert_allclose(gt.jit(gt.value_and_grad(stairs))(2.0), (1.4, 0.7), rtol=1e-12)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_accuracy_of_gradients_does_not_depend_on_units(size: float) -> None:
    # An absolute tolerance for the gradient itself would be met by anything, or never.
    def scaled(width: Any) -> Any:
        return size * quad(lambda x: 1 / (width + x * x), -1.0, 1.0)[0]

    exact = gt.grad(lambda w: 2 * np.arctan(1 / np.sqrt(w)) / np.sqrt(w))(1e-3) * size
    for way in (gt.grad(scaled), gt.jit(gt.grad(scaled)), gt.jacfwd(scaled)):
        np.testing.assert_allclose(way(1e-3), exact, rtol=1e-8)


@given(
    st.lists(st.floats(-2, 2), min_size=1, max_size=4),
    st.floats(-2, 2), st.floats(-2, 2), st.sampled_from(["sin", "tanh", "exp"]),
)  # fmt: skip
@settings(max_examples=6, deadline=None)
def test_eager_compiled_and_batched_agree(p: list[float], a: float, b: float, name: str) -> None:
    def f(x: Any, p: Any) -> Any:
        total = 0.0
        for n in range(len(p)):
            total = total * x + p[n]
        return getattr(np, name)(total) + x * p[0]

    def value(p: Any, a: Any, b: Any) -> Any:
        return quad(f, a, b, args=(p,), epsabs=1e-11, epsrel=1e-11)[0]

    args = np.array(p), a, b
    both = gt.value_and_grad(value, (0, 1, 2))
    eager, compiled = both(*args), gt.jit(both)(*args)
    batched = gt.vmap(both)(*(np.stack([x, x]) for x in args))
    second = batched[0][1], [grad[1] for grad in batched[1]]
    for found in (compiled, second):
        for one, other in zip((eager[0], *eager[1]), (found[0], *found[1]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_the_rule_integrates_polynomials_exactly() -> None:
    x, kronrod, gauss = gauss_kronrod._X, gauss_kronrod._KRONROD, gauss_kronrod._GAUSS
    for power in range(0, 32, 2):
        exact = 2 / (power + 1)
        assert kronrod @ x**power == pytest.approx(exact, rel=1e-15, abs=2e-16)
        if power <= 18:
            assert gauss @ x**power == pytest.approx(exact, rel=1e-15, abs=4e-16)
    assert abs(gauss @ x**20 - 2 / 21) > 1e-8


# ---- errors -------------------------------------------------------------------------------------


def test_an_integral_that_does_not_converge_raises() -> None:
    def pole(s: Any) -> Any:
        return quad(lambda x: s / x, 0.0, 1.0)[0]

    with pytest.raises(ConvergenceError, match=r"quad: got an error estimate of .* raise limit"):
        gt.grad(pole)(1.0)
    with pytest.raises(ConvergenceError, match="quad: got an error estimate of"):
        gt.jit(pole)(1.0)


def test_a_function_that_is_nan_raises() -> None:
    def log(s: Any) -> Any:
        return quad(lambda x: s * np.sqrt(x), -1.0, 1.0)[0]

    with np.errstate(invalid="ignore"):
        for way in (gt.grad(log), gt.jit(log)):
            with pytest.raises(ConvergenceError, match="NaN or infinite in the interval"):
                way(1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: quad(lambda x: s * x, 0, 1, weight="cos", wvar=2.0), UnsupportedError, "weight"),
        (
            lambda s: quad(lambda x: s * x, 0, 1, full_output=1),
            UnsupportedError,
            "only the integral and its",
        ),
        (lambda s: quad(lambda x: s * gt.ones(2), 0, 1), ShapeError, r"shape \(2,\)"),
        (lambda s: quad(lambda x: s * 1j, 0, 1), DTypeError, "complex_func=True"),
        (lambda s: quad(lambda x: s * x, 0, gt.ones(2)), ArgumentError, r"got b of float64"),
        (lambda s: quad(lambda x: s * x, 0, 1, points=[s]), ArgumentError, "tensor in points"),
        (lambda s: quad(3.0, 0, s), ArgumentError, "expected a function"),
    ],
)
def test_bad_arguments(call: Callable[[Any], Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gt.grad(lambda s: call(s)[0])(1.0)


def test_a_compiled_function_cannot_take_an_infinite_limit() -> None:
    f = gt.jit(lambda b: quad(lambda x: np.exp(-x), 0.0, b)[0])
    np.testing.assert_allclose(f(1.0), 1 - np.exp(-1.0), rtol=1e-12)
    with pytest.raises(ArgumentError, match=r"give np\.inf as it is"):
        f(np.inf)
