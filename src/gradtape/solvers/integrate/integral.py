"""Integrals of functions with operands, as an op whose rules are further integrals.

I = ∫ f(x, θ) dx from a to b: dI = f(b)·db − f(a)·da + ∫ ∂f/∂θ·dθ dx, and the cotangent of θ is
∫ (∂f/∂θ)ᵀ·ct dx. Values of f are vectors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import is_differentiable
from gradtape.core.lowering import Whole
from gradtape.core.tensor import Tensor
from gradtape.errors import ConvergenceError
from gradtape.ops.reduce import sum as sum_of
from gradtape.solvers.integrate.error_norm import magnitude
from gradtape.solvers.integrate.gauss_kronrod import Accuracy, gauss_kronrod
from gradtape.solvers.require import Failure, require
from gradtape.solvers.solver_run import pull_to, push_from, solved
from gradtape.solvers.vectors import Vectors

# f as a function of x and θ.
OfOperands = Callable[[Any, Sequence[Any]], Any]
# For both ends: −∞ or ∞, or None for an end that is an operand.
Infinite = tuple[float | None, float | None]

# SciPy's default for functions with values in vectors.
_MOST_INTERVALS = 10_000
_ADVICE = "raise limit or epsabs, or give points= where the function jumps or has a peak"
_TOO_LARGE = Failure(
    ConvergenceError,
    "quad: got an error estimate of {} times what epsabs and epsrel allow, expected at most that; "
    + _ADVICE,
    "quad: got a function that is NaN or infinite in the interval, expected finite values",
)


class Integral:
    """The integral of f between two numbers, which may be infinite.

    Args:
        f: The function; returns a vector.
        size: The length of that vector.
        infinite: Which ends are infinite.
        accuracy: What error is allowed.
    """

    def __init__(self, f: OfOperands, size: int, infinite: Infinite, accuracy: Accuracy) -> None:
        self._f, self._size, self._infinite, self._accuracy = f, size, infinite, accuracy

    def __call__(self, a: Any, b: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
        """The integral, and its estimated error.

        Args:
            a: Where to begin; any number, if that is infinite.
            b: Where to end, likewise.
            operands: θ.
        """
        floating = np.dtype(np.float64)
        avals = [Aval((self._size,), floating), Aval((), floating)]
        value, error = solved("quad", self._run, self, [a, b, *operands], avals)
        return value, error

    def _run(self, a: Any, b: Any, *operands: Any) -> tuple[Any, Any]:
        def f(x: Any) -> Any:
            return self._f(x, operands)

        if not any(isinstance(x, Tensor) for x in (a, b, *operands)):
            low, high = self._infinite
            ends = float(a) if low is None else low, float(b) if high is None else high
            return _by_scipy(f, self._size, ends, self._accuracy)
        value, error, allowed = gauss_kronrod(*_on_finite(f, a, b, self._infinite), self._accuracy)
        return tuple(require([value, error], error / allowed, 1.0, _TOO_LARGE))

    @property
    def reads(self) -> Whole:
        return Whole("an integral is taken to depend on its limits and all operands", results=1)

    # ---- rules -----------------------------------------------------------------------------

    def pull(self, wanted: Any, cts: Any, outs: Any, inputs: Any) -> list[Any]:
        ct, (a, b, *operands) = cts[0], inputs
        if ct is None:
            return [None] * len(inputs)
        found = [
            sign * sum_of(ct * self._f(end, operands)) if is_wanted and infinite is None else None
            for sign, end, is_wanted, infinite in zip(
                (-1, 1), (a, b), wanted, self._infinite, strict=False
            )
        ]
        chosen = [n for n, x in enumerate(operands) if wanted[2 + n] and is_differentiable(x)]
        if not chosen:
            return [*found, *[None] * len(operands)]
        vectors = Vectors([aval_of(operands[n]) for n in chosen])

        def pulled(x: Any, given: Sequence[Any]) -> Any:
            ct, *operands = given
            cts = pull_to(lambda *operands: self._f(x, operands), operands, wanted[2:], ct)
            return vectors.flat([cts[n] for n in chosen])

        scale = magnitude([ct])
        total = scale * self._of(pulled, vectors.size)(a, b, [ct / scale, *operands])[0]
        parts = dict(zip(chosen, vectors.leaves(total), strict=True))
        return [*found, *map(parts.get, range(len(operands)))]

    def push(self, tangents: Any, outs: Any, inputs: Any) -> Any:
        a, b, *operands = inputs
        of_ends, moved = tangents[:2], tangents[2:]
        total: Any = np.zeros(self._size)
        for sign, end, tangent, infinite in zip(
            (-1, 1), (a, b), of_ends, self._infinite, strict=True
        ):
            if tangent is not None and infinite is None:
                total = total + sign * self._f(end, operands) * tangent
        moving = [n for n, tangent in enumerate(moved) if tangent is not None]
        if not moving:
            return total, None
        count = len(operands)

        def pushed(x: Any, given: Sequence[Any]) -> Any:
            changes = dict(zip(moving, given[count:], strict=True))
            along = [changes.get(n) for n in range(count)]
            return push_from(lambda *operands: self._f(x, operands), given[:count], along)

        scale = magnitude([moved[n] for n in moving])
        given = [*operands, *(moved[n] / scale for n in moving)]
        return total + scale * self._of(pushed, self._size)(a, b, given)[0], None

    def _of(self, f: OfOperands, size: int) -> Integral:
        return Integral(f, size, self._infinite, self._accuracy)


def _on_finite(
    f: Callable[[Any], Any], a: Any, b: Any, infinite: Infinite
) -> tuple[Callable[[Any], Any], Any, Any]:
    """The same integral over a finite interval."""
    low, high = infinite
    if low is None and high is None:
        return f, a, b
    # x = c ± (1 − t)/t, dx = ∓dt/t²
    if low is not None and high is not None:
        sign = (high > low) * 1.0 - (high < low) * 1.0

        def both(t: Any) -> Any:
            x = (1 - t) / t
            return sign * (f(x) + f(-x)) / (t * t)

        return both, np.float64(0.0), np.float64(1.0)
    at, side, direction = (a, 1.0, 1.0) if low is None else (b, 1.0, -1.0)
    if -np.inf in infinite:
        side = -1.0

    def one(t: Any) -> Any:
        return direction * side * f(at + side * (1 - t) / t) / (t * t)

    return one, np.float64(0.0), np.float64(1.0)


def _by_scipy(
    f: Callable[[Any], Any], size: int, ends: tuple[float, float], accuracy: Accuracy
) -> tuple[Any, Any]:
    """The integral by QUADPACK; of several functions, by `quad_vec`."""
    import scipy.integrate

    options: dict[str, Any] = {"epsabs": accuracy.epsabs, "epsrel": accuracy.epsrel}
    options |= {"points": accuracy.points or None, "full_output": True, "limit": accuracy.limit}
    if size == 1:
        value, error, _, *said = scipy.integrate.quad(lambda x: f(x)[0], *ends, **options)
        value, said = np.array([value]), said[0] if said else ""
    else:
        # Derivatives by many numbers may be rough in different places.
        options["limit"] = max(accuracy.limit, _MOST_INTERVALS)
        value, error, info = scipy.integrate.quad_vec(f, *ends, norm="max", **options)
        said = "" if info.success else info.message
    if not np.isfinite(value).all():
        raise ConvergenceError(_TOO_LARGE.not_finite)
    if not said:
        return value, np.float64(error)
    said = " ".join(said.split()).rstrip(".")
    if "round" in said.lower():
        warnings.warn(said, scipy.integrate.IntegrationWarning, stacklevel=2)
        return value, np.float64(error)
    raise ConvergenceError(f"quad: got an error estimate of {error:.3g} ({said}); {_ADVICE}")
