"""Derivatives of `solve_ivp`: against closed forms, differences of a fixed grid, and each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import gradtape as gt
from gradtape.errors import ConvergenceError
from gradtape.testing import check_grads

solve_ivp = gt.scipy.integrate.solve_ivp
METHODS = ("RK23", "RK45", "DOP853", "Radau")
# All methods with all gradients.
WAYS = [(m, g) for m in METHODS for g in ("discrete", "adjoint")]
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
LOOSE = {"rtol": 1e-5, "atol": 1e-8}
# What a method takes few steps for, and how accurate the result is.
TOLERANCES = {
    "RK23": (LOOSE, 2e-3),
    "RK45": (TIGHT, 3e-7),
    "DOP853": (TIGHT, 3e-7),
    "Radau": ({"rtol": 1e-6, "atol": 1e-8}, 3e-5),
}


# ---- closed forms -------------------------------------------------------------------------------

MATRIX = np.array([[-0.3, 1.0, 0.2], [-1.0, -0.1, 0.0], [0.1, 0.3, -0.5]])
START = np.array([1.0, -0.5, 0.3])


def linear(t: Any, y: Any, matrix: Any) -> Any:
    return matrix @ y


@pytest.mark.parametrize(("method", "gradient"), WAYS)
def test_a_linear_equation_against_the_matrix_exponential(method: str, gradient: str) -> None:
    def end(matrix: Any, y0: Any, ends: Any) -> Any:
        found = solve_ivp(
            linear, ends, y0, method, t_eval=ends[1:], args=(matrix,), gradient=gradient,
            **TOLERANCES[method][0],
        )  # fmt: skip
        return found.y[:, 0]

    ends = np.array([0.5, 2.0])
    flow = scipy.linalg.expm(1.5 * MATRIX)
    end_y = flow @ START
    change = np.array([[0.2, 0.1, -0.3], [0.5, 0.0, 0.1], [-0.2, 0.3, 0.4]])
    _, along = scipy.linalg.expm_frechet(1.5 * MATRIX, 1.5 * change)
    accuracy = {"rtol": 0, "atol": TOLERANCES[method][1]}
    for mode in (gt.jacrev, gt.jacfwd):
        by_matrix, by_start, by_ends = mode(end, (0, 1, 2))(MATRIX, START, ends)
        np.testing.assert_allclose(by_start, flow, **accuracy)
        slope = MATRIX @ end_y
        np.testing.assert_allclose(by_ends, np.stack([-slope, slope], 1), **accuracy)
        np.testing.assert_allclose(
            np.einsum("ijk,jk->i", by_matrix, change), along @ START, **accuracy
        )


@pytest.mark.parametrize(("method", "gradient"), WAYS)
def test_growth_with_limits_by_everything(method: str, gradient: str) -> None:
    # y′ = r·y·(1 − y): y = 1/(1 + (1/y0 − 1)·e^(−r·(t − t0)))
    def exact(rate: Any, t0: Any, y0: Any, times: Any) -> Any:
        return 1 / (1 + (1 / y0 - 1) * np.exp(-rate * (times - t0)))

    def found(rate: Any, t0: Any, y0: Any, times: Any) -> Any:
        # The rate is used from outside, and the end of the interval is that of the times.
        return solve_ivp(
            lambda t, y: rate * y * (1 - y), (t0, times[-1]), [y0], method, t_eval=times,
            gradient=gradient, **TOLERANCES[method][0],
        ).y[0]  # fmt: skip

    point = 1.3, 0.2, 0.1, np.array([0.2, 0.9, 1.5, 3.0])
    accuracy = {"rtol": 0, "atol": TOLERANCES[method][1]}
    for mode in (gt.jacrev, gt.jacfwd):
        expected = mode(exact, (0, 1, 2, 3))(*point)
        for one, other in zip(mode(found, (0, 1, 2, 3))(*point), expected, strict=True):
            np.testing.assert_allclose(one, other, **accuracy)


@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
def test_backwards_and_without_times(gradient: str) -> None:
    def end(frequency: Any, t0: Any, t1: Any) -> Any:
        return solve_ivp(
            lambda t, y: [y[1], -(frequency**2) * y[0]], (t0, t1), [1.0, 0.0], "DOP853",
            gradient=gradient, **TIGHT,
        ).y[0, -1]  # fmt: skip

    # y = cos(ω·(t1 − t0))
    w, t0, t1 = 1.5, 2.0, -1.0
    sine = np.sin(w * (t1 - t0))
    np.testing.assert_allclose(end(w, t0, t1), np.cos(w * (t1 - t0)), atol=1e-8)
    expected = -(t1 - t0) * sine, w * sine, -w * sine
    for mode in (gt.jacrev, gt.jacfwd):
        np.testing.assert_allclose(mode(end, (0, 1, 2))(w, t0, t1), expected, rtol=1e-6)


def test_times_at_the_ends_move() -> None:
    def at(times: Any, gradient: str = "discrete") -> Any:
        return solve_ivp(
            linear, (0.0, 2.0), START, t_eval=times, args=(MATRIX,), gradient=gradient, **LOOSE
        ).y[0]

    times = np.array([0.0, 0.7, 2.0])
    expected = np.diag([(MATRIX @ scipy.linalg.expm(t * MATRIX) @ START)[0] for t in times])
    for mode in (gt.jacrev, gt.jacfwd):
        for way in (mode(at), gt.jit(mode(at)), mode(lambda t: at(t, "adjoint"))):
            np.testing.assert_allclose(way(times), expected, atol=1e-4)


@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
def test_an_interval_of_length_zero_has_the_derivatives_of_its_ends(gradient: str) -> None:
    def end(ends: Any, y0: Any) -> Any:
        return solve_ivp(linear, ends, y0, args=(MATRIX,), t_eval=ends[1:], gradient=gradient).y[
            :, 0
        ]

    slope = MATRIX @ START
    for mode in (gt.jacrev, gt.jacfwd):
        by_ends, by_start = mode(end, (0, 1))(np.ones(2), START)
        np.testing.assert_allclose(by_ends, np.stack([-slope, slope], 1), rtol=1e-14)
        np.testing.assert_allclose(by_start, np.eye(3), rtol=1e-14)


def test_complex_numbers() -> None:
    # y′ = a·y: y = y0·e^(a·t)
    def end(a: Any, y0: Any) -> Any:
        return solve_ivp(lambda t, y: a * y, (0, 1), np.stack([y0]), **TIGHT).y[0, -1]

    a, y0 = 0.3 + 1.0j, 1.0 - 0.5j
    by_a, by_y0 = gt.grad(end, (0, 1), holomorphic=True)(a, y0)
    np.testing.assert_allclose(by_a, y0 * np.exp(a), rtol=1e-8)
    np.testing.assert_allclose(by_y0, np.exp(a), rtol=1e-8)
    # Rates that are real, of a complex solution: |y|² = |y0|²·e^(2·r)
    size = lambda r: np.abs(end(r + 2j, y0)) ** 2  # noqa: E731
    np.testing.assert_allclose(gt.grad(size)(0.1), 2 * abs(y0) ** 2 * np.exp(0.2), rtol=1e-8)


def test_integers_have_no_gradient_and_do_no_harm() -> None:
    def end(rate: Any, power: Any) -> Any:
        return solve_ivp(
            lambda t, y, r, n: -r * y**n, (0, 1), [1.0], args=(rate, power), **TIGHT
        ).y[0, -1]

    # y′ = −r·y²: y = 1/(1 + r·t)
    for power in (2, np.int64(2), np.array(2), gt.tensor(2)):
        np.testing.assert_allclose(gt.grad(end)(0.5, power), -1 / 1.5**2, rtol=1e-7)


# ---- exact for the discretisation ---------------------------------------------------------------

# Tolerances that let all steps have the same length, and differences of the solution be those of
# the steps as they are.
FIXED = {"first_step": 0.25, "max_step": 0.25, "rtol": 0.5, "atol": 0.5}
POINT = START, np.array([0.8, 0.4])


def forced(t: Any, y: Any, p: Any) -> Any:
    third = np.tanh(y[0] * y[2]) * p[0]
    return np.stack([y[1] * p[0], -np.sin(y[0]) - p[1] * y[1] * np.cos(t), third])


def forced_linear(t: Any, y: Any, p: Any) -> Any:
    """Newton's method solves the equations of Radau for it to the last digit."""
    third = np.exp(p[0]) * y[0] - y[2]
    return np.stack([y[1] * p[0] + np.sin(t), np.cos(p[1] * t) - p[1] * y[1], third])


