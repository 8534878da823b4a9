"""Derivatives of solutions: value and derivative against the value alone, and against optimistix.

By the implicit function theorem a derivative costs one linear solve and a derivative of the
equations, however many steps the solver took. It is held to cost no more than solving once more:
value and derivative in at most twice the time of the value. What is computed is compared with the
closed form, and the error is part of the table.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks import THREADS
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, NotRun, Row, compare

# One more solve of the same equations, on top of the first.
BAR = 2.0
RTOL = 1e-8
SIZES = (50, 500)


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Time roots of systems, eager and compiled, and a least-squares fit."""
    before = gt.get_num_threads()
    gt.set_num_threads(THREADS)
    try:
        for size in SIZES:
            yield from _roots(size, settings)
        yield from _least_squares(settings)
    finally:
        gt.set_num_threads(before)


def _against_the_value(
    name: str, what: str, total: Callable[[Any], Any], x: Any, slope: Any, settings: Settings
) -> list[Row]:
    """Time value and gradient of a function against its value."""
    both = gt.value_and_grad(total)
    if isinstance(total, type(gt.jit(np.sin))):
        both = gt.jit(gt.value_and_grad(total.__wrapped__))
    found = both(x)[1]
    assert_agree(name, found, slope, rtol=RTOL)
    error = np.abs(found - slope).max() / np.abs(slope).max()
    return compare(
        name,
        f"{what}; error against the closed form {error:.0e}",
        Contender("value and gradient", lambda: both(x)),
        [(Contender("value", lambda: total(x)), BAR)],
        settings,
    )


# ---- roots --------------------------------------------------------------------------------------


def _roots(size: int, settings: Settings) -> Iterator[Row | NotRun]:
    """Solve x + tanh(W·x)/2 = b by Newton's method; the sum of x by b."""
    rng = np.random.default_rng(0)
    weights, b = rng.normal(size=(size, size)) / np.sqrt(size), rng.normal(size=size)
    solve = gt.implicit.root(lambda x, w, b: x + 0.5 * np.tanh(w @ x) - b)
    start = np.zeros(size)

    def total(b: Any) -> Any:
        return np.sum(solve(start, weights, b))

    x = solve(start, weights, b)
    slopes = 0.5 * (1 - np.tanh(weights @ x) ** 2)
    exact = np.linalg.solve((np.eye(size) + slopes[:, None] * weights).T, np.ones(size))
    for way, function in (("eager", total), ("compiled", gt.jit(total))):
        name = f"root of {size} equations, {way}"
        yield from _against_the_value(name, "Newton's method", function, b, exact, settings)
    yield from _against_optimistix(size, total, weights, b, exact, settings)


def _against_optimistix(
    size: int, total: Callable[[Any], Any], weights: Any, b: Any, exact: Any, settings: Settings
) -> Iterator[Row | NotRun]:
    """Time value and gradient, compiled, against those of optimistix, which compiles by JAX."""
    name = f"root of {size} equations, gradient"
    # Read when JAX is first imported: one thread, as every side has.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    try:
        import jax
        import optimistix
    except ImportError as error:
        yield NotRun(name, "optimistix", str(error))
        return
    jax.config.update("jax_enable_x64", True)
    newton = optimistix.Newton(rtol=1e-13, atol=1e-13)

    def equations(x: Any, args: Any) -> Any:
        w, b = args
        return x + 0.5 * jax.numpy.tanh(w @ x) - b

    def theirs(b: Any, w: Any) -> Any:
        return optimistix.root_find(equations, newton, jax.numpy.zeros(size), (w, b)).value.sum()

    both, peer = gt.jit(gt.value_and_grad(total)), jax.jit(jax.value_and_grad(theirs))
    on_device = jax.numpy.asarray(b), jax.numpy.asarray(weights)
    assert_agree(name, np.asarray(peer(*on_device)[1]), exact, rtol=RTOL)
    yield from compare(
        name,
        "value and gradient by Newton's method, compiled",
        Contender(OURS, lambda: both(b)),
        [(Contender("optimistix", lambda: jax.block_until_ready(peer(*on_device))), None)],
        settings,
    )


# ---- least squares ------------------------------------------------------------------------------


def _least_squares(settings: Settings) -> Iterator[Row]:
    """a·exp(−b·t) + c fitted to 200 points by SciPy; the sum of the parameters by the data."""
    t = np.linspace(0.0, 3.0, 200)
    y = 2.0 * np.exp(-1.5 * t) + 0.5 + 0.2 * np.cos(20 * t)

    def residuals(p: Any, y: Any) -> Any:
        return p[0] * np.exp(-p[1] * t) + p[2] - y

    def total(y: Any) -> Any:
        start = np.array([1.0, 1.0, 0.0])
        tight = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
        return np.sum(
            gt.scipy.optimize.least_squares(residuals, start, args=(y,), method="lm", **tight).x
        )

    p = gt.scipy.optimize.least_squares(
        residuals, np.array([1.0, 1.0, 0.0]), args=(y,), method="lm", xtol=1e-14, ftol=1e-14
    ).x
    what = "three parameters, 200 points, by SciPy's Levenberg–Marquardt"
    exact = _slope_of_fit(p, t, residuals(p, y))
    yield from _against_the_value("least squares", what, total, y, exact, settings)


def _slope_of_fit(p: Any, t: Any, r: Any) -> Any:
    """The derivative of the sum of the parameters by the data: J·H⁻¹·1, H = JᵀJ + Σ r·∂²r."""
    decay = np.exp(-p[1] * t)
    jacobian = np.stack([decay, -p[0] * t * decay, np.ones_like(t)], axis=1)
    curvature = np.zeros((3, 3))
    curvature[0, 1] = curvature[1, 0] = -np.sum(r * t * decay)
    curvature[1, 1] = np.sum(r * p[0] * t * t * decay)
    return jacobian @ np.linalg.solve(jacobian.T @ jacobian + curvature, np.ones(3))
