"""Samples of banded matrices, by their diagonals: equations, factors, eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    LinAlgError,
    ShapeError,
    UnsupportedError,
)
from opcases.case import At, OpCase, Raises, draw
from opcases.decompositions import turned

linalg = gt.linalg
ALL = (np.float64, np.float32, np.complex128)
B = draw(4, 2, seed=1)
PHASES = 1j * draw(4, 2, seed=2)


def bands(lower: int, upper: int, *stack: int, size: int = 4) -> Any:
    """Diagonals of a matrix far from singular."""
    ab = draw(*stack, lower + upper + 1, size)
    ab[..., upper, :] += 6.0
    return ab


def half(width: int, lower: bool, *stack: int) -> Any:
    """Diagonals of a positive definite matrix, with zeros outside of it, as SciPy leaves them."""
    ab = bands(width if lower else 0, 0 if lower else width, *stack)
    for m in range(1, width + 1):
        if lower:
            ab[..., m, ab.shape[-1] - m :] = 0.0
        else:
            ab[..., width - m, :m] = 0.0
    return ab


def phased(ab: Any, main: int) -> Any:
    """Complex numbers beside the main diagonal."""
    other = 0.5j * ab
    other[main] = 0.0
    return ab + other


# ---- equations ----------------------------------------------------------------------------------


def solve_banded(ab: Any, b: Any, l_and_u: Any) -> Any:
    return linalg.solve_banded(l_and_u, ab, b)


def scipy_banded(ab: Any, b: Any, l_and_u: Any) -> Any:
    return scipy.linalg.solve_banded(l_and_u, ab, b)


def solving(lower: int, upper: int, label: str, b: Any = B, **more: Any) -> OpCase:
    """A case of solve_banded."""
    ab = more.pop("ab", None)
    ab = bands(lower, upper) if ab is None else ab
    more = {"rtol": 256, "dtypes": ALL, "params": {"l_and_u": (lower, upper)}, **more}
    return OpCase(solve_banded, (ab, b), scipy_banded, label=label, **more)


def stacked(function: Any) -> Any:
    """A function of SciPy's for each pair of a stack of matrices and right hand sides."""

    def reference(ab: Any, b: Any, **params: Any) -> Any:
        return np.stack([function(one, other, **params) for one, other in zip(ab, b, strict=True)])

    return reference


EQUATIONS = [
    solving(
        2,
        1,
        "general",
        raises=[
            Raises(
                (np.zeros((4, 4)), B),
                LinAlgError,
                "solve_banded: got float64.*Singular.*identity",
                {"l_and_u": (2, 1)},
            ),
            Raises((bands(1, 1), B), ShapeError, "expected 4 rows", {"l_and_u": (2, 1)}),
            Raises((bands(1, 1), B), ShapeError, "expected 3 rows", {"l_and_u": (3, -1)}),
            Raises((draw(4), B), LinAlgError, "got shape.*diagonals", {"l_and_u": (0, 0)}),
            Raises((bands(1, 1), draw(3)), ShapeError, "vector of 4", {"l_and_u": (1, 1)}),
        ],
    ),
    solving(1, 1, "tridiagonal", b=draw(4)),
    solving(0, 2, "upper"),
    solving(1, 0, "lower"),
    solving(0, 0, "diagonal"),
    solving(1, 2, "complex", ab=bands(1, 2) + 0.5j * bands(1, 2), b=B + PHASES, dtypes=()),
    solving(1, 1, "one", ab=bands(1, 1, size=1), b=draw(1)),
    solving(2, 2, "wider", ab=bands(2, 2, size=2), b=draw(2), dtypes=(np.float64,)),
    solving(1, 1, "empty", ab=np.zeros((3, 0)), b=np.zeros((0, 2)), dtypes=(np.float64,)),
    OpCase(
        solve_banded,
        (bands(1, 1, 2), draw(2, 4, 1)),
        stacked(scipy_banded),
        {"l_and_u": (1, 1)},
        label="batched",
        rtol=256,
    ),
    OpCase(
        linalg.solveh_banded,
        (half(2, False), B),
        scipy.linalg.solveh_banded,
        ops=["solve_banded"],
        rtol=256,
        dtypes=ALL,
        raises=[
            Raises((-half(2, False), B), LinAlgError, "solveh_banded: got.*definite"),
            Raises((half(1, False), draw(3)), ShapeError, "vector of 4"),
            Raises((half(1, False), B), UnsupportedError, "got driver=", {"driver": "x"}),
        ],
    ),
    OpCase(
        linalg.solveh_banded,
        (half(1, True), B),
        scipy.linalg.solveh_banded,
        {"lower": True},
        ["solve_banded"],
        label="lower",
        rtol=256,
    ),
    OpCase(
        linalg.solveh_banded,
        (phased(half(2, True), 0), B + PHASES),
        scipy.linalg.solveh_banded,
        {"lower": True},
        ["solve_banded"],
        label="complex",
        rtol=256,
    ),
]


