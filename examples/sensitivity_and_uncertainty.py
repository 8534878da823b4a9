"""Sensitivity and uncertainty of a simulation: an epidemic.

Three inputs are known only roughly. The gradient of the peak tells which of them matters; with the
Hessian it gives mean and deviation of the result without sampling, which ten thousand runs at
once (`gt.vmap`, compiled) confirm.

    python examples/sensitivity_and_uncertainty.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt

# Contacts per day that infect, recoveries per day, infected part on the first day.
MEDIANS = {"infection": 0.4, "recovery": 0.1, "infected": 1e-3}
RELATIVE = {"infection": 0.05, "recovery": 0.08, "infected": 0.3}  # deviations of logarithms


class Result(NamedTuple):
    """What the example found."""

    peak: float  # the largest part that is ill at a time
    shares: dict[str, float]  # which part of the variance comes from which input
    mean: float  # of the peak, to second order
    deviation: float  # to first order
    sampled_mean: float  # by Monte Carlo
    sampled_deviation: float
    curve_deviation: np.ndarray  # of those who are ill, day by day


def simulate(inputs, days):
    """Those who are ill, day by day; steps of a tenth of a day, each by the midpoint rule."""
    infection, recovery = inputs["infection"], inputs["recovery"]

    def change(state):
        healthy, ill = state
        new = infection * healthy * ill
        return np.stack([-new, new - recovery * ill])

    def day(state, _):
        def step(_, state):
            return state + 0.1 * change(state + 0.05 * change(state))

        state = gt.fori_loop(0, 10, step, state)
        return state, state[1]

    first = np.stack([1.0 - inputs["infected"], inputs["infected"]])
    return gt.scan(day, first, None, length=days)[1]


def peak(inputs, days):
    """The largest part that is ill: a parabola through the largest value and its neighbours."""
    ill = simulate(inputs, days)
    top = np.clip(np.argmax(ill), 1, days - 2)
    before, middle, after = ill[top - 1], ill[top], ill[top + 1]
    return middle + (after - before) ** 2 / (8.0 * (2.0 * middle - before - after))


def scaled(function):
    """A function of z, the logarithms of the inputs in standard deviations: Var z = 1."""

    def of_z(z, *rest):
        inputs = {
            name: MEDIANS[name] * np.exp(RELATIVE[name] * z[place])
            for place, name in enumerate(MEDIANS)
        }
        return function(inputs, *rest)

    return of_z


def main(quick: bool = False) -> Result:
    """Compare derivatives with sampling; `quick` simulates fewer days and draws fewer samples."""
    days, count = (60, 2000) if quick else (200, 20_000)
    of_z = scaled(lambda inputs: peak(inputs, days))
    center = np.zeros(len(MEDIANS))

    # f(z) ≈ f + gᵀz + ½zᵀHz, so Var f ≈ gᵀg and E f ≈ f + ½ tr H.
    value, gradient = gt.jit(gt.value_and_grad(of_z))(center)
    hessian = gt.jit(gt.hessian(of_z))(center)
    mean, deviation = value + 0.5 * np.trace(hessian), np.sqrt(gradient @ gradient)
    shares = {
        name: float(slope**2 / deviation**2) for name, slope in zip(MEDIANS, gradient, strict=True)
    }
    print(f"peak: {value:.4f} of all are ill at a time")
    for name, share in shares.items():
        print(f"  {name:10} causes {share:6.1%} of its variance")

    # Every run of a batch is one element of the same compiled loop.
    z = np.random.default_rng(0).normal(size=(count, len(MEDIANS)))
    peaks = gt.jit(gt.vmap(of_z))(z)
    print(f"by derivatives      {mean:.4f} ± {deviation:.4f}")
    print(f"by {count} samples   {peaks.mean():.4f} ± {peaks.std():.4f}")

    # The whole curve, in forward mode: three inputs, and as many outputs as days.
    curve = scaled(lambda inputs: simulate(inputs, days))
    jacobian = gt.jit(gt.jacfwd(curve))(center)
    curve_deviation = np.sqrt(np.sum(jacobian**2, axis=1))
    worst = int(np.argmax(curve_deviation))
    print(f"least certain is day {worst}: ± {curve_deviation[worst]:.4f}")
    return Result(
        float(value), shares, float(mean), float(deviation),
        float(peaks.mean()), float(peaks.std()), curve_deviation,
    )  # fmt: skip


if __name__ == "__main__":
    main()
