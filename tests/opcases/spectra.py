"""Samples of decompositions of square matrices, and of functions by eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError
from opcases.case import OpCase, Raises, draw
from opcases.decompositions import (
    ALL,
    APART,
    COMPLEX,
    NOT_SQUARE,
    TALL,
    TOO_FLAT,
    WIDE,
    A,
    hermitian,
    in_all,
    low_rank_reference,
    turned,
)

# ---- any square matrices ------------------------------------------------------------------------


def _eig(module: Any, x: Any) -> Any:
    w, v = module.eig(x)
    return w, turned(v)


def _eigvals(module: Any, x: Any) -> Any:
    return module.eigvals(x)


_eig.__name__, _eigvals.__name__ = "eig", "eigvals"
EIG, EIGVALS = in_all(_eig), in_all(_eigvals)


def in_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """Results of NumPy's made complex, also where they happen to be real."""

    def reference(x: Any) -> Any:
        results = function(x)
        kind = np.result_type(x.dtype, np.complex64)
        return [r.astype(kind) for r in (results if isinstance(results, tuple) else [results])]

    return reference


def schur(x: Any, output: str = "real") -> Any:
    """Both factors; complex ones with the phases that make the first row of z positive."""
    return _turned_schur(*gt.linalg.schur(x, output=output))


def schur_reference(x: Any, output: str = "real") -> Any:
    """The same in SciPy."""
    return _turned_schur(*scipy.linalg.schur(x, output=output))


def _turned_schur(t: Any, z: Any) -> Any:
    first = z[..., :1, :]
    phases = first.conj() / abs(first)
    return t * phases * phases.conj().mT, z * phases


def polar_parts(x: Any, side: str = "right") -> Any:
    """Both factors."""
    return gt.linalg.polar(x, side)


def eig_case(functions: Any, x: Any, label: str = "", **more: Any) -> OpCase:
    ours, reference, torch = functions
    return OpCase(
        ours,
        (x,),
        in_complex(reference),
        label=label,
        **{"torch": torch, "rtol": 4096, "dtypes": (np.float64, np.float32), **more},
    )


GENERAL = [
    eig_case(EIG, APART, ops=["eig", "dual_basis"], raises=[NOT_SQUARE]),
    eig_case(EIG, np.array([[1.0, 2.0], [-3.0, 0.5]]), "pairs"),
    eig_case(EIG, COMPLEX, "complex", dtypes=(np.complex128,)),
    eig_case(EIG, draw(2, 2, 2), "batched"),
    eig_case(EIG, draw(0, 0), "empty", torch=None),
    eig_case(EIGVALS, APART, raises=[NOT_SQUARE]),
    eig_case(EIGVALS, np.array([[1.0, 2.0], [-3.0, 0.5]]), "pairs"),
    eig_case(EIGVALS, COMPLEX, "complex", dtypes=(np.complex128,)),
    OpCase(
        schur,
        (APART,),
        schur_reference,
        ops=["schur", "triangular_eigenvectors"],
        rtol=4096,
        raises=[
            NOT_SQUARE,
            Raises((A,), ArgumentError, "schur: got output='x'", {"output": "x"}),
        ],
    ),
    OpCase(
        schur,
        (APART,),
        schur_reference,
        {"output": "complex"},
        ops=["schur", "triangular_eigenvectors"],
        rtol=4096,
        label="complex",
    ),
    OpCase(
        polar_parts,
        (A,),
        scipy.linalg.polar,
        ops=["polar", "balanced_sylvester"],
        rtol=4096,
        dtypes=ALL,
        raises=[TOO_FLAT, Raises((A, "up"), ArgumentError, "polar: got side='up'")],
    ),
    OpCase(polar_parts, (TALL,), scipy.linalg.polar, ops=["polar"], rtol=4096, label="tall"),
    OpCase(
        polar_parts,
        (WIDE,),
        scipy.linalg.polar,
        {"side": "left"},
        ops=["polar"],
        rtol=4096,
        label="left",
    ),
    # At an orthogonal matrix all singular values are equal.
    OpCase(
        polar_parts,
        (np.array([[0.6, -0.8], [0.8, 0.6]]),),
        scipy.linalg.polar,
        ops=["polar"],
        rtol=4096,
        label="orthogonal",
    ),
]


