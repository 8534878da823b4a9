"""The implicit Runge–Kutta method Radau IIA of fifth order, for stiff equations.

The solution at three points of a step, y + Z₁, y + Z₂, y + Z₃, solves Z = h·A·f(t + c·h, y + Z).
Newton's method finds it with one Jacobian for the step; derivatives follow from the equation, by
the implicit function theorem. See Hairer and Wanner, Solving ODEs II, IV.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.transforms import jvp
from gradtape.core.aval import Aval
from gradtape.graph.loops import while_loop
from gradtape.ops.creation import eye
from gradtape.ops.join import concatenate, stack
from gradtape.ops.linalg.solve import factored
from gradtape.ops.matmul import matmul
from gradtape.ops.select import maximum, where
from gradtape.solvers.implicit import ImplicitFunction
from gradtape.solvers.integrate.error_norm import Tolerances, rms, still, unit
from gradtape.solvers.integrate.steps import Ends, Limits, RightHandSide, State, Step
from gradtape.solvers.linear import columns, linear_solver

_ROOT = np.sqrt(6.0)
_C = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_A = np.array(
    [
        [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
        [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
        [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
    ]
)
# The error is (γ/h − J)⁻¹·(f + E·Z/h).
_E = np.array([-13 - 7 * _ROOT, -13 + 7 * _ROOT, -1]) / 3
# Z at c is a polynomial without constant term; its coefficients are _POWERS·Z.
_POWERS = np.linalg.inv(_C[:, None] ** np.arange(1, 4))
_MOST_ITERATIONS = 6
# Equations of a tangent are linear, but only the Jacobian at the start of the step is factored.
_TANGENT_ITERATIONS = 3
# Errors are estimated by third order, and the method is of fifth: a tangent may be wrong by more.
_TANGENT_ERROR = 10.0


def _blocks() -> tuple[Any, Any, Any]:
    """T, its inverse, and T⁻¹·A⁻¹·T = [[γ, 0, 0], [0, α, β], [0, −β, α]]."""
    inverse = np.linalg.inv(_A)
    values, vectors = np.linalg.eig(inverse)
    real, pair = np.argmin(np.abs(values.imag)), np.argmax(values.imag)
    t = np.stack([vectors[:, real].real, vectors[:, pair].real, vectors[:, pair].imag], 1)
    return t, np.linalg.inv(t), np.linalg.inv(t) @ inverse @ t


_T, _T_INVERSE, _BLOCKS = _blocks()
_GAMMA = float(_BLOCKS[0, 0])
_ALPHA, _BETA = float(_BLOCKS[1, 1]), float(_BLOCKS[1, 2])


class Radau:
    """The method of `scipy.integrate.Radau`.

    Args:
        of_operands: The right-hand side as `of_operands(t, y, operands)`.
        operands: What it depends on besides t and y.
        jacobian: ∂f/∂y as `jacobian(t, y, operands)`; None to compute it by forward mode.
    """

    error_order = 3
    row_count = 3
    limits: Limits | None = None

    def __init__(
        self,
        of_operands: Callable[[Any, Any, Sequence[Any]], Any],
        operands: Sequence[Any],
        jacobian: Callable[[Any, Any, Sequence[Any]], Any] | None = None,
    ) -> None:
        self._f, self._operands, self._jacobian = of_operands, list(operands), jacobian
        self._linear = linear_solver("solve_ivp", "a matrix I − h·A·∂f/∂y of Radau", "auto")

    def step(self, f: RightHandSide, t: Any, h: Any, state: State, tolerances: Tolerances) -> Step:
        y = state.y
        shape, floating = tuple(y.shape), np.dtype(np.float64)
        constants = [Aval((), np.dtype(np.int64)), Aval((), floating), Aval(shape, floating)]
        function = ImplicitFunction(
            "solve_ivp", self._residual, [Aval((3, *shape), floating)], constants, self._linear
        )

        def solver(*inputs: Any) -> tuple[Any, ...]:
            return self._solution(tolerances, *inputs)

        guesses = [
            self._extrapolated(still(h), state), still(state.f), state.rejected, state.tangent
        ]  # fmt: skip
        inputs = [*guesses, t, h, y, *self._operands]
        z, iterations, error, tangent = function(solver, inputs, guesses=len(guesses))
        new = y + z[2]
        safety = 0.9 * (2 * _MOST_ITERATIONS + 1) / (2 * _MOST_ITERATIONS + iterations)
        rows = tuple(z[n] for n in range(3))
        # Three calls of each iteration, one for the error, and one at the end.
        return Step(new, f(t + h, new), rows, error, safety, 3 * iterations + 2, still(tangent))

    def between(self, x: Any, ends: Ends, rows: Sequence[Any]) -> Any:
        return ends.y_old + _polynomial(x, rows)

    def _extrapolated(self, h: Any, state: State) -> Any:
        """A first guess of Z: the polynomial of the step before, continued; zero at first."""
        before = state.t - state.t_old
        none = before == 0
        ratio = h / where(none, 1.0, before)
        rows = [still(row) for row in state.rows]
        last = still(state.y_old) - still(state.y)
        ahead = [last + _polynomial(1 + c * ratio, rows) for c in _C]
        return where(none, 0.0, stack(ahead))

    # ---- the equations of a step -----------------------------------------------------------

    def _stages(self, t: Any, h: Any, y: Any, z: Any, operands: Sequence[Any]) -> Any:
        return stack([self._f(t + c * h, y + z[n], operands) for n, c in enumerate(_C)])

    # Z − h·A·f(t + c·h, y + Z)
    def _residual(self, x: Sequence[Any], _constants: Any, inputs: Sequence[Any]) -> Any:
        t, h, y = inputs[4:7]
        (z,) = x
        return z - h * matmul(_A, self._stages(t, h, y, z, inputs[7:]))

    def _solution(
        self, tolerances: Tolerances, z: Any, slope: Any, rejected: Any, tangent: Any, t: Any,
        h: Any, y: Any, *operands: Any,
    ) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        """Z, the number of iterations, the error relative to what is allowed, and the tangent."""

        def f(t: Any, y: Any) -> Any:
            return self._f(t, y, operands)

        if self._jacobian is not None:
            jacobian = self._jacobian(t, y, operands)
        else:
            jacobian = columns(lambda d: jvp(lambda y: f(t, y), (y,), (d,))[1], y)
        matrices = _Matrices(h, jacobian, y.shape[0])
        scale = tolerances.scale(y)
        tol = max(10 * np.finfo(float).eps / tolerances.rtol, min(0.03, tolerances.rtol**0.5))

        def going(state: _Newton) -> Any:
            return ~state.done & (state.count < _MOST_ITERATIONS)

        def iterate(state: _Newton) -> _Newton:
            w = state.w
            stages = self._stages(t, h, y, matmul(_T, w), operands)
            change = matrices.solution(matmul(_T_INVERSE, stages) - matmul(_BLOCKS, w) / h)
            size = rms(change / scale)
            # The change of linear convergence goes on as a geometric series.
            rate = size / where(state.count == 0, 1.0, state.size)
            first, slow = state.count == 0, ~(rate < 1)
            rest = where(slow, 0.0, rate / (1 - where(slow, 0.0, rate))) * size
            left = _MOST_ITERATIONS - 1 - state.count
            hopeless = ~first & (slow | (rest * rate**left > tol))
            good = (size == 0) | (~first & ~slow & (rest < tol))
            return _Newton(w + change, size, good | hopeless, good, state.count + 1)

        start = _Newton(
            matmul(_T_INVERSE, z), np.float64(0.0), np.bool_(False), np.bool_(False), np.int64(0)
        )
        end = while_loop(going, iterate, start)
        z = matmul(_T, end.w)
        new = y + z[2]
        part = matmul(_E, z) / h
        error = matrices.first(slope + part)
        size = tolerances.norm(error, y, new)
        # A large error is estimated again with its stiff part removed.
        again = tolerances.norm(matrices.first(f(t, y + error) + part), y, new)
        size = where(rejected & (size > 1), again, size)
        pushed, missed = self._pushed(matrices, t, h, y, z, tangent, operands)
        # What is at rest makes no error, but its derivatives do.
        allowed = _TANGENT_ERROR * tolerances.rtol * rms(tangent / scale)
        size = maximum(size, rms(missed / scale) / where(allowed == 0, 1.0, allowed))
        return z, end.count, where(end.good, size, np.inf), unit(pushed, tangent)

    def _pushed(
        self, matrices: _Matrices, t: Any, h: Any, y: Any, z: Any, tangent: Any,
        operands: Sequence[Any],
    ) -> tuple[Any, Any]:  # fmt: skip
        """A tangent at the end of a step, and its estimated error: a step of v′ = ∂f/∂y·v."""

        def change(t: Any, y: Any, v: Any) -> Any:
            return jvp(lambda y: self._f(t, y, operands), (y,), (v,))[1]

        w = zeros_like(z)
        for _ in range(_TANGENT_ITERATIONS):
            at = zip(_C, z, matmul(_T, w), strict=True)
            stages = stack([change(t + c * h, y + own, tangent + moved) for c, own, moved in at])
            w = w + matrices.solution(matmul(_T_INVERSE, stages) - matmul(_BLOCKS, w) / h)
        moved = matmul(_T, w)
        missed = matrices.first(change(t, y, tangent) + matmul(_E, moved) / h)
        return tangent + moved[2], missed


class _Newton(NamedTuple):
    """Where Newton's method is.

    Attributes:
        w: T⁻¹·Z.
        size: The size of the last change.
        done: Whether it has ended.
        good: Whether it has converged.
        count: The number of iterations.
    """

    w: Any
    size: Any
    done: Any
    good: Any
    count: Any


class _Matrices:
    """The matrix Λ/h ⊗ I − I ⊗ J of Newton's method in its two blocks, factored."""

    def __init__(self, h: Any, jacobian: Any, size: int) -> None:
        unit = eye(size)
        self._one = factored(_GAMMA / h * unit - jacobian)
        own, other = _ALPHA / h * unit - jacobian, _BETA / h * unit
        self._two = factored(
            concatenate([concatenate([own, other], 1), concatenate([-other, own], 1)], 0)
        )
        self._size = size

    def first(self, b: Any) -> Any:
        """The solution with the first block, γ/h − J."""
        return self._one(b)

    def solution(self, b: Any) -> Any:
        """The solution with all of the matrix, for right-hand sides (3, n)."""
        pair = self._two(concatenate([b[1], b[2]]))
        return stack([self.first(b[0]), pair[: self._size], pair[self._size :]])


def _polynomial(x: Any, rows: Sequence[Any]) -> Any:
    """The change since the beginning of a step, for x from 0 to 1."""
    first, second, third = (
        sum(float(p) * row for p, row in zip(ps, rows, strict=True)) for ps in _POWERS
    )
    return x * (first + x * (second + x * third))
