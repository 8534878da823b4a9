"""Derivatives of solutions by the implicit function theorem, whatever found them.

F(x, θ) = 0 defines x as a function of θ: ∂F/∂x·dx = −∂F/∂θ·dθ. Forward mode solves these equations
once. Reverse mode solves with the transpose, (∂F/∂x)ᵀ·λ = ct, and pulls −λ back through F to θ. The
rules are written with functions that have derivatives, so that they can be differentiated again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import jvp
from gradtape.core.aval import Aval
from gradtape.core.lowering import Whole
from gradtape.errors import ShapeError
from gradtape.ops.cast import astype
from gradtape.solvers.linear import OF_EQUATIONS, LinearSolver, LinearSystem, Matvec
from gradtape.solvers.solver_run import pull_to, push_from, solved
from gradtape.solvers.vectors import Vectors


class ImplicitFunction:
    """A solution x of F(x, θ) = 0 as a differentiable function of θ.

    Args:
        name: The name in errors.
        residual: F, as `residual(x, constants, operands)` of sequences of leaves; returns anything
            with as many numbers as x has.
        avals: The leaves of x.
        constants: Those of further results of the solver, which F takes as constants.
        linear: Solves linear equations.
        usable: `usable(constants, v)` returns v, or raises if the solver found no solution.
        symmetric: Whether ∂F/∂x is symmetric, as a Hessian is.
    """

    def __init__(
        self,
        name: str,
        residual: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any],
        avals: Sequence[Aval],
        constants: Sequence[Aval],
        linear: LinearSolver,
        usable: Callable[[Sequence[Any], Any], Any] = lambda _constants, v: v,
        *,
        symmetric: bool = False,
    ) -> None:
        self._usable, self._symmetric = usable, symmetric
        self._guesses = 0
        self._name, self._residual, self._linear = name, residual, linear
        self._avals, self._constants = list(avals), list(constants)
        self._vectors = Vectors(avals)

    def __call__(
        self, solver: Callable[..., Any], operands: Sequence[Any], guesses: int
    ) -> tuple[Any, ...]:
        """The solution.

        Args:
            solver: `solver(*operands)` returns the leaves of x, and the constants.
            operands: θ, as leaves.
            guesses: How many operands, the first ones, are where the solver begins.
        """
        avals = [*self._avals, *self._constants]
        self._guesses = guesses
        return solved(self._name, solver, self, operands, avals, guesses)

    # ---- F, and products with its derivatives ----------------------------------------------

    def _value(self, x: Sequence[Any], rest: Sequence[Any]) -> Any:
        """F as a vector, in the dtype of x."""
        known = len(self._constants)
        out, _ = containers.flatten(self._residual(x, rest[:known], rest[known:]))
        vectors = Vectors(out)
        if vectors.size != self._vectors.size:
            raise ShapeError(
                f"{self._name}: got {vectors.size} numbers from the function, expected as many "
                f"equations as unknowns, {self._vectors.size}"
            )
        value = vectors.flat(out)
        dtype = self._vectors.dtype
        return value if value.dtype == dtype else astype(value, dtype)

    def _split(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        count = len(self._avals)
        return leaves[:count], leaves[count:]

    # v ↦ ∂F/∂x·v
    def _forward(self, leaves: Sequence[Any], _like: Any) -> Matvec:
        x, rest = self._split(leaves)

        def product(v: Any) -> Any:
            return jvp(lambda *x: self._value(x, rest), tuple(x), self._vectors.leaves(v))[1]

        return product

    # v ↦ (∂F/∂x)ᵀ·v
    def _backward(self, leaves: Sequence[Any], _like: Any) -> Matvec:
        x, rest = self._split(leaves)
        _, pullback = vjp(lambda *x: self._value(x, rest), *x)
        return lambda v: self._vectors.flat(pullback(v))

    def _system(self) -> LinearSystem:
        back = self._forward if self._symmetric else self._backward
        return LinearSystem(self._name, self._forward, back, self._linear, self._linear)

    @property
    def reads(self) -> Whole:
        operands = range(self._guesses, sys.maxsize)
        return Whole(OF_EQUATIONS, len(self._avals), operands)

    # ---- rules -----------------------------------------------------------------------------

    def pull(self, wanted: Any, cts: Any, outs: Any, inputs: Any) -> list[Any]:
        x, constants = self._split(outs)
        given, _ = self._split(cts)
        # The solution does not depend on where the solver began.
        wanted = [n >= self._guesses and w for n, w in enumerate(wanted)]
        if not any(wanted) or all(ct is None for ct in given):
            return [None] * len(inputs)
        ct = self._vectors.flat(
            [zeros_like(leaf) if ct is None else ct for ct, leaf in zip(given, x, strict=True)]
        )
        ct = self._usable(constants, ct)
        back = self._system().turned().solution(ct, [*x, *constants, *inputs])
        return pull_to(lambda *inputs: self._value(x, [*constants, *inputs]), inputs, wanted, -back)

    def push(self, tangents: Any, outs: Any, inputs: Any) -> Any:
        x, constants = self._split(outs)
        tangents = [None if n < self._guesses else t for n, t in enumerate(tangents)]
        moved = push_from(lambda *inputs: self._value(x, [*constants, *inputs]), inputs, tangents)
        if moved is None:
            return (None,) * len(outs)
        moved = self._usable(constants, moved)
        change = self._system().solution(-moved, [*x, *constants, *inputs])
        return *self._vectors.leaves(change), *(None for _ in constants)
