"""What solvers refuse: no convergence, singular equations, NaN, wrong forms; also compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ConvergenceError,
    DTypeError,
    GradtapeError,
    LinAlgError,
    ShapeError,
)

root, fixed_point = gt.implicit.root, gt.implicit.fixed_point
# A condition in compiled code only knows the order of magnitude of a number.
WAYS = [pytest.param(lambda f: f, id="eager"), pytest.param(gt.jit, id="compiled")]


def stays(_g: Callable[[Any], Any], x0: Any) -> Any:
    """A solver that returns the first guess."""
    return x0


@pytest.mark.parametrize("way", WAYS)
def test_no_convergence_says_the_residual(way: Any) -> None:
    solve = way(root(lambda x, a: x**2 + a, stays))
    with pytest.raises(
        ConvergenceError,
        match=r"root: got a residual of (1\.25|about 1e0).*, above 5\.48e-07 times",
    ) as caught:
        solve(0.5, 1.0)
    assert isinstance(caught.value, ArithmeticError)
    assert isinstance(caught.value, GradtapeError)


def test_the_residual_is_compared_with_the_terms() -> None:
    # Of the size 1e-12 and 1e12: what counts is how it compares with x²
    for unit in (1e-12, 1.0, 1e12):
        solve = root(lambda x, a, unit=unit: unit * (x * x - a), stays)
        assert solve(2.0 + 1e-9, 4.0) == 2.0 + 1e-9
        with pytest.raises(ConvergenceError):
            solve(2.01, 4.0)
    assert root(lambda x, a: x * x - a, stays, tol=0.1)(2.01, 4.0) == 2.01
    assert root(lambda x, a: x * x - a, stays, tol=None)(7.0, 4.0) == 7.0
    # The first guess says nothing if f is infinite there.
    from_pole = root(lambda x, a: 1 / x - a, lambda g, x0: 0.3)
    with np.errstate(divide="ignore"), pytest.raises(ConvergenceError):
        from_pole(0.0, 4.0)
    # A root at 0, where terms are of no size, begun elsewhere and at once.
    np.testing.assert_allclose(root(lambda x, a: np.sin(a * x))(0.5, 1.0), 0.0, atol=1e-30)
    assert root(lambda x, a: np.sin(a * x))(0.0, 1.0) == 0.0


def cubic(x: Any, a: Any) -> Any:
    return x**3 - a


# From far away, where the residual is so large that any other is small compared to it.
FAR: dict[str, tuple[Any, float, float]] = {
    "exponential": (root(lambda x, a: np.exp(x) - a), 60.0, 2.0),
    "cubic": (root(cubic), 1e10, 8.0),
    "newton": (lambda x0, a: gt.implicit.newton(lambda x: x**9 - a, x0), 1e4, 1.0),
    "a solver": (root(cubic, lambda g, x0: 100.0), 1e6, 8.0),
    "a solver of fixed points": (
        fixed_point(lambda x, a: 0.5 * x + a, lambda h, x0: 3.0),
        1e9,
        1.0,
    ),
    "slow iteration": (fixed_point(lambda x, a: x - 1e-6 * (x - a)), 2.0, 1.0),
    "slow iteration of ones own": (
        fixed_point(lambda x, a: x - 1e-6 * (x - a), lambda h, x0: 1.999),
        2.0,
        1.0,
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", FAR)
def test_a_far_start_makes_no_residual_small(case: str, way: Any) -> None:
    solve, x0, a = FAR[case]
    with pytest.raises(ConvergenceError, match=r"got a residual of (\d|about 1e)"):
        way(solve)(x0, a)


@pytest.mark.parametrize("way", WAYS)
def test_steps_that_are_not_enough_are_said(way: Any) -> None:
    with pytest.raises(ConvergenceError, match=r"root: .* after 50 steps of Newton's method"):
        way(root(cubic))(1e10, 8.0)
    with pytest.raises(ConvergenceError, match=r"newton: .* after 3 steps"):
        way(lambda x0: gt.implicit.newton(lambda x: x**2 - 2, x0, max_steps=3))(1.0)
    with pytest.raises(ConvergenceError, match=r"fixed_point: .* after 1000 steps"):
        way(fixed_point(lambda x, a: a - x))(1.0, 3.0)
    with pytest.raises(ConvergenceError, match=r"iterate: .* after 9 steps"):
        way(lambda x0: gt.implicit.iterate(np.cos, x0, max_steps=9))(1.0)
    # Without a tolerance, whatever was found is taken.
    assert way(root(cubic, tol=None))(1e10, 8.0) > 10
    # A tolerance of the solver is one of the check, too.
    np.testing.assert_allclose(gt.implicit.iterate(np.cos, 1.0, tol=1e-3), 0.739, atol=1e-3)
    np.testing.assert_allclose(gt.implicit.newton(lambda x: x**2 - 2, 1.0, tol=0.1), 1.4, atol=0.1)


@pytest.mark.parametrize("x0", [0.7, 1e3])
@pytest.mark.parametrize("f", [
    lambda x, a: np.sin(a * x) if np.abs(x) < 2 else a * x, lambda x, a: np.tanh(x) + a * x,
    lambda x, a: a * x, lambda x, a: a * x + 0.1 * x**3,
])  # fmt: skip
def test_roots_at_zero(f: Any, x0: float) -> None:
    solvers: list[Any] = [
        None,
        scipy.optimize.fsolve,
        lambda g, x0: scipy.optimize.brentq(g, -x0, 2 * x0),
        scipy.optimize.newton,
        lambda g, x0: scipy.optimize.root(g, x0, method="lm").x,
    ]
    for solver in solvers:
        np.testing.assert_allclose(root(f, solver)(x0, 1.0), 0.0, atol=5e-8)
    np.testing.assert_allclose(fixed_point(lambda x, a: 0.5 * a * x)(x0, 1.0), 0.0, atol=1e-12)
    # Not what is as small as that without being one.
    with pytest.raises(ConvergenceError):
        root(f, lambda g, x0: 1e-6)(x0, 1.0)


def test_terms_that_cancel_are_counted() -> None:
    # A·x is 1e-13 times as large as its terms, and its rounding is not small compared to it.
    matrix = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-13]])
    shift = np.array([1.0, -1.0])
    solve = root(lambda x, a: matrix @ x - matrix @ (shift * a), lambda g, x0: shift + 1e-15)
    np.testing.assert_allclose(solve(np.ones(2), 1.0), shift)


def test_functions_that_have_only_reverse_mode_are_checked() -> None:
    @gt.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    @square.defvjp
    def rule(ct: Any, out: Any, x: Any) -> Any:
        return (2 * x * ct,)

    def f(x: Any, a: Any) -> Any:
        return square(x) - a

    assert root(f, lambda g, x0: 2.0 + 1e-9)(1.0, 4.0) == 2.0 + 1e-9
    assert root(f, lambda g, x0: 2.0)(1.0, 4.0) == 2.0
    with pytest.raises(ConvergenceError):
        root(f, lambda g, x0: 2.01)(1e6, 4.0)


@pytest.mark.parametrize("way", WAYS)
def test_nan_is_said(way: Any) -> None:
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(
            ConvergenceError, match="root: got a residual that is not finite where the solver ended"
        ),
    ):
        way(root(lambda x, a: np.log(x) + a))(-1.0, 1.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("derivative", ["grad", "jvp"])
def test_singular_jacobian_in_a_derivative(way: Any, derivative: str) -> None:
    solve = root(lambda x, a: (x - a) ** 3, lambda g, x0: 2.0)

    def slope(a: Any) -> Any:
        if derivative == "grad":
            return gt.grad(solve, 1)(1.0, a)
        return gt.jvp(lambda a: solve(1.0, a), (a,), (1.0,))[1]

    assert solve(1.0, 2.0) == 2.0
    with pytest.raises(LinAlgError, match=r"[Ss]ingular"):
        way(slope)(2.0)


def test_the_singular_matrix_is_named() -> None:
    with pytest.raises(LinAlgError, match="root: got a Jacobian ∂f/∂x that is singular"):
        gt.grad(root(lambda x, a: (x - a) ** 3, lambda g, x0: 2.0), 1)(1.0, 2.0)
    with pytest.raises(LinAlgError, match="fixed_point: got a matrix I − ∂g/∂x that is singular"):
        gt.grad(fixed_point(lambda x, a: x + 0 * a, stays), 1)(1.0, 2.0)


@pytest.mark.parametrize("way", WAYS)
def test_nearly_singular_is_singular(way: Any) -> None:
    # The determinant is rounding, 1e-17, and the solution 1e16 without any right digit.
    matrix = np.array([[0.1, 0.3], [0.2, 0.6 + 1e-16]])
    assert np.linalg.det(matrix) != 0

    def solved(b: Any) -> Any:
        return gt.implicit.linear_solve(lambda v: matrix @ v, b)

    with pytest.raises(LinAlgError, match=r"singular to working precision"):
        way(solved)(np.array([1.0, 3.0]))
    # What is far from singular is taken as it is, however it is scaled.
    scaled = np.diag([1e20, 1e-5])
    found = way(lambda b: gt.implicit.linear_solve(lambda v: scaled @ v, b))(np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, [0.0, 1e5])


@pytest.mark.parametrize("way", WAYS)
def test_newton_meets_a_singular_jacobian(way: Any) -> None:
    said = r"root: got a residual of (1 |about 1e0 )where ∂f/∂x is singular"
    with pytest.raises(ConvergenceError, match=said):
        way(root(lambda x, a: x**2 - a))(0.0, 1.0)
    # At once, or after a step: from 1 it comes to 0.
    with pytest.raises(ConvergenceError, match=said):
        way(root(lambda x, a: x**2 + a))(1.0, 1.0)
    # Of two equations that are one, and of one element of a batch.
    twice = root(lambda x, a: np.stack([x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - a]))
    with pytest.raises(ConvergenceError, match="where ∂f/∂x is singular"):
        way(twice)(np.zeros(2), 1.0)
    with pytest.raises(ConvergenceError, match="where ∂f/∂x is singular"):
        way(gt.vmap(root(lambda x, a: x**2 - a), (0, None)))(np.array([2.0, 0.0, 1.0]), 1.0)
    # What is a solution already is one, though without a derivative.
    same = root(lambda x, a: np.stack([x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - 2 * a]))
    np.testing.assert_array_equal(way(same)(np.ones(2), 2.0), [1.0, 1.0])
    with pytest.raises(LinAlgError, match="root: got a Jacobian ∂f/∂x that is singular"):
        way(gt.jacrev(same, 1))(np.ones(2), 2.0)


@pytest.mark.parametrize("way", WAYS)
def test_singular_equations_are_those_of_linear_solve(way: Any) -> None:
    for matrix in (np.zeros((1, 1)), np.ones((2, 2)), np.diag([1.0, 0.0, 2.0]), np.ones((12, 12))):
        b = np.arange(1.0, 1.0 + len(matrix))
        with pytest.raises(LinAlgError, match="linear_solve: got a matrix that is sing") as caught:
            way(lambda b, matrix=matrix: gt.implicit.linear_solve(lambda v: matrix @ v, b))(b)
        assert "derivative" not in str(caught.value)


def test_newton_and_iterate_raise_themselves() -> None:
    with pytest.raises(ConvergenceError, match="newton: got a residual of"):
        gt.implicit.newton(lambda x: np.exp(x), 0.0, max_steps=5)
    with pytest.raises(ConvergenceError, match="iterate: got a residual of"):
        gt.implicit.iterate(lambda x: -x, 1.0)
    with pytest.raises(ConvergenceError, match="fixed_point: got a residual of"):
        fixed_point(lambda x, a: a - x)(1.0, 1.0)
    with pytest.raises(ArgumentError, match="newton: got max_steps=0, expected 1 or more"):
        gt.implicit.newton(np.sin, 1.0, max_steps=0)
    with pytest.raises(ArgumentError, match="iterate: got history=-1, expected 0 or more"):
        gt.implicit.iterate(np.cos, 1.0, history=-1)


# ---- forms --------------------------------------------------------------------------------------


def test_as_many_equations_as_unknowns() -> None:
    twice = root(lambda x, a: np.concatenate([x, x]) - a)
    with pytest.raises(
        ShapeError, match="root: got 4 numbers from the function, expected as many equations"
    ):
        twice(np.ones(2), 1.0)
    with pytest.raises(ShapeError, match="root: got 4 numbers"):
        gt.grad(lambda a: root(lambda x, a: np.concatenate([x, x]) - a, stays, tol=None)(
            np.ones(2), a)[0])(1.0)  # fmt: skip
    with pytest.raises(ShapeError, match="fixed_point: got 1 numbers"):
        fixed_point(lambda x, a: x[:1])(np.ones(2), 1.0)


def test_forms_that_solvers_return() -> None:
    def f(x: Any, a: Any) -> Any:
        return x - a

    with pytest.raises(ShapeError, match=r"root: got an array of shape \(3,\) from the solver"):
        root(f, lambda g, x0: np.ones(3))(np.ones(2), 1.0)
    with pytest.raises(ShapeError, match=r"root: got an OptimizeResult from the solver.*result\.x"):
        root(f, scipy.optimize.root)(np.ones(2), 1.0)
    with pytest.raises(ShapeError, match="root: got a tuple from the solver"):
        root(f, lambda g, x0: (x0, 0))(np.ones(2), 1.0)
    with pytest.raises(DTypeError, match="root: got complex128 from the solver, expected real"):
        root(f, lambda g, x0: x0 + 1j)(np.ones(2), 1.0)


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ArgumentError, match="root: got an int, expected a function"):
        root(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="root: got an int, expected a function"):
        root(np.sin, 3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="root: got linear_solver='lu', expected 'auto'"):
        root(np.sin, linear_solver="lu")
    with pytest.raises(ArgumentError, match="root: got tol='tight', expected a number"):
        root(np.sin, tol="tight")
    with pytest.raises(DTypeError, match="root: got a str in x0, expected numbers"):
        root(np.sin)("one")
    with pytest.raises(DTypeError, match="root: got a dict in x0, expected numbers"):
        root(np.sin)({})
    with pytest.raises(DTypeError, match="root: got bfloat16 in x0, expected floats that NumPy"):
        root(np.sin)(gt.asarray(1.0, dtype=gt.bfloat16))


def test_errors_of_users_stay_theirs() -> None:
    def fails(x: Any, a: Any) -> Any:
        raise KeyError("mine")

    for solver in (None, scipy.optimize.fsolve):
        with pytest.raises(KeyError, match="mine"):
            root(fails, solver)(1.0, 2.0)
        with pytest.raises(KeyError, match="mine"):
            gt.jit(root(fails, solver))(1.0, 2.0)
    with pytest.raises(KeyError, match="mine"):
        gt.vmap(lambda a: root(lambda x, a: x - a, lambda g, x0: fails(1, 2))(1.0, a))(np.ones(2))


# ---- what is used from outside ------------------------------------------------------------------


def test_a_function_that_branches_and_uses_a_recorded_tensor() -> None:
    def anomaly(a: Any) -> Any:
        def f(x: Any) -> Any:
            return x * x - a if x > 0 else x

        return root(f)(1.0)

    with pytest.raises(GradtapeError, match=r"root: the function uses a recorded tensor.*pass it"):
        gt.grad(anomaly)(4.0)
    # Given as an argument it may branch, as the solver sees values.
    solve = root(lambda x, a: x * x - a if x > 0 else x)
    np.testing.assert_allclose(gt.grad(solve, 1)(1.0, 4.0), 0.25)


def test_a_solver_that_uses_a_recorded_tensor() -> None:
    def lost(a: Any) -> Any:
        return root(lambda x: x * x - 4.0, lambda g, x0: 0 * a + 2.0)(1.0)

    with pytest.raises(GradtapeError, match="root: the solver, or a function given to it, uses"):
        gt.grad(lost)(4.0)


def test_a_function_that_branches_runs_between_compiled_parts() -> None:
    solve = root(lambda x, a: x * x - a if x > 0 else x, scipy.optimize.fsolve)
    compiled = gt.jit(lambda a: 2.0 * solve(1.0, a))
    np.testing.assert_allclose(compiled(4.0), 4.0)
    assert [op.op for op in compiled.explain(4.0).eager] == ["root"]
    # Its derivative is computed in the compiled function, which sees no values.
    with pytest.raises(gt.errors.ConversionError, match="the value of a traced tensor"):
        gt.jit(gt.grad(lambda a: solve(1.0, a)))(4.0)
