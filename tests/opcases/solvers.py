"""Samples of equations: solve and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw, with_torch
from opcases.linalg import COMPLEX, SINGULAR, A, regular

B = draw(3, 2, seed=1)
DTYPES = (np.float64, np.float32, np.complex128)


def solving(label: str, a: tuple[int, ...], b: tuple[int, ...], **more: Any) -> OpCase:
    """A case of solve on arrays of two shapes."""
    args = (regular(*a), draw(*b, seed=1))
    torch = more.pop("torch", "linalg.solve")
    return OpCase(gt.solve, args, np.linalg.solve, label=label, rtol=256, torch=torch, **more)


SOLVE = [
    solving(
        "vector",
        (3, 3),
        (3,),
        raises=[
            Raises((SINGULAR, draw(2)), LinAlgError, "solve: got float64.*Singular.*identity"),
            Raises((draw(2, 3), draw(2)), LinAlgError, r"solve: got shape \(2, 3\).*square"),
            Raises((draw(3), draw(3)), LinAlgError, r"solve: got shape \(3,\).*square"),
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

# ---- matrices with a structure ------------------------------------------------------------------


def kept(x: Any, assume_a: str) -> Any:
    """The matrix as what it is assumed to be, so that all elements may be moved."""
    if assume_a not in ("sym", "her", "pos"):
        return x
    other = x.mT if assume_a == "sym" else gt.conj(x).mT
    return (x + other) / 2


def structured(a: Any, b: Any, assume_a: str, lower: bool = False) -> Any:
    """Equations with a matrix of some structure."""
    return gt.linalg.solve(kept(a, assume_a), b, assume_a=assume_a, lower=lower)


def structured_reference(a: Any, b: Any, assume_a: str, lower: bool = False) -> Any:
    """The same in SciPy."""
    return scipy.linalg.solve(kept(a, assume_a), b, assume_a=assume_a, lower=lower)


def with_structure(assume_a: str, *ops: str, a: Any = A, label: str = "", **params: Any) -> OpCase:
    """A case of a structure."""
    return OpCase(
        structured,
        (a, B),
        structured_reference,
        {"assume_a": assume_a, **params},
        ops or ["solve", "solve_again", "mirrored"],
        label=label or assume_a,
        rtol=256,
        dtypes=DTYPES,
    )


WIDER = np.eye(24)


def large(a: Any, b: Any) -> Any:
    """Equations within larger ones, in a stack of matrices whose factors are kept."""
    size = a.shape[-1]
    chosen = WIDER[:, :size].astype(b.dtype)
    wide = chosen @ a @ chosen.T + np.diag(np.arange(24) >= size).astype(a.dtype)
    return (gt.linalg.solve(wide, chosen @ b))[..., :size, :]


def large_reference(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


STRUCTURED = [
    with_structure("pos"),
    with_structure("pos", lower=True, label="pos-lower"),
    with_structure("pos", a=COMPLEX, label="pos-complex"),
    with_structure("pos", a=regular(2, 3, 3), label="pos-batched"),
    with_structure("sym"),
    with_structure("sym", a=COMPLEX, label="sym-complex"),
    with_structure("her", a=COMPLEX, lower=True, label="her-complex"),
    with_structure("upper triangular", "solve_triangular"),
    with_structure("lower triangular", "solve_triangular"),
    with_structure("diagonal", "solve_banded", a=np.diag([2.0, -1.0, 3.0])),
    with_structure("tridiagonal", "solve_banded", a=np.triu(np.tril(A, 1), -1)),
    with_structure(
        "tridiagonal", "solve_banded", a=np.triu(np.tril(COMPLEX, 1), -1), label="tri-c"
    ),
    OpCase(
        large,
        (regular(2, 3, 3), B),
        large_reference,
        ops=["solve", "solve_again"],
        rtol=256,
        label="kept",
    ),
    OpCase(
        gt.linalg.solve,
        (COMPLEX, B + 0.5j),
        np.linalg.solve,
        rtol=256,
        label="complex",
        torch="linalg.solve",
    ),
    OpCase(
        gt.linalg.solve,
        (A, B),
        scipy.linalg.solve,
        {"transposed": True},
        rtol=256,
        label="transposed-a",
        raises=[
            Raises((A, B), ArgumentError, "solve: got assume_a='pis'", {"assume_a": "pis"}),
            Raises((A, B), UnsupportedError, "assume_a='banded'", {"assume_a": "banded"}),
            Raises((-A, B), LinAlgError, "not positive definite.*above 0", {"assume_a": "pos"}),
        ],
    ),
]

# ---- triangular matrices and factors ------------------------------------------------------------


def triangular(label: str, a: Any = A, b: Any = B, **params: Any) -> OpCase:
    """A case of solve_triangular."""
    more = {key: params.pop(key) for key in ("torch", "raises", "dtypes") if key in params}
    return OpCase(
        gt.linalg.solve_triangular,
        (a, b),
        scipy.linalg.solve_triangular,
        params,
        label=label,
        rtol=256,
        **{"dtypes": DTYPES, **more},
    )


def torch_triangular(torch: Any, a: Any, b: Any) -> Any:
    return torch.linalg.solve_triangular(a, b, upper=True)


TRIANGULAR = [
    triangular("upper", torch=torch_triangular),
    triangular("lower", lower=True),
    triangular("unit", lower=True, unit_diagonal=True),
    triangular("unit-upper", unit_diagonal=True, trans=1),
    triangular("transposed", trans="T"),
    triangular("adjoint", COMPLEX, trans=2, lower=True),
    triangular("columns", A.T, B),
    triangular("batched", regular(2, 3, 3), draw(2, 3, 2)),
    triangular("empty", draw(0, 0), draw(0, 2), dtypes=(np.float64,)),
    triangular(
        "vector",
        A,
        B[:, 0],
        raises=[
            Raises((np.eye(2) - 1, B[:2]), LinAlgError, "solve_triangular: got.*diagonal has a 0"),
            Raises((A, B[:2]), ShapeError, "solve_triangular.*vector of 3 elements"),
            Raises((B, B), LinAlgError, "solve_triangular.*square"),
            Raises((A, B), ArgumentError, "solve_triangular: got trans=3", {"trans": 3}),
        ],
    ),
]


def factored(a: Any, b: Any, lower: bool = False) -> Any:
    """Equations by the Cholesky factor of the Hermitian part."""
    return gt.linalg.cho_solve(gt.linalg.cho_factor(kept(a, "her"), lower=lower), b)


def factored_reference(a: Any, b: Any, lower: bool = False) -> Any:
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(kept(a, "her"), lower=lower), b)


LU, PIVOTS = np.triu(A) + np.tril(A, -1) / 8, np.array([1, 2, 2])


def by_lu(label: str, lu: Any, pivots: Any, b: Any, *ops: str, trans: int = 0) -> OpCase:
    """A case of lu_solve."""
    return OpCase(
        gt.linalg.lu_solve,
        ((lu, pivots), b),
        scipy.linalg.lu_solve,
        {"trans": trans},
        ops or ["lu_order", "solve_triangular"],
        label=label,
        rtol=256,
        fixed=(1,),
        dtypes=DTYPES,
    )


FACTORED = [
    OpCase(factored, (A, B), factored_reference, ops=["cholesky", "solve_triangular"], rtol=256),
    OpCase(
        factored,
        (COMPLEX, B[:, 0]),
        factored_reference,
        {"lower": True},
        ["cholesky", "solve_triangular"],
        rtol=256,
        label="lower",
    ),
    by_lu("0", LU, PIVOTS, B),
    by_lu("1", LU, PIVOTS, B[:, 0], trans=1),
    by_lu("2", LU + 1j * draw(3, 3, seed=9) / 8, PIVOTS, B, trans=2),
    OpCase(
        gt.linalg.lu_solve,
        ((np.stack([LU, A]), np.stack([PIVOTS, [0, 2, 2]])), draw(2, 3, 2)),
        scipy.linalg.lu_solve,
        ops=["lu_order"],
        label="batched",
        rtol=256,
        fixed=(1,),
        raises=[
            Raises(((A, PIVOTS), B), ArgumentError, "lu_solve: got trans=3", {"trans": 3}),
            Raises(((A, PIVOTS[:2]), B), ShapeError, r"lu_solve.*\(2,\).*expected pivots"),
            Raises(((A, PIVOTS + 1), B), ArgumentError, "lu_solve: got pivots out of bounds"),
        ],
    ),
]


def torch_factored(torch: Any, a: Any, b: Any, lower: bool = False) -> Any:
    b = b.to(a.dtype)
    factor = torch.linalg.cholesky((a + a.mH) / 2)
    return torch.cholesky_solve(b.reshape(b.shape[0], -1), factor).reshape(b.shape)


def torch_lu_solve(torch: Any, factors: Any, b: Any, trans: int = 0) -> Any:
    """PyTorch's counts rows from 1, and has no transpose that is not conjugated."""
    lu, pivots = factors
    b = b.to(lu.dtype)
    columns = b if b.ndim == lu.ndim else b[..., None]
    columns = columns.conj() if trans == 1 else columns
    out = torch.linalg.lu_solve(lu, (pivots + 1).int(), columns, adjoint=trans != 0)
    return (out.conj() if trans == 1 else out).reshape(b.shape)


TORCH = {"factored": torch_factored, "lu_solve": torch_lu_solve}

CASES = with_torch(TORCH, [*SOLVE, *STRUCTURED, *TRIANGULAR, *FACTORED])
