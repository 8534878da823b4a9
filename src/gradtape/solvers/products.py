"""`gt.linalg.cg` and its kin for matrices that are known by a function that multiplies by them.

SciPy takes the steps. In a compiled function they run between compiled parts, and of a batch for
each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.core.aval import Aval
from gradtape.core.tensor import Tensor, innermost
from gradtape.graph.known_values import is_unknown
from gradtape.ops.cast import stop_gradient
from gradtape.ops.linalg.iterative import Options, converged, iterate, operator
from gradtape.ops.linalg.stacks import computed_in
from gradtape.ops.norm import inexact
from gradtape.solvers.linear import LinearRules, LinearSolver, LinearSystem, Matvec
from gradtape.solvers.problem import Problem, Unknowns, with_captures
from gradtape.solvers.solver_run import solved

# Products with a preconditioner and with its adjoint.
Helps = tuple[Matvec, Matvec]
# Methods that stop where some vectors happen to be orthogonal, as unit vectors and sparse matrices
# make them. Cotangents are often unit vectors, so GMRES takes over for derivatives.
_BREAK_DOWN = ("bicg", "bicgstab", "cgs", "tfqmr")
_RESTART = 50


def by_products(
    method: str,
    matvec: Callable[..., Any],
    b: Any,
    x0: Any,
    help: Matvec | None,
    args: Sequence[Any],
    options: Options,
    turned_help: Matvec | None = None,
) -> tuple[Any, Any]:
    """The solution for a matrix that is known by its products, and SciPy's code.

    Args:
        method: The name of SciPy's function.
        matvec: `matvec(v, *args)` multiplies a vector by the matrix.
        b: The right hand side, a vector.
        x0: Where to begin, or None.
        help: Products with the preconditioner, or None.
        args: What the matrix depends on.
        options: When it ends.
        turned_help: Products with the adjoint of the preconditioner; by default they are found by
            reverse mode.
    """
    unknowns = Unknowns(method, b)
    problem = Problem(method, matvec, unknowns, tuple(args))
    start = zeros_like(b) if x0 is None else stop_gradient(inexact(x0))
    # These are for maps that are their own adjoint.
    hermitian = method in ("cg", "minres")

    # Operands are x0, and what the matrix depends on.
    def product(operands: Sequence[Any], _like: Any) -> Matvec:
        return lambda v: problem(v, operands[1:])

    def transposed(operands: Sequence[Any], like: Any) -> Matvec:
        forward = product(operands, like)
        return forward if hermitian else _adjoint(forward, like)

    def found_help(v: Any) -> Any:
        assert help is not None
        return _adjoint(help, v)(v)

    turned = help if hermitian or help is None else turned_help or found_help
    helps = None if help is None or turned is None else (help, turned)
    back = None if helps is None else helps[::-1]
    solvers = _strict(method, helps, options), _strict(method, back, options)
    system = LinearSystem(method, product, transposed, *solvers)

    def first(b: Any, *operands: Any) -> tuple[Any, Any]:
        x, info = _steps(method, product(operands, b), b, operands[0], helps, options)
        return x, np.array(info)

    def solution() -> tuple[Any, ...]:
        avals = [Aval(b.shape, b.dtype), Aval((), np.dtype(np.int64))]
        inputs = [*unknowns.leaves, start, *problem.operands]
        return solved(method, first, LinearRules(system), inputs, avals)

    x, info = with_captures([problem], solution)
    return x, info if is_unknown(info) else int(
        innermost(info) if isinstance(info, Tensor) else info
    )


def _adjoint(matvec: Matvec, like: Any) -> Matvec:
    """Products with the adjoint of a linear map."""
    _, pullback = vjp(matvec, zeros_like(like))
    return lambda v: pullback(v)[0]


def _steps(
    method: str, matvec: Matvec, b: Any, x0: Any, helps: Helps | None, options: Options
) -> tuple[Any, int]:
    """The solution that SciPy comes to, and its code."""
    b = np.asarray(b)
    size, dtype = len(b), computed_in(b.dtype, b.dtype)

    def values(product: Matvec) -> Matvec:
        return lambda v: np.asarray(stop_gradient(product(v.reshape(size))))

    def as_scipy_has_it(product: Matvec, adjoint: Matvec) -> Any:
        return operator(size, dtype, values(product), values(adjoint))

    helped = None if helps is None else as_scipy_has_it(*helps)
    matrix = as_scipy_has_it(matvec, lambda v: _adjoint(matvec, v)(v))
    return iterate(method, matrix, b, x0, helped, options)


def _is_far(missed: Any, b: Any, goal: dict[str, Any]) -> bool:
    """Whether a residual is far above its tolerance: tfqmr goes by an estimate of it."""
    allowed = max(goal["rtol"] * np.linalg.norm(b), goal["atol"])
    rounding = 64 * len(b) * np.finfo(b.dtype).eps * np.linalg.norm(b)
    return bool(np.linalg.norm(missed) > 10 * allowed + rounding)


def _strict(method: str, helps: Helps | None, options: Options) -> LinearSolver:
    """Solves equations of derivatives, which have to converge."""

    def solver(matvec: Matvec, b: Any) -> Any:
        x, info = _steps(method, matvec, b, None, helps, options)
        if method in _BREAK_DOWN and (info or _is_far(b - matvec(x), b, dict(options))):
            goal = tuple((name, value) for name, value in options if name in ("rtol", "atol"))
            goal += (("restart", min(len(b), _RESTART)),)
            x, info = _steps("gmres", matvec, b, None, helps, goal)
        converged(method, info, b - matvec(x), b)
        return x

    return solver
