"""Equations with a sparse matrix."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, broadcast_sizes, general
from gradtape.core.op import Facts
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.linalg.common import SINGULAR, failed
from gradtape.ops.linalg.stacks import summed
from gradtape.ops.sparse.product import (
    Shape,
    batch_sparse,
    by_columns,
    for_each,
    matrix_of,
    product,
    sampled,
)


def _dtype(data: Any, b: Any) -> Any:
    """The dtype that the solver computes in: at least single precision."""
    dtype = np.result_type(data.dtype, b.dtype)
    return dtype if dtype.char in "fdFD" else np.dtype(np.float64)


class _Kept:
    """Factors that are kept for as long as the numbers they were made of.

    Whoever asks for that has numbers that are not written to.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Any, bool]] = {}

    def put(self, data: Any, factors: Any, transpose: bool) -> None:
        """Keep the factors of a matrix, made of the transpose of what is stored or not."""
        key = id(data)

        def forget(_gone: Any) -> None:
            self._found.pop(key, None)

        self._found[key] = weakref.ref(data, forget), factors, transpose

    def solver(self, data: Any, dtype: Any, transpose: bool) -> Callable[[Any], Any] | None:
        """What solves equations with the matrix or its transpose; None if it is not kept."""
        reference, factors, turned = self._found.get(id(data), (None, None, False))
        if reference is None or reference() is not data or data.dtype != dtype:
            return None
        trans = "N" if turned == transpose else "T"
        return lambda b: factors.solve(b, trans)


_KEPT = _Kept()


def keep_factors(data: Any, factors: Any, transpose: bool) -> None:
    """Use the factors of a matrix wherever equations with its numbers are solved.

    Args:
        data: The numbers, which must not be written to.
        factors: The factors of the matrix, by SuperLU.
        transpose: Whether the matrix is the transpose of the one that is stored by rows.
    """
    _KEPT.put(data, factors, transpose)


def factors_of(matrix: Any, **options: Any) -> Any:
    """Factor a sparse matrix of SciPy."""
    import scipy.sparse.linalg

    own = matrix.tocsc(copy=True)  # the solver puts the places in order there
    try:
        return scipy.sparse.linalg.splu(own, **options)
    except RuntimeError as error:
        raise failed("spsolve", (own,), str(error), SINGULAR) from error


def _forward(
    xp: Any, data: Any, b: Any, indices: Any, indptr: Any, shape: Shape, transpose: bool
) -> Any:
    dtype = _dtype(data, b)

    def factored(data: Any) -> Callable[[Any], Any]:
        kept = _KEPT.solver(data, dtype, transpose)
        if kept is not None:
            return kept
        matrix = matrix_of(data.astype(dtype, copy=False), indices, indptr, shape, transpose)
        return factors_of(matrix).solve  # type: ignore[no-any-return]

    b = b.astype(dtype, copy=False)
    if data.ndim == 1:
        return by_columns(factored(data), b)
    return for_each(lambda data, b: factored(data)(b), data, b)


def _vjp(
    wanted: Sequence[bool], ct: Any, out: Any, data: Any, _b: Any, indices: Any, indptr: Any,
    shape: Shape, transpose: bool,
) -> tuple[Any, ...]:  # fmt: skip
    places = indices, indptr
    back = solution(conj_if_complex(data), ct, *places, shape=shape, transpose=not transpose)
    pair = (conj_if_complex(out), back) if transpose else (back, conj_if_complex(out))
    return -sampled(*pair, *places) if wanted[0] else None, back, None, None


def _jvp(
    tangents: Sequence[Any], out: Any, data: Any, _b: Any, indices: Any, indptr: Any, **params: Any
) -> Any:
    ddata, db = tangents[:2]
    by_data = None if ddata is None else -product(ddata, out, indices, indptr, **params)
    return solution(data, added(db, by_data), indices, indptr, **params)


def _infer(
    data: Aval, b: Aval, _indices: Aval, _indptr: Aval, shape: Shape, transpose: bool
) -> Aval:
    lead = broadcast_sizes(data.shape[:-1], b.shape[:-2])
    return Aval((*lead, *b.shape[-2:]), _dtype(data, b))


# S(d)·y = b: dy = S⁻¹(db − S(dd)·y); transpose: b̄ = S⁻ᴴ·ȳ, d̄ = −b̄·yᴴ where S is stored
solution: Callable[..., Any] = general(
    "sparse_solve",
    _forward,
    infer=_infer,
    vjp_all=summed(_vjp),
    jvp=_jvp,
    batch=batch_sparse,
    facts=Facts(divisors=(0,)),
)
