"""Samples of matrix decompositions, of what they give that does not depend on a choice of signs.

Eigenvectors and singular vectors have a free sign, or phase: it is fixed by their first element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

ALL = (np.float64, np.float32, np.complex128)
A = draw(3, 3)
TALL, WIDE = draw(4, 2), draw(2, 4)
COMPLEX = draw(3, 3) + 1j * draw(3, 3, seed=1)
# Far from equal eigenvalues, so that the order of complex ones does not change.
APART = np.diag([1.0, 3.0, 6.0]) + 0.3 * draw(3, 3)


def hermitian(x: Any) -> Any:
    """The Hermitian part of NumPy's arrays, tensors, and PyTorch's."""
    return x if x.shape[-1] != x.shape[-2] else (x + x.conj().mT) / 2


def turned(v: Any, by: Any = None) -> Any:
    """Columns with the phases that make a mean of their elements positive.

    Not of one element: its derivative would be rounding, which may be refused as well as not.
    """
    whole = v if by is None else by
    mean = whole[..., :1, :] + 0.4 * whole[..., -1:, :]
    return v * (mean.conj() / abs(mean))


def in_all(function: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """The same function of gradtape's, NumPy's and PyTorch's linear algebra."""

    def ours(*args: Any, **params: Any) -> Any:
        return function(gt.linalg, *args, **params)

    def reference(*args: Any, **params: Any) -> Any:
        return function(np.linalg, *args, **params)

    def torch(module: Any, *args: Any, **params: Any) -> Any:
        return function(module.linalg, *args, **params)

    ours.__name__ = function.__name__
    return ours, reference, torch


# ---- Hermitian matrices -------------------------------------------------------------------------


def _eigh(module: Any, x: Any, **params: Any) -> Any:
    w, v = module.eigh(hermitian(x), **params)
    return w, turned(v)


def _eigvalsh(module: Any, x: Any, **params: Any) -> Any:
    return module.eigvalsh(hermitian(x), **params)


_eigh.__name__, _eigvalsh.__name__ = "eigh", "eigvalsh"
EIGH, EIGVALSH = in_all(_eigh), in_all(_eigvalsh)


def case(functions: tuple[Any, Any, Any], x: Any, label: str = "", **more: Any) -> OpCase:
    ours, reference, torch = functions
    dtypes = ALL if x.dtype == np.float64 else (x.dtype,)
    more = {"torch": torch, "rtol": 4096, "dtypes": dtypes, **more}
    return OpCase(ours, (x,), reference, label=label, **more)


def generalised_eigh(a: Any, b: Any, **params: Any) -> Any:
    """Of two Hermitian matrices."""
    w, v = gt.linalg.eigh(hermitian(a), hermitian(b), **params)
    return w, turned(v)


def scipy_eigh(a: Any, b: Any, **params: Any) -> Any:
    """The same in SciPy."""
    w, v = scipy.linalg.eigh(hermitian(a), hermitian(b), **params)
    return w, turned(v)


NOT_SQUARE = Raises((draw(2, 3),), LinAlgError, r"got shape \(2, 3\).*square")

HERMITIAN = [
    case(
        EIGH,
        A,
        ops=["eigh", "granted", "once_differentiable", "equal_weights"],
        raises=[
            NOT_SQUARE,
            Raises((A,), ArgumentError, "eigh: got UPLO='X'.*'L' or 'U'", {"UPLO": "X"}),
            Raises((A,), UnsupportedError, "eigh: got driver=", {"driver": "ev"}),
        ],
    ),
    case(EIGH, A, "upper", params={"UPLO": "U"}),
    case(EIGH, draw(2, 2, 2), "batched"),
    case(EIGH, draw(1, 1), "one"),
    case(EIGH, draw(0, 0), "empty", torch=None),
    case(EIGH, COMPLEX, "complex"),
    case(
        EIGVALSH,
        A,
        raises=[NOT_SQUARE],
    ),
    # PyTorch gives a number for a single one of equal eigenvalues.
    case(
        EIGVALSH,
        draw(2, 2, 2),
        "batched",
        at=[
            At((np.eye(2),), (np.eye(2),)),
            At((np.zeros((2, 2)),), (np.eye(2),)),
            At((np.diag([1.0, 1.0, 2.0]),), (np.eye(3),)),
        ],
        torch=None,
    ),
    case(EIGVALSH, COMPLEX, "complex"),
    case(
        EIGVALSH,
        np.array([[2, 1], [1, 3]]),
        "integers",
        torch=None,
        dtypes=(np.int64,),
        differentiable=False,
    ),
    OpCase(
        generalised_eigh,
        (A, draw(3, 3, seed=1) + 6 * np.eye(3)),
        scipy_eigh,
        ops=["eigh"],
        rtol=4096,
        dtypes=ALL,
        raises=[Raises((A, -np.eye(3)), LinAlgError, "eigh: got.*definite")],
    ),
    OpCase(
        generalised_eigh,
        (A, draw(3, 3, seed=1) + 6 * np.eye(3)),
        scipy_eigh,
        {"lower": False},
        ops=["eigh"],
        rtol=4096,
        label="upper",
    ),
]


