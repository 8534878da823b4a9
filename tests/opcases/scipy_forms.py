"""Samples of the functions that have other arguments or results in `gradtape.scipy.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import our_scipy
from builds import SCIPY
from gradtape.errors import ArgumentError, LinAlgError, UnsupportedError
from opcases.case import OpCase, Raises, draw
from opcases.decompositions import APART, COMPLEX, TALL, WIDE, A, hermitian

linalg = our_scipy.linalg
DOUBLE = (np.float64, np.complex128)
B = draw(3, 2, seed=1)
LOW = draw(4, 2, seed=5)
ACROSS = draw(2, 3, seed=6)


def case(name: str, x: Any, label: str = "", *ops: str, **more: Any) -> OpCase:
    """A function of one matrix, of ours and of SciPy's."""

    def ours(x: Any, **params: Any) -> Any:
        return getattr(linalg, name)(x, **params)

    def reference(x: Any, **params: Any) -> Any:
        return getattr(scipy.linalg, name)(x, **params)

    ours.__name__ = f"scipy_{name}"
    more = {"rtol": 4096, "dtypes": (np.float64, np.float32), **more}
    return OpCase(ours, (x,), reference, ops=ops or [name], label=label, **more)


def symmetric(name: str, x: Any, label: str, *ops: str, **more: Any) -> OpCase:
    """The same of the Hermitian part, made positive definite."""

    def ours(x: Any, **params: Any) -> Any:
        return getattr(linalg, name)(hermitian(x) + 9 * np.eye(3), **params)

    def reference(x: Any, **params: Any) -> Any:
        return getattr(scipy.linalg, name)(hermitian(x) + 9 * np.eye(3), **params)

    ours.__name__ = f"scipy_{name}"
    more = {"rtol": 4096, "dtypes": (np.float64, np.float32), **more}
    return OpCase(ours, (x,), reference, ops=ops or [name], label=label, **more)


def pivoted(x: Any, **params: Any) -> Any:
    return linalg.qr(x, pivoting=True, **params)


def pivoted_reference(x: Any, **params: Any) -> Any:
    *factors, order = scipy.linalg.qr(x, pivoting=True, **params)
    return *factors, order.astype(np.int64)


FACTORS = [
    symmetric("cholesky", APART, "upper", dtypes=DOUBLE),
    symmetric("cholesky", COMPLEX, "lower", params={"lower": True}),
    case("qr", A, "", raises=[Raises((A,), UnsupportedError, "'raw'", {"mode": "raw"})]),
    OpCase(pivoted, (A,), pivoted_reference, ops=["qr", "qr_pivots"], rtol=4096),
    case("qr", TALL, "economic", params={"mode": "economic"}),
    case("qr", TALL, "r", params={"mode": "r"}, dtypes=DOUBLE),
    case("qr", WIDE, "wide-r", params={"mode": "r"}),
    OpCase(
        pivoted,
        (TALL,),
        pivoted_reference,
        {"mode": "r"},
        ["qr", "qr_pivots"],
        rtol=4096,
        label="r",
    ),
]

DIAGONAL = {"assume_a": "diagonal"}
# Before 1.17, SciPy has no structures for inv.
STRUCTURED = (
    [
        case("inv", A, "upper", "solve_triangular", params={"assume_a": "upper triangular"}),
        case("inv", A, "lower", "solve_triangular", params={"assume_a": "lower triangular"}),
        # SciPy leaves elements off the diagonal as they were.
        case("inv", np.diag([1.0, 2.0, 3.0]), "diagonal", "solve_banded", params=DIAGONAL),
        symmetric("inv", APART, "pos", "solve", params={"assume_a": "pos"}),
        symmetric(
            "inv", COMPLEX, "her", "solve", params={"assume_a": "her", "lower": True}, dtypes=()
        ),
        symmetric("inv", APART, "sym", "solve", params={"assume_a": "sym"}),
    ]
    if SCIPY >= (1, 17)
    else []
)
INV = [
    case(
        "inv",
        A,
        "",
        raises=[
            Raises((draw(2, 3),), LinAlgError, "square"),
            Raises((A,), ArgumentError, "assume_a", {"assume_a": "round"}),
        ],
    ),
    *STRUCTURED,
]


def of_rank(left: Any, right: Any, **params: Any) -> Any:
    """The pseudo-inverse of a product, which keeps its rank wherever its factors go."""
    return linalg.pinv(left @ right, **params)


def of_rank_reference(left: Any, right: Any, **params: Any) -> Any:
    return scipy.linalg.pinv(left @ right, **params)


def hermitian_of_rank(left: Any, **params: Any) -> Any:
    return linalg.pinvh(left @ left.mT, **params)


def hermitian_of_rank_reference(left: Any, **params: Any) -> Any:
    return scipy.linalg.pinvh(left @ left.mT, **params)


PINV = [
    case(
        "pinv",
        TALL,
        raises=[Raises((A,), ArgumentError, "pinv: got atol=-1", {"atol": -1.0})],
    ),
    case("pinv", TALL, "rank", params={"return_rank": True}, dtypes=DOUBLE),
    OpCase(
        of_rank,
        (LOW, ACROSS),
        of_rank_reference,
        {"atol": 1e-6, "rtol": 1e-6, "return_rank": True},
        ops=["pinv"],
        rtol=4096,
        dtypes=DOUBLE,
        label="scipy",
    ),
    OpCase(
        hermitian_of_rank,
        (draw(3, 2, seed=8),),
        hermitian_of_rank_reference,
        {"atol": 1e-6, "return_rank": True},
        ops=["pinv"],
        rtol=4096,
        dtypes=(np.float64,),
    ),
]


def least(a: Any, b: Any, **params: Any) -> Any:
    return linalg.lstsq(a, b, **params)


def least_reference(a: Any, b: Any, cond: Any = None, **params: Any) -> Any:
    # A negative one is rounding for LAPACK; SciPy 1.18 refuses it.
    cond = None if cond is not None and cond < 0 else cond
    x, residues, rank, s = scipy.linalg.lstsq(a, b, cond, **params)
    return x, residues, np.intc(rank), s


def without_values(a: Any, b: Any) -> Any:
    return linalg.lstsq(a, b, lapack_driver="gelsy")[:3]


def without_values_reference(a: Any, b: Any) -> Any:
    x, residues, rank, none = scipy.linalg.lstsq(a, b, lapack_driver="gelsy")
    assert none is None
    return x, residues, np.intc(rank)


LSTSQ = [
    OpCase(
        least,
        (draw(4, 2), draw(4, *columns, seed=2)),
        least_reference,
        ops=["lstsq", "pinv", "svdvals"],
        rtol=4096,
        label=f"scipy-{len(columns)}",
        raises=[Raises((A, B), ArgumentError, "lapack_driver", {"lapack_driver": "gels"})],
    )
    for columns in ((2,), ())
] + [
    OpCase(least, (A, B), least_reference, {"cond": 1e-3}, ["lstsq"], rtol=4096, label="cond"),
    OpCase(least, (A, B), least_reference, {"cond": -1}, ["lstsq"], rtol=4096, label="negative"),
    OpCase(without_values, (TALL, draw(4)), without_values_reference, ops=["lstsq"], rtol=4096),
]

CASES = [*FACTORS, *INV, *PINV, *LSTSQ]
