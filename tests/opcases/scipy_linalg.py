"""Samples of what `scipy.linalg` has besides: other decompositions and problems, angles."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    LinAlgError,
    ShapeError,
    UnsupportedError,
)
from opcases.case import At, OpCase, Raises, draw
from opcases.decompositions import APART, COMPLEX, TALL, WIDE, A, hermitian, turned

linalg = gt.linalg
ALL = (np.float64, np.float32, np.complex128)
DOUBLE = (np.float64, np.complex128)
REAL = (np.float64,)
B = draw(3, 2, seed=1)
NOT_SQUARE = Raises((draw(2, 3),), LinAlgError, r"got shape \(2, 3\).*square")


# ---- decompositions -----------------------------------------------------------------------------


def ldl(a: Any, lower: bool = True, hermitian: bool = True) -> Any:
    return linalg.ldl(same(a, hermitian), lower, hermitian)


def ldl_reference(a: Any, lower: bool = True, hermitian: bool = True) -> Any:
    return scipy.linalg.ldl(same(a, hermitian), lower, hermitian)


def same(a: Any, conjugate: bool) -> Any:
    """The part of a matrix that is Hermitian, or symmetric."""
    return hermitian(a) if conjugate else (a + a.mT) / 2


def factors(a: Any, label: str = "", **more: Any) -> OpCase:
    return OpCase(ldl, (a,), ldl_reference, label=label, **{"rtol": 256, "dtypes": ALL, **more})


# With small numbers on the diagonal pivots are blocks of two rows.
BLOCKS = np.diag([0.1, 0.0, 3.0]) + np.array([[0, 4.0, 1.0], [4.0, 0, 1.0], [1.0, 1.0, 0]])
LDL = [
    factors(A, at=[At(([[2.0, 0.0], [0.0, 0.0]],), ([[1.0, 0.25], [0.25, 1.0]],))]),
    factors(A, "upper", params={"lower": False}),
    factors(BLOCKS, "blocks"),
    factors(BLOCKS[::-1, ::-1].copy(), "upper-blocks", params={"lower": False}),
    factors(1e6 * BLOCKS, "large", dtypes=(), differences=False),
    factors(np.zeros((0, 0)), "empty", dtypes=REAL),
    factors(COMPLEX, "complex", dtypes=()),
    factors(COMPLEX, "symmetric", dtypes=(), params={"hermitian": False}),
    OpCase(
        linalg.ldl,
        (np.stack([hermitian(A), BLOCKS]),),
        lambda x: tuple(np.stack(parts) for parts in zip(*map(scipy.linalg.ldl, x), strict=True)),
        rtol=256,
        differences=False,
        label="batched",
        raises=[NOT_SQUARE, Raises((A,), UnsupportedError, "got overwrite_a", {"overwrite_a": 1})],
    ),
]
FORM_OPS = ["hessenberg", "hessenberg_turning", "hessenberg_pull"]
LARGER = draw(4, 4)
HESSENBERG = [
    OpCase(
        linalg.hessenberg,
        (LARGER,),
        scipy.linalg.hessenberg,
        {"calc_q": True},
        FORM_OPS,
        rtol=256,
        dtypes=(np.float64, np.float32),
        raises=[NOT_SQUARE],
    ),
    OpCase(
        linalg.hessenberg,
        (COMPLEX,),
        scipy.linalg.hessenberg,
        {"calc_q": True},
        FORM_OPS,
        rtol=256,
        label="complex",
    ),
    OpCase(linalg.hessenberg, (A,), scipy.linalg.hessenberg, ops=FORM_OPS, rtol=256, label="h"),
    OpCase(
        linalg.hessenberg,
        (draw(2, 2) + 1j,),
        scipy.linalg.hessenberg,
        ops=["copy"],
        label="small",
    ),
    OpCase(
        linalg.hessenberg,
        (draw(2, 3, 3),),
        lambda x: np.stack([scipy.linalg.hessenberg(one) for one in x]),
        ops=FORM_OPS,
        rtol=256,
        label="batched",
    ),
]


def decomposed(name: str, a: Any, label: str, ops: Any, *rest: Any, **more: Any) -> OpCase:
    """A case of a function that SciPy has under the same name."""
    more = {"rtol": 256, "dtypes": ALL if a.dtype == np.float64 else (), **more}
    return OpCase(
        getattr(linalg, name), (a, *rest), getattr(scipy.linalg, name), ops=ops, label=label, **more
    )


def scipy_pivots(a: Any, c: Any, pivoting: bool) -> Any:
    product, r, order = scipy.linalg.qr_multiply(a, c, pivoting=pivoting)
    return product, r, order.astype(np.int64)


# Far from where the scales, 1, 8 and 1/4, would be others.
SCALED = np.array([[1.17, 0.24, 3.96], [11.12, 0.81, 38.04], [0.22, 0.05, 0.78]])
ORTHOGONAL = [
    decomposed(
        "rq",
        A,
        "",
        ["qr"],
        raises=[
            Raises((draw(3),), LinAlgError, "rq: got shape"),
            Raises((A,), ArgumentError, "rq: got mode='x'", {"mode": "x"}),
        ],
    ),
    decomposed("rq", WIDE, "economic", ["qr"], params={"mode": "economic"}),
    decomposed("rq", WIDE[:, :3], "full", ["qr"]),
    decomposed("rq", TALL, "tall", ["qr"], params={"mode": "r"}),
    decomposed("rq", COMPLEX, "complex", ["qr"]),
    decomposed(
        "qr_multiply",
        TALL,
        "",
        ["qr"],
        draw(3, 4, seed=3),
        raises=[
            Raises((TALL, draw(3)), ShapeError, "qr_multiply.*expected 4 columns.*2 rows"),
            Raises((TALL, np.array(1.0)), LinAlgError, "qr_multiply: got a number"),
            Raises((A, A), ArgumentError, "mode='x'", {"mode": "x"}),
        ],
    ),
    decomposed("qr_multiply", TALL, "left", ["qr"], draw(2), params={"mode": "left"}),
    decomposed("qr_multiply", COMPLEX, "conjugate", ["qr"], B.T, params={"conjugate": True}),
    OpCase(
        linalg.qr_multiply,
        (A, draw(3)),
        scipy_pivots,
        {"pivoting": True},
        ["qr", "qr_pivots"],
        rtol=256,
        label="pivots",
    ),
    decomposed(
        "matrix_balance",
        SCALED,
        "",
        ["balanced_scales"],
        dtypes=REAL,
        raises=[NOT_SQUARE],
    ),
    decomposed(
        "matrix_balance",
        np.array([[1.0, 2.0, 0.5], [0.0, 3.0, 0.0], [1.0, 700.0, 2.0]]),
        "permuted",
        ["balanced_scales"],
        # Elements that are not 0 any more change the order.
        differences=False,
        params={"separate": True},
        dtypes=REAL,
    ),
    decomposed(
        "matrix_balance", COMPLEX, "complex", ["balanced_scales"], params={"permute": False}
    ),
    decomposed(
        "pinvh",
        hermitian(APART),
        "",
        ["pinv"],
        # Reading one triangle, it is another function of single elements than SciPy's.
        differences=False,
        at=[At(([[2.0, 0.0], [0.0, 0.0]],), ([[-0.25, 0.25], [0.25, 0.0]],))],
        raises=[NOT_SQUARE, Raises((A,), ArgumentError, "pinvh: got atol=-1", {"atol": -1.0})],
    ),
    decomposed(
        "pinvh",
        hermitian(COMPLEX),
        "upper",
        ["pinv"],
        differences=False,
        params={"lower": False, "return_rank": True},
    ),
]


# ---- eigenvalues --------------------------------------------------------------------------------


def both_eig(module: Any, a: Any, *b: Any) -> Any:
    """What of left and right eigenvectors does not depend on their phases, in a fixed order."""
    w, left, right = module.eig(a, *b, left=True)
    return w, abs(left), turned(right).astype(w.dtype)


def left_eig(a: Any, *b: Any) -> Any:
    return both_eig(linalg, a, *b)


def scipy_left_eig(a: Any, *b: Any) -> Any:
    return both_eig(scipy.linalg, a, *b)


def only_left(a: Any) -> Any:
    w, left = linalg.eig(a, left=True, right=False)
    return w, turned(left), linalg.eig(a, right=False)


def scipy_only_left(a: Any) -> Any:
    w, left = scipy.linalg.eig(a, left=True, right=False)
    return w, turned(left).astype(w.dtype), w


def typed_eigh(a: Any, b: Any, **params: Any) -> Any:
    w, v = linalg.eigh(hermitian(a), hermitian(b), **params)
    return w, turned(v)


def scipy_typed_eigh(a: Any, b: Any, **params: Any) -> Any:
    w, v = scipy.linalg.eigh(hermitian(a), hermitian(b), **params)
    return w, turned(v)


OTHER = draw(3, 3, seed=1) + 6 * np.eye(3)
DEFECTIVE = np.array([[1.0, 1.0], [0.0, 1.0]])
EIGEN = [
    OpCase(
        left_eig,
        (APART,),
        scipy_left_eig,
        ops=["eig", "verified"],
        rtol=4096,
        raises=[
            NOT_SQUARE,
            Raises((DEFECTIVE,), LinAlgError, "eig: got.*depend on each other.*left"),
            Raises((A, np.zeros((3, 3))), LinAlgError, "eig: got.*Singular"),
            Raises((A, np.eye(2)), ShapeError, "eig: got shapes.*one size"),
        ],
    ),
    OpCase(left_eig, (APART, OTHER), scipy_left_eig, ops=["eig"], rtol=4096, label="generalised"),
    OpCase(only_left, (APART,), scipy_only_left, ops=["eig", "eigvals"], rtol=4096),
    OpCase(
        linalg.eigvals,
        (APART, OTHER),
        scipy.linalg.eigvals,
        ops=["eigvals"],
        rtol=4096,
        label="generalised",
        raises=[
            Raises((A,), UnsupportedError, "homogeneous_eigvals", {"homogeneous_eigvals": True})
        ],
    ),
    *(
        OpCase(
            typed_eigh,
            (A, OTHER),
            scipy_typed_eigh,
            {"type": kind, "subset_by_index": chosen},
            ["eigh"],
            rtol=4096,
            dtypes=ALL,
            label=f"type{kind}",
            raises=[
                Raises((A, OTHER), ArgumentError, "eigh: got type=4", {"type": 4}),
                Raises((A, OTHER), ArgumentError, "numbers 2 to 1", {"subset_by_index": (2, 1)}),
            ],
        )
        for kind, chosen in ((2, (0, 2)), (3, (1, 2)))
    ),
]


# ---- spaces and functions -----------------------------------------------------------------------


def procrustes(a: Any, b: Any) -> Any:
    return linalg.orthogonal_procrustes(a, b)


FLAT = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
TILTED = np.array([[1.0, 0.1], [0.0, 1.0], [0.2, 0.9]])
SPACES = [
    OpCase(
        linalg.subspace_angles,
        (TALL, draw(4, 2, seed=5)),
        scipy.linalg.subspace_angles,
        ops=["svdvals", "qr", "verified"],
        rtol=256,
        dtypes=ALL,
        raises=[
            Raises((TALL, A), ShapeError, "subspace_angles.*as many rows"),
            Raises((np.ones((3, 2)), A), LinAlgError, "subspace_angles.*depend.*orth"),
            Raises((TALL, draw(4)), LinAlgError, "subspace_angles: got shape"),
        ],
    ),
    OpCase(
        linalg.subspace_angles,
        (TILTED[:, 1:], FLAT),
        scipy.linalg.subspace_angles,
        ops=["svdvals"],
        rtol=256,
        label="one",
        # At an angle of 0 there is a kink.
        at=[At((FLAT[:, :1], FLAT), (np.zeros((3, 1)), np.zeros((3, 2))))],
    ),
    OpCase(
        linalg.subspace_angles,
        (TALL + 1j * draw(4, 2, seed=6), draw(4, 2, seed=5)),
        scipy.linalg.subspace_angles,
        ops=["svdvals"],
        dtypes=REAL,
        rtol=256,
        label="complex",
    ),
    OpCase(
        procrustes,
        (TALL, draw(4, 2, seed=5)),
        scipy.linalg.orthogonal_procrustes,
        ops=["polar", "svdvals"],
        rtol=256,
        dtypes=ALL,
        raises=[Raises((TALL, A), ShapeError, "orthogonal_procrustes.*expected the same")],
    ),
    OpCase(
        procrustes,
        (COMPLEX, A),
        scipy.linalg.orthogonal_procrustes,
        ops=["polar"],
        rtol=256,
        label="complex",
    ),
    OpCase(
        linalg.expm_frechet,
        (0.3 * A, draw(3, 3, seed=1)),
        scipy.linalg.expm_frechet,
        ops=["matrix_function", "matrix_function_change"],
        rtol=256,
        dtypes=DOUBLE,
        raises=[
            Raises((draw(2, 3), A), LinAlgError, r"expm_frechet: got shape \(2, 3\)"),
            Raises((A, np.eye(2)), ShapeError, "expm_frechet.*one size"),
            Raises((A, A), ArgumentError, "expm_frechet: got method='x'", {"method": "x"}),
        ],
    ),
    OpCase(
        linalg.expm_frechet,
        (0.3 * COMPLEX, A),
        scipy.linalg.expm_frechet,
        {"compute_expm": False},
        ["matrix_function_change"],
        rtol=256,
        label="change",
    ),
    OpCase(
        linalg.expm_cond,
        (0.5 * draw(2, 2),),
        scipy.linalg.expm_cond,
        ops=["matrix_function_change", "svdvals"],
        rtol=256,
        dtypes=REAL,
        raises=[NOT_SQUARE],
    ),
]

CASES = [*LDL, *HESSENBERG, *ORTHOGONAL, *EIGEN, *SPACES]

NOT_NATIVE = {
    "ldl": "LAPACK does it",
    "hessenberg": "LAPACK does it",
    "hessenberg_turning": "columns one after the other, each from those before it",
    "hessenberg_pull": "columns one after the other, each from those after it",
    "balanced_scales": "LAPACK does it",
}
