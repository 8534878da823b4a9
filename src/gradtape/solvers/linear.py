"""Linear equations whose matrix is known by its products, with the derivatives of the solution.

x = A(θ)⁻¹b: dx = A⁻¹(db − dA·x), and the cotangents are found by solving with Aᵀ. Rules solve
equations of the same kind, so that they can be differentiated again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import vmap
from gradtape.core.aval import Aval, aval_of
from gradtape.core.deferrable import deferrable
from gradtape.core.lowering import Whole
from gradtape.errors import LinAlgError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.diagonal import diag
from gradtape.ops.linalg.solve import solve, solve_unless_singular
from gradtape.ops.matmul import matmul
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import maximum
from gradtape.solvers import krylov
from gradtape.solvers.problem import Problem, Unknowns, with_captures
from gradtape.solvers.require import Failure, epsilon, require
from gradtape.solvers.solver_run import pull_to, push_from, solved
from gradtape.solvers.vectors import Vectors

Matvec = Callable[[Any], Any]
# Solves A·x = b, given products with A.
LinearSolver = Callable[[Matvec, Any], Any]
# Products with a matrix that depends on operands, `product(operands, like)(v)`: `like` is a vector
# of the form of those that are multiplied.
Product = Callable[[Sequence[Any], Any], Matvec]


# Why each unknown counts as a function of everything, for patterns of derivatives.
OF_EQUATIONS = "the solution of equations: each unknown is taken to depend on all of them"


# ---- the rule -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class LinearSystem:
    """Equations A(θ)·x = b.

    Attributes:
        name: The name in errors.
        product: Products with A, given θ.
        transposed: Products with its transpose, or conjugate transpose if vectors are complex.
        solver: Solves with A; it is called `solver(matvec, b)`.
        back: Solves with the transpose.
    """

    name: str
    product: Product
    transposed: Product
    solver: LinearSolver
    back: LinearSolver

    def solution(self, b: Any, operands: Sequence[Any]) -> Any:
        """The solution, differentiable with respect to b and θ."""

        def function(b: Any, *operands: Any) -> tuple[Any, ...]:
            return (self.solver(self.product(operands, b), b),)

        aval = Aval(b.shape, b.dtype)
        return solved(self.name, function, LinearRules(self), [b, *operands], [aval])[0]

    def turned(self) -> LinearSystem:
        """The equations with the transpose."""
        return LinearSystem(self.name, self.transposed, self.product, self.back, self.solver)


class LinearRules:
    """The derivatives of x = A(θ)⁻¹b; inputs are b and θ, and x is the first result."""

    reads = Whole(OF_EQUATIONS, results=1)

    def __init__(self, system: LinearSystem) -> None:
        self._system = system

    def _products(self, x: Any) -> Callable[..., Any]:
        return lambda *operands: self._system.product(operands, x)(x)

    # With Aᵀ·λ = ct: the cotangents of b and θ are λ and −λᵀ·∂(A·x)/∂θ
    def pull(self, wanted: Any, cts: Any, outs: Any, inputs: Any) -> list[Any]:
        _, *operands = inputs
        back = self._system.turned().solution(cts[0], operands)
        return [back, *pull_to(self._products(outs[0]), operands, wanted[1:], -back)]

    # A·dx = db − ∂(A·x)/∂θ·dθ
    def push(self, tangents: Any, outs: Any, inputs: Any) -> Any:
        change, *moved = tangents
        _, *operands = inputs
        moved = push_from(self._products(outs[0]), operands, moved)
        if moved is not None:
            change = -moved if change is None else change - moved
        return self._system.solution(change, operands), *(None for _ in outs[1:])


# ---- solvers ------------------------------------------------------------------------------------

# Up to this many unknowns the matrix is made, and factored; see docs/decisions/0036.
DENSE = 1000
_METHODS = ("auto", "dense", "cg", "bicgstab", "gmres")


class _Matrix(NamedTuple):
    """What is known of the matrix of equations, besides its products.

    Attributes:
        function: The function that solves them, for errors.
        name: What the matrix is, for errors.
        definite: Whether it is symmetric positive definite.
        is_given: Whether products are a function of the user's, which need not be linear.
    """

    function: str
    name: str
    definite: bool
    is_given: bool

    @property
    def consequence(self) -> str:
        """What follows if it is singular, for errors."""
        # Equations of the user's are solved for a value, others for derivatives.
        return "" if self.is_given else "; the derivative does not exist there"


def linear_solver(
    name: str,
    what: str,
    choice: str | LinearSolver,
    *,
    iterative: str = "gmres",
    definite: bool = False,
    is_given: bool = False,
) -> LinearSolver:
    """The solver that an option names, which checks what it returns.

    Args:
        name: The function it is an option of, for errors.
        what: What the matrix is, for errors.
        choice: The option: a name, or a function.
        iterative: What "auto" stands for, of many unknowns.
        definite: Whether the matrix is known to be symmetric positive definite.
        is_given: Whether products are a function of the user's, which need not be linear.
    """
    if callable(choice):
        return lambda matvec, b: krylov.checked_choice(name, matvec, b, choice(matvec, b))
    check_choice(name, _METHODS, linear_solver=choice)
    method = getattr(krylov, iterative if choice in ("auto", "dense") else choice)

    def solver(matvec: Matvec, b: Any) -> Any:
        if choice == "dense" or (choice == "auto" and b.shape[0] <= DENSE):
            return _by_factors(_Matrix(name, what, definite, is_given), matvec, b)
        with np.errstate(over="ignore", invalid="ignore"):  # it is checked where it has come to
            scale = krylov.scale_of(b)
            return krylov.checked(name, matvec, b, scale * method(matvec, b / scale))

    return solver


def columns(matvec: Matvec, like: Any) -> Any:
    """The matrix that a linear function of vectors like the given one multiplies by."""
    return vmap(matvec, out_axes=-1)(diag(ones_like(like)))


def _by_factors(what: _Matrix, matvec: Matvec, b: Any) -> Any:
    if not b.shape[0]:
        return b
    matrix = columns(matvec, b)
    failure = Failure(
        LinAlgError,
        f"{what.function}: got {what.name} that is singular to working precision, expected "
        f"equations with one solution{what.consequence}",
    )
    if what.definite:
        try:
            x = solve(matrix, b, assume_a="pos")
        except LinAlgError as error:
            raise LinAlgError(
                f"{what.function}: got {what.name} that is not positive definite, expected one as "
                "positive=True says; leave it out"
            ) from error
    else:
        x, is_singular = solve_unless_singular(matrix, b)
        (x,) = require([x], astype(as_array(is_singular), b.dtype), 0.5, failure)
    # |A|·|x| ≫ |b| is cancellation: as many digits of x are lost.
    terms, largest = max_of(matmul(abs_of(matrix), abs_of(x))), max_of(abs_of(b))
    (x,) = require([x], terms * epsilon(b.dtype), 0.1 * largest, failure)
    if not what.is_given:
        return x
    return krylov.checked_linear(what.function, matvec, b, x, maximum(terms, largest))


# ---- linear_solve -------------------------------------------------------------------------------


@deferrable
def linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    *,
    args: Sequence[Any] = (),
    transpose: Callable[..., Any] | None = None,
    symmetric: bool = False,
    positive: bool = False,
    solver: str | LinearSolver = "auto",
) -> Any:
    """Solve `matvec(x, *args) = b` for x, where `matvec` is linear in its first argument.

    No matrix is needed. The derivatives are those of the exact solution, in both modes and to any
    order: each takes one more solve, with the matrix or its transpose.

    Args:
        matvec: The linear function. It returns the containers and shapes that it is given.
        b: The right hand side: an array, or containers of arrays.
        args: Further arguments of `matvec`; the solution is differentiated with respect to them.
        transpose: The transpose, `transpose(y, *args)`, if there is a better way to compute it than
            reverse mode through `matvec`. For complex numbers it is the conjugate transpose.
        symmetric: Whether the matrix is equal to its (conjugate) transpose.
        positive: Whether it is positive definite as well.
        solver: How it is solved. "dense" makes the matrix by batched products and factors it; "cg"
            (only for symmetric positive definite ones), "bicgstab" and "gmres" use products alone.
            "auto" is "dense" up to 1,000 unknowns, and above that "cg" if `symmetric` and
            `positive`, else "gmres". Or a function `solver(matvec, b)` of flat real vectors, which
            is called for derivatives as well; a residual of 7e-4 times b is an error.

    Returns:
        The solution, in the containers of `b`.

    Raises:
        ShapeError: `matvec` returns other containers or shapes than it is given.
        LinAlgError: The matrix is singular.
        ConvergenceError: What the solver found does not solve the equations: it did not converge,
            or `matvec` is not linear.

    >>> def matvec(x, scale):
    ...     return scale * x + np.roll(x, 1)
    >>> def total(scale):
    ...     return np.sum(gt.implicit.linear_solve(matvec, np.ones(3), args=(scale,)))
    >>> total(2.0), gt.grad(total)(2.0).round(6)
    (np.float64(1.0), np.float64(-0.333333))
    """
    name = "linear_solve"
    matvec = as_function(matvec, name)
    unknowns = Unknowns(name, b)
    problem = Problem(name, matvec, unknowns, tuple(args))
    turned = None
    if transpose is not None:
        turned = Problem(name, as_function(transpose, name), unknowns, tuple(args))
    return with_captures(
        [problem],
        lambda: _linear_solve(name, problem, turned, unknowns, symmetric, positive, solver),
    )


def _linear_solve(
    name: str,
    problem: Problem,
    turned: Problem | None,
    unknowns: Unknowns,
    symmetric: bool,
    positive: bool,
    choice: str | LinearSolver,
) -> Any:
    vectors = Vectors(unknowns.leaves)

    def flat(problem: Problem, operands: Sequence[Any], v: Any) -> Any:
        out = problem(unknowns.container(vectors.leaves(v)), operands)
        leaves, structure = containers.flatten(out)
        got, expected = ([tuple(aval_of(x).shape) for x in xs] for xs in (leaves, vectors.avals))
        if structure != unknowns.structure or got != expected:
            raise ShapeError(
                f"{name}: got shapes {got} from the linear function, expected the containers "
                f"and shapes that it was given, {expected}"
            )
        return vectors.flat(leaves)

    def product(operands: Sequence[Any], _like: Any) -> Matvec:
        return lambda v: flat(problem, operands, v)

    def transposed(operands: Sequence[Any], like: Any) -> Matvec:
        if symmetric:
            return product(operands, like)
        if turned is not None:
            return lambda v: flat(turned, operands, v)
        _, pullback = vjp(product(operands, like), zeros_like(like))
        return lambda v: pullback(v)[0]

    b = vectors.flat(unknowns.leaves)
    definite = symmetric and positive
    iterative = "cg" if definite else "gmres"
    solver = linear_solver(
        name, "a matrix", choice, iterative=iterative, definite=definite, is_given=True
    )
    system = LinearSystem(name, product, transposed, solver, solver)
    x = system.solution(b, problem.operands)
    return unknowns.container([shown(leaf) for leaf in vectors.leaves(x)])


def shown(leaf: Any) -> Any:
    """A result as users get it: a number in place of an array without axes."""
    return leaf[()] if isinstance(leaf, np.ndarray) and not leaf.shape else leaf
