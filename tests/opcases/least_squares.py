"""Samples of pseudo-inverses and least squares, with matrices of full and of lower rank."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, ShapeError
from opcases.case import OpCase, Raises, draw, with_torch
from opcases.linalg import COMPLEX, A

TALL, WIDE = draw(4, 2), draw(2, 4)
PHASED = TALL + 1j * draw(4, 2, seed=1)
B = draw(4, 2, seed=2)


def of_rank(left: Any, right: Any, **params: Any) -> Any:
    """The pseudo-inverse of a product, which keeps its rank wherever its factors go."""
    return gt.linalg.pinv(left @ right, rcond=1e-6, **params)


def of_rank_reference(left: Any, right: Any, **params: Any) -> Any:
    return np.linalg.pinv(left @ right, rcond=1e-6, **params)


def hermitian(x: Any) -> Any:
    """The pseudo-inverse of the Hermitian part."""
    return gt.linalg.pinv((x + gt.conj(x).mT) / 2, hermitian=True)


def hermitian_reference(x: Any) -> Any:
    return np.linalg.pinv((x + x.conj().T) / 2, hermitian=True)


PINV = [
    OpCase(
        gt.linalg.pinv,
        (TALL,),
        np.linalg.pinv,
        rtol=256,
        dtypes=(np.float64, np.float32, np.complex128),
        torch="linalg.pinv",
        raises=[
            Raises((draw(3),), LinAlgError, r"pinv: got shape \(3,\), expected a matrix"),
            Raises((TALL,), ArgumentError, "pinv: got both", {"rcond": 0.1, "rtol": 0.1}),
            Raises((TALL,), LinAlgError, "pinv.*square", {"hermitian": True}),
        ],
    ),
    OpCase(gt.linalg.pinv, (WIDE,), np.linalg.pinv, rtol=256, label="wide", torch="linalg.pinv"),
    OpCase(gt.linalg.pinv, (A,), np.linalg.pinv, {"rtol": 1e-3}, rtol=256, label="square"),
    OpCase(gt.linalg.pinv, (PHASED,), np.linalg.pinv, rtol=256, label="complex"),
    OpCase(gt.linalg.pinv, (draw(2, 2, 3),), np.linalg.pinv, rtol=256, label="batched"),
    OpCase(gt.linalg.pinv, (draw(0, 3),), np.linalg.pinv, label="empty"),
    OpCase(of_rank, (TALL, WIDE), of_rank_reference, ops=["pinv"], rtol=1024),
    OpCase(
        of_rank, (PHASED, WIDE[:, :3]), of_rank_reference, ops=["pinv"], rtol=1024, label="complex"
    ),
    OpCase(hermitian, (A,), hermitian_reference, ops=["pinv", "mirrored"], rtol=256),
    OpCase(
        hermitian, (COMPLEX,), hermitian_reference, ops=["pinv"], rtol=256, label="pinv-complex"
    ),
]


def of_lower_rank(left: Any, right: Any, b: Any) -> Any:
    """Least squares with a product, which keeps its rank wherever its factors go."""
    return gt.linalg.lstsq(left @ right, b, rcond=1e-6)[0]


def of_lower_rank_reference(left: Any, right: Any, b: Any) -> Any:
    return np.linalg.lstsq(left @ right, b, rcond=1e-6)[0]


def least(label: str, a: Any, b: Any, *ops: str, **more: Any) -> OpCase:
    """A case of lstsq."""
    return OpCase(
        gt.linalg.lstsq,
        (a, b),
        np.linalg.lstsq,
        ops=ops or ["lstsq", "pinv", "svdvals"],
        rtol=1024,
        label=label,
        **more,
    )


LSTSQ = [
    least(
        "tall",
        TALL,
        B,
        raises=[
            Raises((draw(3), B), LinAlgError, "lstsq: got shape.*expected a matrix"),
            Raises((TALL, draw(2)), ShapeError, "lstsq.*vector of 4 elements"),
        ],
    ),
    least("vector", TALL, B[:, 0]),
    least("wide", WIDE, B[:2]),
    least("square", A, B[:3]),
    least("complex", PHASED, B),
    # The singular values, computed along, have no second derivative at 0; the solution has.
    OpCase(
        of_lower_rank,
        (TALL, WIDE[:, :3], B),
        of_lower_rank_reference,
        ops=["lstsq"],
        rtol=4096,
    ),
    OpCase(
        of_lower_rank,
        (PHASED, WIDE[:, :3], B[:, 0]),
        of_lower_rank_reference,
        ops=["lstsq"],
        rtol=4096,
        label="complex",
    ),
    *(
        # Which singular values count is decided in float64.
        OpCase(
            lambda a, b, kind, rcond: gt.linalg.lstsq(
                gt.astype(a, np.float32), gt.astype(b, kind), rcond=rcond
            )[2],
            (np.diag([1.0, 1e-5, 1e-8, 1e-20]), B),
            lambda a, b, kind, rcond: np.linalg.lstsq(
                a.astype(np.float32), b.astype(kind), rcond=rcond
            )[2],
            {"kind": kind, "rcond": rcond},
            ops=["lstsq"],
            dtypes=(np.float64,),
            differentiable=False,
            label=f"rank-{np.dtype(kind)}-{rcond}",
        )
        for kind in (np.float32, np.float64)
        for rcond in (None, -1)
    ),
]


def torch_lstsq(torch: Any, a: Any, b: Any) -> Any:
    """PyTorch's solution; what else NumPy gives comes of it."""
    solution = torch.linalg.lstsq(a, b).solution
    rest = b - a @ solution
    residuals = torch.atleast_1d(torch.sum(torch.abs(rest) ** 2, 0))
    return solution, residuals, torch.linalg.matrix_rank(a), torch.linalg.svdvals(a)


TORCH = {
    "lstsq-tall": torch_lstsq,
    "lstsq-vector": torch_lstsq,
    "pinv": "linalg.pinv",
    "hermitian": lambda torch, x: torch.linalg.pinv((x + x.mH) / 2, hermitian=True),
    "of_rank": lambda torch, left, right: torch.linalg.pinv(left @ right, rtol=1e-6),
    "of_rank-complex": lambda torch, left, right: torch.linalg.pinv(
        left @ right.to(left.dtype), rtol=1e-6
    ),
}

CASES = with_torch(TORCH, [*PINV, *LSTSQ])

NOT_NATIVE = dict.fromkeys(("pinv", "lstsq"), "LAPACK does it")
