"""Cofactors: the derivatives of a determinant, of any order, at any matrix.

A determinant is a polynomial of the elements, so all of its derivatives exist everywhere. The
inverse gives them where a matrix is regular; where it is singular or nearly so they are sums of
products of singular values.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general
from gradtape.core.lowering import Matrices
from gradtape.errors import LinAlgError
from gradtape.ops.cast import conj
from gradtape.ops.linalg import small
from gradtape.ops.linalg.common import dtype_of


def _forward(xp: Any, x: Any, *directions: Any) -> Any:
    inverse = _inverse_if_regular(xp, x)
    if inverse is not None:
        return _by_inverse(xp, x, inverse, directions)
    if len(directions) >= len(_IN_DIAGONAL_FORM):
        raise LinAlgError(
            f"det: got a singular matrix of shape {x.shape} for a derivative of order "
            f"{len(directions) + 1}, expected a matrix that can be inverted, or an order of at "
            f"most {len(_IN_DIAGONAL_FORM)}"
        )
    # A = U·S·Vᴴ: the cofactors of a product are the product of the cofactors, and U and V are
    # their own, up to a sign (or phase).
    u, s, vh = xp.linalg.svd(x)
    turned = [u.conj().mT @ direction @ vh.conj().mT for direction in directions]
    inner = _IN_DIAGONAL_FORM[len(directions)](xp, s, *turned)
    sign = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    return sign * (u.conj() @ inner @ vh.conj())


# ---- regular matrices ---------------------------------------------------------------------------


def _inverse_if_regular(xp: Any, x: Any) -> Any:
    """The inverses of matrices if all of them are far from singular, else None."""
    try:
        inverse = xp.linalg.inv(x)
    except np.linalg.LinAlgError:
        return None
    condition = _one_norm(xp, x) * _one_norm(xp, inverse)
    return None if (condition > xp.finfo(x.dtype).eps ** -0.5).any() else inverse


def _one_norm(xp: Any, x: Any) -> Any:
    return xp.abs(x).sum(axis=-2).max(axis=-1, initial=0)


def _by_inverse(xp: Any, x: Any, inverse: Any, directions: Sequence[Any]) -> Any:
    """det(A)·Σ sgn(π)·∏ tr(A⁻¹·E·A⁻¹·F …), a sum over permutations, a product over their cycles.

    The last permuted item is the direction in which the derivative is still to be taken: its cycle
    is not closed to a trace, and leaves a matrix.
    """
    moved = [inverse @ direction for direction in directions]
    last = len(moved)
    total = 0
    for permutation in itertools.permutations(range(last + 1)):
        cycles = _cycles(permutation)
        scale: Any = (-1) ** (last + 1 - len(cycles))
        for cycle in cycles:
            factors = [moved[i] for i in cycle if i != last]
            if last in cycle:  # it comes first
                opened = functools.reduce(operator.matmul, [*factors, inverse])
            else:
                scale = scale * _trace_of_product(factors)[..., None, None]
        total = total + scale * opened
    return xp.linalg.det(x)[..., None, None] * total.mT  # type: ignore[attr-defined]


def _cycles(permutation: Sequence[int]) -> list[list[int]]:
    """The cycles of a permutation, each from its largest number on."""
    left = set(range(len(permutation)))
    cycles = []
    while left:
        cycle = [max(left)]
        while permutation[cycle[-1]] != cycle[0]:
            cycle.append(permutation[cycle[-1]])
        left -= set(cycle)
        cycles.append(cycle)
    return cycles


def _trace_of_product(factors: Sequence[Any]) -> Any:
    return functools.reduce(operator.matmul, factors).trace(axis1=-2, axis2=-1)


# ---- singular matrices, by the form of diagonal matrices ----------------------------------------


def _products_of_others(xp: Any, s: Any) -> Any:
    """For each number the product of all others along the last axis, without dividing."""
    one = xp.ones_like(s[..., :1])
    before = xp.concatenate([one, s[..., :-1]], axis=-1).cumprod(axis=-1)
    after = xp.concatenate([one, s[..., :0:-1]], axis=-1).cumprod(axis=-1)[..., ::-1]
    return before * after


def _products_without(xp: Any, s: Any, count: int) -> Any:
    """P[i, j, …], the product of all numbers but `count` different ones; 0 if two are the same."""
    size = s.shape[-1]
    steps = np.arange(size)
    for _ in range(count - 1):
        # A new axis says which number is replaced by 1.
        s = xp.repeat(s[..., None, :], size, axis=-2)
        s[..., steps, steps] = 1
    products = _products_of_others(xp, s)
    index = np.indices((size,) * count)
    for one, other in itertools.combinations(range(count), 2):
        products = products * (index[one] != index[other])
    return products


def _of_diagonal(xp: Any, s: Any) -> Any:
    return _products_without(xp, s, 1)[..., None] * xp.eye(s.shape[-1], dtype=s.dtype)


def _change_of_diagonal(xp: Any, s: Any, e: Any) -> Any:
    """−Eⱼᵢ·Pᵢⱼ beside the diagonal, and Σⱼ Eⱼⱼ·Pᵢⱼ on it."""
    pairs = _products_without(xp, s, 2)
    diagonal = e.diagonal(0, -2, -1)
    return (pairs @ diagonal[..., None]) * xp.eye(s.shape[-1], dtype=s.dtype) - pairs * e.mT


def _second_change_of_diagonal(xp: Any, s: Any, e: Any, f: Any) -> Any:
    """Σⱼₖ Pᵢⱼₖ·(Eⱼⱼ·Fₖₖ − Eⱼₖ·Fₖⱼ) on the diagonal.

    Beside it Σₖ Pᵢⱼₖ·(Eⱼₖ·Fₖᵢ − Eⱼᵢ·Fₖₖ), and the same with E and F exchanged.
    """
    triples = _products_without(xp, s, 3)
    beside = 0
    for one, other in ((e, f), (f, e)):
        diagonal = other.diagonal(0, -2, -1)
        beside = beside + xp.einsum("...ijk,...jk,...ki->...ij", triples, one, other)
        beside = beside - one.mT * xp.einsum("...ijk,...k->...ij", triples, diagonal)
    ends = e.diagonal(0, -2, -1)[..., :, None] * f.diagonal(0, -2, -1)[..., None, :] - e * f.mT
    on_diagonal = xp.einsum("...ijk,...jk->...i", triples, ends)
    return beside + on_diagonal[..., None] * xp.eye(s.shape[-1], dtype=s.dtype)


_IN_DIAGONAL_FORM = (_of_diagonal, _change_of_diagonal, _second_change_of_diagonal)


# ---- the op -------------------------------------------------------------------------------------


def _along(i: int, change: Any, x: Any, *directions: Any) -> Any:
    """The change that one of the inputs causes: it is linear in each direction."""
    others = directions[: i - 1] + directions[i:] if i else directions
    return cofactors(x, *others, change)


def _vjp(i: int, ct: Any, _out: Any, *inputs: Any) -> Any:
    return conj(_along(i, conj(ct), *inputs))


def _jvp(tangents: Sequence[Any], _out: Any, *inputs: Any) -> Any:
    return added(*(t if t is None else _along(i, t, *inputs) for i, t in enumerate(tangents)))


def _infer(x: Aval, *directions: Aval) -> Aval:
    dtype = np.result_type(dtype_of("inv", x.dtype), *(d.dtype for d in directions))
    return Aval(x.shape, dtype)


# C = ∂det/∂A, and its change along E, and the change of that along F …: symmetric in A's change and
# all directions, ΣC(A, E, F)∘G = ΣC(A, E, G)∘F, and C(A, E) is d C(A) for dA = E
cofactors = general(
    "cofactors",
    _forward,
    infer=_infer,
    vjp_each=_vjp,
    jvp=_jvp,
    # The number of products grows faster than that of an elimination.
    lower=Matrices(small.cofactors, fits=lambda x, *others: not others and small.up_to(4)(x)),
)