# ---- factors ------------------------------------------------------------------------------------


def cho_solve_banded(cb: Any, b: Any, lower: bool) -> Any:
    return linalg.cho_solve_banded((cb, lower), b)


def scipy_cho_solve_banded(cb: Any, b: Any, lower: bool) -> Any:
    return scipy.linalg.cho_solve_banded((cb, lower), b)


def log_determinant(ab: Any) -> Any:
    """Of a banded matrix, by its factor."""
    return 2 * gt.sum(gt.log(linalg.cholesky_banded(ab)[-1]))


def log_determinant_reference(ab: Any) -> Any:
    upper = np.diag(ab[1]) + np.diag(ab[0, 1:], 1)
    return np.linalg.slogdet(upper + np.triu(upper, 1).T)[1]


FACTOR_OPS = ["cholesky_banded", "cholesky_banded_change", "cholesky_banded_pull"]
FACTORS = [
    OpCase(
        linalg.cholesky_banded,
        (half(2, True),),
        scipy.linalg.cholesky_banded,
        {"lower": True},
        FACTOR_OPS,
        rtol=64,
        dtypes=ALL,
        raises=[
            Raises((-half(1, True),), LinAlgError, "cholesky_banded: got.*definite"),
            Raises((draw(4),), LinAlgError, "cholesky_banded: got shape.*diagonals"),
        ],
    ),
    OpCase(
        linalg.cholesky_banded,
        (half(1, False),),
        scipy.linalg.cholesky_banded,
        ops=FACTOR_OPS,
        label="upper",
        rtol=64,
        dtypes=ALL,
    ),
    OpCase(
        linalg.cholesky_banded,
        (phased(half(2, False), 2),),
        scipy.linalg.cholesky_banded,
        ops=FACTOR_OPS,
        label="complex",
        rtol=64,
    ),
    OpCase(
        linalg.cholesky_banded,
        (half(1, True, 2),),
        lambda ab, lower: np.stack([scipy.linalg.cholesky_banded(x, lower=lower) for x in ab]),
        {"lower": True},
        FACTOR_OPS,
        label="batched",
        rtol=64,
    ),
    OpCase(
        linalg.cholesky_banded,
        (np.ones((2, 0)),),
        lambda ab: ab,
        ops=["cholesky_banded"],
        label="empty",
    ),
    OpCase(
        log_determinant,
        (half(1, False),),
        log_determinant_reference,
        ops=["cholesky_banded"],
        rtol=64,
        at=[At(([[0.0, 0.0], [1.0, 1.0]],), ([[0.0, 0.0], [1.0, 1.0]],))],
    ),
    OpCase(
        cho_solve_banded,
        (half(2, True), B),
        scipy_cho_solve_banded,
        {"lower": True},
        ["solve_banded"],
        rtol=256,
        dtypes=ALL,
        raises=[
            Raises((np.zeros((2, 4)), B), LinAlgError, "solve_banded: got.*Singular", {"lower": 1})
        ],
    ),
    OpCase(
        cho_solve_banded,
        (phased(half(1, False), 1), B + PHASES),
        scipy_cho_solve_banded,
        {"lower": False},
        ["solve_banded"],
        label="complex",
        rtol=256,
    ),
]


