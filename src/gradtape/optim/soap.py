"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from gradtape.errors import DTypeError
from gradtape.graph.branches import cond
from gradtape.optim.numbers import arguments, explained, not_negative, positive_count, share
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.stepping import Factors, Slots, root

_Numbers = Mapping[str, Any]
_NONE = (0, 0)
# Eigenvalues that are smaller, times the size and the precision, are errors of rounding.
_ROUNDING = 10.0
# The smallest number added to the diagonal of a matrix.
_TINY = 1e-30


@explained
class SOAP(Optimizer):
    """SOAP (Vyas et al., 2024): Adam on gradients that are turned into a slowly changing basis.

    For a matrix with gradient G, the basis is that of the eigenvectors of the averages of G·Gᵀ and
    Gᵀ·G. It is computed at the first step, which changes no parameter, and improved every
    `precondition_frequency` steps by a step of power iteration. Arrays of more axes are taken as
    matrices with the first axis as rows; vectors and numbers, and sides longer than
    `max_precond_dim`, are not turned.

    Args:
        params: The parameters, or groups of them.
        shampoo_beta: How much of the averages of G·Gᵀ and Gᵀ·G is kept, in [0, 1).
        weight_decay: How much of the parameter is taken away, times the learning rate.
        precondition_frequency: After how many steps the basis is improved.
        max_precond_dim: The length of the longest side that is turned.

    >>> soap, w = gt.optim.SOAP(lr=0.1), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> f = gt.grad(lambda w: np.sum((w @ np.array([[2.0, 1.0], [1.0, 3.0]])) ** 2))
    >>> state = soap.init(w)
    >>> for _ in range(200):
    ...     w, state = soap.apply(w, f(w), state)
    >>> bool(np.all(abs(w) < 0.05))
    True
    """

    checks: ClassVar = {
        "shampoo_beta": share,
        "precondition_frequency": positive_count,
        "max_precond_dim": not_negative,
    }
    slots = ("mean", "square", "rows", "columns", "row_basis", "column_basis")

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 3e-3,
        betas: tuple[Any, Any] = (0.95, 0.95),
        shampoo_beta: Any = 0.95,
        eps: Any = 1e-8,
        weight_decay: Any = 0.01,
        precondition_frequency: int = 10,
        max_precond_dim: int = 10_000,
    ) -> None:
        super().__init__(**arguments(locals()))

    def clock(self, numbers: _Numbers) -> dict[str, Any]:
        """The number of steps."""
        return {"step": 0}

    def slot_shapes(self, shape: tuple[int, ...], numbers: _Numbers) -> list[tuple[int, ...]]:
        """The shapes of the slots of a parameter."""
        sides = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (0, 0)
        longest = numbers["max_precond_dim"]
        squares = [(n, n) if n <= longest else _NONE for n in sides]
        return [shape, shape, *squares, *squares]

    def start(self, value: Any, numbers: _Numbers) -> Slots:
        """Return the slots of one parameter before the first step: zeros."""
        if value.dtype.kind == "c":
            raise DTypeError("SOAP: got a complex parameter, expected real ones")
        shapes = self.slot_shapes(value.shape, numbers)
        return tuple([np.zeros(shape, value.dtype) for shape in shapes])

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        lr, (beta, beta2) = numbers["lr"], numbers["betas"]
        # The first step only computes the basis.
        step = clock["step"] - 1
        is_first = step == 0
        count = step + is_first
        rate = lr * (1 - beta2**count) ** 0.5 / (1 - beta**count)
        is_due = (step % numbers["precondition_frequency"] == 0) & (step > 0)
        decay, kept = lr * numbers["weight_decay"], numbers["shampoo_beta"]
        return rate, beta, beta2, numbers["eps"], decay, kept, is_first, is_due

    @staticmethod
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With G′ = QₗᵀGQᵣ: Adam's step N′ from G′, and x ← (1 − lr·λ)·(x − lr·QₗN′Qᵣᵀ)."""
        rate, beta, beta2, eps, decay, kept, is_first, is_due = factors
        mean, square, rows, columns, *bases = slots
        shape = value.shape
        matrix = _matrix(gradient)
        rows = _averaged(rows, lambda: matrix @ matrix.T, kept)
        columns = _averaged(columns, lambda: matrix.T @ matrix, kept)

        def first() -> tuple[Any, ...]:
            return value, mean, square, *(_eigenvectors(x) for x in (rows, columns))

        def later() -> tuple[Any, ...]:
            turned = _turned(matrix, bases)
            new_mean = beta * mean + (1 - beta) * gradient
            new_square = beta2 * _matrix(square) + (1 - beta2) * turned * turned
            part = _turned(_matrix(new_mean), bases) / (root(new_square) + eps)
            new = value - rate * _turned_back(part, bases).reshape(shape)
            new_square, *new_bases = cond(
                is_due,
                lambda: _improved(new_square, (rows, columns), bases),
                lambda: (new_square, *bases),
            )
            return new - decay * new, new_mean, new_square.reshape(shape), *new_bases

        new, new_mean, new_square, *new_bases = cond(is_first, first, later)
        return new, (new_mean, new_square, rows, columns, *new_bases)