@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_those_of_the_steps(method: str, thorough: bool) -> None:
    fun = forced_linear if method == "Radau" else forced
    times = np.array([0.1, 0.4, 0.9])

    # The ends are fixed: one step more or less would be another function.
    def solution(y0: Any, p: Any, times: Any) -> Any:
        return solve_ivp(fun, (0.0, 1.0), y0, method, t_eval=times, args=(p,), **FIXED).y

    check_grads(solution, (*POINT, times), order=2 if thorough else 1)
    # That could not be said of the exact solution, which is far away.
    exact = solve_ivp(fun, (0.0, 1.0), START, t_eval=times, args=(POINT[1],), **TIGHT).y
    # (DOP853 is as good as that with steps of a fourth, too.)
    difference = np.abs(solution(gt.tensor(START), *POINT[1:], times).numpy() - exact).max()
    assert difference > 1e-8 or method == "DOP853"


@pytest.mark.parametrize("method", METHODS)
def test_the_grid_is_stretched_with_the_interval(method: str) -> None:
    fun = forced_linear if method == "Radau" else forced

    def steps(ends: Any, h: float = 0.25) -> Any:
        options = FIXED | {"first_step": h, "max_step": h}
        return solve_ivp(fun, ends, START, method, args=POINT[1:], **options).y

    ends = np.array([0.0, 1.0])
    found = gt.jacrev(steps)(ends)
    np.testing.assert_allclose(gt.jacfwd(steps)(ends), found, rtol=1e-12, atol=1e-13)
    for k in range(2):
        sides = []
        for side in (-1e-5, 1e-5):
            moved = ends + side * np.eye(2)[k]
            # A bit more than a fourth, so that no short step is left at the end.
            h = 0.25 * (moved[1] - moved[0]) * (1 + 1e-14)
            sides.append(steps(gt.tensor(moved), h).numpy())
        differences = (sides[1] - sides[0]) / 2e-5
        np.testing.assert_allclose(found[..., k], differences, atol=1e-8)


