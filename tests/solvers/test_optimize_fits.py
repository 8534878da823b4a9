"""`least_squares` and `curve_fit` with derivatives, against normal equations and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from gradtape.errors import ArgumentError, ConvergenceError, LinAlgError, UnsupportedError
from gradtape.solvers.optimize.loss import Loss

optimize = gt.scipy.optimize
TIGHT = {"rtol": 1e-8, "atol": 1e-11}
EXACT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


# ---- least_squares ------------------------------------------------------------------------------


def ridge(w: Any, x: Any, y: Any, penalty: Any) -> Any:
    return np.concatenate([x @ w - y, np.sqrt(penalty) * w])


def normal_equations(x: Any, y: Any, penalty: Any) -> Any:
    return gt.solve(x.T @ x + penalty * np.eye(3), x.T @ y)


@pytest.fixture
def data(rng: np.random.Generator) -> Any:
    return rng.normal(size=(10, 3)), rng.normal(size=10), 0.5


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_ridge_regression_against_the_normal_equations(method: str, data: Any) -> None:
    def fitted(x: Any, y: Any, penalty: Any) -> Any:
        return optimize.least_squares(ridge, np.zeros(3), args=(x, y, penalty), method=method).x

    expected = gt.jacobian(normal_equations, (0, 1, 2))(*data)
    for mode in (gt.jacrev, gt.jacfwd):
        for one, other in zip(mode(fitted, (0, 1, 2))(*data), expected, strict=True):
            np.testing.assert_allclose(one, other, **TIGHT)
    second = gt.jacfwd(gt.jacrev(fitted, 2), 2)(*data)
    exact = gt.jacfwd(gt.jacfwd(normal_equations, 2), 2)(*data)
    np.testing.assert_allclose(second, exact, **TIGHT)
    compiled = gt.jit(gt.jacobian(fitted, 2))(*data)
    np.testing.assert_allclose(compiled, expected[2], **TIGHT)
    x, y, penalty = data
    batch = gt.vmap(fitted, in_axes=(None, 0, None))(x, np.stack([y, -2 * y]), penalty)
    np.testing.assert_allclose(batch[1], -2 * batch[0], rtol=1e-8)


T = np.linspace(0.0, 2.0, 12)
Y = 2 * np.exp(-1.3 * T) + 0.1 * np.cos(40 * T)


def decay(p: Any, t: Any, y: Any) -> Any:
    return p[0] * np.exp(p[1] * t) - y


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "cauchy", "arctan"])
def test_the_hessian_is_exact(loss: str) -> None:
    # Residuals do not vanish: JᵀJ alone would be wrong by percents.
    def fitted(y: Any) -> Any:
        start = np.array([2.0, -1.3])
        return optimize.least_squares(decay, start, args=(T, y), loss=loss, f_scale=0.1, **EXACT).x

    p = fitted(Y)
    cost = Loss("test", loss, 0.1).cost
    both = gt.hessian(lambda v: cost(decay(v[:2], T, v[2:])))(np.concatenate([p, Y]))
    expected = -np.linalg.solve(both[:2, :2], both[:2, 2:])
    np.testing.assert_allclose(gt.jacobian(fitted)(Y), expected, **TIGHT)
    gauss_newton = np.linalg.pinv(gt.jacobian(decay)(p, T, Y))
    assert np.abs(gauss_newton - expected).max() > 1e-3


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_costs_are_scipys(loss: str, rng: np.random.Generator) -> None:
    r = rng.normal(size=6)
    theirs = scipy.optimize.least_squares(
        lambda x: r + 0 * x, 0.0, loss=loss, f_scale=0.7, max_nfev=1
    )
    np.testing.assert_allclose(Loss("test", loss, 0.7).cost(r), theirs.cost)


def test_a_loss_of_ones_own() -> None:
    def quartic(z: Any) -> Any:
        return np.stack([z + z * z, 1 + 2 * z, 2 + 0 * z])

    def fitted(y: Any) -> Any:
        return optimize.least_squares(
            lambda x, y: x[0] - y, np.zeros(1), args=(y,), loss=quartic, **EXACT
        ).x[0]

    y = np.array([0.0, 1.0, 3.0])
    # Σ(r + 2r³) = 0: weights are 1 + 6r²
    weights = 1 + 6 * (fitted(y) - y) ** 2
    np.testing.assert_allclose(gt.grad(fitted)(y), weights / weights.sum(), **TIGHT)


def test_without_tensors_it_is_scipys(data: Any) -> None:
    ours = optimize.least_squares(ridge, [0, 0, 0], args=data)
    theirs = scipy.optimize.least_squares(ridge, [0, 0, 0], args=data)
    assert type(ours) is type(theirs)
    assert set(ours) == set(theirs)
    for key in theirs:
        assert type(ours[key]) is type(theirs[key])
    assert ours.nfev <= theirs.nfev
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-6)


def test_results_with_tensors(data: Any) -> None:
    x, y, penalty = data
    result = optimize.least_squares(ridge, np.zeros(3), args=(x, gt.tensor(y), penalty))
    for key in ("x", "fun", "cost"):
        assert isinstance(result[key], gt.Tensor)
    assert isinstance(result.jac, np.ndarray)
    assert result.success

    def cost(y: Any) -> Any:
        return optimize.least_squares(ridge, np.zeros(3), args=(x, y, penalty)).cost

    # The envelope theorem: ∂cost/∂y = −r
    w = normal_equations(x, y, penalty)
    np.testing.assert_allclose(gt.grad(cost)(y), y - x @ w, **TIGHT)


def test_keywords_jacobians_and_bounds() -> None:
    def slopes(x: Any, y: Any, scale: Any) -> Any:
        return np.diag(scale + 0 * x)

    def fitted(y: Any, scale: Any, upper: Any, **options: Any) -> Any:
        return optimize.least_squares(
            lambda x, y, scale: scale * x - y,
            np.zeros(2),
            bounds=(-5.0, gt.stack([upper + 0 * scale, 9 + 0 * scale])),
            args=(y,),
            kwargs={"scale": scale},
            **options,
            **EXACT,
        ).x

    y = np.array([8.0, 4.0])
    for options in ({}, {"jac": slopes}, {"jac": "3-point"}, {"method": "dogbox"}):
        solve = lambda y, s, u, o=options: fitted(y, s, u, **o)  # noqa: E731
        np.testing.assert_allclose(solve(y, 2.0, 3.0), [3.0, 2.0], atol=1e-4)
        by_y, by_scale, by_upper = gt.jacobian(solve, (0, 1, 2))(y, 2.0, 3.0)
        np.testing.assert_allclose(by_y, [[0.0, 0.0], [0.0, 0.5]], atol=1e-8)
        np.testing.assert_allclose(by_scale, [0.0, -1.0], atol=1e-8)
        np.testing.assert_allclose(by_upper, [1.0, 0.0], atol=1e-8)


def test_failures_of_least_squares() -> None:
    def stopped(y: Any) -> Any:
        return optimize.least_squares(decay, np.array([5.0, 3.0]), args=(T, y), max_nfev=1).x[0]

    with pytest.raises(ConvergenceError, match=r"least_squares: got no solution.*residual is"):
        gt.grad(stopped)(Y)
    with pytest.raises(LinAlgError, match="least_squares: got a Hessian of the cost that is"):
        gt.grad(lambda y: optimize.least_squares(
            lambda x, y: x[0] + x[1] - y, np.zeros(2), args=(y,)).x[0])(Y)  # fmt: skip
    with pytest.raises(ArgumentError, match="least_squares: got loss='l1', expected 'linear'"):
        optimize.least_squares(decay, np.ones(2), args=(T, Y), loss="l1")


# ---- curve_fit ----------------------------------------------------------------------------------


def line(x: Any, a: Any, b: Any) -> Any:
    return a + b * x


def columns(t: Any) -> Any:
    return gt.stack([gt.ones_like(t), t], axis=1)


@pytest.mark.parametrize("how", [{}, {"method": "trf"}, {"p0": [3.0, 4.0]}, {"bounds": (-9, 9)}])
def test_a_line_against_the_normal_equations(how: dict[str, Any]) -> None:
    def fitted(t: Any, y: Any) -> Any:
        return optimize.curve_fit(line, t, y, **how)[0]

    def exact(t: Any, y: Any) -> Any:
        return gt.solve(columns(t).T @ columns(t), columns(t).T @ y)

    np.testing.assert_allclose(fitted(T, Y), exact(T, Y), rtol=1e-7)
    for mode in (gt.jacrev, gt.jacfwd):
        for found, slopes in zip(
            mode(fitted, (0, 1))(T, Y), gt.jacobian(exact, (0, 1))(T, Y), strict=True
        ):
            np.testing.assert_allclose(found, slopes, rtol=1e-7, atol=1e-9)


def test_weights() -> None:
    sigma = np.linspace(0.5, 1.5, 12)

    def weighted(sigma: Any) -> Any:
        return optimize.curve_fit(line, T, Y, sigma=sigma, method="trf", **EXACT)[0]

    def exact(sigma: Any) -> Any:
        x, y = columns(T) / sigma[:, None], Y / sigma
        return gt.solve(x.T @ x, x.T @ y)

    np.testing.assert_allclose(gt.jacobian(weighted)(sigma), gt.jacobian(exact)(sigma), **TIGHT)
    covariance = np.diag(sigma**2) + 0.1

    def by_covariance(c: Any) -> Any:
        weights = gt.linalg.inv(c)
        return gt.solve(columns(T).T @ weights @ columns(T), columns(T).T @ weights @ Y)

    # Only one triangle is read of a covariance, so compare changes that are symmetric.
    found, slopes = (gt.jacobian(f)(covariance) for f in (weighted, by_covariance))
    np.testing.assert_allclose(found + found.mT, slopes + slopes.mT, **TIGHT)


@pytest.mark.parametrize("absolute", [False, True])
def test_covariance_of_a_line(absolute: bool) -> None:
    def covariance(y: Any) -> Any:
        return optimize.curve_fit(line, T, y, absolute_sigma=absolute)[1]

    def exact(y: Any) -> Any:
        x = columns(T)
        inverse = gt.linalg.inv(x.T @ x)
        return inverse if absolute else inverse * np.sum((y - x @ (inverse @ x.T @ y)) ** 2) / 10

    np.testing.assert_allclose(covariance(Y), exact(Y), rtol=1e-6)
    np.testing.assert_allclose(
        gt.jacobian(covariance)(Y), gt.jacobian(lambda y: exact(y) + 0 * y[0])(Y), atol=1e-9
    )
    np.testing.assert_allclose(gt.jit(covariance)(Y), exact(Y), rtol=1e-6)


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy"])
def test_covariance_with_another_loss_is_scipys(loss: str) -> None:
    how = {"method": "trf", "loss": loss, "f_scale": 0.1, "p0": [2.0, -1.0], **EXACT}
    model = lambda t, a, b: a * np.exp(b * t)  # noqa: E731
    popt, pcov = optimize.curve_fit(model, T, gt.tensor(Y), **how)
    theirs = scipy.optimize.curve_fit(model, T, Y, **how)
    np.testing.assert_allclose(popt.numpy(), theirs[0], rtol=1e-6)
    np.testing.assert_allclose(pcov.numpy(), theirs[1], rtol=1e-5)


def test_curve_fit_without_tensors_is_scipys() -> None:
    for how in ({}, {"full_output": True}, {"bounds": ([0, -9], [9, 0])}, {"sigma": 0.3}):
        ours, theirs = (
            m.curve_fit(line, list(T), list(Y), **how) for m in (optimize, scipy.optimize)
        )
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for one, other in zip(ours[:2], theirs[:2], strict=True):
            assert type(one) is type(other)
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-8)
    holes = np.where(T > 1.9, np.nan, Y)
    np.testing.assert_allclose(
        optimize.curve_fit(line, T, holes, nan_policy="omit")[0],
        scipy.optimize.curve_fit(line, T, holes, nan_policy="omit")[0],
        rtol=1e-6,
    )


def test_curve_fit_in_other_ways() -> None:
    def fitted(k: Any) -> Any:
        return optimize.curve_fit(lambda t, a, b: a + b * t + k * t * t, T, Y)[0]

    # p = X⁺(y − k·t²)
    expected = -np.linalg.pinv(columns(T)) @ T**2
    for way in (fitted, gt.jit(fitted)):
        np.testing.assert_allclose(gt.jacobian(way)(0.5), expected, **TIGHT)
    many = gt.vmap(lambda y: optimize.curve_fit(line, T, y)[0])(np.stack([Y, 2 * Y]))
    np.testing.assert_allclose(many[1], 2 * many[0], rtol=1e-6)
    _, pcov, info, *_ = optimize.curve_fit(line, T, gt.tensor(Y), full_output=True)
    assert isinstance(pcov, gt.Tensor)
    assert info["nfev"] > 0


@pytest.mark.filterwarnings("ignore:Covariance of the parameters")
def test_what_curve_fit_refuses() -> None:
    with pytest.raises(UnsupportedError, match="curve_fit: got nan_policy='omit' and data"):
        optimize.curve_fit(line, T, gt.tensor(Y), nan_policy="omit")
    with pytest.raises(UnsupportedError, match="curve_fit: got full_output=True under vmap"):
        gt.vmap(lambda y: optimize.curve_fit(line, T, y, full_output=True)[0])(np.stack([Y, Y]))
    with pytest.raises(ArgumentError, match="curve_fit: got a function without named parameters"):
        optimize.curve_fit(lambda t, *p: t * p[0], T, Y)
    fitted = gt.grad(lambda y: optimize.curve_fit(lambda t, a, b: (a + b) * t, T, y)[0][0])
    with pytest.raises(LinAlgError, match="curve_fit: got a Hessian of the cost that is singular"):
        fitted(Y)
    with pytest.raises(RuntimeError, match="Optimal parameters not found"):
        optimize.curve_fit(lambda t, a: np.exp(a * t), T, Y, p0=[9.0], maxfev=2)


def test_a_fit_of_a_function_without_forward_rules_has_a_value() -> None:
    @gt.custom_vjp
    def decay(x: Any) -> Any:
        return np.exp(-x)

    t = np.linspace(0.0, 1.0, 7)
    data = gt.tensor(np.exp(-1.5 * t))

    def residuals(p: Any, data: Any) -> Any:
        return decay(p[0] * t) - data

    slopes = lambda p, data: (-t * np.exp(-p[0] * t))[:, None]  # noqa: E731
    found = gt.scipy.optimize.least_squares(residuals, [1.0], jac=slopes, args=(data,))
    np.testing.assert_allclose(found.x.item(), 1.5, rtol=1e-6)
