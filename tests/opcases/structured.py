"""Samples of matrices with a structure, of parts and products, and of arrays seen as matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, LinAlgError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch
from opcases.linalg import COMPLEX, SINGULAR, A, regular

linalg = gt.linalg
C, R, STACK = draw(3), draw(4, seed=1), draw(2, 3, 3)
DTYPES = (np.float64, np.float32, np.complex128)
PHASED = C + 1j * draw(3, seed=2)

STRUCTURED = [
    OpCase(linalg.toeplitz, (C, R), scipy.linalg.toeplitz, ops=["gather"], dtypes=DTYPES),
    OpCase(linalg.toeplitz, (PHASED,), scipy.linalg.toeplitz, ops=["gather", "conj"], label="one"),
    OpCase(
        linalg.toeplitz, (np.array(2.0),), scipy.linalg.toeplitz, ops=["gather"], label="number"
    ),
    OpCase(linalg.hankel, (C, R), scipy.linalg.hankel, ops=["gather"], dtypes=DTYPES),
    OpCase(linalg.hankel, (C,), scipy.linalg.hankel, ops=["gather"], label="one"),
    OpCase(linalg.circulant, (C,), scipy.linalg.circulant, ops=["gather"], dtypes=DTYPES),
    OpCase(
        linalg.circulant, (draw(2, 3),), scipy.linalg.circulant, ops=["gather"], label="batched"
    ),
    OpCase(
        linalg.block_diag,
        (draw(2, 3), np.array(2.0), C),
        scipy.linalg.block_diag,
        ops=["pad", "concatenate"],
        dtypes=DTYPES,
        torch=lambda torch, *arrays: torch.block_diag(*arrays),
        raises=[Raises((STACK, draw(5, 1, 1)), ShapeError, "do not broadcast")],
    ),
    OpCase(
        linalg.block_diag,
        (STACK, A),
        lambda stack, a: np.stack([scipy.linalg.block_diag(x, a) for x in stack]),
        ops=["pad", "concatenate"],
        label="broadcast",
    ),
    OpCase(linalg.block_diag, (draw(0, 2), A), scipy.linalg.block_diag, ops=["pad"], label="empty"),
    OpCase(
        linalg.khatri_rao,
        (draw(2, 3), draw(4, 3)),
        scipy.linalg.khatri_rao,
        ops=["multiply", "reshape"],
        dtypes=DTYPES,
        raises=[Raises((A, draw(3, 2)), ShapeError, "khatri_rao.*same number of columns")],
    ),
]

COEFFICIENTS = np.array([2.0, -1.0, 0.5, 3.0, -4.0])
COMPANIONS = [
    OpCase(
        linalg.companion,
        (COEFFICIENTS,),
        scipy.linalg.companion,
        ops=["gather", "verified"],
        dtypes=DTYPES,
        raises=[
            Raises((np.array([1.0]),), ShapeError, "companion.*two coefficients or more"),
            Raises((np.array([0.0, 1.0]),), ArgumentError, "companion: got 0.*leading"),
        ],
    ),
    OpCase(
        linalg.companion, (2.5 + STACK[0],), scipy.linalg.companion, ops=["gather"], label="batched"
    ),
    OpCase(
        linalg.fiedler_companion,
        (COEFFICIENTS,),
        scipy.linalg.fiedler_companion,
        ops=["gather"],
        dtypes=DTYPES,
        raises=[Raises((np.array([0.0, 1.0]),), ArgumentError, "fiedler_companion: got 0")],
    ),
    *(
        OpCase(
            linalg.fiedler_companion,
            (COEFFICIENTS[:size],),
            scipy.linalg.fiedler_companion,
            ops=["gather"],
            label=f"of-{size}",
        )
        for size in (2, 3, 4)
    ),
    OpCase(
        linalg.fiedler,
        (C,),
        scipy.linalg.fiedler,
        ops=["abs"],
        at=[At(([1.0, 1.0],), ([0.0, 0.0],))],
    ),
    OpCase(
        linalg.leslie,
        (C, draw(2)),
        scipy.linalg.leslie,
        ops=["gather"],
        dtypes=DTYPES,
        raises=[Raises((C, C), ShapeError, "leslie.*one more in the first")],
    ),
    *(
        OpCase(
            linalg.convolution_matrix,
            (C,),
            scipy.linalg.convolution_matrix,
            {"n": n, "mode": mode},
            ["gather"],
            label=f"{mode}-{n}",
            raises=[
                Raises((C,), ArgumentError, "convolution_matrix: got n=0", {"n": 0}),
                Raises((C[:0],), ShapeError, "convolution_matrix.*a number or more", {"n": 1}),
            ],
        )
        for mode in ("full", "same", "valid")
        for n in (2, 5)
    ),
    OpCase(linalg.diagsvd, (C,), scipy.linalg.diagsvd, {"M": 3, "N": 4}, ["pad"], dtypes=DTYPES),
    OpCase(
        linalg.diagsvd,
        (C,),
        scipy.linalg.diagsvd,
        {"M": 4, "N": 3},
        ["pad"],
        label="tall",
        raises=[Raises((C,), ShapeError, "diagsvd.*expected 2 values", {"M": 2, "N": 4})],
    ),
]

PARTS = [
    OpCase(
        linalg.matrix_transpose,
        (STACK,),
        np.linalg.matrix_transpose,
        ops=["transpose"],
        label="linalg",
    ),
    OpCase(
        linalg.diagonal,
        (STACK,),
        np.linalg.diagonal,
        {"offset": 1},
        raises=[Raises((C,), LinAlgError, r"diagonal: got shape \(3,\)")],
        label="linalg",
    ),
    OpCase(
        linalg.trace,
        (STACK,),
        np.linalg.trace,
        {"offset": -1},
        ["diagonal"],
        raises=[Raises((C,), LinAlgError, r"trace: got shape \(3,\)")],
        label="linalg",
    ),
    OpCase(
        linalg.cross,
        (A, C),
        np.linalg.cross,
        ops=["cross"],
        dtypes=DTYPES,
        raises=[
            Raises((draw(2), draw(2)), ShapeError, "cross.*3 components along axis -1"),
            Raises((C, C), AxisError, "cross: got axis 2", {"axis": 2}),
        ],
        torch=lambda torch, x, y: torch.linalg.cross(x, y.expand(3, 3)),
        label="linalg",
    ),
    OpCase(
        linalg.vecdot,
        (PHASED, A),
        np.linalg.vecdot,
        ops=["multiply", "sum"],
        dtypes=DTYPES,
        label="linalg",
    ),
    OpCase(
        linalg.outer,
        (C, R),
        np.linalg.outer,
        ops=["multiply"],
        label="linalg",
        raises=[Raises((A, C), ShapeError, "outer.*expected two vectors")],
    ),
]


def torch_tensorsolve(torch: Any, a: Any, b: Any, axes: Any = None) -> Any:
    return torch.linalg.tensorsolve(a, b, axes)


EQUATION = regular(6, 6).reshape(2, 3, 6)
TENSORS = [
    OpCase(
        linalg.tensorsolve,
        (EQUATION, draw(2, 3)),
        np.linalg.tensorsolve,
        ops=["solve"],
        rtol=256,
        torch=torch_tensorsolve,
        raises=[Raises((EQUATION, draw(3)), ShapeError, "tensorsolve.*as many elements")],
    ),
    OpCase(
        linalg.tensorsolve,
        (np.moveaxis(EQUATION, 2, 0), draw(2, 3)),
        np.linalg.tensorsolve,
        {"axes": (0,)},
        ["solve"],
        label="axes",
        rtol=256,
    ),
    OpCase(
        linalg.tensorinv,
        (EQUATION,),
        np.linalg.tensorinv,
        ops=["inv"],
        rtol=256,
        torch="linalg.tensorinv",
        raises=[
            Raises((EQUATION,), ShapeError, "tensorinv.*in the first 1", {"ind": 1}),
            Raises((EQUATION,), ArgumentError, "tensorinv: got ind=0", {"ind": 0}),
        ],
    ),
]


def torch_cond(torch: Any, x: Any, p: Any = None) -> Any:
    """PyTorch's own has no gradient but for the norm 2: it overwrites the inverse."""
    if p in (None, 2, -2):
        return torch.linalg.cond(x, p)
    return torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(torch.linalg.inv(x), p)