def by_tableau(method: str, y: Any, p: Any, grid: Any) -> Any:
    """The end of a solution by the steps of an explicit method along a grid, written out."""
    solver = getattr(scipy.integrate, method)
    for t, h in zip(grid[:-1], np.diff(grid), strict=True):
        ks: list[Any] = []
        for c, row in zip(solver.C, solver.A, strict=True):
            ahead = sum((a * k for a, k in zip(row, ks, strict=False)), np.zeros(3))
            ks.append(forced(t + c * h, y + h * ahead, p))
        y = y + h * sum(b * k for b, k in zip(solver.B, ks, strict=True))
    return y


@pytest.mark.parametrize("method", METHODS[:3])
def test_lengths_of_steps_are_constants_of_the_derivatives(method: str) -> None:
    def end(y0: Any, p: Any) -> Any:
        return solve_ivp(forced, (0.0, 3.0), y0, method, args=(p,)).y[:, -1]

    y0, p = 2 * POINT[0], POINT[1]
    grid = solve_ivp(forced, (0.0, 3.0), gt.tensor(y0), method, args=(p,)).t
    assert np.ptp(np.diff(grid)) > 0.1
    np.testing.assert_allclose(end(gt.tensor(y0), p), by_tableau(method, y0, p, grid), rtol=1e-11)
    expected = gt.jacrev(lambda *x: by_tableau(method, *x, grid), (0, 1))(y0, p)
    for mode in (gt.jacrev, gt.jacfwd):
        for one, other in zip(mode(end, (0, 1))(y0, p), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_forward_and_reverse_mode_are_transposes(method: str, rng: np.random.Generator) -> None:
    def function(y0: Any, p: Any, ends: Any, times: Any) -> Any:
        return solve_ivp(forced, ends, y0, method, t_eval=times, args=(p,)).y

    point = *POINT, np.array([0.0, 2.0]), np.array([0.5, 1.1, 1.9])
    tangents = tuple(rng.normal(size=x.shape) for x in point)
    value, pushed = gt.jvp(function, point, tangents)
    _, pullback = gt.vjp(function, *point)
    ct = rng.normal(size=value.shape)
    pulled = pullback(ct)
    left = np.sum(ct * pushed)
    right = sum(np.sum(a * b) for a, b in zip(pulled, tangents, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)
    columns = gt.jacfwd(function)(*point)
    rows = gt.jacrev(function)(*point)
    np.testing.assert_allclose(columns, rows, rtol=1e-11, atol=1e-12)
    unit = (np.array([1.0, 0.0, 0.0]), *(np.zeros_like(x) for x in point[1:]))
    np.testing.assert_allclose(gt.jvp(function, point, unit)[1], columns[..., 0], atol=1e-14)


# ---- second order -------------------------------------------------------------------------------


@pytest.mark.parametrize("outer", [gt.jacrev, gt.jacfwd])
@pytest.mark.parametrize("inner", [gt.grad, gt.jacfwd])
@pytest.mark.parametrize(
    ("method", "gradient"), [("RK45", "discrete"), ("Radau", "discrete"), ("RK45", "adjoint")]
)
def test_second_order_in_all_mixes(outer: Any, inner: Any, method: str, gradient: str) -> None:
    def exact(p: Any) -> Any:
        return 1 / (1 + (1 / p[1] - 1) * np.exp(-p[0]))

    def end(p: Any) -> Any:
        return solve_ivp(
            lambda t, y, rate: rate * y * (1 - y), (0.0, 1.0), p[1:], method, t_eval=[1.0],
            args=(p[0],), gradient=gradient, rtol=1e-6, atol=1e-8,
        ).y[0, 0]  # fmt: skip

    p = np.array([1.3, 0.2])
    np.testing.assert_allclose(outer(inner(end))(p), gt.hessian(exact)(p), rtol=2e-5, atol=1e-5)


def test_hessian_of_the_adjoint_of_radau() -> None:
    def end(rate: Any) -> Any:
        return solve_ivp(
            lambda t, y: -rate * y**2, (0.0, 1.0), [1.0], "Radau", t_eval=[1.0], gradient="adjoint",
            rtol=1e-6, atol=1e-8,
        ).y[0, 0]  # fmt: skip

    # y = 1/(1 + r)
    np.testing.assert_allclose(gt.hessian(end)(1.0), 2 / 8, rtol=1e-5)


def test_the_adjoint_is_as_accurate_as_the_tolerances() -> None:
    def end(rate: Any, rtol: float, gradient: str) -> Any:
        return solve_ivp(
            lambda t, y: -rate * y, (0.0, 2.0), [1.0], t_eval=[2.0], gradient=gradient, rtol=rtol,
            atol=rtol / 100,
        ).y[0, 0]  # fmt: skip

    exact = -2 * np.exp(-3.0)
    for gradient in ("discrete", "adjoint"):
        for rtol in (1e-4, 1e-7, 1e-10):
            for mode in (gt.grad, gt.jacfwd):
                error = abs(mode(lambda r: end(r, rtol, gradient))(1.5) - exact)  # noqa: B023
                assert error < 20 * rtol * abs(exact), (gradient, rtol, error)


def test_the_memory_of_the_adjoint_does_not_grow_with_the_steps() -> None:
    def kept(rtol: float, gradient: str) -> int:
        config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
        with gt.GradientTape(checkpoint=config) as tape:
            y0 = tape.watch(np.array([1.0, 0.0]))
            found = solve_ivp(
                lambda t, y: np.stack([y[1], -y[0]]), (0, 5), y0, t_eval=[5.0], rtol=rtol,
                atol=rtol, gradient=gradient,
            )  # fmt: skip
            loss = gt.sum(found.y**2)
        np.testing.assert_allclose(tape.gradient(loss, y0), [2.0, 0.0], atol=0.05)
        return tape.checkpoint_report.records

    assert kept(1e-9, "adjoint") == kept(1e-4, "adjoint") < 20
    assert kept(1e-9, "discrete") > 3 * kept(1e-4, "discrete")


# ---- dense output -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_dense_output_against_scipy_and_its_gradients(method: str) -> None:
    def solution(y0: Any) -> Any:
        return solve_ivp(
            linear, (0.0, 2.0), y0, method, dense_output=True, args=(MATRIX,), rtol=1e-6, atol=1e-8
        ).sol

    times = np.array([[0.0, 0.3], [1.234, 2.0]])
    theirs = scipy.integrate.solve_ivp(
        linear, (0.0, 2.0), START, method, dense_output=True, args=(MATRIX,), rtol=1e-6, atol=1e-8
    ).sol
    sol = solution(gt.tensor(START))
    for t in (0.0, 1.234, 2.0, times[0], times[1]):
        assert sol(t).shape == theirs(t).shape
        np.testing.assert_allclose(sol(t), theirs(t), atol=1e-5)
    assert (sol.t_min, sol.t_max) == (0.0, 2.0)
    flow = scipy.linalg.expm(1.234 * MATRIX)
    for mode in (gt.jacrev, gt.jacfwd):
        by_start, by_time = mode(lambda y0, t: solution(y0)(t), (0, 1))(START, 1.234)
        np.testing.assert_allclose(by_start, flow, atol=1e-5)
        np.testing.assert_allclose(by_time, MATRIX @ flow @ START, atol=1e-4)
    # At several times, each time moves its own column; the polynomials are smooth at their ends.
    several = gt.jacrev(lambda t: solution(START + 0 * gt.sum(t))(t)[0])(times[1])
    expected = [(MATRIX @ scipy.linalg.expm(t * MATRIX) @ START)[0] for t in times[1]]
    np.testing.assert_allclose(several, np.diag(expected), atol=1e-4)


def test_dense_output_backwards_beyond_its_ends_and_differentiated_twice() -> None:
    def fun(t: Any, y: Any, w: Any) -> Any:
        return np.stack([y[1], -(w**2) * y[0]])

    def at(w: Any, t: Any) -> Any:
        # Without any tensor the result would be SciPy's, which is no function of tensors.
        found = solve_ivp(
            fun, (1.0, -1.0), gt.tensor([1.0, 0.0]), "DOP853", dense_output=True, args=(w,), **TIGHT
        )
        return found.sol(t)[0]

    # y = cos(ω·(t − 1))
    np.testing.assert_allclose(at(gt.tensor(1.5), -0.3), np.cos(1.5 * 1.3), atol=1e-8)
    theirs = scipy.integrate.solve_ivp(
        fun, (1.0, -1.0), [1.0, 0.0], "DOP853", dense_output=True, args=(1.5,), **TIGHT
    )
    outside = np.array([1.2, -1.1])
    np.testing.assert_allclose(at(gt.tensor(1.5), outside), theirs.sol(outside)[0], atol=1e-4)
    np.testing.assert_allclose(gt.grad(at, 1)(1.5, -0.3), -1.5 * np.sin(1.5 * -1.3), rtol=1e-6)
    curve = gt.hessian(at)(1.5, -0.3)
    np.testing.assert_allclose(curve, -(1.3**2) * np.cos(1.5 * 1.3), rtol=1e-5)


# ---- stiff equations ----------------------------------------------------------------------------


def robertson(t: Any, y: Any, k: Any) -> Any:
    first, second, third = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return np.stack([second - first, first - second - third, third])


def van_der_pol(t: Any, y: Any, p: Any) -> Any:
    return np.stack([y[1], p[0] * ((1 - y[0] ** 2) * y[1]) - p[1] * y[0]])


STIFF = {
    "robertson": (robertson, [1.0, 0.0, 0.0], np.array([0.04, 1e4, 3e7]), 40.0, 1e-12),
    "van der pol": (van_der_pol, [2.0, 0.0], np.array([1000.0, 1.0]), 200.0, 1e-9),
}


def sensitivities(fun: Any, y0: Any, p: Any, end: float) -> tuple[Any, Any]:
    """The solution and its derivatives by p, from the variational equations by SciPy."""
    size, count = len(y0), len(p)
    by_y, by_p = (gt.jit(gt.jacfwd(fun, n)) for n in (1, 2))

    # (y, S)′ = (f, ∂f/∂y·S + ∂f/∂p)
    def variational(t: float, z: Any) -> Any:
        y, moved = z[:size], z[size:].reshape(size, count)
        return np.concatenate([fun(t, y, p), (by_y(t, y, p) @ moved + by_p(t, y, p)).ravel()])

    begin = np.concatenate([y0, np.zeros(size * count)])
    atol = np.concatenate([np.full(size, 1e-14), np.full(size * count, 1e-16)])
    z = scipy.integrate.solve_ivp(variational, (0, end), begin, "BDF", rtol=1e-9, atol=atol).y[
        :, -1
    ]
    return z[:size], z[size:].reshape(size, count)


@pytest.mark.parametrize(
    "problem", [pytest.param("robertson", marks=pytest.mark.slow), "van der pol"]
)
def test_stiff_equations_against_the_variational_equations(problem: str) -> None:
    fun, y0, p, end, atol = STIFF[problem]
    value, expected = sensitivities(fun, y0, p, end)

    def last(p: Any) -> Any:
        options = {"t_eval": [end], "args": (p,), "rtol": 1e-7, "atol": atol}
        return solve_ivp(fun, (0.0, end), y0, "Radau", **options).y[:, 0]

    found = last(gt.tensor(p))
    np.testing.assert_allclose(found, value, rtol=1e-5)
    scale = np.abs(expected).max(0)
    mode = gt.jacrev if problem == "robertson" else gt.jacfwd
    np.testing.assert_allclose(gt.jit(mode(last))(p) / scale, expected / scale, atol=1e-4)


@pytest.mark.slow
def test_the_adjoint_of_an_equation_that_is_a_bit_stiff() -> None:
    p = np.array([5.0, 1.0])
    _, expected = sensitivities(van_der_pol, [2.0, 0.0], p, 2.0)

    def last(p: Any) -> Any:
        options = {"args": (p,), "rtol": 1e-7, "atol": 1e-9, "gradient": "adjoint"}
        # Backwards it would not come to where it began, but for the times in between.
        times = np.linspace(0.2, 2.0, 10)
        return solve_ivp(van_der_pol, (0, 2), [2.0, 0.0], "Radau", times, **options).y[:, -1]

    np.testing.assert_allclose(gt.jit(gt.jacrev(last))(p), expected, atol=1e-5)


@pytest.mark.parametrize("way", [lambda f: f, gt.jit])
def test_an_adjoint_that_cannot_be_right_raises(way: Any) -> None:
    def damped(rate: Any, times: Any) -> Any:
        return solve_ivp(
            lambda t, y: -rate * (y - np.cos(t)), (0.0, 1.0), [2.0], t_eval=times, rtol=1e-6,
            atol=1e-8, gradient="adjoint",
        ).y[0, -1]  # fmt: skip

    with pytest.raises(ConvergenceError, match=r"gradient='adjoint' computes again.*departs by"):
        way(gt.grad(lambda rate: damped(rate, [1.0])))(30.0)
    # With what it says.
    found = way(gt.grad(lambda rate: damped(rate, np.linspace(0.1, 1.0, 10))))(30.0)
    # y = (r²·cos t + r·sin t)/(1 + r²), without the part that decays
    exact = gt.grad(lambda r: (r**2 * np.cos(1.0) + r * np.sin(1.0)) / (1 + r**2))
    np.testing.assert_allclose(found, exact(30.0), rtol=1e-3)

    def sinking(rate: Any) -> Any:
        return solve_ivp(
            lambda t, y: -rate * y**3, (0.0, 1.0), [1e3], t_eval=[1.0], gradient="adjoint",
            method="RK45",
        ).y[0, -1]  # fmt: skip

    with pytest.raises(ConvergenceError, match=r"gradient='adjoint'.*use gradient='discrete'"):
        way(gt.grad(sinking))(1.0)
