"""Explicit Runge–Kutta methods: a step, its error, and the solution between its ends.

The coefficients are those of the classes in `scipy.integrate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.ops.exponential import sqrt
from gradtape.ops.select import where
from gradtape.solvers.integrate.error_norm import Tolerances, still
from gradtape.solvers.integrate.steps import Ends, Limits, RightHandSide, State, Step

# A step of length h multiplies an error that changes at a rate λ by R(h·λ). Where λ has no positive
# real part, |R| is at most 1.003 for all |h·λ| up to this.
_REACH = {"RK23": 1.7, "RK45": 1.5, "DOP853": 5.5}


class ExplicitMethod:
    """A method of `scipy.integrate` by its name: "RK23", "RK45" or "DOP853".

    Attributes:
        error_order: The order of the error estimate.
        row_count: How many rows a step has.
        limits: How long steps may be for errors that the equations damp, or let oscillate.
    """

    def __init__(self, name: str) -> None:
        import scipy.integrate

        solver = getattr(scipy.integrate, name)
        self.error_order: int = solver.error_estimator_order
        self._a, self._b, self._c = solver.A, solver.B, solver.C
        miss = _miss(solver.A, solver.B, solver.order, _REACH[name])
        self.limits: Limits | None = Limits(_REACH[name], solver.order, miss)
        self._is_dop = name == "DOP853"
        if self._is_dop:
            self._e = [solver.E5, solver.E3]
            self._more = list(zip(solver.C_EXTRA, solver.A_EXTRA, strict=True))
            self._rows = solver.D
        else:
            self._e = [solver.E]
            self._more = []
            # The part of the interpolating polynomial that its ends do not determine.
            self._rows = solver.P.T[3:]
        self.row_count = len(self._rows)

    def step(self, f: RightHandSide, t: Any, h: Any, state: State, tolerances: Tolerances) -> Step:
        """Try a step.

        Args:
            f: The right-hand side.
            t: Where it begins.
            h: How long it is.
            state: The solution there, and the step before.
            tolerances: What errors are allowed.
        """
        y = state.y
        ks = [state.f]
        for c, row in zip(self._c[1:], self._a[1:], strict=True):
            ks.append(f(t + c * h, y + h * _combined(row, ks)))
        new = y + h * _combined(self._b, ks)
        ks.append(f(t + h, new))
        calls = len(ks) - 1 + len(self._more)
        error = self._error(still(h), [still(k) for k in ks], still(y), still(new), tolerances)
        slope = ks[-1]
        for c, row in self._more:
            ks.append(f(t + c * h, y + h * _combined(row, ks)))
        rows = tuple(h * _combined(row, ks) for row in self._rows)
        return Step(new, slope, rows, error, 0.9, calls)

    def _error(self, h: Any, ks: Sequence[Any], y: Any, new: Any, tolerances: Tolerances) -> Any:
        norms = [tolerances.norm(h * _combined(e, ks), y, new) for e in self._e]
        if not self._is_dop:
            return norms[0]
        # The estimate of fifth order, with the one of third order: e₅²/√(e₅² + e₃²/100)
        fifth, third = norms
        total = fifth**2 + 0.01 * third**2
        none = total == 0
        return where(none, 0.0, fifth**2 / sqrt(where(none, 1.0, total)))

    def between(self, x: Any, ends: Ends, rows: Sequence[Any]) -> Any:
        """The solution in a step, a polynomial with the right values and slopes at its ends.

        Args:
            x: Where, from 0 at the beginning to 1 at the end.
            ends: What is known at its ends.
            rows: Those of the step.
        """
        h, y_old, f_old, y, f = ends
        change = y - y_old
        factors = [change, h * f_old - change, 2 * change - h * (f + f_old), *rows]
        # y + x·(F₀ + (1−x)·(F₁ + x·(F₂ + (1−x)·(F₃ + …))))
        total = factors[-1]
        for n in reversed(range(len(factors) - 1)):
            total = factors[n] + (x if n % 2 else 1 - x) * total
        return y_old + x * total


def _miss(a: Any, b: Any, order: int, reach: float) -> float:
    """The largest |R(z) − exp(z)|/|z|^(order + 1) within reach, relative to exp(z) if it grows."""
    stages = len(b)
    z = np.linspace(0.1, reach, 40)[:, None] * np.exp(1j * np.linspace(0, np.pi, 40))
    # R(z) = 1 + z·bᵀ·(1 + z·A + z²·A² + …)·1
    power, total = np.ones(stages), np.ones_like(z)
    for n in range(1, stages + 1):
        total = total + z**n * (b @ power)
        power = a[:, : stages - 1] @ power[: stages - 1]
    wrong = np.abs(total - np.exp(z)) / np.maximum(np.abs(np.exp(z)), 1.0)
    return float(np.max(wrong / np.abs(z) ** (order + 1)))


def _combined(coefficients: Sequence[float], ks: Sequence[Any]) -> Any:
    """The sum of vectors with coefficients, of which many are 0."""
    terms = [float(c) * k for c, k in zip(coefficients, ks, strict=False) if c]
    if not terms:
        return np.zeros(())
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
