"""Samples of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import LinAlgError, ShapeError
from opcases.case import At, OpCase, Raises, draw


def regular(*shape: int, seed: int = 0) -> Any:
    """Square matrices far from singular."""
    return draw(*shape, seed=seed) + 4 * np.eye(shape[-1])


def solving(label: str, a: tuple[int, ...], b: tuple[int, ...], **more: Any) -> OpCase:
    """A case of solve on arrays of two shapes."""
    args = (regular(*a), draw(*b, seed=1))
    return OpCase(gt.solve, args, np.linalg.solve, label=label, rtol=256, **more)


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

SOLVE = [
    solving(
        "vector",
        (3, 3),
        (3,),
        raises=[
            Raises((SINGULAR, draw(2)), LinAlgError, "solve: came float64.*Singular.*identity"),
            Raises((draw(2, 3), draw(2)), LinAlgError, r"solve: came shape \(2, 3\).*square"),
            Raises((draw(3), draw(3)), LinAlgError, r"solve: came shape \(3,\).*square"),
            Raises((A, draw(2)), ShapeError, r"solve.*\(3, 3\) and \(2,\).*vector of 3 elements"),
            Raises((A, draw(2, 3)), ShapeError, "solve.*matrices of as many rows"),
            Raises((A, np.array(1.0)), ShapeError, "solve.*vector of 3 elements"),
            Raises((regular(2, 3, 3), draw(3, 3, 1)), ShapeError, "solve"),
        ],
    ),
    solving("matrix", (3, 3), (3, 2)),
    solving("columns", (2, 2), (2, 2)),
    solving("batched", (2, 3, 3), (2, 3, 2)),
    solving("batched-vector", (2, 3, 3), (3,)),
    solving("batched-matrix", (2, 3, 3), (3, 2)),
    solving("matrix-batched", (3, 3), (2, 3, 2)),
    solving("broadcast", (2, 1, 2, 2), (3, 2, 1), second_order=False),
    solving("one", (1, 1), (1,)),
    solving("empty", (0, 0), (0, 2)),
    solving("empty-batch", (0, 2, 2), (0, 2, 1)),
    OpCase(gt.solve, (A.T, draw(2, 3).T), np.linalg.solve, label="transposed", rtol=256),
    OpCase(
        gt.solve, (np.array([[2, 1], [1, 3]]), draw(2)), np.linalg.solve, label="integers", rtol=64
    ),
]

INVERSE = [
    OpCase(
        gt.linalg.inv,
        (A,),
        np.linalg.inv,
        rtol=256,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        raises=[
            Raises((SINGULAR,), LinAlgError, "inv: came float64.*Singular.*identity"),
            Raises((draw(2, 3),), LinAlgError, r"inv: came shape \(2, 3\).*square"),
        ],
    ),
    OpCase(gt.linalg.inv, (regular(2, 3, 3),), np.linalg.inv, rtol=256, label="batched"),
]

DETERMINANT = [
    OpCase(
        gt.linalg.det,
        (A,),
        np.linalg.det,
        ops=["det", "cofactors"],
        rtol=256,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        at=[
            # A polynomial in the elements has a derivative at singular matrices as well.
            At((SINGULAR,), (COFACTORS,)),
            At((TWICE_SINGULAR,), (np.zeros((3, 3)),)),
            At((np.zeros((2, 2)),), (np.zeros((2, 2)),)),
            At((np.zeros((1, 1)),), (np.ones((1, 1)),)),
            At((np.diag([1e-9, 1e9]),), (np.diag([1e9, 1e-9]),)),
            At((np.stack([SINGULAR, np.eye(2)]),), (np.stack([COFACTORS, np.eye(2)]),)),
        ],
        raises=[Raises((draw(2, 3),), LinAlgError, r"det: came shape \(2, 3\).*square")],
    ),
    OpCase(gt.linalg.det, (regular(2, 3, 3),), np.linalg.det, rtol=256, label="batched"),
    OpCase(gt.linalg.det, (draw(0, 0),), np.linalg.det, label="empty"),
    OpCase(
        gt.linalg.slogdet,
        (A,),
        np.linalg.slogdet,
        rtol=256,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        raises=[Raises((draw(2, 3),), LinAlgError, r"slogdet: came shape \(2, 3\).*square")],
    ),
    OpCase(gt.linalg.slogdet, (-A,), np.linalg.slogdet, rtol=256, label="negative"),
    OpCase(gt.linalg.slogdet, (regular(2, 3, 3),), np.linalg.slogdet, rtol=256, label="batched"),
    OpCase(gt.linalg.slogdet, (A + 1j * draw(3, 3),), np.linalg.slogdet, rtol=256, label="complex"),
]

CHOLESKY = [
    OpCase(
        cholesky,
        (A + 2 * np.eye(3),),
        cholesky_reference,
        rtol=256,
        dtypes=(np.float64, np.float32, np.complex128),
        raises=[
            Raises((-np.eye(2),), LinAlgError, "cholesky: came.*definite.*identity"),
            Raises((draw(2, 3),), LinAlgError, r"cholesky: came shape \(2, 3\).*square"),
        ],
    ),
    OpCase(cholesky, (A,), cholesky_reference, {"upper": True}, rtol=256, label="upper"),
    OpCase(cholesky, (regular(2, 3, 3),), cholesky_reference, rtol=256, label="batched"),
]

CASES = [*SOLVE, *INVERSE, *DETERMINANT, *CHOLESKY]

NOT_NATIVE = dict.fromkeys(
    ("solve", "inv", "cofactors", "det", "slogdet", "cholesky"), "LAPACK does it"
)
