"""`gradtape.scipy.optimize`: roots and fixed points, as SciPy finds them, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from gradtape.errors import ArgumentError, ConvergenceError, LinAlgError

optimize = gt.scipy.optimize
TIGHT = {"rtol": 1e-8, "atol": 1e-12}
A = np.array([8.0, 27.0])


def cubes(x: Any, a: Any) -> Any:
    return x**3 - a


def cube_roots(a: Any, **options: Any) -> Any:
    return optimize.root(cubes, np.ones(2), args=(a,), **options).x


# ∂x/∂a = 1/(3x²), ∂²x/∂a² = −2/(9x⁵)
SLOPES, CURVES = 1 / (3 * np.cbrt(A) ** 2), -2 / (9 * np.cbrt(A) ** 5)


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "df-sane"])
def test_root_and_its_derivatives(method: str) -> None:
    def solution(a: Any) -> Any:
        return optimize.root(cubes, np.full(2, 2.0), args=(a,), method=method, tol=1e-12).x

    np.testing.assert_allclose(solution(A), [2.0, 3.0], rtol=1e-9)
    for mode in (gt.jacrev, gt.jacfwd):
        np.testing.assert_allclose(mode(solution)(A), np.diag(SLOPES), **TIGHT)
    second = gt.hessian(lambda a: np.sum(solution(a)))(A)
    np.testing.assert_allclose(second, np.diag(CURVES), **TIGHT)


def test_root_compiled_batched_and_with_closures() -> None:
    expected = np.diag(SLOPES)
    np.testing.assert_allclose(gt.jit(cube_roots)(A), [2.0, 3.0], rtol=1e-9)
    np.testing.assert_allclose(gt.jit(gt.jacobian(cube_roots))(A), expected, **TIGHT)
    np.testing.assert_allclose(gt.vmap(cube_roots)(np.stack([A, 8 * A])), [[2, 3], [4, 6]])

    def closed(a: Any) -> Any:
        return optimize.root(lambda x: x**3 - a, np.ones(2)).x

    np.testing.assert_allclose(gt.jacobian(closed)(A), expected, **TIGHT)
    np.testing.assert_allclose(gt.jit(gt.jacobian(closed))(A), expected, **TIGHT)
    leaf = gt.tensor(A, requires_grad=True)
    gt.sum(closed(leaf)).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), SLOPES, **TIGHT)


def test_root_without_tensors_is_scipys() -> None:
    ours, theirs = (m.root(cubes, [1, 2], args=A) for m in (optimize, scipy.optimize))
    assert type(ours) is type(theirs)
    # Only the count of Jacobians is new: SciPy has none of its own.
    assert set(ours) - {"njev"} == set(theirs)
    assert ours.nfev < theirs.nfev
    for key in set(theirs) - {"nfev"}:
        assert type(ours[key]) is type(theirs[key])
    np.testing.assert_allclose(ours.x, theirs.x)
    assert ours.x.dtype == theirs.x.dtype


def test_root_result_with_tensors() -> None:
    result = optimize.root(cubes, np.ones(2), args=(gt.tensor(A),))
    assert isinstance(result.x, gt.Tensor)
    assert isinstance(result.fun, gt.Tensor)
    assert result.success is True
    assert result.message == "The solution converged."
    batch = gt.vmap(lambda a: dict(optimize.root(cubes, np.ones(2), (a,))))
    found = batch(np.stack([A, A]))
    assert set(found) == {"x", "fun", "success"}
    np.testing.assert_array_equal(found["success"], [True, True])


def test_root_with_derivatives_of_ones_own() -> None:
    asked = []

    def slope(x: Any, a: Any) -> Any:
        asked.append(type(a))
        return np.diag(3 * x**2)

    for jac, fun in ((slope, cubes), (True, lambda x, a: (cubes(x, a), np.diag(3 * x**2)))):
        solve = lambda a, j=jac, f=fun: optimize.root(f, np.ones(2), (a,), jac=j).x  # noqa: E731
        np.testing.assert_allclose(gt.jacobian(solve)(A), np.diag(SLOPES), **TIGHT)
    assert set(asked) == {np.ndarray}


@pytest.mark.parametrize("way", [gt.grad, lambda f: gt.jit(gt.grad(f))])
def test_root_that_fails_has_no_derivative(way: Any) -> None:
    def nowhere(a: Any) -> Any:
        return optimize.root(lambda x, a: x * x + a, np.ones(1), args=(a,)).x[0]

    assert np.isfinite(nowhere(1.0))
    with pytest.raises(
        ConvergenceError, match=r"root: got no solution from SciPy \((.*)\)"
    ) as error:
        way(nowhere)(1.0)
    if way is gt.grad:
        assert "not making good progress" in str(error.value)
        assert "the residual is 1" in str(error.value)


def test_what_lm_returns_need_not_be_a_root() -> None:
    def nowhere(a: Any) -> Any:
        return optimize.root(lambda x, a: x * x + a, [0.1], args=(a,), method="lm").x[0]

    with pytest.raises(ConvergenceError, match=r"root: got no solution.*the residual is 1"):
        gt.grad(nowhere)(1.0)


def test_a_root_that_scipy_calls_unsuccessful() -> None:
    # With a tolerance of 0 it runs out of evaluations.
    def result(a: Any) -> Any:
        return optimize.root(cubes, [5.0, 5.0], (a - 1,), tol=0.0, options={"maxfev": 20})

    assert not result(A).success
    expected = np.diag(1 / (3 * np.cbrt(A - 1) ** 2))
    np.testing.assert_allclose(gt.jacobian(lambda a: result(a).x)(A), expected, **TIGHT)


def test_root_with_a_singular_jacobian() -> None:
    def touching(a: Any) -> Any:
        return optimize.root(lambda x, a: (x - a) ** 3, np.ones(1), args=(a,)).x[0]

    with pytest.raises(LinAlgError, match="root: got a Jacobian that is singular"):
        gt.grad(lambda a: optimize.root(lambda x, a: 0 * (x - a), np.ones(1), (a,)).x[0])(1.0)
    with pytest.raises(ArgumentError, match="root: got method='newton', expected 'hybr'"):
        optimize.root(cubes, np.ones(2), args=(A,), method="newton")
    assert np.isfinite(touching(1.0))


# ---- one equation -------------------------------------------------------------------------------


def square(x: Any, a: Any) -> Any:
    return x * x - a


def test_brentq() -> None:
    assert type(optimize.brentq(square, 0, 4, (4.0,))) is float
    assert optimize.brentq(square, 0, 4, (4.0,)) == scipy.optimize.brentq(square, 0, 4, (4.0,))

    def solution(a: Any, b: Any = 4.0) -> Any:
        return optimize.brentq(square, 0.0, b, args=(a,))

    assert gt.grad(solution)(4.0) == pytest.approx(0.25, rel=1e-10)
    assert gt.grad(gt.grad(solution))(4.0) == pytest.approx(-1 / 32, rel=1e-8)
    assert gt.jvp(solution, (4.0,), (2.0,))[1] == pytest.approx(0.5, rel=1e-10)
    assert gt.jit(gt.grad(solution))(4.0) == pytest.approx(0.25, rel=1e-10)
    assert gt.grad(solution, 1)(4.0, 3.0) == 0.0
    np.testing.assert_allclose(
        gt.vmap(solution)(np.array([1.0, 4.0]), np.array([2.0, 3.0])), [1.0, 2.0]
    )


def jump(x: Any, a: Any) -> Any:
    return np.where(x < 2, x - 2 - a, x - 2 + a)


@pytest.mark.parametrize("method", ["brentq", "brenth", "bisect", "ridder", "toms748"])
@pytest.mark.parametrize(
    ("f", "ends", "said"),
    [
        (jump, (0.0, 4.0), "the residual is 1"),
        (lambda x, a: np.where(x < a, -1.0, 1.0), (0.0, 4.0), "the residual is 1"),
        (lambda x, a: np.tan(x) - a, (1.3, 2.0), "it is a pole"),
        (lambda x, a: 1 / (x - a), (0.0, 3.3), "it is a pole"),
    ],
)
def test_a_change_of_sign_that_is_no_root(method: str, f: Any, ends: Any, said: str) -> None:
    def solution(a: Any) -> Any:
        return optimize.root_scalar(f, (a,), method, ends).root

    assert solution(1.0) == pytest.approx(scipy.optimize.root_scalar(f, (1.0,), method, ends).root)
    with pytest.raises(ConvergenceError, match=rf"root_scalar: got no solution.*{said}"):
        gt.grad(solution)(1.0)
    with pytest.raises(ConvergenceError, match=f"brentq: got no solution.*{said}"):
        gt.grad(lambda a: optimize.brentq(f, *ends, (a,)))(1.0)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("a", [0.0, 1.0])
def test_roots_in_other_units(unit: float, a: float) -> None:
    def of_values(a: Any) -> Any:
        return optimize.brentq(lambda x, a: unit * (x - a), -2.0, 4.0, (a,))

    def of_variables(a: Any) -> Any:
        found = optimize.brentq(lambda x, a: x / unit - a, -2 * unit, 4 * unit, (a,), 1e-12 * unit)
        return found / unit

    assert gt.grad(of_values)(a) == pytest.approx(1.0)
    assert gt.grad(of_variables)(a) == pytest.approx(1.0)


def test_brentq_reports() -> None:
    x, report = optimize.brentq(square, 0, 4, (gt.tensor(4.0),), full_output=True)
    assert report.converged
    assert report.root is x
    assert isinstance(x, gt.Tensor)
    with pytest.raises(ValueError, match="different signs"):
        optimize.brentq(square, 3.0, 4.0, (4.0,))

    def stopped(a: Any) -> Any:
        return optimize.brentq(square, 0.0, 3.0, (a,), maxiter=2, disp=False)

    assert np.isfinite(stopped(2.0))
    with pytest.raises(ConvergenceError, match=r"brentq: got no solution.*the residual is"):
        gt.grad(stopped)(2.0)


@pytest.mark.parametrize(
    "how",
    [
        {"bracket": (0.0, 4.0)},
        {"x0": 1.0},
        {"x0": 1.0, "x1": 3.0},
        {"x0": 1.0, "method": "newton"},
        {"x0": 1.0, "method": "halley"},
        {"x0": 1.0, "fprime": lambda x, a: 2 * x},
        {"bracket": (0.0, 4.0), "method": "toms748"},
    ],
)
def test_root_scalar(how: dict[str, Any]) -> None:
    ours = optimize.root_scalar(square, (4.0,), **how)
    if how.get("method") != "halley":  # SciPy needs two derivatives for that
        theirs = scipy.optimize.root_scalar(square, (4.0,), **how)
        assert type(ours) is type(theirs)
        assert set(ours) == set(theirs)
        assert type(ours.root) is type(theirs.root)
        assert ours.method == theirs.method
    assert ours.root == pytest.approx(2.0)

    def solution(a: Any) -> Any:
        return optimize.root_scalar(square, (a,), **how).root

    assert gt.grad(solution)(4.0) == pytest.approx(0.25, rel=1e-8)
    assert gt.jit(gt.grad(solution))(4.0) == pytest.approx(0.25, rel=1e-8)
    np.testing.assert_allclose(gt.vmap(solution)(np.array([1.0, 4.0])), [1.0, 2.0], rtol=1e-8)


def complex_square(x: Any, a: Any) -> Any:
    return x * x + a


@pytest.mark.parametrize(
    "how",
    [
        {"method": "newton"},
        {"method": "newton", "fprime": lambda x, a: 2 * x},
        {"method": "halley"},
        {"method": "secant", "x1": 0.2 + 1j},
    ],
)
def test_complex_roots(how: dict[str, Any]) -> None:
    ours = optimize.root_scalar(complex_square, (1.0,), x0=0.1 + 1j, **how)
    assert type(ours.root) in (complex, np.complex128)
    assert ours.root == pytest.approx(1j)

    def imaginary(a: Any) -> Any:
        return optimize.root_scalar(complex_square, (a,), x0=0.1 + 1j, **how).root.imag

    assert gt.grad(imaginary)(4.0) == pytest.approx(0.25)


def test_runtime_errors_of_scipy() -> None:
    def bracketed(a: Any) -> Any:
        return optimize.brentq(square, 0.0, 4.0, (a,), maxiter=2)

    def repeated(a: Any) -> Any:
        how = {"maxiter": 3, "method": "iteration"}
        return optimize.fixed_point(lambda x, a: 2 * x + a, 1.0, (a,), **how)

    def fitted(a: Any) -> Any:
        model = lambda t, p: np.exp(p * t)  # noqa: E731
        return optimize.curve_fit(model, [0.0, 1.0], a * np.ones(2), [9.0], maxfev=2)[0][0]

    for call in (bracketed, repeated, fitted):
        # SciPy's own, where there is nothing to differentiate.
        with pytest.raises(RuntimeError) as caught:
            call(2.0)
        assert not isinstance(caught.value, ConvergenceError)
        with pytest.raises(ConvergenceError, match=r"got no solution from SciPy \(.*\), expected"):
            gt.grad(call)(2.0)

    def broken(_x: Any, _a: Any) -> Any:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        gt.grad(lambda a: optimize.brentq(broken, 0.0, 4.0, (a,)))(2.0)


def test_root_scalar_of_a_function_that_returns_its_slope() -> None:
    def solution(a: Any) -> Any:
        return optimize.root_scalar(lambda x, a: (x * x - a, 2 * x), (a,), x0=1.0, fprime=True).root

    assert gt.grad(solution)(4.0) == pytest.approx(0.25, rel=1e-8)
    with pytest.raises(ArgumentError, match="root_scalar: got no point to begin at"):
        optimize.root_scalar(square, (4.0,))


def test_fixed_point() -> None:
    def babylonian(x: Any, a: Any) -> Any:
        return 0.5 * (x + a / x)

    ours = optimize.fixed_point(babylonian, [1.0, 2.0], (4.0,))
    theirs = scipy.optimize.fixed_point(babylonian, [1.0, 2.0], (4.0,))
    assert type(ours) is type(theirs)
    np.testing.assert_array_equal(ours, theirs)

    def solution(a: Any) -> Any:
        return optimize.fixed_point(babylonian, np.ones(2), (a,), xtol=1e-12)

    np.testing.assert_allclose(gt.jacobian(solution)(4.0), [0.25, 0.25], **TIGHT)
    np.testing.assert_allclose(gt.jit(gt.jacobian(solution))(4.0), [0.25, 0.25], **TIGHT)