# ---- singular values ----------------------------------------------------------------------------


def _svd(module: Any, x: Any, **params: Any) -> Any:
    u, s, vh = module.svd(x, full_matrices=False, **params)
    return turned(u), s, turned(vh.conj().mT, by=u)


def _svd_full(module: Any, x: Any) -> Any:
    u, s, vh = module.svd(x)
    count, v = s.shape[-1], vh.conj().mT
    rest_u, rest_v = u[..., count:], v[..., count:]
    both = turned(u[..., :count]), s, turned(v[..., :count], by=u[..., :count])
    return *both, rest_u @ rest_u.conj().mT, rest_v @ rest_v.conj().mT


def _svdvals(module: Any, x: Any) -> Any:
    return module.svdvals(x)


_svd.__name__, _svd_full.__name__, _svdvals.__name__ = "svd", "svd_full", "svdvals"
SVD, SVD_FULL, SVDVALS = in_all(_svd), in_all(_svd_full), in_all(_svdvals)


def svd_hermitian(x: Any, compute_uv: bool = True) -> Any:
    """Of the Hermitian part, by its eigenvalues."""
    if not compute_uv:
        return gt.linalg.svd(hermitian(x), compute_uv=False, hermitian=True)
    u, s, vh = gt.linalg.svd(hermitian(x), hermitian=True)
    return turned(u), s, turned(vh.conj().mT, by=u)


def svd_hermitian_reference(x: Any, compute_uv: bool = True) -> Any:
    """The same in NumPy."""
    if not compute_uv:
        return np.linalg.svd(hermitian(x), compute_uv=False, hermitian=True)
    u, s, vh = np.linalg.svd(hermitian(x), hermitian=True)
    return turned(u), s, turned(vh.conj().mT, by=u)


def low_rank(x: Any, **params: Any) -> Any:
    """The product of what svd_lowrank gives, and the singular values."""
    u, s, v = gt.linalg.svd_lowrank(x, **params)
    return (u * s[..., None, :]) @ v.conj().mT, s


def low_rank_reference(x: Any, q: int, niter: int = 2) -> Any:
    """Nearly the same by the whole decomposition."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return (u[..., :q] * s[..., None, :q]) @ vh[..., :q, :], s[..., :q]


TOO_FLAT = Raises((draw(3),), LinAlgError, r"got shape \(3,\), expected a matrix")

SINGULAR = [
    case(
        SVD,
        A,
        raises=[TOO_FLAT, Raises((A,), UnsupportedError, "lapack_driver", {"lapack_driver": "x"})],
    ),
    case(SVD, TALL, "tall"),
    case(SVD, WIDE, "wide"),
    case(SVD, draw(2, 3, 2), "batched"),
    case(SVD, draw(3, 0), "empty", torch=None),
    case(SVD, COMPLEX, "complex"),
    case(SVD, TALL + 1j * draw(4, 2, seed=1), "tall-complex"),
    # PyTorch has no derivative of full matrices.
    case(SVD_FULL, TALL, ops=["svd"], torch=None),
    case(SVD_FULL, WIDE, "wide", ops=["svd"], torch=None),
    case(SVD_FULL, WIDE + 1j * draw(2, 4, seed=1), "complex", ops=["svd"], torch=None),
    OpCase(svd_hermitian, (A,), svd_hermitian_reference, ops=["eigh"], rtol=4096, dtypes=ALL),
    OpCase(
        svd_hermitian,
        (A,),
        svd_hermitian_reference,
        {"compute_uv": False},
        ops=["eigvalsh"],
        rtol=4096,
        label="values",
    ),
    case(
        SVDVALS,
        A,
        at=[
            At((np.eye(2),), (np.eye(2),)),
            At((np.diag([1.0, 1.0, 3.0]),), (np.eye(3),)),
            # A kink as that of abs, where the gradient is 0.
            At((np.diag([2.0, 0.0]),), (np.diag([1.0, 0.0]),)),
            At((np.zeros((2, 3)),), (np.zeros((2, 3)),)),
        ],
        torch=None,
        raises=[TOO_FLAT],
    ),
    case(SVDVALS, TALL, "tall"),
    case(SVDVALS, draw(2, 2, 3), "batched"),
    case(SVDVALS, COMPLEX, "complex"),
    OpCase(
        low_rank,
        (draw(4, 2) @ draw(2, 3),),
        low_rank_reference,
        {"q": 2},
        ops=["svd", "qr"],
        rtol=2**16,
        # With rank 2 kept only along the way: changes of rank are seen by differences.
        differences=False,
        second_order=False,
        raises=[Raises((A,), ArgumentError, "svd_lowrank: got q=4.*1 to 3", {"q": 4})],
    ),
    OpCase(
        low_rank,
        (A,),
        low_rank_reference,
        {"q": 3, "niter": 1},
        ops=["svd"],
        rtol=2**16,
        label="all",
    ),
]


CASES = [*HERMITIAN, *SINGULAR]
