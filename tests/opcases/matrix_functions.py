"""Samples of functions of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, ShapeError
from opcases.case import OpCase, Raises, draw
from opcases.linalg import COMPLEX, SINGULAR, A

SMALL = draw(3, 3) / 2
JORDAN = np.array([[1.5, 1.0, 0.0], [0.0, 1.5, 1.0], [0.0, 0.0, 1.5]])
TURNED = JORDAN - np.diag([3.0, 0.0, 3.0])
DOUBLE = (np.float64,)
DTYPES = (np.float64, np.float32, np.complex128)
OPS = ("matrix_function", "matrix_function_change")


def of(
    function: Callable[..., Any], reference: Callable[..., Any], x: Any, *args: Any, **more: Any
) -> OpCase:
    """A case of a function of matrices."""
    more = {"rtol": 1024, "ops": OPS, **more}
    return OpCase(function, (x, *args), reference, **more)


def stacked(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one matrix applied to each of a stack."""
    return lambda x, *args: np.stack([reference(matrix, *args) for matrix in x])


def power(x: Any, t: Any) -> Any:
    """A power of which the exponent is a variable too."""
    return gt.linalg.fractional_matrix_power(x, t)


def power_reference(x: Any, t: float) -> Any:
    """SciPy's power, real of real matrices."""
    out = scipy.linalg.fractional_matrix_power(x, t)
    return (
        out.astype(x.dtype) if np.isrealobj(out) or np.iscomplexobj(x) else out.real.astype(x.dtype)
    )


