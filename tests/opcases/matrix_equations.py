"""Samples of equations for a matrix: Sylvester's, Lyapunov's, Riccati's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, ShapeError
from opcases.case import OpCase, Raises, draw
from opcases.linalg import COMPLEX, A, regular

linalg = gt.linalg
B, Q = regular(2, 2, seed=4), draw(3, 2, seed=5)
SQUARE = draw(3, 3, seed=6)
SMALL = A / 8
TWO = np.stack([SMALL, SMALL.T])
DTYPES = (np.float64, np.float32, np.complex128)
DOUBLE = (np.float64, np.complex128)


def case(
    function: Callable[..., Any], args: tuple[Any, ...], label: str = "", **more: Any
) -> OpCase:
    """A case of an equation that SciPy solves under the same name."""
    more = {"rtol": 1024, **more}
    return OpCase(function, args, in_one_dtype(function.__name__), label=label, **more)


def in_one_dtype(name: str) -> Callable[..., Any]:
    """SciPy's function; solve_sylvester of complex and real matrices together is wrong in 1.17."""

    def reference(*args: Any) -> Any:
        dtype = np.result_type(*args)
        return getattr(scipy.linalg, name)(*(x.astype(dtype) for x in args))

    return reference


LINEAR = [
    case(
        linalg.solve_sylvester,
        (A, B, Q),
        dtypes=DTYPES,
        raises=[
            Raises((A, B, Q.T), ShapeError, "solve_sylvester.*3 rows and 2 columns"),
            Raises((Q, B, Q), LinAlgError, "solve_sylvester.*square"),
            Raises((np.eye(2), -np.eye(2), B), LinAlgError, "solve_sylvester.*minus one of"),
        ],
    ),
    case(linalg.solve_sylvester, (COMPLEX, B, Q), "complex", dtypes=DOUBLE),
    case(linalg.solve_sylvester, (regular(2, 2, 2), B, draw(2, 2, 2)), "batched"),
    case(linalg.solve_sylvester, (draw(0, 0), B, draw(0, 2)), "empty"),
    case(
        linalg.solve_continuous_lyapunov,
        (A, SQUARE),
        ops=["solve_sylvester"],
        dtypes=DTYPES,
        raises=[Raises((A, B), ShapeError, "solve_continuous_lyapunov.*one size")],
    ),
    case(linalg.solve_continuous_lyapunov, (COMPLEX, SQUARE), "complex", ops=["solve_sylvester"]),
    case(
        linalg.solve_discrete_lyapunov,
        (SMALL, SQUARE),
        dtypes=DOUBLE,
        raises=[
            Raises((np.eye(2), B), LinAlgError, "solve_discrete_lyapunov.*product of two"),
            Raises((A, SQUARE, "best"), ArgumentError, "solve_discrete_lyapunov: got method"),
        ],
    ),
    case(linalg.solve_discrete_lyapunov, (COMPLEX / 8, SQUARE), "complex", dtypes=DOUBLE),
    case(
        linalg.solve_discrete_lyapunov,
        (np.stack([SMALL, SMALL.T]), SQUARE),
        "batched",
        dtypes=DOUBLE,
    ),
]


def system(seed: int = 0) -> tuple[Any, ...]:
    """Matrices of a system that can be stabilised, with weights that are positive definite."""
    a, b = draw(2, 2, seed=seed) / 4, 2 + draw(2, 1, seed=seed + 1)
    return a, b, regular(2, 2, seed=seed + 2), regular(1, 1, seed=seed + 3)


def hermitian(x: Any) -> Any:
    return (x + gt.conj(x).mT) / 2


def reference(name: str) -> Callable[..., Any]:
    """SciPy's, with weights made Hermitian as gradtape does.

    Its results with `e` or `s` do not solve the equation in 1.17; these are eliminated here.
    """

    def solve(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None) -> Any:
        q, r = hermitian(q), hermitian(r)
        if e is not None:
            inverse = np.linalg.inv(e)
            a, q, s = a @ inverse, inverse.conj().T @ q @ inverse, inverse.conj().T @ s
            a = a - b @ np.linalg.inv(r) @ s.conj().T
            q = hermitian(q - s @ np.linalg.inv(r) @ s.conj().T)
        return getattr(scipy.linalg, name)(a, b, q, r)

    return solve


EXTRA = (np.eye(2) + draw(2, 2, seed=8) / 4, draw(2, 1, seed=9) / 4)
RICCATI = [
    OpCase(
        getattr(linalg, name),
        args,
        reference(name),
        ops=["riccati", *ops],
        rtol=2048,
        label=label,
        dtypes=DOUBLE,
        raises=[Raises((A, B, A, B), ShapeError, f"{name}.*expected b of 3 rows and 2 columns")],
    )
    for name, ops in (
        ("solve_continuous_are", ["solve_sylvester"]),
        ("solve_discrete_are", ["solve_discrete_lyapunov"]),
    )
    for label, args in (
        ("", system()),
        ("complex", (system()[0] + 0.1j * draw(2, 2, seed=7), *system()[1:])),
        ("generalised", (*system(), *EXTRA)),
    )
]

CASES = [*LINEAR, *RICCATI]

NOT_NATIVE = dict.fromkeys(
    ("solve_sylvester", "solve_discrete_lyapunov", "riccati"), "SciPy does it"
)
