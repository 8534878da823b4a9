"""Steps of explicit methods are stable also for what is at rest: its derivatives are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import gradtape as gt
from gradtape.errors import ConvergenceError

solve_ivp = gt.scipy.integrate.solve_ivp
EXPLICIT = ("RK23", "RK45", "DOP853")
TOLERANCES: dict[str, dict[str, float]] = {
    "default": {},
    "small": {"rtol": 1e-8, "atol": 1e-10},
}


def at_rest(target: Any, fast: float = -100.0, **options: Any) -> Any:
    """A slow component, and a fast one that is where it wants to be; d/d target is 1."""

    def f(t: Any, y: Any) -> Any:
        return np.stack([-y[0], fast * (y[1] - target)])

    return solve_ivp(f, (0.0, 10.0), [1.0, 1.0], t_eval=[10.0], **options).y[1, 0]


@pytest.mark.parametrize("tolerances", ["default", pytest.param("small", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", EXPLICIT)
def test_components_at_rest(method: str, tolerances: str) -> None:
    def rest(target: Any) -> Any:
        return at_rest(target, method=method, **TOLERANCES[tolerances])

    for slope in (gt.jit(gt.grad(rest)), gt.jit(gt.jacfwd(rest))):
        np.testing.assert_allclose(slope(1.0), 1.0, rtol=1e-10)
    if method == "DOP853":
        np.testing.assert_allclose(gt.grad(rest)(1.0), 1.0, rtol=1e-10)


# ---- accuracy at rest: y stays as it is, whatever the steps, its derivatives do not -------------


def pushed(u: Any, **options: Any) -> Any:
    """y″ = −y + u from rest; d/du is 1 − cos t."""

    def f(t: Any, y: Any) -> Any:
        return np.stack([y[1], u - y[0]])

    return solve_ivp(f, (0.0, 10.0), [0.0, 0.0], t_eval=[10.0], **options).y[0, 0]


def shaken(u: Any, **options: Any) -> Any:
    """y″ = −y + u·sin(2t) from rest; d/du is (2·sin t − sin 2t)/3."""

    def f(t: Any, y: Any) -> Any:
        return np.stack([y[1], u * np.sin(2 * t) - y[0]])

    return solve_ivp(f, (0.0, 10.0), [0.0, 0.0], t_eval=[10.0], **options).y[0, 0]


def changing(rate: float) -> Any:
    def end(u: Any, **options: Any) -> Any:
        f = lambda t, y: rate * y  # noqa: E731
        return solve_ivp(f, (0.0, 10.0), np.stack([u]), t_eval=[10.0], **options).y[0, 0]

    return end


def turning_beside_a_decay(u: Any, **options: Any) -> Any:
    """What turns at 10 per unit of time begins at rest, and something else decays slowly."""

    def f(t: Any, y: Any) -> Any:
        return np.stack([-0.1 * y[0], 10 * y[2], -10 * y[1]])

    return solve_ivp(f, (0.0, 10.0), np.stack([1.0, u, 0.0]), t_eval=[10.0], **options).y[1, 0]


AT_REST = {
    "pushed": (pushed, 1 - np.cos(10.0)),
    "shaken": (shaken, (2 * np.sin(10.0) - np.sin(20.0)) / 3),
    "decay": (changing(-0.5), np.exp(-5.0)),
    "growth": (changing(1.0), np.exp(10.0)),
    "turning beside a decay": (turning_beside_a_decay, np.cos(100.0)),
}


# DOP853 differs from the other explicit methods in nothing that matters here, but its length.
@pytest.mark.parametrize("name", AT_REST)
@pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=pytest.mark.slow) if m == "DOP853" else m for m in [*EXPLICIT, "Radau"]],
)
def test_derivatives_at_rest_are_held_to_the_tolerances(method: str, name: str) -> None:
    function, exact = AT_REST[name]
    rtol = 1e-5 if method == "RK23" else 1e-8
    slope = gt.jit(gt.grad(lambda u: function(u, method=method, rtol=rtol, atol=rtol)))
    np.testing.assert_allclose(slope(0.0), exact, rtol=3e3 * rtol, atol=3e2 * rtol)


def test_a_step_and_forward_mode_at_rest() -> None:
    def slope(u: Any) -> Any:
        return pushed(u, method="DOP853", rtol=1e-8, atol=1e-8)

    np.testing.assert_allclose(gt.grad(slope)(0.0), 1 - np.cos(10.0), rtol=1e-5)
    np.testing.assert_allclose(gt.jvp(slope, (0.0,), (1.0,))[1], 1 - np.cos(10.0), rtol=1e-5)


def test_an_exchange_that_begins_in_balance() -> None:
    def share(k: Any) -> Any:
        def f(t: Any, y: Any) -> Any:
            return np.stack([-50 * y[0] + k * y[1], 50 * y[0] - k * y[1]])

        return solve_ivp(f, (0.0, 5.0), [0.5, 0.5], t_eval=[5.0]).y[0, 0]

    # k/(50 + k) in balance
    np.testing.assert_allclose(gt.grad(share)(50.0), 50 / 100**2, rtol=1e-10)


@pytest.mark.parametrize("dose", [0.0, 1.0])
def test_a_dose_of_nothing(dose: float) -> None:
    def concentration(dose: Any) -> Any:
        def f(t: Any, y: Any) -> Any:
            return np.stack([-20 * y[0], 20 * y[0] - 0.1 * y[1]])

        start = np.stack([dose, 0 * dose])
        return solve_ivp(f, (0.0, 24.0), start, t_eval=[24.0], rtol=1e-6).y[1, 0]

    exact = 20 / 19.9 * (np.exp(-2.4) - np.exp(-480.0))
    np.testing.assert_allclose(gt.grad(concentration)(dose), exact, rtol=1e-4)


@pytest.mark.parametrize("method", EXPLICIT)
def test_diffusion_on_a_grid(method: str) -> None:
    size = 40
    second = (np.eye(size, k=1) - 2 * np.eye(size) + np.eye(size, k=-1)) * (size + 1) ** 2
    start = np.sin(np.pi * np.arange(1, size + 1) / (size + 1))

    def energy(u: Any) -> Any:
        found = solve_ivp(lambda t, y: 0.1 * second @ y, (0.0, 1.0), u, method, t_eval=[1.0])
        return np.sum(found.y**2)

    flow = scipy.linalg.expm(0.1 * second)
    expected = 2 * flow.T @ flow @ start
    found = gt.jit(gt.grad(energy))(start)
    np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())


@pytest.mark.parametrize("method", EXPLICIT)
def test_fast_oscillations_at_rest(method: str) -> None:
    def swing(target: Any) -> Any:
        def f(t: Any, y: Any) -> Any:
            return np.stack([-y[0], 30 * y[2], -30 * (y[1] - target)])

        options = {"t_eval": [5.0], "rtol": 1e-5, "method": method}
        return solve_ivp(f, (0.0, 5.0), [1.0, 1.0, 0.0], **options).y[1, 0]

    # The tangent swings around 1, by 1, and must not grow.
    assert abs(gt.jit(gt.grad(swing))(1.0) - 1) < 1.5


@pytest.mark.parametrize("wrap", [lambda f: f, gt.jit], ids=["eager", "compiled"])
def test_equations_that_are_too_stiff_raise(wrap: Any) -> None:
    with pytest.raises(ConvergenceError, match="may be stiff: use method='Radau'"):
        wrap(gt.grad(lambda target: at_rest(target, -1e7)))(1.0)
    stiff = wrap(gt.grad(lambda target: at_rest(target, -1e7, method="Radau")))
    np.testing.assert_allclose(stiff(1.0), 1.0, rtol=1e-8)


def test_a_jump_shortens_a_few_steps_only() -> None:
    def f(t: Any, y: Any) -> Any:
        return np.where(y > 0.5, -y, -2 * y)

    theirs = scipy.integrate.solve_ivp(f, (0.0, 2.0), [1.0], rtol=1e-9, atol=1e-9)
    ours = solve_ivp(f, (0.0, 2.0), gt.tensor([1.0]), rtol=1e-9, atol=1e-9)
    assert ours.t.shape[0] <= theirs.t.size + 20
    np.testing.assert_allclose(ours.y[0, -1], theirs.y[0, -1], rtol=1e-7)


@pytest.mark.filterwarnings("error")
def test_trying_errors_warns_of_nothing() -> None:
    def f(t: Any, y: Any) -> Any:
        return -np.sqrt(y) * np.log(y + 1e-300)

    assert np.isfinite(float(solve_ivp(f, (0.0, 0.1), gt.tensor([1e-12, 1.0])).y[1, -1]))
