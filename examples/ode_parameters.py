"""Parameters of differential equations from data: hares and lynxes.

Furs of the Hudson's Bay Company, 1900 to 1920, in thousands. The Lotka-Volterra equations have four
rates and two first values; the Jacobian of the solution by all six comes out of
`gt.scipy.integrate.solve_ivp`, is compiled with it, and drives SciPy's `least_squares`. The same
Jacobian tells how certain the rates are.

    python examples/ode_parameters.py
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize

import gradtape as gt

# fmt: off
HARES = np.array([
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
])
LYNXES = np.array([
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
])
# fmt: on
YEARS = np.arange(21.0)
NAMES = ("birth", "catch", "death", "growth", "hares", "lynxes")
GUESS = np.array([0.5, 0.02, 0.9, 0.02, 30.0, 4.0])


class Result(NamedTuple):
    """What the example found."""

    params: np.ndarray  # in the order of NAMES
    errors: np.ndarray  # their standard errors, relative
    start: float  # root mean square misfit of logarithms, at the guess
    misfit: float  # the same at the end
    period: float  # years between two maxima of hares
    evaluations: int


def animals(t, y, birth, catch, death, growth):
    """Hares are born and caught; lynxes grow by what they catch, and die."""
    hares, lynxes = y
    return np.stack(
        [birth * hares - catch * hares * lynxes, growth * hares * lynxes - death * lynxes]
    )


def solution(params, times):
    """Hares and lynxes at some times."""
    rates, first = params[:4], params[4:]
    span = (0.0, times[-1])
    return gt.scipy.integrate.solve_ivp(
        animals, span, first, t_eval=times, args=tuple(rates), rtol=1e-7, atol=1e-7
    ).y


def residuals(logs):
    """Logarithms of solution and data, compared; parameters are positive, so logarithms as well."""
    found = solution(np.exp(logs), YEARS)
    return np.ravel(np.log(found) - np.log(np.stack([HARES, LYNXES])))


def fit(start, *, compiled: bool):
    """Least squares with an exact Jacobian, of a compiled solver or of the eager one."""
    wrap = gt.jit if compiled else lambda function: function
    return scipy.optimize.least_squares(
        wrap(residuals), np.log(start), jac=wrap(gt.jacobian(residuals)), method="lm"
    )


def standard_errors(found):
    """Of the logarithms, so relative: the covariance is s²(JᵀJ)⁻¹."""
    count, unknown = found.jac.shape
    variance = np.sum(found.fun**2) / (count - unknown)
    return np.sqrt(variance * np.diag(np.linalg.inv(found.jac.T @ found.jac)))


def period_of(params):
    """The time between two maxima of hares, where their rate of change falls through 0."""

    def at_maximum(t, y, birth, catch, *_):
        return birth - catch * y[1]

    at_maximum.direction = -1
    run = gt.scipy.integrate.solve_ivp(
        animals, (0.0, 40.0), params[4:], args=tuple(params[:4]), events=at_maximum, rtol=1e-8
    )
    times = run.t_events[0]
    return times[1] - times[0]


def main(quick: bool = False) -> Result:
    """Fit the rates; `quick` begins nearer to them."""
    guess = np.array([0.55, 0.028, 0.84, 0.026, 34.0, 5.9]) if quick else GUESS
    start = float(np.sqrt(np.mean(residuals(np.log(guess)) ** 2)))
    found = fit(guess, compiled=True)
    params, errors = np.exp(found.x), standard_errors(found)
    misfit = float(np.sqrt(np.mean(found.fun**2)))
    print(f"misfit of logarithms: {start:.4f} at first, {misfit:.4f} after {found.nfev} tries")
    for name, value, error in zip(NAMES, params, errors, strict=True):
        print(f"{name:8}{value:9.4f} ± {100 * error:.1f} %")

    # Times of events have derivatives, too: how does the period depend on the rates?
    period, slopes = gt.value_and_grad(period_of)(params)
    elasticities = slopes * params / period
    print(f"period: {period:.2f} years")
    print("1 % more of a rate changes it by " + ", ".join(
        f"{name} {slope:+.2f} %" for name, slope in zip(NAMES[:4], elasticities, strict=False)
    ))  # fmt: skip
    return Result(params, errors, start, misfit, float(period), found.nfev)


if __name__ == "__main__":
    main()