def conditioned(p: Any, *ops: str, x: Any = A, label: str = "", **more: Any) -> OpCase:
    """A case of cond."""
    more = {"dtypes": DTYPES, "torch": torch_cond, **more}
    return OpCase(
        linalg.cond, (x,), np.linalg.cond, {"p": p}, ops, rtol=512, label=label or str(p), **more
    )


CONDITION = [
    conditioned(
        None,
        "svdvals",
        raises=[
            Raises((C,), LinAlgError, r"cond: got shape \(3,\)"),
            Raises((draw(0, 0),), LinAlgError, "cond: got.*empty"),
            Raises((A,), ArgumentError, "cond: got p=3", {"p": 3}),
            Raises((draw(2, 3),), LinAlgError, "cond.*square", {"p": 1}),
        ],
    ),
    conditioned(2, "svdvals", x=draw(3, 2), label="tall"),
    conditioned(-2, "svdvals"),
    conditioned(1, "inverse_or_inf"),
    conditioned(-1, "inverse_or_inf"),
    conditioned(np.inf, "inverse_or_inf"),
    conditioned(-np.inf, "inverse_or_inf"),
    conditioned("fro", "inverse_or_inf"),
    conditioned("fro", "inverse_or_inf", x=COMPLEX, label="complex", dtypes=(np.complex128,)),
    conditioned("nuc", "inverse_or_inf", "svdvals", dtypes=(np.float64, np.complex128)),
    conditioned(1, "inverse_or_inf", x=regular(2, 3, 3), label="batched"),
    conditioned(1, "inverse_or_inf", x=SINGULAR, label="singular", differences=False, torch=None),
    OpCase(
        linalg.matrix_rank,
        (np.stack([A, np.diag([1.0, 1.0, 0.0])]),),
        np.linalg.matrix_rank,
        ops=["svdvals"],
        differentiable=False,
        dtypes=DTYPES,
        raises=[Raises((A,), ArgumentError, "matrix_rank: got both", {"tol": 0.1, "rtol": 0.1})],
    ),
    OpCase(
        linalg.matrix_rank,
        (A + A.T,),
        np.linalg.matrix_rank,
        {"tol": 8.0, "hermitian": True},
        ["eigvalsh"],
        differentiable=False,
        label="hermitian",
    ),
    OpCase(
        linalg.matrix_rank,
        (C,),
        np.linalg.matrix_rank,
        ops=["any"],
        differentiable=False,
        label="vector",
    ),
]

TORCH = {
    "diagonal": "linalg.diagonal",
    "matrix_transpose": lambda torch, x: x.mT,
    "trace": lambda torch, x, offset: torch.linalg.diagonal(x, offset=offset).sum(-1),
    "vecdot": lambda torch, x, y: torch.linalg.vecdot(x, y.to(x.dtype)),
    "outer": "outer",
    "matrix_rank": "linalg.matrix_rank",
    "matrix_rank-hermitian": lambda torch, x, tol, hermitian: torch.linalg.matrix_rank(
        x, atol=tol, rtol=0.0, hermitian=hermitian
    ),
    "matrix_rank-vector": None,
}

CASES = with_torch(TORCH, [*STRUCTURED, *COMPANIONS, *PARTS, *TENSORS, *CONDITION])

NOT_NATIVE = {"inverse_or_inf": "LAPACK does it"}
