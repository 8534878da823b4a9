"""Gaussian-process regression: hyper-parameters by maximum likelihood.

The log-likelihood of the data goes through `gt.linalg.cholesky`. Its gradient with respect to the
hyper-parameters is compiled together with it, and SciPy's BFGS finds the best ones. Another
derivative comes for nothing: the slope of the prediction.

    python examples/gaussian_process.py
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize

import gradtape as gt

NOISE = 0.1


class Result(NamedTuple):
    """What the example found."""

    start: float  # negative log-likelihood of the first guess
    best: float  # of the hyper-parameters that were found
    noise: float  # the deviation of the noise
    error: float  # root mean square error of predictions
    slope_error: float  # of their slopes
    coverage: float  # part of true values within two deviations


def truth(x):
    """What the process has to find."""
    return np.sin(2.0 * x) + 0.5 * x


def kernel(log_params, x, z):
    """Covariance of two sets of points: squared exponential with a variance and a length."""
    variance, length = np.exp(log_params["variance"]), np.exp(log_params["length"])
    distance = (x[:, None] - z[None, :]) / length
    return variance * np.exp(-0.5 * distance**2)


def factor(log_params, x):
    """The Cholesky factor L of the covariance of measurements, K + σ²·1 = LLᵀ."""
    noise = np.exp(2.0 * log_params["noise"])
    return gt.linalg.cholesky(kernel(log_params, x, x) + noise * np.eye(len(x)))


def negative_log_likelihood(log_params, x, y):
    """½ yᵀ(K + σ²·1)⁻¹y + ½ log det(K + σ²·1) + ½ n log 2π."""
    lower = factor(log_params, x)
    white = gt.linalg.solve_triangular(lower, y, lower=True)
    log_det = 2.0 * np.sum(np.log(np.diagonal(lower)))
    return 0.5 * (np.sum(white**2) + log_det + len(y) * np.log(2.0 * np.pi))


def predict(log_params, x, y, at):
    """Mean and deviation of the function at some points, given the measurements."""
    lower = factor(log_params, x)
    across = gt.linalg.solve_triangular(lower, kernel(log_params, x, at), lower=True)
    mean = across.T @ gt.linalg.solve_triangular(lower, y, lower=True)
    variance = np.exp(log_params["variance"]) - np.sum(across**2, axis=0)
    return mean, np.sqrt(variance)


def fit(start, x, y):
    """Maximize the likelihood; the optimizer sees a vector, the model a dict."""
    names = list(start)
    value_and_gradient = gt.jit(gt.value_and_grad(negative_log_likelihood))

    def objective(vector):
        value, gradient = value_and_gradient(dict(zip(names, vector, strict=True)), x, y)
        return value, np.array([gradient[name] for name in names])

    first = np.array([start[name] for name in names])
    found = scipy.optimize.minimize(objective, first, jac=True, method="BFGS")
    print(f"BFGS: {found.nit} steps, {found.nfev} evaluations, from {objective(first)[0]:.3f}")
    return dict(zip(names, found.x, strict=True)), objective(first)[0], found.fun


def main(quick: bool = False) -> Result:
    """Fit the hyper-parameters and predict; `quick` has fewer measurements."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3.0, 3.0, 40 if quick else 300))
    y = truth(x) + NOISE * rng.normal(size=len(x))

    log_params, start, best = fit({"variance": 0.0, "length": 1.0, "noise": 0.0}, x, y)
    found = {name: float(np.exp(value)) for name, value in log_params.items()}
    print(f"negative log-likelihood {best:.3f} with " + ", ".join(
        f"{name} {value:.3f}" for name, value in found.items()
    ))  # fmt: skip

    at = np.linspace(-2.8, 2.8, 50)
    mean, deviation = predict(log_params, x, y, at)
    # Each mean depends on its own point alone: one product gives all slopes.
    slope = gt.jvp(lambda at: predict(log_params, x, y, at)[0], (at,), (np.ones(len(at)),))[1]
    error = float(np.sqrt(np.mean((mean - truth(at)) ** 2)))
    slope_error = float(np.sqrt(np.mean((slope - gt.vmap(gt.grad(truth))(at)) ** 2)))
    coverage = float(np.mean(np.abs(mean - truth(at)) < 2.0 * deviation))
    print(f"error of predictions {error:.3f}, of slopes {slope_error:.3f}")
    print(f"within two deviations: {coverage:.0%}")
    return Result(float(start), float(best), found["noise"], error, slope_error, coverage)


if __name__ == "__main__":
    main()