# ---- functions of the matrix --------------------------------------------------------------------


def exponential(x: Any) -> Any:
    """Of the Hermitian part."""
    return gt.linalg.hermitian_function(hermitian(x), gt.exp)


def exponential_reference(x: Any) -> Any:
    """The same in SciPy."""
    return scipy.linalg.expm(hermitian(x))


def largest_two(x: Any) -> Any:
    """The projection on the eigenvectors of the two largest eigenvalues."""
    return gt.linalg.hermitian_function(hermitian(x), lambda w: np.array([0.0, 1.0, 1.0]) + 0.0 * w)


def largest_two_reference(x: Any) -> Any:
    """The same in NumPy."""
    v = np.linalg.eigh(hermitian(x))[1][:, 1:]
    return v @ v.T


def cube(x: Any) -> Any:
    """U·S³·Vᴴ."""
    return gt.linalg.singular_function(x, lambda s: s**3)


def cube_reference(x: Any) -> Any:
    """The same by products."""
    return x @ x.conj().mT @ x


def best_of_rank_one(x: Any) -> Any:
    """The nearest matrix of rank 1."""
    return gt.linalg.singular_function(x, lambda s: s * (np.arange(s.shape[0]) < 1))


def best_of_rank_one_reference(x: Any) -> Any:
    """The same in NumPy."""
    return low_rank_reference(x, 1)[0]


def function_case(ours: Any, x: Any, reference: Any, label: str = "", **more: Any) -> OpCase:
    dtypes = ALL if x.dtype == np.float64 else (x.dtype,)
    return OpCase(
        ours,
        (x,),
        reference,
        ops=["hermitian_function"],
        rtol=4096,
        label=label,
        **{"dtypes": dtypes, **more},
    )


def function_of(x: Any, function: Any) -> Any:
    """Any function of the Hermitian part."""
    return gt.linalg.hermitian_function(hermitian(x), function)


TWICE = np.diag([1.0, 2.0, 2.0])
FUNCTIONS = [
    function_case(exponential, A, exponential_reference, raises=[NOT_SQUARE]),
    function_case(exponential, COMPLEX, exponential_reference, "complex"),
    function_case(exponential, draw(2, 2, 2), exponential_reference, "batched"),
    function_case(exponential, TWICE, exponential_reference, "repeated"),
    function_case(exponential, TWICE + np.diag([0, 0, 1e-9]), exponential_reference, "close"),
    function_case(exponential, np.zeros((2, 2)), exponential_reference, "zero"),
    function_case(largest_two, TWICE, largest_two_reference, dtypes=(np.float64,)),
    function_case(
        cube,
        A,
        cube_reference,
        raises=[Raises((draw(3),), LinAlgError, r"singular_function: got shape \(3,\)")],
    ),
    function_case(cube, TALL, cube_reference, "tall"),
    function_case(cube, np.array([[1.0, 2.0], [2.0, 4.0]]), cube_reference, "singular"),
    function_case(cube, np.eye(2, 3), cube_reference, "repeated"),
    function_case(best_of_rank_one, WIDE, best_of_rank_one_reference),
    function_case(
        best_of_rank_one,
        np.diag([3.0, 1.0, 1.0]),
        best_of_rank_one_reference,
        "repeated",
        dtypes=(np.float64,),
    ),
    OpCase(
        function_of,
        (np.diag([4.0, 9.0]), gt.sqrt),
        lambda x, _function: np.diag(np.sqrt(np.diagonal(x))),
        ops=["hermitian_function"],
        raises=[
            Raises((np.eye(2), gt.sum), ArgumentError, r"gives float64\[\] for values of.*\(2,\)"),
        ],
    ),
]

CASES = [*GENERAL, *FUNCTIONS]

NOT_NATIVE = {
    **dict.fromkeys(
        ("eig", "eigvals", "dual_basis", "schur", "polar", "balanced_sylvester"), "LAPACK does it"
    ),
    "triangular_eigenvectors": "solves for one element after the other",
    "hermitian_function": "calls a function of the user",
}
