"""Samples of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import LinAlgError
from opcases.case import At, OpCase, Raises, draw, with_torch


def regular(*shape: int, seed: int = 0) -> Any:
    """Square matrices far from singular."""
    return draw(*shape, seed=seed) + 4 * np.eye(shape[-1])


def hermitian(x: Any) -> Any:
    """The Hermitian part: only such matrices have a Cholesky factor."""
    return x if x.shape[-1] != x.shape[-2] else (x + gt.conj(x).mT) / 2


def cholesky(x: Any, upper: bool = False) -> Any:
    """The Cholesky factor of the Hermitian part."""
    return gt.linalg.cholesky(hermitian(x), upper=upper)


def cholesky_reference(x: Any, upper: bool = False) -> Any:
    """The same in NumPy."""
    return np.linalg.cholesky(hermitian(x), upper=upper)


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
COFACTORS = np.array([[4.0, -2.0], [-2.0, 1.0]])
TWICE_SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
A = regular(3, 3)
RANK_2 = draw(4, 2, seed=3) @ (draw(2, 4, seed=4) + 1j * draw(2, 4, seed=5))
COMPLEX = A + 1j * draw(3, 3, seed=7)


def log_of_determinant(x: Any) -> Any:
    """The logarithm of the determinant, by NumPy's."""
    sign, logarithm = np.linalg.slogdet(x)
    return logarithm + (np.log(sign) if sign.dtype.kind == "c" else 0)


INVERSE = [
    OpCase(
        gt.linalg.inv,
        (A,),
        np.linalg.inv,
        rtol=256,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        raises=[
            Raises((SINGULAR,), LinAlgError, "inv: got float64.*Singular.*identity"),
            Raises((draw(2, 3),), LinAlgError, r"inv: got shape \(2, 3\).*square"),
        ],
    ),
    OpCase(
        gt.linalg.inv,
        (regular(2, 3, 3),),
        np.linalg.inv,
        rtol=256,
        label="batched",
        torch="linalg.inv",
    ),
]

DETERMINANT = [
    OpCase(
        gt.linalg.det,
        (A,),
        np.linalg.det,
        ops=["det", "cofactors"],
        rtol=256,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        # PyTorch's gradient at singular matrices is 0.
        at=[
            # A polynomial in the elements has a derivative at singular matrices as well.
            At((SINGULAR,), (COFACTORS,)),
            At((TWICE_SINGULAR,), (np.zeros((3, 3)),)),
            At((np.zeros((2, 2)),), (np.zeros((2, 2)),)),
            At((np.zeros((1, 1)),), (np.ones((1, 1)),)),
            At((np.diag([1e-9, 1e9]),), (np.diag([1e9, 1e-9]),)),
            At((np.stack([SINGULAR, np.eye(2)]),), (np.stack([COFACTORS, np.eye(2)]),)),
        ],
        raises=[Raises((draw(2, 3),), LinAlgError, r"det: got shape \(2, 3\).*square")],
    ),
    OpCase(
        gt.linalg.det,
        (regular(2, 3, 3),),
        np.linalg.det,
        rtol=256,
        label="batched",
        torch="linalg.det",
    ),
    OpCase(gt.linalg.det, (draw(0, 0),), np.linalg.det, label="empty"),
    # Polynomials have derivatives of every order; those of second order are exact here.
    OpCase(gt.linalg.det, (SINGULAR,), np.linalg.det, label="singular"),
    OpCase(gt.linalg.det, (TWICE_SINGULAR,), np.linalg.det, label="twice-singular"),
    OpCase(gt.linalg.det, (np.zeros((4, 4)),), np.linalg.det, label="zero"),
    OpCase(gt.linalg.det, (RANK_2 + 0j,), np.linalg.det, label="complex-singular"),
    OpCase(
        gt.linalg.det,
        (np.stack([TWICE_SINGULAR, A]),),
        np.linalg.det,
        label="singular-batched",
        rtol=256,
        batched=False,  # one of the batch decides how all are computed
    ),
    OpCase(
        gt.linalg.slogdet,
        (A,),
        np.linalg.slogdet,
        rtol=256,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        raises=[Raises((draw(2, 3),), LinAlgError, r"slogdet: got shape \(2, 3\).*square")],
    ),
    OpCase(
        gt.linalg.slogdet,
        (-A,),
        np.linalg.slogdet,
        rtol=256,
        label="negative",
        torch="linalg.slogdet",
    ),
    OpCase(gt.linalg.slogdet, (regular(2, 3, 3),), np.linalg.slogdet, rtol=256, label="batched"),
    OpCase(gt.linalg.slogdet, (A + 1j * draw(3, 3),), np.linalg.slogdet, rtol=256, label="complex"),
    OpCase(
        gt.linalg.logdet,
        (A,),
        log_of_determinant,
        ops=["slogdet"],
        rtol=256,
        dtypes=(np.float64, np.float32, np.complex128),
        torch="logdet",
    ),
    OpCase(gt.linalg.logdet, (COMPLEX,), log_of_determinant, label="complex", ops=["slogdet"]),
]

CHOLESKY = [
    OpCase(
        cholesky,
        (A + 2 * np.eye(3),),
        cholesky_reference,
        rtol=256,
        dtypes=(np.float64, np.float32, np.complex128),
        raises=[
            Raises((-np.eye(2),), LinAlgError, "cholesky: got.*definite.*identity"),
            Raises((draw(2, 3),), LinAlgError, r"cholesky: got shape \(2, 3\).*square"),
        ],
    ),
    OpCase(cholesky, (A,), cholesky_reference, {"upper": True}, rtol=256, label="upper"),
    OpCase(cholesky, (regular(2, 3, 3),), cholesky_reference, rtol=256, label="batched"),
    OpCase(cholesky, (COMPLEX,), cholesky_reference, rtol=256, label="complex"),
    OpCase(cholesky, (draw(0, 0),), cholesky_reference, label="empty"),
]


def torch_cholesky(torch: Any, x: Any, upper: bool = False) -> Any:
    return torch.linalg.cholesky((x + x.mH) / 2, upper=upper)


CASES = with_torch({"cholesky": torch_cholesky}, [*INVERSE, *DETERMINANT, *CHOLESKY])
