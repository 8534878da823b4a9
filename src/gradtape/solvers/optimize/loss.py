"""The cost of least squares, ½·C²·Σρ((r/C)²), for SciPy's loss functions ρ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.autodiff.reverse import grad
from gradtape.errors import ArgumentError
from gradtape.ops.checks import one_of
from gradtape.ops.exponential import log1p, sqrt
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import maximum, where
from gradtape.ops.trigonometric import arctan
from gradtape.solvers.require import epsilon


def _huber(z: Any) -> Any:
    outside = z > 1
    return where(outside, 2 * sqrt(where(outside, z, 1.0)) - 1, z)


_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (sqrt(1 + z) - 1),
    "huber": _huber,
    "cauchy": log1p,
    "arctan": arctan,
}


class Loss:
    """A loss function, by its name or as a function, with the scale of residuals."""

    def __init__(self, name: str, loss: Any, scale: float) -> None:
        if not callable(loss) and loss not in _LOSSES:
            raise ArgumentError(
                f"{name}: got loss={loss!r}, expected {one_of(_LOSSES)}, or a function"
            )
        self._loss, self._scale = loss, scale

    @property
    def is_linear(self) -> bool:
        """Whether the cost is half the sum of squares."""
        return isinstance(self._loss, str) and self._loss == "linear"

    def _rho(self, z: Any) -> Any:
        # A function of the user's returns ρ and its derivatives, one after the other.
        return self._loss(z)[0] if callable(self._loss) else _LOSSES[self._loss](z)

    def cost(self, r: Any) -> Any:
        """The cost of residuals."""
        if self.is_linear:
            return 0.5 * sum_of(r * r)
        return 0.5 * self._scale**2 * sum_of(self._rho((r / self._scale) ** 2))

    def scaled(self, r: Any, jacobian: Any) -> Any:
        """The Jacobian J for which JᵀJ is the Hessian of the cost of a linear r.

        With z = (r/C)² that is ρ'(z) + 2z·ρ''(z) times the square of each row.
        """
        if self.is_linear:
            return jacobian
        z = (r / self._scale) ** 2
        slope = grad(lambda z: sum_of(self._rho(z)))
        curvature = grad(lambda z: sum_of(slope(z)))(z)
        weights = maximum(slope(z) + 2 * z * curvature, epsilon(r.dtype))
        return sqrt(weights)[:, None] * jacobian
