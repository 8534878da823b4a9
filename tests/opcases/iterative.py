"""Samples of equations solved step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import LinAlgError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw
from opcases.linalg import COMPLEX, A

linalg = gt.linalg
B = draw(3, seed=1)
EXACT = {"rtol": 1e-14}
SYMMETRIC = (A + A.T) / 2


def reference(a: Any, b: Any, *_: Any, **_params: Any) -> Any:
    return np.linalg.solve(a, b), 0


def hermitian_cg(a: Any, b: Any, **params: Any) -> Any:
    """Conjugate gradients with the Hermitian part, so that all elements may be moved."""
    return linalg.cg((a + gt.conj(a).mT) / 2, b, **params)


def hermitian_reference(a: Any, b: Any, **_params: Any) -> Any:
    return np.linalg.solve((a + a.conj().T) / 2, b), 0


def case(
    function: Callable[..., Any], a: Any, reference: Callable[..., Any] = reference, **more: Any
) -> OpCase:
    """A case of a method, in double precision."""
    params = {**EXACT, **more.pop("params", {})}
    more = {"ops": ["iterative_solve"], "rtol": 4096, **more}
    return OpCase(function, (a, B), reference, params, dtypes=(np.float64,), **more)


CASES = [
    case(hermitian_cg, A, hermitian_reference),
    case(hermitian_cg, COMPLEX, hermitian_reference, label="complex"),
    case(hermitian_cg, A, hermitian_reference, params={"M": np.eye(3) / 4, "x0": B}, label="M"),
    # It breaks down where it comes nearer to the solution than this.
    case(linalg.bicgstab, A, params={"rtol": 1e-11}, rtol=1e6),
    case(linalg.bicgstab, COMPLEX, params={"rtol": 1e-11}, rtol=1e6, label="complex"),
    case(
        linalg.gmres,
        A,
        raises=[
            Raises((A[:2], B), LinAlgError, "gmres: got shape.*square"),
            Raises((np.eye(2), B), LinAlgError, "gmres.*matrix of 3 rows"),
            Raises((A, A), ShapeError, "gmres: got b of shape.*expected one axis"),
            Raises((A, B), UnsupportedError, "gmres: got a function as M", {"M": np.sin}),
        ],
    ),
    case(linalg.gmres, COMPLEX, label="complex", params={"M": np.eye(3) / 4}),
]

NOT_NATIVE = {"iterative_solve": "SciPy does it"}
