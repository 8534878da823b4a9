"""Samples of QR and LU decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw
from opcases.decompositions import ALL, COMPLEX, TALL, TOO_FLAT, WIDE, A


def qr_complete(x: Any) -> Any:
    """The columns that belong to the matrix, and the projection on the others."""
    return _complete(gt.linalg.qr(x, mode="complete"), x)


def qr_complete_reference(x: Any) -> Any:
    """The same in NumPy."""
    return _complete(np.linalg.qr(x, mode="complete"), x)


def _complete(factors: Any, x: Any) -> Any:
    (q, r), count = factors, min(x.shape[-2:])
    rest = q[..., count:]
    return q[..., :count], r, rest @ rest.conj().mT


def qr_pivoting(x: Any, mode: str = "reduced") -> Any:
    """With the order of the columns."""
    return gt.linalg.qr(x, mode, pivoting=True)


def qr_pivoting_reference(x: Any, mode: str = "reduced") -> Any:
    """The same in SciPy, whose mode "r" gives rows of zeros besides."""
    *factors, order = scipy.linalg.qr(x, mode="economic", pivoting=True)
    return *(factors[1:] if mode == "r" else factors), order.astype(np.int64)


def of_stack(function: Callable[..., Any]) -> Callable[..., Any]:
    """The results of a function of SciPy as a tuple."""
    return lambda *args, **params: tuple(function(*args, **params))


def torch_qr(torch: Any, x: Any) -> Any:
    """PyTorch's own."""
    return torch.linalg.qr(x)


def torch_lu(torch: Any, x: Any) -> Any:
    """PyTorch's own."""
    return torch.linalg.lu(x)


def qr_case(x: Any, label: str = "", **more: Any) -> OpCase:
    dtypes = ALL if x.dtype == np.float64 else (x.dtype,)
    more = {"torch": torch_qr, "rtol": 4096, "dtypes": dtypes, **more}
    return OpCase(gt.linalg.qr, (x,), np.linalg.qr, label=label, **more)


def lu_case(x: Any, label: str = "", **more: Any) -> OpCase:
    more = {"rtol": 4096, "dtypes": ALL if x.dtype == np.float64 else (x.dtype,), **more}
    return OpCase(
        gt.linalg.lu,
        (x,),
        of_stack(scipy.linalg.lu),
        ops=["lu_factor", "lu_order"],
        label=label,
        **more,
    )


FACTORS = [
    qr_case(
        A,
        raises=[
            TOO_FLAT,
            Raises((A,), ArgumentError, "qr: got mode='raw'", {"mode": "raw"}),
            Raises((A,), UnsupportedError, "qr: got lwork=", {"lwork": 3}),
        ],
    ),
    qr_case(TALL, "tall"),
    qr_case(WIDE, "wide"),
    qr_case(draw(2, 3, 2), "batched"),
    qr_case(COMPLEX, "complex", torch=None),
    qr_case(A, "r", params={"mode": "r"}, torch=None),
    qr_case(draw(3, 0), "empty", torch=None, second_order=False),
    OpCase(
        qr_complete,
        (TALL,),
        qr_complete_reference,
        ops=["qr", "independent_columns"],
        rtol=4096,
        dtypes=ALL,
    ),
    OpCase(qr_complete, (draw(3, 2),), qr_complete_reference, ops=["qr"], rtol=4096, label="one"),
    OpCase(
        qr_pivoting,
        (np.array([[1.0, 3.0, 2.0], [0.5, -1.0, 4.0], [0.2, 0.3, 0.4]]),),
        qr_pivoting_reference,
        ops=["qr", "qr_pivots"],
        rtol=4096,
        dtypes=ALL,
    ),
    OpCase(
        qr_pivoting,
        (TALL,),
        qr_pivoting_reference,
        {"mode": "r"},
        ops=["qr", "qr_pivots"],
        rtol=4096,
        label="r",
    ),
    lu_case(
        A,
        # A singular matrix has a derivative if only the last pivot is 0; PyTorch gives NaN.
        at=[At((np.array([[2.0, 1.0], [4.0, 2.0]]),), (np.array([[-0.25, 1.0], [1.125, 0.5]]),))],
        raises=[
            TOO_FLAT,
            Raises((A,), UnsupportedError, "lu: got overwrite_a=", {"overwrite_a": True}),
        ],
    ),
    lu_case(TALL, "tall", torch=torch_lu),
    lu_case(WIDE, "wide", torch=torch_lu),
    lu_case(draw(2, 2, 2), "batched", torch=torch_lu),
    lu_case(COMPLEX, "complex", torch=None),
    lu_case(A, "permuted", params={"permute_l": True}),
    lu_case(draw(0, 2), "empty"),
    OpCase(
        gt.linalg.lu,
        (A,),
        lambda x, **params: (
            scipy.linalg.lu(x, **params)[0].astype(np.int64),
            *scipy.linalg.lu(x, **params)[1:],
        ),
        {"p_indices": True},
        ops=["lu_factor", "lu_order"],
        rtol=4096,
        label="indices",
    ),
    OpCase(
        gt.linalg.lu_factor,
        (A,),
        scipy.linalg.lu_factor,
        rtol=4096,
        dtypes=ALL,
        torch=lambda torch, x: (torch.linalg.lu_factor(x)[0], torch.linalg.lu_factor(x)[1] - 1),
    ),
]

CASES = FACTORS

NOT_NATIVE = {"qr_pivots": "LAPACK does it"}
