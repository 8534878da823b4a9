"""Operations with derivatives of your own, and how to check them.

Three cases: a rule that is more exact than the one that would be derived (`gt.custom_jvp`), a
gradient that is changed on purpose (`gt.custom_vjp`), and a solver that only takes plain numbers
(`gt.host_call`). Each of them composes with the other transforms.

    python examples/custom_op.py
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    slope: float  # of log cosh far out
    curvature: float  # the second derivative of log cosh at 0
    steps: np.ndarray  # what was learned through the quantizer
    volume: float  # of a van der Waals gas
    errors: list[float]  # of derivatives against differences


# ---- a rule in forward mode; reverse mode follows from it ---------------------------------------


@gt.custom_jvp
def log_cosh(x):
    """Compute log cosh x without the overflow of cosh."""
    return np.abs(x) + np.log1p(np.exp(-2.0 * np.abs(x))) - np.log(2.0)


@log_cosh.defjvp
def log_cosh_rule(tangents, out, x):
    """The slope is tanh x. Derived from |x| above, the second derivative at 0 would be 0."""
    return np.tanh(x) * tangents[0]


# ---- a rule in reverse mode ---------------------------------------------------------------------


@gt.custom_vjp
def quantize(x, step):
    """Round to multiples of a step; its true derivative is 0 almost everywhere."""
    return step * np.round(x / step)


@quantize.defvjp
def straight_through(ct, out, x, step):
    """Pass the cotangent on as if nothing had been rounded; the step is not learned."""
    return ct, None


def learned_through_quantizer(target: np.ndarray, steps: int) -> np.ndarray:
    """Find weights whose quantized values fit; without the rule nothing would move."""
    weights = np.zeros_like(target)
    slope = gt.grad(lambda w: np.sum((quantize(w, 0.25) - target) ** 2))
    for _ in range(steps):
        weights = weights - 0.1 * slope(weights)
    return quantize(weights, 0.25)


# ---- a function of plain numbers ----------------------------------------------------------------


def gas_law(volume, pressure, temperature, attraction, size):
    """0 where a mole of a van der Waals gas has this volume, in units with R = 1."""
    return (pressure + attraction / volume**2) * (volume - size) - temperature


def gas_volume(pressure, temperature, attraction=1.0, size=0.1):
    """The volume, found by SciPy's `brentq`, which calls a C library with plain floats.

    F(V, θ) = 0 makes V a function of θ with dV = −(∂F/∂θ) / (∂F/∂V) · dθ.
    """

    def solve(*given):
        return brentq(gas_law, size * (1.0 + 1e-9), 1e3, args=given, xtol=1e-14)

    def rule(ct, volume, *given):
        by_volume, *by_given = gt.grad(gas_law, argnums=(0, 1, 2, 3, 4))(volume, *given)
        return tuple(-ct * slope / by_volume for slope in by_given)

    return gt.host_call(solve, 0.0, pressure, temperature, attraction, size, vjp=rule)


def checked(function, x) -> float:
    """The largest error of a gradient, compared with central differences."""
    report = gt.NumericalChecker().check_gradient_central(function, x)
    assert report.is_valid, str(report)
    return float(report.max_error)


def main(quick: bool = False) -> Result:
    """Use the three operations, and check their derivatives."""
    x = np.array([-800.0, 0.0, 0.3, 800.0])  # cosh(800) is infinite in float64
    slope = gt.grad(lambda s: np.sum(log_cosh(s * x)))(1.0)
    curvature = gt.grad(gt.grad(log_cosh))(0.0)
    print(f"log cosh: slope {slope:.6f}, second derivative at 0 {curvature:.6f}")

    steps = learned_through_quantizer(np.array([0.5, -0.25, 1.0]), 20 if quick else 100)
    print(f"quantized weights: {steps}")

    volume = gas_volume(1.0, 3.0)
    compressibility = -gt.grad(gas_volume)(1.0, 3.0) / volume
    print(f"gas: volume {volume:.6f}, compressibility {compressibility:.6f}")
    isotherm = gt.vmap(gas_volume, in_axes=(0, None))(np.array([0.5, 1.0, 2.0]), 3.0)
    print(f"volumes at three pressures: {isotherm.round(4)}")

    errors = [
        checked(lambda x: np.sum(log_cosh(x)), np.array([-0.5, 0.2, 3.0])),
        checked(lambda p: gas_volume(p[0], p[1]), np.array([1.0, 3.0])),
    ]
    print(f"largest errors against differences: {errors[0]:.1e}, {errors[1]:.1e}")
    return Result(float(slope), float(curvature), steps, float(volume), errors)


if __name__ == "__main__":
    main()
