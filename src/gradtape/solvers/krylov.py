"""Linear equations by products with the matrix alone: conjugate gradients, BiCGSTAB, GMRES.

They are written as loops that can be traced, so that compiled functions contain them, and batched.
All take `matvec(v)` and a vector b whose elements are about 1, begin at 0, and return the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.errors import ConvergenceError
from gradtape.graph.loops import while_loop
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.comparison import equal, greater, isfinite
from gradtape.ops.cumulative import cumsum
from gradtape.ops.exponential import sqrt
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.qr import qr
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.matmul import matmul
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to
from gradtape.solvers.require import Failure, epsilon, require

Matvec = Callable[[Any], Any]

# The basis that GMRES builds before it begins again.
_RESTART = 100


def _dot(x: Any, y: Any) -> Any:
    return sum_of(x * y)


def length(x: Any) -> Any:
    """The Euclidean norm of a vector, whose squares may be too large or too small for floats."""
    if not x.shape[0]:
        return sum_of(x)
    scale = scale_of(x)
    return scale * sqrt(_dot(x / scale, x / scale))


def scale_of(x: Any) -> Any:
    """The largest absolute value, by which a vector can be divided; 1 if it is 0 or infinite."""
    largest = max_of(abs_of(x))
    return where(isfinite(largest) & greater(largest, 0), largest, 1)


def _norm(x: Any) -> Any:
    """The Euclidean norm of a vector that has been scaled."""
    return sqrt(_dot(x, x))


def _goal(dtype: Any) -> float:
    """The residual to reach, relative to the right hand side."""
    return 16 * epsilon(dtype)


def _most_steps(size: int) -> int:
    return 1000 + 2 * size


def checked(name: str, matvec: Matvec, b: Any, x: Any) -> Any:
    """The solution that a method has come to, if its residual is small.

    Tolerances near rounding cannot always be met; what is wrong by more than half of the digits is
    no solution.
    """
    failure = Failure(
        ConvergenceError,
        f"{name}: got a residual of {{}} times the right hand side, expected a solution of the "
        "linear equations; they are singular or ill-conditioned: use linear_solver='dense', or a "
        "solver of your own with a preconditioner",
        f"{name}: got a residual that is not finite, expected a solution of the linear equations",
    )
    relative = max_of(abs_of(matvec(x) - b)) / scale_of(b)
    return require([x], relative, epsilon(b.dtype) ** 0.6, failure)[0]


def checked_linear(name: str, matvec: Matvec, b: Any, x: Any, scale: Any) -> Any:
    """The solution for the matrix of a function, if the function multiplies by that matrix.

    Args:
        name: The name in errors.
        matvec: The function.
        b: The right hand side.
        x: The solution for its matrix.
        scale: How large the terms of the equations are.
    """
    failure = Failure(
        ConvergenceError,
        f"{name}: got a residual of {{}} for the solution, expected a function that is linear in "
        "x; subtract what it returns for 0 from both sides, or use gt.implicit.root",
        f"{name}: got a residual that is not finite, expected a solution of the linear equations",
    )
    residual = max_of(abs_of(matvec(x) - b))
    return require([x], residual, epsilon(b.dtype) ** 0.6 * scale, failure)[0]


def checked_choice(name: str, matvec: Matvec, b: Any, x: Any) -> Any:
    """What a linear solver of the user's returned, if it solves the equations.

    The limit is far above rounding, since SciPy's methods stop at 1e-5 by default.
    """
    failure = Failure(
        ConvergenceError,
        f"{name}: got a residual of {{}} times the right hand side from the linear solver that was "
        "given, expected a solution of matvec(x) = b; return x such that it is",
        f"{name}: got a residual that is not finite from the linear solver that was given, "
        "expected a solution of matvec(x) = b",
    )
    if not b.shape[0]:
        return x
    relative = max_of(abs_of(matvec(x) - b)) / scale_of(b)
    return require([x], relative, epsilon(b.dtype) ** 0.2, failure)[0]


def cg(matvec: Matvec, b: Any) -> Any:
    """Conjugate gradients, for symmetric positive definite matrices."""
    goal, most = _goal(b.dtype) ** 2 * _dot(b, b), _most_steps(b.shape[0])

    def going(state: Any) -> Any:
        return greater(state[3], goal) & (state[4] < most)

    def step(state: Any) -> Any:
        x, r, p, rr, count = state
        moved = matvec(p)
        along = _quotient(rr, _dot(p, moved))
        r = r - along * moved
        new = _dot(r, r)
        return x + along * p, r, r + _quotient(new, rr) * p, new, count + 1

    return while_loop(going, step, (zeros_like(b), b, b, _dot(b, b), 0))[0]


def bicgstab(matvec: Matvec, b: Any) -> Any:
    """The stabilised method of biconjugate gradients, for any matrix; two products a step."""
    goal, most = _goal(b.dtype) ** 2 * _dot(b, b), _most_steps(b.shape[0])

    def going(state: Any) -> Any:
        _, r, _, rho, count = state
        # A product of 0 with the shadow residual is a breakdown.
        return greater(_dot(r, r), goal) & (rho != 0) & (count < most)

    def step(state: Any) -> Any:
        x, r, p, rho, count = state
        moved = matvec(p)
        along = _quotient(rho, _dot(b, moved))
        half = r - along * moved
        turned = matvec(half)
        weight = _quotient(_dot(turned, half), _dot(turned, turned))
        r = half - weight * turned
        new = _dot(b, r)
        beta = _quotient(new, rho) * _quotient(along, weight)
        x = x + along * p + weight * half
        return x, r, r + beta * (p - weight * moved), new, count + 1

    return while_loop(going, step, (zeros_like(b), b, b, _dot(b, b), 0))[0]


def _quotient(x: Any, y: Any) -> Any:
    """x/y, and 0 for 0/0, which a batch comes to after an element has converged."""
    return x / where(y == 0, 1, y)


# ---- GMRES --------------------------------------------------------------------------------------


def gmres(matvec: Matvec, b: Any) -> Any:
    """Generalised minimal residuals, for any matrix; begins again after 100 products."""
    goal, most = _goal(b.dtype) * _norm(b), -(-_most_steps(b.shape[0]) // _RESTART)

    def going(state: Any) -> Any:
        _, r, before, count = state
        # Where a round changes nothing, the next one would not either.
        return greater(_norm(r), goal) & greater(0.99 * before, _norm(r)) & (count < most)

    def one_round(state: Any) -> Any:
        x, r, _, count = state
        x = x + _minimal(matvec, r, goal)
        return x, b - matvec(x), _norm(r), count + 1

    return while_loop(going, one_round, (zeros_like(b), b, 4 * _norm(b), 0))[0]


def _minimal(matvec: Matvec, r: Any, goal: Any) -> Any:
    """The vector of the Krylov space of r that makes the residual of A·v = r smallest.

    Arnoldi's method builds an orthonormal basis V with A·V = V₊·H. The residual for a basis of k
    vectors is ‖r‖/‖g‖, where g is the vector with gᵀH = 0 and g₀ = 1.
    """
    m = min(r.shape[0], _RESTART)
    start = _norm(r)
    rows = cumsum(broadcast_to(ones_like(start), (m + 1,))) - 1
    g = _at(rows, 0)
    basis = g[:, None] * _quotient(r, start)
    hessenberg = zeros_like(g[:, None] * g[:m])

    def going(state: Any) -> Any:
        k, _, _, g, more = state
        return (k < m) & more & greater(start, goal * _norm(g))

    def step(state: Any) -> Any:
        k, basis, hessenberg, g, _ = state
        at, after = _at(rows, k), _at(rows, k + 1)
        v = matvec(basis[k])
        before = _norm(v)
        v, h = _orthogonal(v, basis, k)
        v, again = _orthogonal(v, basis, k)  # once is not orthogonal to the last digits
        h, left = h + again, _norm(v)
        # What is left is rounding: the space is invariant, and the solution is in it.
        more = greater(left, epsilon(r.dtype) * before)
        left = where(more, left, 0)
        scale = where(more, left, 1)
        basis = basis + after[:, None] * where(more, v / scale, 0)
        column = h + left * after
        hessenberg = hessenberg + column[:, None] * at[:m]
        g = g - after * (_dot(g, h) / scale)
        return k + 1, basis, hessenberg, g, more

    k, basis, hessenberg, _, _ = while_loop(
        going, step, (0, basis, hessenberg, g, greater(start, 0))
    )
    # Columns that were not reached: their unknowns are 0.
    used = where(rows[:m] < k, ones_like(rows[:m]), 0)
    q, triangle = qr(hessenberg + equal(rows[:, None], rows[:m] + 1) * (1 - used))
    return matmul(used * solve_triangular(triangle, q[0] * start), basis[:m])


def _orthogonal(v: Any, basis: Any, k: Any) -> tuple[Any, Any]:
    """The part of a vector that is orthogonal to a basis, and its products with the basis."""
    if not isinstance(k, int):
        h = matmul(basis, v)
        return v - matmul(h, basis), h
    h = matmul(basis[: k + 1], v)  # the other rows are 0
    left = v - matmul(h, basis[: k + 1])
    return left, concatenate([h, zeros_like(basis[k + 1 :, 0])])


def _at(rows: Any, k: Any) -> Any:
    """A unit vector."""
    return where(equal(rows, k), ones_like(rows), 0)