# ---- eigenvalues --------------------------------------------------------------------------------


def eig_banded(x: Any, **params: Any) -> Any:
    w, v = linalg.eig_banded(x, **params)
    return w, turned(v)


def scipy_eig_banded(x: Any, **params: Any) -> Any:
    w, v = scipy.linalg.eig_banded(x, **params)
    return w, turned(v)


def eigh_tridiagonal(d: Any, e: Any, **params: Any) -> Any:
    w, v = linalg.eigh_tridiagonal(d, e, **params)
    return w, turned(v)


def scipy_eigh_tridiagonal(d: Any, e: Any, **params: Any) -> Any:
    w, v = scipy.linalg.eigh_tridiagonal(d, e, **params)
    return w, turned(v)


SOME = {"select": "i", "select_range": (1, 2)}
EIGEN = [
    OpCase(
        eig_banded,
        (half(2, True),),
        scipy_eig_banded,
        {"lower": True},
        ["eigh"],
        rtol=4096,
        dtypes=ALL,
        raises=[
            Raises((half(1, True),), UnsupportedError, "select='v'.*values", {"select": "v"}),
            Raises((half(1, True),), ArgumentError, "select='x'.*expected 'a'", {"select": "x"}),
            Raises((half(1, True),), UnsupportedError, "got max_ev=", {"max_ev": 2}),
        ],
    ),
    OpCase(
        eig_banded, (half(1, False),), scipy_eig_banded, SOME, ["eigh"], label="some", rtol=4096
    ),
    OpCase(
        linalg.eigvals_banded,
        (phased(half(2, False), 2),),
        scipy.linalg.eigvals_banded,
        ops=["eigvalsh"],
        rtol=4096,
        at=[At(([[0.0, 0.0], [1.0, 1.0]],), ([[0.0, 0.0], [1.0, 1.0]],))],
    ),
    OpCase(
        linalg.eigvals_banded,
        (half(1, True),),
        scipy.linalg.eigvals_banded,
        {"lower": True, **SOME},
        ["eigvalsh"],
        label="some",
        rtol=4096,
        raises=[
            Raises(
                (half(1, True),),
                ArgumentError,
                "the numbers 1 to 4 of 4 eigenvalues",
                {"select": "i", "select_range": (1, 4)},
            )
        ],
    ),
    OpCase(
        eigh_tridiagonal,
        (draw(4), draw(3)),
        scipy_eigh_tridiagonal,
        ops=["eigh"],
        rtol=4096,
        raises=[
            Raises((draw(4), draw(4)), ShapeError, "one element more"),
            Raises((draw(4), 1j * draw(3)), DTypeError, "expected real.*eig_banded"),
            Raises((draw(4), draw(3)), UnsupportedError, "got tol=", {"tol": 0.1}),
        ],
    ),
    OpCase(
        linalg.eigvalsh_tridiagonal,
        (draw(4), draw(3)),
        scipy.linalg.eigvalsh_tridiagonal,
        SOME,
        ["eigvalsh"],
        rtol=4096,
    ),
    OpCase(
        linalg.eigvalsh_tridiagonal,
        (draw(2, 3), draw(2, 2)),
        lambda d, e: np.stack(
            [scipy.linalg.eigvalsh_tridiagonal(*x) for x in zip(d, e, strict=True)]
        ),
        ops=["eigvalsh"],
        label="batched",
        rtol=4096,
    ),
]


CASES = [*EQUATIONS, *FACTORS, *EIGEN]

NOT_NATIVE = {
    "solve_banded": "LAPACK does it",
    "cholesky_banded": "LAPACK does it",
    "cholesky_banded_change": "columns one after the other, each from those before it",
    "cholesky_banded_pull": "columns one after the other, each from those after it",
}