def _matrix(x: Any) -> Any:
    """An array as a matrix, with its first axis as rows; a vector is one column."""
    if len(x.shape) == 2:
        return x
    return x.reshape((x.shape[0] if x.shape else 1, math.prod(x.shape[1:])))


def _is_none(basis: Any) -> bool:
    return tuple(basis.shape) == _NONE


def _averaged(mean: Any, new: Callable[[], Any], kept: Any) -> Any:
    return mean if _is_none(mean) else kept * mean + (1 - kept) * new()


def _turned(matrix: Any, bases: Any) -> Any:
    """QₗᵀGQᵣ."""
    rows, columns = bases
    matrix = matrix if _is_none(rows) else rows.T @ matrix
    return matrix if _is_none(columns) else matrix @ columns


def _turned_back(matrix: Any, bases: Any) -> Any:
    """QₗNQᵣᵀ."""
    return _turned(matrix, [basis if _is_none(basis) else basis.T for basis in bases])


def _eigenvectors(matrix: Any) -> Any:
    """The eigenvectors of a symmetric matrix in columns, those of the largest eigenvalues first.

    A gradient of few columns has no part in many directions, and rounding would decide on a basis
    of these. They get one that only depends on which directions they are: the eigenvectors of a
    ramp that is restricted to them.
    """
    if _is_none(matrix):
        return matrix
    size = matrix.shape[0]
    values, vectors = np.linalg.eigh(matrix.astype(np.float64))
    used = values > _ROUNDING * size * np.finfo(matrix.dtype).eps * values[-1]
    rest = np.where(used, 0.0, vectors)
    ramp = np.diag(np.linspace(0.0, 1.0, size))
    # Eigenvalues from 2 on for directions in use, in their order; in [-1, 0] for the others.
    apart = (np.where(used, vectors * (2.0 + np.arange(size)), 0.0)) @ vectors.T
    found = np.linalg.eigh(apart - rest @ (rest.T @ ramp @ rest) @ rest.T)[1][:, ::-1]
    return found if found.dtype == matrix.dtype else found.astype(matrix.dtype)


def _shift(matrix: Any) -> Any:
    """What is small for a matrix, and yet above the errors of rounding."""
    return np.finfo(matrix.dtype).eps ** 0.5 * np.mean(np.diagonal(matrix)) + _TINY


def _improved(square: Any, means: Any, bases: Any) -> tuple[Any, ...]:
    """The averages of squares in the order of new bases, and these: a step of power iteration.

    The shift keeps directions in which there was no gradient as they are.
    """
    improved = []
    for axis, (mean, basis) in enumerate(zip(means, bases, strict=True)):
        if not _is_none(basis):
            order = np.argsort(-np.sum(basis * (mean @ basis), axis=0))
            square = np.take(square, order, axis=axis)
            basis = np.linalg.qr(mean @ np.take(basis, order, axis=1))[0]
        improved.append(basis)
    return (square, *improved)
