"""The checks of derivatives find what is wrong, and say where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.batching import batch_elementwise
from gradtape.core.call import call
from gradtape.core.op import Op, infer_like
from gradtape.errors import ArgumentError, DTypeError, GradientCheckError
from gradtape.testing import check_grads
from gradtape.tools.differences import METHODS, jacobian

Rule = Callable[..., Any]


def right_vjp(ct: Any, _out: Any, x: Any) -> Any:
    return ct * 2.0 * x


def right_jvp(tangents: Any, _out: Any, x: Any) -> Any:
    return tangents[0] * 2.0 * x


def square(vjp: Rule = right_vjp, jvp: Rule = right_jvp) -> Callable[[Any], Any]:
    """x², with rules that may be wrong."""
    op = Op(
        "square_here",
        lambda xp, x: x * x,
        infer_like,
        vjps=(vjp,),
        jvp=jvp,
        batch=batch_elementwise,
    )
    return lambda x: call(op, (x,), {})


def last_wrong(ct: Any, _out: Any, x: Any) -> Any:
    factor = np.full(x.shape, 2.0)
    factor[-1] = 2.001
    return ct * factor * x


X = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize("size", [3, 40])
def test_right_rules_pass(size):
    check_grads(square(), (np.linspace(-1, 2, size),), order=3)


@pytest.mark.parametrize(
    ("vjp", "jvp", "message"),
    [
        (last_wrong, right_jvp, r"^reverse: d output 0\[2\] / d argument 0\[2\] is 4.002; cent"),
        (right_vjp, lambda t, _out, x: t[0] * x, r"^forward: d output 0\[2\] / d argument 0\[2\]"),
        # Right at first order only: the rule hides from the next derivative what it depends on.
        (lambda ct, _out, x: ct * 2.0 * gt.stop_gradient(x), right_jvp, "^forward over reverse: "),
        (lambda ct, _out, x: gt.stop_gradient(ct) * 2.0 * x, right_jvp, "cotangent of output 0"),
        (right_vjp, lambda t, _out, x: t[0] * 2.0 * gt.stop_gradient(x), "^forward over forward: "),
        # Too small an error for differences to see.
        (lambda ct, _out, x: ct * (2.0 + 1e-9) * x, right_jvp, "^forward and reverse: <u, Jv> is"),
        (lambda ct, _out, x: ct * np.nan, right_jvp, "^reverse: .* is nan; "),
        (lambda ct, _out, _x: None, right_jvp, r"^reverse: .* is 0.0; .* give 4\.0"),
    ],
)
def test_wrong_rules_are_found(vjp, jvp, message):
    with pytest.raises(GradientCheckError, match=message):
        check_grads(square(vjp, jvp), (X,))


@pytest.mark.parametrize(
    ("vjp", "jvp", "message"),
    [
        (last_wrong, right_jvp, "^reverse: <u, d output> along a random direction is"),
        (right_vjp, lambda t, _out, x: t[0] * x, r"^forward: d output 0\[\d+\] along"),
    ],
)
def test_wrong_rules_are_found_in_large_jacobians(vjp, jvp, message):
    with pytest.raises(AssertionError, match=message):
        check_grads(square(vjp, jvp), (np.linspace(1, 2, 40),))


def test_only_the_modes_asked_for():
    function = square(vjp=last_wrong)
    check_grads(function, (X,), modes=["forward"])
    with pytest.raises(GradientCheckError, match=r"^reverse"):
        check_grads(function, (X,), modes=["reverse"])


def test_only_the_order_asked_for():
    check_grads(square(lambda ct, _out, x: ct * 2.0 * gt.stop_gradient(x)), (X,), order=1)


def test_nested_containers_constants_and_single_precision():
    def function(params: Any, n: int, y: Any) -> Any:
        return {"a": params["w"][0] * n, "b": (params["w"][1] * y, n, y * 1.5)}

    args = ({"w": [np.float32(2.0), X.astype(np.float32)]}, 3, np.array(1.0 - 2.0j))
    check_grads(function, args)
    check_grads(function, [{"w": [1.0, gt.Tensor(X)]}, 3, 2.0])

    def wrong(params: Any) -> Any:
        return params["w"][0], gt.stop_gradient(params["w"][1]) * 2.0

    with pytest.raises(
        GradientCheckError, match=r"d output 1\[0\] / d argument 0\['w'\]\[1\]\[0\]"
    ):
        check_grads(wrong, ({"w": [X, X]},))
    with pytest.raises(GradientCheckError, match=r"output 0 \(imaginary\) / d argument 0 \(imag"):
        check_grads(lambda z: gt.stop_gradient(gt.imag(z)) * 1j + z.real, (np.array(1.0 + 2.0j),))


def test_empty_arrays_have_right_derivatives():
    check_grads(square(), (np.zeros((0, 3)),))


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(ArgumentError, match="no argument is floating"):
        check_grads(lambda x: x, (np.arange(3),))
    with pytest.raises(ArgumentError, match="no output is floating"):
        check_grads(lambda x: 3, (X,))
    with pytest.raises(ArgumentError, match="got directions=0, expected at least 1"):
        gt.testing.check_grads(np.sin, (np.ones(3),), directions=0)
    with pytest.raises(ArgumentError, match=r"got modes \['backward'\]"):
        check_grads(lambda x: x, (X,), modes=["backward"])


# ---- NumericalChecker ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_differences_are_as_exact_as_they_say(method):
    x = np.array([-1.0, 0.0, 0.5, 2.0])
    exact = np.diag(np.cos(x))
    error = np.abs(jacobian(np.sin, x, method) - exact).max()
    assert error < METHODS[method].tolerance / 10


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("method", METHODS)
def test_checker_accepts_and_refuses(method, mode):
    checker = gt.NumericalChecker(method, mode=mode)
    report = checker.check_gradient(square(), X)
    assert report.is_valid
    assert report.max_error <= report.rtol
    assert report.method == method
    np.testing.assert_array_equal(report.analytic, np.diag(2 * X))

    rules = {"vjp": last_wrong} if mode == "reverse" else {"jvp": lambda t, _out, x: t[0] * x}
    report = checker.check_gradient(square(**rules), X)
    assert not report.is_valid
    assert report.worst_index == (2, 2)
    assert report.max_error == pytest.approx(0.002 if mode == "reverse" else 2.0, rel=1e-4)
    assert "WRONG" in str(report)
    assert "worst at (2, 2)" in str(report)


@pytest.mark.parametrize("method", METHODS)
def test_checker_has_a_method_for_each_formula(method):
    checker = gt.NumericalChecker()
    report = getattr(checker, f"check_gradient_{method}")(lambda x: gt.sum(x * x), X)
    assert report.is_valid
    assert report.method == method
    assert report.analytic.shape == report.numeric.shape == (3,)


def test_large_jacobians_are_checked_along_directions():
    x = np.linspace(1, 2, 200)
    assert gt.NumericalChecker().check_gradient(square(), x).is_valid
    report = gt.NumericalChecker().check_gradient(square(last_wrong), x)
    assert not report.is_valid
    assert report.analytic.shape == (8,)


def test_checker_takes_containers_and_scalars():
    report = gt.NumericalChecker().check_gradient(lambda p: p["w"] * p["b"], {"w": X, "b": 2.0})
    assert report.is_valid
    assert report.analytic.shape == (3, 4)
    assert gt.NumericalChecker().check_gradient(lambda x: x * x, 3.0).analytic == 6.0


def test_complex_step_refuses_what_it_cannot_do():
    checker = gt.NumericalChecker("complex_step")
    with pytest.raises(ArgumentError, match="gives a real result"):
        checker.check_gradient(lambda x: gt.real(x), X)
    with pytest.raises(ArgumentError, match="got a complex argument"):
        checker.check_gradient(lambda x: x, X + 1j)


def test_checker_refuses_unknown_settings():
    with pytest.raises(ArgumentError, match="got method='exact', expected 'forward', 'central'"):
        gt.NumericalChecker("exact")
    with pytest.raises(ArgumentError, match="got mode"):
        gt.NumericalChecker(mode="backward")


@pytest.mark.parametrize("x", [np.arange(3), 3, [np.arange(2), True], []], ids=str)
def test_numerical_checker_refuses_arguments_without_a_gradient(x):
    with pytest.raises(DTypeError, match="check_gradient: got an argument of"):
        gt.NumericalChecker().check_gradient(lambda x: x, x)


def test_numerical_checker_takes_empty_arrays():
    assert gt.NumericalChecker().check_gradient(lambda x: x * 2.0, np.ones(0)).is_valid