linalg = gt.linalg
EXPM = [
    of(
        linalg.expm,
        scipy.linalg.expm,
        SMALL,
        dtypes=DTYPES,
        torch="linalg.matrix_exp",
        raises=[Raises((draw(2, 3),), LinAlgError, r"expm: got shape \(2, 3\).*square")],
    ),
    of(linalg.expm, scipy.linalg.expm, JORDAN, label="defective", torch="linalg.matrix_exp"),
    of(linalg.expm, scipy.linalg.expm, np.zeros((2, 2)), label="zero"),
    of(linalg.expm, scipy.linalg.expm, draw(2, 2, 2), label="batched"),
    of(linalg.expm, scipy.linalg.expm, SMALL + 1j * draw(3, 3, seed=2), label="complex"),
    of(linalg.expm, scipy.linalg.expm, draw(0, 0), label="empty"),
    of(linalg.expm, scipy.linalg.expm, np.array([[1, 2], [0, 1]]), label="integers", ops=OPS[:1],
       differentiable=False),
]  # fmt: skip
LOGM = [
    of(
        linalg.logm,
        scipy.linalg.logm,
        A,
        dtypes=(np.float64, np.complex128),
        raises=[
            Raises((SINGULAR,), LinAlgError, "logm: got float64.*Singular.*identity"),
            Raises((-A,), LinAlgError, "logm.*complex, as there are negative.*astype"),
        ],
    ),
    of(linalg.logm, scipy.linalg.logm, JORDAN, label="defective", dtypes=DOUBLE),
    of(linalg.logm, scipy.linalg.logm, COMPLEX, label="complex"),
    of(
        linalg.logm,
        stacked(scipy.linalg.logm),
        np.stack([A, A.T]),
        label="batched",
        dtypes=DOUBLE,
    ),
]
SQRTM = [
    of(
        linalg.sqrtm,
        scipy.linalg.sqrtm,
        A,
        dtypes=DTYPES,
        raises=[
            Raises((np.diag([1.0], 1),), LinAlgError, "sqrtm: got.*without such a root"),
            Raises((-A,), LinAlgError, "sqrtm.*complex, as there are negative.*astype"),
        ],
    ),
    of(linalg.sqrtm, scipy.linalg.sqrtm, JORDAN, label="defective"),
    of(linalg.sqrtm, scipy.linalg.sqrtm, COMPLEX, label="complex"),
]
POWERS = [
    of(
        linalg.fractional_matrix_power,
        power_reference,
        A,
        0.3,
        dtypes=DTYPES,
        raises=[
            Raises((SINGULAR, -0.5), LinAlgError, "fractional_matrix_power.*Singular"),
            Raises((-A, 0.5), LinAlgError, "complex, as there are negative"),
        ],
    ),
    of(
        linalg.fractional_matrix_power,
        power_reference,
        JORDAN,
        -0.5,
        label="defective",
    ),
    of(
        linalg.fractional_matrix_power,
        scipy.linalg.fractional_matrix_power,
        SMALL,
        3,
        label="integer",
        ops=["matmul"],
    ),
    of(
        linalg.matrix_power,
        np.linalg.matrix_power,
        SMALL,
        5,
        ops=["matmul"],
        dtypes=DTYPES,
        torch="linalg.matrix_power",
        raises=[
            Raises((SMALL, 0.5), ArgumentError, "matrix_power: got n=0.5.*fractional"),
            Raises((SINGULAR, -2), LinAlgError, "matrix_power: got.*Singular"),
        ],
    ),
    of(linalg.matrix_power, np.linalg.matrix_power, A, -2, ops=["inv"], label="negative"),
    of(linalg.matrix_power, np.linalg.matrix_power, draw(2, 2, 2), 0, ops=["add"], label="0"),
    of(linalg.matrix_power, np.linalg.matrix_power, A, 1, ops=["copy"], label="1"),
]
SIGNM = [
    of(
        linalg.signm,
        scipy.linalg.signm,
        A @ np.diag([1.0, -1.0, 1.0]),
        dtypes=(np.float64, np.complex128),
        raises=[Raises((np.array([[0.0, 1.0], [-1.0, 0.0]]),), LinAlgError, "signm.*no real part")],
    ),
    of(
        linalg.signm,
        scipy.linalg.signm,
        JORDAN - np.diag([3.0, 0.0, 3.0]),
        label="triangular",
        dtypes=DOUBLE,
    ),
    of(linalg.signm, scipy.linalg.signm, COMPLEX @ np.diag([1.0, -1.0, 1.0]), label="complex"),
]
TRIGONOMETRIC = [
    of(getattr(linalg, name), getattr(scipy.linalg, name), x, label=label)
    for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")
    for label, x in (("", SMALL), ("complex", SMALL + 0.5j * draw(3, 3, seed=2)))
]
CHAINS = [
    OpCase(
        linalg.multi_dot,
        ([draw(2, 3), draw(3, 4), draw(4, 2), draw(2)],),
        np.linalg.multi_dot,
        ops=["matmul"],
        rtol=64,
        torch=lambda torch, arrays: torch.linalg.multi_dot(list(arrays)),
        raises=[
            Raises(([draw(2, 3)],), ShapeError, r"multi_dot: got shape \(2, 3\), expected"),
            Raises(([draw(2, 3), draw(3), draw(3)],), ShapeError, "multi_dot"),
            Raises(([draw(2, 3), draw(2, 3)],), ShapeError, "matmul"),
        ],
    ),
    OpCase(
        linalg.multi_dot,
        ([draw(2), draw(2, 3), draw(3, 4)],),
        np.linalg.multi_dot,
        ops=["matmul"],
        label="row",
    ),
]


def sample(w: Any) -> Any:
    """A function of eigenvalues, as gradtape and NumPy both compute it."""
    return np.exp(w / 2) + w * w


def polynomial(x: Any) -> Any:
    """The same function of a real matrix, without eigenvalues."""
    return scipy.linalg.expm(x / 2) + x @ x


FUNM = [
    of(
        linalg.funm,
        lambda x, func: polynomial(x),
        np.diag([1.0, 2.0, 3.0]) + SMALL / 4,
        sample,
        ops=["verified", "real_result", "eig"],
        rtol=1e5,
        raises=[
            Raises((JORDAN, np.exp), LinAlgError, "funm.*depend on each other.*expm"),
            Raises((-A, np.sqrt), LinAlgError, "funm.*real matrix is complex.*astype"),
        ],
    ),
    of(
        linalg.funm,
        lambda x, func: polynomial(x),
        COMPLEX,
        sample,
        ops=["verified"],
        label="complex",
        rtol=1e5,
    ),
]

CASES = [*FUNM, *EXPM, *LOGM, *SQRTM, *POWERS, *SIGNM, *TRIGONOMETRIC, *CHAINS]

NOT_NATIVE = {
    **dict.fromkeys(OPS, "SciPy does it"),
    "real_result": "of complex numbers",
    "verified": "its test is a Python function of the values",
}
